"""What a broker is answered that asks to shut down."""

from __future__ import annotations

import pytest

from kcontrol.config import BrokerConfig
from kcontrol.model import PartitionReplica, ReplicaState
from kcontrol.replica.shutdown import RETRY_TIMER
from kcontrol.znodes import broker_path
from tests.core.support import T0, cluster, of_kind, until

RELEASES = ("0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.2", "0.11.0", "1.0", "1.1", "2.4", "2.8", "3.9")


@pytest.mark.parametrize("release", RELEASES)
def test_a_partition_without_another_replica_keeps_no_broker(release: str) -> None:
    """A broker that alone has a partition is answered with no partition, and stops.

    Source: KafkaController.shutdownBroker, replicatedPartitionsBrokerLeads, `partitionReplicaAssignment(tp).size > 1` (0.8.1,
    1.0); doControlledShutdown (2.8).
    """
    world = cluster({"t": ((3,),)}, release=release)
    world.step(("term", 3))
    world.run()
    [answer] = [r.fields["body"] for r in of_kind(world, "respond") if r.fields["correlation_id"].endswith("ControlledShutdown")]
    assert answer == {"error": "NONE", "partitions": {}}
    assert 3 not in world.processes


@pytest.mark.parametrize(("release", "tried"), [("0.8.1", True), ("1.0", True), ("1.1", True), ("2.4", False), ("2.8", False)])
def test_a_shutdown_leaves_out_topics_that_are_being_deleted_since_2_1(release: str, tried: bool) -> None:
    """Up to 2.0 a shutdown tries to take offline a replica whose topic's deletion waits for a dead broker, and is refused.

    Source: KafkaController.shutdownBroker (0.8.1, 1.0), doControlledShutdown (2.0, 2.1); more/1.1.1/shutdown-while-deleted.
    """
    config = BrokerConfig.of(release).but("delete.topic.enable", True)
    world = cluster({"t": ((2, 3),)}, release=release, config=config)
    for act in (("kill", 3), ("delete_topic", "t")):
        world.step(act)
        world.run()
    before = len(world.journal.records)
    world.step(("term", 2))
    until(world, lambda w: 2 not in w.processes)
    refused = [r.fields["subject"] for r in of_kind(world, "refuse", before) if r.fields["target"] == ReplicaState.OFFLINE]
    assert refused[:1] == ([PartitionReplica(T0, 2)] if tried else [])


@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_asks_again_while_no_controller_is_registered(release: str) -> None:
    """`/controller` names a broker without a registration: the broker that stops arms its retry timer with the configured delay.

    Source: KafkaServer.controlledShutdown, `controlled.shutdown.retry.backoff.ms` (0.8.1, 2.8).
    """
    world = cluster(release=release)
    world.step(("delete", broker_path(1)))
    world.run()
    before = len(world.journal.records)
    world.step(("term", 3))
    until(world, lambda w: bool(of_kind(w, "arm", before)))
    [armed] = [r for r in of_kind(world, "arm", before) if r.fields["timer"] == RETRY_TIMER]
    assert armed.fields["fires_at_ms"] - armed.at_ms == world.settings.config.controlled_shutdown_retry_backoff_ms


@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_stops_after_its_last_attempt(release: str) -> None:
    """With no controller registered, a broker asks `controlled.shutdown.max.retries` times and then exits with code 0."""
    world = cluster(release=release)
    world.step(("delete", broker_path(1)))
    world.run()
    before = len(world.journal.records)
    world.step(("term", 3))
    while 3 in world.processes:
        world.run()
        if 3 in world.processes:
            world.step(("fire", 3, RETRY_TIMER))
    asked = [r for r in of_kind(world, "learn", before) if r.fields["field"] == "shutdown_attempts"]
    assert len(asked) == world.settings.config.controlled_shutdown_max_retries
