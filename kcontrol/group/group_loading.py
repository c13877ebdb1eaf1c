"""Handlers of an election and a resignation for a partition of the offsets topic.

A broker that becomes leader of such a partition coordinates the groups of that partition. It reads
the log from its beginning, keeps the last record of each key, and puts groups and offsets into its
cache (`partition_elected`). A broker that resigns answers all parked requests with NOT_COORDINATOR
and drops the partition's groups; the log stays as it is (`partition_resigned`).

Rules: a group from the log is Stable, or Empty without members; its members have the chosen
protocol alone, and their sessions begin with the end of the loading. Offsets of a transaction
without a marker stay pending. Since 2.8 an event of an older leader epoch is ignored.

Responses to requests during the loading are not decided here but in
`GroupContext.validate_group_status`.

Source: loadGroupsAndOffsets, doLoadGroupsAndOffsets, removeGroupsForPartition of
GroupMetadataManager.scala (0.9, 2.8), onGroupLoaded and onGroupUnloaded of GroupCoordinator.scala.
"""

from dataclasses import dataclass, field, replace

from kcontrol.core import effects
from kcontrol.core.effects import Handler
from kcontrol.core.model import TopicPartition
from kcontrol.group import events as e
from kcontrol.group import group_machine as machine
from kcontrol.group import rebalance
from kcontrol.group.context import GroupContext, cache_group, cache_offsets, unloaded_name
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.group.group_machine import DEAD, PREPARING, STABLE
from kcontrol.group.group_strategies import JOIN_GROUP, SYNC_GROUP, UNLOADED, rule
from kcontrol.group.model import CommitRecordMetadataAndOffset, Group, GroupState, Member, Offsets
from kcontrol.group.offsets import after_transaction
from kcontrol.group.offsets_topic_records import decode, read_group_value, read_offset_value
from kcontrol.group.request_reactions import has_reaction


@dataclass(slots=True)
class Loaded:
    """The groups and offsets that have been read so far from the log of a partition."""

    # By group id: the group, or None for a tombstone.
    groups: dict[str, Group | None] = field(default_factory=dict)
    # By group id.
    offsets: dict[str, Offsets] = field(default_factory=dict)


# ---------------------------------------------------------------- election


def partition_elected(ctx: GroupContext, event: e.PartitionElected) -> Handler:
    """Read the log of the partition, then coordinate its groups.

    An event with an older leader epoch is ignored (2.8 on), and so is an event during the loading.

    Source: doLoadGroupsAndOffsets (0.9, 2.8).
    """
    partition = event.partition
    is_newer = yield from _is_newer_epoch(ctx, partition, event.coordinator_epoch)
    if not is_newer or partition in ctx.loading:
        return
    if ctx.rules.coordinator_epochs and partition in ctx.owned:
        return
    yield effects.UpdateContext("loading", {partition}, context="group")
    loaded = Loaded()
    try:
        yield from _read(ctx, partition, loaded)
    # A log record that cannot be read ends the reading: the broker coordinates the partition
    # without the groups of the log. Before 0.10.1 the offsets that were read before the error stay.
    except ValueError as error:
        yield effects.LogError(error)
        loaded = Loaded(offsets={} if ctx.rules.offsets_need_group else loaded.offsets)
    yield from _load_groups_and_offsets(ctx, loaded, event.timestamp_ms)
    yield effects.UpdateContext("owned", {partition}, context="group")
    yield effects.UpdateContext("loading", remove=(partition,), context="group")


def _is_newer_epoch(ctx: GroupContext, partition: int, epoch: int | None) -> Handler:
    """Return False if `epoch` is below the partition's last known coordinator epoch, else True.

    With True, store `epoch` as the last known epoch, unless `epoch` is None.

    Source: maybeUpdateCoordinatorEpoch of GroupMetadataManager.scala (2.8), KAFKA-12460.
    """
    # Before 2.8 Kafka does not check the epoch.
    if not ctx.rules.coordinator_epochs or epoch is None:
        return True
    if epoch < ctx.coordinator_epochs.get(partition, epoch):
        return False
    yield effects.UpdateContext("coordinator_epochs", {partition: epoch}, context="group")
    return True


