"""Produce and Fetch requests of a broker, and the changes of its logs that follow from leadership.

The role, the records and the high watermark of a log change in five ways.
`apply_leadership_to_logs` runs after every handler: it compares the role of each log with the
hosted partition, and changes roles, high watermarks and delayed responses. `fetch_response` changes
a follower's log. `produce` appends a producer's record to the leader's log, `append_records` those
of the group coordinator on this broker. `delete_log` deletes a log after StopReplica.

The high watermark of a leader is the least log end offset of the ISR and of a pending ISR, as far
as the leader knows them from fetches. Therefore a follower receives a new high watermark in the
response to its next fetch, and a record is acknowledged (acks "all") one fetch after all members of
the ISR have it.

Source: ReplicaManager.scala, Partition.scala and ReplicaFetcherThread.scala (2.8).
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from kcontrol.broker import events, log_segments
from kcontrol.broker.context import BrokerContext, HostedPartition
from kcontrol.broker.log import (
    DIVERGENCE_CHECKS,
    AppendRecords,
    BecomeLeaderOrFollower,
    DelayedAppend,
    DelayedProduce,
    DeleteLog,
    ExpireDelayedAppend,
    ReplicaLog,
    Truncate,
    UpdateConfig,
    UpdateFollowerState,
    UpdateHighWatermark,
    truncation_offset,
)
from kcontrol.core import effects
from kcontrol.core.effects import Handler
from kcontrol.core.model import NO_EPOCH, NO_LEADER, LogRecord, TopicPartition
from kcontrol.core.znodes import MalformedZnode, decode_topic_config, topic_config_path

MIN_INSYNC_REPLICAS, SEGMENT_BYTES = "min.insync.replicas", "segment.bytes"
DELETE_RETENTION = "delete.retention.ms"

EFFECTIVE: Final = "at most the replicas"
"""The value of the rule `min_insync_replicas` since 3.7. Source: Partition.effectiveMinIsr."""

NOT_LEADER, NOT_ENOUGH = "NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS"
ACKS = (-1, 0, 1)
"""The legal acks of an append; -1 is "all"."""


def _produce_response(error: str) -> dict[str, object]:
    return {"error": error, "errors": {}}


def _append_as_leader(
    ctx: BrokerContext, tp: TopicPartition, offset: int, acks: str
) -> dict[str, object]:
    stored = ctx.logs[tp].since(offset)[0]
    record = {name: getattr(stored, name) for name in LogRecord._fields}
    return {**_produce_response("NONE"), "partition": tp, "acks": acks, **record}


# ---------------------------------------------------------------- requests


def produce(ctx: BrokerContext, event: events.Produce) -> Handler:
    """Append a record; respond now (acks "1") or when the high watermark passes it (acks "all").

    If the append is refused, as on a broker that does not lead the partition, respond with an
    error.

    Source: Partition.appendRecordsToLeader, DelayedProduce (0.8.2, 2.8).
    """
    tp = event.partition
    if error := _refusal(ctx, tp, waits_for_isr=event.acks == "all"):
        yield effects.Respond(event.correlation_id, _produce_response(error))
        return
    log = ctx.logs[tp]
    record = LogRecord(log.log_end_offset, log.leader_epoch, event.value)
    waiting = DelayedProduce(record.offset, event.correlation_id) if event.acks == "all" else None
    yield effects.UpdateLog(tp, AppendRecords((record,), waiting))
    if event.acks != "all":
        yield effects.Respond(
            event.correlation_id, _append_as_leader(ctx, tp, record.offset, event.acks)
        )


def _refusal(ctx: BrokerContext, tp: TopicPartition, *, waits_for_isr: bool) -> str | None:
    """The error; None: accepted. acks "all" (`waits_for_isr`) needs `min.insync.replicas`."""
    if not ctx.is_leader(tp):
        return NOT_LEADER
    too_few = len(ctx.hosted[tp].leadership.isr) < effective_min_isr(ctx, tp)
    return NOT_ENOUGH if waits_for_isr and too_few else None


class AppendRequest(NamedTuple):
    """Records that the group coordinator appends, and the event by which it receives the result."""

    # A partition of the offsets topic.
    partition: TopicPartition
    records: tuple[log_segments.StoredRecord, ...]
    # -1 ("all"), 0 or 1.
    acks: int
    # The longest wait for replicas.
    timeout_ms: int
    # Queued with the error of the append; None means that no result is needed.
    event: Any
    # The id of the append's journal record, the cause of `event`.
    record: Any


def append_records(ctx: BrokerContext, request: AppendRequest) -> Handler:
    """Append the records of `request`; then queue the event of `request` with an error or "NONE".

    With acks -1 the event waits for the high watermark to pass the records, or for the timeout.

    Source: ReplicaManager.appendRecords (2.8), appendMessages (0.9).
    """
    tp, waits = request.partition, request.acks == -1
    error = None if request.acks in ACKS else "INVALID_REQUIRED_ACKS"
    if tp in ctx.offline_partitions:
        error = error or "KAFKA_STORAGE_ERROR"
    error = error or _refusal(ctx, tp, waits_for_isr=waits) or _oversize(ctx.logs[tp], request)
    offset = request.records[-1].offset if request.records else -1
    delayed = DelayedAppend(offset, request.event, request.record)
    if error or not request.records:
        yield from _complete(tp, delayed, error or "NONE")
        return
    waits = waits and request.event is not None
    yield effects.UpdateLog(tp, AppendRecords(request.records, delayed if waits else None))
    if waits:
        # After the timeout the event has the error REQUEST_TIMED_OUT.
        yield effects.SetTimer(
            append_timer(tp, offset), request.timeout_ms, events.AppendTimedOut(tp, offset)
        )
    yield from _maybe_increment_high_watermark(ctx, tp, ctx.hosted[tp])
    if not waits:
        yield from _complete(tp, delayed, "NONE")


def _oversize(log: ReplicaLog, request: AppendRequest) -> str | None:
    """Return RECORD_LIST_TOO_LARGE if the request's records exceed `segment.bytes`, else None.

    A topic without `segment.bytes` has no limit. Source: Log.append (0.9, 2.8).
    """
    settings = log.compaction
    if settings is None:
        return None
    size = log_segments.size_in_bytes(request.records, settings.message_format)
    return "RECORD_LIST_TOO_LARGE" if size > settings.segment_bytes else None


def append_timer(tp: TopicPartition, offset: int) -> str:
    """Such as "append __consumer_offsets-0 5"; `offset` is that of the last record."""
    return f"append {tp} {offset}"


def append_timed_out(ctx: BrokerContext, event: events.AppendTimedOut) -> Handler:
    """End the wait of the append whose last offset is `event.offset`, with REQUEST_TIMED_OUT.

    The records of the append stay in the log. An append that is complete is not changed. Source:
    DelayedProduce.onExpiration (0.9, 2.8).
    """
    tp = event.partition
    waiting = ctx.logs[tp].waiting if tp in ctx.logs else ()
    for delayed in waiting:
        if isinstance(delayed, DelayedAppend) and delayed.offset == event.offset:
            yield effects.UpdateLog(tp, ExpireDelayedAppend(event.offset))
            yield from _complete(tp, delayed, "REQUEST_TIMED_OUT")


def _complete(
    tp: TopicPartition, operation: DelayedProduce | DelayedAppend, error: str
) -> Iterable[effects.Effect]:
    """Ends the wait of a produce request or of a coordinator's append; "NONE" after success."""
    if isinstance(operation, DelayedProduce):
        yield effects.Respond(operation.correlation_id, _produce_response(error))
    elif operation.event is not None:
        yield effects.CancelTimer(append_timer(tp, operation.offset))
        yield effects.Enqueue(replace(operation.event, error=error), cause=operation.record)


