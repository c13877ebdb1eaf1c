"""Handles brokers, topics, ISR changes and controlled shutdowns from 0.8.0 to 0.10.2.

Listeners share one lock. ZkClient sets the watch of a path again and reads the path before it calls
the listener, so handlers begin with that read.

Source: ReplicaStateMachine.BrokerChangeListener, PartitionStateMachine.TopicChangeListener and
AddPartitionsListener, KafkaController.onBrokerStartup, onBrokerFailure, shutdownBroker (0.8.1.1);
ZkClient.fireChildChangedEvents and fireDataChangedEvents (ZkClient 0.3).
"""

from collections.abc import Iterable

from kcontrol.controller import failover_steps, partition_machine, replica_machine
from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.earlier.failover_steps import await_requests, subscribe_topic_changes
from kcontrol.controller.earlier.reassignment_to_2_3 import resume_reassignments_on
from kcontrol.controller.isr_changes import process_isr_changes
from kcontrol.controller.request_batch import RequestBatch, send_update_metadata_request
from kcontrol.controller.topic_changes import on_new_partition_creation
from kcontrol.core import effects, events
from kcontrol.core import znodes as zk
from kcontrol.core.effects import Handler
from kcontrol.core.model import PartitionReplica, PartitionState, ReplicaState, TopicPartition

Brokers = tuple[int, ...]


class NullPointerException(Exception):
    """The error of a handler that sends a request after its broker has resigned as controller.

    The resignation has removed the channel manager, through which requests are sent.
    """


def children_of(path: str) -> Handler:
    """Set the watch of `path` again and return its children, () if the znode does not exist."""
    yield effects.Exists((path,), watch=True)
    (names,) = yield effects.Children((path,), watch=True)
    return names or ()


def data_of(path: str) -> Handler:
    """Set the watch of `path` again and return its znode, None if the znode does not exist."""
    yield effects.Exists((path,), watch=True)
    (znode,) = yield effects.Read((path,), watch=True)
    return znode


# ---------------------------------------------------------------- brokers


def broker_change(ctx: ControllerContext, event: events.BrokerChange) -> Handler:
    """Compare the registered ids with the known ids; handle new brokers, then dead brokers.

    A restart between two reads goes unnoticed.

    Source: ReplicaStateMachine.BrokerChangeListener (0.8.1).
    """
    ids = sorted(int(name) for name in (yield from children_of(zk.BROKER_IDS)))
    if not ctx.machines_started:
        return
    new = tuple(b for b in ids if b not in ctx.live_broker_epochs)
    dead = tuple(b for b in sorted(ctx.live_broker_epochs) if b not in ids)
    yield from failover_steps.read_registrations(ctx, new)
    brokers, epochs = yield from failover_steps.read_registrations(ctx, ids)
    yield effects.UpdateContext("live_brokers", brokers, clear=True)
    yield from await_requests(ctx, dead)
    yield effects.UpdateContext("live_broker_epochs", epochs, clear=True)
    if new:
        yield from on_broker_startup(ctx, new)
    if dead:
        yield from on_broker_failure(ctx, dead)


def on_broker_startup(ctx: ControllerContext, brokers: Brokers) -> Handler:
    """Send UpdateMetadata, move replicas Online, elect leaders, resume reassignments and deletions.

    The new brokers receive UpdateMetadata, since 0.9 the other brokers too. Offline and New
    partitions get leaders.

    Source: KafkaController.onBrokerStartup (0.8.1, 0.9.0).
    """
    to_all = ctx.rules.metadata_on_broker_startup == "all brokers"
    yield from send_update_metadata_request(
        ctx, ctx.live_or_shutting_down_broker_ids if to_all else brokers
    )
    replicas = yield from _replicas_on(ctx, brokers)
    yield from replica_machine.handle_state_changes(ctx, replicas, ReplicaState.ONLINE)
    yield from failover_steps.trigger_online_partition_state_change(ctx)
    yield from resume_reassignments_on(ctx, brokers)
    yield from deletion.resume_deletion_for_topics(ctx, (r.topic for r in replicas))


