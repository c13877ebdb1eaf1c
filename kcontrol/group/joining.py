"""JoinGroup: who may come in, who is handed an id first, and who makes all others join again.

Source: handleJoinGroup, doJoinGroup, doUnknownJoinGroup, acceptJoiningMember, addMemberAndRebalance, updateMemberAndRebalance and
updateStaticMemberAndRebalance of GroupCoordinator.scala (0.9, 2.8).
"""

from __future__ import annotations

from dataclasses import replace

from kcontrol.effects import Arm, Cancel, Handler, Learn, Park, Respond
from kcontrol.group import events as e
from kcontrol.group.context import GroupContext, keep, unloaded_name
from kcontrol.group.errors import translated
from kcontrol.group.group_machine import COMPLETING, DEAD, EMPTY, PREPARING, STABLE, IllegalStateError, new_group
from kcontrol.group.model import NO_MEMBER_ID, Group, Member
from kcontrol.group.rebalance import (
    current,
    prepare_rebalance,
    refusal,
    session_timer,
    store,
    touch,
    try_complete_join,
)


def join_group(context: GroupContext, event: e.JoinGroup) -> Handler:
    """Answer, or park the request until the join phase ends."""
    group = context.groups.get(event.group_id)
    if error := _refused_at_once(context, event, group):
        yield _refuse(context, event, error)
        return
    if group is None:
        group = new_group(context, event.group_id, event.protocol_type, event.timestamp_ms)
        yield keep(group)
    if not _has_room(context, group, event.member_id):
        yield from _turn_away(context, event, group)
    elif error := _refused(context, event, group):
        yield _refuse(context, event, error)
    elif event.member_id == NO_MEMBER_ID:
        yield from _join_unknown(context, event, group)
    elif event.member_id in group.pending_members and event.member_id not in group.members:
        if event.instance_id is not None:
            raise IllegalStateError(
                f"The static member {event.instance_id} was not expected under the pending id {event.member_id}"
            )
        yield from _add_member(context, event, group, event.member_id)
    else:
        yield from _join_again(context, event, group, group.members[event.member_id])
    if event.group_id in context.groups:
        yield from try_complete_join(context, event.group_id, event.timestamp_ms)


def _refused_at_once(context: GroupContext, event: e.JoinGroup, group: Group | None) -> str | None:
    """Why a request fails whatever the group is like."""
    config = context.config
    if not event.group_id:
        return "INVALID_GROUP_ID"
    if error := context.refusal(event.group_id):
        return error
    if not config.min_session_timeout_ms <= event.session_timeout_ms <= config.max_session_timeout_ms:
        return "INVALID_SESSION_TIMEOUT"
    return "UNKNOWN_MEMBER_ID" if group is None and event.member_id != NO_MEMBER_ID else None


def _refused(context: GroupContext, event: e.JoinGroup, group: Group) -> str | None:
    """Why this group does not take the request."""
    rules, member_id = context.rules, event.member_id
    if group.state is DEAD:
        return rules.dead_error
    if not group.supports(event.protocol_type, [p.name for p in event.protocols], rules.first_protocols):
        return "INCONSISTENT_GROUP_PROTOCOL"
    if member_id == NO_MEMBER_ID or (member_id in group.pending_members and member_id not in group.members):
        return None
    if group.is_fenced(member_id, event.instance_id):
        return "FENCED_INSTANCE_ID"
    if member_id not in group.members or (event.instance_id and not group.member_of(event.instance_id)):
        return "UNKNOWN_MEMBER_ID"
    return "UNKNOWN_MEMBER_ID" if group.state is EMPTY else None


def _refuse(context: GroupContext, event: e.JoinGroup, error: str, member_id: str | None = None) -> Respond:
    return Respond(event.correlation_id, refusal(context, event.member_id if member_id is None else member_id, error))


def _has_room(context: GroupContext, group: Group, member_id: str) -> bool:
    """Whether group.max.size lets somebody in: in the join phase, seats go to whoever is parked first."""
    if not context.rules.limits_size or group.state in (EMPTY, DEAD):
        return True
    member = group.members.get(member_id)
    if group.state is PREPARING:
        parked = sum(other.awaiting_join is not None for other in group.members.values())
        return (member is not None and member.awaiting_join is not None) or parked < context.config.max_size
    return member is not None or len(group.members) < context.config.max_size


