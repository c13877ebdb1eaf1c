"""Moves a partition to its target replicas, in the phases and steps of Kafka's comment.

Phase U writes the topic znode, phase A waits until the added replicas are in the ISR, phase B
removes the old replicas.

Source: KafkaController.onPartitionReassignment and its callees (2.8), whose comment names the
steps; KIP-455.
"""

# From 2.4 on the topic znode has all replicas (old and target), the replicas that are being added
# and those that are being removed. `/admin/reassign_partitions` is only a request.
from collections.abc import Callable, Collection, Iterable

from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.request_batch import RequestBatch, send_update_metadata_request
from kcontrol.core import effects
from kcontrol.core import znodes as zk
from kcontrol.core.effects import Handler
from kcontrol.core.events import PartitionReassignmentIsrChange, ZkPartitionReassignment
from kcontrol.core.model import (
    LeaderAndIsr,
    PartitionReplica,
    PartitionState,
    ReplicaAssignment,
    ReplicaState,
    TopicPartition,
)

Targets = dict[TopicPartition, tuple[int, ...]]


class StateChangeFailedException(Exception):
    """The error if a later controller has written the state znode."""


class IllegalStateException(Exception):
    """The error where Kafka throws IllegalStateException, such as a missing state znode."""


def current_assignment(ctx: ControllerContext, tp: TopicPartition) -> ReplicaAssignment:
    """Return the assignment of `tp` in the context; for an unknown partition, an empty one."""
    return ctx.assignments.get(tp, ReplicaAssignment(()))


def on_partition_reassignment(
    ctx: ControllerContext, tp: TopicPartition, reassignment: ReplicaAssignment
) -> Handler:
    """Write the topic znode (phase U); start the added replicas (A) or remove the old ones (B).

    Phase B needs every target replica in the ISR. A raised error, such as
    StateChangeFailedException, undoes no step.

    Source: KafkaController.onPartitionReassignment (2.8).
    """
    yield from deletion.mark_topics_ineligible_for_deletion(ctx, (tp.topic,))
    yield from _update_current_reassignment(ctx, tp, reassignment)
    if not (yield from _is_complete(ctx, tp, reassignment)):
        yield from update_leader_epoch_and_send_request(ctx, tp, reassignment)  # A1
        for broker_id in reassignment.adding:  # A2
            yield from replica_machine.handle_state_changes(
                ctx, (PartitionReplica(tp, broker_id),), ReplicaState.NEW
            )
        return
    done = ReplicaAssignment(reassignment.target)
    added = _replicas(tp, reassignment.adding)
    yield from replica_machine.handle_state_changes(ctx, added, ReplicaState.ONLINE)  # B1
    yield effects.UpdateContext("assignments", {tp: done})  # B2
    yield from move_reassigned_leader_if_required(ctx, tp, done)  # B3
    yield from stop_removed_replicas(ctx, tp, reassignment.removing)  # B4, B5
    yield from _write_assignment(ctx, tp, done)  # B6
    yield from _remove_from_reassigning_partitions(ctx, tp, done)  # B7
    yield from send_update_metadata_request(ctx, ctx.live_or_shutting_down_broker_ids, (tp,))  # B8
    yield from deletion.resume_deletion_for_topics(ctx, (tp.topic,))


# ---------------------------------------------------------------- phase U


def _update_current_reassignment(
    ctx: ControllerContext, tp: TopicPartition, reassignment: ReplicaAssignment
) -> Handler:
    before = current_assignment(ctx, tp)
    if reassignment != before:
        yield from _write_assignment(ctx, tp, reassignment)  # U1
        yield effects.UpdateContext("assignments", {tp: reassignment})  # U2
        removed = tuple(b for b in before.replicas if b not in reassignment.replicas)
        yield from stop_removed_replicas(ctx, tp, removed)  # U3
    if not ctx.rules.alter_isr:
        yield effects.RegisterZNodeHandler(zk.state_path(tp))
    yield effects.UpdateContext("partitions_being_reassigned", {tp: reassignment.target})


def _write_assignment(
    ctx: ControllerContext, tp: TopicPartition, assignment: ReplicaAssignment
) -> Handler:
    data = topic_with_assignment(ctx, tp, assignment)
    (result,) = yield effects.fenced(effects.Op("set", zk.topic_path(tp.topic), data))
    if not result.is_ok:
        raise IllegalStateException(f"the assignment of {tp} was not written: {result.code}")


def topic_with_assignment(
    ctx: ControllerContext, tp: TopicPartition, assignment: ReplicaAssignment
) -> bytes:
    """The other partitions keep their assignments of the context."""
    known = {p: held for (topic, p), held in ctx.assignments.items() if topic == tp.topic}
    topic = zk.TopicZnode(known | {tp.partition: assignment}, ctx.topic_ids.get(tp.topic))
    return zk.encode_topic(topic, ctx.rules.topic_znode)


# ---------------------------------------------------------------- is it complete?


