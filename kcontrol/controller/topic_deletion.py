"""Deletes topics: the states of the partitions, then the replicas on brokers, then the znodes.

`/admin/delete_topics/<topic>` is deleted last, so a new controller finds each deletion that has not
ended.

Requests to delete topics are stored only in ZooKeeper, and every failover reads them again. Up to
1.0 a failover can come too late: once the first state znode has been deleted, the next controller
cannot move the replicas of its partition to Offline, and the request stays.

Source: TopicDeletionManager.scala, KafkaController.processTopicDeletion and
fetchTopicDeletionsInProgress (2.8).
"""

# After each change that can let the deletion of a queued topic continue, `resume_deletions` tries
# again. A topic is ineligible while a replica is on a dead broker or a reassignment runs.
from collections.abc import Collection, Iterable

from kcontrol.broker.registration import WriteFailed
from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.failover_steps import delete_all
from kcontrol.controller.replica_machine import INELIGIBLE, OFFLINE, STARTED, SUCCESSFUL
from kcontrol.controller.request_batch import send_update_metadata_request
from kcontrol.controller.topic_changes import remove_topics
from kcontrol.core import effects
from kcontrol.core.effects import Handler
from kcontrol.core.events import TopicDeletion, TopicDeletionStopReplicaResponseReceived
from kcontrol.core.model import PartitionReplica, PartitionState, TopicPartition
from kcontrol.core.znodes import DELETE_TOPICS, delete_topic_path, topic_config_path, topic_path

Replicas = list[PartitionReplica]


# ---------------------------------------------------------------- what is asked for


def topic_deletion(ctx: ControllerContext, event: TopicDeletion) -> Handler:
    """Read `/admin/delete_topics`, and queue the topics that it names.

    Source: KafkaController.processTopicDeletion (2.8).
    """
    (names,) = yield effects.Children((DELETE_TOPICS,), watch=True)
    yield from queue_topic_deletions(ctx, names or ())


def queue_topic_deletions(ctx: ControllerContext, names: Iterable[str]) -> Handler:
    """Queue the known topics in `names` for deletion, if `delete.topic.enable` is true.

    Delete `/admin/delete_topics/<topic>` of the unknown topics or, if the setting is false, of all
    topics in `names`.

    Source: KafkaController.processTopicDeletion (2.8).
    """
    known = yield from delete_unknown_requests(ctx, names)
    if not known:
        return
    if ctx.deletes_topics:
        # The mark has no effect here, since it applies to queued topics alone; Kafka has this
        # order.
        yield from mark_topics_ineligible_for_deletion(ctx, topics_being_reassigned(ctx))
        yield from enqueue_topics_for_deletion(ctx, known)
    else:
        yield from delete_all(tuple(map(delete_topic_path, known)))


def delete_unknown_requests(ctx: ControllerContext, names: Iterable[str]) -> Handler:
    """Returns the known topics, in the order of `names`."""
    unknown = tuple(name for name in names if name not in ctx.all_topics)
    if unknown:
        yield from delete_all(tuple(map(delete_topic_path, unknown)))
    return tuple(name for name in names if name not in unknown)


def topics_being_reassigned(ctx: ControllerContext) -> frozenset[str]:
    return frozenset(tp.topic for tp in ctx.partitions_being_reassigned)


def enqueue_topics_for_deletion(ctx: ControllerContext, topics: Iterable[str]) -> Handler:
    """Put topics into the queue of deletions, then try to delete the queued topics.

    Source: TopicDeletionManager.enqueueTopicsForDeletion (2.8).
    """
    if new := tuple(topic for topic in topics if topic not in ctx.topics_to_be_deleted):
        yield effects.UpdateContext("topics_to_be_deleted", new)
    yield from ctx.design.resume_deletions(ctx)


# ---------------------------------------------------------------- at failover


