"""The rebalance: all members join again, the leader assigns partitions, members receive them.

The join phase (PreparingRebalance) begins with `prepare_rebalance` and ends with
`on_complete_join`, when all members have a parked JoinGroup or the timeout is over; members without
a parked JoinGroup are removed. In the sync phase (CompletingRebalance) the leader's SyncGroup
contains the assignment, which is written to the log; `assignment_stored` answers all parked
SyncGroups and makes the group Stable.

Kafka's purgatories are here the group's state, its parked requests, and a timer each for the join
phase, the sync phase and every session. `SetTimer` stands for tryCompleteElseWatch, `CancelTimer`
for checkAndComplete: their field `is_complete` is the result of tryComplete
(`delayed_operations.py`). Functions that take the context, the group's id and the time are handlers
that other handlers yield from.

Which request begins a rebalance is decided in `request_reactions.py` and `joining.py`: read these
next.

Source: GroupCoordinator.scala (0.9, 2.8): prepareRebalance, onCompleteJoin, DelayedJoin,
InitialDelayedJoin, DelayedSync.
"""

from dataclasses import replace
from itertools import takewhile

from kcontrol.core.effects import Append, CancelTimer, Handler, Respond, SetTimer
from kcontrol.group import events as e
from kcontrol.group import group_machine as machine
from kcontrol.group.context import GroupContext, cache_group
from kcontrol.group.error_codes import translate_append_error
from kcontrol.group.group_machine import COMPLETING, DEAD, EMPTY, PREPARING, STABLE
from kcontrol.group.group_strategies import KEEP_ALIVE, may_complete_join, rule
from kcontrol.group.model import NO_MEMBER_ID, Group, Member, without_id
from kcontrol.group.offsets_topic_records import group_key, group_value

# ---------------------------------------------------------------- sessions


def session_timer(group_id: str, member_id: str) -> str:
    """Return the name of the session timer of a (pending) member id: "session <group> <id>"."""
    return f"session {group_id} {member_id}"


def join_timer(group_id: str) -> str:
    """Return the name of the timer of a group's join phase, such as "join my-group"."""
    return f"join {group_id}"


def sync_timer(group_id: str) -> str:
    """Return the name of the timer of a group's sync phase, such as "sync my-group"."""
    return f"sync {group_id}"


def keeps_alive(ctx: GroupContext, member: Member) -> bool:
    """Return whether a member stays in the group at the deadline of its session.

    By Kafka's rule a member stays if one of its requests is parked.

    Source: tryCompleteHeartbeat and onExpireHeartbeat of GroupCoordinator.scala (0.9, 2.8).
    """
    # Since 2.1 the JoinGroup of a new member does not count as parked.
    ms, parked = member.session_timeout_ms, member.is_parked and not member.is_new
    # The member's latest heartbeat counts as time 0, so the deadline is the session timeout.
    # A learner may replace the rule `group.keep_alive`.
    return bool(rule(ctx, KEEP_ALIVE)(0, ms, ms, parked))


def restart_session(ctx: GroupContext, group_id: str, member: Member, ms: int = 0) -> SetTimer:
    """Return the effect SetTimer that starts the timer of a member's session again.

    The timer fires after `ms` or, if `ms` is 0, after the member's session timeout.

    Source: completeAndScheduleNextHeartbeatExpiration of GroupCoordinator.scala (0.9, 2.8),
    hasSatisfiedHeartbeat of MemberMetadata.scala (2.8).
    """
    timer, ms = session_timer(group_id, member.member_id), ms or member.session_timeout_ms
    event = e.SessionTimedOut(group_id, member.member_id)
    # If `group.keep_alive` keeps the member already, as during a parked request, the effect starts
    # no timer and cancels the present timer.
    return SetTimer(timer, ms, event, is_complete=keeps_alive(ctx, member))


