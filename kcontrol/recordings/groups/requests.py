"""Infers what each request has changed in a recorded coordinator's memory, from the request and its response.

HANDLERS has one function for each API, such as "JoinGroup".
"""

from collections.abc import Callable
from dataclasses import replace

from kcontrol.cluster.coordinator_requests import HOST
from kcontrol.group import events as e
from kcontrol.group.error_codes import ERRORS
from kcontrol.group.group_machine import COMPLETING, DEAD, EMPTY, STABLE
from kcontrol.group.model import CommitRecordMetadataAndOffset, Group, GroupProtocol, Member, Members, OffsetAndMetadata
from kcontrol.group.offsets_topic_records import read_offset_value
from kcontrol.group.request_reactions import Request, reactions_of
from kcontrol.journal.journal import RecordId
from kcontrol.recordings.groups.memory import Memory, partition_of
from kcontrol.recordings.groups.recording import Step, errors
from kcontrol.recordings.to_journal import NOT_KNOWN


def handle(memory: Memory, step: Step, correlation_id: str, cause: RecordId) -> None:
    """Change the inferred state of the coordinator by the request and its response."""
    said = step["request"]
    if memory.group_id in said.get("groups", ()) and step.get("answer", {}).get("errors", {}).get(memory.group_id) == "NONE":
        _delete(memory, cause)
    elif said.get("group") == memory.group_id:
        _contradict(memory, step, cause)
        if (act := HANDLERS.get(step["api"])) is not None:
            act(memory, step, correlation_id, cause)


def _contradict(memory: Memory, step: Step, cause: RecordId) -> None:
    """Correct `memory`, the group as inferred so far, if the errors in the response of `step` contradict it.

    `step` is a recorded request. A member with UNKNOWN_MEMBER_ID is removed; REBALANCE_IN_PROGRESS for a heartbeat begins a
    rebalance.
    """
    said, found = step["request"], errors(step)
    if memory.group is None:
        return
    leaving = zip(said.get("members", ()), _of_each(step), strict=False) if step["api"] == "LeaveGroup" else ()
    named = [said.get("member")] if "UNKNOWN_MEMBER_ID" in found else []
    named += [each.get("member") for each, error in leaving if error == "UNKNOWN_MEMBER_ID"]
    if gone := [id for id in named if id in memory.group.members]:
        memory.remove(gone, NOT_KNOWN, cause)
    elif "REBALANCE_IN_PROGRESS" in found and step["api"] == "Heartbeat" and memory.group.state is STABLE:
        memory.prepare(NOT_KNOWN, cause)


def _join(memory: Memory, step: Step, correlation_id: str, cause: RecordId) -> None:
    said, found, answer = step["request"], errors(step), step.get("answer") or {}
    member_id = answer.get("member") or said["member"] or f"{step['client'].lower()} of entry {step['n']}"
    if found == ["MEMBER_ID_REQUIRED"]:
        memory.group = memory.group or _new_group(memory, said, cause)
        memory.await_pending(member_id, said["session"], cause)
    elif found in ([], ["NONE"]):
        group = memory.group or _new_group(memory, said, cause)
        if group.state in (STABLE, COMPLETING) and answer.get("generation") == group.generation:
            _join_current_generation(memory, step, member_id, correlation_id, cause)
        else:
            _park_join(memory, step, member_id, correlation_id, cause)


def _new_group(memory: Memory, said: Step, cause: RecordId) -> Group:
    keeps = memory.rules.keeps_empty_groups
    group = Group(memory.group_id, EMPTY if keeps else STABLE, memory.now_ms, None if keeps else said["type"])
    memory.put(group, cause)
    return group


def _member(memory: Memory, step: Step, member_id: str, old: Member | None) -> Member:
    said = step["request"]
    offered = tuple(GroupProtocol(name, bytes.fromhex(metadata)) for name, metadata in said["protocols"])
    if old is not None:
        return replace(old, member_id=member_id, protocols=offered)
    rebalance = said.get("rebalance")
    timeouts = said["session"], said["session"] if rebalance is None else rebalance
    return Member(member_id, step["client"].lower(), HOST, *timeouts, offered, said.get("instance"))


