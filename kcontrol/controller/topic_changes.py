"""Handles topics that are created, that are deleted in ZooKeeper, or that get more partitions.

Source: KafkaController.scala (2.8): processTopicChange, processPartitionModifications,
onNewPartitionCreation.
"""

from collections.abc import Iterable

from kcontrol.broker.registration import WriteFailed
from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.failover_steps import update_topics
from kcontrol.core import effects
from kcontrol.core import znodes as zk
from kcontrol.core.effects import Handler
from kcontrol.core.events import PartitionModifications, TopicChange
from kcontrol.core.model import PartitionState, ReplicaState, TopicPartition


def topic_change(ctx: ControllerContext, event: TopicChange) -> Handler:
    """Create the partitions of new topics; remove topics without a znode from the context.

    The states of a removed topic's partitions and replicas stay in the context.

    Source: KafkaController.processTopicChange (2.8).
    """
    (names,) = yield effects.Children((zk.TOPICS,), watch=True)
    now = names or ()
    new = tuple(t for t in now if t not in ctx.all_topics)
    gone = tuple(t for t in sorted(ctx.all_topics) if t not in now)
    yield effects.UpdateContext("all_topics", now, clear=True)
    for topic in gone:
        yield effects.UnregisterZNodeHandler(zk.topic_path(topic))
    if gone:
        yield from remove_topics(ctx, gone)
    partitions = yield from update_topics(ctx, new)
    if new:
        yield from on_new_partition_creation(ctx, partitions)


def remove_topics(ctx: ControllerContext, topics: tuple[str, ...]) -> Handler:
    """Remove these topics from the context, except the states of their partitions and replicas.

    The entries in `topics_ineligible_for_deletion` stay too.

    Source: ControllerContext.removeTopic (2.8).
    """
    for name in ("topics_to_be_deleted", "topics_with_deletion_started", "all_topics"):
        if known := tuple(topic for topic in topics if topic in getattr(ctx, name)):
            yield effects.UpdateContext(name, remove=known)
    lost = tuple(tp for tp in ctx.assignments if tp.topic in topics)
    yield effects.UpdateContext("topic_ids", remove=topics)
    yield effects.UpdateContext("assignments", remove=lost)
    yield effects.UpdateContext("leadership", remove=lost)


def on_new_partition_creation(
    ctx: ControllerContext, partitions: Iterable[TopicPartition]
) -> Handler:
    """Move new partitions and replicas to New, then elect leaders, then move the replicas Online.

    Source: KafkaController.onNewPartitionCreation (2.8).
    """
    partitions = tuple(partitions)
    yield from partition_machine.handle_state_changes(ctx, partitions, PartitionState.NEW)
    replicas = ctx.replicas_of(partitions)
    yield from replica_machine.handle_state_changes(ctx, replicas, ReplicaState.NEW)
    yield from partition_machine.handle_state_changes(
        ctx, partitions, PartitionState.ONLINE, "offline"
    )
    yield from replica_machine.handle_state_changes(ctx, replicas, ReplicaState.ONLINE)


def partition_modifications(ctx: ControllerContext, event: PartitionModifications) -> Handler:
    """Create the partitions that the topic znode names and the context does not have.

    A topic that is being deleted gets no partition.

    Source: KafkaController.processPartitionModifications (2.0, 2.8).
    """
    (znode,) = yield effects.Read((zk.topic_path(event.topic),), watch=True)
    if znode is None:
        return
    named = zk.decode_topic(znode.data).assignments(event.topic)
    added = {tp: assignment for tp, assignment in named.items() if tp not in ctx.assignments}
    # Before 2.0 the added partitions of a topic that is being deleted stay in the topic znode;
    # since 2.0 the controller removes them. After the controller's own writes no partition is new.
    if ctx.is_queued_for_deletion(event.topic):
        if added and ctx.rules.reverts_expansion:
            yield from _restore_partition_replica_assignment(ctx, event.topic, named)
    elif added:
        yield effects.UpdateContext("assignments", added)
        yield from on_new_partition_creation(ctx, added)


def _restore_partition_replica_assignment(
    ctx: ControllerContext, topic: str, named: Iterable[TopicPartition]
) -> Handler:
    """Write the topic znode without the partitions that were added during the topic's deletion.

    `named` are all partitions in the topic znode. Raises WriteFailed if ZooKeeper refuses the
    write.

    Source: KafkaController.processPartitionModifications, restorePartitionReplicaAssignment (2.0,
    2.8).
    """
    (numbers,) = yield effects.Children((zk.partitions_path(topic),))
    # An old partition has a znode of its own.
    kept = {
        tp.partition: ctx.assignments[tp] for tp in named if str(tp.partition) in (numbers or ())
    }
    data = zk.encode_topic(zk.TopicZnode(kept, ctx.topic_ids.get(topic)), ctx.rules.topic_znode)
    (result,) = yield effects.fenced(effects.Op("set", zk.topic_path(topic), data))
    if not result.is_ok:
        raise WriteFailed(f"rewriting {zk.topic_path(topic)} failed with {result.code}")
