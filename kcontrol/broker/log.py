"""The log of one replica as an immutable value: records, leader epochs, high watermark, changes.

Records, epochs and the checkpointed high watermark survive the process. CHANGES has the function
for each kind of change. Read next: `replication.py`.

Source: Log.scala, LeaderEpochFileCache.scala, Replica.scala (2.8).
"""

# The rule `truncate_to` (`core/controller_rules.py`) says by what the followers of a release find
# where to truncate: "high_watermark", "leader_epoch" or "common_epoch". DIVERGENCE_CHECKS has, for
# each value, the function by which a leader finds that a follower's log diverges.
from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from kcontrol.broker.log_segments import Compaction, Segment, StoredRecord, segments_after_append
from kcontrol.core.controller_rules import Truncation
from kcontrol.core.model import NO_EPOCH, NO_LEADER, EpochEnd

UNKNOWN = -1


class EpochStart(NamedTuple):
    """A leader epoch, and the offset at which it begins."""

    leader_epoch: int
    start_offset: int


Epochs = tuple[EpochStart, ...]


Records = tuple[StoredRecord, ...]


class DelayedProduce(NamedTuple):
    """A Produce request whose response waits until the high watermark has passed its record.

    `offset` is the offset of this record.
    """

    offset: int
    correlation_id: str


class DelayedAppend(NamedTuple):
    """An append of the group coordinator that waits for the high watermark to pass `offset`."""

    # The offset of the last appended record.
    offset: int
    # The event that is queued after the wait.
    event: Any
    # The id of the append's journal record, the cause of `event`.
    record: Any


class ReplicaLog(NamedTuple):
    """The log of one replica: its records, and what a leader or a follower knows about this log."""

    # The log of a compacted topic may have gaps: the cleaner has removed records, and the records
    # that stay keep their offsets.
    records: tuple[StoredRecord, ...] = ()
    # The leader epochs of the log, oldest first.
    epochs: tuple[EpochStart, ...] = ()
    # The high watermark on disk.
    checkpoint: int = 0
    # The high watermark in memory.
    high_watermark: int = 0
    # The broker id of the partition's leader, -1 without a leader.
    leader: int = NO_LEADER
    # The latest leader epoch from LeaderAndIsr, -1 if the broker has none.
    leader_epoch: int = NO_EPOCH
    # Pairs of a follower and its log end offset, as far as this leader knows it.
    followers: tuple[tuple[int, int], ...] = ()
    # Produce requests, and appends of the group coordinator, that wait for the high watermark.
    waiting: tuple[DelayedProduce | DelayedAppend, ...] = ()
    # True while a follower does not know where its log diverges from the leader's (Kafka's fetch
    # state).
    truncating: bool = False
    # The setting of the topic, or of the broker if the topic has none; None before the settings are
    # read.
    min_insync_replicas: int | None = None
    # Oldest first; the last segment is the active segment.
    segments: tuple[Segment, ...] = (Segment(0),)
    # The offset at which the part begins that the cleaner has not cleaned yet.
    first_dirty_offset: int = 0
    # Pairs of a batch's first offset and the time from which its tombstones may be removed (3.1
    # on).
    delete_horizons: tuple[tuple[int, int], ...] = ()
    # The log end offset if the cleaner has removed the record directly before this offset, else 0.
    empty_until: int = 0
    # The topic's settings for segments and cleaner. None for a topic without `segment.bytes`: its
    # log has one segment, which the cleaner does not clean.
    compaction: Compaction | None = None

    @property
    def log_end_offset(self) -> int:
        """Return the offset of the next record."""
        return max(_end_of(self.records), self.empty_until)

    def since(self, offset: int) -> Records:
        """Return the records from an offset on."""
        return self.records[_position(self.records, offset) :]

    def below(self, offset: int) -> Records:
        """Return the log's records with a smaller offset than `offset`."""
        return self.records[: _position(self.records, offset)]

    @property
    def latest_epoch(self) -> int:
        return self.epochs[-1].leader_epoch if self.epochs else NO_EPOCH

    def follower_end_offset(self, follower: int) -> int:
        """Return the log end offset of a follower, -1 before its first fetch."""
        return dict(self.followers).get(follower, UNKNOWN)

    def end_offset_for(self, leader_epoch: int) -> EpochEnd:
        """Return the largest epoch of the log up to `leader_epoch`, and the end of that epoch.

        Return -1 for both if `leader_epoch` is later than all epochs of the log.

        Source: LeaderEpochFileCache.endOffsetFor (2.0 on).
        """
        if leader_epoch == self.latest_epoch:
            return EpochEnd(leader_epoch, self.log_end_offset)
        later = [entry for entry in self.epochs if entry.leader_epoch > leader_epoch]
        if not later:
            return EpochEnd(NO_EPOCH, UNKNOWN)
        earlier = self.epochs[: -len(later)]
        # Before the first epoch of the log: `leader_epoch`, with the start of the first epoch.
        known = earlier[-1].leader_epoch if earlier else leader_epoch
        return EpochEnd(known, later[0].start_offset)

    def without(self, other_log: ReplicaLog) -> Records:
        """Return the records of this log at offsets at which `other_log` has no record."""
        kept = {record.offset for record in other_log.records}
        return tuple(record for record in self.records if record.offset not in kept)

    def without_times(self) -> ReplicaLog:
        """For comparisons: 0 in place of each time."""
        segments = tuple(segment._replace(modified_ms=0) for segment in self.segments)
        horizons = tuple((base_offset, 0) for base_offset, _ in self.delete_horizons)
        return self._replace(segments=segments, delete_horizons=horizons)

    def after_restart(self) -> ReplicaLog:
        """What the disk keeps; the high watermark becomes that of the last checkpoint."""
        high_watermark = min(self.checkpoint, self.log_end_offset)
        on_disk = ReplicaLog(self.records, self.epochs, self.checkpoint, high_watermark)
        return on_disk._replace(**{name: getattr(self, name) for name in OF_SEGMENTS})


