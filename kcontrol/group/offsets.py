"""Committing and fetching offsets: stamped, written to the log, visible when the log has them.

Source: doCommitOffsets and doTxnCommitOffsets of GroupCoordinator.scala, storeOffsets and getOffsets of
GroupMetadataManager.scala (0.9: prepareStoreOffsets), handleOffsetCommitRequest of KafkaApis.scala (0.9, 2.8).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kcontrol.effects import Append, Handler, Park, Respond
from kcontrol.group import events as e
from kcontrol.group.context import GroupContext, keep, keep_offsets
from kcontrol.group.errors import translated
from kcontrol.group.group_machine import COMPLETING, DEAD, EMPTY, new_group
from kcontrol.group.model import NO_MEMBER_ID, Group, OffsetAndMetadata, Offsets, Stored
from kcontrol.group.rebalance import touch
from kcontrol.group.records import offset_key, offset_value
from kcontrol.model import TopicPartition

# ---------------------------------------------------------------- commit


def offset_commit(context: GroupContext, event: e.OffsetCommit) -> Handler:
    """Park the request until the log has the offsets, or refuse all of them."""
    group = context.groups.get(event.group_id)
    error = context.refusal(event.group_id, needs_name=event.producer is not None)
    if not error and group is None and event.producer is not None:
        group = new_group(context, event.group_id, None, event.timestamp_ms)
        yield keep(group)
    error = error or _commit_error(context, event, group)
    if error:
        yield Respond(event.correlation_id, e.ErrorsResult(dict.fromkeys(event.offsets, error)))
        return
    if group is None and context.rules.offsets_need_group:
        yield keep(new_group(context, event.group_id, None, event.timestamp_ms))
    member = group.members.get(event.member_id) if group else None
    if member and event.producer is None and context.rules.commit_touches:
        yield touch(event.group_id, member)
    yield from _store(context, event)


def _commit_error(context: GroupContext, event: e.OffsetCommit, group: Group | None) -> str | None:
    is_plain = event.producer is None
    if group is None:
        return "ILLEGAL_GENERATION" if event.generation >= 0 else None
    if group.state is DEAD:
        return context.rules.dead_error
    if group.is_fenced(event.member_id, event.instance_id):
        return "FENCED_INSTANCE_ID"
    is_stranger, is_other = event.member_id not in group.members, event.generation != group.generation
    if not is_plain and not context.rules.transaction_checks:
        return None
    if not is_plain:
        is_stranger, is_other = is_stranger and event.member_id != NO_MEMBER_ID, is_other and event.generation >= 0
    elif event.generation < 0 and group.state is EMPTY:
        return None
    is_awaiting = is_plain and group.state is COMPLETING
    if is_awaiting and context.rules.commit_checks == "state first":
        return "REBALANCE_IN_PROGRESS"
    if is_stranger:
        return "UNKNOWN_MEMBER_ID"
    if is_other:
        return "ILLEGAL_GENERATION"
    return "REBALANCE_IN_PROGRESS" if is_awaiting else None


def stamped(context: GroupContext, event: e.OffsetCommit, offset: e.CommittedOffset) -> OffsetAndMetadata:
    """An offset with its times: until 2.1 each gets a time at which it expires. Source: handleOffsetCommitRequest."""
    now, given, retention = event.timestamp_ms, offset.commit_timestamp, event.retention_ms
    if context.rules.expiry == "commit":
        base = now if given is None else given
        commit, expire = now, base + (context.config.retention_ms if retention is None else retention)
    else:
        commit, expire = (now if given is None else given), None
        if retention is not None:
            commit, expire = now, now + retention
    return OffsetAndMetadata(offset.offset, offset.metadata, commit, expire, offset.leader_epoch)


def _store(context: GroupContext, event: e.OffsetCommit) -> Handler:
    """Write what may be written; until it is in the log, it is pending."""
    refused = tuple(tp for tp, offset in event.offsets.items() if not _fits(context, offset.metadata))
    values = {tp: stamped(context, event, offset) for tp, offset in event.offsets.items() if tp not in refused}
    if not values and context.rules.offsets_need_group:
        yield Respond(event.correlation_id, e.ErrorsResult(dict.fromkeys(refused, "OFFSET_METADATA_TOO_LARGE")))
        return
    held = context.offsets_of(event.group_id)
    if event.producer is not None:
        entries = {**held.by_producer.get(event.producer, {}), **{tp: Stored(value) for tp, value in values.items()}}
        yield keep_offsets(event.group_id, held.for_producer(event.producer, entries))
    elif context.rules.offsets_need_group:
        yield keep_offsets(event.group_id, replace(held, pending={**held.pending, **values}))
    version = context.rules.offset_value
    records = tuple((offset_key(event.group_id, tp), offset_value(value, version)) for tp, value in values.items())
    incarnation = context.incarnation_of(event.group_id)
    then = e.OffsetsStored(event.group_id, event.correlation_id, values, refused, event.producer, incarnation=incarnation)
    yield Park(event.correlation_id, f"append {event.group_id}")
    yield Append(context.topic_partition(event.group_id), records, then, event.producer)


def _fits(context: GroupContext, metadata: str) -> bool:
    return len(metadata.encode("utf-16-be", "surrogatepass")) // 2 <= context.config.metadata_max


def offsets_stored(context: GroupContext, event: e.OffsetsStored) -> Handler:
    """The log has them, or never will: answer, and let go of what was pending."""
    held = after = context.offsets_of(event.group_id)
    if context.rules.offsets_need_group and event.incarnation != context.incarnation_of(event.group_id):
        after = held  # they were a group's that has ended, and with it what was pending
    elif context.rules.offsets_need_group:
        after = _settle(held, event) if event.producer is None else _settle_in_transaction(held, event, event.producer)
    elif event.error == "NONE" and context.partition_of(event.group_id) in context.owned:
        after = held.committing({tp: Stored(value, event.base_offset) for tp, value in event.offsets.items()})
    if after != held:
        yield keep_offsets(event.group_id, after)
    error = "NONE" if event.error == "NONE" else translated("offsets", event.error, context.rules.append_errors)
    codes = dict.fromkeys(event.offsets, error) | dict.fromkeys(event.refused, "OFFSET_METADATA_TOO_LARGE")
    yield Respond(event.correlation_id, e.ErrorsResult(codes))


def _settle(held: Offsets, event: e.OffsetsStored) -> Offsets:
    """A plain commit: what is pending as it was written is so no more. Source: onOffsetCommitAppend, failPendingOffsetWrite.

    What is not pending was deleted meanwhile, or belongs to an earlier group of this name.
    """
    if event.error == "NONE":
        written = {tp: Stored(value, event.base_offset) for tp, value in event.offsets.items() if tp in held.pending}
        held = held.committing(written)
    return replace(held, pending={tp: value for tp, value in held.pending.items() if event.offsets.get(tp) != value})


def _settle_in_transaction(held: Offsets, event: e.OffsetsStored, producer: int) -> Offsets:
    """Return the offsets after a transaction's write: those written have a place in the log, or are dropped.

    A write that fails also drops the offset of a later write to the same partition.
    Source: onTxnOffsetCommitAppend, failPendingTxnOffsetCommit (2.8).
    """
    if producer not in held.by_producer:
        return held
    entries = held.by_producer[producer]
    if event.error == "NONE":
        placed = {tp: Stored(value, event.base_offset) for tp, value in event.offsets.items()}
        return held.for_producer(
            producer, {tp: placed[tp] if tp in placed and placed[tp].value == old.value else old for tp, old in entries.items()}
        )
    left = {tp: stored for tp, stored in entries.items() if tp not in event.offsets}
    return held.for_producer(producer, left) if left else held.without_producer(producer)


def transaction_completed(context: GroupContext, event: e.TransactionCompleted) -> Handler:
    """A transaction's offsets become visible, or are dropped. Source: completePendingTxnOffsetCommit (2.8)."""
    for group_id, held in tuple(context.offsets.items()):
        if event.producer in held.by_producer and context.partition_of(group_id) in event.partitions:
            yield keep_offsets(group_id, completed(held, event.producer, is_commit=event.is_commit))


