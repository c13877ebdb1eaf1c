"""The order in which Java's hash maps and hash sets return partitions.

Sticky assignors iterate over such maps, so this order decides which of several equal partitions
they assign or move first.

Source: hashCode of TopicPartition.java (2.8), java.util.HashMap.
"""

from collections.abc import Iterable

from kcontrol.core.java_hash import java_hash
from kcontrol.core.model import TopicPartition

FIRST_BUCKETS, LOAD = 16, 0.75
PRIME = 31


def bucket(tp: TopicPartition, buckets: int) -> int:
    """Return the bucket of a partition in a hash table with `buckets` buckets, a power of two.

    The upper half of the hash counts too: it is mixed with the lower half. Source: HashMap.hash.
    """
    value = (PRIME * (PRIME + tp.partition) + java_hash(tp.topic)) & 0xFFFF_FFFF
    return (value ^ value >> 16) & (buckets - 1)


def in_java_hash_map_order(
    partitions: Iterable[TopicPartition], largest_size: int = 0
) -> list[TopicPartition]:
    """`largest_size`: the most partitions that the map has held, if more than now."""
    found = list(dict.fromkeys(partitions))
    buckets = FIRST_BUCKETS
    while max(largest_size, len(found)) > LOAD * buckets:
        # A Java map never shrinks its table.
        buckets *= 2
    # Partitions of one bucket stay in the order of insertion.
    return sorted(found, key=lambda tp: bucket(tp, buckets))
