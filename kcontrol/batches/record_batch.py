"""The records of one batch as the bytes of a log's file, in message formats 0 to 2, compressed with gzip or not compressed.

Format 2 (0.11 on): one header with the codec, then the records. Each record has lengths and the difference of its offset from
the batch's first offset, as varints; gzip compresses the records and not the header. Formats 0 and 1: each record is a message.
A codec compresses all messages of a batch into the value of one more message, the wrapper; in format 1 a message in a wrapper
has its place in the batch instead of its offset.

All records of a batch have one time. In format 2 the time is in the header; the messages here have the time 0.

Source: Message.scala (0.9), LegacyRecord.java, DefaultRecordBatch.java, DefaultRecord.java (2.8), MemoryRecordsBuilder.java
(0.10.2, 2.8), CompressionType.java (2.8). Read next: `broker/log_segments.py`, which closes a segment by these sizes.
"""

import struct
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

BATCH_OVERHEAD = 61
"""The bytes of the header of a batch of format 2."""
MESSAGE_OVERHEAD = (26, 34)
"""The bytes of a message of format 0 or 1 besides its key and value."""
CODECS = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
"""Kafka's codecs by their number in `offsets.topic.compression.codec` and in the attributes of a batch; zstd exists since 2.1."""
WRITTEN = (0, 1)
"""The codecs that this module can write. Python has no library for the others."""
GZIP = 31


class Record(NamedTuple):
    """A record: its offset, its key, and its value; the value of a tombstone is None."""

    offset: int
    key: bytes | None
    value: bytes | None


class Batch(NamedTuple):
    """A batch: its first offset, its records in the order of their offsets, and its codec, 0 (none) or 1 (gzip).

    The log cleaner can have removed the record at the first offset.
    """

    base_offset: int
    records: tuple[Record, ...]
    codec: int = 0


@lru_cache(maxsize=4096)
def size_in_bytes(batch: Batch, message_format: int) -> int:
    """Return how many bytes a batch takes in a segment file: its header or wrapper message, and its records.

    `message_format` is 0, 1 or 2.
    """
    size = len(records_section(batch, message_format))
    if message_format == 2:
        return BATCH_OVERHEAD + size
    return size + MESSAGE_OVERHEAD[message_format] * bool(batch.codec)


def records_section(batch: Batch, message_format: int) -> bytes:
    """Return the bytes after a batch's header: its records in format 2, its messages in formats 0 and 1.

    With a codec the bytes are compressed; in formats 0 and 1 they are the value of the wrapper message.
    """
    if message_format == 2:
        plain = b"".join(_record(record, batch.base_offset) for record in batch.records)
    else:
        plain = b"".join(_messages(batch, message_format))
    return _gzip(plain) if batch.codec else plain


def _gzip(plain: bytes) -> bytes:
    """Return the bytes `plain` in the format of gzip, compressed at the level of Java's GZIPOutputStream, the default of zlib."""
    stream = zlib.compressobj(wbits=GZIP)
    return stream.compress(plain) + stream.flush()


def _record(record: Record, base_offset: int) -> bytes:
    """Return the bytes of a record in message format 2; `base_offset` is the first offset of the record's batch."""
    # The length, then attributes (0), time minus the batch's time (0), offset minus `base_offset`, key, value, and the number
    # of headers (0).
    body = b"\0\0" + _varint(record.offset - base_offset) + _field(record.key) + _field(record.value) + b"\0"
    return _varint(len(body)) + body


def _field(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _varint(value: int) -> bytes:
    """Return `value`, below 2**63, as a zig-zag varint. Source: ByteUtils.writeVarlong (2.8)."""
    rest, written = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:
        written.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((*written, rest))


def _messages(batch: Batch, message_format: int) -> Sequence[bytes]:
    """Return each record as a message of format 0 or 1: offset, size, CRC, format, attributes, time in format 1, key, value."""
    first = batch.records[0].offset if batch.codec and message_format == 1 else 0
    found = []
    for offset, key, value in batch.records:
        time = struct.pack(">q", 0) * message_format
        body = struct.pack(">bb", message_format, 0) + time + _sized(key) + _sized(value)
        found.append(struct.pack(">qiI", offset - first, len(body) + 4, zlib.crc32(body)) + body)
    return found


def _sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data