def fetch_topic_deletions_in_progress(ctx: ControllerContext) -> Handler:
    """At a failover, queue the topics in `/admin/delete_topics` for deletion.

    Topics with an offline replica or a reassignment are ineligible. If `delete.topic.enable` is
    false, delete the children of `/admin/delete_topics` instead.

    Source: KafkaController.fetchTopicDeletionsInProgress, TopicDeletionManager.init (2.8).
    """
    (names,) = yield effects.Children((DELETE_TOPICS,), watch=True)
    if ctx.deletes_topics:
        yield from init_topic_deletions(
            ctx, names or (), topics_with_offline_replicas(ctx) | topics_being_reassigned(ctx)
        )
    elif names:
        yield from delete_all(tuple(map(delete_topic_path, names)))


def init_topic_deletions(
    ctx: ControllerContext, topics: Collection[str], ineligible: Collection[str]
) -> Handler:
    """An equal set in the context is not stored again."""
    halted = {topic for topic in topics if topic in ineligible}
    fields = {"topics_to_be_deleted": set(topics), "topics_ineligible_for_deletion": halted}
    for name, wanted in fields.items():
        if getattr(ctx, name) != wanted:
            yield effects.UpdateContext(name, tuple(sorted(wanted)), clear=True)


def topics_with_offline_replicas(ctx: ControllerContext) -> frozenset[str]:
    """Return the topics in the context that have an assigned replica which is not online."""
    return frozenset(
        tp.topic
        for tp, assignment in ctx.assignments.items()
        if not all(ctx.is_replica_online(b, tp) for b in assignment.replicas)
    )


def try_topic_deletion(ctx: ControllerContext) -> Handler:
    """At a failover, after the state machines have started, try to delete the queued topics.

    Do nothing if `delete.topic.enable` is false.

    Source: TopicDeletionManager.tryTopicDeletion (2.8).
    """
    if ctx.deletes_topics:
        yield from ctx.design.resume_deletions(ctx)


# ---------------------------------------------------------------- halt, resume, fail, succeed


def mark_topics_ineligible_for_deletion(ctx: ControllerContext, topics: Collection[str]) -> Handler:
    """Mark the queued topics among `topics` as ineligible: their deletion does not start.

    The mark stays until `resume_deletion_for_topics` is called for the topic, for example when a
    reassignment has ended.

    Source: TopicDeletionManager.markTopicIneligibleForDeletion (2.8).
    """
    waiting = (
        ctx.topics_to_be_deleted - ctx.topics_ineligible_for_deletion if ctx.deletes_topics else ()
    )
    if halted := tuple(sorted(topic for topic in waiting if topic in topics)):
        yield effects.UpdateContext("topics_ineligible_for_deletion", halted)


def resume_deletion_for_topics(ctx: ControllerContext, topics: Iterable[str]) -> Handler:
    """Make the queued topics among `topics` eligible, then try to delete all queued topics.

    Source: TopicDeletionManager.resumeDeletionForTopics (2.8).
    """
    resumed = sorted({topic for topic in topics if ctx.is_queued_for_deletion(topic)})
    if not resumed:
        return
    if halted := tuple(topic for topic in resumed if topic in ctx.topics_ineligible_for_deletion):
        yield effects.UpdateContext("topics_ineligible_for_deletion", remove=halted)
    yield from ctx.design.resume_deletions(ctx)


def fail_replica_deletion(ctx: ControllerContext, replicas: Iterable[PartitionReplica]) -> Handler:
    """Move replicas of queued topics to ReplicaDeletionIneligible; mark their topics ineligible.

    Then try to delete the queued topics. Replicas of other topics stay unchanged.

    Source: TopicDeletionManager.failReplicaDeletion (2.8).
    """
    failed = [r for r in replicas if ctx.is_queued_for_deletion(r.topic)]
    if failed:
        yield from replica_machine.handle_state_changes(ctx, failed, INELIGIBLE)
        yield from mark_topics_ineligible_for_deletion(ctx, {r.topic for r in failed})
        yield from ctx.design.resume_deletions(ctx)