def update_follower_fetch_state(ctx: BrokerContext, event: events.FollowerFetch) -> Handler:
    """Store a follower's log end offset in the leader's log, if this broker leads the partition.

    Source: Partition.updateFollowerFetchState (2.8).
    """
    tp, replica_id, offset = event.partition, event.replica_id, event.offset
    if ctx.is_leader(tp) and ctx.logs[tp].follower_end_offset(replica_id) != offset:
        yield effects.UpdateLog(tp, UpdateFollowerState(replica_id, offset))


def is_follower_in_sync(
    ctx: BrokerContext, tp: TopicPartition, replica_id: int, offset: int
) -> bool:
    """Return whether the follower `replica_id` with the log end offset `offset` may enter the ISR.

    The offset must have reached the high watermark and, since 1.1.2, the start of the leader's
    epoch.

    Source: Partition.isFollowerInSync (2.8).
    """
    if not ctx.is_replica_isr_eligible(tp, replica_id):
        return False
    log = ctx.logs[tp]
    has_epoch = log.latest_epoch == log.leader_epoch
    epoch_start = log.epochs[-1].start_offset if has_epoch else log.log_end_offset
    least = epoch_start if ctx.rules.rejoins_at == "leader_epoch_start" else 0
    return offset >= max(log.high_watermark, least)


