"""Handlers of JoinGroup: new members, members that join again, and static members that rejoin.

GROUP_REACTIONS decides which of these a request is; `JOINS` has the function for each reaction that
is not only an error. Read `rebalance.py` next.

Source: handleJoinGroup, doJoinGroup, doUnknownJoinGroup, acceptJoiningMember,
addMemberAndRebalance, updateMemberAndRebalance and updateStaticMemberAndRebalance of
GroupCoordinator.scala (0.9, 2.8).
"""

# Most functions park the request: the response follows when the join phase ends (`rebalance.py`),
# or when a log record has the new id of a static member (`static_member_stored`).
from dataclasses import replace

from kcontrol.core.effects import CancelTimer, Handler, Park, Respond, SetTimer, UpdateContext
from kcontrol.group import events as e
from kcontrol.group import rebalance
from kcontrol.group.context import GroupContext, cache_group, unloaded_name
from kcontrol.group.error_codes import translate_append_error
from kcontrol.group.group_machine import PREPARING, STABLE, IllegalStateError, new_group
from kcontrol.group.model import NO_MEMBER_ID, Group, Member, Members
from kcontrol.group.request_reactions import react


def join_group(ctx: GroupContext, event: e.JoinGroup) -> Handler:
    """Answer a JoinGroup or park it; then end the join phase if all members have joined.

    The table GROUP_REACTIONS (by request and group state) decides; a parked JoinGroup gets its
    response later.

    Source: handleJoinGroup (0.9, 2.8).
    """
    if error := ctx.validate_group_status(event.group_id) if event.group_id else "INVALID_GROUP_ID":
        yield _refuse(ctx, event, error)
        return
    group = ctx.groups.get(event.group_id)
    row = react(ctx, group, event)
    if row.reaction == "create the group":
        # GROUP_REACTIONS is read again for the new group.
        group = new_group(ctx, event.group_id, event.protocol_type, event.timestamp_ms)
        yield cache_group(group)
        row = react(ctx, group, event)
    act = JOINS.get(row.reaction)
    if act and group:
        yield from act(ctx, event, group)
    else:
        yield _refuse(ctx, event, row.reaction)
    if event.group_id in ctx.groups:
        yield from rebalance.try_complete_join(ctx, event.group_id, event.timestamp_ms)


def _refuse(
    ctx: GroupContext, event: e.JoinGroup, error: str, member_id: str | None = None
) -> Respond:
    """Return the effect that responds with this error; `member_id` None means the request's id."""
    named = event.member_id if member_id is None else member_id
    return Respond(event.correlation_id, rebalance.join_error_result(ctx, named, error))


def _reject_for_size(ctx: GroupContext, event: e.JoinGroup, group: Group) -> Handler:
    """Answer with GROUP_MAX_SIZE_REACHED; if the sender is a member, remove it from the group.

    Source: handleJoinGroup, acceptJoiningMember (2.8).
    """
    if event.member_id in group.members:
        yield CancelTimer(rebalance.session_timer(event.group_id, event.member_id))
        yield cache_group(group.without(event.member_id))
    yield _refuse(ctx, event, "GROUP_MAX_SIZE_REACHED", NO_MEMBER_ID)


def _new_id(event: e.JoinGroup) -> str:
    """Return a new member id: "<instance id>-<UUID>", with the UUID in the event.

    Without an instance id the new id begins with the client id.

    Source: generateMemberId of GroupMetadata.scala (2.8).
    """
    return f"{event.instance_id or event.client_id}-{event.uuid}"


def _assign_member_id(ctx: GroupContext, event: e.JoinGroup, group: Group) -> Handler:
    """Answer with a new member id, and expect a JoinGroup with this id within the session timeout.

    Source: doUnknownJoinGroup (2.8), KIP-394.
    """
    member_id = _new_id(event)
    yield cache_group(group.with_changes(pending_members=(*group.pending_members, member_id)))
    # The join phase does not end before each pending id is used or has timed out.
    timed_out = e.PendingMemberTimedOut(event.group_id, member_id)
    timer = rebalance.session_timer(event.group_id, member_id)
    yield SetTimer(timer, event.session_timeout_ms, timed_out)
    yield _refuse(ctx, event, "MEMBER_ID_REQUIRED", member_id)


