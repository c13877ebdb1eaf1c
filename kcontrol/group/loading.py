"""Becoming and ceasing to be the coordinator of a partition of the offsets topic.

Source: loadGroupsAndOffsets, doLoadGroupsAndOffsets, removeGroupsForPartition (0.9, 2.8) of GroupMetadataManager.scala,
onGroupLoaded and onGroupUnloaded of GroupCoordinator.scala.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kcontrol.effects import Cancel, Complain, Handler, Learn, LogBatch, ReadLog, Respond
from kcontrol.group import events as e
from kcontrol.group.context import GroupContext, keep, keep_offsets, unloaded_name
from kcontrol.group.group_machine import COMPLETING, DEAD, PREPARING, STABLE, move, new_group, subscribed_topics
from kcontrol.group.model import Group, GroupState, Member, Offsets, Stored
from kcontrol.group.offsets import completed
from kcontrol.group.placement import OFFSETS_TOPIC
from kcontrol.group.rebalance import join_timer, prepare_rebalance, refusal, session_timer, sync_timer, touch
from kcontrol.group.records import decode, read_group_value, read_offset_value
from kcontrol.model import TopicPartition


@dataclass(slots=True)
class Loaded:
    """What has been read so far: groups by name, None for a tombstone, and offsets."""

    groups: dict[str, Group | None] = field(default_factory=dict)
    offsets: dict[str, Offsets] = field(default_factory=dict)


# ---------------------------------------------------------------- becoming


def partition_elected(context: GroupContext, event: e.PartitionElected) -> Handler:
    """Read the partition's log from its beginning, then answer for its groups. Whatever goes wrong, it is ours then."""
    partition = event.partition
    if not (yield from _is_news(context, partition, event.coordinator_epoch)) or partition in context.loading:
        return
    if context.rules.coordinator_epochs and partition in context.owned:
        return
    yield Learn("loading", {partition}, context="group")
    loaded = Loaded()
    try:
        yield from _read(context, partition, loaded)
    except ValueError as error:
        yield Complain(error)
        loaded = Loaded(offsets={} if context.rules.offsets_need_group else loaded.offsets)
    yield from _install(context, loaded, event.timestamp_ms)
    yield Learn("owned", {partition}, context="group")
    yield Learn("loading", remove=(partition,), context="group")


def _is_news(context: GroupContext, partition: int, epoch: int | None) -> Handler:
    """Whether an election or a resignation is not older than what is known. Source: maybeUpdateCoordinatorEpoch (2.8)."""
    if not context.rules.coordinator_epochs or epoch is None:
        return True
    if epoch < context.coordinator_epochs.get(partition, epoch):
        return False
    yield Learn("coordinator_epochs", {partition: epoch}, context="group")
    return True


def _read(context: GroupContext, partition: int, loaded: Loaded) -> Handler:
    """Raises ValueError for a record that cannot be read; before 0.10.1 the offsets that were read by then stay."""
    position = 0
    while batches := (yield ReadLog(TopicPartition(OFFSETS_TOPIC, partition), position)):
        for batch in batches:
            read_batch(loaded, batch, context.config.retention_ms if context.rules.expiry == "commit" else None)
            position = batch.base_offset + max(len(batch.records), 1)


def read_batch(loaded: Loaded, batch: LogBatch, retention_ms: int | None = None) -> None:
    """Take in one batch: the last record of a key wins, and of a transaction only what is committed.

    `retention_ms` is what an offset without a time to expire gets, where each has one. Raises ValueError for other records.
    """
    if batch.marker and batch.producer is not None:
        for group_id, held in loaded.offsets.items():
            loaded.offsets[group_id] = completed(held, batch.producer, is_commit=batch.marker == "commit")
    for key, value in batch.records:
        version = int.from_bytes(key[:2], "big", signed=True)
        if version == 2:
            group_id = decode("group_key", key)[1]["group"]
            loaded.groups.pop(group_id, None)
            loaded.groups[group_id] = None if value is None else read_group_value(group_id, value)
        else:
            fields = decode("offset_key", key)[1]
            tp = TopicPartition(fields["topic"], fields["partition"])
            held = loaded.offsets.get(fields["group"], Offsets())
            loaded.offsets[fields["group"]] = _with_offset(held, tp, value, batch, retention_ms)


