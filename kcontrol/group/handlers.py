"""HANDLERS: for each event of a group coordinator, such as JoinGroup, its thread and its function.

The thread `coordinator` handles requests, timers and ended writes; `group-metadata-manager` loads
and unloads partitions of the offsets topic and removes expired offsets.

Source: KafkaApis.scala (calls of the coordinator), GroupMetadataManager.scala (tasks of its
scheduler) (0.9, 2.8).
"""

# `coordinator` handles one event after the other, as Kafka's lock of each group orders them.
# `request_reactions.py` has the reactions of these handlers to requests.
from collections.abc import Callable
from typing import Any

from kcontrol.core.effects import Handler
from kcontrol.core.events import Event
from kcontrol.group import events as e
from kcontrol.group import group_loading, joining, membership, offset_expiration, offsets, rebalance
from kcontrol.group.context import GroupContext

REQUESTS, SCHEDULER = "coordinator", "group-metadata-manager"

# fmt: off
ROWS: tuple[tuple[type[Event], str, Callable[[GroupContext, Any], Handler]], ...] = (
    # event                    thread      handler
    (e.JoinGroup,              REQUESTS,   joining.join_group),
    (e.SyncGroup,              REQUESTS,   membership.sync_group),
    (e.Heartbeat,              REQUESTS,   membership.heartbeat),
    (e.LeaveGroup,             REQUESTS,   membership.leave_group),
    (e.OffsetCommit,           REQUESTS,   offsets.offset_commit),
    (e.OffsetFetch,            REQUESTS,   offsets.offset_fetch),
    (e.DescribeGroup,          REQUESTS,   membership.describe_group),
    (e.ListGroups,             REQUESTS,   membership.list_groups),
    (e.DeleteGroups,           REQUESTS,   offset_expiration.delete_groups),
    (e.OffsetDelete,           REQUESTS,   offset_expiration.offset_delete),
    (e.SessionTimedOut,        REQUESTS,   rebalance.session_timed_out),
    (e.PendingMemberTimedOut,  REQUESTS,   rebalance.pending_member_timed_out),
    (e.JoinTimedOut,           REQUESTS,   rebalance.join_timed_out),
    (e.InitialJoinTimedOut,    REQUESTS,   rebalance.initial_join_timed_out),
    (e.SyncTimedOut,           REQUESTS,   rebalance.sync_timed_out),
    (e.AssignmentStored,       REQUESTS,   rebalance.assignment_stored),
    (e.StaticMemberStored,     REQUESTS,   joining.static_member_stored),
    (e.OffsetsStored,          REQUESTS,   offsets.offsets_stored),
    (e.ExpireOffsets,          SCHEDULER,  offset_expiration.expire_offsets),
    (e.PartitionElected,       SCHEDULER,  group_loading.partition_elected),
    (e.PartitionResigned,      SCHEDULER,  group_loading.partition_resigned),
    (e.TransactionCompleted,   SCHEDULER,  offsets.transaction_completed),
)
# fmt: on

HANDLERS = {event: handler for event, _, handler in ROWS}
THREADS = {event: thread for event, thread, _ in ROWS}


def handle(ctx: GroupContext, event: Event) -> Handler:
    """Raises KeyError for an event without a row in HANDLERS."""
    return HANDLERS[type(event)](ctx, event)