def session_timed_out(ctx: GroupContext, event: e.SessionTimedOut) -> Handler:
    """Remove a member whose session has expired, unless its JoinGroup or SyncGroup is unanswered.

    Since 2.1 the first JoinGroup of a new member does not count.

    Source: onExpireHeartbeat of GroupCoordinator.scala (0.9, 2.8), KAFKA-7196.
    """
    group, now_ms = ctx.groups.get(event.group_id), event.timestamp_ms
    member = group.members.get(event.member_id) if group and group.state is not DEAD else None
    # The latest heartbeat was one session timeout ago, since each heartbeat restarts the timer.
    if member and not keeps_alive(ctx, member):
        yield from remove_member(ctx, event.group_id, event.member_id, now_ms, "session timeout")
    # Up to 2.0.0 the deadline of a member that the end of a join phase has removed begins a
    # rebalance.
    elif group and not member and not ctx.rules.ends_removed_sessions:
        yield from after_removal(ctx, group, now_ms, "session timeout")


def pending_member_timed_out(ctx: GroupContext, event: e.PendingMemberTimedOut) -> Handler:
    """Ignored if the id is no longer pending, or if the group is Dead or missing."""
    group = ctx.groups.get(event.group_id)
    if group and group.state is not DEAD and event.member_id in group.pending_members:
        yield from remove_pending_member(ctx, event.group_id, event.member_id, event.timestamp_ms)


def remove_pending_member(ctx: GroupContext, group_id: str, member_id: str, now_ms: int) -> Handler:
    """Remove a pending member id, and end the join phase if the group waits for no other JoinGroup.

    Source: removePendingMemberAndUpdateGroup (2.8).
    """
    group = ctx.groups[group_id]
    yield CancelTimer(session_timer(group_id, member_id))
    pending = without_id(group.pending_members, member_id)
    yield cache_group(group.with_changes(pending_members=pending))
    yield from try_complete_join(ctx, group_id, now_ms)


def remove_member(
    ctx: GroupContext, group_id: str, member_id: str, now_ms: int, rule: str
) -> Handler:
    """Remove a member that has failed or leaves; `after_removal` then decides about a rebalance.

    The member's JoinGroup, if it waits for the response, gets UNKNOWN_MEMBER_ID, before 2.1 no
    response. `rule` is the reason, for the journal.

    Source: onMemberFailure (0.9), removeMemberAndUpdateGroup (2.8).
    """
    group = ctx.groups[group_id]
    parked = group.members[member_id].awaiting_join
    if parked and ctx.rules.answers_removed_member:
        yield Respond(parked, join_error_result(ctx, NO_MEMBER_ID, "UNKNOWN_MEMBER_ID"))
    yield CancelTimer(session_timer(group_id, member_id))
    group = group.without(member_id)
    yield cache_group(group)
    yield from after_removal(ctx, group, now_ms, rule)


def after_removal(ctx: GroupContext, group: Group, now_ms: int, rule: str) -> Handler:
    """Begin a rebalance after a member's removal, if the group is Stable or CompletingRebalance.

    In PreparingRebalance, end the join phase if all remaining members have joined. `rule` is the
    reason for the journal, such as "session timeout".

    Source: onMemberFailure (0.9), removeMemberAndUpdateGroup (2.8).
    """
    if group.state in (STABLE, COMPLETING):
        yield from prepare_rebalance(ctx, group.group_id, now_ms, rule)
    elif group.state is PREPARING:
        yield from try_complete_join(ctx, group.group_id, now_ms)


# ---------------------------------------------------------------- the join phase


def join_error_result(ctx: GroupContext, member_id: str, error: str) -> e.JoinResult:
    """Return the response, with this member id, to a JoinGroup that is refused with `error`."""
    return e.JoinResult(error, member_id, ctx.rules.error_generation)


def current_generation_result(ctx: GroupContext, group: Group, member_id: str) -> e.JoinResult:
    """Only the leader gets each member's id and metadata for the chosen protocol."""
    members: tuple[tuple[str, bytes], ...] = ()
    if member_id == group.leader:
        members = tuple((m.member_id, m.metadata(group.protocol)) for m in group.members.values())
    kind = group.protocol_type if ctx.rules.responses_name_protocol else None
    chosen = group.generation, group.protocol or "", group.leader or ""
    return e.JoinResult("NONE", member_id, *chosen, members, kind)


