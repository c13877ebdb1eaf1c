"""The order in which Java's hash maps and hash sets walk partitions: where nothing else decides, it does.

Source: hashCode of TopicPartition.java (2.8), java.util.HashMap.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcontrol.group.placement import java_hash
from kcontrol.model import TopicPartition

FIRST_BUCKETS, LOAD = 16, 0.75
PRIME = 31


def bucket(tp: TopicPartition, buckets: int) -> int:
    """Return a partition's bucket in a table of 2^n buckets: the hash's upper half counts with the lower."""
    value = (PRIME * (PRIME + tp.partition) + java_hash(tp.topic)) & 0xFFFF_FFFF
    return (value ^ value >> 16) & (buckets - 1)


def in_hash_order(partitions: Iterable[TopicPartition], most: int = 0) -> list[TopicPartition]:
    """Return partitions as a map walks them that got them in this order and has held `most` at once, or all of these.

    A table never shrinks; in a bucket they stay as they came.
    """
    found = list(dict.fromkeys(partitions))
    buckets = FIRST_BUCKETS
    while max(most, len(found)) > LOAD * buckets:
        buckets *= 2
    return sorted(found, key=lambda tp: bucket(tp, buckets))