def _with_offset(held: Offsets, tp: TopicPartition, value: bytes | None, batch: LogBatch, retention_ms: int | None) -> Offsets:
    """Return the offsets after one record; a tombstone takes the visible offset, or that of its own transaction alone."""
    entries = held.by_producer.get(batch.producer, {}) if batch.producer is not None else {}
    if value is None and batch.producer is None:
        return held.without_committed([tp])
    if value is None and batch.producer is not None:
        return held.for_producer(batch.producer, {other: stored for other, stored in entries.items() if other != tp})
    assert value is not None
    offset = read_offset_value(value)
    if retention_ms is not None and offset.expire_timestamp is None:
        offset = offset._replace(expire_timestamp=offset.commit_timestamp + retention_ms)
    stored = Stored(offset, batch.base_offset)
    if batch.producer is None:
        return replace(held, committed={**held.committed, tp: stored})
    return held.for_producer(batch.producer, {**entries, tp: stored})


def _install(context: GroupContext, loaded: Loaded, now_ms: int) -> Handler:
    """Put groups and offsets into the cache, but over none that is there, and start the sessions of their members."""
    for group_id, held in loaded.offsets.items():
        held = loaded.offsets[group_id] = held.without_empty()
        if group_id not in context.groups or not context.rules.offsets_need_group:
            yield keep_offsets(group_id, held)
    for group_id in dict.fromkeys([*loaded.groups, *loaded.offsets]):
        group = loaded.groups.get(group_id)
        if group is None and context.rules.offsets_need_group and loaded.offsets.get(group_id):
            group = new_group(context, group_id, None, -1)
        if group is None or group_id in context.groups:
            continue
        if not context.rules.keeps_empty_groups:
            group = group.but(state=STABLE, protocol_type=group.protocol_type or "")  # 0.9 keeps an empty type
        yield keep(group.but(subscribed_topics=subscribed_topics(group)))
        for member in group.members.values():
            yield touch(group_id, member)
        if context.rules.limits_size and len(group.members) > context.config.max_size:
            yield from prepare_rebalance(context, group_id, now_ms, "group.max.size is exceeded")


# ---------------------------------------------------------------- ceasing


def partition_resigned(context: GroupContext, event: e.PartitionResigned) -> Handler:
    """Forget the partition's groups and offsets; whoever waits is told to look elsewhere. The log stays as it is."""
    if not (yield from _is_news(context, event.partition, event.coordinator_epoch)):
        return
    yield Learn("owned", remove=(event.partition,), context="group")
    if context.rules.coordinator_epochs:
        yield Learn("loading", remove=(event.partition,), context="group")
    for group_id in [id for id in context.groups if context.partition_of(id) == event.partition]:
        yield from _unload(context, context.groups[group_id], event.timestamp_ms)
    gone = tuple(id for id in context.offsets if context.partition_of(id) == event.partition)
    if gone:
        yield Learn("offsets", remove=gone, context="group")


def _unload(context: GroupContext, group: Group, now_ms: int) -> Handler:
    source, name = group.state, unloaded_name(group.group_id, context.incarnation_of(group.group_id))
    for member in group.members.values():
        if source is PREPARING and member.awaiting_join:
            yield Respond(member.awaiting_join, refusal(context, member.member_id, "NOT_COORDINATOR"))
        if source in (STABLE, COMPLETING) and member.awaiting_sync:
            yield Respond(member.awaiting_sync, e.SyncResult("NOT_COORDINATOR"))
    for member_id in (*group.members, *group.pending_members):
        yield Cancel(session_timer(group.group_id, member_id))
    for timer in (join_timer(group.group_id), sync_timer(group.group_id)):
        yield Cancel(timer)
    if any(member.unwritten for member in group.members.values()):
        yield Learn("unloaded", {name: group.with_members(_unparked(source, m) for m in group.members.values())}, context="group")
    yield from move(context, group, DEAD, now_ms, "another broker coordinates", leaves=True)


def _unparked(source: GroupState, member: Member) -> Member:
    """Return a member after its parked request has been refused; in a Stable group a JoinGroup waits on for its record."""
    return replace(member, awaiting_join=None) if source is PREPARING else replace(member, awaiting_sync=None)
