"""The records in the segment files of `__consumer_offsets`, read batch by batch, so that memory is bounded by the longest batch.

kafka-python reads the batches (formats 0 to 2) and checks their CRCs; `group/offsets_topic_records.py` has the layouts of keys
and values. Each byte of a file belongs to a batch or to a row of kind "rejected" with a reason.

The topic is compacted: closed segments have only the last record of each key, and no tombstone that is older than
`delete.retention.ms`. So only the records since the last cleaning are a full history.

Source: RecordBatch.java, DefaultRecordBatch.java, ControlRecordType.java (2.8), GroupMetadataManager.scala (0.9, 2.8).
"""

import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

from kafka.errors import CorruptRecordError, UnsupportedCodecError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch
from snappy import UncompressError
from zstandard import ZstdError

from kcontrol.core.errors import UserError
from kcontrol.core.model import TopicPartition
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.group.offsets_topic_records import LAYOUTS, decode, topics_of
from kcontrol.pipeline import zip_files
from kcontrol.pipeline.closed_paths import check_open

SEGMENT = re.compile(rf"^\d{{20}}\.log$|{OFFSETS_TOPIC}-\d+.*\.log$")
# The suffix is that of a log which is to be deleted, which moves to another folder, or which is in no assignment.
OTHER_PARTITION = re.compile(rf"^(?!{OFFSETS_TOPIC}).+-\d+(?:\.[0-9a-f]+-(?:delete|future|stray))?$")
LOG_PARTITION = re.compile(rf"{OFFSETS_TOPIC}-(\d+)")
LONGEST_BATCH_BYTES = 64 * 2**20
CHUNK_BYTES = 2**20
HEAD = struct.Struct(">qi4xb")
"""The fields that all formats have at one place: the offset, the length after it, and the format's number (the magic byte)."""
OVERHEAD = DefaultRecordBatch.AFTER_LEN_OFFSET
SHORTEST = {
    0: LegacyRecordBatch.RECORD_OVERHEAD_V0,
    1: LegacyRecordBatch.RECORD_OVERHEAD_V1,
    2: DefaultRecordBatch.HEADER_STRUCT.size - OVERHEAD,
}
"""The smallest length of a batch after its length field, by format."""
KEYS = {version: name for name in ("offset_key", "group_key") for version in LAYOUTS[name]}
DAMAGE = (
    CorruptRecordError, AssertionError, struct.error, ValueError, IndexError, EOFError, OSError, zlib.error, RuntimeError,
    UncompressError, ZstdError,
)  # fmt: skip
"""The errors that kafka-python and the codecs raise for damaged bytes."""

CUT = "The file ends in the middle of a batch."
ZEROS = "The rest of the file is zeros: space that the broker reserved."
NO_BATCH = "No batch begins here: the rest of the file cannot be read."
LONG = "The batch is longer than 64 MB."
CRC = "The CRC of the batch does not fit its bytes."
RECORD_CRC = "The CRC of the record does not fit its bytes."
DAMAGED = "The batch is damaged: its records cannot be read."
NO_CODEC = "The batch is compressed with codec {}, which Kafka does not have in this format."
NO_KEY = "The record has no key."
NO_SHORT = "The key is shorter than its version."
OTHER_KEY = "A key of version {} is neither of an offset nor of a group: coordinators since 3.6 write such records."
OTHER_MARKER = "The control record has type {}, neither an abort nor a commit."


class Segment(NamedTuple):
    """A segment file of `size` bytes, and the number `log_partition` of its partition of `__consumer_offsets`."""

    path: Path
    size: int
    # The number in the name of the file, else in the name of its folder; None if neither name has a number.
    log_partition: int | None


