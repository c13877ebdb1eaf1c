"""The segments of a compacted topic's log: where each begins, when it was written, how large it is.

An append that would make the last (active) segment larger than `segment.bytes` begins a new
segment. The log cleaner changes the other segments.

Source: LogSegment.shouldRoll and Log.maybeRoll (2.8), Log.maybeRoll (0.9). The sizes are those of
`batches/record_batch.py`.
"""

# Only the logs of topics with the setting `segment.bytes` have more than one segment here.
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from kcontrol.batches import record_batch
from kcontrol.core.releases import is_since, value_in_force

MESSAGE_FORMATS = (("0.8.0", 0), ("0.10.0", 1), ("0.11.0", 2))
"""The message format that a release writes, since the release (KIP-32, KIP-98)."""

DELETE_RETENTION_MS = 86_400_000
"""The default of delete.retention.ms, 24 hours."""

COMPRESSED_SINCE = "0.10.0.1"
"""The release since which the offsets topic has compression.type=producer, not uncompressed."""


class StoredRecord(Protocol):
    """A record in a replica's log; `value` is the value that a producer sent, as text.

    In the offsets topic `value` is a description, such as "offset 5 of t-0 in my-group".
    """

    # The record of the offsets topic, `OffsetsTopicRecord`, also has the bytes `key` and `data`,
    # and the `base_offset` and `codec` of its batch.
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


def codec_on_disk(codec: int, release: str) -> int:
    """Return the codec (0 none, 1 gzip ...) on disk of a coordinator's batch written with `codec`.

    Before 0.10.0.1 the result is 0: the offsets topic stores each batch uncompressed.
    Source: offsetsTopicConfigs of GroupCoordinator.scala (0.10.0.0, 0.10.0.1),
    BrokerCompressionCodec.getTargetCompressionCodec (0.9).
    """
    # A topic with compression.type=uncompressed unpacks each batch, and 0 stands for no codec.
    return codec if is_since(COMPRESSED_SINCE, release) else 0


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
    """The size on disk: a batch with a codec is compressed."""
    found = (as_batch(batch) for batch in batches(records))
    return sum(record_batch.size_in_bytes(batch, message_format) for batch in found)


def as_batch(records: Sequence[StoredRecord]) -> record_batch.Batch:
    """`records` are all records of one batch, at least one."""
    codec = getattr(records[0], "codec", 0)
    found = tuple(record_batch.Record(each.offset, key_of(each), data_of(each)) for each in records)
    return record_batch.Batch(base_offset_of(records[0]), found, codec)


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
    """Return the segments after an append at `now_ms`; the append may begin a new segment.

    `active` are the records of the active segment before the append, `appended` the new records,
    and `settings` those of the topic.

    Source: LogSegment.shouldRoll (2.8).
    """
    *closed, last = segments
    size, more = (size_in_bytes(found, settings.message_format) for found in (active, appended))
    if active and size + more > settings.segment_bytes:
        # A segment whose time is not known gets the time of the append.
        closed.append(last._replace(modified_ms=last.modified_ms or now_ms))
        last = Segment(appended[0].offset)
    return (*closed, last._replace(modified_ms=now_ms))
