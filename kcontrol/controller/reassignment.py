"""How a partition moves to other replicas, once it is known where to: the phases of a reassignment, in Kafka's steps.

The topic znode holds the truth: replicas, those that are being added, those that are being removed. Phase U writes it, phase A
starts what is added and waits for it, phase B, once the whole target is in sync, lets go of what is removed.

Source: KafkaController.onPartitionReassignment and what it calls (2.8), whose comment names the steps; KIP-455.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.broker_order import in_set_order
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.requests import RequestBatch, update_metadata
from kcontrol.effects import Enqueue, Exists, Handler, Learn, Op, Read, Result, Transaction, Unwatch, Watch, Writes
from kcontrol.events import PartitionReassignmentIsrChange, ZkPartitionReassignment
from kcontrol.model import LeaderAndIsr, PartitionReplica, PartitionState, ReplicaAssignment, ReplicaState, TopicPartition
from kcontrol.znodes import (
    CONTROLLER,
    REASSIGN_PARTITIONS,
    MalformedZnode,
    TopicZnode,
    decode_reassignment,
    decode_state,
    encode_reassignment,
    encode_state,
    encode_topic,
    state_path,
    topic_path,
)

Targets = dict[TopicPartition, tuple[int, ...]]


class StateChangeFailedException(Exception):
    """A state znode was written by a later controller."""


class IllegalStateException(Exception):
    """Something is missing that a partition with replicas has."""


class NullPointerException(Exception):
    """There is no channel manager to send through: this broker has resigned."""


def current(ctx: ControllerContext, tp: TopicPartition) -> ReplicaAssignment:
    """What is known of a partition's replicas; of an unknown one, that it has none."""
    return ctx.assignments.get(tp, ReplicaAssignment(()))


def on_partition_reassignment(ctx: ControllerContext, tp: TopicPartition, wanted: ReplicaAssignment) -> Handler:
    """Phase U, then A or B. Raises StateChangeFailedException and IllegalStateException, between any two steps."""
    yield from deletion.halt(ctx, (tp.topic,))
    yield from _update_current(ctx, tp, wanted)
    if not (yield from _is_complete(ctx, tp, wanted)):
        yield from bump_and_tell(ctx, tp, wanted)  # A1
        for broker_id in wanted.adding:  # A2
            yield from replica_machine.move(ctx, (PartitionReplica(tp, broker_id),), ReplicaState.NEW)
        return
    done = ReplicaAssignment(wanted.target)
    yield from replica_machine.move(ctx, _replicas(tp, wanted.adding), ReplicaState.ONLINE)  # B1
    yield Learn("assignments", {tp: done})  # B2
    yield from move_leader(ctx, tp, done)  # B3
    yield from stop_replicas(ctx, tp, wanted.removing)  # B4, B5
    yield from _write_assignment(ctx, tp, done)  # B6
    yield from _forget(ctx, tp, done)  # B7
    yield from update_metadata(ctx, ctx.live_or_shutting_down_broker_ids, (tp,))  # B8
    yield from deletion.resume(ctx, (tp.topic,))


# ---------------------------------------------------------------- phase U


def _update_current(ctx: ControllerContext, tp: TopicPartition, wanted: ReplicaAssignment) -> Handler:
    before = current(ctx, tp)
    if wanted != before:
        yield from _write_assignment(ctx, tp, wanted)  # U1
        yield Learn("assignments", {tp: wanted})  # U2
        yield from stop_replicas(ctx, tp, tuple(b for b in before.replicas if b not in wanted.replicas))  # U3
    if not ctx.rules.alter_isr:
        yield Watch(state_path(tp))
    yield Learn("partitions_being_reassigned", {tp: wanted.target})


def _write_assignment(ctx: ControllerContext, tp: TopicPartition, assignment: ReplicaAssignment) -> Handler:
    (result,) = yield Writes(((Op("set", topic_path(tp.topic), topic_with(ctx, tp, assignment)),),))
    if not result.is_ok:
        raise IllegalStateException(f"the assignment of {tp} was not written: {result.code}")


def topic_with(ctx: ControllerContext, tp: TopicPartition, assignment: ReplicaAssignment) -> bytes:
    """The topic znode as it is known, but for this partition."""
    known = {other.partition: held for other, held in ctx.assignments.items() if other.topic == tp.topic}
    return encode_topic(TopicZnode(known | {tp.partition: assignment}, ctx.topic_ids.get(tp.topic)), ctx.rules.topic_znode)