def _is_complete(
    ctx: ControllerContext, tp: TopicPartition, reassignment: ReplicaAssignment
) -> Handler:
    """Return whether every target replica of `reassignment` is in the ISR.

    Return True for an assignment that adds and removes no replica.

    Source: KafkaController.isReassignmentComplete (2.8).
    """
    return not reassignment.is_being_reassigned or (
        yield from are_in_isr(ctx, tp, reassignment.target)
    )


def are_in_isr(ctx: ControllerContext, tp: TopicPartition, target: Collection[int]) -> Handler:
    """Read the state znode; return whether it exists and its ISR has all brokers of `target`."""
    stored = yield from _stored(ctx, tp)
    return stored is not None and set(target) <= set(stored.isr)


def maybe_complete_reassignment(ctx: ControllerContext, tp: TopicPartition) -> Handler:
    """End a reassignment (phase B) if every target replica is in the ISR; otherwise do nothing.

    `tp` must be in a reassignment. Source: KafkaController.maybeCompleteReassignment (2.8).
    """
    reassignment = current_assignment(ctx, tp)
    if (yield from _is_complete(ctx, tp, reassignment)):
        yield from on_partition_reassignment(ctx, tp, reassignment)


def partition_reassignment_isr_change(
    ctx: ControllerContext, event: PartitionReassignmentIsrChange
) -> Handler:
    """End a partition's reassignment if every target replica is now in the ISR.

    Do nothing for a partition that is not being reassigned. Source:
    KafkaController.processPartitionReassignmentIsrChange (2.8).
    """
    if event.partition in ctx.partitions_being_reassigned:
        yield from maybe_complete_reassignment(ctx, event.partition)


def maybe_complete_reassignments(
    ctx: ControllerContext, partitions: Iterable[TopicPartition]
) -> Handler:
    """End the reassignments of these partitions whose target replicas are all in the ISR."""
    for tp in partitions:
        if tp in ctx.partitions_being_reassigned:
            yield from maybe_complete_reassignment(ctx, tp)


def maybe_resume_reassignments(
    ctx: ControllerContext, is_resumed: Callable[[TopicPartition], bool]
) -> Handler:
    """Start again each reassignment in the context whose partition fulfils `is_resumed`.

    Source: KafkaController.maybeResumeReassignments (2.8).
    """
    for tp in sorted(ctx.partitions_being_reassigned):
        if is_resumed(tp):
            yield from on_partition_reassignment(ctx, tp, current_assignment(ctx, tp))


def resume_reassignments_on(ctx: ControllerContext, brokers: Collection[int]) -> Handler:
    """Start again each reassignment with a target replica on `brokers`, which have just started.

    Source: KafkaController.onBrokerStartup (2.8).
    """
    yield from maybe_resume_reassignments(
        ctx, lambda tp: any(b in brokers for b in current_assignment(ctx, tp).target)
    )


# ---------------------------------------------------------------- steps of phases A and B


def _stored(ctx: ControllerContext, tp: TopicPartition) -> Handler:
    """Without AlterIsr the read sets a watch, by which the controller notices a new ISR."""
    (znode,) = yield effects.Read((zk.state_path(tp),), watch=not ctx.rules.alter_isr)
    return zk.decode_state(znode.data, znode.stat.version) if znode else None


def update_leader_epoch_and_send_request(
    ctx: ControllerContext,
    tp: TopicPartition,
    assignment: ReplicaAssignment,
    recipients: Iterable[int] = (),
) -> Handler:
    """Write a new leader epoch, and send LeaderAndIsr with `assignment` to `recipients`.

    If `recipients` is empty, the replicas before the reassignment receive LeaderAndIsr. The added
    replicas always receive it.

    Source: KafkaController.updateLeaderEpochAndSendRequest (0.8.1, 2.8).
    """
    # A broker ignores LeaderAndIsr without a higher leader epoch.
    value = yield from _update_leader_epoch(ctx, tp)
    if ctx.rules.bumped_epoch_is_cached:
        yield effects.UpdateContext("leadership", {tp: value})
    # Raises NullPointerException before 1.1 if the broker has resigned.
    if require := ctx.design.require_channels:
        yield from require(ctx)
    batch = RequestBatch()
    batch.add_leader_and_isr(ctx, recipients or assignment.origin, tp, value, assignment)
    is_new = ctx.rules.added_replica_is_new
    batch.add_leader_and_isr(ctx, assignment.adding, tp, value, assignment, is_new=is_new)
    yield from batch.send_requests_to_brokers(ctx)


def _update_leader_epoch(ctx: ControllerContext, tp: TopicPartition) -> Handler:
    """Write the leadership with the next leader epoch to the state znode; return the leadership.

    Raises IllegalStateException if the state znode is missing, StateChangeFailedException if a
    later controller has written it.

    Source: KafkaController.updateLeaderEpoch (0.8.1, 2.8).
    """
    # After a version conflict Kafka reads and writes again.
    while True:
        stored: LeaderAndIsr | None = yield from _stored(ctx, tp)
        if stored is None:
            raise IllegalStateException(f"{tp} has no state znode: it cannot be reassigned")
        if stored.controller_epoch > ctx.controller_epoch:
            theirs, ours = stored.controller_epoch, ctx.controller_epoch
            raise StateChangeFailedException(
                f"the state znode of {tp} was written by controller epoch {theirs}, ours is {ours}"
            )
        value = stored.new_leader_and_isr(stored.leader, stored.isr, ctx.controller_epoch)
        op = effects.Op("set", zk.state_path(tp), zk.encode_state(value), value.zk_version)
        result: effects.TransactionResult
        (result,) = yield effects.fenced(op)
        if result.is_ok:
            return value._replace(zk_version=result.versions[0] or 0)


