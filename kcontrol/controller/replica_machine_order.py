"""The order in which the replica machine visits brokers, since 2.6: the order of a Scala 2.13 map.

A state znode shows this order if one batch removes several replicas from its ISR: each removal is a
write of its own.

Source: ReplicaStateMachine.handleStateChanges and gradle.properties (2.6 to 3.9); immutable.HashMap
(Scala 2.13).
"""

# Kafka groups replicas by broker (`groupBy`) and iterates over the map: a hash trie (CHAMP), whose
# node lists its own entries before the nodes below it. Earlier releases:
# `earlier/scala_hash_order.py`.
from collections import defaultdict
from collections.abc import Iterable, Mapping

from kcontrol.core.model import PartitionReplica

WORD = 0xFFFF_FFFF

Replicas = list[PartitionReplica]


def champ_order(by_broker: Mapping[int, Replicas]) -> list[Replicas]:
    """Return the replicas, a list per broker, in the order of Scala 2.13's groupBy."""
    return [by_broker[broker_id] for broker_id in in_order_of_champ(sorted(by_broker))]


def in_order_of_champ(brokers: Iterable[int], level: int = 0) -> list[int]:
    """Return broker ids in the order of Scala 2.13's `groupBy`, which builds a hash trie (CHAMP).

    `level` is the depth of the node for `brokers` in this trie, 0 for the root.

    >>> in_order_of_champ((1, 2, 3, 4, 5, 6))
    [5, 1, 6, 2, 3, 4]

    Source: scala.collection.immutable.HashMap, BitmapIndexedMapNode (2.13).
    """
    slots: dict[int, list[int]] = defaultdict(list)
    for broker_id in brokers:
        slots[trie_slots(broker_id)[level]].append(broker_id)
    nodes = [slots[slot] for slot in sorted(slots)]
    own = [broker_id for node in nodes if len(node) == 1 for broker_id in node]
    inner = (in_order_of_champ(node, level + 1) for node in nodes if len(node) > 1)
    return own + [broker_id for node in inner for broker_id in node]


def trie_slots(hashed: int) -> tuple[int, ...]:
    """Return seven numbers from 0 to 31: the slot of `hashed` at each level of a Scala hash trie.

    `hashed` is a hash code; Scala mixes its bits, and each level takes the next five.

    Source: scala.collection.immutable.HashMap.improve, HashSet.improve (2.8 to 2.12);
    collection.Hashing.improve (2.13).
    """
    mixed = hashed + (~(hashed << 9) & WORD) & WORD
    mixed ^= mixed >> 14
    mixed = mixed + (mixed << 4) & WORD
    mixed ^= mixed >> 10
    return tuple(mixed >> shift & 31 for shift in range(0, 32, 5))