OF_SEGMENTS = ("segments", "first_dirty_offset", "delete_horizons", "empty_until")
"""The fields of a log on disk that only the log of a compacted topic changes."""


def _position(records: Records, offset: int) -> int:
    """Return how many of `records`, sorted by offset, have a smaller offset than `offset`."""
    return bisect_left(records, offset, key=attrgetter("offset"))


def _end_of(records: Records) -> int:
    return records[-1].offset + 1 if records else 0


# ---------------------------------------------------------------- changes


class AppendRecords(NamedTuple):
    """Append records to the log."""

    records: Records
    # The produce request or the coordinator's append that waits until the high watermark has passed
    # the records; None if nothing waits.
    waiting: DelayedProduce | DelayedAppend | None = None
    # The time of the append. A handler leaves it 0; `driver/log_changes.py` sets it.
    now_ms: int = 0


class Truncate(NamedTuple):
    """Remove the records from `offset` on, and the leader epochs that begin there or later."""

    offset: int
    # How the follower found the offset, such as "leader_epoch" (the release's value of the rule
    # `truncate_to`); "" if a stopped broker's machine lost power before the records were flushed.
    rule: Truncation | Literal[""]


class UpdateHighWatermark(NamedTuple):
    # The new high watermark. The log's waiting requests with a lower offset are removed.
    offset: int


class BecomeLeaderOrFollower(NamedTuple):
    """Make this replica the leader if `leads`, else a follower of `leader` (-1: there is none)."""

    leader: int
    leader_epoch: int
    leads: bool = False


class UpdateFollowerState(NamedTuple):
    """Store in the leader's log the log end offset of the follower on broker `broker_id`."""

    broker_id: int
    offset: int


class ExpireDelayedAppend(NamedTuple):
    """Remove from the log's waiting requests the append whose last record has this offset."""

    offset: int


class UpdateConfig(NamedTuple):
    """Store `min.insync.replicas` and the settings for segments and log cleaner in the ReplicaLog.

    For a topic without `segment.bytes`, `compaction` is None: the log has one segment and no
    cleaner.
    """

    min_insync_replicas: int
    compaction: Compaction | None = None


class ReplaceSegments(NamedTuple):
    """Replace the records and segments of a log by cleaned ones; the log end offset stays.

    The fields have the new values of the fields of `ReplicaLog` with these names.
    """

    records: Records
    segments: tuple[Segment, ...]
    first_dirty_offset: int
    delete_horizons: tuple[tuple[int, int], ...]


class CheckpointHighWatermark(NamedTuple):
    """Write the high watermark to disk."""


class DeleteLog(NamedTuple):
    """Delete the log from disk, with all records."""


Change = (
    AppendRecords | Truncate | UpdateHighWatermark | BecomeLeaderOrFollower | UpdateFollowerState
    | ExpireDelayedAppend | UpdateConfig | ReplaceSegments | CheckpointHighWatermark | DeleteLog
)  # fmt: skip


