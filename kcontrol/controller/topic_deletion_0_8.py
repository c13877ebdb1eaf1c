"""How a topic is deleted where listeners share one lock: on the delete-topics thread, one topic after the other.

Whoever has something new for the queue signals the thread; however often, it goes through the queue once.
Source: TopicDeletionManager.scala with its DeleteTopicsThread, PartitionStateMachine.DeleteTopicsListener,
KafkaController.initializeTopicDeletion (0.8.1.1).
"""

from __future__ import annotations

from collections.abc import Iterable

from kcontrol.controller import replica_machine
from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.failover_steps import delete_all
from kcontrol.controller.listeners_0_8 import children_of
from kcontrol.effects import Children, Enqueue, Handler, Learn
from kcontrol.events import DeletionsResumed, TopicDeletion
from kcontrol.model import ReplicaState
from kcontrol.znodes import DELETE_TOPICS, delete_topic_path


def topic_deletion(ctx: ControllerContext, event: TopicDeletion) -> Handler:
    """Queue what is asked for. What is in an election or a reassignment is held up if it is queued by then, in 0.8.1 alone it is.

    Nobody looks whether this broker still is controller: one that has resigned drops requests for topics that it never knew.
    """
    names = yield from children_of(DELETE_TOPICS)
    known = yield from deletion.drop_unknown(ctx, names)
    if not known:
        return
    if not ctx.deletes_topics:
        yield from clear_requests(ctx, known)
        return
    steps = (deletion.enqueue(ctx, known), deletion.halt(ctx, topics_in_transition(ctx)))
    for step in steps if ctx.rules.halts_what_is_asked else reversed(steps):
        yield from step


def clear_requests(ctx: ControllerContext, names: Iterable[str]) -> Handler:
    """Nothing may be deleted: whoever is listened to has asked in vain. Source: DeleteTopicsListener (0.10.2)."""
    for name in names:
        yield from delete_all((delete_topic_path(name),))


def topics_in_transition(ctx: ControllerContext) -> frozenset[str]:
    """The topics that are in a preferred election or in a reassignment."""
    return frozenset(tp.topic for tp in ctx.preferred_elections) | deletion.topics_being_reassigned(ctx)


def learn_deletions(ctx: ControllerContext) -> Handler:
    """At failover: what is asked for, and what of it has to wait.

    Where no topic may be deleted the requests are taken in all the same: brokers are told that those topics go, and they stay.
    Since 0.10.2 such requests are deleted.
    """
    (names,) = yield Children((DELETE_TOPICS,))
    if not ctx.deletes_topics and ctx.rules.forbidden_deletion == "is cleared":
        yield from clear_requests(ctx, names or ())
        names = ()
    ineligible = deletion.with_dead_replicas(ctx) | topics_in_transition(ctx)
    yield from deletion.queue_at_failover(ctx, names or (), ineligible)


def start_thread(ctx: ControllerContext) -> Handler:
    """The last step of a failover: the thread starts, and looks at the queue first thing."""
    if ctx.deletes_topics:
        yield Learn("deletion_thread", deletion.SIGNALLED)
        yield Enqueue(DeletionsResumed())


def stop_thread(ctx: ControllerContext) -> Handler:
    """The first step of a resignation: the thread ends, and nothing is queued any more."""
    if not ctx.deletes_topics:
        return
    if ctx.deletion_thread:
        yield Learn("deletion_thread", "")
    for name in ("topics_to_be_deleted", "topics_ineligible_for_deletion"):
        if getattr(ctx, name):
            yield Learn(name, clear=True)


def deletions_resumed(ctx: ControllerContext, event: DeletionsResumed) -> Handler:
    """What the thread does whenever it has been signalled. An exception ends the thread until the next failover."""
    if ctx.deletion_thread != deletion.SIGNALLED:
        return
    yield Learn("deletion_thread", deletion.WAITING)
    try:
        for topic in sorted(ctx.topics_to_be_deleted):
            yield from _go_on_with(ctx, topic)
    except Exception:
        yield Learn("deletion_thread", "")
        raise


def _go_on_with(ctx: ControllerContext, topic: str) -> Handler:
    """Complete what is deleted everywhere; try again what has failed and is under way nowhere; start what may start."""
    replicas = deletion.replicas_by_topic(ctx, (topic,))[topic]
    states = {ctx.replica_state(r) for r in replicas}
    if states <= {ReplicaState.DELETION_SUCCESSFUL}:
        yield from deletion.complete_delete_topic(ctx, topic, replicas)
    elif ReplicaState.DELETION_STARTED not in states:
        failed = [r for r in replicas if ctx.replica_state(r) is ReplicaState.DELETION_INELIGIBLE]
        yield from replica_machine.move(ctx, failed, ReplicaState.OFFLINE)
        if topic not in ctx.topics_ineligible_for_deletion:
            yield from deletion.on_topic_deletion(ctx, (topic,))
