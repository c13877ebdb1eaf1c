"""What a broker is answered that asks to shut down."""

from __future__ import annotations

import pytest

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.broker.shutdown import DISCONNECTED, RETRY_TIMER
from kcontrol.core.model import PartitionReplica, ReplicaState
from kcontrol.core.znodes import CONTROLLER, broker_path
from tests.core.support import T0, alone, cluster, of_kind, settle, until

RELEASES = ("0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.2", "0.11.0", "1.0", "1.1", "2.4", "2.8", "3.9")


@pytest.mark.parametrize("release", RELEASES)
def test_a_partition_without_another_replica_keeps_no_broker(release: str) -> None:
    """A broker that alone has a partition is answered with no partition, and stops."""
    # Source: KafkaController.shutdownBroker, replicatedPartitionsBrokerLeads (0.8.1, 1.0); doControlledShutdown (2.8).
    world = cluster({"t": ((3,),)}, release=release)
    settle(world, ("terminate", 3))
    [answer] = [r.fields["body"] for r in of_kind(world, "respond") if r.fields["correlation_id"].endswith("ControlledShutdown")]
    assert answer == {"error": "NONE", "partitions": {}}
    assert 3 not in world.processes


@pytest.mark.parametrize(("release", "tried"), [("0.8.1", True), ("1.0", True), ("1.1", True), ("2.4", False), ("2.8", False)])
def test_a_shutdown_leaves_out_topics_that_are_being_deleted_since_2_1(release: str, tried: bool) -> None:
    """Up to 2.0 a shutdown tries to take offline a replica whose topic's deletion waits for a dead broker, and is refused."""
    # Source: KafkaController.shutdownBroker (0.8.1, 1.0), doControlledShutdown (2.0, 2.1); more/1.1.1/shutdown-while-deleted.
    config = BrokerConfig.of(release).with_setting("delete.topic.enable", True)
    world = cluster({"t": ((2, 3),)}, release=release, config=config)
    for act in (("kill", 3), ("delete_topic", "t")):
        world.step(act)
        world.run()
    before = len(world.journal.records)
    world.step(("terminate", 2))
    until(world, lambda w: 2 not in w.processes)
    refused = [r.fields["subject"] for r in of_kind(world, "failed_change", before) if r.fields["target"] == ReplicaState.OFFLINE]
    assert refused[:1] == ([PartitionReplica(T0, 2)] if tried else [])


@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_asks_again_while_no_controller_is_registered(release: str) -> None:
    """`/controller` names a broker without a registration: the stopping broker arms its retry timer with the configured delay."""
    # Source: KafkaServer.controlledShutdown, `controlled.shutdown.retry.backoff.ms` (0.8.1, 2.8).
    world = cluster(release=release)
    settle(world, ("delete", broker_path(1)))
    before = len(world.journal.records)
    world.step(("terminate", 3))
    until(world, lambda w: bool(of_kind(w, "set_timer", before)))
    [armed] = [r for r in of_kind(world, "set_timer", before) if r.fields["timer"] == RETRY_TIMER]
    assert armed.fields["fires_at_ms"] - armed.at_ms == world.settings.config.controlled_shutdown_retry_backoff_ms


@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_stops_after_its_last_attempt(release: str) -> None:
    """With no controller registered, a broker asks `controlled.shutdown.max.retries` times and then exits with code 0."""
    world = cluster(release=release)
    settle(world, ("delete", broker_path(1)))
    before = len(world.journal.records)
    world.step(("terminate", 3))
    while 3 in world.processes:
        world.run()
        if 3 in world.processes:
            world.step(("fire_timer", 3, RETRY_TIMER))
    asked = [r for r in of_kind(world, "update", before) if r.fields["field"] == "shutdown_attempts"]
    assert len(asked) == world.settings.config.controlled_shutdown_max_retries


@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_reads_a_bare_controller_id_up_to_1_0(release: str) -> None:
    """`/controller` holds an id alone: up to 1.0 a broker that stops asks that broker, since 1.1 it stops without a request."""
    # Source: KafkaController.parseControllerId (0.8.0 to 1.0), ControllerZNode.decode and KafkaServer.shutdown (1.1, 2.8).
    world = cluster(release=release)
    world.step(("set", CONTROLLER, "1"))
    before = len(world.journal.records)
    world.step(("terminate", 3))
    until(world, lambda w: bool(of_kind(w, "submit", before)) or 3 not in w.processes)
    is_old = release in RELEASES[: RELEASES.index("1.1")]
    assert bool(of_kind(world, "submit", before)) is is_old
    assert (3 in world.processes) is is_old


@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_without_a_controller_znode_stops_at_once_up_to_1_0(release: str) -> None:
    """No `/controller`: up to 1.0 the lookup fails and the broker stops, since 1.1 the broker arms its retry timer."""
    # Source: ZkUtils.getController (0.8.0 to 1.0), KafkaZkClient.getControllerId (1.1, 2.8).
    world = cluster({}, release=release)
    world.step(("terminate", 3))
    world.step(("begin", 3, "requests"))
    world.step(("delete", CONTROLLER))
    world.step(("advance", 3, "requests"))
    alone(world, 3, lambda w: w.processes[3].driver.exit_code == 0 or RETRY_TIMER in w.processes[3].driver.timers)
    assert (RETRY_TIMER in world.processes[3].driver.timers) is (release not in RELEASES[: RELEASES.index("1.1")])


@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_asks_the_next_controller_when_the_controller_dies_before_its_answer(release: str) -> None:
    """A broker waits for the answer to ControlledShutdown and the controller dies: the broker asks the next controller."""
    # Source: KafkaServer.controlledShutdown, `case ioe: IOException` (0.8.1, 2.8); more/0.8.1.1/winners, more/0.10.2.2/winners.
    world = cluster({"t": ((1, 2, 3),)}, release=release)
    world.step(("terminate", 3))
    until(world, lambda w: any(q.receiver == 1 for q in w.network.to_controller.get(3, ())))
    world.step(("kill", 1))
    [response] = [r for r in of_kind(world, "controller_response") if "error" in r.fields]
    assert response.fields["error"] == DISCONNECTED
    world.run()
    assert 3 not in world.processes
    assert [r.fields["body"]["error"] for r in of_kind(world, "respond") if "Shutdown" in r.fields["correlation_id"]] == ["NONE"]


@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_that_cannot_connect_to_the_controller_stops_at_once_up_to_0_8_1(release: str) -> None:
    """The controller's process is dead and still registered: up to 0.8.1 a broker stops, since 0.8.2 it asks again later."""
    # Source: KafkaServer.controlledShutdown and BlockingChannel.connect (0.8.1, 0.8.2).
    world = cluster(release=release)
    world.step(("kill", 1))
    world.step(("terminate", 3))
    alone(world, 3, lambda w: w.processes[3].driver.exit_code == 0 or RETRY_TIMER in w.processes[3].driver.timers)
    assert (RETRY_TIMER in world.processes[3].driver.timers) is (release not in ("0.8.0", "0.8.1"))