# ---------------------------------------------------------------- is it complete?


def _is_complete(ctx: ControllerContext, tp: TopicPartition, wanted: ReplicaAssignment) -> Handler:
    return not wanted.is_being_reassigned or (yield from is_in_sync(ctx, tp, wanted.target))


def is_in_sync(ctx: ControllerContext, tp: TopicPartition, target: Collection[int]) -> Handler:
    """Whether all of these are in the ISR, by what ZooKeeper says now."""
    stored = yield from _stored(ctx, tp)
    return stored is not None and set(target) <= set(stored.isr)


def maybe_complete(ctx: ControllerContext, tp: TopicPartition) -> Handler:
    """Go on with a reassignment if it can be finished now. Source: KafkaController.maybeCompleteReassignment (2.8)."""
    wanted = current(ctx, tp)
    if (yield from _is_complete(ctx, tp, wanted)):
        yield from on_partition_reassignment(ctx, tp, wanted)


def partition_reassignment_isr_change(ctx: ControllerContext, event: PartitionReassignmentIsrChange) -> Handler:
    """The state znode of a partition has changed, which may be what its reassignment waits for."""
    if event.partition in ctx.partitions_being_reassigned:
        yield from maybe_complete(ctx, event.partition)


def maybe_complete_those(ctx: ControllerContext, partitions: Iterable[TopicPartition]) -> Handler:
    """The same for what has moved out of several; those that are not being reassigned are left alone."""
    for tp in partitions:
        if tp in ctx.partitions_being_reassigned:
            yield from maybe_complete(ctx, tp)


def maybe_resume(ctx: ControllerContext, wants: Callable[[TopicPartition], bool]) -> Handler:
    """Begin again with those reassignments that `wants` names. Source: KafkaController.maybeResumeReassignments (2.8)."""
    for tp in sorted(ctx.partitions_being_reassigned):
        if wants(tp):
            yield from on_partition_reassignment(ctx, tp, current(ctx, tp))


def resume_on(ctx: ControllerContext, brokers: Collection[int]) -> Handler:
    """Brokers have come up: begin again with what is to move to them."""
    yield from maybe_resume(ctx, lambda tp: any(b in brokers for b in current(ctx, tp).target))


# ---------------------------------------------------------------- steps of phases A and B


def _stored(ctx: ControllerContext, tp: TopicPartition) -> Handler:
    """Return what the state znode says, or None; one that is listened to is watched again."""
    (znode,) = yield Read((state_path(tp),), watch=not ctx.rules.alter_isr)
    return decode_state(znode.data, znode.stat.version) if znode else None


def bump_and_tell(ctx: ControllerContext, tp: TopicPartition, assignment: ReplicaAssignment, told: Iterable[int] = ()) -> Handler:
    """A new leader epoch, for brokers take nothing over without one; whoever is being added is told that the replica is new.

    The others that are told are the origin, or `told`. Raises NullPointerException on a broker that has resigned.
    Source: KafkaController.updateLeaderEpochAndSendRequest (0.8.1, 2.8).
    """
    value = yield from _bump_leader_epoch(ctx, tp)
    if ctx.rules.bumped_epoch_is_cached:
        yield Learn("leadership", {tp: value})
    yield from require_channels(ctx)
    batch = RequestBatch()
    batch.add_leader_and_isr(ctx, told or assignment.origin, tp, value, assignment, is_new=False)
    batch.add_leader_and_isr(ctx, assignment.adding, tp, value, assignment, is_new=ctx.rules.added_replica_is_new)
    yield from batch.send(ctx)


def require_channels(ctx: ControllerContext) -> Handler:
    """Raise NullPointerException where there is no channel manager to send through: only listeners come to that.

    Since 0.9 the broker then gives up `/controller`, whoever it names. Source: KafkaController.sendUpdateMetadataRequest (0.9.0).
    """
    if ctx.is_active:
        return
    if ctx.rules.mute_send == "deletes /controller":
        yield Learn("active_controller_id", -1)
        yield Transaction((Op("delete", CONTROLLER),))
    raise NullPointerException("this broker has resigned and sends nothing")


