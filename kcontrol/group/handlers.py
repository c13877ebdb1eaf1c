"""Which handler answers which event, and which of a broker's threads it runs on.

Source: KafkaApis.scala (who calls the coordinator), GroupMetadataManager.scala (what its scheduler does) (0.9, 2.8).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kcontrol.effects import Handler
from kcontrol.events import Event
from kcontrol.group import events as e
from kcontrol.group import expiry, joining, loading, membership, offsets, rebalance
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
    (e.DeleteGroups,           REQUESTS,   expiry.delete_groups),
    (e.OffsetDelete,           REQUESTS,   expiry.offset_delete),
    (e.SessionTimedOut,        REQUESTS,   rebalance.session_timed_out),
    (e.PendingMemberTimedOut,  REQUESTS,   rebalance.pending_member_timed_out),
    (e.JoinTimedOut,           REQUESTS,   rebalance.join_timed_out),
    (e.InitialJoinTimedOut,    REQUESTS,   rebalance.initial_join_timed_out),
    (e.SyncTimedOut,           REQUESTS,   rebalance.sync_timed_out),
    (e.AssignmentStored,       REQUESTS,   rebalance.assignment_stored),
    (e.StaticMemberStored,     REQUESTS,   joining.static_member_stored),
    (e.OffsetsStored,          REQUESTS,   offsets.offsets_stored),
    (e.ExpireOffsets,          SCHEDULER,  expiry.expire_offsets),
    (e.PartitionElected,       SCHEDULER,  loading.partition_elected),
    (e.PartitionResigned,      SCHEDULER,  loading.partition_resigned),
    (e.TransactionCompleted,   SCHEDULER,  offsets.transaction_completed),
)
# fmt: on

HANDLERS = {event: handler for event, _, handler in ROWS}
THREADS = {event: thread for event, thread, _ in ROWS}


def handle(context: GroupContext, event: Event) -> Handler:
    """The story of one event. Raises KeyError for one that is none of the coordinator's."""
    return HANDLERS[type(event)](context, event)
