"""How partitions move where listeners share one lock: six steps in 0.8.0, then twelve.

The topic znode names the old replicas until the last step but one.

RAR are the replicas that are asked for, AR those that are assigned now. Nothing is cancelled, and nothing waits but for the ISR.
Who has resigned keeps what it knew and its listeners, so it still hears of requests; what it then wants to send fails.

Source: KafkaController.onPartitionReassignment and initiateReassignReplicasForTopicPartition, PartitionsReassignedListener,
ReassignedPartitionsIsrChangeListener (0.8.1.1).
"""

from __future__ import annotations

from collections.abc import Collection

from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.broker_order import in_set_order
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.reassignment import (
    Targets,
    bump_and_tell,
    is_in_sync,
    move_leader,
    put,
    require_channels,
    stop_replicas,
    topic_with,
)
from kcontrol.controller.requests import update_metadata
from kcontrol.effects import Complain, Enqueue, Exists, Handler, Learn, Op, Read, Release, Unwatch, Watch, Writes
from kcontrol.events import PartitionReassignmentIsrChange, ZkPartitionReassignment
from kcontrol.generations import EVENT_THREAD
from kcontrol.kafka_json import NotJson
from kcontrol.model import PartitionReplica, PartitionState, ReplicaAssignment, ReplicaState, TopicPartition
from kcontrol.znodes import REASSIGN_PARTITIONS, decode_reassignment, encode_reassignment, state_path, topic_path

Brokers = tuple[int, ...]


class KafkaException(Exception):
    """A request for a reassignment that is not begun."""


# ---------------------------------------------------------------- how it begins


def zk_partition_reassignment(ctx: ControllerContext, event: ZkPartitionReassignment) -> Handler:
    """Begin what the znode names and is not under way, each under the lock anew. Raises MalformedZnode for what is no request."""
    yield Exists((REASSIGN_PARTITIONS,), watch=True)
    (znode,) = yield Read((REASSIGN_PARTITIONS,), watch=True)
    asked = _parsed(znode.data) if znode else {}
    for tp, target in [(tp, target) for tp, target in asked.items() if tp not in ctx.partitions_being_reassigned]:
        yield Release()
        yield from _begin(ctx, tp, target)


def _begin(ctx: ControllerContext, tp: TopicPartition, target: Brokers) -> Handler:
    if ctx.is_queued_for_deletion(tp.topic):
        yield Complain(KafkaException(f"{tp} is not reassigned: its topic is being deleted"))
        yield from remove(ctx, tp)
    else:
        yield from _initiate(ctx, tp, target)


def partition_reassignment(ctx: ControllerContext, event: ZkPartitionReassignment) -> Handler:
    """The same on the event thread, which reads what its listener has been told of. Source: PartitionReassignment (0.11, 1.0)."""
    asked = yield from _requested()
    for tp, target in [(tp, target) for tp, target in asked.items() if tp not in ctx.partitions_being_reassigned]:
        yield from _begin(ctx, tp, target)


def learn_pending_reassignments(ctx: ControllerContext) -> Handler:
    """At failover, before the machines start: what is asked for; what is done or of no topic is taken out of the request."""
    asked = yield from _requested()
    over = [tp for tp, target in asked.items() if tp not in ctx.assignments or ctx.assignments[tp].replicas == target]
    for tp in over:
        yield from remove(ctx, tp)
    pending = {tp: target for tp, target in asked.items() if tp not in over}
    if pending:
        yield Learn("partitions_being_reassigned", pending)


def trigger_pending_reassignments(ctx: ControllerContext) -> Handler:
    """At failover, once the machines run: begin those, and what this broker knew of from an earlier time in office."""
    for tp, target in sorted(ctx.partitions_being_reassigned.items()):
        yield from _initiate(ctx, tp, target)


def resume_reassignments(ctx: ControllerContext) -> Handler:
    """Both of these at once, after the machines have started; so did 0.8.0. Raises KeyError for an unknown partition."""
    asked = yield from _requested()
    done = [tp for tp, target in asked.items() if ctx.assignments[tp].replicas == target]
    for tp in done:
        yield from remove(ctx, tp)
    for tp, target in asked.items():
        if tp not in done:
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
        yield from deletion.halt(ctx, (tp.topic,))
        yield from on_partition_reassignment(ctx, tp, target)
    except Exception as error:
        yield Complain(error)
        yield from remove(ctx, tp)


def _refuse(ctx: ControllerContext, tp: TopicPartition, target: Brokers) -> None:
    """Raise KafkaException for a partition that is unknown or has these replicas already; before 0.10.1 also for dead targets."""
    if tp not in ctx.assignments:
        raise KafkaException(f"{tp} does not exist and is not reassigned")
    if ctx.replicas(tp) == target:
        raise KafkaException(f"{tp} has the replicas {list(target)} already")
    dead = [b for b in target if b not in ctx.live_broker_ids]
    if dead and ctx.rules.refuses_dead_targets:
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
        if (yield from is_in_sync(ctx, tp, target)):
            yield from on_partition_reassignment(ctx, tp, target)
    except Exception as error:
        yield Complain(error)


