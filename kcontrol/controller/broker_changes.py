"""Handles brokers that start, die, restart between two reads, or lose a log directory.

When a broker dies, its partitions first get other leaders; then its replicas leave the ISRs.

Source: KafkaController.scala (2.8): processBrokerChange, onBrokerStartup, onBrokerFailure,
onReplicasBecomeOffline, processBrokerModification, processLeaderAndIsrResponseReceived.
"""

from collections.abc import Iterable

from kcontrol.controller import failover_steps, partition_machine, replica_machine
from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.request_batch import send_update_metadata_request
from kcontrol.core import events
from kcontrol.core import znodes as zk
from kcontrol.core.effects import Handler, Read, UnregisterZNodeHandler, UpdateContext
from kcontrol.core.model import PartitionReplica, PartitionState, ReplicaState

Brokers = tuple[int, ...]


def broker_change(ctx: ControllerContext, event: events.BrokerChange) -> Handler:
    """Handle the new brokers, then the restarted brokers, then the dead brokers.

    A broker has restarted if its broker epoch is higher than the broker epoch in the context.

    Source: KafkaController.processBrokerChange (2.8).
    """
    registered, epochs = yield from failover_steps.read_brokers(ctx)
    known = ctx.live_broker_epochs
    new = tuple(b for b in epochs if b not in known)
    bounced = tuple(b for b in epochs if b in known and epochs[b] > known[b])
    dead = tuple(b for b in sorted(known) if b not in epochs)
    if new:
        yield from _add(registered, epochs, new)
        yield from on_broker_startup(ctx, new)
    if bounced:
        yield from _remove(bounced)
        yield from on_broker_failure(ctx, bounced)
        yield from _add(registered, epochs, bounced)
        yield from on_broker_startup(ctx, bounced)
    if dead:
        yield from _remove(dead)
        yield from on_broker_failure(ctx, dead)


def _add(
    endpoints: dict[int, zk.BrokerEndpoint], epochs: dict[int, int], brokers: Brokers
) -> Handler:
    yield UpdateContext("live_brokers", {b: endpoints[b] for b in brokers})
    yield UpdateContext("live_broker_epochs", {b: epochs[b] for b in brokers})


def _remove(brokers: Brokers) -> Handler:
    yield UpdateContext("live_brokers", remove=brokers)
    yield UpdateContext("live_broker_epochs", remove=brokers)


def on_broker_startup(ctx: ControllerContext, brokers: Brokers) -> Handler:
    """Send UpdateMetadata to all brokers; then move replicas on `brokers` Online and elect leaders.

    At the end continue the reassignments and topic deletions that wait for `brokers`.

    Source: KafkaController.onBrokerStartup (2.6, 2.8).
    """
    if ctx.offline_dirs:
        yield UpdateContext("offline_dirs", remove=brokers)
    # The other brokers receive only the list of live brokers; the started brokers receive all
    # partitions (since 2.7 without those of topics that are being deleted).
    others = tuple(b for b in ctx.live_or_shutting_down_broker_ids if b not in brokers)
    yield from send_update_metadata_request(ctx, others)
    with_deleted_topics = ctx.rules.new_broker_gets_deleting_topics
    led = tuple(ctx.leadership)
    if not with_deleted_topics:
        led = tuple(tp for tp in led if not ctx.is_queued_for_deletion(tp.topic))
    yield from send_update_metadata_request(ctx, brokers, led)
    replicas = ctx.replicas_on(brokers)
    yield from replica_machine.handle_state_changes(ctx, replicas, ReplicaState.ONLINE)
    yield from failover_steps.trigger_online_partition_state_change(ctx)
    yield from ctx.design.reassignment.on_broker_startup(ctx, brokers)
    yield from deletion.resume_deletion_for_topics(ctx, (r.topic for r in replicas))
    if not ctx.design.has_listeners:
        yield from failover_steps.register_broker_modifications_handlers(brokers)


def on_broker_failure(ctx: ControllerContext, brokers: Brokers) -> Handler:
    """Elect leaders for leaderless partitions, then move the replicas on `brokers` Offline.

    The caller has removed `brokers` from the live brokers before.

    Source: KafkaController.onBrokerFailure (2.8).
    """
    if ctx.offline_dirs:
        yield UpdateContext("offline_dirs", remove=brokers)
    if ctx.shutting_down_broker_ids:
        yield UpdateContext("shutting_down_broker_ids", remove=brokers)
    yield from on_replicas_become_offline(ctx, ctx.replicas_on(brokers), brokers)
    for broker_id in brokers:
        yield UnregisterZNodeHandler(zk.broker_path(broker_id))


def on_replicas_become_offline(
    ctx: ControllerContext, replicas: Iterable[PartitionReplica], dead_brokers: Brokers = ()
) -> Handler:
    """Elect leaders for partitions without a live leader, then move `replicas` Offline.

    `dead_brokers` has the ids of failed brokers; only releases before 1.1 find leaderless
    partitions by these ids.

    Source: KafkaController.onReplicasBecomeOffline (2.8; 3.1, KAFKA-13225).
    """
    replicas = tuple(replicas)
    led_by = ctx.design.machines.leaderless
    waiting = led_by(ctx, dead_brokers) if led_by else ctx.partitions_with_offline_leader()
    yield from partition_machine.handle_state_changes(ctx, waiting, PartitionState.OFFLINE)
    elected = yield from failover_steps.trigger_online_partition_state_change(ctx)
    staying = [r for r in replicas if not ctx.is_queued_for_deletion(r.topic)]
    yield from replica_machine.handle_state_changes(
        ctx, staying, ReplicaState.OFFLINE, set_size=len(replicas)
    )
    # Replicas of topics that are being deleted become ineligible for deletion instead.
    yield from deletion.fail_replica_deletion(ctx, replicas)
    # All brokers receive UpdateMetadata: up to 3.0 if all partitions had live leaders, since 3.1 if
    # no replica moved Offline and no leader was elected.
    by_leaders = ctx.rules.metadata_on_broker_failure == "if no leader was lost"
    if not (waiting if by_leaders else staying or elected):
        yield from send_update_metadata_request(ctx, ctx.live_or_shutting_down_broker_ids)


def broker_modifications(ctx: ControllerContext, event: events.BrokerModifications) -> Handler:
    """Store a registered broker's new endpoint, and send UpdateMetadata to all brokers.

    Do nothing if the endpoint has not changed.

    Source: KafkaController.processBrokerModification and onBrokerUpdate (2.8).
    """
    (znode,) = yield Read((zk.broker_path(event.broker_id),), watch=True)
    known = ctx.live_brokers.get(event.broker_id)
    if znode is None or known is None:
        return
    endpoint = zk.decode_broker(znode.data)
    if endpoint != known:
        yield UpdateContext("live_brokers", {event.broker_id: endpoint})
        yield from send_update_metadata_request(ctx, ctx.live_or_shutting_down_broker_ids)


def update_metadata_response_received(
    ctx: ControllerContext, event: events.UpdateMetadataResponseReceived
) -> Handler:
    """Do nothing; Kafka only logs the error of the response.

    Source: KafkaController.processUpdateMetadataResponseReceived (2.8).
    """
    yield from ()
