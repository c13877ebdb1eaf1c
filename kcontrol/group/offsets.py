"""Handlers of OffsetCommit, TxnOffsetCommit and OffsetFetch.

Committed offsets get a time (`with_timestamps`), are appended to the log and are pending
(`_store_offsets`), and become visible when the log has them (`offsets_stored`).

Source: doCommitOffsets and doTxnCommitOffsets of GroupCoordinator.scala, storeOffsets and
getOffsets of GroupMetadataManager.scala (0.9: prepareStoreOffsets), handleOffsetCommitRequest of
KafkaApis.scala (0.9, 2.8).
"""

# The offsets of a transaction stay apart, by producer id, until a marker commits or aborts them
# (`transaction_completed`). The offset of a later batch in the log counts (`Offsets.committing`),
# even if its acknowledgement came first; before 0.10.1 the last acknowledgement counts.
# GROUP_REACTIONS says which member may commit; `offset_expiration.py` says when offsets expire.
from dataclasses import replace

from kcontrol.core.effects import Append, Handler, Park, Respond
from kcontrol.core.model import TopicPartition
from kcontrol.group import events as e
from kcontrol.group.context import GroupContext, cache_group, cache_offsets
from kcontrol.group.error_codes import translate_append_error
from kcontrol.group.group_machine import new_group
from kcontrol.group.model import CommitRecordMetadataAndOffset, OffsetAndMetadata, Offsets
from kcontrol.group.offsets_topic_records import offset_key, offset_value
from kcontrol.group.rebalance import restart_session
from kcontrol.group.request_reactions import react

# ---------------------------------------------------------------- commit


def offset_commit(ctx: GroupContext, event: e.OffsetCommit) -> Handler:
    """If the member may commit, write the offsets, and park the request until the log has them.

    Otherwise answer with the error of the table GROUP_REACTIONS, for all partitions.
    Source: handleCommitOffsets, handleTxnCommitOffsets (0.9, 2.8).
    """
    group = ctx.groups.get(event.group_id)
    if error := ctx.validate_group_status(event.group_id, needs_name=event.producer is not None):
        yield _refuse(event, error)
        return
    row = react(ctx, group, event)
    if row.reaction == "create the group":
        group = new_group(ctx, event.group_id, None, event.timestamp_ms)
        yield cache_group(group)
        row = react(ctx, group, event)
    if row.reaction != "store":
        yield _refuse(event, row.reaction)
        return
    # Since 0.10.1 offsets belong to a group.
    if group is None and ctx.rules.offsets_need_group:
        yield cache_group(new_group(ctx, event.group_id, None, event.timestamp_ms))
    if row.restarts_session and group:
        yield restart_session(ctx, event.group_id, group.members[event.member_id])
    yield from _store_offsets(ctx, event)


def _refuse(event: e.OffsetCommit, error: str) -> Respond:
    """Return the response with one error for every partition of the request."""
    return Respond(event.correlation_id, e.ErrorsResult(dict.fromkeys(event.offsets, error)))


def with_timestamps(
    ctx: GroupContext, event: e.OffsetCommit, offset: e.CommittedOffset
) -> OffsetAndMetadata:
    """Return `offset`, which the request `event` commits, with its commit time and expiry time.

    Times are in ms since 1970; since 2.1 the expiry time is None if the request has no retention.

    Source: handleOffsetCommitRequest of KafkaApis.scala.
    """
    now, given, retention = event.timestamp_ms, offset.commit_timestamp, event.retention_ms
    if ctx.rules.expiry == "commit":
        base = now if given is None else given
        commit, expire = now, base + (ctx.config.retention_ms if retention is None else retention)
    else:
        commit, expire = (now if given is None else given), None
        if retention is not None:
            commit, expire = now, now + retention
    return OffsetAndMetadata(offset.offset, offset.metadata, commit, expire, offset.leader_epoch)