def fetch_response(ctx: BrokerContext, event: events.FetchResponse) -> Handler:
    """Append the response's records to the follower's log, and store the leader's high watermark.

    If the response says that the logs diverge, only truncate the follower's log. Do nothing on a
    broker that is not a follower of the partition.

    Source: ReplicaFetcherThread.processPartitionData and
    AbstractFetcherThread.truncateToEpochEndOffsets (2.8).
    """
    tp = event.partition
    if ctx.is_leader(tp) or tp not in ctx.hosted:
        return
    log = ctx.logs[tp]
    if event.diverging is not None:
        offset = truncation_offset(log, event.diverging)
        yield effects.UpdateLog(tp, Truncate(offset, ctx.rules.truncate_to))
        return
    if event.records:
        yield effects.UpdateLog(tp, AppendRecords(event.records))
    # A follower's high watermark is never above its log end offset.
    high_watermark = min(ctx.logs[tp].log_end_offset, event.high_watermark)
    if high_watermark != log.high_watermark:
        yield effects.UpdateLog(tp, UpdateHighWatermark(high_watermark))


def fetch_position(ctx: BrokerContext, tp: TopicPartition) -> tuple[int, int]:
    """The log end offset and latest epoch of a follower's fetch; -1 without records."""
    log = ctx.logs[tp]
    # From 0.11 to 1.1 (KIP-101) the epoch is -1 too as soon as the follower has truncated its log.
    has_asked = ctx.rules.truncate_to == "leader_epoch" and not log.truncating
    return log.log_end_offset, NO_EPOCH if has_asked else log.latest_epoch


def read_for_fetch(
    ctx: BrokerContext, tp: TopicPartition, offset: int, latest_epoch: int
) -> events.FetchResponse:
    """Return the leader's response to a follower's fetch from `offset`: records of one segment.

    `latest_epoch` is the latest leader epoch in the follower's log, -1 for a log without records.

    Source: ReplicaManager.fetchMessages (2.8).
    """
    # The leader reads its log before it stores the follower's offset, so a new high watermark is in
    # the response to the next fetch.
    log = ctx.logs[tp]
    diverging = DIVERGENCE_CHECKS[ctx.rules.truncate_to](log, offset, latest_epoch)
    records = () if diverging else read_segment(log, offset)
    return events.FetchResponse(tp, log.leader_epoch, log.high_watermark, diverging, records)


def read_segment(log: ReplicaLog, offset: int) -> tuple[log_segments.StoredRecord, ...]:
    """Return the records from `offset` to the end of their segment; () if there are none.

    If the segment of `offset` has none, the next segment with records is read.

    Source: Log.read (2.8).
    """
    found = log.since(offset)
    later = (s.base_offset for s in log.segments if found and s.base_offset > found[0].offset)
    end = next(later, None)
    return found if end is None else tuple(record for record in found if record.offset < end)


