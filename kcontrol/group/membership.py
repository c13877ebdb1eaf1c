"""SyncGroup, Heartbeat, LeaveGroup, DescribeGroups and ListGroups: what members and onlookers ask of a group that there is.

Source: doSyncGroup, handleHeartbeat, handleLeaveGroup, handleDescribeGroup and handleListGroups of GroupCoordinator.scala (0.9,
2.8).
"""

from __future__ import annotations

from dataclasses import replace

from kcontrol.effects import Handler, Park, Respond
from kcontrol.group import events as e
from kcontrol.group.context import GroupContext, keep
from kcontrol.group.group_machine import COMPLETING, DEAD, EMPTY, PREPARING, STABLE, IllegalStateError
from kcontrol.group.model import NO_MEMBER_ID, Group
from kcontrol.group.rebalance import assigned, forget_pending, remove_member, store, sync_arrived, touch

# ---------------------------------------------------------------- SyncGroup


def sync_group(context: GroupContext, event: e.SyncGroup) -> Handler:
    """Park whoever asks before the leader has assigned; the leader's own request brings the assignment."""
    if error := _sync_error(context, event):
        yield Respond(event.correlation_id, e.SyncResult(error))
        return
    group = context.groups[event.group_id]
    member = group.members[event.member_id]
    if group.state is STABLE:
        yield from sync_arrived(context, event.group_id, event.member_id)
        yield Respond(event.correlation_id, assigned(context, group, member.assignment))
        yield touch(event.group_id, member)
        return
    yield Park(event.correlation_id, f"sync {event.group_id}")
    yield keep(group.with_member(replace(member, awaiting_sync=event.correlation_id)))
    yield from sync_arrived(context, event.group_id, event.member_id)
    if group.leader == event.member_id:
        assignment = dict.fromkeys(group.members, b"") | dict(event.assignment)
        incarnation = context.incarnation_of(event.group_id)
        then = e.AssignmentStored(event.group_id, group.generation, assignment, incarnation=incarnation)
        yield store(context, context.groups[event.group_id], assignment, then)


def _sync_error(context: GroupContext, event: e.SyncGroup) -> str | None:
    if error := context.refusal(event.group_id):
        if error != "COORDINATOR_LOAD_IN_PROGRESS":
            return error
        if context.rules.loading_first:
            return "REBALANCE_IN_PROGRESS"  # its members must begin again, and old ones know no better error
    group = context.groups.get(event.group_id)
    if group is None:
        return "UNKNOWN_MEMBER_ID"
    if error := _member_error(context, group, event.member_id, event.generation, event.instance_id):
        return error
    if event.protocol_type not in (None, group.protocol_type) or event.protocol not in (None, group.protocol):
        return "INCONSISTENT_GROUP_PROTOCOL"
    return {EMPTY: "UNKNOWN_MEMBER_ID", PREPARING: "REBALANCE_IN_PROGRESS"}.get(group.state)


def _member_error(context: GroupContext, group: Group, member_id: str, generation: int, instance_id: str | None) -> str | None:
    if group.state is DEAD:
        return context.rules.dead_error
    if group.is_fenced(member_id, instance_id):
        return "FENCED_INSTANCE_ID"
    if member_id not in group.members:
        return "UNKNOWN_MEMBER_ID"
    return "ILLEGAL_GENERATION" if generation != group.generation else None


# ---------------------------------------------------------------- Heartbeat


def heartbeat(context: GroupContext, event: e.Heartbeat) -> Handler:
    """A sign of life, which counts unless there is an error; a member that must join again hears so."""
    group = context.groups.get(event.group_id)
    error, counts = _heartbeat_error(context, event, group)
    if counts and group:
        yield touch(event.group_id, group.members[event.member_id])
    yield Respond(event.correlation_id, e.Result(error))


