"""Measure the journal records per second of the simulated world.

Usage: python -m benchmarks.simulated [--brokers 5] [--partitions 100] [--rounds 5]

The scenario: a cluster starts, a topic is created, and each broker in turn is killed and started again. The peer is a loop that
makes an equal number of records, so the ratio is the cost of everything but the records.
"""

from __future__ import annotations

import argparse
import statistics
import time

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.journal.journal import Journal


def story(brokers: int, partitions: int) -> World:
    world = World(Settings(brokers=tuple(range(1, brokers + 1))))
    for broker in range(1, brokers + 1):
        world.step(("start", broker))
        world.run()
    assignment = [tuple((p + k) % brokers + 1 for k in range(3)) for p in range(partitions)]
    world.step(("create_topic", "t", assignment))
    world.run()
    for broker in range(1, brokers + 1):
        for act in ("kill", "start"):
            world.step((act, broker))
            world.run()
    return world


def bare(records: int) -> None:
    journal = Journal()
    for number in range(records):
        journal.add(1, 1, "change", None, number, {"subject": number})


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the journal records per second of the simulated world.")
    parser.add_argument("--brokers", type=int, default=5)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    rates, ratios = [], []
    for _ in range(chosen.rounds):
        began = time.perf_counter()
        world = story(chosen.brokers, chosen.partitions)
        took = time.perf_counter() - began
        records = len(world.journal.records)
        began = time.perf_counter()
        bare(records)
        rates.append(records / took)
        ratios.append(took / (time.perf_counter() - began))
    print(f"{chosen.brokers} brokers, {chosen.partitions} partitions: {records} records, {len(world.done)} steps")
    print(f"journal records per second: median {statistics.median(rates):,.0f} (min {min(rates):,.0f}, max {max(rates):,.0f})")
    print(f"time against making as many bare records: median {statistics.median(ratios):.1f} times")


if __name__ == "__main__":
    main()
