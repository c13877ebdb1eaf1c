"""Record random scenarios with official brokers, play them with ours and compare.

Usage: python -m tests.oracle --release 2.8.2 --seed N --count M [--first K] [--keep DIR]
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from kazoo.exceptions import KazooException

from kcontrol.core.errors import UserError
from tests.kafka_jars import SCALA
from tests.oracle.judging import Verdict, keep, shrunk, verdict
from tests.oracle.quiet import OutOfTime
from tests.oracle.scenarios import scenario, words_of
from tests.parts import ROOT

SHRINKING_RECORDINGS = 10
KEPT = ROOT / "work" / "oracle"


def main(arguments: list[str] | None = None) -> int:
    """Go through the scenarios; return 1 if one of them differs or cannot be recorded, 2 where there are no brokers."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--release", required=True, choices=list(SCALA))
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True, help="how many scenarios")
    parser.add_argument("--first", type=int, default=0, help="the number of the first scenario, to go on with a seed")
    parser.add_argument("--keep", type=Path, default=KEPT, help="the folder for what differs")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no broker is left running
    words: Counter[str] = Counter()
    numbers = range(chosen.first, chosen.first + chosen.count)
    made = differing = with_two = lost = 0
    try:
        for number in numbers:
            one = scenario(chosen.release, chosen.seed, number)
            said = f"{chosen.release} seed {chosen.seed} scenario {number}:"
            try:
                found = verdict(one, chosen.release)
            except (OutOfTime, KazooException, RuntimeError) as problem:
                print(said, f"could not be recorded: {type(problem).__name__} {problem}", flush=True)
                lost += 1
                continue
            made += 1
            words.update({next(iter(step)) for step in one["steps"]})
            with_two += len(found.controllers) > 1
            print(said, found.result.difference or "no difference", flush=True)
            differing += found.differs and differs_again(found, chosen.release, chosen.keep)
    except KeyboardInterrupt:
        print("stopped")
    except UserError as problem:
        print(problem)
        return 2
    print(table(words, made, with_two, chosen.release))
    print(f"{made - differing} passed, {differing} failed{f', {lost} not recorded' if lost else ''}")
    return 1 if differing or lost else 0


def differs_again(found: Verdict, release: str, folder: Path) -> bool:
    """Record a scenario that differs once more; if it differs again, make it smaller. Keep either; return whether it differs."""
    again = verdict(found.scenario, release)
    if not again.differs:
        print(f"  the second recording shows no difference; the first one is kept: {keep(found, folder)}", flush=True)
        return False
    smallest = shrunk(again, release, SHRINKING_RECORDINGS)
    print(f"  again; with {len(smallest.scenario['steps'])} steps: {smallest.result.difference}")
    print(f"  kept: {keep(smallest, folder)}", flush=True)
    return True


def table(words: Counter[str], made: int, with_two: int, release: str) -> str:
    """Return how many scenarios have each step word, and how many have two controllers."""
    rows: dict[str, Any] = {"start": words["start"], **{word: words[word] for word in words_of(release)}}
    lines = [f"  {word:14}{count:4} of {made}" for word, count in rows.items()]
    return "\n".join(["Scenarios with each step word:", *lines, f"Scenarios with two controllers: {with_two} of {made}"])


if __name__ == "__main__":
    sys.exit(main())