def _store_offsets(ctx: GroupContext, event: e.OffsetCommit) -> Handler:
    """Write the offsets whose metadata are short enough; each is pending until the log has it.

    The other offsets get OFFSET_METADATA_TOO_LARGE in the response.

    Source: storeOffsets of GroupMetadataManager.scala (2.8), prepareStoreOffsets (0.9).
    """
    rows = event.offsets.items()
    refused = tuple(tp for tp, offset in rows if not _is_metadata_valid(ctx, offset.metadata))
    values = {tp: with_timestamps(ctx, event, row) for tp, row in rows if tp not in refused}
    # Before 0.10.1 an append without records comes before this answer.
    if not values and ctx.rules.offsets_need_group:
        yield _refuse(event, "OFFSET_METADATA_TOO_LARGE")
        return
    held = ctx.offsets_of(event.group_id)
    if event.producer is not None:
        entries = {tp: CommitRecordMetadataAndOffset(value) for tp, value in values.items()}
        entries = {**held.by_producer.get(event.producer, {}), **entries}
        yield cache_offsets(event.group_id, held.for_producer(event.producer, entries))
    elif ctx.rules.offsets_need_group:
        yield cache_offsets(event.group_id, replace(held, pending={**held.pending, **values}))
    version, group_id = ctx.rules.offset_value, event.group_id
    keys = (offset_key(group_id, tp) for tp in values)
    records = tuple(zip(keys, (offset_value(v, version) for v in values.values()), strict=True))
    stored = group_id, event.correlation_id, values, refused, event.producer
    then = e.OffsetsStored(*stored, incarnation=ctx.incarnation_of(group_id))
    yield Park(event.correlation_id, f"append {group_id}")
    yield Append(ctx.topic_partition(group_id), records, then, event.producer)


def _is_metadata_valid(ctx: GroupContext, metadata: str) -> bool:
    """Return whether the metadata has at most offset.metadata.max.bytes UTF-16 units."""
    return len(metadata.encode("utf-16-be", "surrogatepass")) // 2 <= ctx.config.metadata_max


def offsets_stored(ctx: GroupContext, event: e.OffsetsStored) -> Handler:
    """Answer a commit whose write has ended, and make its offsets visible if the write succeeded.

    The response has an error for each offset: NONE, the write's error, or
    OFFSET_METADATA_TOO_LARGE.

    Source: the callback of storeOffsets (2.8).
    """
    held = after = ctx.offsets_of(event.group_id)
    if not ctx.rules.offsets_need_group:
        # The cache takes the offset of the write that ended last, even in place of a later one.
        # Source: putCacheCallback of prepareStoreOffsets in GroupMetadataManager.scala (0.9).
        if event.error == "NONE" and ctx.partition_of(event.group_id) in ctx.owned:
            after = replace(held, committed={**held.committed, **_placed(event)})
    # If the group that wrote has ended, its pending offsets have ended too: nothing changes.
    elif event.incarnation == ctx.incarnation_of(event.group_id):
        if event.producer is None:
            after = _after_append(held, event)
        else:
            after = _after_transactional_append(held, event, event.producer)
    if after != held:
        yield cache_offsets(event.group_id, after)
    error = translate_append_error("offsets", event.error, ctx.rules.append_errors)
    codes = dict.fromkeys(event.offsets, error)
    codes |= dict.fromkeys(event.refused, "OFFSET_METADATA_TOO_LARGE")
    yield Respond(event.correlation_id, e.ErrorsResult(codes))


def _placed(event: e.OffsetsStored) -> dict[TopicPartition, CommitRecordMetadataAndOffset]:
    at = event.base_offset
    return {tp: CommitRecordMetadataAndOffset(value, at) for tp, value in event.offsets.items()}


def _after_append(offsets: Offsets, event: e.OffsetsStored) -> Offsets:
    """Return a group's offsets after the log write of a commit; `offsets` are its offsets before.

    The commit's offsets are no longer pending; if the write succeeded, each that was still pending
    becomes the committed offset.

    Source: onOffsetCommitAppend, failPendingOffsetWrite of GroupMetadata.scala (2.8).
    """
    if event.error == "NONE":
        # An offset that is not pending any more was deleted meanwhile, or belongs to an earlier
        # group of this name.
        placed = _placed(event).items()
        offsets = offsets.committing({tp: stored for tp, stored in placed if tp in offsets.pending})
    pending = offsets.pending.items()
    left = {tp: value for tp, value in pending if event.offsets.get(tp) != value}
    return replace(offsets, pending=left)


