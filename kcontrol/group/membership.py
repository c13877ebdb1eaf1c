"""Handlers of SyncGroup, Heartbeat, LeaveGroup, DescribeGroups and ListGroups.

The row of GROUP_REACTIONS (`request_reactions.py`) decides the response. `rebalance.py` decides
what follows after a member has left.

Source: doSyncGroup, handleHeartbeat, handleLeaveGroup, handleDescribeGroup and handleListGroups of
GroupCoordinator.scala (0.9, 2.8).
"""

from dataclasses import replace

from kcontrol.core.effects import Handler, Park, Respond
from kcontrol.group import events as e
from kcontrol.group import rebalance
from kcontrol.group.context import GroupContext, cache_group
from kcontrol.group.group_machine import DEAD
from kcontrol.group.request_reactions import react

# ---------------------------------------------------------------- SyncGroup


def sync_group(ctx: GroupContext, event: e.SyncGroup) -> Handler:
    """Answer with the assignment or an error, or park the request until the assignment is stored.

    The table GROUP_REACTIONS (by request and group state) decides. The leader's SyncGroup begins
    the write of all assignments.

    Source: handleSyncGroup, doSyncGroup (0.9, 2.8).
    """
    group = ctx.groups.get(event.group_id)
    error = refused_here(ctx, event)
    row = None if error else react(ctx, group, event)
    if row is None or group is None or row.reaction not in SYNCS:
        yield Respond(event.correlation_id, e.SyncResult(error or (row.reaction if row else "")))
        return
    member = group.members[event.member_id]
    if row.reaction == ANSWER:
        yield from rebalance.remove_pending_sync_member(ctx, event.group_id, event.member_id)
        yield Respond(event.correlation_id, rebalance.sync_result(ctx, group, member.assignment))
    else:
        yield Park(event.correlation_id, f"sync {event.group_id}")
        member = replace(member, awaiting_sync=event.correlation_id)
        yield cache_group(group.with_member(member))
        yield from rebalance.remove_pending_sync_member(ctx, event.group_id, event.member_id)
    # Before KIP-62 a parked SyncGroup restarts the session too, which is complete at the first try.
    if row.restarts_session or not ctx.rules.rebalance_timeouts:
        yield rebalance.restart_session(ctx, event.group_id, member)
    if row.reaction == STORE:
        # A member for which the leader has sent no assignment gets an empty one.
        assignment = dict.fromkeys(group.members, b"") | dict(event.assignment)
        named, incarnation = event.group_id, ctx.incarnation_of(event.group_id)
        then = e.AssignmentStored(named, group.generation, assignment, incarnation=incarnation)
        yield rebalance.store_group(ctx, ctx.groups[named], assignment, then)


SYNCS = (ANSWER := "answer with the assignment", STORE := "park and store the assignment", "park")

# The errors instead of COORDINATOR_LOAD_IN_PROGRESS, which old clients do not support.
WHILE_LOADING = {e.SyncGroup: "REBALANCE_IN_PROGRESS", e.Heartbeat: "NONE"}


def refused_here(ctx: GroupContext, event: e.SyncGroup | e.Heartbeat) -> str | None:
    """Return an error that does not depend on the group, such as NOT_COORDINATOR, else None.

    While the group is being loaded, return "NONE" for a Heartbeat and, since 2.0,
    REBALANCE_IN_PROGRESS for a SyncGroup.

    Source: handleSyncGroup, handleHeartbeat.
    """
    error = ctx.validate_group_status(event.group_id)
    if error != "COORDINATOR_LOAD_IN_PROGRESS":
        return error
    # Before 2.0 a SyncGroup during the loading is handled as usual.
    is_checked = ctx.rules.loading_first or isinstance(event, e.Heartbeat)
    return WHILE_LOADING[type(event)] if is_checked else None


# ---------------------------------------------------------------- Heartbeat