def delete_log(ctx: BrokerContext, tp: TopicPartition) -> Handler:
    """Delete a log; the requests that wait for its high watermark get NOT_LEADER_OR_FOLLOWER.

    These are requests of producers and appends of the group coordinator.
    Source: Partition.delete, LogManager.asyncDelete (2.8).
    """
    for delayed in ctx.logs[tp].waiting:
        yield from _complete(tp, delayed, NOT_LEADER)
    yield effects.UpdateLog(tp, DeleteLog())


# ---------------------------------------------------------------- leadership


def apply_leadership_to_logs(ctx: BrokerContext) -> Handler:
    """Set leader and leader epoch of each log to those of its hosted replica.

    Then raise the high watermark of each partition that this broker leads to the offset that all
    members of the ISR have reached.
    """
    for tp, log in list(ctx.logs.items()):
        # The log of a partition that is not hosted any more gets the leader -1.
        if tp not in ctx.hosted and log.leader != NO_LEADER:
            yield from _become_leader_or_follower(ctx, tp, log, NO_LEADER, NO_EPOCH)
    for tp, held in ctx.hosted.items():
        log = ctx.logs.get(tp, ReplicaLog())
        leadership = (held.leadership.leader, held.leadership.leader_epoch)
        if leadership != (log.leader, log.leader_epoch):
            yield from _become_leader_or_follower(ctx, tp, log, *leadership)
        if ctx.is_leader(tp):
            yield from _maybe_increment_high_watermark(ctx, tp, held)
    # A log without this value needs the topic's settings.
    logs = {tp: ctx.logs[tp] for tp in ctx.hosted if tp in ctx.logs}
    yield from _configure(ctx, [tp for tp, log in logs.items() if log.min_insync_replicas is None])


def _become_leader_or_follower(
    ctx: BrokerContext, tp: TopicPartition, log: ReplicaLog, leader: int, leader_epoch: int
) -> Handler:
    """Make this replica the leader if `leader` is this broker, else a follower of `leader`.

    -1 means no leader. If the replica does not lead, the requests that wait in `log` get
    NOT_LEADER_OR_FOLLOWER.

    Source: ReplicaManager.makeFollowers (0.8.0 to 0.10.2).
    """
    leads = leader == ctx.broker_id
    yield effects.UpdateLog(tp, BecomeLeaderOrFollower(leader, leader_epoch, leads))
    for delayed in () if leads else log.waiting:
        yield from _complete(tp, delayed, NOT_LEADER)
    # Before 0.11 a follower of a new leader truncates its log to its high watermark.
    follows_another = leader not in (NO_LEADER, log.leader) and not leads
    if follows_another and ctx.rules.truncate_to == "high_watermark":
        yield effects.UpdateLog(tp, Truncate(log.high_watermark, "high_watermark"))


def _maybe_increment_high_watermark(
    ctx: BrokerContext, tp: TopicPartition, hosted_partition: HostedPartition
) -> Handler:
    """Raise the high watermark to the least log end offset of the ISR and the pending ISR.

    Complete the delayed produces and appends that the new high watermark covers.

    Source: Partition.maybeIncrementLeaderHW (2.8, 3.9) and isrState.maximalIsr (2.8).
    """
    log = ctx.logs[tp]
    least = effective_min_isr(ctx, tp)
    # Since 3.7 the high watermark stays while the ISR is too small (KAFKA-15583).
    if ctx.rules.min_insync_replicas == EFFECTIVE and len(hosted_partition.leadership.isr) < least:
        return
    maximal_isr = {*hosted_partition.leadership.isr, *hosted_partition.pending_isr}
    followers = maximal_isr - {ctx.broker_id}
    reached = min([log.log_end_offset, *map(log.follower_end_offset, followers)])
    if reached <= log.high_watermark:
        return
    completed = [delayed for delayed in log.waiting if delayed.offset < reached]
    yield effects.UpdateLog(tp, UpdateHighWatermark(reached))
    # They get an error if the ISR and the pending ISR have too few replicas.
    error = "NONE" if len(maximal_isr) >= least else "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
    for delayed in completed:
        if isinstance(delayed, DelayedProduce) and error == "NONE":
            acknowledged = _append_as_leader(ctx, tp, delayed.offset, "all")
            yield effects.Respond(delayed.correlation_id, acknowledged)
        else:
            yield from _complete(tp, delayed, error)


