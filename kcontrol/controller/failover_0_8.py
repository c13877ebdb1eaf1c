"""In which order a broker takes over, and gives up, where listeners share one lock: each order by the first release that had it.

Source: KafkaController.onControllerFailover and onControllerResignation (0.8.0, 0.8.1, 0.8.2, 0.9.0, 0.10.2).
"""

from __future__ import annotations

from kcontrol.controller import failover_steps as f
from kcontrol.controller import topic_deletion_0_8 as deletion_0_8
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.controller_epoch import increment_controller_epoch, read_controller_epoch
from kcontrol.controller.preferred_elections_0_8 import (
    elect_all_pending,
    elect_pending,
    learn_pending_elections,
    start_scheduler,
    stop_scheduler,
)
from kcontrol.controller.reassignment_0_8 import (
    learn_pending_reassignments,
    resume_reassignments,
    trigger_pending_reassignments,
)
from kcontrol.controller.resignation_steps import (
    Step,
    await_all_requests,
    forget,
    reset_epochs,
    stop_listening,
    stop_listening_to_each_topic,
    stop_listening_to_reassigned_partitions,
)
from kcontrol.effects import Handler, Learn
from kcontrol.znodes import (
    BROKER_IDS,
    DELETE_TOPICS,
    ISR_CHANGE_NOTIFICATION,
    PREFERRED_REPLICA_ELECTION,
    REASSIGN_PARTITIONS,
    TOPICS,
)


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


def read_epoch(ctx: ControllerContext) -> Handler:
    """Where nobody listens to the epoch, it is read when it is needed."""
    yield from read_controller_epoch(ctx, watch=False)


# fmt: off
FAILOVER_0_8_1: tuple[Step, ...] = (
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
    start_scheduler,
    deletion_0_8.start_thread,
)
FAILOVER_0_8: dict[str, tuple[Step, ...]] = {
    "0.8.0": (
        increment_controller_epoch,
        f.listen_to_requests,
        f.listen_to_children(TOPICS),
        f.listen_to_children(BROKER_IDS),
        f.initialize_context,
        f.start_replica_machine,
        f.start_partition_machine,
        f.listen_to_topics,
        resume_reassignments,
        elect_all_pending,
        f.tell_brokers,
    ),
    "0.8.1": FAILOVER_0_8_1,
    "0.8.2": (read_epoch, *FAILOVER_0_8_1),
    "0.9.0": (
        read_epoch,
        increment_controller_epoch,
        f.listen_to_data(REASSIGN_PARTITIONS),
        f.listen_to_children(ISR_CHANGE_NOTIFICATION),
        f.listen_to_data(PREFERRED_REPLICA_ELECTION),
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
        start_scheduler,
        deletion_0_8.start_thread,
    ),
    "0.10.2": (
        read_epoch,
        increment_controller_epoch,
        f.listen_to_data(REASSIGN_PARTITIONS),
        f.listen_to_children(ISR_CHANGE_NOTIFICATION),
        f.listen_to_data(PREFERRED_REPLICA_ELECTION),
        f.listen_to_children(TOPICS),
        f.listen_to_children(DELETE_TOPICS),
        f.listen_to_children(BROKER_IDS),
        f.initialize_context,
        learn_pending_elections,
        learn_pending_reassignments,
        deletion_0_8.learn_deletions,
        f.tell_brokers,
        f.start_replica_machine,
        f.start_partition_machine,
        f.listen_to_topics,
        trigger_pending_reassignments,
        elect_pending,
        start_scheduler,
        deletion_0_8.start_thread,
    ),
}
RESIGNATION_0_8_2 = (
    stop_listening(REASSIGN_PARTITIONS),
    stop_listening(PREFERRED_REPLICA_ELECTION),
    deletion_0_8.stop_thread,
    stop_scheduler,
    stop_listening_to_reassigned_partitions,
    stop_machines,
    stop_listening(TOPICS, children=True),
    stop_listening_to_each_topic,
    stop_listening(DELETE_TOPICS, children=True),
    stop_listening(BROKER_IDS, children=True),
    await_all_requests,
    close_channels,
    reset_epochs,
)
RESIGNATION_0_8: dict[str, tuple[Step, ...]] = {
    "0.8.0": (stop_machines, close_channels),
    "0.8.1": (
        deletion_0_8.stop_thread,
        stop_machines,
        stop_scheduler,
        close_channels,
    ),
    "0.8.2": RESIGNATION_0_8_2,
    "0.9.0": (stop_listening(ISR_CHANGE_NOTIFICATION, children=True), *RESIGNATION_0_8_2),
}
# fmt: on
