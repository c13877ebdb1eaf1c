"""Measure the simulated world: journal records per second, steps per second by brokers, copies in the middle of a handler.

Usage: python -m benchmarks.simulated

The scenario: a cluster starts, a topic is created, and brokers in turn are killed and started again. Seconds are processor
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


def story(brokers: int, partitions: int, restarted: int, forks_s: list[float] | None = None) -> World:
    world = World(Settings(brokers=tuple(range(1, brokers + 1))))
    assignment = [tuple((p + k) % brokers + 1 for k in range(3)) for p in range(partitions)]
    restarts = [(kind, broker) for broker in range(1, restarted + 1) for kind in ("kill", "start")]
    starts = [("start", broker) for broker in range(1, brokers + 1)]
    for action in [*starts, ("create_topic", "t", assignment), *restarts]:
        world.step(action)
        if forks_s is None:
            world.run()
        else:
            run(world, forks_s)
    return world


def rates(brokers: int, restarted: int) -> tuple[float, float]:
    """Return journal records and steps per second of the processor, with 100 partitions."""
    began = time.process_time()
    world = story(brokers, 100, restarted)
    took = time.process_time() - began
    return len(world.journal) / took, len(world.done) / took


def growth() -> dict[str, float]:
    few, many = rates(3, 3)[1], rates(30, 6)[1]
    return {"steps per second, 30 brokers": many, "a step with 30 brokers / one with 3": few / many}


def copies() -> dict[str, float]:
    forks_s: list[float] = []
    story(5, 1_000, 2, forks_s)
    name = "copies in the middle of a handler per second, 1,000 partitions"
    return {name: len(forks_s) / sum(forks_s), "the slowest of them, per second": 1 / max(forks_s)}


PARTS = (lambda: {"journal records per second, 5 brokers, 100 partitions": rates(5, 5)[0]}, growth, copies)


if __name__ == "__main__":
    for part in PARTS:
        for name, rate in part().items():
            print(f"{name}: {rate:,.1f}")
