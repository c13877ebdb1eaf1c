"""How a generation comes about: members are asked to join, wait for each other, and wait for the leader's assignment.

Every function takes the context, the group's id and the time, and is a handler that others yield from. What Kafka keeps in its
purgatories is here the group's state, its parked requests, and a timer each for the join phase, the sync phase, every session.
Source: GroupCoordinator.scala (0.9, 2.8): prepareRebalance, onCompleteJoin, DelayedJoin, InitialDelayedJoin, DelayedSync.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from kcontrol.effects import Append, Arm, Cancel, Handler, Respond
from kcontrol.group import events as e
from kcontrol.group.context import GroupContext, keep
from kcontrol.group.errors import translated
from kcontrol.group.group_machine import COMPLETING, DEAD, EMPTY, PREPARING, STABLE, IllegalStateError, can_rebalance, move
from kcontrol.group.model import NO_MEMBER_ID, Group, Member
from kcontrol.group.records import group_key, group_value

# ---------------------------------------------------------------- sessions


def session_timer(group_id: str, member_id: str) -> str:
    return f"session {group_id} {member_id}"


def join_timer(group_id: str) -> str:
    return f"join {group_id}"


def sync_timer(group_id: str) -> str:
    return f"sync {group_id}"


def touch(group_id: str, member: Member, delay_ms: int | None = None) -> Arm:
    """The effect that starts a member's session anew. Source: completeAndScheduleNextHeartbeatExpiration."""
    timer = session_timer(group_id, member.member_id)
    return Arm(timer, delay_ms or member.session_timeout_ms, e.SessionTimedOut(group_id, member.member_id))


def session_timed_out(context: GroupContext, event: e.SessionTimedOut) -> Handler:
    """Remove a member that has been silent, unless it waits for an answer of ours; a newcomer may not wait for ever either."""
    group = context.groups.get(event.group_id)
    member = group.members.get(event.member_id) if group and group.state is not DEAD else None
    if member is None or (member.is_parked and not member.is_new):
        return
    yield from remove_member(context, event.group_id, member.member_id, event.timestamp_ms, "session timeout")


def pending_member_timed_out(context: GroupContext, event: e.PendingMemberTimedOut) -> Handler:
    group = context.groups.get(event.group_id)
    if group and group.state is not DEAD and event.member_id in group.pending_members:
        yield from forget_pending(context, event.group_id, event.member_id, event.timestamp_ms)


def forget_pending(context: GroupContext, group_id: str, member_id: str, now_ms: int) -> Handler:
    """Take back a member id that was handed out. Source: removePendingMemberAndUpdateGroup (2.8)."""
    group = context.groups[group_id]
    yield Cancel(session_timer(group_id, member_id))
    yield keep(group.but(pending_members=tuple(id for id in group.pending_members if id != member_id)))
    yield from try_complete_join(context, group_id, now_ms)


def remove_member(context: GroupContext, group_id: str, member_id: str, now_ms: int, rule: str) -> Handler:
    """A member fails or leaves. Source: onMemberFailure (0.9), removeMemberAndUpdateGroup (2.8)."""
    group = context.groups[group_id]
    parked = group.members[member_id].awaiting_join
    if parked and context.rules.removed_is_told:
        yield Respond(parked, refusal(context, NO_MEMBER_ID, "UNKNOWN_MEMBER_ID"))
    yield Cancel(session_timer(group_id, member_id))
    group = group.without(member_id)
    yield keep(group)
    if group.state in (STABLE, COMPLETING):
        yield from prepare_rebalance(context, group_id, now_ms, rule)
    elif group.state is PREPARING:
        yield from try_complete_join(context, group_id, now_ms)


# ---------------------------------------------------------------- the join phase


def refusal(context: GroupContext, member_id: str, error: str) -> e.JoinResult:
    return e.JoinResult(error, member_id, context.rules.error_generation)


def current(context: GroupContext, group: Group, member_id: str) -> e.JoinResult:
    """Return what a member is told of the generation that it is in; the members are the leader's alone."""
    members: tuple[tuple[str, bytes], ...] = ()
    if member_id == group.leader:
        members = tuple((other.member_id, other.metadata(group.protocol)) for other in group.members.values())
    kind = group.protocol_type if context.rules.names_protocols else None
    return e.JoinResult("NONE", member_id, group.generation, group.protocol or "", group.leader or "", members, kind)


def assigned(context: GroupContext, group: Group, assignment: bytes) -> e.SyncResult:
    """Return a member's assignment, with the group's protocol type and protocol where the release names them (KIP-559)."""
    named = (group.protocol_type, group.protocol) if context.rules.names_protocols else ()
    return e.SyncResult("NONE", assignment, *named)


