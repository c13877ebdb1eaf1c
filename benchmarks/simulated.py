"""Measure the simulated world: journal records per second, steps per second by brokers, copies in the middle of a handler.

Usage: python -m benchmarks.simulated

The scenario: a cluster starts, a topic is created, and each broker in turn is killed and started again. Seconds are processor
time. `benchmarks.compare` compares the figures with another state.
"""

from __future__ import annotations

import time

from kcontrol.cluster import actions
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World

FORK_EVERY = 41  # steps of the scenario


def run(world: World, forks_s: list[float]) -> None:
    """Perform the routine actions; at each 41st step copy a world with a suspended handler, and add the seconds to `forks_s`."""
    while (following := next(actions.routine_actions(world), None)) is not None:
        world.step(following)
        if len(world.done) % FORK_EVERY == 0 and not world.is_quiet:
            began = time.process_time()
            world.fork()
            forks_s.append(time.process_time() - began)


def story(brokers: int, partitions: int, forks_s: list[float] | None = None) -> World:
    world = World(Settings(brokers=tuple(range(1, brokers + 1))))
    assignment = [tuple((p + k) % brokers + 1 for k in range(3)) for p in range(partitions)]
    restarts = [(kind, broker) for broker in range(1, brokers + 1) for kind in ("kill", "start")]
    starts = [("start", broker) for broker in range(1, brokers + 1)]
    for action in [*starts, ("create_topic", "t", assignment), *restarts]:
        world.step(action)
        if forks_s is None:
            world.run()
        else:
            run(world, forks_s)
    return world


def figures() -> dict[str, float]:
    """Return rates per second of the processor by name."""
    found = {}
    for brokers in (5, 3, 30):
        began = time.process_time()
        world = story(brokers, 100)
        took = time.process_time() - began
        found[f"journal records per second, {brokers} brokers, 100 partitions"] = len(world.journal) / took
        found[f"steps per second, {brokers} brokers, 100 partitions"] = len(world.done) / took
    forks_s: list[float] = []
    story(5, 1_000, forks_s)
    found["copies in the middle of a handler per second, 1,000 partitions"] = len(forks_s) / sum(forks_s)
    found["the slowest of them, per second"] = 1 / max(forks_s)
    return found


if __name__ == "__main__":
    for name, rate in figures().items():
        print(f"{name}: {rate:,.1f}")
