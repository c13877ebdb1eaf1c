"""Reassignments up to 2.3: six steps in 0.8.0, then twelve.

The topic znode has the old replicas until step 5 of six or step 10 of twelve. A reassignment cannot
be cancelled, and ends only when all target replicas are in the ISR.

Source: KafkaController.onPartitionReassignment and initiateReassignReplicasForTopicPartition,
PartitionsReassignedListener, ReassignedPartitionsIsrChangeListener (0.8.1.1).
"""

# In 0.8.0 and 0.8.1 a broker that has resigned keeps its context and its listeners, so it still
# handles reassignments; its requests to brokers then fail (`require_channels`).
from collections.abc import Collection

from kcontrol.controller import partition_machine, reassignment, replica_machine
from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.earlier.scala_hash_order import in_set_order
from kcontrol.controller.request_batch import send_update_metadata_request
from kcontrol.core import effects
from kcontrol.core import znodes as zk
from kcontrol.core.effects import Handler
from kcontrol.core.events import PartitionReassignmentIsrChange, ZkPartitionReassignment
from kcontrol.core.kafka_json import NotJson
from kcontrol.core.model import (
    PartitionReplica,
    PartitionState,
    ReplicaAssignment,
    ReplicaState,
    TopicPartition,
)

Brokers = tuple[int, ...]


class KafkaException(Exception):
    """The error for a requested reassignment that the controller refuses to start."""


# ---------------------------------------------------------------- how it begins


def zk_partition_reassignment(ctx: ControllerContext, event: ZkPartitionReassignment) -> Handler:
    """Start the reassignments in `/admin/reassign_partitions` that are not in progress.

    Before each reassignment the handler releases the controller's lock (`YieldLock`). Raises
    MalformedZnode for JSON that is no list of reassignments.

    Source: PartitionsReassignedListener.handleDataChange (0.8.1).
    """
    yield effects.Exists((zk.REASSIGN_PARTITIONS,), watch=True)
    (znode,) = yield effects.Read((zk.REASSIGN_PARTITIONS,), watch=True)
    requested = _parse_reassignments(znode.data) if znode else {}
    for tp, target in _not_in_progress(ctx, requested):
        yield effects.YieldLock()
        yield from _begin_reassignment(ctx, tp, target)


def _not_in_progress(
    ctx: ControllerContext, requested: dict[TopicPartition, Brokers]
) -> list[tuple[TopicPartition, Brokers]]:
    running = ctx.partitions_being_reassigned
    return [(tp, target) for tp, target in requested.items() if tp not in running]


def _begin_reassignment(ctx: ControllerContext, tp: TopicPartition, target: Brokers) -> Handler:
    if ctx.is_queued_for_deletion(tp.topic):
        yield effects.LogError(
            KafkaException(f"{tp} is not reassigned: its topic is being deleted")
        )
        yield from remove_from_reassigning_partitions(ctx, tp)
    else:
        yield from _initiate(ctx, tp, target)


def partition_reassignment(ctx: ControllerContext, event: ZkPartitionReassignment) -> Handler:
    """Start the reassignments in `/admin/reassign_partitions` that are not in progress.

    The handler reads the znode again, although ZkClient's listener has read the data. Raises
    MalformedZnode for JSON that is no list of reassignments.

    Source: KafkaController.PartitionReassignment (0.11, 1.0).
    """
    requested = yield from _requested_reassignments()
    for tp, target in _not_in_progress(ctx, requested):
        yield from _begin_reassignment(ctx, tp, target)


def fetch_pending_reassignments(ctx: ControllerContext) -> Handler:
    """Read the requested reassignments into the context before the state machines start.

    Each reassignment whose partition is unknown or already has the target replicas is removed from
    `/admin/reassign_partitions` instead.

    Source: KafkaController.initializePartitionReassignment (0.8.1).
    """
    requested = yield from _requested_reassignments()
    known = ctx.assignments
    over = [tp for tp, to in requested.items() if tp not in known or known[tp].replicas == to]
    for tp in over:
        yield from remove_from_reassigning_partitions(ctx, tp)
    pending = {tp: target for tp, target in requested.items() if tp not in over}
    if pending:
        yield effects.UpdateContext("partitions_being_reassigned", pending)


def trigger_pending_reassignments(ctx: ControllerContext) -> Handler:
    """Start the reassignments in the context, after the failover has started the state machines.

    Reassignments that are in the context since an earlier term of this broker are started too.

    Source: KafkaController.maybeTriggerPartitionReassignment (0.8.1).
    """
    for tp, target in sorted(ctx.partitions_being_reassigned.items()):
        yield from _initiate(ctx, tp, target)


def resume_reassignments(ctx: ControllerContext) -> Handler:
    """At a failover, start the reassignments in `/admin/reassign_partitions`.

    The state machines have started before. Raises KeyError for an unknown partition.

    Source: KafkaController.initializeAndMaybeTriggerPartitionReassignment (0.8.0).
    """
    requested = yield from _requested_reassignments()
    done = [tp for tp, target in requested.items() if ctx.assignments[tp].replicas == target]
    for tp in done:
        yield from remove_from_reassigning_partitions(ctx, tp)
    for tp, target in requested.items():
        if tp not in done:
            yield from _initiate(ctx, tp, target)