def _read(ctx: GroupContext, partition: int, loaded: Loaded) -> Handler:
    """From offset 0 to the end. Raises ValueError for a log record that cannot be read."""
    position, retention_ms = 0, ctx.config.retention_ms if ctx.rules.expiry == "commit" else None
    # Each round trip reads the batches from the next offset on.
    while batches := (yield effects.ReadLog(TopicPartition(OFFSETS_TOPIC, partition), position)):
        for batch in batches:
            read_batch(loaded, batch, retention_ms)
            position = next_offset(batch)


def next_offset(batch: effects.LogBatch) -> int:
    """Return the offset after the last record of a batch, even if that record was cleaned away."""
    return max(batch.next_offset, batch.base_offset + max(len(batch.records), 1))


def read_batch(loaded: Loaded, batch: effects.LogBatch, retention_ms: int | None = None) -> None:
    """Add one batch to `loaded`; a record replaces an earlier record with the same key.

    If `retention_ms` is not None, an offset without an expiry time expires `retention_ms` after its
    commit. Raises ValueError for an unreadable record.

    Source: doLoadGroupsAndOffsets (2.8).
    """
    if batch.marker and batch.producer_id is not None:
        # A transaction's offsets stay pending until its marker: a commit marker commits them, an
        # abort marker drops them.
        is_commit = batch.marker == "commit"
        for group_id, held in loaded.offsets.items():
            after = after_transaction(held, batch.producer_id, is_commit=is_commit)
            loaded.offsets[group_id] = after
    for key, value in batch.records:
        if key is None:
            raise ValueError("a record of the offsets topic has no key")
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


def _with_offset(
    held: Offsets,
    tp: TopicPartition,
    value: bytes | None,
    batch: effects.LogBatch,
    retention_ms: int | None,
) -> Offsets:
    """Return `held`, a group's offsets, after the record (`tp`, `value`) of `batch`.

    The value None is a tombstone. If `retention_ms` is not None, an offset without an expiry time
    expires `retention_ms` after its commit.
    """
    entries = held.by_producer.get(batch.producer_id, {}) if batch.producer_id is not None else {}
    if value is None and batch.producer_id is None:
        return held.without_committed([tp])
    # In a transaction a tombstone removes the offset of this transaction only.
    if value is None and batch.producer_id is not None:
        left = {other: stored for other, stored in entries.items() if other != tp}
        return held.for_producer(batch.producer_id, left)
    assert value is not None
    offset = read_offset_value(value)
    if retention_ms is not None and offset.expire_timestamp is None:
        offset = offset._replace(expire_timestamp=offset.commit_timestamp + retention_ms)
    stored = CommitRecordMetadataAndOffset(offset, batch.base_offset)
    if batch.producer_id is None:
        return replace(held, committed={**held.committed, tp: stored})
    return held.for_producer(batch.producer_id, {**entries, tp: stored})


def _load_groups_and_offsets(ctx: GroupContext, loaded: Loaded, now_ms: int) -> Handler:
    """Put the loaded groups and offsets into the cache, and start the members' sessions.

    A group that the cache has already is left unchanged.

    Source: loadGroup of GroupMetadataManager.scala, onGroupLoaded (2.8).
    """
    for group_id, held in loaded.offsets.items():
        held = loaded.offsets[group_id] = held.without_empty()
        if group_id not in ctx.groups or not ctx.rules.offsets_need_group:
            yield cache_offsets(group_id, held)
    for group_id in dict.fromkeys([*loaded.groups, *loaded.offsets]):
        group = loaded.groups.get(group_id)
        if group is None and ctx.rules.offsets_need_group and loaded.offsets.get(group_id):
            # Offsets without a group record become an Empty group.
            group = machine.new_group(ctx, group_id, None, -1)
        if group is None or group_id in ctx.groups:
            continue
        if not ctx.rules.keeps_empty_groups:  # 0.9 keeps an empty type
            group = group.with_changes(state=STABLE, protocol_type=group.protocol_type or "")
        yield cache_group(group.with_changes(subscribed_topics=machine.subscribed_topics(group)))
        for member in group.members.values():
            yield rebalance.restart_session(ctx, group_id, member)
        has_limit = has_reaction(ctx.rules.release, "GROUP_MAX_SIZE_REACHED")
        if has_limit and len(group.members) > ctx.config.max_size:
            # A group with more members than group.max.size begins a rebalance.
            yield from rebalance.prepare_rebalance(
                ctx, group_id, now_ms, "group.max.size is exceeded"
            )


