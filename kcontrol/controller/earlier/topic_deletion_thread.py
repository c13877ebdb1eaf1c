"""Topic deletion where listeners share one lock: on the delete-topics thread, one topic at a time.

The thread waits for a signal, then tries the queued topics once, however many signals it got.
DELETION_THREAD_TRANSITIONS has its states: `""` (stopped), `waiting`, `signalled`.

Source: TopicDeletionManager.scala with its DeleteTopicsThread,
PartitionStateMachine.DeleteTopicsListener, KafkaController.initializeTopicDeletion (0.8.1.1).
"""

# An action of the table stores the new state and, if the thread is signalled, queues
# DeletionsResumed; `deletions_resumed` has the work of the thread.
from collections.abc import Iterable
from enum import StrEnum

from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.earlier.listener_handlers import children_of
from kcontrol.controller.failover_steps import delete_all
from kcontrol.core.effects import Children, Enqueue, Handler, UpdateContext
from kcontrol.core.events import DeletionsResumed, TopicDeletion
from kcontrol.core.transitions import Transition, TransitionTable
from kcontrol.core.znodes import DELETE_TOPICS, delete_topic_path


class ThreadState(StrEnum):
    """The states of the delete-topics thread: it does not run, waits, or has been signalled."""

    STOPPED = ""
    WAITING = "waiting"
    SIGNALLED = "signalled"


STOPPED, WAITING, SIGNALLED = ThreadState


def note(state: ThreadState) -> Handler:
    """Store `state`, the new state of the delete-topics thread, in the context."""
    yield UpdateContext("topic_deletion_thread", state.value)


def wake(state: ThreadState) -> Handler:
    """DeletionsResumed makes the delete-topics thread try the queued topics."""
    yield from note(state)
    yield Enqueue(DeletionsResumed())


# fmt: off
SOURCE = "TopicDeletionManager.scala (0.8.1 to 0.10.2)"
DELETION_THREAD_TRANSITIONS = TransitionTable("deletion thread", ThreadState, SOURCE, [
    #          from       to         action  what it means
    Transition(STOPPED,   SIGNALLED, wake,   "a failover starts the thread, which tries the queue"),
    Transition(SIGNALLED, WAITING,   note,   "the thread tries the queue"),
    Transition(WAITING,   SIGNALLED, wake,   "the queue has changed: resumeTopicDeletionThread"),
    Transition(WAITING,   STOPPED,   note,   "a resignation or an exception ends the thread"),
    Transition(SIGNALLED, STOPPED,   note,   "a resignation or an exception ends the thread"),
])
# fmt: on


def move_thread(ctx: ControllerContext, target: ThreadState) -> Handler:
    """Raises ValueError without a row in DELETION_THREAD_TRANSITIONS."""
    row = DELETION_THREAD_TRANSITIONS.find(ThreadState(ctx.topic_deletion_thread), target)
    if row is None:
        raise ValueError(
            f"The deletion thread cannot go from {ctx.topic_deletion_thread!r} to {target.value!r}."
        )
    yield from row.action(target)


def signal_thread(ctx: ControllerContext) -> Handler:
    """Signal the delete-topics thread if it waits; a stopped or a signalled thread stays as it is.

    Source: TopicDeletionManager.resumeTopicDeletionThread (0.8.1).
    """
    if ctx.topic_deletion_thread == WAITING:
        yield from move_thread(ctx, SIGNALLED)


def topic_deletion(ctx: ControllerContext, event: TopicDeletion) -> Handler:
    """Queue the topics in `/admin/delete_topics` for deletion.

    Topics in a reassignment or a preferred election become ineligible for deletion. Requests for
    unknown topics are removed. If `delete.topic.enable` is false, all requests are removed (since
    0.10.2).

    Source: PartitionStateMachine.DeleteTopicsListener (0.8.1, 0.8.2).
    """
    # The handler does not check whether this broker is still controller: a broker that has resigned
    # deletes the requests of topics that it does not know.
    names = yield from children_of(DELETE_TOPICS)
    known = yield from deletion.delete_unknown_requests(ctx, names)
    if not known:
        return
    if not ctx.deletes_topics:
        yield from clear_requests(ctx, known)
        return
    steps = (
        deletion.enqueue_topics_for_deletion(ctx, known),
        deletion.mark_topics_ineligible_for_deletion(ctx, topics_in_transition(ctx)),
    )
    # 0.8.1 queues first, so that the mark has an effect; later releases mark first.
    for step in steps if ctx.rules.deletion_waits_for_reassignment else reversed(steps):
        yield from step


def clear_requests(ctx: ControllerContext, names: Iterable[str]) -> Handler:
    """Delete the znode `/admin/delete_topics/<topic>` of each topic in `names`, without a check.

    It is called if `delete.topic.enable` is false: the topics stay.

    Source: PartitionStateMachine.DeleteTopicsListener (0.10.2).
    """
    for name in names:
        yield from delete_all((delete_topic_path(name),))


def topics_in_transition(ctx: ControllerContext) -> frozenset[str]:
    """Return the topics that have a partition in a preferred election or in a reassignment."""
    return frozenset(tp.topic for tp in ctx.preferred_elections) | deletion.topics_being_reassigned(
        ctx
    )


def fetch_topic_deletions_in_progress(ctx: ControllerContext) -> Handler:
    """At a failover, queue the topics in `/admin/delete_topics` for deletion.

    Topics with an offline replica, a reassignment or a preferred election are ineligible. If
    `delete.topic.enable` is false, delete the children of `/admin/delete_topics` (since 0.10.2).

    Source: KafkaController.initializeTopicDeletion (0.8.1, 0.10.2).
    """
    (names,) = yield Children((DELETE_TOPICS,))
    # Before 0.10.2 the topics are queued too: UpdateMetadata says that they are being deleted, and
    # they stay.
    if not ctx.deletes_topics and ctx.rules.forbidden_deletion == "is cleared":
        yield from clear_requests(ctx, names or ())
        names = ()
    ineligible = deletion.topics_with_offline_replicas(ctx) | topics_in_transition(ctx)
    yield from deletion.init_topic_deletions(ctx, names or (), ineligible)


def start_thread(ctx: ControllerContext) -> Handler:
    """Start the delete-topics thread, which first tries to delete the queued topics.

    This is the last step of a failover. Source: TopicDeletionManager.start (0.8.1).
    """
    if ctx.deletes_topics:
        yield from move_thread(ctx, SIGNALLED)


def stop_thread(ctx: ControllerContext) -> Handler:
    """Stop the delete-topics thread in a resignation, and empty the queue of topics.

    Source: TopicDeletionManager.shutdown (0.8.1).
    """
    if not ctx.deletes_topics:
        return
    if ctx.topic_deletion_thread:
        yield from move_thread(ctx, STOPPED)
    for name in ("topics_to_be_deleted", "topics_ineligible_for_deletion"):
        if getattr(ctx, name):
            yield UpdateContext(name, clear=True)


def deletions_resumed(ctx: ControllerContext, event: DeletionsResumed) -> Handler:
    """Try to delete each queued topic if the delete-topics thread was signalled; else do nothing.

    An exception stops the thread until the next failover.
    Source: DeleteTopicsThread.doWork (0.8.1).
    """
    if ctx.topic_deletion_thread != SIGNALLED:
        return
    yield from move_thread(ctx, WAITING)
    try:
        for topic in deletion.in_deletion_order(ctx, ctx.topics_to_be_deleted):
            yield from deletion.resume_topics(ctx, deletion.replicas_by_topic(ctx, (topic,)))
    except Exception:
        yield from move_thread(ctx, STOPPED)
        raise
