"""The records of segment files: all formats, damaged and foreign files, and the count of all bytes.

A real segment of 3.1.0 is compared record by record in `test_offsets.py`.
"""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcontrol.core.errors import UserError
from kcontrol.group.offsets_topic_records import decode, encode
from kcontrol.pipeline.offsets import segments as reader
from kcontrol.pipeline.offsets.segments import Row, Segment, rows, segments
from tests.group.kafka_batches import kafka_batches
from tests.pipeline.segment_files import AT_MS, batch, commit, group, head_of, marker, with_attributes

GZIP = 1
THREE = [batch(0, [commit(0, 5)]), batch(1, [commit(1, 6), commit(0, None)]), batch(3, [group()])]
HEADS = [("commit", 0), ("commit", 1), ("tombstone", 2), ("group", 3)]


def read(folder: Path, data: bytes) -> list[Row]:
    """Return the rows of a segment with this content; they have all its bytes."""
    path = folder / "00000000000000000000.log"
    path.write_bytes(data)
    found = list(rows(Segment(path, len(data), None)))
    assert sum(row.length for row in found) == len(data)
    return found


@pytest.mark.parametrize("codec", [0, GZIP])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_each_format_gives_the_offsets_and_the_fields_of_its_records(tmp_path: Path, magic: int, codec: int) -> None:
    """Batches of kafka-python's writer, plain and compressed, give offset, timestamp, key and value of each record."""
    parts = [[commit(0, 5)], [commit(1, 6)]] if magic < 2 and not codec else [[commit(0, 5), commit(1, 6)]]
    data = b"".join(batch(40 + n, part, magic, codec) for n, part in enumerate(parts))
    first, second = read(tmp_path, data)
    assert [first.log_offset, second.log_offset] == [40, 41]
    assert first.time_ms == (None if magic == 0 else AT_MS)
    assert first.fields is not None and second.fields is not None
    assert (first.fields["group_id"], first.fields["partition"], first.fields["offset"]) == ("g", "t-0", 5)
    assert (second.fields["partition"], second.fields["offset"], second.fields["leader_epoch"]) == ("t-1", 6, 7)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_each_version_of_a_value_is_read(tmp_path: Path, version: int) -> None:
    """Offsets and groups of versions 0 to 3 (Kafka 0.8.2 to 3.9) give the fields of their version."""
    offset, found = read(tmp_path, batch(0, [commit(0, 5, version), group(version)]))
    assert offset.fields is not None and found.fields is not None
    assert (offset.fields["value_version"], offset.fields["offset"]) == (version, 5)
    assert ("expire_timestamp" in offset.fields, "leader_epoch" in offset.fields) == (version == 1, version == 3)
    (member,) = found.fields["members"]
    assert (found.fields["generation"], member["topics"], member["partitions"]) == (4, ["t", "u"], ["t-0", "t-2"])
    assert ("rebalance_timeout" in member, "group_instance_id" in member) == (version >= 1, version >= 3)


def test_members_of_other_protocol_types_have_no_topics(tmp_path: Path) -> None:
    """The bytes of a member of a Connect group are not read as a subscription or an assignment."""
    (row,) = read(tmp_path, batch(0, [group(protocol_type="connect")]))
    assert row.fields is not None
    assert [(member["topics"], member["partitions"]) for member in row.fields["members"]] == [(None, None)]


def test_a_file_that_is_cut_keeps_the_batches_before_the_cut(tmp_path: Path) -> None:
    """A segment that is cut at any byte of its last batch gives the rows before, and one rejected row."""
    whole, last = b"".join(THREE), len(THREE[-1])
    for left in range(1, last):
        found = read(tmp_path, whole[: len(whole) - last + left])
        assert [head_of(row) for row in found[:-1]] == HEADS[:-1]
        assert (found[-1].kind, found[-1].length, found[-1].reason) == ("rejected", left, reader.CUT)


def test_a_changed_byte_rejects_its_batch_alone(tmp_path: Path) -> None:
    """A changed byte after the CRC of the second batch rejects this batch; the batches around it are read."""
    for place in range(21, len(THREE[1])):
        changed = bytearray(THREE[1])
        changed[place] ^= 0x10
        found = read(tmp_path, THREE[0] + bytes(changed) + THREE[2])
        assert [head_of(row) for row in found] == [HEADS[0], ("rejected", 1), HEADS[3]]
        assert found[1].reason == reader.CRC


