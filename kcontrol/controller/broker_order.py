"""In which order the replica machine goes through brokers: it groups replicas by broker in a map, and takes the map's order.

It shows where one batch takes several members out of the same ISR. Kafka up to 1.0 has no such map; from 1.1 to 2.5 it is built
for Scala 2.11 and 2.12, whose hash maps scatter even small ids, and from 2.6 on for 2.13, where they ascend.
Source: ReplicaStateMachine.handleStateChanges, gradle.properties (1.1 to 2.8); mutable.HashMap, immutable.HashMap (Scala 2.12).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

WORD = 0xFFFF_FFFF
MULTIPLIER = 0x9E37_75CD
BUCKET_BITS = 4  # a new mutable map has 16 buckets
SMALL_MAP = 4  # an immutable map of up to four entries keeps the order in which they came


def in_order_of_hashes(brokers: Collection[int]) -> list[int]:
    """Brokers as `groupBy` of Scala 2.12 yields them: few from the last bucket to the first, more as a trie has them."""
    if len(brokers) <= SMALL_MAP:
        return sorted(brokers, key=_bucket, reverse=True)
    return sorted(brokers, key=way_down_the_trie)


def _bucket(broker_id: int) -> int:
    """Where a mutable map of 16 buckets keeps a number. Source: mutable.HashTable.HashUtils.improve, byteswap32."""
    swapped = int.from_bytes((broker_id * MULTIPLIER & WORD).to_bytes(4, "little"), "big") * MULTIPLIER & WORD
    rotated = swapped >> BUCKET_BITS | swapped << (32 - BUCKET_BITS) & WORD
    return rotated >> (32 - BUCKET_BITS)


def way_down_the_trie(broker_id: int) -> tuple[int, ...]:
    """The place of a number at each level of Scala's immutable maps and sets, five bits a level from the lowest.

    Source: scala.collection.immutable.HashMap.improve, HashSet.improve (2.8 to 2.12).
    """
    mixed = broker_id + (~(broker_id << 9) & WORD) & WORD
    mixed ^= mixed >> 14
    mixed = mixed + (mixed << 4) & WORD
    mixed ^= mixed >> 10
    return tuple(mixed >> shift & 31 for shift in range(0, 32, 5))


BROKER_ORDERS: dict[str, Callable[[Collection[int]], list[int]]] = {"by id": sorted, "hashed": in_order_of_hashes}