def apply(log: ReplicaLog, change: Change) -> ReplicaLog:
    """Return the log after a change; `log` is not modified. After DeleteLog it is an empty log."""
    return CHANGES[type(change)](log, change)


def _append(log: ReplicaLog, change: AppendRecords) -> ReplicaLog:
    epochs = log.epochs
    for record in change.records:
        epochs = _assign(epochs, record.leader_epoch, record.offset)
    waiting = log.waiting + ((change.waiting,) if change.waiting else ())
    segments = log.segments
    if log.compaction is not None and change.records:
        active = log.since(segments[-1].base_offset)
        appended = change.records, log.compaction, change.now_ms
        segments = segments_after_append(segments, active, *appended)
    records = log.records + change.records
    appended_to = log._replace(records=records, segments=segments, empty_until=0)
    return appended_to._replace(epochs=epochs, waiting=waiting, truncating=False)


def _assign(epochs: Epochs, leader_epoch: int, start_offset: int) -> Epochs:
    """Return `epochs` with `leader_epoch` as the latest epoch, which begins at `start_offset`.

    Nothing changes if `leader_epoch` is the latest epoch already. Else only entries with a lower
    epoch and a lower start offset stay.

    Source: LeaderEpochFileCache.assign (2.8).
    """
    if epochs and epochs[-1].leader_epoch == leader_epoch:
        return epochs
    earlier = (entry for entry in epochs if entry.leader_epoch < leader_epoch)
    kept = (entry for entry in earlier if entry.start_offset < start_offset)
    return (*kept, EpochStart(leader_epoch, start_offset))


def _truncate(log: ReplicaLog, change: Truncate) -> ReplicaLog:
    """Return the log without the records from `change.offset` on.

    The high watermark becomes at most this offset.

    Source: Log.truncateTo (2.8).
    """
    end, records = min(change.offset, log.log_end_offset), log.below(change.offset)
    epochs = tuple(entry for entry in log.epochs if entry.start_offset < end)
    # With this rule the response to the next fetch may truncate the log further.
    again = log.truncating and change.rule == "common_epoch"
    truncated = log._replace(records=records, epochs=epochs, truncating=again)
    truncated = truncated._replace(high_watermark=min(log.high_watermark, end))
    segments = tuple(s for s in log.segments if s.base_offset <= end)
    return truncated._replace(
        segments=segments,
        # The cleaner begins at the active segment at the latest (`maybeTruncateCheckpoint`).
        first_dirty_offset=min(log.first_dirty_offset, segments[-1].base_offset),
        delete_horizons=tuple(entry for entry in log.delete_horizons if entry[0] < end),
        empty_until=end if end > _end_of(records) else 0,
    )


def _replace_segments(log: ReplicaLog, change: ReplaceSegments) -> ReplicaLog:
    """Return the log with the cleaned records and segments. Source: Log.replaceSegments (2.8)."""
    end = log.log_end_offset
    empty_until = end if end > _end_of(change.records) else 0
    return log._replace(**change._asdict(), empty_until=empty_until)


def _update_high_watermark(log: ReplicaLog, change: UpdateHighWatermark) -> ReplicaLog:
    waiting = tuple(w for w in log.waiting if w.offset >= change.offset)
    return log._replace(high_watermark=change.offset, waiting=waiting)


def _become_leader_or_follower(log: ReplicaLog, change: BecomeLeaderOrFollower) -> ReplicaLog:
    """Return the log as a leader's or as a follower's.

    A new leader knows no offsets of followers. A follower drops the requests that wait for the high
    watermark, and must truncate its log (`truncating`) if there is a leader.

    Source: Partition.makeLeader (2.8).
    """
    now = log._replace(leader=change.leader, leader_epoch=change.leader_epoch)
    if not change.leads:
        return now._replace(followers=(), waiting=(), truncating=change.leader != NO_LEADER)
    epochs = _assign(log.epochs, change.leader_epoch, log.log_end_offset)
    followers = log.followers if log.leader == change.leader else ()
    return now._replace(epochs=epochs, followers=followers, truncating=False)


def _update_follower_state(log: ReplicaLog, change: UpdateFollowerState) -> ReplicaLog:
    followers = {**dict(log.followers), change.broker_id: change.offset}
    return log._replace(followers=tuple(sorted(followers.items())))


