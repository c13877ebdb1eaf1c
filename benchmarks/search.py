"""Measure the states per second of a search, compared with the sketch from which the core was developed.

Usage: python -m benchmarks.search [--rounds 7]

Both search one scenario: two brokers, the creation of a topic, the replacement of a controller. With unfenced writes the search
ends with a write of the replaced controller; with fenced writes it searches all states. In the sketch the creation of a topic is
no fault, so the sketch gets one fault and kcontrol two. Seconds are processor time, because other processes may use the machine;
each round measures both.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from benchmarks.sketch.sim.search import search as search_sketch
from benchmarks.sketch.sim.world import World as Sketch
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.search.search import search

Searching = Callable[[], tuple[int, bool]]


def of_the_sketch(release: str, depth: int) -> Searching:
    world = Sketch(release=release, brokers=(1, 2), plans=(("t", ((1, 2),)),), faults=frozenset({"depose"}))
    for broker in (1, 2):
        world.step(("start", broker))
    world.run()

    def run() -> tuple[int, bool]:
        found = search_sketch(world, depth=depth, faults=1)
        return found.states, found.violation is not None

    return run


def of_ours(depth: int, *, fenced: bool) -> Searching:
    faults, changes = ("create_topic", "delete_controller"), {"fenced_writes": fenced}
    settings = Settings(
        brokers=(1, 2), topics={"t": ((1, 2),)}, faults=faults, instant_requests=True, followers=False, rule_changes=changes
    )
    world = World(settings)
    for broker in (1, 2):
        world.step(("start", broker))
        world.run()

    def run() -> tuple[int, bool]:
        found = search(world, depth=depth, faults=2)
        return found.states, found.violation is not None

    return run


def rate(run: Searching) -> tuple[int, bool, float]:
    """Return the number of states, whether a violation was found, and the states per second."""
    began = time.process_time()
    states, found = run()
    return states, found, states / (time.process_time() - began)


def compare(name: str, theirs: Searching, ours: Searching, rounds: int) -> None:
    rows = [(rate(theirs), rate(ours)) for _ in range(rounds)]
    for who, of in (("sketch", 0), ("kcontrol", 1)):
        states, found, _ = rows[0][of]
        rates = [row[of][2] for row in rows]
        end = "ends with the deposed write" if found else "goes through everything"
        print(f"{name}, {who}: {states} states, {end}; median {statistics.median(rates):,.0f} states/s, best {max(rates):,.0f}")
    ratios = [mine[2] / peer[2] for peer, mine in rows]
    print(
        f"{name}: {statistics.median(ratios):.1f} times the sketch"
        f" (median of {rounds} rounds, {min(ratios):.1f} to {max(ratios):.1f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="States per second of a search, against the sketch.")
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    compare("unfenced", of_the_sketch("2.0", 15), of_ours(18, fenced=False), rounds)
    compare("fenced", of_the_sketch("2.8", 15), of_ours(18, fenced=True), rounds)
    compare("fenced, depth 15 for both", of_the_sketch("2.8", 15), of_ours(15, fenced=True), rounds)


if __name__ == "__main__":
    main()