def _turn_away(context: GroupContext, event: e.JoinGroup, group: Group) -> Handler:
    if event.member_id in group.members:
        yield Cancel(session_timer(event.group_id, event.member_id))
        yield keep(group.without(event.member_id))
    yield _refuse(context, event, "GROUP_MAX_SIZE_REACHED", NO_MEMBER_ID)


def _join_unknown(context: GroupContext, event: e.JoinGroup, group: Group) -> Handler:
    """Somebody without an id: a static member that is back, one who gets an id first, or a newcomer."""
    member_id = f"{event.instance_id or event.client_id}-{event.uuid}"
    if group.member_of(event.instance_id):
        yield from _replace_static(context, event, group, member_id)
    elif event.requires_known_id and context.rules.known_member_ids and event.instance_id is None:
        yield keep(group.but(pending_members=(*group.pending_members, member_id)))
        timed_out = e.PendingMemberTimedOut(event.group_id, member_id)
        yield Arm(session_timer(event.group_id, member_id), event.session_timeout_ms, timed_out)
        yield _refuse(context, event, "MEMBER_ID_REQUIRED", member_id)
    else:
        yield from _add_member(context, event, group, member_id)


def _add_member(context: GroupContext, event: e.JoinGroup, group: Group, member_id: str) -> Handler:
    """A newcomer, whose timeouts are from now on what they are in this request."""
    rules = context.rules
    timeouts = event.session_timeout_ms, event.rebalance_timeout_ms if rules.rebalance_timeouts else event.session_timeout_ms
    member = Member(member_id, event.client_id, event.client_host, *timeouts, event.protocols, event.instance_id)
    is_new = rules.new_member_timeout_ms is not None
    if not group.members and rules.keeps_empty_groups:
        group = group.but(protocol_type=event.protocol_type)
    is_late = group.state is PREPARING and group.generation == 0
    member = replace(member, awaiting_join=event.correlation_id, is_new=is_new)
    yield Park(event.correlation_id, f"join {event.group_id}")
    yield keep(group.with_member(member).but(has_newcomer=group.has_newcomer or is_late))
    if is_new:
        yield touch(event.group_id, member, rules.new_member_timeout_ms)
    yield from prepare_rebalance(context, event.group_id, event.timestamp_ms, "a new member")


def _join_again(context: GroupContext, event: e.JoinGroup, group: Group, member: Member) -> Handler:
    """A member joins once more: only a leader, or one that offers something else, makes a settled group start over."""
    has_changed = member.protocols != event.protocols
    is_leader = group.leader == member.member_id
    if (group.state is COMPLETING and not has_changed) or (group.state is STABLE and not has_changed and not is_leader):
        answer = current(context, group, member.member_id)
        yield Respond(event.correlation_id, answer if group.state is COMPLETING else answer._replace(members=()))
        return
    yield Park(event.correlation_id, f"join {event.group_id}")
    yield keep(group.with_member(replace(member, protocols=event.protocols, awaiting_join=event.correlation_id)))
    reason = "the leader joins again" if is_leader and not has_changed else "a member offers other protocols"
    yield from prepare_rebalance(context, event.group_id, event.timestamp_ms, reason)


# ---------------------------------------------------------------- static members


def _replace_static(context: GroupContext, event: e.JoinGroup, group: Group, member_id: str) -> Handler:
    """A static member is back under a new id: who works under the old one is fenced, and nobody else need notice (KIP-345)."""
    old_id, leader = group.member_of(event.instance_id) or "", group.leader
    if group.state in (EMPTY, DEAD):
        raise IllegalStateError(f"Group {group.group_id} was not supposed to be {group.state} with static member {old_id}")
    old = group.members[old_id]
    if old.awaiting_join:
        yield Respond(old.awaiting_join, refusal(context, old_id, "FENCED_INSTANCE_ID"))
    if old.awaiting_sync:
        yield Respond(old.awaiting_sync, e.SyncResult("FENCED_INSTANCE_ID"))
    member = replace(
        old, member_id=member_id, protocols=event.protocols, awaiting_join=event.correlation_id, awaiting_sync=None
    )  # fmt: skip
    group = renamed(group, old_id, member)
    is_stored = context.rules.static_rejoin == "stored"
    stays = not is_stored or (group.state is STABLE and group.select_protocol() == group.protocol)
    if stays and group.state is not PREPARING:
        member = replace(member, unwritten=(*member.unwritten, member_id))
        group = group.with_member(member)
    yield Cancel(session_timer(event.group_id, old_id))
    yield Park(event.correlation_id, f"join {event.group_id}")
    yield keep(group)
    yield touch(event.group_id, member)
    incarnation = context.incarnation_of(event.group_id)
    then = e.StaticMemberStored(
        event.group_id, event.correlation_id, member_id, old_id, leader, event.protocols, incarnation=incarnation
    )
    if group.state is PREPARING:
        return
    if not stays:
        yield from prepare_rebalance(context, event.group_id, event.timestamp_ms, "a static member is back")
    elif not is_stored:
        yield from static_member_stored(context, then)
    else:
        assignment = {other.member_id: other.assignment for other in group.members.values()}
        yield store(context, group, assignment, then)


