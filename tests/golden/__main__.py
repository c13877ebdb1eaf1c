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
from itertools import permutations, product
from pathlib import Path
from typing import Any, NamedTuple

from kcontrol.core.errors import UserError
from kcontrol.core.releases import is_since
from kcontrol.core.znodes import DELETE_TOPICS
from kcontrol.recordings import recording
from kcontrol.recordings.compare import Difference, first_difference
from kcontrol.recordings.player import Player
from tests.group.golden import differences as group_differences

NOT_YET = Path(__file__).resolve().parent / "not_yet.toml"
DELETES_TOGETHER_SINCE = "2.5"
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
        found = _with_the_best_choices(golden)
    except UserError as unknown:
        return Result(str(unknown))
    return found


def _compared(golden: dict[str, Any], scenario: dict[str, Any]) -> Result:
    ours, followed = play(scenario)
    unsent: list[str] = []
    found = first_difference(golden, json.loads(json.dumps(ours)), unsent)
    return Result(str(found) if found else None, ours, (*followed, *unsent), found)


def _with_the_best_choices(golden: dict[str, Any]) -> Result:
    """Play a recording, and each step in which it differs with the choices that Kafka leaves open; return what agrees longest."""
    chosen: tuple[str, ...] = ()
    scenario, found = golden, _compared(golden, golden)
    for number in range(len(golden["steps"])):
        before, kept = scenario["steps"], chosen
        for said, step in _choices(golden, number):
            if found.place is None or found.place.step < number:
                break
            tried = {**golden, "steps": [*before[:number], step, *before[number + 1 :]]}
            again = _compared(golden, tried)
            if again.place is None or again.place.step > found.place.step:
                scenario, chosen, found = tried, (*kept, f"step {number}: {said}"), again
    return found._replace(followed=(*found.followed, *chosen))


def _choices(golden: dict[str, Any], number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the other ways in which a step may go, each in words: the order in a hash map, for example."""
    step = golden["steps"][number]
    do = step["do"]
    for topics in list(permutations(_being_deleted(golden, number)))[1:MOST_ORDERS]:
        yield f"the topics are deleted in the order {', '.join(topics)}", {**step, "deletion_order": topics}
    for order in list(permutations(do.get("reassign", ())))[1:MOST_ORDERS]:
        said = f"the reassignment takes its partitions in the order {', '.join(order)}"
        yield said, {**step, "do": {**do, "reassign": {tp: do["reassign"][tp] for tp in order}}}
    if isinstance(do.get("delete-topic"), list):
        yield "the controller gets an event for each deleted topic", {**step, "deleted_apart": True}
    several = isinstance(do.get("term"), list) and len(do["term"]) > 1
    for at_once, at_rest in product(list(permutations(do["term"]))[:MOST_ORDERS] if several else (), (False, True)):
        said = f"the brokers ask for their shutdown at once, in the order {', '.join(map(str, at_once))}"
        late = ", and end when nothing else goes on" if at_rest else ""
        yield said + late, {**step, "at_once": at_once, "end_at_rest": at_rest}


def _being_deleted(golden: dict[str, Any], number: int) -> list[str]:
    """Return the topics that one event of a step may delete one after the other, as Kafka does before 2.5."""
    if is_since(DELETES_TOGETHER_SINCE, golden["release"]):
        return []
    before = golden["steps"][number - 1]["znodes"] if number else {}
    paths = {*before, *(w["path"] for w in golden["steps"][number]["writes"] if w["op"] == "create")}
    return sorted(path.removeprefix(f"{DELETE_TOPICS}/") for path in paths if path.startswith(f"{DELETE_TOPICS}/"))


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
