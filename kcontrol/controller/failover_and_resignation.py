"""In which order a broker takes over as controller, and in which it gives up: one column for each order that there has been.

Source: KafkaController.onControllerFailover and onControllerResignation (1.0, 2.8); `failover_0_8` has the columns before.
"""

from __future__ import annotations

from kcontrol.controller import failover_steps as f
from kcontrol.controller import preferred_elections_1_0 as preferred_1_0
from kcontrol.controller import ways_to_reassign as moves
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.controller_epoch import increment_controller_epoch, read_controller_epoch
from kcontrol.controller.elections_on_request import pending_preferred_elections, start_rebalancing
from kcontrol.controller.failover_0_8 import FAILOVER_0_8, RESIGNATION_0_8
from kcontrol.controller.reassignment_0_8 import learn_pending_reassignments, trigger_pending_reassignments
from kcontrol.controller.resignation_steps import (
    FORGOTTEN_AT_RESIGNATION,
    FORGOTTEN_AT_RESIGNATION_1_0,
    Step,
    await_all_requests,
    forget,
    reset_epochs,
    stop_listening,
    stop_listening_to_each_broker,
    stop_listening_to_each_topic,
    stop_listening_to_reassigned_partitions,
    stop_rebalancing,
)
from kcontrol.controller.topic_deletion import learn_deletions, try_topic_deletion
from kcontrol.effects import Handler
from kcontrol.generations import EVENT_THREAD, QUEUE
from kcontrol.znodes import (
    BROKER_IDS,
    DELETE_TOPICS,
    ISR_CHANGE_NOTIFICATION,
    LOG_DIR_EVENT_NOTIFICATION,
    PREFERRED_REPLICA_ELECTION,
    REASSIGN_PARTITIONS,
    TOPICS,
)


def increment_epoch_after_election(ctx: ControllerContext) -> Handler:
    """Where the election has not done it: take the next epoch, from what `/controller_epoch` says now."""
    if not ctx.rules.elects_with_epoch:
        yield from read_controller_epoch(ctx, watch=False)
        yield from increment_controller_epoch(ctx)


# fmt: off
FAILOVER: dict[str, tuple[Step, ...]] = {
    **FAILOVER_0_8,
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
    **RESIGNATION_0_8,
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
        await_all_requests,
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
        await_all_requests,
        forget(*FORGOTTEN_AT_RESIGNATION),
        reset_epochs,
    ),
}
# fmt: on


def take_over(ctx: ControllerContext) -> Handler:
    """Every step of becoming controller, after the election."""
    for step in FAILOVER[ctx.rules.failover]:
        yield from step(ctx)


def resign(ctx: ControllerContext) -> Handler:
    """Every step of ceasing to be controller. `/controller` is still listened to."""
    for step in RESIGNATION[ctx.rules.resignation]:
        yield from step(ctx)