def completed(held: Offsets, producer: int, *, is_commit: bool) -> Offsets:
    entries = held.by_producer.get(producer, {})
    return (held.committing(entries) if is_commit else held).without_producer(producer)


# ---------------------------------------------------------------- fetch


def offset_fetch(context: GroupContext, event: e.OffsetFetch) -> Handler:
    """What is stored, whoever asks; nothing stored is offset -1."""
    asked, by_partition = event.partitions, context.rules.fetch_error == "each partition"
    error = context.refusal(event.group_id, needs_name=False)
    if error:
        each = dict.fromkeys(asked or (), e.FetchedOffset(error=error)) if by_partition else {}
        yield Respond(event.correlation_id, e.FetchResult("NONE" if by_partition else error, each))
        return
    group = context.groups.get(event.group_id)
    is_there = group is not None and group.state is not DEAD if context.rules.offsets_need_group else True
    held = context.offsets_of(event.group_id) if is_there else Offsets()
    wanted = held.committed if asked is None or (not asked and by_partition) else asked
    found = {tp: _fetched(held, tp, event.requires_stable, held.committed) for tp in wanted}
    yield Respond(event.correlation_id, e.FetchResult("NONE", found))


def _fetched(held: Offsets, tp: TopicPartition, stable: bool, committed: Mapping[TopicPartition, Stored]) -> e.FetchedOffset:
    if stable and held.is_unstable(tp):
        return e.FetchedOffset(error="UNSTABLE_OFFSET_COMMIT")
    if tp not in committed:
        return e.FetchedOffset()
    value = committed[tp].value
    return e.FetchedOffset(value.offset, value.metadata, leader_epoch=value.leader_epoch)
