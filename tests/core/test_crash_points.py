"""The controller dies at each of its round trips: the others take over, it comes back, and what Kafka promises holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.cluster import actions
from kcontrol.cluster.world import Action, World
from kcontrol.core.model import TopicPartition
from kcontrol.core.releases import PLAYABLE_RELEASES
from kcontrol.core.znodes import DELETE_TOPICS, REASSIGN_PARTITIONS, decode_topic, encode_reassignment, topic_path
from kcontrol.search.invariants import AT_REST, violation
from kcontrol.search.search import report
from tests.core.support import T0, TOPICS, U0, cluster, stored
from tests.tiers import DESIGNS, slow_but

NEW = ("create_topic", "v", ((1, 2, 3), (3, 2), (2, 1)))
MOVED = {U0: (2, 3), T0: (3, 2)}
MOST_STEPS = 20_000
STUCK = ("0.8.1", "0.8.2", "0.9", "0.10.2")  # where a deletion may be begun too late to be ended


def failover(world: World) -> int:
    """The controller is gone; broker 2 will be the next."""
    world.step(("kill", 1))
    world.step(("expire_session", 1))
    world.step(("deliver_notification", 2))
    return 2


def broker_failure(world: World) -> int:
    """Broker 3 is gone, and broker 1 sees to its partitions."""
    world.step(("kill", 3))
    world.step(("expire_session", 3))
    return 1


def controlled_shutdown(world: World) -> int:
    world.step(("terminate", 3))
    return 1


def creation(world: World) -> int:
    world.step(NEW)
    return 1


def reassignment(world: World) -> int:
    """Two partitions are asked to move, one of them away from the controller."""
    world.step(("create", REASSIGN_PARTITIONS, encode_reassignment(MOVED).decode()))
    return 1


def deletion(world: World) -> int:
    world.step(("delete_topic", "t"))
    return 1


STORIES = (failover, broker_failure, controlled_shutdown, creation, reassignment)


def crashes(world: World, victim: int) -> Iterator[World]:
    """A twin of the world, with the victim dead there, for each point at which its controller waits for ZooKeeper."""
    # What the victim can do is done first, so that it is the one that takes over.
    while True:
        routine = list(actions.routine_actions(world))
        if not routine:
            return
        mine = [a for a in routine if a[1] == victim and a[0] in ("advance", "begin", "deliver_notification")]
        action: Action = (mine or routine)[0]
        if action[:2] == ("advance", victim) and action[2] != "requests":
            twin = world.fork()
            twin.step(("kill", victim))
            yield twin
        world.step(action)


def goes_on(world: World) -> None:
    world.run(limit=MOST_STEPS)
    if found := violation(world, AT_REST):
        raise AssertionError(report(world, found))


def moved(world: World) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the replicas of the reassigned partition; nothing while its reassignment is requested or in progress."""
    tree = world.zk.tree()
    found = {tp: decode_topic(tree[topic_path(tp.topic)].data).partitions[tp.partition] for tp in MOVED}
    if REASSIGN_PARTITIONS in tree or any(a.is_being_reassigned for a in found.values()):
        return {}
    return {tp: assignment.replicas for tp, assignment in found.items()}


def leaderless(world: World) -> list[str]:
    """Return the partitions without a living leader although an in-sync replica lives, except those of topics in deletion."""
    living, in_deletion = world.processes.keys(), world.tool.children([DELETE_TOPICS], False)[0] or ()
    staying = {name: found for name, found in stored(world).items() if name.rpartition("-")[0] not in in_deletion}
    return [name for name, (leader, isr) in staying.items() if leader not in living and not living.isdisjoint(isr)]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
@pytest.mark.parametrize("release", slow_but(PLAYABLE_RELEASES, *DESIGNS))
def test_the_controller_may_die_at_any_round_trip(release: str, story: Callable[[World], int]) -> None:
    """After a death at any point, partitions with a living in-sync replica get a leader; after the restart all have a leader."""
    # The reassignment is complete then, under any controller. The invariants are checked after every step of every run, and of
    # the cluster at rest.
    world = cluster(release=release)
    victim = story(world)
    points = 0
    for points, crashed in enumerate(crashes(world, victim), 1):
        goes_on(crashed)
        assert leaderless(crashed) == [], report(crashed, f"point {points}")
        for broker in crashed.settings.brokers:
            if broker not in crashed.processes:
                crashed.step(("start", broker))
                goes_on(crashed)
        leaders = {name: leader for name, (leader, _) in stored(crashed).items()}
        expected = [f"{t}-{p}" for t, replicas in TOPICS.items() for p in range(len(replicas))]
        expected += ["v-0", "v-1", "v-2"] if story is creation else []
        assert sorted(leaders) == sorted(expected), report(crashed, f"point {points}")
        assert set(leaders.values()) <= crashed.processes.keys(), report(crashed, f"point {points}")
        assert story is not reassignment or moved(crashed) == MOVED, report(crashed, f"point {points}")
    print(f"{release} {story.__name__}: {points} points")
    assert points >= 5


@pytest.mark.parametrize("release", slow_but(PLAYABLE_RELEASES[1:], *DESIGNS))
def test_the_controller_may_die_at_any_round_trip_of_a_deletion(release: str) -> None:
    """Wherever it dies, once it is back the topic is gone with all its znodes, and the other topic is led."""
    # Up to 1.0 that is so until the first state znode has gone: then no controller can bring the partition's replicas Offline,
    # and the request stays. Source: ReplicaStateMachine.handleStateChange, leaderAndIsrIsEmpty (0.8.1.1, 1.0.2).
    world = cluster(release=release, config=BrokerConfig.of(release).with_setting("delete.topic.enable", True))
    victim = deletion(world)
    stuck, may_stick = [], world.settings.rules().leaderless_replica_of_deleting_topic != "goes"
    for point, crashed in enumerate(crashes(world, victim), 1):
        goes_on(crashed)
        assert leaderless(crashed) == [], report(crashed, f"point {point}")
        lost = f"{topic_path('t')}/partitions/0/state" not in crashed.zk.tree() and topic_path("t") in crashed.zk.tree()
        crashed.step(("start", victim))
        goes_on(crashed)
        left = [path for path in crashed.zk.tree() if path.endswith("/t") or "/t/" in path]
        stuck += [point] if left else []
        assert bool(left) is (lost and may_stick), report(crashed, f"point {point}: {left}")
        assert {name for name, (leader, _) in stored(crashed).items() if leader in crashed.processes} == {"u-0"}
    print(f"{release} deletion: {point} points, {len(stuck)} of them stuck")
    assert point >= 20 and bool(stuck) is may_stick
