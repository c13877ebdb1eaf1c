"""A real segment of the offsets topic, written by a broker of 3.1.0, is read record by record.

The framing of the segment is read here (magic 2, uncompressed; Source: DefaultRecordBatch.java, DefaultRecord.java of 3.1); keys
and values are read by `offsets_topic_records`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kcontrol.group.offsets_topic_records import decode

NAME = "3.1.0-__consumer_offsets-21"
HEADER = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, CRC, attributes, last delta, two times, producer id and epoch, sequence, count."""
COMPRESSION, CONTROL = 0b111, 0b100000


class Stored(NamedTuple):
    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes | None


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a zig-zag number of variable length, and the place after it."""
    raw = shift = 0
    while True:
        byte = data[at]
        raw, shift, at = raw | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at


def field(data: bytes, at: int) -> tuple[bytes | None, int]:
    """Return the bytes of a field, None for null, and the place after them."""
    length, at = varint(data, at)
    return (None, at) if length < 0 else (data[at : at + length], at + length)


def records(segment: bytes) -> Iterator[Stored]:
    """Yield the records of a segment in order."""
    at = 0
    while at < len(segment):
        base, length, _, magic, _, attributes, _, first_ms, *_, count = HEADER.unpack_from(segment, at)
        assert (magic, attributes & (COMPRESSION | CONTROL)) == (2, 0)
        place = at + HEADER.size
        for _ in range(count):
            size, place = varint(segment, place)
            end = place + size
            time_delta, place = varint(segment, place + 1)
            offset_delta, place = varint(segment, place)
            key, place = field(segment, place)
            value, place = field(segment, place)
            assert key is not None
            yield Stored(base + offset_delta, first_ms + time_delta, key, value)
            place = end
        at += 12 + length


def member(fields: dict[str, Any]) -> dict[str, Any]:
    assigned = decode("assignment", fields["assignment"])[1]["partitions"] if fields["assignment"] else []
    return {
        "memberId": fields["member_id"], "groupInstanceId": fields["group_instance_id"], "clientId": fields["client_id"],
        "clientHost": fields["client_host"], "rebalanceTimeout": fields["rebalance_timeout"],
        "sessionTimeout": fields["session_timeout"],
        "assignment": [[entry["topic"], entry["partitions"]] for entry in assigned],
    }  # fmt: skip


def read(record: Stored) -> dict[str, Any]:
    """Return a record in the form of the expected file."""
    kind = "group" if record.key[:2] == b"\0\2" else "offset"
    version, key = decode(f"{kind}_key", record.key)
    found: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp_ms, "batch": "DefaultRecordBatch"}
    found |= {"key": {"kind": kind, "kv": version, **key}, "value": None}
    if record.value is None:
        return found
    version, fields = decode(f"{kind}_value", record.value)
    if kind == "offset":
        said = {"offset": fields["offset"], "leaderEpoch": fields["leader_epoch"], "metadata": fields["metadata"]}
        return found | {"value": {"vv": version, **said, "commitTimestamp": fields["commit_timestamp"]}}
    said = {"protocolType": fields["protocol_type"], "generation": fields["generation"], "protocol": fields["protocol"]}
    said |= {"leader": fields["leader"], "currentStateTimestamp": fields["current_state_timestamp"]}
    return found | {"value": {"vv": version, **said, "members": [member(each) for each in fields["members"]]}}


@pytest.mark.shared
def test_a_real_segment_is_read_record_by_record(shared: Path) -> None:
    """Each of the 206 records of a real segment, tombstones included, has the fields that its expected file names."""
    folder = shared / "logs" / "offsets"
    expected = [json.loads(line) for line in (folder / f"{NAME}.expected.jsonl").read_text().splitlines()]
    found = [read(record) for record in records((folder / f"{NAME}.log").read_bytes())]
    assert len(found) == 206 and found == expected
