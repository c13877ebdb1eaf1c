"""Which partition of the offsets topic holds a group. Source: GroupMetadataManager.partitionFor, Utils.abs (0.9, 2.8)."""

from __future__ import annotations

OFFSETS_TOPIC = "__consumer_offsets"


def java_hash(text: str) -> int:
    """Java's hash of a string: over UTF-16 code units, 32 bits with wrap-around, signed."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFF_FFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for(group_id: str, partitions: int) -> int:
    """The partition of a group. The absolute value of the smallest integer is 0 here."""
    value = java_hash(group_id)
    return 0 if value == -(1 << 31) else abs(value) % partitions
