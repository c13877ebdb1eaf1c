"""What 0.8.0 does otherwise than 0.8.1, beyond what its recordings hold."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.cluster.world import World
from kcontrol.controller import partition_machine
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.handlers import design_of
from kcontrol.core.controller_rules import rules
from kcontrol.core.effects import Commit, FailedStateChange
from kcontrol.core.model import PartitionReplica, PartitionState, ReplicaState
from kcontrol.core.znodes import CONTROLLER, REASSIGN_PARTITIONS, encode_reassignment, topic_path
from tests.core.support import T0, U0, alone, cluster, of_kind, settle, until

EVENTS = "zk-events"
BOTH = ("0.8.0", "0.8.1")


def at_rest(release: str, topics: Any = None, **settings: Any) -> World:
    return cluster(*(() if topics is None else (topics,)), release=release, config=BrokerConfig.of(release), **settings)


def move(world: World, targets: Any) -> None:
    world.step(("create", REASSIGN_PARTITIONS, encode_reassignment(targets).decode()))


def test_a_controller_does_not_resign_when_its_znode_is_deleted() -> None:
    """A controller competes after the deletion; if another wins, it stays active. Source: LeaderChangeListener (0.8.0, 0.8.1)."""
    for release, active in (("0.8.0", [1, 2]), ("0.8.1", [2])):
        world = at_rest(release)
        world.step(("delete", CONTROLLER))
        world.step(("deliver_notification", 1))
        alone(world, 1, lambda w: w.processes[1].driver.threads[EVENTS].waits_for is not None)
        world.step(("advance", 1, EVENTS))
        world.step(("advance", 1, EVENTS))
        alone(world, 2, lambda w: w.processes[2].driver.controller.is_active)
        world.run()
        assert [n for n, p in world.processes.items() if p.driver.controller.is_active] == active


def test_a_failover_that_fails_keeps_the_office() -> None:
    """After an error in the failover `/controller` names a broker that is not active: no other broker can be elected."""
    # Source: ZookeeperLeaderElector.elect (0.8.0, 0.8.1).
    for release, kept in (("0.8.0", True), ("0.8.1", False)):
        world = at_rest(release)
        settle(world, ("set", topic_path("t"), '{"version":1,"partitions":7}'))
        world.step(("kill", 1))
        world.step(("expire_session", 1))
        alone(world, 2, lambda w: w.processes[2].driver.controller.active_controller_id == 2)
        alone(world, 2, lambda w: w.processes[2].driver.threads[EVENTS].handler is None)
        assert (CONTROLLER in world.zk.tree()) is kept
        assert world.processes[2].driver.controller.active_controller_id == -1


def test_a_request_for_an_unknown_partition_ends_a_failover() -> None:
    """Its replicas are looked up without asking. Source: initializeAndMaybeTriggerPartitionReassignment (0.8.0)."""
    for release, errors in (("0.8.0", ["KeyError"]), ("0.8.1", [])):
        world = at_rest(release, {"t": ((2, 3),)})
        world.step(("kill", 1))
        move(world, {U0: (2, 3)})
        world.step(("expire_session", 1))
        alone(world, 2, lambda w: w.processes[2].driver.controller.machines_started)
        before = len(world.journal.records)
        alone(world, 2, lambda w: w.processes[2].driver.threads[EVENTS].handler is None)
        assert [r.fields["error"] for r in of_kind(world, "handler_error", before) if r.id.node == 2] == errors


def test_what_a_dead_broker_hosts_is_read_from_the_topic_znodes() -> None:
    """A new replica of a reassignment is not named there yet: its broker's death does not touch it."""
    # Source: KafkaController.onBrokerFailure, ZkUtils.getAllReplicasOnBroker (0.8.0).
    for release, state in (("0.8.0", ReplicaState.NEW), ("0.8.1", ReplicaState.OFFLINE)):
        world = at_rest(release, {"t": ((2, 3),)}, brokers=(1, 2, 3, 4))
        world.step(("freeze", 4))
        move(world, {T0: (3, 4)})
        world.run()
        settle(world, ("kill", 4))
        assert world.processes[1].driver.controller.replica_state(PartitionReplica(T0, 4)) is state


def test_the_log_of_a_deleted_replica_stays() -> None:
    """After StopReplica with delete a broker drops the replica, and its log stays. Source: ReplicaManager.stopReplica (0.8.0)."""
    for release, stays in (("0.8.0", True), ("0.8.1", False)):
        world = at_rest(release, {"t": ((2, 3),)}, data=True)
        move(world, {T0: (3, 1)})
        world.run()
        assert T0 not in world.processes[2].driver.broker.hosted
        assert (T0 in world.processes[2].driver.broker.logs) is stays


def test_an_old_leader_epoch_is_no_error() -> None:
    """A request that comes twice is passed over the second time. Source: ReplicaManager.becomeLeaderOrFollower (0.8.0, 0.8.1)."""
    for release, errors in (("0.8.0", {}), ("0.8.1", {T0: "StaleLeaderEpoch"})):
        world = at_rest(release, {})
        world.step(("create_topic", "t", ((2, 3),)))
        until(world, lambda w: bool(w.network.channels.get((1, 2))))
        assert world.network.channels[1, 2][0].api == "LeaderAndIsr"
        before = len(world.journal.records)
        world.step(("duplicate_request", 1, 2))
        world.step(("deliver_request", 1, 2))
        answers = [r.fields["body"]["errors"] for r in of_kind(world, "respond", before) if r.id.node == 2]
        assert answers == [{}, errors]


def test_what_is_offline_is_not_made_so_again() -> None:
    """The move is refused in 0.8.0 alone. Source: PartitionStateMachine.handleStateChange (0.8.0, 0.8.1)."""
    for release, refused in (("0.8.0", True), ("0.8.1", False)):
        ctx = ControllerContext(
            1, rules(release), design_of(rules(release)), partition_states={T0: PartitionState.OFFLINE}, machines_started=True
        )
        commit = next(partition_machine.handle_state_changes(ctx, (T0,), PartitionState.OFFLINE))
        assert isinstance(commit, Commit)
        assert isinstance(commit.changes[0], FailedStateChange) is refused


@pytest.mark.parametrize("release", BOTH)
def test_a_topic_is_created_without_settings_where_there_are_none(release: str) -> None:
    """0.8.0 knows no settings of topics, and its tool makes the place for topics. The other party: golden bounced-unseen."""
    world = at_rest(release, {"t": ((2, 3),)})
    assert ("/config/topics/t" in world.zk.tree()) is (release != "0.8.0")
    assert topic_path("t") in world.zk.tree()
