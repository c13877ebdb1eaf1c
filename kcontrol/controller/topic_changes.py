"""What the controller does when topics appear, vanish or grow.

Source: KafkaController.scala (2.8): processTopicChange, processPartitionModifications, onNewPartitionCreation.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.failover_steps import learn_topics, listen_to_topics
from kcontrol.effects import Children, Handler, Learn, Op, Read, Unwatch, Writes
from kcontrol.events import PartitionModifications, TopicChange
from kcontrol.model import PartitionState, ReplicaState, TopicPartition
from kcontrol.registration import WriteFailed
from kcontrol.znodes import TOPICS, TopicZnode, decode_topic, encode_topic, partitions_path, topic_path


def topic_change(ctx: ControllerContext, event: TopicChange) -> Handler:
    """New topics get their first leaders; vanished ones are forgotten, but for the states of their partitions and replicas."""
    (names,) = yield Children((TOPICS,), watch=True)
    now = names or ()
    new = tuple(t for t in now if t not in ctx.all_topics)
    gone = tuple(t for t in sorted(ctx.all_topics) if t not in now)
    yield Learn("all_topics", now, clear=True)
    for topic in gone:
        yield Unwatch(topic_path(topic))
    if gone:
        yield from remove_topics(ctx, gone)
    partitions = yield from learn_topics(ctx, new)
    if new:
        yield from on_new_partition_creation(ctx, partitions)


def meet_topics(ctx: ControllerContext, now: tuple[str, ...]) -> Handler:
    """The same where there are listeners: of vanished topics the assignments are forgotten, and nothing else.

    Source: PartitionStateMachine.TopicChangeListener (0.8.1), KafkaController.TopicChange and onNewTopicCreation (0.11, 1.0).
    """
    new = tuple(t for t in now if t not in ctx.all_topics)
    gone = tuple(t for t in sorted(ctx.all_topics) if t not in now)
    yield Learn("all_topics", now, clear=True)
    partitions = yield from learn_topics(ctx, new)
    if gone:
        yield Learn("assignments", remove=tuple(tp for tp in ctx.assignments if tp.topic in gone))
    if new:
        yield from listen_to_topics(ctx, new)
        yield from on_new_partition_creation(ctx, partitions)


def remove_topics(ctx: ControllerContext, topics: tuple[str, ...]) -> Handler:
    """Forget all of these topics but the states of what they consisted of, and that they were ineligible for deletion.

    Source: ControllerContext.removeTopic (2.8).
    """
    for name in ("topics_to_be_deleted", "topics_with_deletion_started", "all_topics"):
        if known := tuple(topic for topic in topics if topic in getattr(ctx, name)):
            yield Learn(name, remove=known)
    lost = tuple(tp for tp in ctx.assignments if tp.topic in topics)
    yield Learn("topic_ids", remove=topics)
    yield Learn("assignments", remove=lost)
    yield Learn("leadership", remove=lost)


def on_new_partition_creation(ctx: ControllerContext, partitions: Iterable[TopicPartition]) -> Handler:
    """New partitions, new replicas, then leaders, then replicas in use."""
    partitions = tuple(partitions)
    yield from partition_machine.move(ctx, partitions, PartitionState.NEW)
    replicas = ctx.replicas_of(partitions)
    yield from replica_machine.move(ctx, replicas, ReplicaState.NEW)
    yield from partition_machine.move(ctx, partitions, PartitionState.ONLINE, "offline")
    yield from replica_machine.move(ctx, replicas, ReplicaState.ONLINE)


def partition_modifications(ctx: ControllerContext, event: PartitionModifications) -> Handler:
    """Partitions that the topic znode has gained are created; the controller's own rewrites find none.

    To a topic that is being deleted none may be added: since 2.0 they are taken out of its znode again.
    """
    (znode,) = yield Read((topic_path(event.topic),), watch=True)
    if znode is None:
        return
    stored = decode_topic(znode.data)
    named = {TopicPartition(event.topic, number): assignment for number, assignment in sorted(stored.partitions.items())}
    added = {tp: assignment for tp, assignment in named.items() if tp not in ctx.assignments}
    if ctx.is_queued_for_deletion(event.topic):
        if added and ctx.rules.reverts_expansion:
            yield from _restore(ctx, event.topic, named)
    elif added:
        yield Learn("assignments", added)
        yield from on_new_partition_creation(ctx, added)


def _restore(ctx: ControllerContext, topic: str, named: Iterable[TopicPartition]) -> Handler:
    """Write the topic znode as it was, with those of the partitions now named in it that have a znode of their own.

    Raises WriteFailed if that is refused. Source: processPartitionModifications, restorePartitionReplicaAssignment (2.0 on).
    """
    (numbers,) = yield Children((partitions_path(topic),))
    kept = {tp.partition: ctx.assignments[tp] for tp in named if str(tp.partition) in (numbers or ())}
    data = encode_topic(TopicZnode(kept, ctx.topic_ids.get(topic)), ctx.rules.topic_znode)
    (result,) = yield Writes(((Op("set", topic_path(topic), data),),))
    if not result.is_ok:
        raise WriteFailed(f"rewriting {topic_path(topic)} failed with {result.code}")