def on_broker_failure(ctx: ControllerContext, brokers: Brokers) -> Handler:
    """Elect leaders of partitions that `brokers` led; then take replicas on `brokers` out of ISRs.

    Replicas of topics that are being deleted stay in the ISRs, and become ineligible for deletion.

    Source: KafkaController.onBrokerFailure (0.8.1, 0.9.0).
    """
    if any(b in ctx.shutting_down_broker_ids for b in brokers):
        yield effects.UpdateContext("shutting_down_broker_ids", remove=brokers)
    led = (tp for tp, value in ctx.leadership.items() if value.leader in brokers)
    leaderless = tuple(tp for tp in led if not ctx.is_queued_for_deletion(tp.topic))
    yield from partition_machine.handle_state_changes(ctx, leaderless, PartitionState.OFFLINE)
    yield from failover_steps.trigger_online_partition_state_change(ctx)
    replicas = yield from _replicas_on(ctx, brokers)
    staying = [r for r in replicas if not ctx.is_queued_for_deletion(r.topic)]
    yield from replica_machine.handle_state_changes(
        ctx, staying, ReplicaState.OFFLINE, set_size=len(replicas)
    )
    yield from deletion.fail_replica_deletion(ctx, replicas)
    # Since 0.9 all brokers receive UpdateMetadata even if no partition lost its leader.
    if ctx.rules.metadata_on_any_failure and not leaderless:
        yield from send_update_metadata_request(ctx, ctx.live_or_shutting_down_broker_ids)


def _replicas_on(ctx: ControllerContext, brokers: Iterable[int]) -> Handler:
    """Return the replicas that the partitions in the context have on these brokers.

    0.8.0 reads the topic znodes, and takes the replicas of these partitions from there; later
    releases take them from the context.

    Source: ZkUtils.getAllReplicasOnBroker (0.8.0).
    """
    if ctx.rules.replicas_of_brokers == "cache":
        return ctx.replicas_on(brokers)
    topics, wanted = sorted(ctx.all_topics), frozenset(brokers)
    znodes = (yield effects.Read(tuple(map(zk.topic_path, topics)))) if topics else ()
    stored = zk.decode_topics(topics, znodes)
    named = {tp: a for t, value in stored.items() for tp, a in value.assignments(t).items()}
    known = [(tp, b) for tp, a in named.items() if tp in ctx.assignments for b in a.replicas]
    return tuple(PartitionReplica(tp, b) for tp, b in known if b in wanted)


# ---------------------------------------------------------------- topics


def topic_change(ctx: ControllerContext, event: events.TopicChange) -> Handler:
    """Read the topics; create partitions of new topics, remove assignments of missing topics.

    Source: PartitionStateMachine.TopicChangeListener (0.8.1).
    """
    now = yield from children_of(zk.TOPICS)
    if ctx.machines_started:
        yield from on_topic_list_change(ctx, now)


def on_topic_list_change(ctx: ControllerContext, now: tuple[str, ...]) -> Handler:
    """Create the partitions of new topics, and remove the assignments of missing topics.

    `now` are the children of `/brokers/topics`.

    Source: PartitionStateMachine.TopicChangeListener (0.8.1), KafkaController.TopicChange and
    onNewTopicCreation (0.11, 1.0).
    """
    new = tuple(t for t in now if t not in ctx.all_topics)
    gone = tuple(t for t in sorted(ctx.all_topics) if t not in now)
    yield effects.UpdateContext("all_topics", now, clear=True)
    partitions = yield from failover_steps.update_topics(ctx, new, registers_handlers=False)
    # The leadership and the states of a removed topic stay in the context.
    if gone:
        yield effects.UpdateContext(
            "assignments", remove=tuple(tp for tp in ctx.assignments if tp.topic in gone)
        )
    if new:
        yield from subscribe_topic_changes(ctx, new)
        yield from on_new_partition_creation(ctx, partitions)


def partition_modifications(
    ctx: ControllerContext, event: events.PartitionModifications
) -> Handler:
    """Create the partitions that the topic znode names and the context does not have.

    Source: PartitionStateMachine.AddPartitionsListener (0.8.1).
    """
    znode = yield from data_of(zk.topic_path(event.topic))
    if znode is None:
        return
    (stored,) = yield effects.Read((zk.topic_path(event.topic),))
    named = zk.decode_topic(stored.data).assignments(event.topic) if stored else {}
    added = {tp: assignment for tp, assignment in named.items() if tp not in ctx.assignments}
    if added and ctx.machines_started and not ctx.is_queued_for_deletion(event.topic):
        if not ctx.rules.rereads_assignment:
            # From 0.9 on the assignment enters the context here, before 0.9 when the partitions
            # become New.
            yield effects.UpdateContext("assignments", added)
        yield from on_new_partition_creation(ctx, added)