def prepare_rebalance(context: GroupContext, group_id: str, now_ms: int, rule: str) -> Handler:
    """Ask all to join again, if the group is in a state for that, and wait for them."""
    group, rules = context.groups[group_id], context.rules
    if not can_rebalance(rules, group):
        return
    is_first = rules.initial_delay and group.state is EMPTY
    yield from refuse_parked_syncs(context, group_id, "REBALANCE_IN_PROGRESS")
    yield Cancel(sync_timer(group_id))
    group = yield from move(context, context.groups[group_id], PREPARING, now_ms, rule)
    timeout_ms = context.rebalance_timeout_ms(group)
    if is_first:
        delay_ms = context.config.initial_delay_ms
        yield keep(group.but(is_delayed=True))
        event = e.InitialJoinTimedOut(group_id, group.generation, delay_ms, max(timeout_ms - delay_ms, 0))
        yield Arm(join_timer(group_id), delay_ms, event)
    elif group.has_all_joined:
        yield from complete_join(context, group_id, now_ms, "all have joined")
    else:
        yield Arm(join_timer(group_id), timeout_ms, e.JoinTimedOut(group_id, group.generation))


def refuse_parked_syncs(context: GroupContext, group_id: str, error: str) -> Handler:
    """Whoever waits for an assignment hears that there is none. Source: resetAndPropagateAssignmentError (2.8)."""
    yield from answer_syncs(context, group_id, {}, error)


def answer_syncs(context: GroupContext, group_id: str, assignment: dict[str, bytes], error: str = "NONE") -> Handler:
    """Answer every parked SyncGroup, and start the sessions of those who hear. Source: propagateAssignment."""
    group = context.groups[group_id]
    waiting = {member.member_id: member.awaiting_sync for member in group.members.values() if member.awaiting_sync}
    if waiting:
        yield keep(group.with_members(replace(member, awaiting_sync=None) for member in group.members.values()))
    for member_id, correlation_id in waiting.items():
        yield Respond(correlation_id, assigned(context, group, assignment[member_id]) if error == "NONE" else e.SyncResult(error))
        yield touch(group_id, group.members[member_id])


def try_complete_join(context: GroupContext, group_id: str, now_ms: int) -> Handler:
    """End the join phase if everybody is there; a first wait is never ended early. Source: tryCompleteJoin."""
    group = context.groups[group_id]
    if group.state is PREPARING and group.has_all_joined and not group.is_delayed:
        yield from complete_join(context, group_id, now_ms, "all have joined")


def join_timed_out(context: GroupContext, event: e.JoinTimedOut) -> Handler:
    group = context.groups.get(event.group_id)
    if group and group.state is PREPARING and group.generation == event.generation:
        yield from complete_join(context, event.group_id, event.timestamp_ms, "rebalance timeout")


def initial_join_timed_out(context: GroupContext, event: e.InitialJoinTimedOut) -> Handler:
    """The first wait is over: if somebody has come meanwhile, wait on, as long as there is time. Source: InitialDelayedJoin."""
    group = context.groups.get(event.group_id)
    if group is None or group.state is not PREPARING or not group.is_delayed or group.generation != event.generation:
        return
    if group.has_newcomer and event.remaining_ms:
        delay_ms = min(context.config.initial_delay_ms, event.remaining_ms)
        yield keep(group.but(has_newcomer=False))
        left_ms = max(event.remaining_ms - event.delay_ms, 0)
        again = e.InitialJoinTimedOut(event.group_id, event.generation, delay_ms, left_ms)
        yield Arm(join_timer(event.group_id), delay_ms, again)
    else:
        yield from complete_join(context, event.group_id, event.timestamp_ms, "initial rebalance delay")


def complete_join(context: GroupContext, group_id: str, now_ms: int, rule: str) -> Handler:
    """The join phase ends: who is not there is out, unless static, and the next generation begins. Source: onCompleteJoin."""
    group = context.groups[group_id]
    yield Cancel(join_timer(group_id))
    gone = [member.member_id for member in group.not_yet_rejoined if member.instance_id is None]
    if gone:
        for member_id in gone:
            yield Cancel(session_timer(group_id, member_id))
        group = group.without(*gone)
        yield keep(group)
    if not group.members:
        yield from _end_without_members(context, group, now_ms, rule)
        return
    present = [member.member_id for member in group.members.values() if member.awaiting_join]
    if not present:  # static members alone, who are away: their sessions decide
        event = e.JoinTimedOut(group_id, group.generation)
        yield Arm(join_timer(group_id), context.rebalance_timeout_ms(group), event)
        return
    if group.leader not in present:
        group = group.but(leader=present[0])
    yield from _begin_generation(context, group, now_ms, rule)


