"""The order in which the replica machine walks brokers.

The order shows where one batch takes several members out of one ISR: each member leaves by a write of its own, and ZooKeeper
holds the states in between. Kafka does not choose an order. It walks a Scala collection, and the order of the collection
depends on the Scala version:

* Up to 1.0 the machine walks the set that its caller passes. A set of up to four entries keeps the order in which they were
  added; a larger set is a hash trie. Callers pass the order; broker ids that come from ZooKeeper ascend.
* From 1.1 on the machine groups replicas by broker (`groupBy`), which builds a mutable map first and an immutable map from it.
  With Scala 2.12 (1.1 to 2.5) an immutable map of up to four entries keeps the order of the mutable map's buckets; a larger
  map is a hash trie.
* With Scala 2.13 (2.6 on) `groupBy` always builds a trie of another form (CHAMP): a node lists its own entries before the
  nodes below it.

Source: ReplicaStateMachine.handleStateChanges and gradle.properties (0.8.1 to 3.9); immutable.HashSet, mutable.HashMap and
immutable.HashMap (Scala 2.12, 2.13).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence

WORD = 0xFFFF_FFFF
MULTIPLIER = 0x9E37_75CD
BUCKET_BITS = 4  # a new mutable map has 16 buckets
SMALL = 4  # an immutable map or set of up to four entries keeps the order in which they came


def in_set_order(ids: Iterable[int]) -> tuple[int, ...]:
    """Return each id once, in the order of Scala's immutable set: as added up to four ids, by hash from five on.

    >>> in_set_order((2, 3, 2, 1))
    (2, 3, 1)
    >>> in_set_order((4, 5, 6, 1, 2, 3))
    (5, 1, 6, 2, 3, 4)

    Source: scala.collection.immutable.HashTrieSet (2.8 to 2.12).
    """
    found = tuple(dict.fromkeys(ids))
    return found if len(found) <= SMALL else tuple(sorted(found, key=way_down_the_trie))


def in_order_of_hashes(brokers: Collection[int]) -> list[int]:
    """Return brokers as `groupBy` of Scala 2.12 lists them: up to four from the last bucket down, more as a trie has them."""
    if len(brokers) <= SMALL:
        return sorted(brokers, key=_bucket, reverse=True)
    return sorted(brokers, key=way_down_the_trie)


def in_order_of_champ(brokers: Iterable[int], level: int = 0) -> list[int]:
    """Return brokers as `groupBy` of Scala 2.13 lists them: of a node first its own entries by slot, then the nodes below it.

    >>> in_order_of_champ((1, 2, 3, 4, 5, 6))
    [5, 1, 6, 2, 3, 4]

    Source: scala.collection.immutable.HashMap, BitmapIndexedMapNode (2.13).
    """
    slots: dict[int, list[int]] = defaultdict(list)
    for broker_id in brokers:
        slots[way_down_the_trie(broker_id)[level]].append(broker_id)
    nodes = [slots[slot] for slot in sorted(slots)]
    own = [broker_id for node in nodes if len(node) == 1 for broker_id in node]
    return own + [broker_id for node in nodes if len(node) > 1 for broker_id in in_order_of_champ(node, level + 1)]


def _bucket(broker_id: int) -> int:
    """Return the bucket of a number in a mutable map of 16. Source: mutable.HashTable.HashUtils.improve, byteswap32."""
    swapped = int.from_bytes((broker_id * MULTIPLIER & WORD).to_bytes(4, "little"), "big") * MULTIPLIER & WORD
    rotated = swapped >> BUCKET_BITS | swapped << (32 - BUCKET_BITS) & WORD
    return rotated >> (32 - BUCKET_BITS)


def way_down_the_trie(broker_id: int) -> tuple[int, ...]:
    """Return the slot of a number at each level of Scala's immutable maps and sets, five bits a level from the lowest.

    Source: scala.collection.immutable.HashMap.improve, HashSet.improve (2.8 to 2.12); collection.Hashing.improve (2.13).
    """
    mixed = broker_id + (~(broker_id << 9) & WORD) & WORD
    mixed ^= mixed >> 14
    mixed = mixed + (mixed << 4) & WORD
    mixed ^= mixed >> 10
    return tuple(mixed >> shift & 31 for shift in range(0, 32, 5))


BROKER_ORDERS: dict[str, Callable[[Sequence[int]], Sequence[int]]] = {
    "as given": list,
    "hashed": in_order_of_hashes,
    "champ": in_order_of_champ,
}
