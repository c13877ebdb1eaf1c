"""Computes which partition of the offsets topic holds a group.

Source: GroupMetadataManager.partitionFor, Utils.abs (0.9, 2.8).
"""

from kcontrol.core.java_hash import java_hash

OFFSETS_TOPIC = "__consumer_offsets"


def partition_for(group_id: str, partitions: int) -> int:
    """`partitions` is the number of partitions of the offsets topic."""
    value = java_hash(group_id)
    # The absolute value of the smallest integer counts as 0, as in Kafka.
    return 0 if value == -(1 << 31) else abs(value) % partitions
