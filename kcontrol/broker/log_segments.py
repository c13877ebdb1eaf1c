"""The segments of a compacted topic's log: where each begins, when it was written, how large it is.

A log is a row of segments. Records are appended to the last one, the active segment; an append
that would make it larger than `segment.bytes` begins a new one. The log cleaner changes all
segments but the active one (`log_cleaner.py`). Only the logs of topics with the setting
`segment.bytes` have more than one segment here.

Source: LogSegment.shouldRoll and Log.maybeRoll (2.8), Log.maybeRoll (0.9). The sizes: Message.scala
(0.9), LegacyRecord.java, DefaultRecordBatch.java and DefaultRecord.java (2.8).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from kcontrol.core.releases import value_in_force

MESSAGE_FORMATS = (("0.8.0", 0), ("0.10.0", 1), ("0.11.0", 2))
"""The message format that a release writes, since the release (KIP-32, KIP-98)."""

DELETE_RETENTION_MS = 86_400_000
"""The default of delete.retention.ms, 24 hours."""

BATCH_OVERHEAD = 61
MESSAGE_OVERHEAD = (26, 34)
"""The bytes of a message of format 0 or 1 besides its key and value."""


class StoredRecord(Protocol):
    """A log record as a replica reads it: offset, leader epoch, and `value`, its value as text.

    A record of the offsets topic (`OffsetsTopicRecord`) also has `key`, `data` and `base_offset`;
    its `value` is a description, such as "offset 5 of t-0 in my-group".
    """

    @property
    def offset(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...

    @property
    def value(self) -> str: ...


class Segment(NamedTuple):
    """A segment: its first offset, and the time of its last append, 0 if that is not known."""

    base_offset: int
    modified_ms: int = 0


class Compaction(NamedTuple):
    """The settings of a topic that its segments and the log cleaner depend on.

    `message_format` is 0, 1 or 2.
    """

    segment_bytes: int
    delete_retention_ms: int = DELETE_RETENTION_MS
    message_format: int = 2


def message_format(release: str) -> int:
    """Return the version of the message format that a release writes: 0, 1 or 2."""
    found: int = value_in_force(MESSAGE_FORMATS, release)
    return found


# ---------------------------------------------------------------- bytes


def key_of(record: StoredRecord) -> bytes | None:
    """Return the key of a record, None for a record that a producer sent without a key."""
    key: bytes | None = getattr(record, "key", None)
    return key


def data_of(record: StoredRecord) -> bytes | None:
    """Return the value of a record as bytes, None for a tombstone."""
    data: bytes | None = record.data if hasattr(record, "data") else record.value.encode()
    return data


def base_offset_of(record: StoredRecord) -> int:
    """Return the first offset of the record's batch, or its own offset if it has no batch."""
    base: int = getattr(record, "base_offset", record.offset)
    return base


def batches(records: Iterable[StoredRecord]) -> Iterator[tuple[StoredRecord, ...]]:
    """Yield the records of each batch, in the order of the log."""
    return (tuple(found) for _, found in groupby(records, base_offset_of))


def size_in_bytes(records: Sequence[StoredRecord], message_format: int) -> int:
    """Return the size of the records in a file of the log, their batches included, in bytes.

    All records of a batch have one time, so the difference of their times takes one byte.
    """
    if message_format < 2:
        overhead = MESSAGE_OVERHEAD[message_format]
        return sum(overhead + _length(key_of(r)) + _length(data_of(r)) for r in records)
    return sum(BATCH_OVERHEAD + sum(map(_record_size, batch)) for batch in batches(records))


def _length(data: bytes | None) -> int:
    return 0 if data is None else len(data)


def _record_size(record: StoredRecord) -> int:
    """Return the size of a record of format 2: length, attributes, deltas, key, value, headers."""
    delta = _varint_size(record.offset - base_offset_of(record))
    body = 3 + delta + sum(map(_field_size, (key_of(record), data_of(record))))
    return _varint_size(body) + body


def _field_size(data: bytes | None) -> int:
    return _varint_size(-1 if data is None else len(data)) + _length(data)


def _varint_size(value: int) -> int:
    """Return how many bytes `value` takes as a zig-zag varint. Source: ByteUtils.sizeOfVarint."""
    zigzag = (value << 1) ^ (value >> 63)
    return max(1, -(-zigzag.bit_length() // 7))


# ---------------------------------------------------------------- segments


def records_of(
    records: Sequence[StoredRecord], segments: Sequence[Segment]
) -> Iterator[tuple[Segment, tuple[StoredRecord, ...]]]:
    """Yield each segment, in the order of the log, with its records, () for an empty segment."""
    ends = [later.base_offset for later in segments[1:]]
    for index, segment in enumerate(segments):
        end = ends[index] if index < len(ends) else None
        inside = (r for r in records if segment.base_offset <= r.offset)
        yield segment, tuple(r for r in inside if end is None or r.offset < end)


def segments_after_append(
    segments: tuple[Segment, ...],
    active: Sequence[StoredRecord],
    appended: Sequence[StoredRecord],
    settings: Compaction,
    now_ms: int,
) -> tuple[Segment, ...]:
    """Return the segments after an append at `now_ms`, which may begin a new one.

    `active` are the records of the active segment before the append. A segment whose time is not
    known gets the time of the append. Source: LogSegment.shouldRoll (2.8).
    """
    *closed, last = segments
    size, more = (size_in_bytes(found, settings.message_format) for found in (active, appended))
    if active and size + more > settings.segment_bytes:
        closed.append(last._replace(modified_ms=last.modified_ms or now_ms))
        last = Segment(appended[0].offset)
    return (*closed, last._replace(modified_ms=now_ms))