def _bump_leader_epoch(ctx: ControllerContext, tp: TopicPartition) -> Handler:
    """Write leader and ISR as they are with the next leader epoch, trying again after a lost race; return what was written.

    Source: KafkaController.updateLeaderEpoch (0.8.1, 2.8).
    """
    while True:
        stored: LeaderAndIsr | None = yield from _stored(ctx, tp)
        if stored is None:
            raise IllegalStateException(f"{tp} has no state znode: it cannot be reassigned")
        if stored.controller_epoch > ctx.controller_epoch:
            theirs, ours = stored.controller_epoch, ctx.controller_epoch
            raise StateChangeFailedException(f"the state znode of {tp} was written by controller epoch {theirs}, ours is {ours}")
        value = stored.decided(stored.leader, stored.isr)._replace(controller_epoch=ctx.controller_epoch)
        result: Result
        (result,) = yield Writes(((Op("set", state_path(tp), encode_state(value), value.zk_version),),))
        if result.is_ok:
            return value._replace(zk_version=result.versions[0] or 0)


def move_leader(ctx: ControllerContext, tp: TopicPartition, done: ReplicaAssignment, told: Iterable[int] = ()) -> Handler:
    """Who leads and stays leads on, under a new leader epoch; otherwise one of the target is elected.

    Source: KafkaController.moveReassignedPartitionLeaderIfRequired (0.8.1, 2.8).
    """
    leader = ctx.leadership[tp].leader
    if leader in done.replicas and ctx.is_replica_online(leader, tp):
        yield from bump_and_tell(ctx, tp, done, told)
    else:
        yield from partition_machine.move(ctx, (tp,), PartitionState.ONLINE, "reassign")


def stop_replicas(ctx: ControllerContext, tp: TopicPartition, brokers: tuple[int, ...]) -> Handler:
    """Out of the ISR, off the disk, out of memory; nobody waits for the brokers' answers.

    Source: KafkaController.stopRemovedReplicasOfReassignedPartition (2.8).
    """
    for state in LEAVING:
        yield from replica_machine.move(ctx, _replicas(tp, brokers), state, walked=in_set_order(brokers))


LEAVING = (ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL, ReplicaState.NON_EXISTENT)


def _replicas(tp: TopicPartition, brokers: Iterable[int]) -> tuple[PartitionReplica, ...]:
    return tuple(PartitionReplica(tp, broker_id) for broker_id in brokers)


def _forget(ctx: ControllerContext, tp: TopicPartition, done: ReplicaAssignment) -> Handler:
    """Nothing is left to wait for; a request for this very result is done, one for another is not.

    Source: KafkaController.removePartitionFromReassigningPartitions (2.8).
    """
    if not ctx.rules.alter_isr:
        yield Unwatch(state_path(tp))
    yield from remove_requests(ctx, lambda other, replicas: (other, replicas) == (tp, done.replicas))
    yield Learn("partitions_being_reassigned", remove=(tp,))


# ---------------------------------------------------------------- the request in /admin/reassign_partitions


def requested(data: bytes) -> Targets:
    """What a request names; nothing if it cannot be read. Source: KafkaZkClient.getPartitionReassignment (2.8)."""
    try:
        return decode_reassignment(data)
    except MalformedZnode:
        return {}


def remove_requests(ctx: ControllerContext, is_over: Callable[[TopicPartition, tuple[int, ...]], bool]) -> Handler:
    """Take what is over out of the znode; an empty request is deleted, and looked for again.

    Source: KafkaController.maybeRemoveFromZkReassignment (2.8).
    """
    (stat,) = yield Exists((REASSIGN_PARTITIONS,), watch=True)
    if stat is None:
        return
    (znode,) = yield Read((REASSIGN_PARTITIONS,), watch=True)
    left = {tp: replicas for tp, replicas in requested(znode.data if znode else b"").items() if not is_over(tp, replicas)}
    if not left:
        yield Writes(((Op("delete", REASSIGN_PARTITIONS),),))
        yield Enqueue(ZkPartitionReassignment())
        return
    yield from put(REASSIGN_PARTITIONS, encode_reassignment(left))


def put(path: str, data: bytes) -> Handler:
    """Write a znode, which is created if it is gone.

    Source: KafkaZkClient.setOrCreatePartitionReassignment (2.8), ZkUtils.updatePersistentPath (0.8.1).
    """
    (result,) = yield Writes(((Op("set", path, data),),))
    if result.code == "NoNode":
        yield Writes(((Op("create", path, data),),))