def _park_join(memory: Memory, step: Step, member_id: str, correlation_id: str, cause: RecordId) -> None:
    memory.forget_pending((member_id,), cause)
    assert memory.group is not None
    known = memory.group.members.get(member_id)
    old_id = memory.group.member_of(step["request"].get("instance"))
    if known is None and old_id is not None:
        _replace_id(memory, step, old_id, member_id, cause)
        known = memory.group.members[member_id]
    member = replace(_member(memory, step, member_id, known), awaiting_join=correlation_id, awaiting_sync=None)
    group = replace(memory.group, protocol_type=step["request"]["type"])
    memory.park(correlation_id, "join", cause)
    memory.put(group.with_member(member), cause)
    leads = memory.group.leader == member_id
    rule = "a new member" if known is None else "the leader joins again" if leads else "a member offers other protocols"
    memory.prepare(rule, cause)


def _replace_id(memory: Memory, step: Step, old_id: str, member_id: str, cause: RecordId) -> None:
    """A static member that returns gets the id of its JoinGroup `step`."""
    assert memory.group is not None
    member = _member(memory, step, member_id, memory.group.members[old_id])
    members = Members(member if id == old_id else m for id, m in memory.group.members.items())
    leader = member_id if memory.group.leader == old_id else memory.group.leader
    memory.cancel_session(old_id, cause)
    memory.put(replace(memory.group, members=members, leader=leader), cause)
    memory.restart_session(member, cause)


def _join_current_generation(memory: Memory, step: Step, member_id: str, correlation_id: str, cause: RecordId) -> None:
    """Without a rebalance; a static member that returns also appends group metadata with its new id."""
    assert memory.group is not None
    old_id = memory.group.member_of(step["request"].get("instance"))
    if old_id is not None and old_id != member_id:
        _replace_id(memory, step, old_id, member_id, cause)
        written = e.StaticMemberStored(memory.group_id, correlation_id, member_id, old_id, memory.group.leader, ())
        memory.append_group(written, cause, lambda value: member_id in _members(value))


def _sync(memory: Memory, step: Step, correlation_id: str, cause: RecordId) -> None:
    said, group = step["request"], memory.group
    if group is None or not {"NONE", "REBALANCE_IN_PROGRESS"} & set(errors(step) or ["NONE"]):
        return
    member = group.members.get(said["member"])
    if member is None:
        return
    group = memory.end_sync_wait(group, member.member_id, cause)
    if group.state is COMPLETING:
        memory.park(correlation_id, "sync", cause)
        memory.put(group.with_member(replace(member, awaiting_sync=correlation_id)), cause)
        if said["member"] == group.leader and errors(step) == ["NONE"]:
            _store_assignment(memory, said.get("assignment", {}), cause)
    else:
        _restart_session(memory, step, Request.SYNC, cause)


def _store_assignment(memory: Memory, said: Step, cause: RecordId) -> None:
    """Append the leader's assignment to the log, end the wait of all parked SyncGroups, and make the group Stable.

    `said` has the assignments in the leader's SyncGroup: hexadecimal text by member id.
    """
    assert memory.group is not None
    generation, assigned = memory.group.generation, {id: bytes.fromhex(text) for id, text in said.items()}
    written = e.AssignmentStored(memory.group_id, generation, assigned)
    record = memory.append_group(written, cause, lambda value: bool(value and value["generation"] == generation)) or cause
    members = memory.group.members.values()
    memory.released |= {m.awaiting_sync: record for m in members if m.awaiting_sync is not None}
    after = [replace(m, assignment=assigned.get(m.member_id, b""), awaiting_sync=None) for m in members]
    memory.put(memory.group.with_members(after), record)
    # The session of a member whose SyncGroup is still to come goes on.
    for member in (m for m in members if m.awaiting_sync is not None):
        memory.restart_session(member, record)
    memory.move(STABLE, "the assignment is stored", record)


