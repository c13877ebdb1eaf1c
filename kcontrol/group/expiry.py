"""Offsets and groups that go: by age, by a request to delete them, and with the last offset of a group that nobody is in.

Source: deleteExpiredOffsets (0.9), removeExpiredOffsets of GroupMetadata.scala, cleanupGroupMetadata of
GroupMetadataManager.scala, handleDeleteGroups and handleDeleteOffsets of GroupCoordinator.scala (2.8).
"""

from __future__ import annotations

from collections.abc import Collection

from kcontrol.effects import Append, Cancel, Handler, Respond
from kcontrol.group import events as e
from kcontrol.group.context import GroupContext, keep_offsets
from kcontrol.group.group_machine import DEAD, EMPTY, STABLE, move
from kcontrol.group.model import CONSUMER, Group, OffsetAndMetadata, Offsets
from kcontrol.group.rebalance import session_timer
from kcontrol.group.records import group_key, offset_key
from kcontrol.model import TopicPartition


def expire_offsets(context: GroupContext, event: e.ExpireOffsets) -> Handler:
    """Remove what nobody needs any more, group by group."""
    for group_id in dict.fromkeys([*context.groups, *context.offsets]):
        gone, held = expired(context, group_id, event.timestamp_ms), context.offsets_of(group_id)
        yield from remove_offsets(context, group_id, gone, held.without_committed(gone), event.timestamp_ms)


def expired(context: GroupContext, group_id: str, now_ms: int) -> tuple[TopicPartition, ...]:
    """The partitions of a group whose offsets have had their time."""
    held = context.offsets_of(group_id)
    group = context.groups.get(group_id)
    return tuple(
        tp
        for tp, stored in held.committed.items()
        if tp not in held.pending and _has_expired(context, group, tp, stored.value, now_ms)
    )


def _has_expired(context: GroupContext, group: Group | None, tp: TopicPartition, value: OffsetAndMetadata, now_ms: int) -> bool:
    """Until 2.1 an offset has its time, whatever the group does; since then the group's emptiness counts (KIP-211)."""
    if context.rules.expiry == "commit" or group is None:
        return value.expire_timestamp is not None and value.expire_timestamp < now_ms
    base = value.commit_timestamp
    if group.protocol_type is not None and group.state is EMPTY:
        base = group.state_timestamp_ms if group.state_timestamp_ms >= 0 else base
    elif group.protocol_type is not None and not _is_free(context, group, tp):
        return False
    if value.expire_timestamp is not None:
        return now_ms >= value.expire_timestamp
    return now_ms - base >= context.config.retention_ms


def _is_free(context: GroupContext, group: Group, tp: TopicPartition) -> bool:
    """Whether it is known that nobody in a group with members subscribes to the topic (KAFKA-7437)."""
    topics = group.subscribed_topics
    knows = context.rules.expiry == "unsubscribed" and group.protocol_type == CONSUMER and group.state is STABLE
    return knows and topics is not None and tp.topic not in topics


def remove_offsets(
    context: GroupContext, group_id: str, gone: Collection[TopicPartition], after: Offsets, now_ms: int
) -> Handler:
    """Drop offsets, so that those of `after` are left, and with the last of them a group without members; write tombstones.

    Offsets of an open transaction keep the group, also if the transaction has lost the last of them. A group of generation 0 has
    no record, hence no tombstone. Source: cleanupGroupMetadata, hasOffsets (2.8).
    """
    held, group = context.offsets_of(group_id), context.groups.get(group_id)
    tombstones = [offset_key(group_id, tp) for tp in gone if tp in held.committed]
    if after != held:
        yield keep_offsets(group_id, after)
    if group and context.rules.offsets_need_group and (group.state is DEAD or (group.state is EMPTY and not after)):
        for member_id in group.pending_members:
            yield Cancel(session_timer(group_id, member_id))
        yield from move(context, group, DEAD, now_ms, "nothing is left of it", leaves=True)
        if group.generation > 0:
            tombstones.append(group_key(group_id))
    if tombstones:
        yield Append(context.topic_partition(group_id), tuple((key, None) for key in tombstones))


def delete_groups(context: GroupContext, event: e.DeleteGroups) -> Handler:
    """Groups that nobody is in go with all that they have stored (KIP-229)."""
    errors: dict[str, str] = {}
    for group_id in event.group_ids:
        group = context.groups.get(group_id)
        error = context.refusal(group_id, needs_name=False) or _absence(group)
        if not error and group and group.state is not EMPTY:
            error = "NON_EMPTY_GROUP"
        errors[group_id] = error or "NONE"
        if not error and group:
            committed = sorted(context.offsets_of(group_id).committed)
            yield from remove_offsets(context, group_id, committed, Offsets(), event.timestamp_ms)
    yield Respond(event.correlation_id, e.ErrorsResult(errors))


def _absence(group: Group | None) -> str | None:
    return "GROUP_ID_NOT_FOUND" if group is None or group.state is DEAD else None


def offset_delete(context: GroupContext, event: e.OffsetDelete) -> Handler:
    """Single offsets go, unless the group has members that subscribe to their topics (KIP-496)."""
    group = context.groups.get(event.group_id)
    error = context.refusal(event.group_id) or _absence(group)
    if not error and group and group.state is not EMPTY and group.protocol_type != CONSUMER:
        error = "NON_EMPTY_GROUP"
    if error or group is None:
        yield Respond(event.correlation_id, e.ErrorsResult({}, error or "GROUP_ID_NOT_FOUND"))
        return
    errors = {tp: "GROUP_SUBSCRIBED_TO_TOPIC" if _is_consumed(group, tp.topic) else "NONE" for tp in event.partitions}
    gone = [tp for tp, code in errors.items() if code == "NONE"]
    after = context.offsets_of(event.group_id).without(gone)
    yield from remove_offsets(context, event.group_id, gone, after, event.timestamp_ms)
    yield Respond(event.correlation_id, e.ErrorsResult(errors))


def _is_consumed(group: Group, topic: str) -> bool:
    """Whether somebody subscribes to the topic; where subscriptions are unknown, to each."""
    if group.state is EMPTY:
        return False
    return group.subscribed_topics is None or topic in group.subscribed_topics