def resume_reassignments_on(ctx: ControllerContext, brokers: Collection[int]) -> Handler:
    """Start again each reassignment with a target replica on `brokers`, which have just started.

    Source: KafkaController.onBrokerStartup (0.8.1).
    """
    for tp, target in sorted(ctx.partitions_being_reassigned.items()):
        if any(b in brokers for b in target):
            yield from on_partition_reassignment(ctx, tp, target)


def _initiate(ctx: ControllerContext, tp: TopicPartition, target: Brokers) -> Handler:
    """Register the handler of ISR changes of the partition, and start its reassignment to `target`.

    An error is logged and not raised; the reassignment is then removed from
    `/admin/reassign_partitions` and from the context.

    Source: KafkaController.initiateReassignReplicasForTopicPartition (0.8.1).
    """
    try:
        _check_reassignment(ctx, tp, target)
        yield effects.RegisterZNodeHandler(zk.state_path(tp))
        yield effects.Exists((zk.state_path(tp),), watch=True)
        yield effects.UpdateContext("partitions_being_reassigned", {tp: target})
        yield from deletion.mark_topics_ineligible_for_deletion(ctx, (tp.topic,))
        yield from on_partition_reassignment(ctx, tp, target)
    except Exception as error:
        yield effects.LogError(error)
        yield from remove_from_reassigning_partitions(ctx, tp)


def _check_reassignment(ctx: ControllerContext, tp: TopicPartition, target: Brokers) -> None:
    """Raise KafkaException if the partition is unknown or has the replicas `target` already.

    Before 0.10.1 raise it also if a broker of `target` is not live.

    Source: KafkaController.initiateReassignReplicasForTopicPartition (0.8.1, 0.10.1).
    """
    if tp not in ctx.assignments:
        raise KafkaException(f"{tp} does not exist and is not reassigned")
    if ctx.replicas(tp) == target:
        raise KafkaException(f"{tp} has the replicas {list(target)} already")
    dead = [b for b in target if b not in ctx.live_broker_ids]
    if dead and ctx.rules.refuses_dead_targets:
        raise KafkaException(f"{tp} is not reassigned to {list(target)}: {dead} are not alive")


# ---------------------------------------------------------------- how it goes on


def partition_reassignment_isr_change(
    ctx: ControllerContext, event: PartitionReassignmentIsrChange
) -> Handler:
    """End a reassignment if every target replica is in the ISR, else do nothing.

    The end stops the old replicas. An error is logged and not raised.

    Source: ReassignedPartitionsIsrChangeListener.handleDataChange (0.8.1).
    """
    tp = event.partition
    yield effects.Exists((zk.state_path(tp),), watch=True)
    (znode,) = yield effects.Read((zk.state_path(tp),), watch=True)
    target = ctx.partitions_being_reassigned.get(tp)
    # The partition is not being reassigned.
    if znode is None or target is None:
        return
    try:
        if (yield from reassignment.are_in_isr(ctx, tp, target)):
            yield from on_partition_reassignment(ctx, tp, target)
    except Exception as error:
        yield effects.LogError(error)


def on_partition_reassignment(
    ctx: ControllerContext, tp: TopicPartition, target: Brokers
) -> Handler:
    """If all of `target` are in the ISR, only the last steps remain: the old replicas stop."""
    steps = (
        reassign_in_six_steps if ctx.rules.reassignment == "six steps" else reassign_in_twelve_steps
    )
    yield from steps(ctx, tp, target)


def reassign_in_six_steps(ctx: ControllerContext, tp: TopicPartition, target: Brokers) -> Handler:
    """Start the new replicas, or end the reassignment if all brokers of `target` are in the ISR.

    The end (steps 3 to 6) elects a leader among the targets if needed, and stops the old
    replicas.

    Source: KafkaController.onPartitionReassignment (0.8.0).
    """
    # 3: elect a leader among the targets, if needed. 4: stop the old replicas. 5: write the topic
    # znode. 6: remove the partition from the request.
    if not (yield from reassignment.are_in_isr(ctx, tp, target)):
        yield from _start_new_replicas(ctx, tp, target, ctx.replicas(tp))  # 1
        return
    for broker_id in target:
        yield from replica_machine.handle_state_changes(
            ctx, (PartitionReplica(tp, broker_id),), ReplicaState.ONLINE
        )
    leader = ctx.leadership[tp].leader
    if leader not in target or not ctx.is_replica_online(leader, tp):  # 3
        online = PartitionState.ONLINE
        yield from partition_machine.handle_state_changes(ctx, (tp,), online, "reassign")
    old = [PartitionReplica(tp, b) for b in ctx.replicas(tp) if b not in target]
    for state in (ReplicaState.OFFLINE, ReplicaState.NON_EXISTENT):  # 4
        for replica in old:
            yield from replica_machine.handle_state_changes(ctx, (replica,), state)
    yield from _write_assignment(ctx, tp, target)  # 5
    yield from remove_from_reassigning_partitions(ctx, tp)  # 6
    if require := ctx.design.require_channels:
        yield from require(ctx)
    yield from send_update_metadata_request(ctx, ctx.live_or_shutting_down_broker_ids, (tp,))