class Row(NamedTuple):
    """A record of a segment, a batch without records, or bytes that cannot be read."""

    # The byte in the file at which the batch begins, from 0.
    position: int
    # The length of the batch in bytes in its first row, 0 in its other rows; of a "rejected" row, the length of the bytes.
    length: int
    # "commit", "group", "tombstone", "marker" (the end of a transaction), "empty" (a batch), "unread" (a record that cannot be
    # read) or "rejected" (bytes that are no batch).
    kind: str
    # The offset of the record; of a damaged batch the offset in its head; else None.
    log_offset: int | None = None
    # The record's timestamp, None if the record has none.
    time_ms: int | None = None
    # None outside of transactions.
    producer_id: int | None = None
    # The fields of the key and the value by name, with `key_version` and `value_version`.
    fields: dict[str, Any] | None = None
    # None unless the row is a marker.
    is_commit: bool | None = None
    # A sentence that says why the record or the bytes cannot be read; None for any other row.
    reason: str | None = None


def segments(paths: Sequence[Path]) -> list[Segment]:
    """Return the segments of `__consumer_offsets` in `paths`, files and folders, sorted by path.

    In a folder segments are found by names such as 00000000000000000042.log. Raises UserError for a path without a segment.
    """
    found: set[Path] = set()
    for path in paths:
        check_open(path)
        if path.is_dir():
            named = {file.resolve() for file in path.rglob("*.log") if file.is_file() and SEGMENT.search(file.name)}
            inside = {file for file in named if not OTHER_PARTITION.match(file.parent.name)}
            if not inside:
                remedy = zip_files.advice(path, f"name a folder such as {OFFSETS_TOPIC}-21 with files such as {'0' * 20}.log")
                raise UserError(f"There is no segment in {path}: {remedy}.")
            found |= inside
        elif path.exists():
            zip_files.refuse(path)
            found.add(path.resolve())
        else:
            raise UserError(f"There is no file or folder {path}.")
    return [Segment(path, path.stat().st_size, _log_partition(path)) for path in sorted(found)]


def _log_partition(path: Path) -> int | None:
    match = LOG_PARTITION.search(path.name) or LOG_PARTITION.search(path.parent.name)
    return int(match[1]) if match else None


def rows(segment: Segment) -> Iterator[Row]:
    """Yield a Row for each record, empty batch and unreadable part of a segment file, in the order of its bytes.

    The lengths of all rows add up to `segment.size`. Raises OSError if the file cannot be read.
    """
    with segment.path.open("rb") as file:
        position = 0
        while position < segment.size:
            length, reason = _next_batch(file, position, segment.size)
            if reason is None:
                yield from _batch_rows(file.read(length), position)
            else:
                yield Row(position, length, "rejected", reason=reason)
            position += length
            file.seek(position)


def _next_batch(file: BufferedReader, position: int, size: int) -> tuple[int, str | None]:
    """Return (length, None) for a batch at `position`, or (length, reason) for bytes that cannot be read as a batch.

    `size` is the size of the file in bytes. The file is read from `position`, and set back there.
    """
    left = size - position
    head = file.read(HEAD.size)
    file.seek(position)
    if len(head) < HEAD.size:
        return left, CUT
    _, length, magic = HEAD.unpack(head)
    if not any(head) and _is_zero(file, position):
        return left, ZEROS
    if magic not in SHORTEST or length < SHORTEST[magic]:
        return left, NO_BATCH
    if length + OVERHEAD > left:
        return left, CUT
    return length + OVERHEAD, LONG if length > LONGEST_BATCH_BYTES else None


def _is_zero(file: BufferedReader, position: int) -> bool:
    """Return whether all bytes from `position` to the end of the file are zero; the file's position is unchanged."""
    is_zero = all(chunk.count(0) == len(chunk) for chunk in iter(lambda: file.read(CHUNK_BYTES), b""))
    file.seek(position)
    return is_zero


# ---------------------------------------------------------------- batches


def _batch_rows(data: bytes, position: int) -> Iterator[Row]:
    """An "empty" row for a batch without records; only the first row has the batch's length."""
    length = len(data)
    for row in _records(data, position):
        yield row._replace(length=length)
        length = 0
    if length:
        yield Row(position, length, "empty")