def move_reassigned_leader_if_required(
    ctx: ControllerContext,
    tp: TopicPartition,
    done: ReplicaAssignment,
    recipients: Iterable[int] = (),
) -> Handler:
    """Give the leader a new epoch if it is an online target replica; otherwise elect a new leader.

    `done` is the assignment after the reassignment. LeaderAndIsr with a new epoch is sent to
    `recipients`, or to `done.replicas` if `recipients` is empty.

    Source: KafkaController.moveReassignedPartitionLeaderIfRequired (0.8.1, 2.8).
    """
    leader = ctx.leadership[tp].leader
    if leader in done.replicas and ctx.is_replica_online(leader, tp):
        yield from update_leader_epoch_and_send_request(ctx, tp, done, recipients)
    else:
        # If no target replica can be elected, the leadership stays.
        yield from partition_machine.handle_state_changes(
            ctx, (tp,), PartitionState.ONLINE, "reassign"
        )


def stop_removed_replicas(
    ctx: ControllerContext, tp: TopicPartition, brokers: tuple[int, ...]
) -> Handler:
    """Move a partition's replicas on `brokers` through the states of a deletion to NonExistent.

    The controller does not wait for the responses of the brokers.

    Source: KafkaController.stopRemovedReplicasOfReassignedPartition (2.8).
    """
    for state in LEAVING:
        yield from replica_machine.handle_state_changes(
            ctx, _replicas(tp, brokers), state, broker_order=brokers
        )


LEAVING = (
    ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL,
    ReplicaState.NON_EXISTENT,
)  # fmt: skip


def _replicas(tp: TopicPartition, brokers: Iterable[int]) -> tuple[PartitionReplica, ...]:
    return tuple(PartitionReplica(tp, broker_id) for broker_id in brokers)


def _remove_from_reassigning_partitions(
    ctx: ControllerContext, tp: TopicPartition, done: ReplicaAssignment
) -> Handler:
    """Remove a partition's reassignment from the context and from `/admin/reassign_partitions`.

    `done` is the assignment after the reassignment. If the znode has other target replicas for this
    partition, they stay in the znode.

    Source: KafkaController.removePartitionFromReassigningPartitions (2.8).
    """
    if not ctx.rules.alter_isr:
        yield effects.UnregisterZNodeHandler(zk.state_path(tp))
    yield from maybe_remove_from_zk_reassignment(
        ctx, lambda other, replicas: (other, replicas) == (tp, done.replicas)
    )
    yield effects.UpdateContext("partitions_being_reassigned", remove=(tp,))


# ---------------------------------------------------------------- /admin/reassign_partitions


def requested_reassignments(data: bytes) -> Targets:
    """Return the target replicas by partition in the data of `/admin/reassign_partitions`.

    Return {} for data that are not JSON, and for JSON that is no list of reassignments.

    Source: KafkaZkClient.getPartitionReassignment (2.8).
    """
    try:
        return zk.decode_reassignment(data)
    except zk.MalformedZnode:
        return {}


def maybe_remove_from_zk_reassignment(
    ctx: ControllerContext, is_over: Callable[[TopicPartition, tuple[int, ...]], bool]
) -> Handler:
    """Remove each reassignment for which `is_over` is true from `/admin/reassign_partitions`.

    `is_over` gets the partition and its target replicas. If no reassignment is left, delete the
    znode, and queue the event ZkPartitionReassignment, as Kafka does.

    Source: KafkaController.maybeRemoveFromZkReassignment (2.8).
    """
    (stat,) = yield effects.Exists((zk.REASSIGN_PARTITIONS,), watch=True)
    if stat is None:
        return
    (znode,) = yield effects.Read((zk.REASSIGN_PARTITIONS,), watch=True)
    left = {
        tp: replicas
        for tp, replicas in requested_reassignments(znode.data if znode else b"").items()
        if not is_over(tp, replicas)
    }
    if not left:
        yield effects.fenced(effects.Op("delete", zk.REASSIGN_PARTITIONS))
        yield effects.Enqueue(ZkPartitionReassignment())
        return
    yield from set_or_create(zk.REASSIGN_PARTITIONS, zk.encode_reassignment(left))


def set_or_create(path: str, data: bytes) -> Handler:
    """Write `data` to a znode, which is created if it is missing.

    Source: KafkaZkClient.setOrCreatePartitionReassignment (2.8), ZkUtils.updatePersistentPath
    (0.8.1).
    """
    (result,) = yield effects.fenced(effects.Op("set", path, data))
    if result.code == "NoNode":
        yield effects.fenced(effects.Op("create", path, data))
