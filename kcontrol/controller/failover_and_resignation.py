"""In which order a broker takes over as controller, and in which it gives up: one column for each design.

Source: KafkaController.onControllerFailover and onControllerResignation (0.8.1, 1.0, 2.8).
"""

from __future__ import annotations

from collections.abc import Callable

from kcontrol.controller import failover_steps as f
from kcontrol.controller import preferred_elections_1_0 as preferred_1_0
from kcontrol.controller import topic_deletion_0_8 as deletion_0_8
from kcontrol.controller import ways_to_reassign as moves
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.controller_epoch import increment_controller_epoch, read_controller_epoch
from kcontrol.controller.elections_on_request import pending_preferred_elections, start_rebalancing
from kcontrol.controller.preferred_elections_0_8 import elect_pending, learn_pending_elections
from kcontrol.controller.reassignment_0_8 import learn_pending_reassignments, trigger_pending_reassignments
from kcontrol.controller.topic_deletion import learn_deletions, try_topic_deletion
from kcontrol.effects import Cancel, Handler, Learn, Unwatch
from kcontrol.generations import EVENT_THREAD, LISTENERS, QUEUE
from kcontrol.znodes import (
    BROKER_IDS,
    DELETE_TOPICS,
    ISR_CHANGE_NOTIFICATION,
    LOG_DIR_EVENT_NOTIFICATION,
    PREFERRED_REPLICA_ELECTION,
    REASSIGN_PARTITIONS,
    TOPICS,
    broker_path,
    state_path,
    topic_path,
)

Step = Callable[[ControllerContext], Handler]

FORGOTTEN_AT_RESIGNATION_1_0 = (
    "live_brokers", "live_broker_epochs", "shutting_down_broker_ids", "all_topics", "topic_ids",
    "assignments", "leadership", "partition_states", "replica_states", "topics_to_be_deleted",
    "partitions_being_reassigned", "topics_with_deletion_started", "topics_ineligible_for_deletion",
)  # fmt: skip
FORGOTTEN_AT_RESIGNATION = (*FORGOTTEN_AT_RESIGNATION_1_0, "offline_dirs")


# ---------------------------------------------------------------- the steps of giving up


def stop_listening(path: str, *, children: bool = False) -> Step:
    """A step that forgets the handler of a path; the watch at ZooKeeper stays until it fires."""

    def step(ctx: ControllerContext) -> Handler:
        yield Unwatch(path, children)

    return step


def stop_listening_to_each_broker(ctx: ControllerContext) -> Handler:
    for broker_id in sorted(ctx.live_brokers):
        yield Unwatch(broker_path(broker_id))


def stop_listening_to_each_topic(ctx: ControllerContext) -> Handler:
    for topic in sorted(ctx.all_topics):
        yield Unwatch(topic_path(topic))


def stop_listening_to_reassigned_partitions(ctx: ControllerContext) -> Handler:
    if not ctx.rules.alter_isr:
        for tp in sorted(ctx.partitions_being_reassigned):
            yield Unwatch(state_path(tp))


def stop_rebalancing(ctx: ControllerContext) -> Handler:
    yield Cancel("auto-leader-rebalance")


def forget(*names: str) -> Step:
    """A step that empties these fields of the context."""

    def step(ctx: ControllerContext) -> Handler:
        for name in names:
            if getattr(ctx, name):
                yield Learn(name, clear=True)

    return step


def listen_to_deletions(ctx: ControllerContext) -> Handler:
    """Where no topic may be deleted nobody hears of the requests."""
    if ctx.deletes_topics:
        yield from f.listen_to_children(DELETE_TOPICS)(ctx)


def stop_machines(ctx: ControllerContext) -> Handler:
    """From now on both machines refuse to move anything. They were never started on a broker that has not led."""
    if ctx.machines_started:
        yield Learn("machines_started", False)
    yield from forget("partition_states", "replica_states")(ctx)


def close_channels(ctx: ControllerContext) -> Handler:
    """Without channels a broker is no longer active, whatever `/controller` says."""
    if ctx.has_channels:
        yield Learn("has_channels", False)


def reset_epochs(ctx: ControllerContext) -> Handler:
    yield Learn("controller_epoch", 0)
    yield Learn("controller_epoch_zk_version", 0)