def _end_without_members(context: GroupContext, group: Group, now_ms: int, rule: str) -> Handler:
    if not context.rules.keeps_empty_groups:
        yield from move(context, group, DEAD, now_ms, rule, leaves=True)
        yield Append(context.topic_partition(group.group_id), ((group_key(group.group_id), None),))
        return
    group = yield from move(context, group, EMPTY, now_ms, rule)
    yield store(context, group, {}, None)


def _begin_generation(context: GroupContext, group: Group, now_ms: int, rule: str) -> Handler:
    group_id, waiting = group.group_id, {id: m.awaiting_join for id, m in group.members.items() if m.awaiting_join}
    group = yield from move(context, group, COMPLETING, now_ms, rule)
    settled = group.with_members(replace(member, awaiting_join=None, is_new=False) for member in group.members.values())
    yield keep(settled.but(pending_sync=tuple(settled.members) if context.rules.sync_timeout else ()))
    for member in settled.members.values():
        if member.member_id in waiting:
            yield Respond(waiting[member.member_id], current(context, settled, member.member_id))
        yield touch(group_id, member)
    if context.rules.sync_timeout:
        yield Arm(sync_timer(group_id), context.rebalance_timeout_ms(settled), e.SyncTimedOut(group_id, settled.generation))


# ---------------------------------------------------------------- the sync phase


def sync_arrived(context: GroupContext, group_id: str, member_id: str) -> Handler:
    """A member has asked for its assignment; when all have, nobody waits for it. Source: removePendingSyncMember (2.8)."""
    group = context.groups[group_id]
    if member_id in group.pending_sync:
        group = group.but(pending_sync=tuple(id for id in group.pending_sync if id != member_id))
        yield keep(group)
        if not group.pending_sync:
            yield Cancel(sync_timer(group_id))


def sync_timed_out(context: GroupContext, event: e.SyncTimedOut) -> Handler:
    """Remove the members that have not asked for their assignments. Source: onExpirePendingSync (2.8).

    Raises IllegalStateError where one of them has come back under another id since: only those before it are removed then.
    """
    group = context.groups.get(event.group_id)
    if group is None or group.generation != event.generation or group.state not in (COMPLETING, STABLE) or not group.pending_sync:
        return
    gone = tuple(takewhile(lambda member_id: member_id in group.members, group.pending_sync))
    for member_id in gone:
        yield Cancel(session_timer(event.group_id, member_id))
    yield keep(group.without(*gone))
    if gone != group.pending_sync:
        raise IllegalStateError(f"No member {group.pending_sync[len(gone)]} is there that could have asked for its assignment")
    yield from prepare_rebalance(context, event.group_id, event.timestamp_ms, "sync timeout")


def store(context: GroupContext, group: Group, assignment: dict[str, bytes], then: e.Appended | None) -> Append:
    """The effect that writes a group's record with these assignments.

    That a group is empty nobody waits to be written: if it fails, the next coordinator believes in the generation before.
    """
    value = group_value(group, assignment, context.rules.group_value)
    return Append(context.topic_partition(group.group_id), ((group_key(group.group_id), value),), then)


def assignment_stored(context: GroupContext, event: e.AssignmentStored) -> Handler:
    """Hand out the leader's assignment when it is in the log, or ask all to join again when it will never be.

    It means nothing if the group has gone on since, or is a later group of this name.
    """
    group = context.groups.get(event.group_id)
    if group is None or group.state is not COMPLETING or group.generation != event.generation:
        return
    if event.incarnation != context.incarnation_of(event.group_id):
        return
    if not group.members.keys() <= event.assignment.keys():
        return  # until 2.5 a static member that is back has an id without an assignment, on which Kafka throws
    if event.error != "NONE":
        error = translated("group", event.error, context.rules.append_errors)
        yield from refuse_parked_syncs(context, event.group_id, error)
        yield from prepare_rebalance(context, event.group_id, event.timestamp_ms, f"the assignment was not stored: {event.error}")
        return
    assignment = dict(event.assignment)
    yield keep(group.with_members(replace(m, assignment=assignment.get(m.member_id, b"")) for m in group.members.values()))
    yield from answer_syncs(context, event.group_id, assignment)
    yield from move(context, context.groups[event.group_id], STABLE, event.timestamp_ms, "the assignment is stored")
