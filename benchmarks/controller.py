"""Measure a topic's creation, a broker's death and a failover at scale, with kcontrol's handlers and the ZooKeeper in memory.

Usage: python -m benchmarks.controller [--partitions 10000 30000 100000] [--replication 3] [--brokers 6] [--rounds 3]

The journal is on. Seconds are processor time. The last lines compare with the sketch from which the core was developed, without
delivery of requests and with the journal in memory: once with the unchanged sketch, whose `actions` list the possible faults
before each step, and once without that list.
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

from benchmarks.sketch.sim.world import World as Sketch
from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.cluster import actions
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.core.controller_rules import Rules

LEADERS_ONLY = ("begin", "advance", "deliver_notification", "expire_session", "renew", "reconnect")
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


def run(world: World, kinds: tuple[str, ...]) -> None:
    """Perform routine actions of these kinds until none is left."""
    while following := next((a for a in actions.routine_actions(world) if a[0] in kinds), None):
        world.step(following)


def started(brokers: int) -> World:
    world = World(Settings(brokers=tuple(range(1, brokers + 1)), followers=False))
    for broker in range(1, brokers + 1):
        world.step(("start", broker))
        world.run()
    return world


def assigned(partitions: int, replication: int, brokers: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple((p + k) % brokers + 1 for k in range(replication)) for p in range(partitions))


# ---------------------------------------------------------------- at scale


def story(partitions: int, replication: int, brokers: int, topic_of: int) -> dict[str, Any]:
    """Create topics one by one, kill a broker, kill the controller; return the seconds of each, and the bytes at the end."""
    world = started(brokers)
    assignment = assigned(topic_of, replication, brokers)
    per_topic = []

    def create(topic: str) -> None:
        world.step(("create_topic", topic, assignment))
        world.run()

    def end(broker: int) -> None:
        for kind in ("kill", "expire_session"):
            world.step((kind, broker))
        world.run()

    for number in range(partitions // topic_of):
        per_topic.append(timed(lambda number=number: create(f"t{number}")))
    seconds = {"creation": sum(per_topic), "a broker dies": timed(lambda: end(brokers)), "failover": timed(lambda: end(1))}
    return {"seconds": seconds, "first": per_topic[0], "last": per_topic[-1]} | sizes(world, partitions)


def sizes(world: World, partitions: int) -> dict[str, float]:
    """Return the bytes per partition of the new controller's context and of the ZooKeeper in memory."""
    (controller,) = [p.driver.controller for p in world.processes.values() if p.driver.controller.is_active]
    return {"context": deep_size(controller) / partitions, "zookeeper": deep_size(world.zk, [world]) / partitions}


def at_scale(sizes: list[int], replication: int, brokers: int, rounds: int) -> None:
    rates: dict[str, list[float]] = {}
    for partitions in sizes:
        rows = [story(partitions, replication, brokers, min(partitions, 1_000)) for _ in range(rounds)]
        for what in rows[0]["seconds"]:
            rate = statistics.median(partitions / row["seconds"][what] for row in rows)
            rates.setdefault(what, []).append(rate)
            print(f"{partitions:,} partitions, replication {replication}, {what}: {rate:,.0f} partitions/s", flush=True)
        growth = statistics.median(row["last"] / row["first"] for row in rows)
        context, zookeeper = (statistics.median(row[what] for row in rows) for what in ("context", "zookeeper"))
        print(f"{partitions:,} partitions: the last thousand took {growth:.2f} times the first thousand's time")
        print(f"{partitions:,} partitions: {context:,.0f} bytes each in the controller's context, {zookeeper:,.0f} in ZooKeeper")
    for what, found in rates.items():
        print(
            f"{what}: {found[0] / found[-1]:.2f} times the seconds per partition at {sizes[-1]:,} that it takes at {sizes[0]:,}"
        )


# ---------------------------------------------------------------- against the sketch

SIZES = ((1, 10_000), (100, 100), (10, 1_000), (100, 1_000))
EVERY_FAULT = Sketch().faults
MOVES = {"sketch": 2, "kcontrol": 2 + 2 * 3}  # of one new partition: ours moves its three replicas, too


def run_sketch(world: Sketch) -> None:
    while routine := [a for a in world.actions() if a[0] in ("advance", "begin", "deliver_notification")]:
        world.step(routine[0])


def sketch(topics: int, partitions: int, brokers: int, faults: frozenset[str]) -> float:
    """Return the seconds until all partitions are online in the sketch; `faults` is the list that it makes before each step."""
    plans = tuple((f"t{number}", assigned(partitions, 3, brokers)) for number in range(topics))
    world = Sketch(brokers=tuple(range(1, brokers + 1)), plans=plans, faults=faults)
    for broker in range(1, brokers + 1):
        world.step(("start", broker))
    run_sketch(world)

    def create() -> None:
        for topic, _ in plans:
            world.step(("create", topic))
            run_sketch(world)

    return timed(create)


def ours(topics: int, partitions: int, brokers: int) -> float:
    """Return the seconds until all partitions are online in kcontrol, while requests wait in their channels."""
    world = started(brokers)
    assignment = assigned(partitions, 3, brokers)

    def create() -> None:
        for number in range(topics):
            world.step(("create_topic", f"t{number}", assignment))
            run(world, LEADERS_ONLY)

    return timed(create)


def against(topics: int, partitions: int, rounds: int) -> None:
    """Print the ratios of kcontrol to the unchanged sketch and to the sketch without its list of faults."""
    total = topics * partitions
    rows = [
        (ours(topics, partitions, 6), sketch(topics, partitions, 6, frozenset()), sketch(topics, partitions, 6, EVERY_FAULT))
        for _ in range(rounds)
    ]
    mine, bare, whole = (statistics.median(total / row[of] for row in rows) for of in range(3))
    print(f"{topics} topics of {partitions}, partitions/s: kcontrol {mine:,.0f}, sketch {whole:,.0f}, without faults {bare:,.0f}")
    for name, of in (("the sketch", 2), ("the sketch without faults", 1)):
        ratio = statistics.median(row[of] / row[0] for row in rows)
        moves = ratio * MOVES["kcontrol"] / MOVES["sketch"]
        print(f"    {ratio:.2f} times the partitions of {name}, {moves:.2f} times its moves", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="The controller at scale, and against the sketch.")
    parser.add_argument("--partitions", type=int, nargs="+", default=[10_000, 30_000, 100_000])
    parser.add_argument("--replication", type=int, default=3)
    parser.add_argument("--brokers", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    at_scale(chosen.partitions, chosen.replication, chosen.brokers, chosen.rounds)
    for topics, partitions in SIZES:
        against(topics, partitions, chosen.rounds)


if __name__ == "__main__":
    main()