def on_partition_reassignment(ctx: ControllerContext, tp: TopicPartition, target: Brokers) -> Handler:
    """As many steps as can be done now. Raises whatever goes wrong on the way."""
    steps = six_steps if ctx.rules.reassignment == "six steps" else twelve_steps
    yield from steps(ctx, tp, target)


def six_steps(ctx: ControllerContext, tp: TopicPartition, target: Brokers) -> Handler:
    """1 and 2 while somebody of RAR is not in sync, 3 to 6 once everybody is: until then the topic znode is left alone.

    Source: KafkaController.onPartitionReassignment (0.8.0).
    """
    if not (yield from is_in_sync(ctx, tp, target)):
        yield from _start_new_replicas(ctx, tp, target, ctx.replicas(tp))  # 1
        return
    for broker_id in target:
        yield from replica_machine.move(ctx, (PartitionReplica(tp, broker_id),), ReplicaState.ONLINE)
    leader = ctx.leadership[tp].leader
    if leader not in target or not ctx.is_replica_online(leader, tp):
        yield from partition_machine.move(ctx, (tp,), PartitionState.ONLINE, "reassign")  # 3
    old = [PartitionReplica(tp, b) for b in ctx.replicas(tp) if b not in target]
    for state in (ReplicaState.OFFLINE, ReplicaState.NON_EXISTENT):  # 4
        for replica in old:
            yield from replica_machine.move(ctx, (replica,), state)
    yield from _assign(ctx, tp, target)  # 5
    yield from remove(ctx, tp)  # 6
    yield from require_channels(ctx)
    yield from update_metadata(ctx, ctx.live_or_shutting_down_broker_ids, (tp,))


def _start_new_replicas(ctx: ControllerContext, tp: TopicPartition, target: Brokers, before: Brokers) -> Handler:
    for broker_id in in_set_order(target):
        if broker_id not in before:
            yield from replica_machine.move(ctx, (PartitionReplica(tp, broker_id),), ReplicaState.NEW)


def twelve_steps(ctx: ControllerContext, tp: TopicPartition, target: Brokers) -> Handler:
    """Steps 1 to 3 while somebody of RAR is not in sync, 5 to 12 once everybody is.

    Source: KafkaController.onPartitionReassignment (0.8.1).
    """
    before = ctx.assignments[tp].replicas
    if not (yield from is_in_sync(ctx, tp, target)):
        both = in_set_order((*target, *before))
        yield from _assign(ctx, tp, both)  # 1
        yield from bump_and_tell(ctx, tp, ReplicaAssignment(both))  # 2
        yield from _start_new_replicas(ctx, tp, target, before)  # 3
        return
    for broker_id in target:  # 5
        yield from replica_machine.move(ctx, (PartitionReplica(tp, broker_id),), ReplicaState.ONLINE)
    done = ReplicaAssignment(target)
    yield Learn("assignments", {tp: done})  # 6
    yield from move_leader(ctx, tp, done, before)  # 7
    yield from stop_replicas(ctx, tp, tuple(b for b in before if b not in target))  # 8, 9
    yield from _assign(ctx, tp, target)  # 10
    yield from remove(ctx, tp)  # 11
    yield from require_channels(ctx)
    yield from update_metadata(ctx, ctx.live_or_shutting_down_broker_ids, (tp,))  # 12
    yield from deletion.resume(ctx, (tp.topic,))


def _assign(ctx: ControllerContext, tp: TopicPartition, replicas: Brokers) -> Handler:
    """Write the topic znode, which is created if it is gone, then remember it."""
    yield from put(topic_path(tp.topic), topic_with(ctx, tp, ReplicaAssignment(replicas)))
    yield Learn("assignments", {tp: ReplicaAssignment(replicas)})


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


def remove(ctx: ControllerContext, tp: TopicPartition) -> Handler:
    """Stop listening, take the partition out of the request, which is deleted once it is empty, and forget it.

    Where there is an event thread without listeners the request is written from memory, and looked for again once it is deleted.
    """
    if tp in ctx.partitions_being_reassigned:
        yield Unwatch(state_path(tp))
    of_old = ctx.rules.design != EVENT_THREAD
    asked = (yield from _requested()) if of_old else ctx.partitions_being_reassigned
    left = {other: target for other, target in asked.items() if other != tp}
    if left:
        yield from put(REASSIGN_PARTITIONS, encode_reassignment(left))
    else:
        yield Writes(((Op("delete", REASSIGN_PARTITIONS),),))
        if not of_old:
            yield Enqueue(ZkPartitionReassignment())
    if tp in ctx.partitions_being_reassigned:
        yield Learn("partitions_being_reassigned", remove=(tp,))
