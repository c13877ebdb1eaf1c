"""3.9 in ZooKeeper mode: AlterPartition between leaders and controllers, and the metadata after a broker's death."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.broker.events import AlterIsrResponse, ReplicaCaughtUp
from kcontrol.cluster import actions
from kcontrol.cluster.world import World
from kcontrol.core.events import AlterIsrReceived
from kcontrol.core.model import RECOVERED, RECOVERING, LeaderAndIsr, TopicPartition
from tests.core.support import T0, cluster, of_kind, settle, states, until
from tests.core.test_broker_handlers import Broker

NEW: dict[str, Any] = {"release": "3.9"}


def leadership_of_t0(world: World, **changes: Any) -> LeaderAndIsr:
    """What the controller knows of t-0, changed."""
    return world.processes[1].driver.controller.leadership[T0]._replace(**changes)


def alter(world: World, leader: int, value: LeaderAndIsr) -> Any:
    """A leader asks for an ISR; returns the answer for t-0."""
    epoch = world.processes[leader].driver.broker.broker_epoch
    world.processes[1].driver.enqueue(AlterIsrReceived("a-1", leader, epoch, ((T0, value),)), None)
    world.run()
    return next(r.fields["body"]["partitions"][T0] for r in of_kind(world, "respond") if r.fields["correlation_id"] == "a-1")


@pytest.mark.parametrize(("release", "marks"), [("2.8", [RECOVERED] * 3), ("3.9", [RECOVERING, RECOVERING, RECOVERED])])
def test_a_leader_that_was_elected_uncleanly_is_marked_until_it_changes_the_isr(release: str, marks: list[int]) -> None:
    """An unclean election sets the mark, clean elections keep it, and an ISR expansion removes it (KIP-704)."""
    # The other party: golden unclean-allowed of 3.9.1. Source: Election.leaderForOffline, LeaderAndIsr.newLeaderAndIsr (3.9).
    world = cluster({"t": ((2, 3),)}, release=release)
    world.step(("set", "/config/topics/t", '{"version":1,"config":{"unclean.leader.election.enable":"true"}}'))
    seen = []
    for act, broker in (("kill", 3), ("kill", 2), ("start", 3), ("kill", 3), ("start", 3), ("start", 2)):
        settle(world, (act, broker))
        seen.append(dict(states(world))[T0].leader_recovery_state)
    assert seen[2:4] + seen[-1:] == marks
    assert seen[:2] == [RECOVERED, RECOVERED]


def test_alter_partition_of_an_unknown_partition_gets_an_error() -> None:
    """For a partition that the controller does not know the response is UNKNOWN_TOPIC_OR_PARTITION."""
    # Source: KafkaController.tryProcessAlterPartition (3.9).
    world = cluster({"t": ((1, 2),)}, **NEW)
    epoch, unknown = world.processes[2].driver.broker.broker_epoch, TopicPartition("t", 7)
    world.processes[1].driver.enqueue(AlterIsrReceived("a-1", 2, epoch, ((unknown, leadership_of_t0(world)),)), None)
    world.run()
    [answer] = [r.fields["body"] for r in of_kind(world, "respond") if r.fields["correlation_id"] == "a-1"]
    assert answer == {"error": "NONE", "partitions": {unknown: "UNKNOWN_TOPIC_OR_PARTITION"}}


@pytest.mark.parametrize(("changes", "answer"), [
    ({"leader_epoch": 1}, "NOT_CONTROLLER"),
    ({"zk_version": 9}, "NOT_CONTROLLER"),
    ({"zk_version": -1, "isr": (1, 2)}, "INVALID_UPDATE_VERSION"),
    ({"isr": (1, 2, 9)}, "INELIGIBLE_REPLICA"),
    ({"leader_epoch": -1}, "FENCED_LEADER_EPOCH"),
])  # fmt: skip
def test_what_a_leader_cannot_have_is_said_without_a_write(changes: dict[str, Any], answer: str) -> None:
    """A request with a newer epoch, an older epoch or a dead broker gets its error, and nothing is written."""
    # Source: KafkaController.tryProcessAlterPartition (3.9).
    world = cluster({"t": ((1, 2, 3),)}, **NEW)
    before = dict(states(world))[T0]
    assert alter(world, 1, leadership_of_t0(world, **changes)) == answer
    assert dict(states(world))[T0] == before


def test_an_isr_that_is_written_already_is_accepted_with_an_older_version() -> None:
    """A leader whose ISR was written before gets the present value, although its request names the previous version."""
    # Source: LeaderAndIsr.equalsAllowStalePartitionEpoch (3.9).
    world = cluster({"t": ((1, 2, 3),)}, **NEW)
    now = leadership_of_t0(world)
    assert alter(world, 1, now._replace(zk_version=now.zk_version - 1)) == now


@pytest.mark.parametrize(("release", "takes_in"), [("2.8", True), ("3.9", False)])
def test_a_follower_that_its_leader_takes_for_dead_stays_out(release: str, takes_in: bool) -> None:
    """A restarted broker enters the ISR only after its leader knows its registration; in 2.8 it could enter before (KIP-841)."""
    # Source: Partition.isReplicaIsrEligible (3.9).
    world = cluster({"t": ((2, 3),)}, release=release)
    settle(world, ("kill", 3))
    assert world.processes[2].driver.broker.live_brokers == {1, 2}
    world.step(("start", 3))
    until(world, lambda w: (1, 3) in w.network.channels)
    while (1, 3) in world.network.channels:
        world.step(("deliver_request", 1, 3))
    fetch = ("fetch", 3, "t-0")
    assert (fetch in actions.routine_actions(world)) is takes_in
    while (1, 2) in world.network.channels:
        world.step(("deliver_request", 1, 2))
    assert fetch in actions.routine_actions(world)


@pytest.mark.parametrize(("answer", "pending", "asks"), [("INELIGIBLE_REPLICA", (), 1), ("NOT_CONTROLLER", (1, 2, 3), 2),
                                                        ("INVALID_UPDATE_VERSION", (1, 2, 3), 1)])  # fmt: skip
def test_a_leader_gives_up_asks_again_or_waits(answer: str, pending: tuple[int, ...], asks: int) -> None:
    """Refused for a broker that does not live it has its old ISR back, refused by a controller that knows less it asks again."""
    # Source: Partition.handleAlterPartitionError (3.9).
    broker = Broker()
    broker.handle(ReplicaCaughtUp(T0, 3))
    broker.handle(AlterIsrResponse("NONE", ((T0, answer),)))
    assert broker.driver.broker.hosted[T0].pending_isr == pending
    assert len(broker.records("submit")) == asks


@pytest.mark.parametrize(("release", "leader", "asked"), [("2.8", 3, 1), ("3.9", -1, 1)])
def test_a_leader_that_shuts_down_cannot_expand_its_isr(release: str, leader: int, asked: int) -> None:
    """The requested ISR names the broker itself, and a broker that shuts down is not live: no other leader is possible."""
    # It asks once, though its follower fetches on. Source: KafkaController.tryProcessAlterPartition, liveBrokerIds (3.9).
    world = cluster({"t": ((2, 3),)}, release=release)
    settle(world, ("kill", 3))
    world.step(("terminate", 2))
    until(world, lambda w: 2 in w.processes[1].driver.controller.shutting_down_broker_ids)
    world.step(("start", 3))
    before = len(world.journal.records)
    world.run()
    assert len([r for r in of_kind(world, "submit", before) if r.fields["api"] == "AlterIsr"]) == asked
    assert 2 not in world.processes
    assert dict(states(world))[T0].leader == leader
