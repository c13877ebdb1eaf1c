"""The order in which the replica machine visits replicas and brokers, for releases up to 2.5.

It is the order of a collection of Scala (up to 2.12):

* Up to 1.0 the machine iterates over the Set of replicas that a handler of Kafka passes. A Set of
  up to four replicas keeps the order in which they were added (here `broker_order`); broker ids
  that come from ZooKeeper ascend. A larger Set is a hash trie in the order of the hashes of
  replicas. A small Set that the handler has filtered from a larger Set (of `set_size` replicas)
  keeps the order of hashes.
* From 1.1 to 2.5 the machine groups replicas by broker (`groupBy`), which builds a mutable map
  first and an immutable map from it. An immutable map of up to four entries keeps the order of the
  mutable map's buckets; a larger map is a hash trie.

Source: ReplicaStateMachine.handleStateChanges and gradle.properties (0.8.1 to 2.5);
immutable.HashSet, mutable.HashMap and immutable.HashMap (Scala 2.12);
TopicDeletionManager.startReplicaDeletion, KafkaController.onBrokerFailure and
ControllerContext.allLiveReplicas (0.8.1 to 1.0); the hash of a case class (Scala 2.10 to 2.12).
"""

from collections.abc import Collection, Iterable, Mapping

from kcontrol.controller.replica_machine_order import WORD, Replicas, trie_slots
from kcontrol.core.java_hash import java_hash
from kcontrol.core.model import PartitionReplica

MULTIPLIER = 0x9E37_75CD
BUCKET_BITS = 4  # a new mutable map has 16 buckets
SMALL = 4  # an immutable map or set of up to four entries keeps the order in which they came


def order_of_the_caller(
    replicas_by_broker: Mapping[int, Replicas], broker_order: Iterable[int], set_size: int
) -> list[Replicas]:
    """Return the replicas as one group, in the order of Kafka's Scala Set.

    Up to four replicas come in `broker_order` (ascending if empty). More replicas, or replicas that
    Kafka has taken from a Set of more (`set_size`), come in the order of their hashes.
    """
    # A Set of up to four replicas keeps the order of insertion: broker by broker.
    brokers = _order_of_brokers(replicas_by_broker, broker_order)
    replicas = [replica for broker_id in brokers for replica in replicas_by_broker[broker_id]]
    if max(set_size, len(replicas)) > SMALL:
        replicas.sort(key=lambda replica: trie_slots(replica_hash(replica)))
    return [replicas]


def order_of_hashes(
    replicas_by_broker: Mapping[int, Replicas], broker_order: Iterable[int], set_size: int
) -> list[Replicas]:
    """Return the replicas of each broker as a list, in the order of a Scala 2.12 map by broker id.

    Kafka adds the brokers to this map in `broker_order` (ascending if empty). `set_size` is
    ignored.
    """
    brokers = in_order_of_hashes(_order_of_brokers(replicas_by_broker, broker_order))
    return [replicas_by_broker[broker_id] for broker_id in brokers]


def _order_of_brokers(brokers: Collection[int], broker_order: Iterable[int]) -> list[int]:
    return [
        broker_id for broker_id in in_set_order(broker_order) if broker_id in brokers
    ] or sorted(brokers)


def replica_hash(replica: PartitionReplica) -> int:
    """Return the hash of Kafka's PartitionAndReplica(topic, partition, replica), unsigned.

    Source: KafkaController.PartitionAndReplica (0.8.1 to 1.0); MurmurHash3.mix, finalizeHash (Scala
    2.10 to 2.12).
    """
    (topic, partition), broker_id = replica
    value = 0xCAFE_BABE  # the seed of case classes
    for member in (java_hash(topic), partition, broker_id):
        scrambled = _rotated(member * 0xCC9E_2D51 & WORD, 15) * 0x1B87_3593 & WORD
        value = _rotated(value ^ scrambled, 13) * 5 + 0xE654_6B64 & WORD
    value ^= 3  # members
    value = (value ^ value >> 16) * 0x85EB_CA6B & WORD
    value = (value ^ value >> 13) * 0xC2B2_AE35 & WORD
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & WORD


def in_set_order(ids: Iterable[int]) -> tuple[int, ...]:
    """Return each id once, in the order of a Scala Set: as added for up to four ids, else by hash.

    >>> in_set_order((2, 3, 2, 1))
    (2, 3, 1)
    >>> in_set_order((4, 5, 6, 1, 2, 3))
    (5, 1, 6, 2, 3, 4)

    Source: scala.collection.immutable.HashTrieSet (2.8 to 2.12).
    """
    found = tuple(dict.fromkeys(ids))
    return found if len(found) <= SMALL else tuple(sorted(found, key=trie_slots))


def in_order_of_hashes(brokers: Collection[int]) -> list[int]:
    """Return broker ids in the order of the keys of a map that Scala 2.12's `groupBy` returns."""
    # `groupBy` fills a hash table, and copies it, last bucket first, to an immutable Map. A Map of
    # up to four brokers keeps this order; a larger Map is a hash trie, which iterates by hash.
    if len(brokers) <= SMALL:
        return sorted(brokers, key=_bucket, reverse=True)
    return sorted(brokers, key=trie_slots)


def _bucket(broker_id: int) -> int:
    """Return the bucket (0 to 15) of a broker id in a mutable map of Scala with 16 buckets.

    Source: mutable.HashTable.HashUtils.improve, byteswap32 (Scala 2.12).
    """
    product = (broker_id * MULTIPLIER & WORD).to_bytes(4, "little")
    swapped = int.from_bytes(product, "big") * MULTIPLIER & WORD
    rotated = swapped >> BUCKET_BITS | swapped << (32 - BUCKET_BITS) & WORD
    return rotated >> (32 - BUCKET_BITS)
