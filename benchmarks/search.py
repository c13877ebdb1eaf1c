"""Measure the states per second of a search.

Usage: python -m benchmarks.search

The scenario: two brokers, the creation of a topic, the replacement of a controller. With unfenced writes the search ends with a
write of the replaced controller; with fenced writes it searches all states. Seconds are processor time. `benchmarks.compare`
compares the figures with another state.
"""

from __future__ import annotations

import time

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.search.search import search


def states_per_second(*, fenced: bool) -> float:
    settings = Settings(
        brokers=(1, 2), topics={"t": ((1, 2),)}, faults=("create_topic", "delete_controller"), instant_requests=True,
        followers=False, rule_changes={"fenced_writes": fenced},
    )  # fmt: skip
    world = World(settings)
    for broker in (1, 2):
        world.step(("start", broker))
        world.run()
    began = time.process_time()
    found = search(world, depth=18, faults=2)
    assert (found.violation is None) == fenced
    return found.states / (time.process_time() - began)


PARTS = (
    lambda: {"states per second, unfenced": states_per_second(fenced=False)},
    lambda: {"states per second, fenced": states_per_second(fenced=True)},
)


if __name__ == "__main__":
    for part in PARTS:
        for name, rate in part().items():
            print(f"{name}: {rate:,.0f}")