def test_a_changed_record_in_a_compressed_batch_is_unread(tmp_path: Path) -> None:
    """The CRC of each record in a compressed batch of format 0 is checked: a wrong one rejects the record alone."""
    inner = bytearray(batch(0, [commit(0, 5)], 0) + batch(1, [commit(1, 6)], 0))
    inner[-1] ^= 1
    data = _wrapped(bytes(inner))
    assert [(head_of(row), row.reason) for row in read(tmp_path, data)] == [
        (("commit", 0), None),
        (("unread", 1), reader.RECORD_CRC),
    ]


def _wrapped(inner: bytes) -> bytes:
    """Return a gzip wrapper message of format 0 around a message set."""
    import gzip

    value = gzip.compress(inner)
    rest = struct.pack(">bbii", 0, GZIP, -1, len(value)) + value
    return struct.pack(">qiI", 1, len(rest) + 4, zlib.crc32(rest)) + rest


def test_reserved_zeros_end_a_segment(tmp_path: Path) -> None:
    """Zeros after the last batch are one rejected row with their number; zeros with a byte after them are no batch."""
    found = read(tmp_path, THREE[0] + bytes(5000))
    assert [(row.kind, row.length, row.reason) for row in found[1:]] == [("rejected", 5000, reader.ZEROS)]
    assert [row.reason for row in read(tmp_path, THREE[0] + bytes(5000) + b"x")[1:]] == [reader.NO_BATCH]


def offset_of(value: bytes | None) -> int | None:
    """Return the offset in the value of a commit, None for a tombstone."""
    return None if value is None else decode("offset_value", value)[1]["offset"]


@pytest.mark.parametrize("codec", [5, 7])
def test_an_unknown_codec_is_named(tmp_path: Path, codec: int) -> None:
    """A batch with a codec that Kafka does not have is rejected with the codec's number; the batch after it is read."""
    found = read(tmp_path, with_attributes(THREE[1], codec) + THREE[2])
    assert [head_of(row) for row in found] == [("rejected", 1), HEADS[3]]
    assert found[0].reason == reader.NO_CODEC.format(codec)


@pytest.mark.parametrize("codec", range(1, 5))
def test_bytes_that_a_codec_cannot_read_reject_their_batch(tmp_path: Path, codec: int) -> None:
    """A batch whose CRC fits but whose records are not compressed with the codec of its header is rejected as damaged."""
    found = read(tmp_path, with_attributes(THREE[1], codec) + THREE[2])
    assert [head_of(row) for row in found] == [("rejected", 1), HEADS[3]]
    assert found[0].reason == reader.DAMAGED


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize(
    ("codec", "formats"), [("NONE", "012"), ("GZIP", "012"), ("SNAPPY", "012"), ("LZ4", "012"), ("ZSTD", "2")]
)
def test_batches_of_kafkas_classes_are_read(tmp_path: Path, codec: str, formats: str) -> None:
    """Batches that the classes of Kafka 2.8.2 write with each codec in each format give offset, key and value of each record."""
    # The last batch has 3 MB, which no codec writes as one block. In format 0, Kafka's lz4 has another checksum (KAFKA-3160).
    parts = [
        [commit(0, 5)],
        [commit(n, None if n % 3 else n) for n in range(500)],
        [commit(n, n, topic="t" * 200) for n in range(9000)],
    ]
    written = kafka_batches(parts, codec, formats)
    for message_format in formats:
        found = read(tmp_path, b"".join(written[message_format]))
        expected = [(n, offset_of(value)) for part in parts for n, (_, value) in enumerate(part)]
        assert [(row.log_offset, (row.fields or {}).get("offset")) for row in found] == expected


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, b"v", reader.NO_KEY),
        (b"\0", b"v", reader.NO_SHORT),
        (b"\0\5\0\1g", b"v", reader.OTHER_KEY.format(5)),
        (commit(0, 5)[0], b"\0\4\0", "The record cannot be read: there is no version 4 of offset_value; there are 0, 1, 2, 3."),
        (commit(0, 5)[0], b"\0\3\0", "The record cannot be read: a number should follow, but 1 bytes do."),
    ],
)  # fmt: skip
def test_a_record_that_cannot_be_read_has_a_reason(tmp_path: Path, key: Any, value: Any, reason: str) -> None:
    """A key or value that is foreign, of a later version or damaged is unread with its offset; the next record is read."""
    found = read(tmp_path, batch(8, [(key, value), commit(0, 5)]))
    assert [head_of(row) for row in found] == [("unread", 8), ("commit", 9)]
    assert found[0].reason == reason


