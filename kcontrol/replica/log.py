"""The log of one replica, as a value: its records, its leader epochs, its high watermark, and how each of them changes.

Records, leader epochs and the checkpointed high watermark are on disk and outlive the process; the rest is in memory.
Source: Log.scala, LeaderEpochFileCache.scala, Replica.scala (2.8).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kcontrol.model import NO_EPOCH, NO_LEADER, EpochEnd, LogRecord

UNKNOWN = -1


class EpochStart(NamedTuple):
    """A leader epoch, and the offset at which it begins."""

    leader_epoch: int
    start_offset: int


class Waiting(NamedTuple):
    """A producer who gets his answer when the high watermark has passed the offset of his record."""

    offset: int
    correlation_id: str


class ReplicaLog(NamedTuple):
    """`leader` is whom this replica follows, or its own broker; `followers` is how far a leader knows each of them to be.

    `truncating` says that a follower has not yet found out where its log and its leader's part (Kafka's fetch state).
    `min_insync_replicas` is the topic's setting or else the broker's, None before the broker has read the topic's settings.
    """

    records: tuple[LogRecord, ...] = ()
    epochs: tuple[EpochStart, ...] = ()
    checkpoint: int = 0
    high_watermark: int = 0
    leader: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    followers: tuple[tuple[int, int], ...] = ()
    waiting: tuple[Waiting, ...] = ()
    truncating: bool = False
    min_insync_replicas: int | None = None

    @property
    def end_offset(self) -> int:
        """The offset that the next record will get."""
        return len(self.records)

    @property
    def latest_epoch(self) -> int:
        return self.epochs[-1].leader_epoch if self.epochs else NO_EPOCH

    def end_of(self, follower: int) -> int:
        """The log end offset of a follower as its leader knows it, -1 if it has not asked yet."""
        return dict(self.followers).get(follower, UNKNOWN)

    def end_of_epoch(self, leader_epoch: int) -> EpochEnd:
        """The largest epoch up to this one that the log knows, and where it ends; the epoch asked for if all are later.

        Source: LeaderEpochFileCache.endOffsetFor (2.0 on).
        """
        if leader_epoch == self.latest_epoch:
            return EpochEnd(leader_epoch, self.end_offset)
        later = [entry for entry in self.epochs if entry.leader_epoch > leader_epoch]
        if not later:
            return EpochEnd(NO_EPOCH, UNKNOWN)
        earlier = self.epochs[: -len(later)]
        return EpochEnd(earlier[-1].leader_epoch if earlier else leader_epoch, later[0].start_offset)

    def after_a_stop(self) -> ReplicaLog:
        """What a process finds when it starts: the disk's part, and the high watermark as of the last checkpoint."""
        high_watermark = min(self.checkpoint, self.end_offset)
        return ReplicaLog(self.records, self.epochs, self.checkpoint, high_watermark)


# ---------------------------------------------------------------- changes


class Append(NamedTuple):
    """Records at the end of the log; `waiting` names the producer's request that is to be answered later."""

    records: tuple[LogRecord, ...]
    waiting: str = ""


class Truncate(NamedTuple):
    """The log ends at `offset` at the latest, and forgets leader epochs that begin at its end. `rule` says who decided so."""

    offset: int
    rule: str


class MoveHighWatermark(NamedTuple):
    offset: int


class TakeRole(NamedTuple):
    """From now on this replica leads, or follows `leader`."""

    leader: int
    leader_epoch: int
    leads: bool = False


class NoteFollower(NamedTuple):
    """The leader has heard that a follower has everything before `offset`."""

    broker_id: int
    offset: int


class Configure(NamedTuple):
    """The broker has read the settings of the topic."""

    min_insync_replicas: int


class Checkpoint(NamedTuple):
    """The high watermark is written to disk."""


class Delete(NamedTuple):
    """The log is taken from the disk, with everything in it."""


Change = Append | Truncate | MoveHighWatermark | TakeRole | NoteFollower | Configure | Checkpoint | Delete


def apply(log: ReplicaLog, change: Change) -> ReplicaLog:
    """The log after a change."""
    return CHANGES[type(change)](log, change)


def _append(log: ReplicaLog, change: Append) -> ReplicaLog:
    epochs = log.epochs
    for record in change.records:
        epochs = _assign(epochs, record.leader_epoch, record.offset)
    asked = (Waiting(change.records[-1].offset, change.waiting),) if change.waiting else ()
    return log._replace(records=log.records + change.records, epochs=epochs, waiting=log.waiting + asked, truncating=False)


