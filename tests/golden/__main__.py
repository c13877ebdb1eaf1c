"""Compare our controller with recordings of real brokers, and our coordinator with traces of real ones.

Usage: python -m tests.golden GOLDEN.json [...] [--world simulated] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

from kcontrol.errors import UserError
from kcontrol.pipeline import recording
from kcontrol.pipeline.compare import Difference, first_difference
from kcontrol.sim.player import Player
from tests.group.golden import differences as group_differences

NOT_YET = Path(__file__).resolve().parent / "not_yet.toml"
MOST_ORDERS = 24  # of the partitions of one reassignment: all orders of four


class Result(NamedTuple):
    """What one file shows: what differs first, in words or None, what our brokers did, and which open choices were followed."""

    difference: str | None
    ours: dict[str, Any] | None = None
    followed: tuple[str, ...] = ()
    place: Difference | None = None


@cache
def not_yet() -> dict[str, dict[str, Any]]:
    """Return the recordings that are known to differ, each with the reason and the place of its first difference."""
    return tomllib.loads(NOT_YET.read_text())


def is_declared(name: str, place: Difference | None) -> bool:
    """Return whether `docs/omissions.md` names this recording, and its first difference lies where it is declared."""
    known = not_yet().get(name) or not_yet().get(f"more/{name}")
    return known is not None and place is not None and known["step"] == place.step and known["kind"] == place.kind


def play(golden: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what our brokers do in the scenario of a recording, in the format of the recordings, and what they followed."""
    player = Player(golden)
    ours = recording.of_journal(player.play().journal.records)
    return {**ours, **{name: golden[name] for name in recording.HEAD}}, player.followed


def played(golden: dict[str, Any]) -> dict[str, Any]:
    """Return what our brokers do in the scenario of a recording, in the format of the recordings."""
    return play(golden)[0]


def difference(golden: dict[str, Any]) -> tuple[str | None, dict[str, Any] | None]:
    """Play one recording; return what differs first, in words, or None, and what our brokers did."""
    return judged(golden)[:2]


def judged(golden: dict[str, Any]) -> Result:
    """Play one recording and compare. A trace of a group coordinator has its own format, and gives no such account."""
    if "exchange" in golden:
        return Result("; ".join(group_differences(golden)) or None)
    try:
        found = _compared(golden, golden)
        for number in range(len(golden["steps"])):
            found = _with_another_choice(golden, number, found)
    except UserError as unknown:
        return Result(str(unknown))
    return found


def _compared(golden: dict[str, Any], scenario: dict[str, Any]) -> Result:
    ours, followed = play(scenario)
    luck: list[str] = []
    found = first_difference(golden, json.loads(json.dumps(ours)), luck)
    return Result(str(found) if found else None, ours, (*followed, *luck), found)


def _with_another_choice(golden: dict[str, Any], number: int, found: Result) -> Result:
    """Play a step with the choices that Kafka leaves open in it; return what agrees longest."""
    for said, step in _choices(golden["steps"][number]):
        if found.place is None or found.place.step < number:
            break
        again = _compared(golden, {**golden, "steps": [*golden["steps"][:number], step, *golden["steps"][number + 1 :]]})
        if again.place is None or again.place.step > found.place.step:
            found = again._replace(followed=(*again.followed, f"step {number}: {said}"))
    return found


def _choices(step: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the other ways in which a step may go, each in words: the order in a hash map, for example."""
    do = step["do"]
    for order in list(permutations(do.get("reassign", ())))[1:MOST_ORDERS]:
        said = f"the reassignment takes its partitions in the order {', '.join(order)}"
        yield said, {**step, "do": {**do, "reassign": {tp: do["reassign"][tp] for tp in order}}}
    several = isinstance(do.get("term"), list) and len(do["term"]) > 1
    for at_once in list(permutations(do["term"]))[:MOST_ORDERS] if several else ():
        yield (
            f"the brokers ask for their shutdown at once, in the order {', '.join(map(str, at_once))}",
            {**step, "at_once": at_once},
        )


def read(path: Path) -> dict[str, Any]:
    """Return a recording or a trace from its file. Raises UserError, in one sentence, where it is neither."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"It cannot be read: {error.strerror}.") from None
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise UserError("It is broken JSON.") from None
    if isinstance(found, dict) and "exchange" in found:
        return found
    return recording.parse(content, path.name)


def result_of(path: Path) -> Result:
    """Return what a file shows; a file that cannot be read or played is one that differs, with the reason in one sentence."""
    try:
        return judged(read(path))
    except UserError as problem:
        return Result(str(problem))
    except Exception as problem:
        return Result(f"It cannot be played: {type(problem).__name__}: {' '.join(str(problem).split())}.")


def main(arguments: list[str] | None = None) -> int:
    """Compare the files that are named; return 1 if one of them differs in a way that is not declared."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden", description="Compare our controller with recordings of real brokers."
    )
    parser.add_argument("golden", nargs="+", type=Path, help="recordings of real brokers")
    parser.add_argument("--world", choices=["simulated"], default="simulated")
    parser.add_argument("--out", type=Path, help="where to write what our brokers did in the last recording")
    chosen = parser.parse_args(arguments)
    failed = declared = 0
    for path in chosen.golden:
        name, result = f"{path.parent.name}/{path.stem}", result_of(path)
        is_known = result.difference is not None and is_declared(name, result.place)
        said = "declared in docs/omissions.md: " if is_known else ""
        print(f"{name}: {said}{result.difference or 'no difference'}")
        print(*(f"  follows the recording: {sentence}\n" for sentence in result.followed), sep="", end="")
        declared += is_known
        failed += result.difference is not None and not is_known
        if chosen.out and result.ours:
            chosen.out.write_text(json.dumps(result.ours, indent=1))
    print(f"{len(chosen.golden) - failed - declared} passed, {f'{declared} declared, ' if declared else ''}{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
