"""The log of one replica as an immutable value: records, leader epochs, high watermark, changes.

Records, leader epochs and the checkpointed high watermark are on disk and survive the process; the
rest is in memory. CHANGES has the function that performs each kind of change. The rule
`truncate_to` (of `core/controller_rules.py`) says by what the followers of a release find where to
truncate: "high_watermark", "leader_epoch" or "common_epoch". DIVERGENCE_CHECKS has, for each of
these values, the function by which a leader finds that a follower's log diverges.

Read next: `replication.py`, which decides on changes, and `driver/log_changes.py`, which performs
them. Source: Log.scala, LeaderEpochFileCache.scala, Replica.scala (2.8).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from kcontrol.broker.log_segments import (
    Compaction,
    Segment,
    StoredRecord,
    segments_after_append,
)
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
    """An append of the group coordinator that waits until the high watermark has passed `offset`.

    `offset` is the offset of the last appended record. After the wait `event` is queued. `record`
    is the id that the append has in the journal, the run's list of steps: the cause of `event`.
    """

    offset: int
    event: Any
    record: Any


class ReplicaLog(NamedTuple):
    """The log of one replica.

    `checkpoint` is the high watermark on disk. `leader` is the broker id of the partition's leader,
    -1 without a leader. `followers` has pairs of a follower and its log end offset, as far as this
    leader knows it. `waiting` has the requests without a response. `truncating` says that a
    follower does not know yet where its log diverges from the leader's (Kafka's fetch state).
    `min_insync_replicas` is the setting of the topic, or of the broker if the topic has none, and
    None before the broker has read the topic's settings.

    A log of a compacted topic may have gaps: the cleaner has removed records, those that stay keep
    their offsets. `first_dirty_offset` is where the part begins that the cleaner has not seen yet.
    `delete_horizons` has pairs of a batch's first offset and the time at which its tombstones may
    go (3.1 on). `empty_until` is the log end offset if the record before it is missing, else 0.
    `compaction` has the topic's settings for segments and the cleaner; it is None for a topic
    without `segment.bytes`, whose log is one segment.
    """

    records: tuple[StoredRecord, ...] = ()
    epochs: tuple[EpochStart, ...] = ()
    checkpoint: int = 0
    high_watermark: int = 0
    leader: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    followers: tuple[tuple[int, int], ...] = ()
    waiting: tuple[DelayedProduce | DelayedAppend, ...] = ()
    truncating: bool = False
    min_insync_replicas: int | None = None
    segments: tuple[Segment, ...] = (Segment(0),)
    first_dirty_offset: int = 0
    delete_horizons: tuple[tuple[int, int], ...] = ()
    empty_until: int = 0
    compaction: Compaction | None = None

    @property
    def log_end_offset(self) -> int:
        """Return the offset of the next record."""
        return max(_end_of(self.records), self.empty_until)

    def since(self, offset: int) -> Records:
        """Return the records from an offset on."""
        return self.records[_position(self.records, offset) :]

    def below(self, offset: int) -> Records:
        """Return the records before an offset."""
        return self.records[: _position(self.records, offset)]

    @property
    def latest_epoch(self) -> int:
        return self.epochs[-1].leader_epoch if self.epochs else NO_EPOCH

    def follower_end_offset(self, follower: int) -> int:
        """Return the log end offset of a follower, -1 before its first fetch."""
        return dict(self.followers).get(follower, UNKNOWN)

    def end_offset_for(self, leader_epoch: int) -> EpochEnd:
        """Return the largest epoch of the log up to `leader_epoch`, and the end of that epoch.

        If all epochs of the log are later, return `leader_epoch` and the start of the log's first
        epoch. If `leader_epoch` is later than all epochs of the log, return -1 for both. Source:
        LeaderEpochFileCache.endOffsetFor (2.0 on).
        """
        if leader_epoch == self.latest_epoch:
            return EpochEnd(leader_epoch, self.log_end_offset)
        later = [entry for entry in self.epochs if entry.leader_epoch > leader_epoch]
        if not later:
            return EpochEnd(NO_EPOCH, UNKNOWN)
        earlier = self.epochs[: -len(later)]
        known = earlier[-1].leader_epoch if earlier else leader_epoch
        return EpochEnd(known, later[0].start_offset)

    def without(self, other: ReplicaLog) -> Records:
        """Return the records of this log at offsets at which `other` has no record."""
        kept = {record.offset for record in other.records}
        return tuple(record for record in self.records if record.offset not in kept)

    def without_times(self) -> ReplicaLog:
        """Return the log with 0 for the times of its segments and tombstones, to compare runs."""
        segments = tuple(segment._replace(modified_ms=0) for segment in self.segments)
        horizons = tuple((base_offset, 0) for base_offset, _ in self.delete_horizons)
        return self._replace(segments=segments, delete_horizons=horizons)

    def after_restart(self) -> ReplicaLog:
        """Return the log after a restart: the part on disk, and the checkpointed high watermark."""
        high_watermark = min(self.checkpoint, self.log_end_offset)
        on_disk = ReplicaLog(self.records, self.epochs, self.checkpoint, high_watermark)
        return on_disk._replace(**{name: getattr(self, name) for name in OF_SEGMENTS})


OF_SEGMENTS = ("segments", "first_dirty_offset", "delete_horizons", "empty_until")
"""The fields of a log on disk that only the log of a compacted topic changes."""


def _position(records: Records, offset: int) -> int:
    """Return how many records are before an offset."""
    return bisect_left(records, offset, key=attrgetter("offset"))


def _end_of(records: Records) -> int:
    return records[-1].offset + 1 if records else 0


# ---------------------------------------------------------------- changes


class AppendRecords(NamedTuple):
    """Append records; `waiting` is the request that waits for the high watermark, None if none.

    `now_ms` is the time of the append, which the driver adds.
    """

    records: Records
    waiting: DelayedProduce | DelayedAppend | None = None
    now_ms: int = 0


class Truncate(NamedTuple):
    """Remove the records from `offset` on, and the leader epochs that begin there or later.

    `rule` is the value of the rule `truncate_to` by which the follower found the offset, or "" if
    a stopped broker's machine lost power before the records were flushed.
    """

    offset: int
    rule: Truncation | Literal[""]


class UpdateHighWatermark(NamedTuple):
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
    """Remove the append whose last record has this offset from the requests that wait."""

    offset: int


class UpdateConfig(NamedTuple):
    """Store the topic's `min.insync.replicas`, and its settings for segments and the log cleaner.

    `compaction` has the latter, and is None for a topic without `segment.bytes`.
    """

    min_insync_replicas: int
    compaction: Compaction | None = None


class ReplaceSegments(NamedTuple):
    """Put cleaned records and segments in place of those of the log; its end offset stays.

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
    AppendRecords
    | Truncate
    | UpdateHighWatermark
    | BecomeLeaderOrFollower
    | UpdateFollowerState
    | ExpireDelayedAppend
    | UpdateConfig
    | ReplaceSegments
    | CheckpointHighWatermark
    | DeleteLog
)


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

    Epochs of `epochs` that are later, or that have no record before `start_offset`, are dropped. If
    `leader_epoch` is the latest epoch of `epochs` already, return `epochs` unchanged.
    Source: LeaderEpochFileCache.assign (2.8).
    """
    if epochs and epochs[-1].leader_epoch == leader_epoch:
        return epochs
    earlier = (entry for entry in epochs if entry.leader_epoch < leader_epoch)
    kept = (entry for entry in earlier if entry.start_offset < start_offset)
    return (*kept, EpochStart(leader_epoch, start_offset))


def _truncate(log: ReplicaLog, change: Truncate) -> ReplicaLog:
    """Return the log without the records from `change.offset` on.

    Its high watermark becomes at most this offset. The segment with this offset becomes the active
    one, and the cleaner begins there at the latest (`maybeTruncateCheckpoint`). The log is no
    longer `truncating`, unless `change.rule` is "common_epoch": then the response to the next fetch
    may truncate it further. Source: Log.truncateTo (2.8).
    """
    end, records = min(change.offset, log.log_end_offset), log.below(change.offset)
    epochs = tuple(entry for entry in log.epochs if entry.start_offset < end)
    again = log.truncating and change.rule == "common_epoch"
    truncated = log._replace(records=records, epochs=epochs, truncating=again)
    truncated = truncated._replace(high_watermark=min(log.high_watermark, end))
    segments = tuple(s for s in log.segments if s.base_offset <= end)
    return truncated._replace(
        segments=segments,
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

    A leader that was leader before keeps the offsets of its followers; a new leader knows none. A
    follower drops the requests in `waiting`. If the partition has a leader, the follower's log is
    `truncating`: the follower does not know yet where its log diverges from the leader's. Source:
    Partition.makeLeader (2.8).
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
    """Return the end of the leader's log if the follower fetches from beyond it, else None.

    `offset` is the fetch offset. `leader_epoch` is ignored, and the returned epoch is -1.
    Source: OffsetOutOfRange, 0.8 on.
    """
    return EpochEnd(NO_EPOCH, log.log_end_offset) if offset > log.log_end_offset else None


def _by_epoch(log: ReplicaLog, offset: int, leader_epoch: int) -> EpochEnd | None:
    """Return where the epoch `leader_epoch` ends in the leader's log, None if that is not needed.

    `offset` and `leader_epoch` are the follower's log end offset and latest epoch. The end is
    needed if it is below `offset`: the follower's log diverges. An epoch that the leader lacks ends
    at the start of the leader's next epoch, or at -1 (unknown) if there is none. If `leader_epoch`
    is -1 (the follower has sent its epoch in an earlier fetch), return the end of the leader's log
    if `offset` is beyond it, else None. Every returned epoch is -1. Source: OffsetForLeaderEpoch
    version 0 (KIP-101).
    """
    if leader_epoch == NO_EPOCH:
        return _by_end_offset(log, offset, leader_epoch)
    end = log.end_offset_for(leader_epoch).end_offset
    return EpochEnd(NO_EPOCH, end) if end < offset else None


def _by_common_epoch(log: ReplicaLog, offset: int, leader_epoch: int) -> EpochEnd | None:
    """Return the leader's largest epoch up to `leader_epoch`, and its end, if the logs diverge.

    `offset` and `leader_epoch` are the follower's log end offset and latest epoch. The logs diverge
    if the leader does not have that epoch, or if the epoch ends before `offset`. Return None if the
    logs do not diverge, and for `leader_epoch` -1. If the follower does not have the returned
    epoch, its next fetch can find another divergence (KIP-279). Source: OffsetForLeaderEpoch (2.0
    on), the diverging epoch of Fetch (2.7 on).
    """
    end = log.end_offset_for(leader_epoch)
    diverges = end.leader_epoch < leader_epoch or end.end_offset < offset
    return end if leader_epoch != NO_EPOCH and diverges else None


DIVERGENCE_CHECKS: dict[Truncation, Callable[[ReplicaLog, int, int], EpochEnd | None]] = {
    # truncate_to      end of the common log, for a follower with this log end and latest epoch
    "high_watermark": _by_end_offset,
    "leader_epoch":   _by_epoch,
    "common_epoch":   _by_common_epoch,
}  # fmt: skip


def truncation_offset(log: ReplicaLog, diverging: EpochEnd) -> int:
    """Return the offset from which on the follower with this log removes its records.

    `diverging` is the leader's response: an epoch, and its end in the leader's log.

    * The end is unknown (-1): return the follower's high watermark.
    * No epoch (-1), or an epoch later than all epochs of this log: return the end in the response.
    * An epoch that this log has: return the lower of its ends in both logs.
    * An epoch before all epochs of this log: return the lower of the end in the response and the
      start of this log's first epoch.
    * Another epoch: return the end of this log's largest epoch below it.

    The returned offset is at most the end of this log.
    Source: AbstractFetcherThread.getOffsetTruncationState (2.8).
    """
    if diverging.end_offset == UNKNOWN:
        return log.high_watermark
    own = log.end_offset_for(diverging.leader_epoch)
    if diverging.leader_epoch == NO_EPOCH or own.end_offset == UNKNOWN:
        return min(diverging.end_offset, log.log_end_offset)
    if own.leader_epoch != diverging.leader_epoch:
        return min(own.end_offset, log.log_end_offset)
    return min(own.end_offset, diverging.end_offset, log.log_end_offset)