def _after_transactional_append(offsets: Offsets, event: e.OffsetsStored, producer: int) -> Offsets:
    """Return a group's new offsets after the log write of a TxnOffsetCommit of producer `producer`.

    After a success the commit's offsets stay pending, with the log position of their batch. After
    an error the transaction loses its offsets of the same partitions.

    Source: onTxnOffsetCommitAppend, failPendingTxnOffsetCommit of GroupMetadata.scala (2.8).
    """
    if producer not in offsets.by_producer:
        return offsets
    entries = offsets.by_producer[producer]
    if event.error == "NONE":
        known = ((tp, new) for tp, new in _placed(event).items() if tp in entries)
        written = {tp: new for tp, new in known if new.value == entries[tp].value}
        return offsets.for_producer(producer, {**entries, **written})
    # After a failed append the transaction also loses the offsets of later TxnOffsetCommits for
    # these partitions.
    left = {tp: stored for tp, stored in entries.items() if tp not in event.offsets}
    return offsets.for_producer(producer, left) if left else offsets.without_producer(producer)


def transaction_completed(ctx: GroupContext, event: e.TransactionCompleted) -> Handler:
    """Make the offsets of a transaction visible after its commit, and drop them after its abort.

    The event names partitions of the offsets topic; the offsets of all groups in these partitions
    are changed.

    Source: completePendingTxnOffsetCommit of GroupMetadata.scala (2.8).
    """
    for group_id, held in tuple(ctx.offsets.items()):
        if event.producer in held.by_producer and ctx.partition_of(group_id) in event.partitions:
            after = after_transaction(held, event.producer, is_commit=event.is_commit)
            yield cache_offsets(group_id, after)


def after_transaction(offsets: Offsets, producer: int, *, is_commit: bool) -> Offsets:
    """A commit makes the producer's pending offsets committed, an abort removes them."""
    entries = offsets.by_producer.get(producer, {})
    return (offsets.committing(entries) if is_commit else offsets).without_producer(producer)


# ---------------------------------------------------------------- fetch


def offset_fetch(ctx: GroupContext, event: e.OffsetFetch) -> Handler:
    """Answer with the committed offset of each requested partition, -1 if none is committed.

    If this broker is not the group's coordinator or is still loading the group, answer with an
    error instead.

    Source: handleFetchOffsets of GroupCoordinator.scala, getOffsets of GroupMetadataManager.scala
    (0.9, 2.8).
    """
    asked, by_partition = event.partitions, ctx.rules.fetch_error == "each partition"
    error = ctx.validate_group_status(event.group_id, needs_name=False)
    if error:
        # Before 0.10.2 the error stands at each partition, since then at the request. No state of
        # the group matters: a client may use offsets alone.
        each = dict.fromkeys(asked or (), e.FetchedOffset(error=error)) if by_partition else {}
        yield Respond(event.correlation_id, e.FetchResult("NONE" if by_partition else error, each))
        return
    held = ctx.offsets_of(event.group_id)
    wanted = held.committed if asked is None or (not asked and by_partition) else asked
    found = {tp: _fetched(held, tp, requires_stable=event.requires_stable) for tp in wanted}
    yield Respond(event.correlation_id, e.FetchResult("NONE", found))


def _fetched(offsets: Offsets, tp: TopicPartition, *, requires_stable: bool) -> e.FetchedOffset:
    """Return the response for `tp`: the committed offset in `offsets`, -1 without such an offset.

    With `requires_stable` return -1 and the error UNSTABLE_OFFSET_COMMIT if `tp` has a pending
    offset, also in an open transaction.

    Source: getOffsets (2.8), KIP-447.
    """
    if requires_stable and offsets.is_unstable(tp):
        return e.FetchedOffset(error="UNSTABLE_OFFSET_COMMIT")
    if tp not in offsets.committed:
        return e.FetchedOffset()
    value = offsets.committed[tp].value
    return e.FetchedOffset(value.offset, value.metadata, leader_epoch=value.leader_epoch)