def _records(data: bytes, position: int) -> Iterator[Row]:
    batch: Any = None
    problem: str | None = None
    records: list[Any] = []
    try:
        batch = MemoryRecords(data).next_batch()
        problem = None if batch.validate_crc() else CRC
        records = [] if problem else list(batch)
    except UnsupportedCodecError:
        problem = NO_CODEC.format(batch.compression_type)
    except DAMAGE:
        problem = DAMAGED
    if problem:
        yield Row(position, 0, "rejected", HEAD.unpack_from(data)[0], reason=problem)
        return
    is_modern = isinstance(batch, DefaultRecordBatch)
    producer_id = batch.producer_id if is_modern and (batch.is_transactional or batch.is_control_batch) else None
    for record in records:
        row = Row(position, 0, "unread", record.offset, _time_ms(record.timestamp), producer_id)
        if is_modern and batch.is_control_batch:
            yield _marker(row, record.type)
        elif not record.validate_crc():
            yield row._replace(reason=RECORD_CRC)
        else:
            yield _record(row, record.key, record.value)


def _time_ms(timestamp: int | None) -> int | None:
    """Return the timestamp of a record, None if the record has none: format 0 has no timestamps, and -1 stands for none."""
    return None if timestamp is None or timestamp < 0 else timestamp


def _marker(row: Row, kind: int) -> Row:
    if kind not in (0, 1):
        return row._replace(reason=OTHER_MARKER.format(kind))
    return row._replace(kind="marker", is_commit=kind == 1)


def _record(row: Row, key: bytes | None, value: bytes | None) -> Row:
    """Return `row`, one record of the offsets topic, with the kind and the fields of this key and value.

    If the key or value cannot be read, return `row` with only `reason` changed.
    """
    if key is None or len(key) < 2:
        return row._replace(reason=NO_KEY if key is None else NO_SHORT)
    (key_version,) = struct.unpack_from(">h", key)
    if key_version not in KEYS:
        return row._replace(reason=OTHER_KEY.format(key_version))
    kind = "commit" if KEYS[key_version] == "offset_key" else "group"
    try:
        fields = decode(KEYS[key_version], key)[1]
        of = {"key_version": key_version, "group_id": fields["group"], "partition": None}
        if kind == "commit":
            of["partition"] = str(TopicPartition(fields["topic"], fields["partition"]))
        if value is None:
            return row._replace(kind="tombstone", fields=of | {"of": "offset" if kind == "commit" else "group"})
        return row._replace(kind=kind, fields=of | (_offset(value) if kind == "commit" else _group(value)))
    except (ValueError, struct.error) as problem:
        return row._replace(reason=f"The record cannot be read: {problem}.")


def _offset(value: bytes) -> dict[str, Any]:
    version, found = decode("offset_value", value)
    return {"value_version": version} | found


def _group(value: bytes) -> dict[str, Any]:
    version, found = decode("group_value", value)
    is_consumer = found["protocol_type"] == "consumer"
    return {"value_version": version} | found | {"members": [_member(member, is_consumer) for member in found["members"]]}


def _member(member: dict[str, Any], is_consumer: bool) -> dict[str, Any]:
    """With `topics`, such as ["t"], and `partitions`, such as ["t-0"]."""
    # None for a protocol type other than "consumer", and for bytes that no consumer has written.
    topics = topics_of(member["subscription"] or b"") if is_consumer else None
    partitions = _partitions(member["assignment"] or b"") if is_consumer else None
    return member | {"topics": None if topics is None else sorted(topics, key=str), "partitions": partitions}


def _partitions(assignment: bytes) -> list[str] | None:
    try:
        found = decode("assignment", assignment)[1]["partitions"]
    except ValueError:
        return None
    return [str(TopicPartition(entry["topic"], partition)) for entry in found for partition in entry["partitions"]]