def sync_result(ctx: GroupContext, group: Group, assignment: bytes) -> e.SyncResult:
    """Since 2.5 the response names protocol type and protocol (KIP-559)."""
    named = (group.protocol_type, group.protocol) if ctx.rules.responses_name_protocol else ()
    return e.SyncResult("NONE", assignment, *named)


def prepare_rebalance(ctx: GroupContext, group_id: str, now_ms: int, rule: str) -> Handler:
    """Begin the join phase, if the group is Empty, CompletingRebalance or Stable, else do nothing.

    Parked SyncGroups get REBALANCE_IN_PROGRESS. `rule` is the reason for the journal.

    Source: prepareRebalance (0.9, 2.8).
    """
    group, rules = ctx.groups[group_id], ctx.rules
    if not machine.can_rebalance(ctx, group):
        return
    # Since 0.11 the first rebalance of an Empty group waits for group.initial.rebalance.delay.ms.
    is_first = rules.initial_delay and group.state is EMPTY
    yield from propagate_assignment(ctx, group_id, {}, "REBALANCE_IN_PROGRESS")
    yield CancelTimer(sync_timer(group_id))
    group = yield from machine.transition_to(ctx, ctx.groups[group_id], PREPARING, now_ms, rule)
    timeout_ms = ctx.rebalance_timeout_ms(group)
    if is_first:
        delay_ms = ctx.config.initial_delay_ms
        yield cache_group(group.with_changes(is_delayed=True))
        left_ms = max(timeout_ms - delay_ms, 0)
        first = e.InitialJoinTimedOut(group_id, group.generation, delay_ms, left_ms)
        yield SetTimer(join_timer(group_id), delay_ms, first)
        return
    event, is_complete = e.JoinTimedOut(group_id, group.generation), may_complete_join(ctx, group)
    yield SetTimer(join_timer(group_id), timeout_ms, event, is_complete=is_complete)
    # All members have joined already.
    if is_complete:
        yield from on_complete_join(ctx, group_id, now_ms, "all have joined")


def propagate_assignment(
    ctx: GroupContext, group_id: str, assignment: dict[str, bytes], error: str = "NONE"
) -> Handler:
    """Answer all parked SyncGroups: with `error` or, if `error` is "NONE", with the assignments.

    `assignment` maps member ids to bytes; KeyError is raised if an answered member is missing.
    Restart the answered members' sessions.

    Source: propagateAssignment, resetAndPropagateAssignmentError (2.8).
    """
    group = ctx.groups[group_id]
    waiting = [member for member in group.members.values() if member.awaiting_sync]
    if waiting:
        yield cache_group(group.with_each_member(awaiting_sync=None))
    for member in waiting:
        result = e.SyncResult(error)
        if error == "NONE":
            result = sync_result(ctx, group, assignment[member.member_id])
        yield Respond(member.awaiting_sync or "", result)
        yield restart_session(ctx, group_id, replace(member, awaiting_sync=None))


def try_complete_join(ctx: GroupContext, group_id: str, now_ms: int) -> Handler:
    """If the group is in the join phase (PreparingRebalance) and all members have joined, end it.

    During group.initial.rebalance.delay.ms the join phase does not end, even if all have joined.

    Source: tryCompleteJoin (0.9, 2.8).
    """
    group = ctx.groups[group_id]
    if group.state is PREPARING:
        is_complete = not group.is_delayed and may_complete_join(ctx, group)
        yield CancelTimer(join_timer(group_id), is_complete)
        if is_complete:
            yield from on_complete_join(ctx, group_id, now_ms, "all have joined")


def join_timed_out(ctx: GroupContext, event: e.JoinTimedOut) -> Handler:
    """End the join phase whose rebalance timeout is over, if the group is still in this phase."""
    group = ctx.groups.get(event.group_id)
    if group and group.state is PREPARING and group.generation == event.generation:
        yield from on_complete_join(ctx, event.group_id, event.timestamp_ms, "rebalance timeout")


