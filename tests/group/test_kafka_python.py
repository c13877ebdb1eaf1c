"""The records that a coordinator writes to the offsets topic, read by kafka-python: its record batches and its field types.

kafka-python frames the records in batches of all three formats and reads them back. The fields of keys and values are listed
here a second time, by `kafka.protocol.old.types`, from OffsetCommitKey.json, OffsetCommitValue.json, GroupMetadataKey.json and
GroupMetadataValue.json (2.8).
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.protocol.old.types import Array, Bytes, Int16, Int32, Int64, Schema, String
from kafka.record import MemoryRecords, MemoryRecordsBuilder

from kcontrol.group.offsets_topic_records import OffsetsTopicRecord, encode
from tests.core.support import settle
from tests.group.test_coordinators_in_a_cluster import T, stable

TEXT = String("utf-8")
HEAD = [("protocol_type", TEXT), ("generation", Int32), ("protocol", TEXT), ("leader", TEXT)]
CLIENT = [("client_id", TEXT), ("client_host", TEXT)]
TAIL = [("session_timeout", Int32), ("subscription", Bytes), ("assignment", Bytes)]
NAME, REBALANCE, SINCE = [("member_id", TEXT)], [("rebalance_timeout", Int32)], [("current_state_timestamp", Int64)]
INSTANCE, OFFSET = [("group_instance_id", TEXT)], [("offset", Int64)]
COMMITTED = [("metadata", TEXT), ("commit_timestamp", Int64)]
MEMBERS = {
    0: [*NAME, *CLIENT, *TAIL], 1: [*NAME, *CLIENT, *REBALANCE, *TAIL], 2: [*NAME, *CLIENT, *REBALANCE, *TAIL],
    3: [*NAME, *INSTANCE, *CLIENT, *REBALANCE, *TAIL],
}  # fmt: skip
OF_OFFSET = [("group", TEXT), ("topic", TEXT), ("partition", Int32)]
KEYS = {0: OF_OFFSET, 1: OF_OFFSET, 2: [("group", TEXT)]}
VALUES = {
    ("offset_value", 0): [*OFFSET, *COMMITTED],
    ("offset_value", 1): [*OFFSET, *COMMITTED, ("expire_timestamp", Int64)],
    ("offset_value", 2): [*OFFSET, *COMMITTED],
    ("offset_value", 3): [*OFFSET, ("leader_epoch", Int32), *COMMITTED],
    **{
        ("group_value", n): [*HEAD, *(SINCE if n > 1 else []), ("members", Array(*fields))]
        for n, fields in MEMBERS.items()
    },
}  # fmt: skip


def parsed(fields: list[tuple[str, Any]], data: bytes) -> dict[str, Any]:
    """Return the fields that kafka-python reads after the version; every byte is used."""
    stream = BytesIO(data[2:])
    row = dict(zip([name for name, _ in fields], Schema(*fields).decode(stream), strict=True))
    assert stream.read() == b""
    if "members" in row:
        version = Int16.decode(BytesIO(data))
        names = [name for name, _ in MEMBERS[version]]
        row["members"] = [dict(zip(names, each, strict=True)) for each in row["members"]]
    return row


def written(records: list[tuple[bytes, bytes | None]], magic: int) -> bytes:
    """Return records as one batch of the format `magic`."""
    batch = MemoryRecordsBuilder(magic, 0, 1 << 20)
    for key, value in records:
        assert batch.append(1_000, key, value)
    batch.close()
    return bytes(batch.buffer())


def read(data: bytes) -> list[tuple[bytes, bytes | None]]:
    """Return the keys and values of all batches, after a check of each batch's CRC."""
    found = []
    batches = MemoryRecords(data)
    while (batch := batches.next_batch()) is not None:
        assert batch.validate_crc()
        found += [(bytes(record.key), None if record.value is None else bytes(record.value)) for record in batch]
    return found


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize(
    ("release", "offset_version", "group_version"),
    [("0.9", 1, 0), ("0.10.2", 1, 1), ("1.1", 1, 1), ("2.4", 3, 3), ("2.8", 3, 3), ("3.9", 3, 3)],
)
def test_a_commit_written_here_is_read_by_kafka_python(release: str, offset_version: int, group_version: int, magic: int) -> None:
    """kafka-python reads the group, the topic, the partition, the offset, the generation and the members of a run's log."""
    world = stable(release)
    settle(world, ("commit", "a", "t-0", 7))
    log = [record for record in world.processes[1].driver.broker.logs[T].records if isinstance(record, OffsetsTopicRecord)]
    found = read(written([(record.key, record.data) for record in log], magic))
    assert len(found) == len(log)
    key, value = found[-1]
    assert value is not None and [Int16.decode(BytesIO(data)) for data in (key, value)] == [1, offset_version]
    assert parsed(KEYS[1], key) == {"group": "g", "topic": "t", "partition": 0}
    assert parsed(VALUES["offset_value", offset_version], value)["offset"] == 7
    group = next(value for key, value in reversed(found) if key[:2] == b"\0\2")
    assert group is not None and Int16.decode(BytesIO(group)) == group_version
    fields = parsed(VALUES["group_value", group_version], group)
    state = world.processes[1].driver.group
    assert state is not None and fields["generation"] == state.groups["g"].generation
    assert {each["member_id"]: each["assignment"] for each in fields["members"]} == {
        me.member_id: me.assignment for me in world.consumers.values()
    }
    assigned = [ConsumerProtocolAssignment.decode(each["assignment"]).partitions() for each in fields["members"]]
    assert sorted((tp.topic, tp.partition) for each in assigned for tp in each) == [("t", 0), ("t", 1), ("t", 2)]
    subscribed = [ConsumerProtocolSubscription.decode(each["subscription"]).topics for each in fields["members"]]
    assert subscribed == [["t"], ["t"]]


MEMBER = {"member_id": "m-ß", "group_instance_id": "one", "client_id": "c", "client_host": "/h", "rebalance_timeout": 60_000,
          "session_timeout": 10_000, "subscription": b"\0\1", "assignment": b""}  # fmt: skip
FIELDS: dict[str, dict[str, Any]] = {
    "offset_value": {"offset": 1 << 40, "leader_epoch": 5, "metadata": "für", "commit_timestamp": -1, "expire_timestamp": 9},
    "group_value": {"protocol_type": "consumer", "generation": 3, "protocol": None, "leader": None,
                    "current_state_timestamp": 1 << 41, "members": [MEMBER, {**MEMBER, "group_instance_id": None}]},
}  # fmt: skip


@pytest.mark.parametrize(("record", "version"), list(VALUES))
def test_every_version_of_a_value_has_the_fields_that_kafka_python_reads(record: str, version: int) -> None:
    """A value of each version, also of those that a release of the lab no longer writes, has its fields in Kafka's order."""
    found = parsed(VALUES[record, version], encode(record, version, FIELDS[record]))
    given = {name: FIELDS[record][name] for name, _ in VALUES[record, version]}
    if "members" in given:
        names = [name for name, _ in MEMBERS[version]]
        given["members"] = [{name: each[name] for name in names} for each in given["members"]]
    assert found == given


@pytest.mark.parametrize(("record", "version"), [("offset_key", 0), ("offset_key", 1), ("group_key", 2)])
def test_every_version_of_a_key_has_the_fields_that_kafka_python_reads(record: str, version: int) -> None:
    """A key of each version has its fields in Kafka's order."""
    fields = {"group": "g-ß", "topic": "t", "partition": 1 << 20}
    given = {name: fields[name] for name, _ in KEYS[version]}
    assert parsed(KEYS[version], encode(record, version, given)) == given