def _heartbeat_error(context: GroupContext, event: e.Heartbeat, group: Group | None) -> tuple[str, bool]:
    """The answer, and whether the heartbeat counts for the session."""
    if error := context.refusal(event.group_id):
        return ("NONE" if error == "COORDINATOR_LOAD_IN_PROGRESS" else error), False
    if group is None:
        return "UNKNOWN_MEMBER_ID", False
    rules, refused = context.rules, context.rules.heartbeat_if_awaiting
    if refused == "refused to all" and group.state in (PREPARING, COMPLETING):
        return "REBALANCE_IN_PROGRESS", False
    error = _member_error(context, group, event.member_id, event.generation, event.instance_id)
    if refused == "refused" and error == "ILLEGAL_GENERATION" and group.state is COMPLETING:
        return "REBALANCE_IN_PROGRESS", False
    if error or group.state is EMPTY:
        return error or "UNKNOWN_MEMBER_ID", False
    if group.state is PREPARING:
        return "REBALANCE_IN_PROGRESS", rules.touch_if_preparing
    if group.state is COMPLETING and refused != "accepted":
        return "REBALANCE_IN_PROGRESS", False
    return "NONE", True


# ---------------------------------------------------------------- LeaveGroup


def leave_group(context: GroupContext, event: e.LeaveGroup) -> Handler:
    """Members go of their own accord; since 2.4 several at once, each with its own code."""
    group = context.groups.get(event.group_id)
    error = context.refusal(event.group_id)
    if not error and group and group.state is DEAD:
        error = context.rules.dead_error
    if error:
        yield Respond(event.correlation_id, e.LeaveResult(error))
        return
    codes = []
    for identity in event.members:
        codes.append((yield from _leave(context, event, identity)))
    one = context.rules.leave_answer == "one code"
    answer = e.LeaveResult(codes[0]) if one else e.LeaveResult("NONE", tuple(codes), event.members)
    yield Respond(event.correlation_id, answer)


def _leave(context: GroupContext, event: e.LeaveGroup, identity: e.MemberIdentity) -> Handler:
    group = context.groups.get(event.group_id)
    member_id, instance_id = identity
    if group is None:
        return "UNKNOWN_MEMBER_ID"
    if member_id != NO_MEMBER_ID and group.is_fenced(member_id, instance_id):
        return "FENCED_INSTANCE_ID"
    if member_id in group.pending_members:
        if instance_id:
            raise IllegalStateError(f"The static member {instance_id} was not expected to leave under the pending id {member_id}")
        yield from forget_pending(context, event.group_id, member_id, event.timestamp_ms)
        return "NONE"
    leaving = group.member_of(instance_id) or member_id
    if leaving not in group.members:
        return "UNKNOWN_MEMBER_ID"
    yield from remove_member(context, event.group_id, leaving, event.timestamp_ms, "a member leaves")
    return "NONE"


# ---------------------------------------------------------------- onlookers


def describe_group(context: GroupContext, event: e.DescribeGroup) -> Handler:
    """What a group is like; a group that is not there is Dead, without an error."""
    group = context.groups.get(event.group_id)
    if error := context.refusal(event.group_id, needs_name=False):
        answer = e.DescribeResult(error)
    elif group is None:
        answer = e.DescribeResult("NONE", str(DEAD))
    else:
        is_stable = group.state is STABLE
        members = tuple(
            (member, member.metadata(group.protocol) if is_stable else b"", member.assignment if is_stable else b"")
            for member in group.members.values()
        )
        protocol = (group.protocol or "") if is_stable else ""
        answer = e.DescribeResult("NONE", context.name_of(group.state), group.protocol_type or "", protocol, members)
    yield Respond(event.correlation_id, answer)


def list_groups(context: GroupContext, event: e.ListGroups) -> Handler:
    """All groups in the cache; an error only where something is being loaded, and then with what is there."""
    error = "COORDINATOR_LOAD_IN_PROGRESS" if context.loading else "NONE"
    groups = (
        (group.group_id, group.protocol_type or "", context.name_of(group.state))
        for group in context.groups.values()
        if not event.states or context.name_of(group.state) in event.states
    )
    yield Respond(event.correlation_id, e.ListResult(error, tuple(groups)))