def increment_epoch_after_election(ctx: ControllerContext) -> Handler:
    """Where the election has not done it: take the next epoch, from what `/controller_epoch` says now."""
    if not ctx.rules.elects_with_epoch:
        yield from read_controller_epoch(ctx, watch=False)
        yield from increment_controller_epoch(ctx)


# fmt: off
FAILOVER: dict[str, tuple[Step, ...]] = {
    LISTENERS: (
        increment_controller_epoch,
        f.listen_to_requests,
        f.listen_to_children(TOPICS),
        listen_to_deletions,
        f.listen_to_children(BROKER_IDS),
        f.initialize_context,
        learn_pending_elections,
        learn_pending_reassignments,
        deletion_0_8.learn_deletions,
        f.start_replica_machine,
        f.start_partition_machine,
        f.listen_to_topics,
        trigger_pending_reassignments,
        elect_pending,
        f.tell_brokers,
        start_rebalancing,
        deletion_0_8.start_thread,
    ),
    QUEUE: (
        increment_epoch_after_election,
        f.delete_log_dir_events,
        f.listen_to_data(REASSIGN_PARTITIONS),
        f.listen_to_children(ISR_CHANGE_NOTIFICATION),
        f.listen_to_data(PREFERRED_REPLICA_ELECTION),
        f.listen_to_children(TOPICS),
        f.listen_to_children(DELETE_TOPICS),
        f.listen_to_children(BROKER_IDS),
        f.listen_to_log_dirs,
        f.initialize_context,
        learn_pending_reassignments,
        learn_deletions,
        f.tell_brokers,
        f.start_replica_machine,
        f.start_partition_machine,
        f.listen_to_topics,
        trigger_pending_reassignments,
        try_topic_deletion,
        preferred_1_0.elect_pending,
        start_rebalancing,
    ),
    EVENT_THREAD: (
        increment_epoch_after_election,
        f.enable_features,
        f.listen,
        f.delete_notifications,
        f.initialize_context,
        moves.learn,
        learn_deletions,
        f.tell_brokers,
        f.start_replica_machine,
        f.start_partition_machine,
        moves.take_up,
        try_topic_deletion,
        pending_preferred_elections,
        start_rebalancing,
    ),
}
RESIGNATION: dict[str, tuple[Step, ...]] = {
    LISTENERS: (
        deletion_0_8.stop_thread,
        stop_machines,
        stop_rebalancing,
        close_channels,
    ),
    QUEUE: (
        stop_listening(ISR_CHANGE_NOTIFICATION, children=True),
        stop_listening(REASSIGN_PARTITIONS),
        stop_listening(PREFERRED_REPLICA_ELECTION),
        stop_listening(LOG_DIR_EVENT_NOTIFICATION, children=True),
        forget("topics_to_be_deleted", "topics_ineligible_for_deletion"),
        stop_rebalancing,
        stop_listening_to_reassigned_partitions,
        forget("partition_states"),
        stop_listening(TOPICS, children=True),
        stop_listening_to_each_topic,
        stop_listening(DELETE_TOPICS, children=True),
        forget("replica_states"),
        stop_listening(BROKER_IDS, children=True),
        forget(*FORGOTTEN_AT_RESIGNATION_1_0),
        reset_epochs,
    ),
    EVENT_THREAD: (
        stop_listening(ISR_CHANGE_NOTIFICATION, children=True),
        stop_listening(REASSIGN_PARTITIONS),
        stop_listening(PREFERRED_REPLICA_ELECTION),
        stop_listening(LOG_DIR_EVENT_NOTIFICATION, children=True),
        stop_listening_to_each_broker,
        stop_rebalancing,
        stop_listening_to_reassigned_partitions,
        stop_listening(TOPICS, children=True),
        stop_listening_to_each_topic,
        stop_listening(DELETE_TOPICS, children=True),
        stop_listening(BROKER_IDS, children=True),
        forget(*FORGOTTEN_AT_RESIGNATION),
        reset_epochs,
    ),
}
# fmt: on


def take_over(ctx: ControllerContext) -> Handler:
    """Every step of becoming controller, after the election."""
    for step in FAILOVER[ctx.rules.design]:
        yield from step(ctx)


def resign(ctx: ControllerContext) -> Handler:
    """Every step of ceasing to be controller. `/controller` is still listened to."""
    for step in RESIGNATION[ctx.rules.design]:
        yield from step(ctx)
