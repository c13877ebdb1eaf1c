"""What the tests of the data side share: clusters whose brokers keep logs, what is in them, and runs that lose records."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from typing import Any

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.broker.log import ReplicaLog
from kcontrol.cluster import actions, data_plane
from kcontrol.cluster.world import Action, World
from tests.core.support import T0, cluster, settle, stored

UNCLEAN = BrokerConfig(unclean_leader_election_enable=True)


def with_logs(replicas: tuple[int, ...] = (1, 2, 3), controller: int = 4, **settings: Any) -> World:
    """A quiet cluster with one partition; the controller is a broker that has no replica of it."""
    return cluster({"t": (replicas,)}, brokers=(controller, *replicas), data=True, **settings)


def produce(world: World, *values: str, leader: int = 1, acks: str = "all") -> None:
    for value in values:
        world.step(("produce", leader, "t-0", value, acks))


def fetch(world: World, *followers: int) -> None:
    for follower in followers:
        world.step(("fetch", follower, "t-0"))


def log(world: World, broker: int) -> ReplicaLog:
    return data_plane.replicas(world)[broker][T0]


def values(world: World) -> dict[int, str]:
    """What each replica holds, by broker, as one text."""
    return {n: " ".join(r.value for r in found[T0].records) for n, found in data_plane.replicas(world).items() if T0 in found}


def high_watermarks(world: World) -> dict[int, int]:
    """The high watermark of each replica, by broker."""
    return {n: found[T0].high_watermark for n, found in data_plane.replicas(world).items() if T0 in found}


def without(world: World, *kinds: str) -> None:
    """Runs until nothing routine is left but actions of these kinds, or of a kind and a broker, as in `fetch 3`."""
    for _ in range(10_000):
        left = [a for a in actions.routine_actions(world) if a[0] not in kinds and f"{a[0]} {a[1]}" not in kinds]
        if not left:
            return
        world.step(left[0])
    raise AssertionError("that never comes to rest")


def kill_the_only_replica_in_sync(world: World) -> None:
    """Let the frozen followers 2 and 3 of t-0 leave the ISR, kill the leader 1, and thaw the followers."""
    for follower in (2, 3):
        settle(world, ("shrink_isr", 1, "t-0", follower))
    world.step(("kill", 1))
    for follower in (2, 3):
        world.step(("thaw", follower))
    world.run()


def lost_by_unclean_election(**settings: Any) -> World:
    """Record 7 is only on the leader when the leader dies; a broker outside the ISR is elected, and the old leader restarts."""
    world = with_logs(config=UNCLEAN, **settings)
    for number in range(7):
        produce(world, str(number))
        world.run()
    for follower in (2, 3):
        world.step(("freeze", follower))
    produce(world, "7", acks="1")
    kill_the_only_replica_in_sync(world)
    settle(world, ("start", 1))
    return world


def high_watermark_not_fetched(rule: str | None, **settings: Any) -> World:
    """Both followers have the committed record b, but an old high watermark. The leader dies, and one follows the other."""
    world = with_logs(rule_changes={"truncate_to": rule} if rule else {}, **settings)
    produce(world, "a")
    world.run()
    produce(world, "b")
    fetch(world, 2, 3, 2, 3)
    assert high_watermarks(world) == {1: 2, 2: 1, 3: 1}
    world.step(("kill", 1))
    without(world, "fetch", "checkpoint")
    assert stored(world)["t-0"] == (2, (2, 3))
    return world


OFTEN = {"produce": 6, "start": 4, "thaw": 4, "kill": 1}


def ways(world: World, rng: random.Random, slow: Collection[int]) -> list[Action]:
    """What may happen next: something routine, fetches of slow followers aside, or now and then a fault, often to a leader."""
    by_itself = [
        a
        for a in actions.routine_actions(world)
        if (a[0] != "fetch" or a[1] not in slow) and (a[0] != "expire_session" or a[1] in world.orphaned_sessions)
    ]
    faults = [a for a in actions.fault_actions(world) if a[0] != "fire_timer"]
    faults += [("thaw" if p.frozen else "freeze", n) for n, p in world.processes.items()]
    if by_itself and rng.random() > 0.1:
        return by_itself[:3]
    kinds = sorted({action[0] for action in faults})
    kind = rng.choice([kind for kind in kinds for _ in range(OFTEN.get(kind, 1))])
    chosen = [action for action in faults if action[0] == kind]
    leading = [action for action in chosen if kind == "kill" and world.processes[action[1]].driver.broker.is_leader(T0)]
    return leading or chosen


def walk(world: World, seed: int, steps: int) -> Iterator[Action]:
    """Takes random steps, saying after each which one it was; which followers are slow changes on the way."""
    rng, slow = random.Random(seed), set[int]()
    for _ in range(steps):
        if rng.random() < 0.15:
            slow ^= {rng.choice(world.settings.brokers)}
        action = rng.choice(ways(world, rng, slow))
        world.step(action)
        yield action
