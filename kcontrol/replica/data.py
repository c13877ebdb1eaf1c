"""A broker's data side: what producers and followers are answered, and how logs follow from who leads.

Source: ReplicaManager.scala, Partition.scala and ReplicaFetcherThread.scala (2.8).
"""

from __future__ import annotations

from collections.abc import Iterable

from kcontrol.effects import Handler, Read, Respond, SessionExpired, WriteLog, Znode
from kcontrol.events import FetchResponse, FollowerFetch, Produce, TopicConfigChange
from kcontrol.model import NO_EPOCH, NO_LEADER, LogRecord, TopicPartition
from kcontrol.replica.context import BrokerContext, HostedPartition
from kcontrol.replica.log import (
    DIVERGES,
    Append,
    Configure,
    Delete,
    MoveHighWatermark,
    NoteFollower,
    ReplicaLog,
    TakeRole,
    Truncate,
    Waiting,
    truncation_offset,
)
from kcontrol.znodes import MalformedZnode, decode_topic_config, topic_config_path

MIN_INSYNC_REPLICAS = "min.insync.replicas"

EFFECTIVE = "at most the replicas"
"""The rule of 3.7 on. Source: Partition.effectiveMinIsr."""

NOT_LEADER = {"error": "NOT_LEADER_OR_FOLLOWER", "errors": {}}
NOT_ENOUGH = {"error": "NOT_ENOUGH_REPLICAS", "errors": {}}
NOT_ENOUGH_AFTER_APPEND = {"error": "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "errors": {}}


def _appended(ctx: BrokerContext, tp: TopicPartition, offset: int, acks: str) -> dict[str, object]:
    record = ctx.logs[tp].records[offset]
    return {"error": "NONE", "errors": {}, "partition": tp, "acks": acks, **record._asdict()}


# ---------------------------------------------------------------- requests


def produce(ctx: BrokerContext, event: Produce) -> Handler:
    """A leader appends; with acks "1" it answers at once, with "all" when the high watermark has passed the record.

    With "all" it appends nothing where the ISR is smaller than `min.insync.replicas` (since 0.8.2).
    Source: Partition.appendRecordsToLeader, DelayedProduce (0.8.2, 2.8).
    """
    tp = event.partition
    if not ctx.leads(tp):
        yield Respond(event.correlation_id, NOT_LEADER)
        return
    if event.acks == "all" and len(ctx.hosted[tp].value.isr) < needed(ctx, tp):
        yield Respond(event.correlation_id, NOT_ENOUGH)
        return
    log = ctx.logs[tp]
    record = LogRecord(log.end_offset, log.leader_epoch, event.value)
    yield WriteLog(tp, Append((record,), event.correlation_id if event.acks == "all" else ""))
    if event.acks != "all":
        yield Respond(event.correlation_id, _appended(ctx, tp, record.offset, event.acks))


def note_fetch(ctx: BrokerContext, event: FollowerFetch) -> Handler:
    """A leader takes note of how far a follower is. Source: Partition.updateFollowerFetchState (2.8)."""
    if ctx.leads(event.partition) and ctx.logs[event.partition].end_of(event.replica_id) != event.offset:
        yield WriteLog(event.partition, NoteFollower(event.replica_id, event.offset))


def may_join(ctx: BrokerContext, tp: TopicPartition, replica_id: int, offset: int) -> bool:
    """Whether a follower with this log end offset may enter the ISR. Source: Partition.isFollowerInSync (2.8)."""
    if not ctx.takes_in(tp, replica_id):
        return False
    log = ctx.logs[tp]
    begins = log.epochs[-1].start_offset if log.latest_epoch == log.leader_epoch else log.end_offset
    return offset >= log.high_watermark and (ctx.rules.rejoins_at == "high_watermark" or offset >= begins)


def fetch_response(ctx: BrokerContext, event: FetchResponse) -> Handler:
    """A follower appends what it gets and takes over the high watermark as far as its log goes, or cuts its log.

    Source: ReplicaFetcherThread.processPartitionData and AbstractFetcherThread.truncateToEpochEndOffsets (2.8).
    """
    tp = event.partition
    if ctx.leads(tp) or tp not in ctx.hosted:
        return
    log = ctx.logs[tp]
    if event.diverging is not None:
        yield WriteLog(tp, Truncate(truncation_offset(log, event.diverging), ctx.rules.truncate_to))
        return
    if event.records:
        yield WriteLog(tp, Append(event.records))
    high_watermark = min(ctx.logs[tp].end_offset, event.high_watermark)
    if high_watermark != log.high_watermark:
        yield WriteLog(tp, MoveHighWatermark(high_watermark))


def position(ctx: BrokerContext, tp: TopicPartition) -> tuple[int, int]:
    """What a follower asks with: its end, and its latest epoch; by KIP-101 alone the latter only until it has cut its log."""
    log = ctx.logs[tp]
    has_asked = ctx.rules.truncate_to == "leader_epoch" and not log.truncating
    return log.end_offset, NO_EPOCH if has_asked else log.latest_epoch


def answer(ctx: BrokerContext, tp: TopicPartition, offset: int, latest_epoch: int) -> FetchResponse:
    """What a leader answers a follower with this end and this latest epoch: its log is read before the follower's end is noted.

    So a follower hears of a new high watermark one fetch later. Source: ReplicaManager.fetchMessages (2.8).
    """
    log = ctx.logs[tp]
    diverging = DIVERGES[ctx.rules.truncate_to](log, offset, latest_epoch)
    records = () if diverging else log.records[offset:]
    return FetchResponse(tp, log.leader_epoch, log.high_watermark, diverging, records)


def delete(ctx: BrokerContext, tp: TopicPartition) -> Handler:
    """The log goes, and who waits for it is told. Source: Partition.delete, LogManager.asyncDelete (2.8)."""
    for asked in ctx.logs[tp].waiting:
        yield Respond(asked.correlation_id, NOT_LEADER)
    yield WriteLog(tp, Delete())


# ---------------------------------------------------------------- what follows from who leads


def keep_up(ctx: BrokerContext) -> Handler:
    """Bring the logs in line with what this broker has been told: roles, truncation, high watermarks, settings of new topics."""
    for tp, log in list(ctx.logs.items()):
        if tp not in ctx.hosted and log.leader != NO_LEADER:
            yield from _take_role(ctx, tp, log, NO_LEADER, NO_EPOCH)
    for tp, held in ctx.hosted.items():
        log = ctx.logs.get(tp, ReplicaLog())
        told = (held.value.leader, held.value.leader_epoch)
        if told != (log.leader, log.leader_epoch):
            yield from _take_role(ctx, tp, log, *told)
        if ctx.leads(tp):
            yield from _raise_high_watermark(ctx, tp, held)
    yield from _configure(ctx, [tp for tp in ctx.hosted if tp in ctx.logs and ctx.logs[tp].min_insync_replicas is None])


def _take_role(ctx: BrokerContext, tp: TopicPartition, log: ReplicaLog, leader: int, leader_epoch: int) -> Handler:
    """Before 0.11 a replica that follows another leader than before cuts its log at its own high watermark.

    Source: ReplicaManager.makeFollowers (0.8.0 to 0.10.2).
    """
    leads = leader == ctx.broker_id
    yield WriteLog(tp, TakeRole(leader, leader_epoch, leads))
    for asked in () if leads else log.waiting:
        yield Respond(asked.correlation_id, NOT_LEADER)
    follows_another = leader not in (NO_LEADER, log.leader) and not leads
    if follows_another and ctx.rules.truncate_to == "high_watermark":
        yield WriteLog(tp, Truncate(log.high_watermark, "high_watermark"))


def _raise_high_watermark(ctx: BrokerContext, tp: TopicPartition, held: HostedPartition) -> Handler:
    """The least log end offset of all that are in sync, or may be so by now; it never falls.

    Since 3.7 it stays where it is while the ISR is smaller than `min.insync.replicas` (KAFKA-15583).
    Source: Partition.maybeIncrementLeaderHW (2.8, 3.9) and isrState.maximalIsr (2.8).
    """
    log = ctx.logs[tp]
    if ctx.rules.min_insync_replicas == EFFECTIVE and len(held.value.isr) < needed(ctx, tp):
        return
    counted = {*held.value.isr, *held.pending_isr} - {ctx.broker_id}
    reached = min([log.end_offset, *(log.end_of(follower) for follower in counted)])
    if reached <= log.high_watermark:
        return
    answered: list[Waiting] = [asked for asked in log.waiting if asked.offset < reached]
    yield WriteLog(tp, MoveHighWatermark(reached))
    enough = len({*held.value.isr, *held.pending_isr}) >= needed(ctx, tp)
    for asked in answered:
        yield Respond(asked.correlation_id, _appended(ctx, tp, asked.offset, "all") if enough else NOT_ENOUGH_AFTER_APPEND)


# ---------------------------------------------------------------- the settings of topics


def needed(ctx: BrokerContext, tp: TopicPartition) -> int:
    """Return how many replicas must be in sync before a leader accepts acks=all; since 3.7 never more than there are replicas.

    Source: Partition.checkEnoughReplicasReachOffset (0.8.2, 2.8), Partition.effectiveMinIsr (3.7).
    """
    rule, known = ctx.rules.min_insync_replicas, ctx.logs[tp].min_insync_replicas
    least = _default(ctx) if known is None else known
    return {"no setting": 1, "as set": least, EFFECTIVE: min(least, len(ctx.hosted[tp].replicas))}[rule]


def _default(ctx: BrokerContext) -> int:
    return ctx.config.min_insync_replicas or 1


def topic_config_change(ctx: BrokerContext, event: TopicConfigChange) -> Handler:
    """Read the settings of a topic again, if the broker has a log of it. Source: TopicConfigHandler (0.9, 2.8)."""
    yield from _configure(ctx, [tp for tp in ctx.logs if tp.topic == event.topic])


def _configure(ctx: BrokerContext, partitions: Iterable[TopicPartition]) -> Handler:
    """Read the settings of these partitions' topics in one round trip; a session that has ended leaves them to the next event.

    Source: Partition.createLogIfNotExists and LogManager.fetchLogConfig (2.8), Partition.getOrCreateReplica (0.8.2).
    """
    by_topic: dict[str, list[TopicPartition]] = {}
    for tp in partitions:
        by_topic.setdefault(tp.topic, []).append(tp)
    if not by_topic or ctx.rules.min_insync_replicas == "no setting":
        return
    try:
        znodes: tuple[Znode | None, ...] = yield Read(tuple(map(topic_config_path, by_topic)))
    except SessionExpired:
        return
    for topic, znode in zip(by_topic, znodes, strict=True):
        for tp in by_topic[topic]:
            if tp in ctx.logs:
                yield WriteLog(tp, Configure(_min_insync_replicas(ctx, znode)))


def _min_insync_replicas(ctx: BrokerContext, znode: Znode | None) -> int:
    """The topic's setting, or the broker's where the topic has none that can be read."""
    try:
        said = decode_topic_config(znode.data).get(MIN_INSYNC_REPLICAS, "") if znode else ""
    except MalformedZnode:
        said = ""
    return int(said) if said.isdecimal() and int(said) > 0 else _default(ctx)
