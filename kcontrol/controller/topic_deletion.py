"""How a topic is deleted: its partitions end, every replica is deleted by its broker, and then its znodes go.

A topic that is queued is tried again whenever something has changed for it, unless it is ineligible: until a broker with one of
its replicas starts, or whatever else was under way has ended. Where there is an event thread that is done at once; before, a
thread of its own is signalled (`topic_deletion_0_8.py`).
Source: TopicDeletionManager.scala, KafkaController.processTopicDeletion and fetchTopicDeletionsInProgress (2.8).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller.broker_order import in_set_order
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.failover_steps import delete_all
from kcontrol.controller.requests import update_metadata
from kcontrol.controller.topic_changes import remove_topics
from kcontrol.effects import Children, Enqueue, Handler, Learn, Op, Result, Unwatch, Writes
from kcontrol.events import DeletionsResumed, TopicDeletion, TopicDeletionStopReplicaResponseReceived
from kcontrol.generations import LISTENERS
from kcontrol.model import PartitionReplica, PartitionState, ReplicaState, TopicPartition
from kcontrol.registration import WriteFailed
from kcontrol.znodes import DELETE_TOPICS, delete_topic_path, topic_config_path, topic_path

_, _, OFFLINE, STARTED, SUCCESSFUL, INELIGIBLE, NON_EXISTENT = ReplicaState

WAITING, SIGNALLED = "waiting", "signalled"  # what the thread that deletes topics does, where there is one and it runs

Replicas = list[PartitionReplica]


# ---------------------------------------------------------------- what is asked for


def topic_deletion(ctx: ControllerContext, event: TopicDeletion) -> Handler:
    """Queue what `/admin/delete_topics` names."""
    (names,) = yield Children((DELETE_TOPICS,), watch=True)
    yield from asked_for(ctx, names or ())


def asked_for(ctx: ControllerContext, names: Iterable[str]) -> Handler:
    """Queue these; a name that is no topic is taken out of the request, and so is every one where none may go.

    What is being reassigned is marked before it is queued, which comes to nothing, as in Kafka.
    """
    known = yield from drop_unknown(ctx, names)
    if not known:
        return
    if ctx.deletes_topics:
        yield from halt(ctx, topics_being_reassigned(ctx))
        yield from enqueue(ctx, known)
    else:
        yield from delete_all(tuple(map(delete_topic_path, known)))


def drop_unknown(ctx: ControllerContext, names: Iterable[str]) -> Handler:
    """Take the names that are no topics out of `/admin/delete_topics`, and return the others."""
    unknown = tuple(name for name in names if name not in ctx.all_topics)
    if unknown:
        yield from delete_all(tuple(map(delete_topic_path, unknown)))
    return tuple(name for name in names if name not in unknown)


def topics_being_reassigned(ctx: ControllerContext) -> frozenset[str]:
    return frozenset(tp.topic for tp in ctx.partitions_being_reassigned)


def enqueue(ctx: ControllerContext, topics: Iterable[str]) -> Handler:
    """These are to be deleted; the queue is gone through."""
    if new := tuple(topic for topic in topics if topic not in ctx.topics_to_be_deleted):
        yield Learn("topics_to_be_deleted", new)
    yield from go_through(ctx)


# ---------------------------------------------------------------- at failover


def learn_deletions(ctx: ControllerContext) -> Handler:
    """Before the machines start: what is asked for, and what of it has to wait. Where none may go the requests are deleted."""
    (names,) = yield Children((DELETE_TOPICS,), watch=True)
    if ctx.deletes_topics:
        yield from queue_at_failover(ctx, names or (), with_dead_replicas(ctx) | topics_being_reassigned(ctx))
    elif names:
        yield from delete_all(tuple(map(delete_topic_path, names)))


def queue_at_failover(ctx: ControllerContext, topics: Collection[str], ineligible: Collection[str]) -> Handler:
    """Replace what is known of deletions by this, as far as it is not known."""
    halted = {topic for topic in topics if topic in ineligible}
    for name, wanted in (("topics_to_be_deleted", set(topics)), ("topics_ineligible_for_deletion", halted)):
        if getattr(ctx, name) != wanted:
            yield Learn(name, tuple(sorted(wanted)), clear=True)


def with_dead_replicas(ctx: ControllerContext) -> frozenset[str]:
    """The topics of which some replica is not online."""
    return frozenset(
        tp.topic
        for tp, assignment in ctx.assignments.items()
        if not all(ctx.is_replica_online(b, tp) for b in assignment.replicas)
    )


def try_topic_deletion(ctx: ControllerContext) -> Handler:
    """After the machines have started: go through what is queued."""
    if ctx.deletes_topics:
        yield from resume_deletions(ctx)


# ---------------------------------------------------------------- halt, resume, fail, succeed


def halt(ctx: ControllerContext, topics: Collection[str]) -> Handler:
    """Those of `topics` that are queued are not tried until they are resumed. Source: markTopicIneligibleForDeletion (2.8)."""
    waiting = ctx.topics_to_be_deleted - ctx.topics_ineligible_for_deletion if ctx.deletes_topics else ()
    if halted := tuple(sorted(topic for topic in waiting if topic in topics)):
        yield Learn("topics_ineligible_for_deletion", halted)


def resume(ctx: ControllerContext, topics: Iterable[str]) -> Handler:
    """What held up these topics is over. Source: resumeDeletionForTopics (2.8)."""
    resumed = sorted({topic for topic in topics if ctx.is_queued_for_deletion(topic)})
    if not resumed:
        return
    if halted := tuple(topic for topic in resumed if topic in ctx.topics_ineligible_for_deletion):
        yield Learn("topics_ineligible_for_deletion", remove=halted)
    yield from go_through(ctx)


def fail_replica_deletion(ctx: ControllerContext, replicas: Iterable[PartitionReplica]) -> Handler:
    """These replicas could not be deleted, or are on a broker that has died: their topics are halted."""
    failed = [r for r in replicas if ctx.is_queued_for_deletion(r.topic)]
    if failed:
        yield from replica_machine.move(ctx, failed, INELIGIBLE)
        yield from halt(ctx, {r.topic for r in failed})
        yield from go_through(ctx)


def complete_replica_deletion(ctx: ControllerContext, replicas: Iterable[PartitionReplica]) -> Handler:
    """These replicas are gone."""
    gone = [r for r in replicas if ctx.is_queued_for_deletion(r.topic)]
    yield from replica_machine.move(ctx, gone, SUCCESSFUL)
    yield from go_through(ctx)


def stop_replica_response_received(ctx: ControllerContext, event: TopicDeletionStopReplicaResponseReceived) -> Handler:
    """A broker has deleted replicas, or could not. Source: processTopicDeletionStopReplicaResponseReceived (2.8)."""
    errors = dict(event.errors)
    failed = [tp for tp in event.partitions if event.error != "NONE" or tp in errors]
    yield from fail_replica_deletion(ctx, [PartitionReplica(tp, event.broker_id) for tp in failed])
    if deleted := [tp for tp in event.partitions if tp not in failed]:
        yield from complete_replica_deletion(ctx, [PartitionReplica(tp, event.broker_id) for tp in deleted])


# ---------------------------------------------------------------- going through the queue


def go_through(ctx: ControllerContext) -> Handler:
    """Look at every topic that is queued: now, or on the thread that is there for it, if it runs."""
    if ctx.rules.design != LISTENERS:
        yield from resume_deletions(ctx)
    elif ctx.deletion_thread == WAITING:
        yield Learn("deletion_thread", SIGNALLED)
        yield Enqueue(DeletionsResumed())


def resume_deletions(ctx: ControllerContext) -> Handler:
    """Go through the topics that are queued, together or, before 2.5, one after the other."""
    queued = replicas_by_topic(ctx, ctx.topics_to_be_deleted)
    for some in (queued,) if ctx.rules.deleted_together else ({topic: replicas} for topic, replicas in queued.items()):
        yield from _resume(ctx, some)


def _resume(ctx: ControllerContext, queued: dict[str, Replicas]) -> Handler:
    """Complete what is deleted everywhere; then try again what has failed and is under way nowhere; then start what may start."""
    again: Replicas = []
    ready: list[str] = []
    for topic, replicas in queued.items():
        states = {ctx.replica_state(r) for r in replicas}
        if states <= {SUCCESSFUL}:
            yield from complete_delete_topic(ctx, topic, replicas)
        elif STARTED not in states:
            again += [r for r in replicas if ctx.replica_state(r) is INELIGIBLE]
            ready += [topic] if topic not in ctx.topics_ineligible_for_deletion else []
    yield from replica_machine.move(ctx, again, OFFLINE)
    if ready:
        yield from on_topic_deletion(ctx, ready)


def replicas_by_topic(ctx: ControllerContext, topics: Collection[str]) -> dict[str, Replicas]:
    """The assigned replicas of each of these topics, the topics in the order of their names."""
    found: dict[str, Replicas] = {topic: [] for topic in sorted(topics)}
    for tp in ctx.assignments if found else ():
        if tp.topic in found:
            found[tp.topic] += ctx.replicas_of((tp,))
    return found


def partitions_of(ctx: ControllerContext, topics: Collection[str]) -> tuple[TopicPartition, ...]:
    return tuple(tp for tp in ctx.assignments if tp.topic in topics)


def on_topic_deletion(ctx: ControllerContext, topics: Collection[str]) -> Handler:
    """The partitions end, once; brokers learn that these topics are going; their replicas are deleted."""
    unseen = tuple(topic for topic in topics if topic not in ctx.topics_with_deletion_started)
    if unseen and ctx.rules.doomed_partitions_go == "first":
        yield from end_partitions(ctx, partitions_of(ctx, unseen))
        yield Learn("topics_with_deletion_started", unseen)
    yield from update_metadata(ctx, ctx.live_or_shutting_down_broker_ids, partitions_of(ctx, topics))
    yield from start_replica_deletion(ctx, topics)


def end_partitions(ctx: ControllerContext, partitions: Collection[TopicPartition]) -> Handler:
    yield from partition_machine.move(ctx, partitions, PartitionState.OFFLINE)
    yield from partition_machine.move(ctx, partitions, PartitionState.NON_EXISTENT)


def start_replica_deletion(ctx: ControllerContext, topics: Collection[str]) -> Handler:
    """Dead replicas cannot be deleted now, and hold up their topics; living ones are first stopped and then deleted.

    Source: onPartitionDeletion (2.8), startReplicaDeletion (0.8.1).
    """
    replicas = [r for found in replicas_by_topic(ctx, topics).values() for r in found]
    dead = [r for r in replicas if not ctx.is_replica_online(r.broker_id, r.topic_partition)]
    known_dead = frozenset(dead)
    todo = [r for r in replicas if r not in known_dead and ctx.replica_state(r) is not SUCCESSFUL]
    live = in_set_order(ctx.live_broker_ids)
    yield from replica_machine.move(ctx, dead, INELIGIBLE)
    yield from replica_machine.move(ctx, todo, OFFLINE, walked=live)
    yield from replica_machine.move(ctx, todo, STARTED, walked=live)
    yield from halt(ctx, {r.topic for r in dead})


# ---------------------------------------------------------------- the end


def complete_delete_topic(ctx: ControllerContext, topic: str, replicas: Replicas) -> Handler:
    """Nothing is left on any broker: the topic goes from ZooKeeper, from the bottom up, its request last, and from memory.

    Raises WriteFailed if something has been put below the topic meanwhile.
    """
    yield Unwatch(topic_path(topic))
    yield from replica_machine.move(ctx, replicas, NON_EXISTENT)
    if ctx.rules.doomed_partitions_go == "last":
        yield from end_partitions(ctx, partitions_of(ctx, (topic,)))
        yield Learn("topics_to_be_deleted", remove=(topic,))
    yield from delete_recursively(topic_path(topic))
    yield from delete_all((topic_config_path(topic),))
    yield from delete_all((delete_topic_path(topic),))
    yield from remove_topics(ctx, (topic,))


def delete_recursively(path: str) -> Handler:
    """Delete a znode with everything below it, the deepest first. Source: KafkaZkClient.deleteRecursive (2.8), ZkClient (0.3)."""
    (names,) = yield Children((path,))
    if names is None:
        return
    for name in names:
        yield from delete_recursively(f"{path}/{name}")
    results: tuple[Result, ...] = yield Writes(((Op("delete", path),),))
    if results[0].code not in ("OK", "NoNode"):
        raise WriteFailed(f"deleting {path} failed with {results[0].code}")
