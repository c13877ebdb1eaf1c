"""What can be seen of our coordinator, as JSON: its answers, and its groups with all that is inside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kcontrol.group import events as e
from kcontrol.group.context import GroupContext
from kcontrol.group.error_codes import ERRORS
from kcontrol.group.model import CommitRecordMetadataAndOffset, Group, Member, OffsetAndMetadata, Offsets

Json = dict[str, Any]


def answer_of(verb: str, body: Any, release: str) -> Json:
    """Return an answer to a request; error codes are numbers, bytes are hex."""
    if release.startswith("0.9") and verb in ANSWERS_0_9:
        return ANSWERS_0_9[verb](body)
    return ANSWERS[verb](body)


def _join(body: e.JoinResult) -> Json:
    return {
        "error": ERRORS[body.error], "generation": body.generation, "member": body.member_id, "leader": body.leader,
        "protocol": body.protocol, "type": body.protocol_type,
        "members": [[member_id, metadata.hex()] for member_id, metadata in body.members],
    }  # fmt: skip


def _join_0_9(body: e.JoinResult) -> Json:
    return {key: sorted(value) if key == "members" else value for key, value in _join(body).items() if key != "type"}


def _sync_0_9(body: e.SyncResult) -> Json:
    return {"error": ERRORS[body.error], "assignment": body.assignment.hex()}


def _leave(body: e.LeaveResult) -> Json:
    named = [list(identity) for identity in body.identities]
    return {"error": ERRORS[body.error], "members": [ERRORS[error] for error in body.members], "named": named}


def _codes(errors: dict[Any, str]) -> Json:
    return {str(what): ERRORS[error] for what, error in errors.items()}


def _fetch(body: e.FetchResult) -> Json:
    found = {str(tp): [o.offset, o.metadata, ERRORS[o.error], o.leader_epoch] for tp, o in body.offsets.items()}
    return {"error": ERRORS[body.error], "offsets": found}


def _describe(body: e.DescribeResult) -> Json:
    members = {m.member_id: [m.instance_id, m.client_id, m.client_host, one.hex(), two.hex()] for m, one, two in body.members}
    said = {"state": body.state, "type": body.protocol_type, "protocol": body.protocol, "members": members}
    return {"error": ERRORS[body.error], **said}


ANSWERS: dict[str, Callable[[Any], Json]] = {
    "join": _join,
    "sync": lambda body: _sync_0_9(body) | {"type": body.protocol_type, "named": body.protocol},
    "heartbeat": lambda body: {"error": ERRORS[body.error]},
    "leave": _leave,
    "commit": lambda body: {"errors": _codes(body.errors)},
    "delete": lambda body: {"errors": _codes(body.errors)},
    "offset_delete": lambda body: {"error": ERRORS[body.error], "errors": _codes(body.errors)},
    "fetch": _fetch,
    "describe": _describe,
    "list": lambda body: {"error": ERRORS[body.error], "groups": sorted(list(group) for group in body.groups)},
}
ANSWERS_0_9: dict[str, Callable[[Any], Json]] = {
    "join": _join_0_9,
    "sync": _sync_0_9,
    "leave": lambda body: {"error": ERRORS[body.error]},
    "list": lambda body: {"error": ERRORS[body.error], "groups": sorted(list(group[:2]) for group in body.groups)},
}


# ---------------------------------------------------------------- states


def state_of(context: GroupContext) -> Json:
    """Return the groups by name; before 0.10.1 offsets can be there without a group."""
    found = {name: _group(context, context.groups[name]) for name in sorted(context.groups)}
    if not context.rules.offsets_need_group:
        for name, held in sorted(context.offsets.items()):
            plain = {str(tp): {"v": _value(stored.value)} for tp, stored in held.committed.items()}
            found[name] = found.get(name, {"offsets_only": True}) | {"offsets": plain}
    return found


def _group(context: GroupContext, group: Group) -> Json:
    topics = group.subscribed_topics
    return {
        "state": context.name_of(group.state), "generation": group.generation, "leader": group.leader, "protocol": group.protocol,
        "type": group.protocol_type, "since": group.state_timestamp_ms, "newcomer": group.has_newcomer,
        "pending": sorted(group.pending_members), "pending_sync": sorted(group.pending_sync),
        "topics": None if topics is None else sorted(topics),
        "static": {m.instance_id: m.member_id for m in group.members.values() if m.instance_id},
        "members": [_member(member) for member in group.members.values()],
    } | _offsets(context.offsets_of(group.group_id))  # fmt: skip


def _member(member: Member) -> list[Any]:
    protocols = " ".join(f"{protocol.name}={protocol.metadata.hex()}" for protocol in member.protocols)
    waits = "J" * (member.awaiting_join is not None) + "S" * (member.awaiting_sync is not None) + "N" * member.is_new
    timeouts = member.session_timeout_ms, member.rebalance_timeout_ms
    return [member.member_id, member.instance_id, *timeouts, protocols, member.assignment.hex(), waits]


def _offsets(held: Offsets) -> Json:
    """Return committed offsets, those on their way, and by producer those of open transactions."""
    transactions = {
        str(producer): {str(tp): _stored(stored) for tp, stored in entries.items()}
        for producer, entries in held.by_producer.items()
        if entries
    }
    return {
        "offsets": {str(tp): _stored(stored) for tp, stored in held.committed.items()},
        "uncommitted": {str(tp): {"v": _value(value)} for tp, value in held.pending.items()},
        "txn": transactions,
    }


def _stored(stored: CommitRecordMetadataAndOffset) -> Json:
    return {"base": None if stored.base_offset is None else str(stored.base_offset), "v": _value(stored.value)}


def _value(value: OffsetAndMetadata) -> str:
    expires = "" if value.expire_timestamp is None else value.expire_timestamp
    return f"{value.offset}/{value.leader_epoch}/{value.metadata}/{value.commit_timestamp}/{expires}"