# ---------------------------------------------------------------- resignation


def partition_resigned(ctx: GroupContext, event: e.PartitionResigned) -> Handler:
    """Answer parked requests with NOT_COORDINATOR, and drop the partition's groups and offsets.

    Since 2.8 ignore the event if its coordinator epoch is older than the last known epoch.

    Source: removeGroupsForPartition of GroupMetadataManager.scala (0.9, 2.8).
    """
    if not (yield from _is_newer_epoch(ctx, event.partition, event.coordinator_epoch)):
        return
    yield effects.UpdateContext("owned", remove=(event.partition,), context="group")
    if ctx.rules.coordinator_epochs:
        yield effects.UpdateContext("loading", remove=(event.partition,), context="group")
    for group_id in [id for id in ctx.groups if ctx.partition_of(id) == event.partition]:
        yield from _unload(ctx, ctx.groups[group_id], event.timestamp_ms)
    gone = tuple(id for id in ctx.offsets if ctx.partition_of(id) == event.partition)
    if gone:
        yield effects.UpdateContext("offsets", remove=gone, context="group")


def _unload(ctx: GroupContext, group: Group, now_ms: int) -> Handler:
    """Answer the parked requests of one group, cancel its timers, and move it to Dead at `now_ms`.

    Source: onGroupUnloaded of GroupCoordinator.scala (0.9, 2.8).
    """
    source, name = group.state, unloaded_name(group.group_id, ctx.incarnation_of(group.group_id))
    for member in group.members.values():
        waiting = {JOIN_GROUP: member.awaiting_join, SYNC_GROUP: member.awaiting_sync}
        for parked, id in waiting.items():
            # The rule "group.unloaded", which a user of the lab can replace, returns
            # NOT_COORDINATOR or, for a JoinGroup that waits for the write of a static member's new
            # id, None: the response then follows the write, and until then the group stays in
            # `ctx.unloaded`.
            error = rule(ctx, UNLOADED)(ctx.name_of(source), parked) if id else None
            if id and error:
                refusal = rebalance.join_error_result(ctx, member.member_id, error)
                yield effects.Respond(id, refusal if parked == JOIN_GROUP else e.SyncResult(error))
    for member_id in (*group.members, *group.pending_members):
        yield effects.CancelTimer(rebalance.session_timer(group.group_id, member_id))
    for timer in (rebalance.join_timer(group.group_id), rebalance.sync_timer(group.group_id)):
        yield effects.CancelTimer(timer)
    if any(member.unwritten for member in group.members.values()):
        members = (_without_parked_request(source, m) for m in group.members.values())
        yield effects.UpdateContext(
            "unloaded", {name: group.with_members(members)}, context="group"
        )
    yield from machine.transition_to(
        ctx, group, DEAD, now_ms, "another broker coordinates", leaves=True
    )


def _without_parked_request(source: GroupState, member: Member) -> Member:
    """The unloading has refused its JoinGroup (PreparingRebalance) or its SyncGroup."""
    if source is PREPARING:
        return replace(member, awaiting_join=None)
    # In a Stable group a JoinGroup stays parked until the record of a static member's new id is
    # written.
    return replace(member, awaiting_sync=None)