def _assign(epochs: tuple[EpochStart, ...], leader_epoch: int, start_offset: int) -> tuple[EpochStart, ...]:
    """An epoch that begins later than all others; those without a record give way. Source: LeaderEpochFileCache.assign (2.8)."""
    if epochs and epochs[-1].leader_epoch == leader_epoch:
        return epochs
    kept = tuple(e for e in epochs if e.leader_epoch < leader_epoch and e.start_offset < start_offset)
    return (*kept, EpochStart(leader_epoch, start_offset))


def _truncate(log: ReplicaLog, change: Truncate) -> ReplicaLog:
    """By the common epoch there may be another round. Source: Log.truncateTo (2.8)."""
    records = log.records[: change.offset]
    epochs = tuple(entry for entry in log.epochs if entry.start_offset < len(records))
    high_watermark, again = min(log.high_watermark, len(records)), log.truncating and change.rule == "common_epoch"
    return log._replace(records=records, epochs=epochs, high_watermark=high_watermark, truncating=again)


def _move(log: ReplicaLog, change: MoveHighWatermark) -> ReplicaLog:
    waiting = tuple(w for w in log.waiting if w.offset >= change.offset)
    return log._replace(high_watermark=change.offset, waiting=waiting)


def _take_role(log: ReplicaLog, change: TakeRole) -> ReplicaLog:
    """A new leader knows nothing of its followers yet, and notes where its epoch begins. Source: Partition.makeLeader (2.8)."""
    now = log._replace(leader=change.leader, leader_epoch=change.leader_epoch)
    if not change.leads:
        return now._replace(followers=(), waiting=(), truncating=change.leader != NO_LEADER)
    epochs = _assign(log.epochs, change.leader_epoch, log.end_offset)
    followers = log.followers if log.leader == change.leader else ()
    return now._replace(epochs=epochs, followers=followers, truncating=False)


def _note(log: ReplicaLog, change: NoteFollower) -> ReplicaLog:
    return log._replace(followers=tuple(sorted({**dict(log.followers), change.broker_id: change.offset}.items())))


CHANGES: dict[type, Callable[..., ReplicaLog]] = {
    Append: _append,
    Truncate: _truncate,
    MoveHighWatermark: _move,
    TakeRole: _take_role,
    NoteFollower: _note,
    Configure: lambda log, change: log._replace(min_insync_replicas=change.min_insync_replicas),
    Checkpoint: lambda log, change: log._replace(checkpoint=log.high_watermark),
    Delete: lambda log, change: ReplicaLog(),
}


# ---------------------------------------------------------------- where two logs part


def _beyond_the_end(log: ReplicaLog, offset: int, leader_epoch: int) -> EpochEnd | None:
    """Epochs are not looked at: only a follower that asks beyond the leader's end is told. Source: OffsetOutOfRange, 0.8 on."""
    return EpochEnd(NO_EPOCH, log.end_offset) if offset > log.end_offset else None


def _by_epoch(log: ReplicaLog, offset: int, leader_epoch: int) -> EpochEnd | None:
    """The end of the follower's latest epoch, or the start of a later one; asked once by whoever becomes a follower.

    Source: OffsetForLeaderEpoch version 0 (KIP-101).
    """
    if leader_epoch == NO_EPOCH:
        return _beyond_the_end(log, offset, leader_epoch)
    end = log.end_of_epoch(leader_epoch).end_offset
    return EpochEnd(NO_EPOCH, end) if end < offset else None


def _by_common_epoch(log: ReplicaLog, offset: int, leader_epoch: int) -> EpochEnd | None:
    """The leader also says which epoch it knows, and a follower that has another goes back step by step (KIP-279).

    Source: OffsetForLeaderEpoch (2.0 on), the diverging epoch of Fetch (2.7 on).
    """
    end = log.end_of_epoch(leader_epoch)
    diverges = leader_epoch != NO_EPOCH and (end.leader_epoch < leader_epoch or end.end_offset < offset)
    return end if diverges else None


DIVERGES: dict[str, Callable[[ReplicaLog, int, int], EpochEnd | None]] = {
    # truncate_to      where the leader's log parts from that of a follower with this end and this latest epoch
    "high_watermark": _beyond_the_end,
    "leader_epoch":   _by_epoch,
    "common_epoch":   _by_common_epoch,
}  # fmt: skip


def truncation_offset(log: ReplicaLog, diverging: EpochEnd) -> int:
    """Where a follower cuts its log, when its leader has said that the two part.

    Source: AbstractFetcherThread.getOffsetTruncationState (2.8).
    """
    if diverging.end_offset == UNKNOWN:
        return log.high_watermark
    mine = log.end_of_epoch(diverging.leader_epoch)
    if diverging.leader_epoch == NO_EPOCH or mine.end_offset == UNKNOWN:
        return min(diverging.end_offset, log.end_offset)
    if mine.leader_epoch != diverging.leader_epoch:
        return min(mine.end_offset, log.end_offset)
    return min(mine.end_offset, diverging.end_offset, log.end_offset)