def _add_member(ctx: GroupContext, event: e.JoinGroup, group: Group) -> Handler:
    """Add a member with the timeouts and protocols of its JoinGroup, and begin a rebalance.

    Source: addMemberAndRebalance (0.9, 2.8), KAFKA-7610.
    """
    rules, member_id = ctx.rules, event.member_id or _new_id(event)
    session_ms, rebalance_ms = event.session_timeout_ms, event.rebalance_timeout_ms
    timeouts = session_ms, rebalance_ms if rules.rebalance_timeouts else session_ms
    client = member_id, event.client_id, event.client_host
    member = Member(*client, *timeouts, event.protocols, event.instance_id)
    is_new = rules.new_member_timeout_ms is not None
    if not group.members and rules.keeps_empty_groups:
        group = group.with_changes(protocol_type=event.protocol_type)
    # A member that joins while the group waits for its first generation extends that wait.
    is_late = group.state is PREPARING and group.generation == 0
    member = replace(member, awaiting_join=event.correlation_id, is_new=is_new)
    yield Park(event.correlation_id, f"join {event.group_id}")
    group = group.with_changes(has_newcomer=group.has_newcomer or is_late)
    yield cache_group(group.with_member(member))
    # Since 2.1 a timer removes a new member whose JoinGroup is parked for too long (KAFKA-7610).
    if rules.new_member_timeout_ms:
        yield rebalance.restart_session(ctx, event.group_id, member, rules.new_member_timeout_ms)
    yield from rebalance.prepare_rebalance(ctx, event.group_id, event.timestamp_ms, "a new member")


def _answer(ctx: GroupContext, event: e.JoinGroup, group: Group) -> Handler:
    """Answer a JoinGroup with the current generation; the leader also gets the members.

    No rebalance begins. Source: doJoinGroup, CompletingRebalance and Stable (0.9, 2.8).
    """
    result = rebalance.current_generation_result(ctx, group, event.member_id)
    yield Respond(event.correlation_id, result)


def _rejoin(ctx: GroupContext, event: e.JoinGroup, group: Group) -> Handler:
    """Park the JoinGroup of a member, store the protocols in this JoinGroup, begin a rebalance.

    Source: updateMemberAndRebalance (0.9, 2.8).
    """
    member = group.members[event.member_id]
    after = replace(member, protocols=event.protocols, awaiting_join=event.correlation_id)
    yield Park(event.correlation_id, f"join {event.group_id}")
    yield cache_group(group.with_member(after))
    reason = "a member offers other protocols"
    if group.leader == member.member_id and member.protocols == event.protocols:
        reason = "the leader joins again"
    yield from rebalance.prepare_rebalance(ctx, event.group_id, event.timestamp_ms, reason)


# ---------------------------------------------------------------- static members


def _update_static_member(ctx: GroupContext, event: e.JoinGroup, group: Group) -> Handler:
    """Replace the id of a static member that joins without a member id.

    Since 2.6 the response waits for a rebalance or, without a rebalance, for the write of the new
    id to the log.

    Source: updateStaticMemberAndRebalance (2.8), KIP-345, KAFKA-9801.
    """
    member_id, leader = _new_id(event), group.leader
    old_id = group.member_of(event.instance_id) or ""
    old = group.members[old_id]
    # Requests with the old id get FENCED_INSTANCE_ID from now on, and so do the parked requests.
    if old.awaiting_join:
        refusal = rebalance.join_error_result(ctx, old_id, "FENCED_INSTANCE_ID")
        yield Respond(old.awaiting_join, refusal)
    if old.awaiting_sync:
        yield Respond(old.awaiting_sync, e.SyncResult("FENCED_INSTANCE_ID"))
    member = replace(old, member_id=member_id, protocols=event.protocols, awaiting_sync=None)
    member = replace(member, awaiting_join=event.correlation_id)
    group = replace_group_instance(group, old_id, member)
    # Before 2.6 the JoinGroup is answered and no rebalance follows. Since 2.6, if the group is
    # Stable and would choose its present protocol again, the response waits for the log; otherwise
    # a rebalance begins. In the join phase the JoinGroup is parked as usual.
    is_stored = ctx.rules.static_rejoin == "stored"
    stays = not is_stored or (group.state is STABLE and group.select_protocol() == group.protocol)
    if stays and group.state is not PREPARING:
        member = replace(member, unwritten=(*member.unwritten, member_id))
        group = group.with_member(member)
    yield CancelTimer(rebalance.session_timer(event.group_id, old_id))
    yield Park(event.correlation_id, f"join {event.group_id}")
    yield cache_group(group)
    # The session's timer is set as if no JoinGroup were parked.
    yield rebalance.restart_session(ctx, event.group_id, replace(member, awaiting_join=None))
    incarnation, ids = ctx.incarnation_of(event.group_id), (event.group_id, event.correlation_id)
    stored = *ids, member_id, old_id, leader, event.protocols
    then = e.StaticMemberStored(*stored, incarnation=incarnation)
    if group.state is PREPARING:
        return
    if not stays:
        reason, now_ms = "a static member is back", event.timestamp_ms
        yield from rebalance.prepare_rebalance(ctx, event.group_id, now_ms, reason)
    elif not is_stored:
        yield from static_member_stored(ctx, then)
    else:
        assignment = {other.member_id: other.assignment for other in group.members.values()}
        yield rebalance.store_group(ctx, group, assignment, then)


