"""How partitions move where listeners share one lock: twelve steps, the old replicas kept in the topic znode until the last.

RAR are the replicas that are asked for, AR those that are assigned now. Nothing is cancelled, and nothing waits but for the ISR.
Who has resigned keeps what it knew and its listeners, so it still hears of requests; what it then wants to send fails.

Source: KafkaController.onPartitionReassignment and initiateReassignReplicasForTopicPartition, PartitionsReassignedListener,
ReassignedPartitionsIsrChangeListener (0.8.1.1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.reassignment import (
    IllegalStateException,
    StateChangeFailedException,
    Targets,
    hold_deletion,
    resume_deletion,
    stop_replicas,
)
from kcontrol.controller.requests import RequestBatch, update_metadata
from kcontrol.effects import Complain, Exists, Handler, Learn, Op, Read, Release, Result, Transaction, Unwatch, Watch
from kcontrol.events import PartitionReassignmentIsrChange, ZkPartitionReassignment
from kcontrol.kafka_json import NotJson
from kcontrol.model import LeaderAndIsr, PartitionReplica, PartitionState, ReplicaAssignment, ReplicaState, TopicPartition
from kcontrol.znodes import (
    REASSIGN_PARTITIONS,
    TopicZnode,
    decode_reassignment,
    decode_state,
    encode_reassignment,
    encode_state,
    encode_topic,
    state_path,
    topic_path,
)

Brokers = tuple[int, ...]


class KafkaException(Exception):
    """A request for a reassignment that is not begun."""


class NullPointerException(Exception):
    """There is no channel manager to send through: this broker has resigned."""


# ---------------------------------------------------------------- how it begins


def zk_partition_reassignment(ctx: ControllerContext, event: ZkPartitionReassignment) -> Handler:
    """Begin what the znode names and is not under way, each under the lock anew. Raises MalformedZnode for what is no request."""
    yield Exists((REASSIGN_PARTITIONS,), watch=True)
    (znode,) = yield Read((REASSIGN_PARTITIONS,), watch=True)
    asked = _parsed(znode.data) if znode else {}
    for tp, target in [(tp, target) for tp, target in asked.items() if tp not in ctx.partitions_being_reassigned]:
        yield Release()
        if ctx.is_queued_for_deletion(tp.topic):
            yield Complain(KafkaException(f"{tp} is not reassigned: its topic is being deleted"))
            yield from _remove(ctx, tp)
        else:
            yield from _initiate(ctx, tp, target)


def learn_pending_reassignments(ctx: ControllerContext) -> Handler:
    """At failover, before the machines start: what is asked for; what is done or of no topic is taken out of the request."""
    asked = yield from _requested()
    over = [tp for tp, target in asked.items() if tp not in ctx.assignments or ctx.assignments[tp].replicas == target]
    for tp in over:
        yield from _remove(ctx, tp)
    pending = {tp: target for tp, target in asked.items() if tp not in over}
    if pending:
        yield Learn("partitions_being_reassigned", pending)


def trigger_pending_reassignments(ctx: ControllerContext) -> Handler:
    """At failover, once the machines run: begin those, and what this broker knew of from an earlier time in office."""
    for tp, target in sorted(ctx.partitions_being_reassigned.items()):
        yield from _initiate(ctx, tp, target)


def resume_on(ctx: ControllerContext, brokers: Collection[int]) -> Handler:
    """Brokers have come up: begin again with what is to move to them."""
    for tp, target in sorted(ctx.partitions_being_reassigned.items()):
        if any(b in brokers for b in target):
            yield from on_partition_reassignment(ctx, tp, target)


def _initiate(ctx: ControllerContext, tp: TopicPartition, target: Brokers) -> Handler:
    """Listen to the state znode and begin; whatever goes wrong takes the partition out of the request."""
    try:
        _refuse(ctx, tp, target)
        yield Watch(state_path(tp))
        yield Exists((state_path(tp),), watch=True)
        yield Learn("partitions_being_reassigned", {tp: target})
        yield from hold_deletion(ctx, tp.topic)
        yield from on_partition_reassignment(ctx, tp, target)
    except Exception as error:
        yield Complain(error)
        yield from _remove(ctx, tp)


def _refuse(ctx: ControllerContext, tp: TopicPartition, target: Brokers) -> None:
    """Raise KafkaException for a partition that is unknown or has these replicas already, and for a target that is not alive."""
    if tp not in ctx.assignments:
        raise KafkaException(f"{tp} does not exist and is not reassigned")
    if ctx.replicas(tp) == target:
        raise KafkaException(f"{tp} has the replicas {list(target)} already")
    if dead := [b for b in target if b not in ctx.live_broker_ids]:
        raise KafkaException(f"{tp} is not reassigned to {list(target)}: {dead} are not alive")


# ---------------------------------------------------------------- how it goes on


def partition_reassignment_isr_change(ctx: ControllerContext, event: PartitionReassignmentIsrChange) -> Handler:
    """The state znode of a partition has changed: go on if everything that is asked for is in sync now."""
    tp = event.partition
    yield Exists((state_path(tp),), watch=True)
    (znode,) = yield Read((state_path(tp),), watch=True)
    target = ctx.partitions_being_reassigned.get(tp)
    if znode is None or target is None:
        return
    try:
        if (yield from _is_in_sync(tp, target)):
            yield from on_partition_reassignment(ctx, tp, target)
    except Exception as error:
        yield Complain(error)


def on_partition_reassignment(ctx: ControllerContext, tp: TopicPartition, target: Brokers) -> Handler:
    """Steps 1 to 3 while somebody of RAR is not in sync, 5 to 12 once everybody is. Raises whatever goes wrong on the way."""
    before = ctx.assignments[tp].replicas
    if not (yield from _is_in_sync(tp, target)):
        both = in_set_order((*target, *before))
        yield from _assign(ctx, tp, both)  # 1
        yield from _bump_and_tell(ctx, tp, both, both)  # 2
        for broker_id in in_set_order(target):  # 3
            if broker_id not in before:
                yield from replica_machine.move(ctx, (PartitionReplica(tp, broker_id),), ReplicaState.NEW)
        return
    for broker_id in target:  # 5
        yield from replica_machine.move(ctx, (PartitionReplica(tp, broker_id),), ReplicaState.ONLINE)
    yield from _move_leader(ctx, tp, target)  # 6, 7
    yield from stop_replicas(ctx, tp, tuple(b for b in before if b not in target))  # 8, 9
    yield from _assign(ctx, tp, target)  # 10
    yield from _remove(ctx, tp)  # 11
    _require_channels(ctx)
    yield from update_metadata(ctx, ctx.live_or_shutting_down_broker_ids, (tp,))  # 12
    yield from resume_deletion(ctx, tp.topic)


def _is_in_sync(tp: TopicPartition, target: Brokers) -> Handler:
    stored = yield from _stored(tp)
    return stored is not None and set(target) <= set(stored.isr)


def _stored(tp: TopicPartition) -> Handler:
    """Return what the state znode says, or None; like every read of what is listened to, this watches it."""
    (znode,) = yield Read((state_path(tp),), watch=True)
    return decode_state(znode.data, znode.stat.version) if znode else None


def _assign(ctx: ControllerContext, tp: TopicPartition, replicas: Brokers) -> Handler:
    """Write the topic znode, which is created if it is gone, then remember it. Source: ZkUtils.updatePersistentPath (0.8.1.1)."""
    known = {other.partition: held for other, held in ctx.assignments.items() if other.topic == tp.topic}
    znode = TopicZnode(known | {tp.partition: ReplicaAssignment(replicas)})
    yield from _put(topic_path(tp.topic), encode_topic(znode, ctx.rules.topic_znode))
    yield Learn("assignments", {tp: ReplicaAssignment(replicas)})


def _put(path: str, data: bytes) -> Handler:
    result: Result = yield Transaction((Op("set", path, data),))
    if result.code == "NoNode":
        yield Transaction((Op("create", path, data),))


def _move_leader(ctx: ControllerContext, tp: TopicPartition, target: Brokers) -> Handler:
    """AR is RAR in memory from now on; who leads and may stay is told so, otherwise somebody of RAR is elected."""
    leader, both = ctx.leadership[tp].leader, ctx.assignments[tp].replicas
    yield Learn("assignments", {tp: ReplicaAssignment(target)})
    if leader in target and leader in ctx.live_broker_ids:
        yield from _bump_and_tell(ctx, tp, both, target)
    else:
        yield from partition_machine.move(ctx, (tp,), PartitionState.ONLINE, "reassign")


def _bump_and_tell(ctx: ControllerContext, tp: TopicPartition, brokers: Brokers, replicas: Brokers) -> Handler:
    """A new leader epoch, of which `brokers` are told; what the controller remembers of the leadership stays as it was.

    Source: KafkaController.updateLeaderEpochAndSendRequest and updateLeaderEpoch (0.8.1.1).
    """
    value = yield from _bump_leader_epoch(ctx, tp)
    _require_channels(ctx)
    batch = RequestBatch()
    batch.add_leader_and_isr(ctx, brokers, tp, value, ReplicaAssignment(replicas), is_new=False)
    yield from batch.send(ctx)


def _bump_leader_epoch(ctx: ControllerContext, tp: TopicPartition) -> Handler:
    while True:
        stored: LeaderAndIsr | None = yield from _stored(tp)
        if stored is None:
            raise IllegalStateException(f"{tp} has no state znode: it cannot be reassigned")
        if stored.controller_epoch > ctx.controller_epoch:
            theirs, ours = stored.controller_epoch, ctx.controller_epoch
            raise StateChangeFailedException(f"the state znode of {tp} was written by controller epoch {theirs}, ours is {ours}")
        value = stored.decided(stored.leader, stored.isr)._replace(controller_epoch=ctx.controller_epoch)
        result: Result = yield Transaction((Op("set", state_path(tp), encode_state(value), value.zk_version),))
        if result.is_ok:
            return value._replace(zk_version=result.versions[0] or 0)


def _require_channels(ctx: ControllerContext) -> None:
    if not ctx.has_channels:
        raise NullPointerException("this broker has resigned and sends nothing")


# ---------------------------------------------------------------- the request in /admin/reassign_partitions


def _requested() -> Handler:
    """Return what the znode asks for. Raises MalformedZnode for JSON of another form."""
    (znode,) = yield Read((REASSIGN_PARTITIONS,), watch=True)
    return _parsed(znode.data) if znode else {}


def _parsed(data: bytes) -> Targets:
    """The targets by partition; no JSON at all names none. Source: ZkUtils.parsePartitionReassignmentData (0.8.1.1)."""
    try:
        return decode_reassignment(data)
    except NotJson:
        return {}


def _remove(ctx: ControllerContext, tp: TopicPartition) -> Handler:
    """Stop listening, take the partition out of the request, which is deleted once it is empty, and forget it."""
    if tp in ctx.partitions_being_reassigned:
        yield Unwatch(state_path(tp))
    asked = yield from _requested()
    left = {other: target for other, target in asked.items() if other != tp}
    if left:
        yield from _put(REASSIGN_PARTITIONS, encode_reassignment(left))
    else:
        yield Transaction((Op("delete", REASSIGN_PARTITIONS),))
    if tp in ctx.partitions_being_reassigned:
        yield Learn("partitions_being_reassigned", remove=(tp,))


def in_set_order(ids: Iterable[int]) -> Brokers:
    """Each of these once, in the order in which Scala's immutable set lists them: as they came up to four, by hash from five on.

    >>> in_set_order((2, 3, 2, 1))
    (2, 3, 1)
    >>> in_set_order((4, 5, 6, 1, 2, 3))
    (5, 1, 6, 2, 3, 4)

    Source: scala.collection.immutable.HashSet.improve and HashTrieSet (2.8 to 2.10).
    """
    found = tuple(dict.fromkeys(ids))
    return found if len(found) <= 4 else tuple(sorted(found, key=_places))


def _places(number: int) -> tuple[int, ...]:
    """The place at each level of the trie, five bits a level from the lowest."""
    h = (number + ~(number << 9)) & 0xFFFFFFFF
    h ^= h >> 14
    h = (h + (h << 4)) & 0xFFFFFFFF
    h ^= h >> 10
    return tuple(h >> level & 31 for level in range(0, 32, 5))