def _start_new_replicas(
    ctx: ControllerContext, tp: TopicPartition, target: Brokers, before: Brokers
) -> Handler:
    for broker_id in in_set_order(target):
        if broker_id not in before:
            yield from replica_machine.handle_state_changes(
                ctx, (PartitionReplica(tp, broker_id),), ReplicaState.NEW
            )


def reassign_in_twelve_steps(
    ctx: ControllerContext, tp: TopicPartition, target: Brokers
) -> Handler:
    """Start the new replicas, or end the reassignment if all brokers of `target` are in the ISR.

    The start is steps 1 to 3; the end, steps 5 to 12, stops the old replicas.

    Source: KafkaController.onPartitionReassignment (0.8.1).
    """
    before = ctx.assignments[tp].replicas
    if not (yield from reassignment.are_in_isr(ctx, tp, target)):
        both = in_set_order((*target, *before))
        yield from _write_assignment(ctx, tp, both)  # 1
        longer = ReplicaAssignment(both)
        yield from reassignment.update_leader_epoch_and_send_request(ctx, tp, longer)  # 2
        yield from _start_new_replicas(ctx, tp, target, before)  # 3
        # 4: the wait until all target replicas are in the ISR.
        return
    for broker_id in target:  # 5
        yield from replica_machine.handle_state_changes(
            ctx, (PartitionReplica(tp, broker_id),), ReplicaState.ONLINE
        )
    done = ReplicaAssignment(target)
    yield effects.UpdateContext("assignments", {tp: done})  # 6
    yield from reassignment.move_reassigned_leader_if_required(ctx, tp, done, before)  # 7
    removed = tuple(b for b in before if b not in target)
    yield from reassignment.stop_removed_replicas(ctx, tp, removed)  # 8, 9
    yield from _write_assignment(ctx, tp, target)  # 10
    yield from remove_from_reassigning_partitions(ctx, tp)  # 11
    if require := ctx.design.require_channels:
        yield from require(ctx)
    yield from send_update_metadata_request(ctx, ctx.live_or_shutting_down_broker_ids, (tp,))  # 12
    yield from deletion.resume_deletion_for_topics(ctx, (tp.topic,))


def _write_assignment(ctx: ControllerContext, tp: TopicPartition, replicas: Brokers) -> Handler:
    """Write `replicas` as the partition's assignment to the topic znode and to the context.

    A missing topic znode is created.

    Source: KafkaController.updateAssignedReplicasForPartition (0.8.1).
    """
    yield from reassignment.set_or_create(
        zk.topic_path(tp.topic),
        reassignment.topic_with_assignment(ctx, tp, ReplicaAssignment(replicas)),
    )
    yield effects.UpdateContext("assignments", {tp: ReplicaAssignment(replicas)})


# ---------------------------------------------------------------- /admin/reassign_partitions


def _requested_reassignments() -> Handler:
    """The targets by partition. Raises MalformedZnode for other JSON."""
    (znode,) = yield effects.Read((zk.REASSIGN_PARTITIONS,), watch=True)
    return _parse_reassignments(znode.data) if znode else {}


def _parse_reassignments(data: bytes) -> reassignment.Targets:
    """Return the target replicas by partition in the data of `/admin/reassign_partitions`.

    Return {} for text that is not JSON. Raises MalformedZnode for JSON that is no list of
    reassignments.

    Source: ZkUtils.parsePartitionReassignmentData (0.8.1.1).
    """
    try:
        return zk.decode_reassignment(data)
    except NotJson:
        return {}


def remove_from_reassigning_partitions(ctx: ControllerContext, tp: TopicPartition) -> Handler:
    """Remove a partition from `/admin/reassign_partitions` and from the context's reassignments.

    A znode without partitions is deleted.

    Source: KafkaController.removePartitionFromReassignedPartitions (0.8.1, 1.1).
    """
    if tp in ctx.partitions_being_reassigned:
        yield effects.UnregisterZNodeHandler(zk.state_path(tp))
    reads = ctx.design.has_listeners
    # Releases 1.1 to 2.3 write the reassignments of the context to the znode, earlier releases
    # those that the znode has.
    requested = (
        (yield from _requested_reassignments()) if reads else ctx.partitions_being_reassigned
    )
    left = {other: target for other, target in requested.items() if other != tp}
    if left:
        yield from reassignment.set_or_create(zk.REASSIGN_PARTITIONS, zk.encode_reassignment(left))
    else:
        yield effects.fenced(effects.Op("delete", zk.REASSIGN_PARTITIONS))
        if not reads:
            yield effects.Enqueue(ZkPartitionReassignment())
    if tp in ctx.partitions_being_reassigned:
        yield effects.UpdateContext("partitions_being_reassigned", remove=(tp,))
