"""Segments of `__consumer_offsets` for tests: batches of all formats, built by kafka-python from our keys and values."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from kafka.record import MemoryRecordsBuilder
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import calc_crc32c

from kcontrol.group.offsets_topic_records import encode

AT_MS = 1_650_937_628_841
CONTROL, TRANSACTIONAL = DefaultRecordBatch.CONTROL_MASK, DefaultRecordBatch.TRANSACTIONAL_MASK
Record = tuple[bytes | None, bytes | None]


def commit(partition: int, offset: int | None, version: int = 3, topic: str = "t") -> Record:
    """Return key and value of an offset that group "g" commits for a partition of the topic; a tombstone if `offset` is None."""
    key = encode("offset_key", 1, {"group": "g", "topic": topic, "partition": partition})
    fields = {"offset": offset, "leader_epoch": 7, "metadata": "m", "commit_timestamp": AT_MS, "expire_timestamp": AT_MS + 5}
    return key, None if offset is None else encode("offset_value", version, fields)


def group(version: int = 3, protocol_type: str = "consumer") -> Record:
    """Return key and value of generation 4 of group "g" with one member, which has t-0 and t-2."""
    member = {
        "member_id": "m-1", "group_instance_id": "i", "client_id": "c", "client_host": "/10.0.0.1", "rebalance_timeout": 60000,
        "session_timeout": 10000, "subscription": encode("subscription", 0, {"topics": ["u", "t"], "user_data": None}),
        "assignment": encode("assignment", 0, {"partitions": [{"topic": "t", "partitions": [0, 2]}], "user_data": None}),
    }  # fmt: skip
    head = {"protocol_type": protocol_type, "generation": 4, "protocol": "range", "leader": "m-1"}
    fields = {**head, "current_state_timestamp": AT_MS - 9, "members": [member]}
    return encode("group_key", 2, {"group": "g"}), encode("group_value", version, fields)


def batch(offset: int, records: Sequence[Record], magic: int = 2, codec: int = 0, producer: int = -1) -> bytes:
    """Return a batch with these records, the first at `offset`, in a format and with a codec, as kafka-python writes it.

    It writes offsets from 0; the first field, which no CRC covers, is set afterwards: the offset of the first record, in a
    compressed batch of format 1 that of the last record. Compressed batches of format 0 have the offsets of their records.
    """
    begin = 0 if magic == 2 or (codec and magic == 1) else offset
    state = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0} if producer >= 0 else {}
    builder = MemoryRecordsBuilder(magic, codec, 2**20, begin, transactional=producer >= 0, **state)
    for key, value in records:
        builder.append(AT_MS, key, value)
    builder.close()
    data = bytes(builder.buffer())
    return struct.pack(">q", offset + (len(records) - 1 if magic == 1 else 0)) + data[8:]


def with_attributes(data: bytes, attributes: int) -> bytes:
    """Return a batch of format 2 with other attributes and a CRC that fits."""
    rest = struct.pack(">h", attributes) + data[23:]
    return data[:17] + struct.pack(">I", calc_crc32c(rest)) + rest


def marker(offset: int, producer: int, kind: int) -> bytes:
    """Return the control batch that ends a transaction: an abort (`kind` 0) or a commit (1)."""
    data = batch(offset, [(struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0))], producer=producer)
    return with_attributes(data, CONTROL | TRANSACTIONAL)


def head_of(row: Any) -> tuple[str, int | None]:
    return row.kind, row.log_offset