def heartbeat(ctx: GroupContext, event: e.Heartbeat) -> Handler:
    """Answer with the error, or NONE, that the table GROUP_REACTIONS has for the group's state.

    A row of the table with `restarts_session` also restarts the member's session. Source:
    handleHeartbeat (0.9, 2.8).
    """
    group = ctx.groups.get(event.group_id)
    error = refused_here(ctx, event)
    if error is None:
        row = react(ctx, group, event)
        error = row.reaction
        if row.restarts_session and group:
            yield rebalance.restart_session(ctx, event.group_id, group.members[event.member_id])
    yield Respond(event.correlation_id, e.HeartbeatResult(error))


# ---------------------------------------------------------------- LeaveGroup


def leave_group(ctx: GroupContext, event: e.LeaveGroup) -> Handler:
    """Remove the members that a LeaveGroup names, and answer with "NONE" or an error for each.

    If the group is not coordinated here or is being loaded, answer with one error and remove no
    member.

    Source: handleLeaveGroup (0.9, 2.8), KIP-345.
    """
    group, error = ctx.groups.get(event.group_id), ctx.validate_group_status(event.group_id)
    if not error and group and group.state is DEAD:
        error = react(ctx, group, event).reaction
    if error:
        yield Respond(event.correlation_id, e.LeaveResult(error))
        return
    codes = []
    for identity in event.members:
        codes.append((yield from _leave_member(ctx, event, identity)))
    # Before 2.4 a request names one member, and its response has one error.
    one = ctx.rules.leave_answer == "one error"
    answer = e.LeaveResult(codes[0]) if one else e.LeaveResult("NONE", tuple(codes), event.members)
    yield Respond(event.correlation_id, answer)


def _leave_member(ctx: GroupContext, event: e.LeaveGroup, identity: e.MemberIdentity) -> Handler:
    """Remove the member `identity`, or a pending member id in `identity`, and return "NONE".

    If the table GROUP_REACTIONS has an error for the request in this group state, return the error
    and remove nothing.
    """
    group, now_ms = ctx.groups.get(event.group_id), event.timestamp_ms
    row = react(ctx, group, event, identity)
    if row.reaction == "forget the member id":
        yield from rebalance.remove_pending_member(ctx, event.group_id, identity.member_id, now_ms)
    elif row.reaction == "remove the member" and group:
        leaving = group.member_of(identity.instance_id) or identity.member_id
        yield from rebalance.remove_member(ctx, event.group_id, leaving, now_ms, "a member leaves")
    else:
        return row.reaction
    return "NONE"


# ---------------------------------------------------------------- administration


def describe_group(ctx: GroupContext, event: e.DescribeGroup) -> Handler:
    """Answer with the state and the members of a group; a missing group is Dead.

    Only a Stable group shows protocol, metadata and assignments.

    Source: handleDescribeGroup, GroupMetadata.summary (0.9, 2.8).
    """
    group = ctx.groups.get(event.group_id)
    if error := ctx.validate_group_status(event.group_id, needs_name=False):
        yield Respond(event.correlation_id, e.DescribeResult(error))
        return
    row = react(ctx, group, event)
    if group is None:
        yield Respond(event.correlation_id, e.DescribeResult("NONE", str(DEAD)))
        return
    is_stable = row.reaction == "answer with assignments"
    shown = {m: (m.metadata(group.protocol), m.assignment) for m in group.members.values()}
    hidden = b"", b""
    members = tuple((member, *(pair if is_stable else hidden)) for member, pair in shown.items())
    said = ctx.name_of(group.state), group.protocol_type or ""
    protocol = (group.protocol or "") if is_stable else ""
    yield Respond(event.correlation_id, e.DescribeResult("NONE", *said, protocol, members))


def list_groups(ctx: GroupContext, event: e.ListGroups) -> Handler:
    """Answer with all groups in the cache, or with the groups in the states that the request names.

    Source: handleListGroups (0.9, 2.8).
    """
    # While a partition is being loaded the response also has the groups loaded so far.
    error = "COORDINATOR_LOAD_IN_PROGRESS" if ctx.loading else "NONE"
    held = ctx.groups.values()
    rows = [(group.group_id, group.protocol_type or "", ctx.name_of(group.state)) for group in held]
    listed = tuple(row for row in rows if not event.states or row[2] in event.states)
    yield Respond(event.correlation_id, e.ListResult(error, listed))