def _heartbeat(memory: Memory, step: Step, correlation_id: str, cause: RecordId) -> None:
    _restart_session(memory, step, Request.HEARTBEAT, cause)


def _restart_session(memory: Memory, step: Step, request: Request, cause: RecordId) -> None:
    """If its rows of GROUP_REACTIONS say so for this response in the group's state."""
    group = memory.group
    if group and (member := group.members.get(step["request"].get("member", ""))):
        rows = [row for row in reactions_of(memory.rules.release, group.state, request) if row.restarts_session]
        if {row.reaction if row.reaction in ERRORS else "NONE" for row in rows} & set(errors(step) or ["NONE"]):
            memory.restart_session(member, cause)


def _leave(memory: Memory, step: Step, correlation_id: str, cause: RecordId) -> None:
    if memory.group is None:
        return
    gone = []
    for said, error in zip(step["request"]["members"], _of_each(step), strict=False):
        member_id = said.get("member") or memory.group.member_of(said.get("instance")) or ""
        gone += [member_id] if error == "NONE" else []
    memory.forget_pending(gone, cause)
    if known := [id for id in gone if id in memory.group.members]:
        memory.remove(known, "a member leaves", cause)


def _commit_offsets(memory: Memory, step: Step, correlation_id: str, cause: RecordId) -> None:
    said, answered = step["request"], (step.get("answer") or {}).get("errors", {})
    stored = {tp: offset for tp, offset in said["offsets"].items() if answered.get(tp) == "NONE"}
    places = [at for at in range(memory.appended, len(memory.log)) if _is_commit(memory, at, stored)]
    chosen = {str(partition_of(memory.log[at][0])): at for at in reversed(places)}
    if chosen:
        memory.append_until(min(chosen.values()))
        read = {partition_of(memory.log[at][0]): (at, _offset(memory, at)) for at in sorted(chosen.values())}
        written = e.OffsetsStored(memory.group_id, correlation_id, {tp: value for tp, (_, value) in read.items()})
        record = memory.append(memory.appended, max(chosen.values()) + 1, written, cause)
        entries = {tp: CommitRecordMetadataAndOffset(value, at) for tp, (at, value) in read.items()}
        memory.commit(memory.offsets.committing(entries), record)
    _restart_session(memory, step, Request.COMMIT, cause)


def _is_commit(memory: Memory, at: int, stored: dict[str, int]) -> bool:
    entry = memory.log[at][0]
    if entry["key"]["kind"] != "offset" or entry["value"] is None:
        return False
    return bool(stored.get(str(partition_of(entry))) == entry["value"]["offset"])


def _offset(memory: Memory, at: int) -> OffsetAndMetadata:
    value = memory.log[at][2]
    assert value is not None
    return read_offset_value(value)


def _delete(memory: Memory, cause: RecordId) -> None:
    """Delete the group of `memory` with its offsets: append the tombstones that come next in the recorded log."""
    memory.append_tombstones(cause)
    if memory.group is not None:
        memory.move(DEAD, "DeleteGroups", cause, leaves=True)


def _delete_offsets(memory: Memory, step: Step, correlation_id: str, cause: RecordId) -> None:
    if "NONE" in errors(step):
        memory.append_tombstones(cause)


def _members(value: Step | None) -> list[str]:
    """Return the member ids in the value of a group's record, [] for a tombstone (None)."""
    return [member["member_id"] for member in value["members"]] if value else []


def _of_each(step: Step) -> list[str]:
    """Error codes in the order of the request's members; without codes of members, that of the response."""
    answer = step.get("answer") or {"error": "UNKNOWN_SERVER_ERROR"}
    return answer.get("member_errors") or [answer["error"]] * len(step["request"]["members"])


HANDLERS: dict[str, Callable[[Memory, Step, str, RecordId], None]] = {
    "JoinGroup": _join, "SyncGroup": _sync, "Heartbeat": _heartbeat, "LeaveGroup": _leave,
    "OffsetCommit": _commit_offsets, "OffsetDelete": _delete_offsets,
}  # fmt: skip