def complete_replica_deletion(
    ctx: ControllerContext, replicas: Iterable[PartitionReplica]
) -> Handler:
    """Move deleted replicas to ReplicaDeletionSuccessful, then try to delete the queued topics.

    Source: TopicDeletionManager.completeReplicaDeletion (2.8).
    """
    gone = [r for r in replicas if ctx.is_queued_for_deletion(r.topic)]
    yield from replica_machine.handle_state_changes(ctx, gone, SUCCESSFUL)
    yield from ctx.design.resume_deletions(ctx)


def stop_replica_response_received(
    ctx: ControllerContext, event: TopicDeletionStopReplicaResponseReceived
) -> Handler:
    """Move deleted replicas to ReplicaDeletionSuccessful, replicas with an error to Ineligible.

    Then try to delete the queued topics.

    Source: KafkaController.processTopicDeletionStopReplicaResponseReceived (2.8).
    """
    errors = dict(event.errors)
    failed = [tp for tp in event.partitions if event.error != "NONE" or tp in errors]
    yield from fail_replica_deletion(ctx, [PartitionReplica(tp, event.broker_id) for tp in failed])
    if deleted := [tp for tp in event.partitions if tp not in failed]:
        yield from complete_replica_deletion(
            ctx, [PartitionReplica(tp, event.broker_id) for tp in deleted]
        )


# ---------------------------------------------------------------- going through the queue


def resume_deletions(ctx: ControllerContext) -> Handler:
    """Complete, retry or start the deletion of each queued topic, all in one call.

    `resume_topics` says when a deletion is completed, retried or started.

    Source: TopicDeletionManager.resumeDeletions (2.8).
    """
    yield from resume_topics(ctx, replicas_by_topic(ctx, ctx.topics_to_be_deleted))


def resume_topics(ctx: ControllerContext, replicas_of_topics: dict[str, Replicas]) -> Handler:
    """Complete, retry or start the deletion of each topic, by the states of its replicas.

    Complete: every replica is deleted. Retry: no replica is being deleted, and some are Ineligible.
    Start: no replica is being deleted, and the topic is eligible.

    Source: TopicDeletionManager.resumeDeletions (2.8).
    """
    again: Replicas = []
    ready: list[str] = []
    for topic, replicas in replicas_of_topics.items():
        states = {ctx.replica_state(r) for r in replicas}
        if states <= {SUCCESSFUL}:
            yield from complete_delete_topic(ctx, topic, replicas)
        elif STARTED not in states:
            again += [r for r in replicas if ctx.replica_state(r) is INELIGIBLE]
            ready += [topic] if topic not in ctx.topics_ineligible_for_deletion else []
    yield from replica_machine.handle_state_changes(ctx, again, OFFLINE)
    if ready:
        yield from on_topic_deletion(ctx, ready)


def in_deletion_order(ctx: ControllerContext, topics: Collection[str]) -> list[str]:
    """Return the topics sorted by name, or as a user's `ctx.changes.deletion_order` sorts them.

    Source: TopicDeletionManager.resumeDeletions (1.0, 2.4), DeleteTopicsThread.doWork (0.8.1).
    """
    # In Kafka the order is that of a hash set.
    return ctx.changes.deletion_order(topics)


def replicas_by_topic(ctx: ControllerContext, topics: Collection[str]) -> dict[str, Replicas]:
    """Return the assigned replicas of each topic; the topics are in the order of their deletion."""
    found: dict[str, Replicas] = {topic: [] for topic in in_deletion_order(ctx, topics)}
    for tp in ctx.assignments if found else ():
        if tp.topic in found:
            found[tp.topic] += ctx.replicas_of((tp,))
    return found


def partitions_of(ctx: ControllerContext, topics: Collection[str]) -> tuple[TopicPartition, ...]:
    return tuple(tp for tp in ctx.assignments if tp.topic in topics)