def _expire_delayed_append(log: ReplicaLog, change: ExpireDelayedAppend) -> ReplicaLog:
    return log._replace(waiting=tuple(w for w in log.waiting if w.offset != change.offset))


CHANGES: dict[type, Callable[..., ReplicaLog]] = {
    AppendRecords: _append,
    Truncate: _truncate,
    UpdateHighWatermark: _update_high_watermark,
    BecomeLeaderOrFollower: _become_leader_or_follower,
    UpdateFollowerState: _update_follower_state,
    ExpireDelayedAppend: _expire_delayed_append,
    UpdateConfig: lambda log, change: log._replace(**change._asdict()),
    ReplaceSegments: _replace_segments,
    CheckpointHighWatermark: lambda log, change: log._replace(checkpoint=log.high_watermark),
    DeleteLog: lambda log, change: ReplicaLog(),
}


# ---------------------------------------------------------------- diverging logs


def _by_end_offset(log: ReplicaLog, offset: int, leader_epoch: int) -> EpochEnd | None:
    """Return the end of the leader's `log` if the fetch offset `offset` is larger, else None.

    The result has the epoch -1; the argument `leader_epoch` is ignored.
    Source: OffsetOutOfRange, 0.8 on.
    """
    return EpochEnd(NO_EPOCH, log.log_end_offset) if offset > log.log_end_offset else None


def _by_epoch(log: ReplicaLog, offset: int, leader_epoch: int) -> EpochEnd | None:
    """Return where `leader_epoch` ends in the leader's log, None if the logs do not diverge.

    `offset` and `leader_epoch` are the follower's log end offset and latest epoch. The epoch in the
    result is always -1.

    Source: OffsetForLeaderEpoch version 0 (KIP-101).
    """
    # The follower has sent its epoch in an earlier fetch.
    if leader_epoch == NO_EPOCH:
        return _by_end_offset(log, offset, leader_epoch)
    # An epoch that the leader lacks ends at the start of the leader's next epoch, or at -1
    # (unknown).
    end = log.end_offset_for(leader_epoch).end_offset
    return EpochEnd(NO_EPOCH, end) if end < offset else None


def _by_common_epoch(log: ReplicaLog, offset: int, leader_epoch: int) -> EpochEnd | None:
    """Return the leader's largest epoch up to `leader_epoch` and its end; None if the logs agree.

    `log` is the leader's; `offset` and `leader_epoch` are the follower's log end offset and latest
    epoch.

    Source: OffsetForLeaderEpoch (2.0 on), the diverging epoch of Fetch (2.7 on).
    """
    end = log.end_offset_for(leader_epoch)
    # If the follower lacks the returned epoch, its next fetch can find another divergence
    # (KIP-279).
    diverges = end.leader_epoch < leader_epoch or end.end_offset < offset
    # `leader_epoch` is -1 for a follower without an epoch.
    return end if leader_epoch != NO_EPOCH and diverges else None


DIVERGENCE_CHECKS: dict[Truncation, Callable[[ReplicaLog, int, int], EpochEnd | None]] = {
    # truncate_to      end of the common log, for a follower with this log end and latest epoch
    "high_watermark": _by_end_offset,
    "leader_epoch":   _by_epoch,
    "common_epoch":   _by_common_epoch,
}  # fmt: skip


def truncation_offset(log: ReplicaLog, diverging_epoch: EpochEnd) -> int:
    """Return the offset from which on the follower with this log removes its records.

    `diverging_epoch` is from the leader's response: an epoch and its end in the leader's log, each
    -1 if unknown.

    Source: AbstractFetcherThread.getOffsetTruncationState (2.8).
    """
    if diverging_epoch.end_offset == UNKNOWN:
        return log.high_watermark
    own = log.end_offset_for(diverging_epoch.leader_epoch)
    # No epoch, or an epoch later than all epochs of this log: the end in the response.
    if diverging_epoch.leader_epoch == NO_EPOCH or own.end_offset == UNKNOWN:
        return min(diverging_epoch.end_offset, log.log_end_offset)
    # An epoch that this log lacks: the end of this log's largest epoch below it. The end in the
    # response is used only for an epoch that both logs have, or before all epochs of this log.
    if own.leader_epoch != diverging_epoch.leader_epoch:
        return min(own.end_offset, log.log_end_offset)
    return min(own.end_offset, diverging_epoch.end_offset, log.log_end_offset)