JOINS = {
    "GROUP_MAX_SIZE_REACHED": _reject_for_size, "MEMBER_ID_REQUIRED": _assign_member_id,
    "add the member": _add_member, "replace the static member": _update_static_member,
    "answer with the generation": _answer, "join": _rejoin,
}  # fmt: skip


def replace_group_instance(group: Group, old_id: str, member: Member) -> Group:
    """Return the group with `member`, which has a new id, in place of the member `old_id`.

    If the old member was the leader, `member` becomes the leader.

    Source: replaceGroupInstance of GroupMetadata.scala (2.8).
    """
    members = Members(other for id, other in group.members.items() if id != old_id)
    leader = member.member_id if group.leader == old_id else group.leader
    return group.with_changes(members=members.with_member(member), leader=leader)


def static_member_stored(ctx: GroupContext, event: e.StaticMemberStored) -> Handler:
    """Answer a static member's JoinGroup after the write of its new member id to the log.

    If the write has failed, the response is an error and the member gets its old id again.

    Source: the callback of storeGroup in updateStaticMemberAndRebalance (2.8).
    """
    # The group may have left the cache during the write: then it is in `ctx.unloaded`, and is
    # changed there.
    name = unloaded_name(event.group_id, event.incarnation)
    is_current = event.incarnation == ctx.incarnation_of(event.group_id)
    group = ctx.groups.get(event.group_id) if is_current else ctx.unloaded.get(name)
    member = group.writer_of(event.member_id) if group else None
    settle = _after_id_stored if event.error == "NONE" else _after_id_failed
    after = yield from settle(ctx, event, group, member)
    if after is not None and is_current:
        yield cache_group(after)
    elif after is not None:
        if any(other.unwritten for other in after.members.values()):
            yield UpdateContext("unloaded", {name: after}, context="group")
        else:
            yield UpdateContext("unloaded", remove=(name,), context="group")
    if event.error != "NONE":
        yield from _restart_old_session(ctx, event, member, after if is_current else None)


def _after_id_stored(
    ctx: GroupContext, event: e.StaticMemberStored, group: Group | None, member: Member | None
) -> Handler:
    """Answer the parked JoinGroup of `member`, whose new id is in the log; return the new group.

    `group` is None if the group has left the cache, `member` is None if the member has left the
    group: then answer nothing, and return None.
    """
    yield from ()
    if group is None or member is None:
        return None
    if member.awaiting_join is not None:
        # The member id is that of this write, although the member may have rejoined under another
        # id.
        response = rebalance.current_generation_result(ctx, group, event.member_id)
        # The leader is the leader before the write, so that a leader that has rejoined does not
        # assign.
        response = response._replace(leader=event.leader or "", members=())
        yield Respond(member.awaiting_join, response)
    return group.with_member(replace(member.after_id_write(event.member_id), awaiting_join=None))


def _after_id_failed(
    ctx: GroupContext, event: e.StaticMemberStored, group: Group | None, member: Member | None
) -> Handler:
    """Give a static member its old id again: the write of the new id has failed.

    Answer the JoinGroup that requested the new id with the error; return the changed group, or
    None if `group` or `member` is None.
    """
    if group is None or member is None:
        return None
    # A JoinGroup that arrived during the write gets no response, unless its own write fails too.
    dropped = member.awaiting_join or member.dropped
    # Kafka wants to restore the old protocols, but reads them after it has replaced them: the
    # member keeps the protocols of the failed JoinGroup.
    written = replace(member.after_id_write(event.member_id), protocols=event.protocols)
    written = replace(written, awaiting_join=None, dropped=dropped)
    # A later JoinGroup has given the member another id, which stays.
    if member.member_id != event.member_id:
        return group.with_member(written)
    if member.awaiting_sync:
        yield Respond(member.awaiting_sync, e.SyncResult("FENCED_INSTANCE_ID"))
    if event.correlation_id in (member.awaiting_join, member.dropped):
        error = translate_append_error("group", event.error, ctx.rules.append_errors)
        response = rebalance.current_generation_result(ctx, group, NO_MEMBER_ID)
        response = response._replace(error=error, leader=event.leader or "", members=())
        yield Respond(event.correlation_id, response)
        written = replace(written, dropped=None)
    written = replace(written, member_id=event.old_member_id, awaiting_sync=None)
    return replace_group_instance(group, event.member_id, written)


def _restart_old_session(
    ctx: GroupContext, event: e.StaticMemberStored, member: Member | None, group: Group | None
) -> Handler:
    """The write of the new id has failed. Raises IllegalStateError without the new id."""
    if member is None or member.member_id != event.member_id:
        raise IllegalStateError(f"Cannot replace non-existing member id {event.member_id}")
    # `group`, in which the member has its old id again, is None if the group has left the cache.
    if group is not None:
        yield CancelTimer(rebalance.session_timer(event.group_id, event.member_id))
        yield rebalance.restart_session(ctx, event.group_id, group.members[event.old_member_id])