def on_topic_deletion(ctx: ControllerContext, topics: Collection[str]) -> Handler:
    """Send UpdateMetadata for the partitions of `topics`, then delete the replicas.

    Source: TopicDeletionManager.onTopicDeletion (2.8).
    """
    # Since 2.1 the partitions become NonExistent at the start of the deletion; before 2.1 in
    # `complete_delete_topic`.
    unseen = tuple(topic for topic in topics if topic not in ctx.topics_with_deletion_started)
    if unseen and ctx.rules.deleted_partitions_end == "first":
        yield from end_partitions(ctx, partitions_of(ctx, unseen))
        yield effects.UpdateContext("topics_with_deletion_started", unseen)
    yield from send_update_metadata_request(
        ctx, ctx.live_or_shutting_down_broker_ids, partitions_of(ctx, topics)
    )
    yield from start_replica_deletion(ctx, topics)


def end_partitions(ctx: ControllerContext, partitions: Collection[TopicPartition]) -> Handler:
    yield from partition_machine.handle_state_changes(ctx, partitions, PartitionState.OFFLINE)
    yield from partition_machine.handle_state_changes(ctx, partitions, PartitionState.NON_EXISTENT)


def start_replica_deletion(ctx: ControllerContext, topics: Collection[str]) -> Handler:
    """Stop the online replicas of `topics`, then delete them.

    A replica that is not online becomes ReplicaDeletionIneligible, and its topic ineligible.

    Source: TopicDeletionManager.onPartitionDeletion (2.8), startReplicaDeletion (0.8.1).
    """
    replicas = [r for found in replicas_by_topic(ctx, topics).values() for r in found]
    dead = [r for r in replicas if not ctx.is_replica_online(r.broker_id, r.topic_partition)]
    known_dead = frozenset(dead)
    todo = [r for r in replicas if r not in known_dead and ctx.replica_state(r) is not SUCCESSFUL]
    live = ctx.live_broker_ids
    yield from replica_machine.handle_state_changes(ctx, dead, INELIGIBLE)
    all_live = len(ctx.replicas_on(live))
    for state in (OFFLINE, STARTED):
        yield from replica_machine.handle_state_changes(
            ctx, todo, state, broker_order=live, set_size=all_live
        )
    yield from mark_topics_ineligible_for_deletion(ctx, {r.topic for r in dead})


# ---------------------------------------------------------------- the end


def complete_delete_topic(ctx: ControllerContext, topic: str, replicas: Replicas) -> Handler:
    """Delete the znodes of a topic, and remove the topic from the context.

    Before the deletion, move `replicas` to NonExistentReplica. Raises WriteFailed if another
    process creates a znode below the topic's znode meanwhile.

    Source: TopicDeletionManager.completeDeleteTopic (2.0, 2.8).
    """
    yield effects.UnregisterZNodeHandler(topic_path(topic))
    yield from replica_machine.handle_state_changes(ctx, replicas, replica_machine.NON_EXISTENT)
    if ctx.rules.deleted_partitions_end == "last":
        yield from end_partitions(ctx, partitions_of(ctx, (topic,)))
        yield effects.UpdateContext("topics_to_be_deleted", remove=(topic,))
    yield from delete_recursively(topic_path(topic))
    yield from delete_all((topic_config_path(topic),))
    # The request for the deletion is the last of the topic's znodes.
    yield from delete_all((delete_topic_path(topic),))
    yield from remove_topics(ctx, (topic,))


def delete_recursively(path: str) -> Handler:
    """Delete a znode with everything below it, the deepest znodes first.

    A missing znode is no error. Raises WriteFailed if ZooKeeper refuses a deletion.

    Source: KafkaZkClient.deleteRecursive (2.8), ZkClient.deleteRecursive (0.3).
    """
    (names,) = yield effects.Children((path,))
    if names is None:
        return
    for name in names:
        yield from delete_recursively(f"{path}/{name}")
    (result,) = yield effects.fenced(effects.Op("delete", path))
    if result.code not in ("OK", "NoNode"):
        raise WriteFailed(f"deleting {path} failed with {result.code}")
