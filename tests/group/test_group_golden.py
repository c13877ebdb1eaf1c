"""Our coordinator against traces of real brokers of 0.9.0.1 and 2.8.2."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.group.golden import Replay, differences
from tests.originals import by_name, notice

RECORDINGS = Path(__file__).resolve().parent / "recordings"
NAMES = sorted(path.stem for path in RECORDINGS.glob("*.json"))


def trace(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDINGS / f"{name}.json").read_text())
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_of_a_real_coordinator_is_met(name: str) -> None:
    """The same requests at the same times get the same answers, released by the same request or timer, and equal records."""
    assert differences(trace(name)) == []


def other(value: Any) -> Any:
    """Another value, as near to the leaves as possible."""
    match value:
        case str():
            return "ILLEGAL_GENERATION" if value == "NONE" else "NONE" if value.isupper() else "00" if value != "00" else "01"
        case int():
            return value + 1_000
        case dict() if value:
            key = next(iter(value))
            return value | {key: other(value[key])}
        case [first, *rest]:
            return [other(first), *rest]
    return {"nobody": "00"}


@pytest.mark.parametrize("name", NAMES)
def test_every_answer_and_record_of_a_trace_matters(name: str) -> None:
    """A trace in which any field of any answer, the time of it, or any record is another one is not met."""
    original = trace(name)
    replay = Replay(original)
    list(replay.run())
    for index, step in enumerate(original["exchange"]):
        for key in step.get("answer", ()):
            if (step["api"], key) == ("JoinGroup", "member"):
                continue  # that is where the names of members come from
            changed = copy.deepcopy(original)
            changed["exchange"][index]["answer"][key] = other(step["answer"][key])
            assert differences(changed), f"request {step['n']} with another {key}"
        if "answer" in step and replay.released[str(step["n"])] != step["n"]:
            changed = copy.deepcopy(original)
            changed["exchange"][index]["answered_at"] += 30_000
            assert differences(changed), f"request {step['n']} answered at another time"
    for index in range(len(original["log"])):
        changed = copy.deepcopy(original)
        del changed["log"][index]
        assert differences(changed), f"without record {index + 1}"


@pytest.mark.shared
def test_the_traces_here_are_those_that_were_handed_over(shared: Path) -> None:
    """Each copied trace that differs from its original is a warning with the command that copies it."""
    notice(by_name(RECORDINGS, shared / "golden" / "group", "*"))