def initial_join_timed_out(ctx: GroupContext, event: e.InitialJoinTimedOut) -> Handler:
    """Start a new initial rebalance delay if a member has joined during the delay that is over.

    If no member has joined, or if the rebalance timeout is over too, end the join phase.

    Source: InitialDelayedJoin of DelayedJoin.scala (0.11, 2.8).
    """
    group = ctx.groups.get(event.group_id)
    if group is None or group.state is not PREPARING or not group.is_delayed:
        return
    # The event belongs to an earlier join phase.
    if group.generation != event.generation:
        return
    if group.has_newcomer and event.remaining_ms:
        # The rest of the rebalance timeout limits the new wait.
        delay_ms = min(ctx.config.initial_delay_ms, event.remaining_ms)
        yield cache_group(group.with_changes(has_newcomer=False))
        left_ms = max(event.remaining_ms - event.delay_ms, 0)
        again = e.InitialJoinTimedOut(event.group_id, event.generation, delay_ms, left_ms)
        yield SetTimer(join_timer(event.group_id), delay_ms, again)
    else:
        rule, now_ms = "initial rebalance delay", event.timestamp_ms
        yield from on_complete_join(ctx, event.group_id, now_ms, rule)


def on_complete_join(ctx: GroupContext, group_id: str, now_ms: int, rule: str) -> Handler:
    """End the join phase: remove members that have not joined, and begin the next generation.

    Static members stay. If no remaining member has joined, the join phase goes on for one more
    rebalance timeout. `rule` is the reason for the journal. Source: onCompleteJoin (0.9, 2.8).
    """
    group = ctx.groups[group_id]
    yield CancelTimer(join_timer(group_id))
    absent = [member for member in group.members.values() if member.awaiting_join is None]
    gone = [member.member_id for member in absent if member.instance_id is None]
    if gone:
        group = group.without(*gone)
        for member_id in gone if ctx.rules.ends_removed_sessions or not group.members else ():
            yield CancelTimer(session_timer(group_id, member_id))
        yield cache_group(group)
    if not group.members:
        yield from _end_without_members(ctx, group, now_ms, rule)
        return
    present = [member.member_id for member in group.members.values() if member.awaiting_join]
    if not present:  # only static members are left: their session timeouts decide
        event = e.JoinTimedOut(group_id, group.generation)
        yield SetTimer(join_timer(group_id), ctx.rebalance_timeout_ms(group), event)
        return
    if group.leader not in present:
        group = group.with_changes(leader=present[0])
    yield from _begin_generation(ctx, group, now_ms, rule)


def _end_without_members(ctx: GroupContext, group: Group, now_ms: int, rule: str) -> Handler:
    """Make a group without members Empty, and write the group's record.

    Before 0.10.1 make the group Dead, and write a tombstone. `rule` is the reason for the journal,
    such as "rebalance timeout".
    """
    if not ctx.rules.keeps_empty_groups:
        yield from machine.transition_to(ctx, group, DEAD, now_ms, rule, leaves=True)
        yield Append(ctx.topic_partition(group.group_id), ((group_key(group.group_id), None),))
        return
    group = yield from machine.transition_to(ctx, group, EMPTY, now_ms, rule)
    yield store_group(ctx, group, {}, None)


def _begin_generation(ctx: GroupContext, group: Group, now_ms: int, rule: str) -> Handler:
    """Move the group to CompletingRebalance, answer parked JoinGroups, start all sessions.

    `rule` is the reason for the journal, such as "all have joined".
    """
    group_id, has_timeout = group.group_id, ctx.rules.sync_timeout
    waiting = {id: m.awaiting_join for id, m in group.members.items() if m.awaiting_join}
    # By this transition the group is in its next generation.
    group = yield from machine.transition_to(ctx, group, COMPLETING, now_ms, rule)
    settled = group.with_each_member(awaiting_join=None, is_new=False)
    pending = tuple(settled.members) if has_timeout else ()
    yield cache_group(settled.with_changes(pending_sync=pending))
    for member_id, member in settled.members.items():
        if member_id in waiting:
            response = current_generation_result(ctx, settled, member_id)
            yield Respond(waiting[member_id], response)
        yield restart_session(ctx, group_id, member)
    # Since 2.8 the sync phase has a timer.
    if has_timeout:
        event = e.SyncTimedOut(group_id, settled.generation)
        yield SetTimer(sync_timer(group_id), ctx.rebalance_timeout_ms(settled), event)