def renamed(group: Group, old_id: str, member: Member) -> Group:
    """The group with one member under another id; who leads goes on to lead. Source: replaceGroupInstance (2.8)."""
    members = {id: other for id, other in group.members.items() if id != old_id} | {member.member_id: member}
    return group.but(members=members, leader=member.member_id if group.leader == old_id else group.leader)


def static_member_stored(context: GroupContext, event: e.StaticMemberStored) -> Handler:
    """Answer a static member's JoinGroup when the record with its new id is in the log, or take the new id back.

    The write belongs to the group that wrote, also after that group has been unloaded.
    Source: the callback of storeGroup in updateStaticMemberAndRebalance (2.8).
    """
    name, is_current = (
        unloaded_name(event.group_id, event.incarnation),
        event.incarnation == context.incarnation_of(event.group_id),
    )
    group = context.groups.get(event.group_id) if is_current else context.unloaded.get(name)
    member = group.writer_of(event.member_id) if group else None
    after = yield from (_id_stored if event.error == "NONE" else _id_lost)(context, event, group, member)
    if after is not None and is_current:
        yield keep(after)
    elif after is not None:
        is_done = not any(other.unwritten for other in after.members.values())
        yield Learn("unloaded", remove=(name,), context="group") if is_done else Learn("unloaded", {name: after}, context="group")
    if event.error != "NONE":
        yield from _after_id_lost(context, event, member, after if is_current else None)


def _id_stored(context: GroupContext, event: e.StaticMemberStored, group: Group | None, member: Member | None) -> Handler:
    """Answer whichever JoinGroup the member waits for; return the group as it is then, None where the member has gone.

    The answer names the leader as it was before, so that a leader that is back does not assign, and the id of this write,
    although the member may have come back again under another id.
    """
    yield from ()
    if group is None or member is None:
        return None
    if member.awaiting_join is not None:
        answer = current(context, group, event.member_id)._replace(leader=event.leader or "", members=())
        yield Respond(member.awaiting_join, answer)
    return group.with_member(replace(member.wrote(event.member_id), awaiting_join=None))


def _id_lost(context: GroupContext, event: e.StaticMemberStored, group: Group | None, member: Member | None) -> Handler:
    """Take the new id back; return the group as it is then. A JoinGroup that came later is dropped without an answer.

    The protocols are those of this JoinGroup, which Kafka takes for the old ones.
    """
    if group is None or member is None:
        return None
    dropped = member.awaiting_join or member.dropped
    written = replace(member.wrote(event.member_id), protocols=event.protocols, awaiting_join=None, dropped=dropped)
    if member.member_id != event.member_id:
        return group.with_member(written)
    if member.awaiting_sync:
        yield Respond(member.awaiting_sync, e.SyncResult("FENCED_INSTANCE_ID"))
    if event.correlation_id in (member.awaiting_join, member.dropped):
        named = current(context, group, NO_MEMBER_ID)._replace(leader=event.leader or "", members=())
        yield Respond(event.correlation_id, named._replace(error=translated("group", event.error, context.rules.append_errors)))
        written = replace(written, dropped=None)
    return renamed(group, event.member_id, replace(written, member_id=event.old_member_id, awaiting_sync=None))


def _after_id_lost(context: GroupContext, event: e.StaticMemberStored, member: Member | None, group: Group | None) -> Handler:
    """Start the session of the old id. Raises IllegalStateError where no member has the new id, as replaceGroupInstance (2.8)."""
    if member is None or member.member_id != event.member_id:
        raise IllegalStateError(f"Cannot replace non-existing member id {event.member_id}")
    if group is not None:
        yield Cancel(session_timer(event.group_id, event.member_id))
        yield touch(event.group_id, group.members[event.old_member_id])
