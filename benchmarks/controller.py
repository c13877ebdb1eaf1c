"""Measure a topic's creation, a broker's death and a failover at scale, with kcontrol's handlers and the ZooKeeper in memory.

Usage: python -m benchmarks.controller [--partitions 10000 30000 100000] [--replication 3] [--brokers 6] [--rounds 3]

The journal is on. Seconds are processor time. `benchmarks.compare` compares the figures at 40,000 partitions, and those at 4,000
on a real ZooKeeper, whose own processor time is not counted, with another state.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType, ModuleType
from typing import Any

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.cluster.actions import ACTIONS
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.core.controller_rules import Rules
from kcontrol.zookeeper.kazoo import KazooZooKeeper
from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper

# Before the verbs were made one, the action was `expire`.
END = ("kill", "expire_session" if "expire_session" in ACTIONS else "expire")
SHARED = (Rules, BrokerConfig, type, FunctionType, MethodType, ModuleType)


def timed(act: Callable[[], Any]) -> float:
    gc.collect()
    began = time.process_time()
    act()
    return time.process_time() - began


def deep_size(root: Any, skip: Iterable[Any] = ()) -> int:
    """Return the bytes of all objects reachable from here, each object once, except those reachable from `skip`."""
    seen = {id(each) for each in skip}
    todo, total = [root], 0
    while todo:
        each = todo.pop()
        if id(each) in seen or isinstance(each, SHARED):
            continue
        seen.add(id(each))
        total += sys.getsizeof(each)
        todo += gc.get_referents(each)
    return total


def started(brokers: int, zookeeper: KazooZooKeeper | None = None) -> World:
    now_ms = (lambda: time.time_ns() // 1_000_000) if zookeeper else None
    world = World(Settings(brokers=tuple(range(1, brokers + 1)), followers=False), zookeeper, now_ms)
    for broker in range(1, brokers + 1):
        world.step(("start", broker))
        world.run()
    return world


def assigned(partitions: int, replication: int, brokers: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple((p + k) % brokers + 1 for k in range(replication)) for p in range(partitions))


def story(
    partitions: int, replication: int, brokers: int, topic_of: int, zookeeper: KazooZooKeeper | None = None
) -> dict[str, Any]:
    """Create topics one by one, kill a broker, kill the controller; return the seconds of each, and the world at the end."""
    world = started(brokers, zookeeper)
    assignment = assigned(topic_of, replication, brokers)
    per_topic = []

    def create(topic: str) -> None:
        world.step(("create_topic", topic, assignment))
        world.run()

    def end(broker: int) -> None:
        for kind in END:
            world.step((kind, broker))
        world.run()

    for number in range(partitions // topic_of):
        per_topic.append(timed(lambda number=number: create(f"t{number}")))
    seconds = {"creation": sum(per_topic), "a broker dies": timed(lambda: end(brokers)), "failover": timed(lambda: end(1))}
    return {"seconds": seconds, "first": per_topic[0], "last": per_topic[-1], "world": world}


def with_sizes(row: dict[str, Any], partitions: int) -> dict[str, Any]:
    """Replace the world by the bytes per partition of the new controller's context and of the ZooKeeper in memory."""
    world = row.pop("world")
    (controller,) = [p.driver.controller for p in world.processes.values() if p.driver.controller.is_active]
    return row | {"context": deep_size(controller) / partitions, "zookeeper": deep_size(world.zk, [world]) / partitions}


def at_scale(counts: list[int], replication: int, brokers: int, rounds: int) -> None:
    rates: dict[str, list[float]] = {}
    for partitions in counts:
        rows = [with_sizes(story(partitions, replication, brokers, min(partitions, 1_000)), partitions) for _ in range(rounds)]
        for what in rows[0]["seconds"]:
            rate = statistics.median(partitions / row["seconds"][what] for row in rows)
            rates.setdefault(what, []).append(rate)
            print(f"{partitions:,} partitions, replication {replication}, {what}: {rate:,.0f} partitions/s", flush=True)
        growth = statistics.median(row["last"] / row["first"] for row in rows)
        context, zookeeper = (statistics.median(row[what] for row in rows) for what in ("context", "zookeeper"))
        print(f"{partitions:,} partitions: the last thousand took {growth:.2f} times the first thousand's time")
        print(f"{partitions:,} partitions: {context:,.0f} bytes each in the controller's context, {zookeeper:,.0f} in ZooKeeper")
    for what, of in rates.items():
        print(f"{what}: {of[0] / of[-1]:.2f} times the seconds per partition at {counts[-1]:,} that it takes at {counts[0]:,}")


def in_memory() -> dict[str, float]:
    """Return partitions per second of the processor by name: all partitions divided by the seconds."""
    return {f"partitions per second, {what}": 40_000 / took for what, took in story(40_000, 3, 6, 1_000)["seconds"].items()}


def on_zookeeper() -> dict[str, float]:
    with EmbeddedZooKeeper() as server, KazooZooKeeper(server.hosts) as zookeeper:
        seconds = story(4_000, 3, 6, 1_000, zookeeper)["seconds"]
    return {f"partitions per second, {what}, on ZooKeeper": 4_000 / took for what, took in seconds.items()}


PARTS = (in_memory, on_zookeeper)


def main() -> None:
    parser = argparse.ArgumentParser(description="The controller at scale.")
    parser.add_argument("--partitions", type=int, nargs="+", default=[10_000, 30_000, 100_000])
    parser.add_argument("--replication", type=int, default=3)
    parser.add_argument("--brokers", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    at_scale(chosen.partitions, chosen.replication, chosen.brokers, chosen.rounds)


if __name__ == "__main__":
    main()
