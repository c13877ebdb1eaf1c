"""The log cleaner: which records of a compacted topic's log stay, and what the log is then.

The cleaner reads the dirty part of a log, the closed segments that it has not cleaned before, and
notes the last offset of each key. It then writes all closed segments again: it leaves out a record
if a later record has its key, a record without a key, and a tombstone that is old enough. The
records that stay keep their offsets. The active segment is never cleaned.

A log is cleaned if more than half of its closed bytes are dirty. How old a tombstone must be:

* up to 3.0, `delete.retention.ms` older than the last segment that had been cleaned before, by the
  times of the last appends to both segments;
* since 3.1 (message format 2), `delete.retention.ms` after the first cleaning that met it.

Source: LogCleaner.scala and LogCleanerManager.scala (0.9, 2.8, 3.3), MemoryRecords.filterTo (3.3).
Read next: `log_segments.py`, then `_replace_segments` in `log.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from kcontrol.broker.log import ReplaceSegments, ReplicaLog
from kcontrol.broker.log_segments import (
    Compaction,
    Segment,
    StoredRecord,
    base_offset_of,
    data_of,
    key_of,
    records_of,
    size_in_bytes,
)
from kcontrol.core.releases import is_since, value_in_force

MIN_CLEANABLE_RATIO = 0.5
"""The default of min.cleanable.dirty.ratio."""

Bound = Literal["active segment", "first unstable offset", "last stable offset"]
CLEANS_UP_TO: tuple[tuple[str, Bound], ...] = (
    ("0.9.0", "active segment"),
    ("1.0.0", "first unstable offset"),
    ("3.1.0", "last stable offset"),
)
"""Up to where a release cleans; each value includes those before it."""

DELETE_HORIZONS_SINCE = "3.1.0"
"""The release since which a batch has the time at which its tombstones may go (KIP-534)."""


class LogToClean(NamedTuple):
    """The part of a log that the cleaner would clean now.

    This dirty part begins at `first_dirty_offset` and ends before `first_uncleanable_offset`.
    `cleanable_bytes` is its size, and `clean_bytes` the size of the segments before it.
    """

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int

    @property
    def is_dirty_enough(self) -> bool:
        """Return whether more than half of the bytes below `first_uncleanable_offset` are dirty."""
        total = self.clean_bytes + self.cleanable_bytes
        return total > 0 and self.cleanable_bytes / total > MIN_CLEANABLE_RATIO


def log_to_clean(log: ReplicaLog, release: str) -> LogToClean:
    """Return the part of a log that the cleaner of a release would clean now.

    `log.compaction` must not be None. If nothing is dirty, `cleanable_bytes` is 0. Source:
    cleanableOffsets and calculateCleanableBytes of LogCleanerManager.scala (2.8).
    """
    assert log.compaction is not None
    first, message_format = log.first_dirty_offset, log.compaction.message_format
    bound = max(first, min(log.segments[-1].base_offset, _upper_bound(log, release)))
    end = max(segment.base_offset for segment in log.segments if segment.base_offset <= bound)
    sizes = {
        segment.base_offset: size_in_bytes(records, message_format)
        for segment, records in records_of(log.records, log.segments)
    }
    clean = sum(size for base, size in sizes.items() if base < min(first, end))
    return LogToClean(first, end, clean, sum(s for base, s in sizes.items() if first <= base < end))


def _upper_bound(log: ReplicaLog, release: str) -> int:
    """Return the first offset that the cleaner of `release` may not clean.

    The active segment is not considered: the caller excludes this segment.
    """
    bound = value_in_force(CLEANS_UP_TO, release)
    # The log end offset or, since 3.1, the high watermark.
    end = log.high_watermark if bound == "last stable offset" else log.log_end_offset
    if bound == "active segment":
        return end
    # Since 1.0 the cleaner stops at the first record of an open transaction; in kcontrol no
    # transaction ends.
    in_transaction = (r for r in log.records if getattr(r, "producer_id", None) is not None)
    return min([end, *(record.offset for record in in_transaction)])


def clean(log: ReplicaLog, release: str, now_ms: int) -> ReplaceSegments:
    """Return the change by which the cleaner of `release` cleans a log at `now_ms`.

    `log.compaction` must not be None. A log that is not dirty enough is cleaned too.

    Source: Cleaner.doClean (2.8), Cleaner.clean (0.9).
    """
    assert log.compaction is not None
    first, end, *_ = log_to_clean(log, release)
    keyed = ((key_of(r), r.offset) for r in log.records if first <= r.offset < end)
    latest = {key: offset for key, offset in keyed if key is not None}
    closed = [
        (s, records) for s, records in records_of(log.records, log.segments) if s.base_offset < end
    ]
    cleaned = [segment for segment, _ in closed if segment.base_offset < first]
    horizon_ms = cleaned[-1].modified_ms - log.compaction.delete_retention_ms if cleaned else 0
    by_batch = is_since(DELETE_HORIZONS_SINCE, release) and log.compaction.message_format == 2
    horizons, kept = dict(log.delete_horizons), []
    for segment, records in closed:
        retains = segment.modified_ms > horizon_ms
        for record in records:
            due_ms = horizons.get(base_offset_of(record), now_ms + 1)
            if _should_retain(
                record, latest, retains_tombstones=now_ms < due_ms if by_batch else retains
            ):
                kept.append(record)
    tombstones = {base_offset_of(record) for record in kept if data_of(record) is None}
    if by_batch:
        horizons = dict.fromkeys(tombstones, now_ms + log.compaction.delete_retention_ms) | horizons
    return ReplaceSegments(
        (*kept, *log.since(end)),
        (*_grouped(closed, log.compaction), *(s for s in log.segments if s.base_offset >= end)),
        end,
        tuple(sorted((base, ms) for base, ms in horizons.items() if base in tombstones)),
    )


def _should_retain(
    record: StoredRecord, latest_offsets: Mapping[bytes, int], *, retains_tombstones: bool
) -> bool:
    """Return whether the cleaner keeps a record: the dirty part has no later record of its key.

    `latest_offsets` maps each key of the dirty part to its last offset. Records without a key and,
    unless `retains_tombstones`, tombstones are removed.

    Source: shouldRetainRecord (2.8).
    """
    key = key_of(record)
    if key is None or record.offset < latest_offsets.get(key, -1):
        return False
    return data_of(record) is not None or retains_tombstones


def _grouped(
    closed_segments: Sequence[tuple[Segment, tuple[StoredRecord, ...]]], settings: Compaction
) -> list[Segment]:
    """Return the segments after the cleaning: neighbours that fit into `segment_bytes` become one.

    `closed_segments` has pairs of a segment and its records before the cleaning, oldest first.

    Source: Cleaner.groupSegmentsBySize (2.8).
    """
    found: list[Segment] = []
    size = 0
    for segment, records in closed_segments:
        more = size_in_bytes(records, settings.message_format)
        if found and size + more <= settings.segment_bytes:
            # The joined segment has the first offset of the earliest segment and the time of the
            # latest.
            found[-1] = found[-1]._replace(modified_ms=segment.modified_ms)
            size += more
        else:
            found.append(segment)
            size = more
    return found