# ---------------------------------------------------------------- the settings of topics


def effective_min_isr(ctx: BrokerContext, tp: TopicPartition) -> int:
    """Return the least size of the ISR for acks=all: `min.insync.replicas` of topic or broker.

    Before 0.8.2, which has no such setting, return 1; since 3.7 at most the number of replicas.
    Source: Partition.checkEnoughReplicasReachOffset (0.8.2, 2.8), Partition.effectiveMinIsr (3.7).
    """
    rule, known = ctx.rules.min_insync_replicas, ctx.logs[tp].min_insync_replicas
    least = _default(ctx) if known is None else known
    most = len(ctx.hosted[tp].replicas)
    return {"no setting": 1, "as set": least, EFFECTIVE: min(least, most)}[rule]


def _default(ctx: BrokerContext) -> int:
    return ctx.config.min_insync_replicas or 1


def topic_config_change(ctx: BrokerContext, event: events.TopicConfigChange) -> Handler:
    """Read the settings of a topic from ZooKeeper again, if this broker has a log of the topic.

    Source: TopicConfigHandler (0.9, 2.8).
    """
    yield from _configure(ctx, [tp for tp in ctx.logs if tp.topic == event.topic])


def _configure(ctx: BrokerContext, partitions: Iterable[TopicPartition]) -> Handler:
    """Read the settings of the topics of `partitions`, and store them in each ReplicaLog.

    Before 0.8.2, and if the session has expired, change nothing.

    Source: Partition.createLogIfNotExists and LogManager.fetchLogConfig (2.8),
    Partition.getOrCreateReplica (0.8.2).
    """
    by_topic: dict[str, list[TopicPartition]] = {}
    for tp in partitions:
        by_topic.setdefault(tp.topic, []).append(tp)
    if not by_topic or ctx.rules.min_insync_replicas == "no setting":
        return
    try:
        znodes: tuple[effects.Znode | None, ...] = yield effects.Read(
            tuple(map(topic_config_path, by_topic))
        )
    # A log with settings keeps them; for a log without settings the next handler reads them.
    except effects.SessionExpired:
        return
    for topic, znode in zip(by_topic, znodes, strict=True):
        for tp in by_topic[topic]:
            if tp in ctx.logs:
                yield effects.UpdateLog(tp, _topic_config(ctx, znode))


def _topic_config(ctx: BrokerContext, znode: effects.Znode | None) -> UpdateConfig:
    """Return the settings that a log needs from the topic's settings znode (None: missing znode).

    The broker's default replaces a missing `min.insync.replicas`. `compaction` is None without
    `segment.bytes`: then the log has one segment and no cleaner.
    """
    try:
        texts = decode_topic_config(znode.data) if znode else {}
    except MalformedZnode:
        texts = {}
    # A value that is no number is ignored.
    known = {name: int(text) for name, text in texts.items() if text.isdecimal()}
    compaction = None
    if segment_bytes := known.get(SEGMENT_BYTES):
        retention_ms = known.get(DELETE_RETENTION, log_segments.DELETE_RETENTION_MS)
        compaction = log_segments.Compaction(
            segment_bytes, retention_ms, log_segments.message_format(ctx.rules.release)
        )
    return UpdateConfig(known.get(MIN_INSYNC_REPLICAS) or _default(ctx), compaction)