# ---------------------------------------------------------------- the sync phase


def remove_pending_sync_member(ctx: GroupContext, group_id: str, member_id: str) -> Handler:
    """Record that this member has sent the SyncGroup of the present generation.

    If every member has now sent SyncGroup, cancel the timer of the sync phase.

    Source: removePendingSyncMember (2.8).
    """
    group = ctx.groups[group_id]
    if member_id in group.pending_sync:
        left = without_id(group.pending_sync, member_id)
        yield cache_group(group.with_changes(pending_sync=left))
        if not left:
            yield CancelTimer(sync_timer(group_id))


def sync_timed_out(ctx: GroupContext, event: e.SyncTimedOut) -> Handler:
    """Remove the members that have not sent SyncGroup in time, and begin a rebalance.

    Raises IllegalStateError if such a member has rejoined under another id meanwhile.

    Source: onExpirePendingSync (2.8), KAFKA-12487.
    """
    group = ctx.groups.get(event.group_id)
    if group is None or group.generation != event.generation or not group.pending_sync:
        return
    if group.state not in (COMPLETING, STABLE):
        return
    gone = tuple(takewhile(lambda member_id: member_id in group.members, group.pending_sync))
    for member_id in gone:
        yield CancelTimer(session_timer(event.group_id, member_id))
    yield cache_group(group.without(*gone))
    # Only the members before the missing member are removed, and no rebalance begins.
    if gone != group.pending_sync:
        missing = group.pending_sync[len(gone)]
        raise machine.IllegalStateError(f"Member {missing} of the sync phase has left the group")
    yield from prepare_rebalance(ctx, event.group_id, event.timestamp_ms, "sync timeout")


def store_group(
    ctx: GroupContext, group: Group, assignment: dict[str, bytes], then: e.Appended | None
) -> Append:
    """Return the effect Append that writes the group's record to the log of the offsets topic.

    `assignment` maps member ids to bytes. After the write the coordinator handles the event `then`;
    None means no event.

    Source: storeGroup of GroupMetadataManager.scala (2.8).
    """
    value = group_value(group, assignment, ctx.rules.group_value)
    record = group_key(group.group_id), value
    # An Empty group has no `then`: if its write fails, the next coordinator reads the generation
    # before.
    return Append(ctx.topic_partition(group.group_id), (record,), then)


def assignment_stored(ctx: GroupContext, event: e.AssignmentStored) -> Handler:
    """Answer all parked SyncGroups after the write of the assignment, and make the group Stable.

    If the write has failed, the answers have the error, and a rebalance begins.

    Source: the callback of storeGroup in doSyncGroup (0.9, 2.8).
    """
    group = ctx.groups.get(event.group_id)
    if group is None or group.state is not COMPLETING or group.generation != event.generation:
        return
    # A later group of this name ignores the event.
    if event.incarnation != ctx.incarnation_of(event.group_id):
        return
    if not group.members.keys() <= event.assignment.keys():
        return  # until 2.5 the new id of a static member has no assignment, and Kafka throws
    if event.error != "NONE":
        error = translate_append_error("group", event.error, ctx.rules.append_errors)
        yield from propagate_assignment(ctx, event.group_id, {}, error)
        rule = f"the assignment was not stored: {event.error}"
        yield from prepare_rebalance(ctx, event.group_id, event.timestamp_ms, rule)
        return
    assignment, members = dict(event.assignment), group.members.items()
    assigned = (replace(m, assignment=assignment.get(id, b"")) for id, m in members)
    yield cache_group(group.with_members(assigned))
    yield from propagate_assignment(ctx, event.group_id, assignment)
    group, rule = ctx.groups[event.group_id], "the assignment is stored"
    yield from machine.transition_to(ctx, group, STABLE, event.timestamp_ms, rule)