def isr_change_notification(ctx: ControllerContext, event: events.IsrChangeNotification) -> Handler:
    """Send UpdateMetadata about ISR changes in the notifications, then delete the notifications.

    They are deleted also after an error of a read or of a request, and the error is raised again.

    Source: IsrChangeNotificationListener.handleChildChange (0.9.0.1).
    """
    names = yield from children_of(zk.ISR_CHANGE_NOTIFICATION)
    paths = tuple(f"{zk.ISR_CHANGE_NOTIFICATION}/{name}" for name in names)
    if paths:
        yield from failover_steps.try_finally(
            process_isr_changes(ctx, paths), failover_steps.delete_all(paths)
        )


# ---------------------------------------------------------------- controlled shutdown


def controlled_shutdown(ctx: ControllerContext, event: events.ControlledShutdown) -> Handler:
    """Elect other leaders for partitions that the stopping broker leads; stop its other replicas.

    Then respond with the partitions that the broker still leads and that have another replica.

    Source: KafkaController.shutdownBroker (0.8.1).
    """
    broker_id = event.broker_id
    error = "BrokerNotAvailableException" if broker_id not in ctx.live_broker_epochs else None
    error = error if ctx.is_active else "ControllerMovedException"
    if error:
        yield effects.Respond(event.correlation_id, {"error": error, "partitions": {}})
        return
    yield effects.UpdateContext("shutting_down_broker_ids", (broker_id,))
    yield effects.YieldLock()
    hosted = yield from _replicas_on(ctx, (broker_id,))
    copies = {
        replica.topic_partition: len(ctx.replicas(replica.topic_partition)) for replica in hosted
    }
    # The lock is released before each partition, so other threads may change the context in
    # between.
    for tp in copies:
        yield effects.YieldLock()
        if (cached := ctx.leadership.get(tp)) is None or not (
            ctx.rules.shutdown_moves_single_replicas or copies[tp] > 1
        ):
            continue
        if cached.leader == broker_id:
            yield from partition_machine.handle_state_changes(
                ctx, (tp,), PartitionState.ONLINE, "controlled_shutdown"
            )
        elif not ctx.has_channels:
            # The broker has resigned meanwhile: in Kafka its channel manager is null by now.
            yield effects.Respond(event.correlation_id, {"error": "UnknownCode", "partitions": {}})
            yield from require_channels(ctx)
        else:
            yield from stop_replica(ctx, tp, broker_id)
    yield effects.YieldLock()
    yield respond_with_leaderships(ctx, event)


def respond_with_leaderships(
    ctx: ControllerContext, event: events.ControlledShutdown
) -> effects.Respond:
    """The partitions that the stopping broker still leads, and that have another replica."""
    led = [tp for tp, value in ctx.leadership.items() if value.leader == event.broker_id]
    left = {tp: "NONE" for tp in led if len(ctx.replicas(tp)) > 1}
    return effects.Respond(event.correlation_id, {"error": "NONE", "partitions": left})


def stop_replica(ctx: ControllerContext, tp: TopicPartition, broker_id: int) -> Handler:
    """Send StopReplica for `tp` to the follower `broker_id`; then remove the follower from the ISR.

    Source: KafkaController.shutdownBroker (0.8.1, 1.0).
    """
    batch = RequestBatch()
    batch.add_stop_replica(ctx, (broker_id,), tp, delete=False)
    yield from batch.send_requests_to_brokers(ctx)
    yield from replica_machine.handle_state_changes(
        ctx, (PartitionReplica(tp, broker_id),), ReplicaState.OFFLINE
    )


# ---------------------------------------------------------------- a broker that has resigned


def require_channels(ctx: ControllerContext) -> Handler:
    """Raise NullPointerException if this broker has resigned, and so has no channels to brokers.

    Since 0.9 delete `/controller` before the error, even if the znode names another broker.

    Source: KafkaController.sendUpdateMetadataRequest (0.9.0).
    """
    if ctx.is_active:
        return
    if ctx.rules.send_after_resignation == "deletes /controller":
        yield effects.UpdateContext("active_controller_id", -1)
        yield effects.Transaction((effects.Op("delete", zk.CONTROLLER),))
    raise NullPointerException("this broker has resigned and sends nothing")
