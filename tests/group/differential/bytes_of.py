"""The bytes of what clients send and of what another coordinator may have written, of any version."""

from __future__ import annotations

from typing import Any

from kcontrol.group.offsets_topic_records import encode

Json = dict[str, Any]


def subscription(topics: list[str], version: int = 0) -> str:
    """Return a consumer's metadata as hex; from version 1 on with no owned partitions."""
    fields = {"topics": topics, "user_data": None, "owned": []}
    data = encode("subscription", min(version, 1), fields)
    return (version.to_bytes(2, "big") + data[2:]).hex()


def offset_record(group: str, partition: str, version: int, fields: Json | None) -> list[str | None]:
    """Return key and value of an offset's record as hex; without fields it is a tombstone."""
    topic, _, number = partition.rpartition("-")
    key = encode("offset_key", 1, {"group": group, "topic": topic, "partition": int(number)})
    return [key.hex(), None if fields is None else encode("offset_value", version, fields).hex()]


def group_record(group: str, version: int, fields: Json | None) -> list[str | None]:
    """Return key and value of a group's record as hex; without fields it is a tombstone."""
    key = encode("group_key", 2, {"group": group})
    return [key.hex(), None if fields is None else encode("group_value", version, fields).hex()]
