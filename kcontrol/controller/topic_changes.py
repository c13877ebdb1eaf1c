"""What the controller does when topics appear, vanish or grow.

Source: KafkaController.scala (2.8): processTopicChange, processPartitionModifications, onNewPartitionCreation.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.failover_steps import learn_topics
from kcontrol.effects import Children, Handler, Learn, Read, Unwatch
from kcontrol.events import PartitionModifications, TopicChange
from kcontrol.model import PartitionState, ReplicaState, TopicPartition
from kcontrol.znodes import TOPICS, decode_topic, topic_path


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
        yield from _forget(ctx, gone)
    partitions = yield from learn_topics(ctx, new)
    if new:
        yield from on_new_partition_creation(ctx, partitions)


def _forget(ctx: ControllerContext, topics: tuple[str, ...]) -> Handler:
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
    """Partitions that the topic znode has gained are created; the controller's own rewrites find none."""
    (znode,) = yield Read((topic_path(event.topic),), watch=True)
    if znode is None or ctx.is_queued_for_deletion(event.topic):
        return
    stored = decode_topic(znode.data).partitions
    named = {TopicPartition(event.topic, number): assignment for number, assignment in sorted(stored.items())}
    added = {tp: assignment for tp, assignment in named.items() if tp not in ctx.assignments}
    if added:
        yield Learn("assignments", added)
        yield from on_new_partition_creation(ctx, added)