def test_a_subscription_that_cannot_be_read_leaves_its_member(tmp_path: Path) -> None:
    """A member with damaged bytes is in the row of its group, without topics and partitions."""
    member = {"member_id": "m", "client_id": "c", "client_host": "/h", "rebalance_timeout": 1, "session_timeout": 1}
    head = {"protocol_type": "consumer", "generation": 1, "protocol": "range", "leader": "m"}
    value = encode("group_value", 1, {**head, "members": [member | {"subscription": b"\0\0\0", "assignment": b"\xff"}]})
    (row,) = read(tmp_path, batch(0, [(group()[0], value)]))
    assert row.fields is not None
    assert [(found["member_id"], found["topics"], found["partitions"]) for found in row.fields["members"]] == [("m", None, None)]


def test_the_end_of_a_transaction_is_a_marker(tmp_path: Path) -> None:
    """Control batches give markers with their producer; records of a transaction have its producer, other records none."""
    data = batch(0, [commit(0, 5)], producer=9) + marker(1, 9, 1) + marker(2, 9, 0) + THREE[2]
    found = [(row.kind, row.producer_id, row.is_commit) for row in read(tmp_path, data)]
    assert found == [("commit", 9, None), ("marker", 9, True), ("marker", 9, False), ("group", None, None)]


@given(st.binary(max_size=200), st.integers(0, sum(map(len, THREE))), st.integers(0, 200))
def test_any_bytes_are_rows(tmp_path_factory: pytest.TempPathFactory, noise: bytes, place: int, replaced: int) -> None:
    """Whatever bytes replace a part of a segment, each byte is in a row, and rows without fields have a reason."""
    data = b"".join(THREE)
    found = read(tmp_path_factory.getbasetemp(), data[:place] + noise + data[place + replaced :])
    assert all(row.reason for row in found if row.kind in ("unread", "rejected"))
    assert all(row.fields for row in found if row.kind in ("commit", "group", "tombstone"))


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """A segment of 32 MB is read with less than 2 MB of memory, because only one batch is kept at a time."""
    path = tmp_path / "00000000000000000000.log"
    one = batch(0, [(commit(0, 5)[0], b"\0\3" + bytes(100_000))], 1)
    with path.open("wb") as file:
        for _ in range(320):
            file.write(one)
    tracemalloc.start()
    try:
        count = sum(1 for _ in rows(Segment(path, path.stat().st_size, None)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (count, peak < 2 * 2**20) == (320, True)


@pytest.mark.parametrize("suffix", ["delete", "future", "stray"])
def test_the_log_of_a_deleted_or_moving_partition_of_another_topic_is_no_segment(tmp_path: Path, suffix: str) -> None:
    """A broker renames the folder of such a log to "orders-1.8750b591-delete", as LogManager does; its files are left out."""
    name = "00000000000000000007.log"
    for folder in ("__consumer_offsets-3", f"orders-1.8750b59155a748e1988bdde4621c1720-{suffix}"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_bytes(b"")
    assert [segment.log_partition for segment in segments([tmp_path])] == [3]


def test_segments_are_found_by_name_and_folder(tmp_path: Path) -> None:
    """Of a folder the segments of the offsets topic are read, not those of other topics nor other files."""
    name = "00000000000000000007.log"
    wanted = ["__consumer_offsets-3/" + name, "copied/__consumer_offsets-21.log", "copied/" + name]
    for place in [*wanted, "orders-1/" + name, "__consumer_offsets-3/leader-epoch-checkpoint", "server.log"]:
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_bytes(b"")
    found = {str(segment.path.relative_to(tmp_path)): segment.log_partition for segment in segments([tmp_path])}
    assert found == {wanted[0]: 3, wanted[1]: 21, wanted[2]: None}
    assert [segment.path.name for segment in segments([tmp_path / "server.log"])] == ["server.log"]
    with pytest.raises(UserError, match=r"There is no segment in .*orders-1: name a folder such as __consumer_offsets-21"):
        segments([tmp_path / "orders-1"])
    with pytest.raises(UserError, match="There is no file or folder"):
        segments([tmp_path / "nothing"])
