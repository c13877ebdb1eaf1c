"""Record a scenario, play it, compare; make what differs smaller."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.golden.__main__ import Result, judged
from tests.oracle.recorder import record
from tests.oracle.scenarios import is_possible

Scenario = dict[str, Any]
Recorder = Callable[[Scenario, str], dict[str, Any]]


class Verdict(NamedTuple):
    """A scenario, its recording, and what the comparison says."""

    scenario: Scenario
    recording: dict[str, Any]
    result: Result

    @property
    def differs(self) -> bool:
        return self.result.difference is not None

    @property
    def controllers(self) -> set[int]:
        """Return the brokers that own `/controller` at the end of a step."""
        owners = (step["znodes"].get("/controller", {}).get("ephemeral_owner") for step in self.recording["steps"])
        return {owner for owner in owners if owner is not None}


def verdict(scenario: Scenario, release: str, recorder: Recorder = record) -> Verdict:
    """Record a scenario with official brokers, play the recording and compare."""
    recording = recorder(scenario, release)
    return Verdict(scenario, recording, judged(recording))


def shrunk(found: Verdict, release: str, recordings: int, recorder: Recorder = record) -> Verdict:
    """Return a verdict that still differs, with as few steps as this number of further recordings finds."""
    place = found.result.place
    if place is not None:
        cut = {**found.scenario, "steps": found.scenario["steps"][: place.step + 1]}
        found = found._replace(scenario=cut, recording={**found.recording, "steps": found.recording["steps"][: place.step + 1]})
    at = len(found.scenario["steps"]) - 2
    while at > 0 and recordings > 0:
        steps = [step for number, step in enumerate(found.scenario["steps"]) if number != at]
        if is_possible(release, found.scenario, steps):
            recordings -= 1
            smaller = verdict({**found.scenario, "steps": steps}, release, recorder)
            found = smaller if smaller.differs else found
        at -= 1
    return found


def keep(found: Verdict, folder: Path) -> Path:
    """Write the scenario and the recording that differ; return the recording's file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{found.recording['release']}-{found.scenario['name']}.json"
    path.write_text(json.dumps(found.recording, indent=1))
    path.with_suffix(".yaml").write_text(yaml.safe_dump(found.scenario, sort_keys=False, default_flow_style=None))
    return path
