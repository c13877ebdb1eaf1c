"""What runs in the process of its own: `python -m kcontrol.lab.judge FOLDER` (see `judging`)."""

from __future__ import annotations

import contextlib
import json
import pickle
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kcontrol.controller.election import STRATEGIES, Candidates, Elected
from kcontrol.lab import judging, replacing
from kcontrol.lab.judging import MEMORY_MB, SECONDS, SECONDS_BY_THE_CLOCK
from kcontrol.sim.acts import routine
from kcontrol.sim.settings import Settings
from kcontrol.sim.world import World

WHEN = {"kill": "broker {} is killed", "start": "broker {} starts", "create_topic": "topic {} is created"}


class Broken(Exception):
    """The learner's function has raised: its text is one sentence about it."""


def limit() -> None:
    """Bound what this process may use; not every system knows every bound."""
    megabytes = MEMORY_MB * 1024 * 1024
    for what, bounds in (
        (resource.RLIMIT_AS, (megabytes, megabytes)),
        (resource.RLIMIT_CPU, (SECONDS, SECONDS + 1)),
        (resource.RLIMIT_CORE, (0, 0)),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(what, bounds)
    signal.alarm(SECONDS_BY_THE_CLOCK)  # if whoever has started this is gone by then, this ends all the same


def try_out(function: Callable[..., Any], exercise: dict[str, Any]) -> list[dict[str, Any]]:
    """Every question that the machine asks in the scenarios, with the function's answer and Kafka's.

    The function takes part in the machine; where it differs, Kafka's answer goes on, so that every learner is asked the same.
    """
    strategy = exercise["replaces"].removeprefix("election.")
    asked: list[dict[str, Any]] = []
    for scenario in exercise["scenario"]:
        place = {"scenario": scenario["title"], "when": ""}

        def rule(c: Candidates, place: dict[str, str] = place) -> Elected | None:
            right = STRATEGIES[strategy].rule(c)
            yours = _ask(function, c)
            names = dict(zip(("assignment", "isr", "live"), replacing.question(c), strict=True))
            asked.append(place | names | {"yours": yours, "right": right.leader if right else None})
            return right

        play(scenario, {exercise["replaces"]: rule}, place)
    return asked


def _ask(function: Callable[..., Any], c: Candidates) -> int | None:
    try:
        return replacing.ask(function, c)
    except replacing.WrongAnswer as error:
        raise Broken(f"Your function gave no answer: {error}.") from None
    except MemoryError:
        raise Broken(f"Your function needs more than {MEMORY_MB} MB of memory: keep less.") from None
    except RecursionError:
        raise Broken("Your function calls itself without end: look for what should stop the recursion.") from None
    except Exception as error:
        assignment, isr, live = replacing.question(c)
        problem = replacing.described(error)
        raise Broken(
            f"Your function raised {problem}, when asked about assignment {assignment}, ISR {isr}, alive {live}."
        ) from None


def play(scenario: dict[str, Any], replace: dict[str, Callable[..., Any]], place: dict[str, str]) -> None:
    """Start the brokers one after the other, then do what the scenario says; `place` is kept up to date, for what the rule notes.

    Raises Broken where the function has raised: the machine has noted that as a failed event and would go on.
    """
    world = World(Settings(brokers=tuple(scenario["brokers"]), seed=7, replace=replace))
    acts = [act for broker in scenario["brokers"] for act in (["start", broker], ["run"])] + scenario["acts"]
    for act in acts:
        if act[0] == "run":
            _run(world)
        else:
            world.step(tuple(act))
            place["when"] = WHEN[act[0]].format(act[1])


def _run(world: World) -> None:
    while following := next(routine(world), None):
        world.step(following)
        failed = next((r for r in world.last_step if r.kind == "fail"), None)
        if failed is not None:
            raise Broken(failed.fields["message"])


def report(folder: Path) -> dict[str, Any]:
    """The verdict's material; see `judging.judge`."""
    exercise = json.loads((folder / "exercise.json").read_text())
    sys.path.append(str(Path.cwd()))  # modules beside the notebook
    try:
        function = pickle.loads((folder / "function").read_bytes())  # noqa: S301 - the learner's own, in a process of its own
    except Exception as error:
        return {"problem": judging.UNPORTABLE.format(judging.first_line(error))}
    try:
        return {"asked": try_out(function, exercise)}
    except Broken as problem:
        return {"problem": str(problem)}


def main() -> None:
    """Judge what lies in the folder that is named on the command line."""
    folder = Path(sys.argv[1])
    limit()
    found = report(folder)
    unfinished = folder / "report.json.part"
    unfinished.write_text(json.dumps(found))
    unfinished.rename(folder / "report.json")


if __name__ == "__main__":
    main()
