"""The order in which one batch takes brokers out of an ISR, held against Scala's own lists and Kafka's recordings."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from kcontrol.controller.earlier.scala_hash_order import in_order_of_hashes, order_of_the_caller, replica_hash
from kcontrol.controller.replica_machine_order import in_order_of_champ
from kcontrol.core.model import PartitionReplica, TopicPartition
from tests.golden.test_golden import recorded


def states(release: str) -> list[dict[str, Any]]:
    """What was written to the state znode while t-0 moved from 1,2,3 to 4,5,6, in order."""
    writes = recorded(f"{release}/reassign-123-456")["steps"][2]["writes"]
    return [write["data"] for write in writes if str(write.get("path")).endswith("/t/partitions/0/state")]


def test_few_brokers_leave_as_a_map_of_sixteen_buckets_has_them() -> None:
    """Up to four brokers come in the order in which those of the recorded reassignment left: 2.4.1's is not that of their ids."""
    isrs = [set(state["isr"]) for state in states("2.4.1")]
    left = [next(iter(before - after)) for before, after in itertools.pairwise(isrs) if before > after]
    assert in_order_of_hashes({1, 2, 3}) == left == [2, 1, 3]


def test_more_brokers_come_as_a_trie_has_them() -> None:
    """Five or more come in the order in which Kafka's own immutable sets, of equal hashes, were written to ZooKeeper."""
    sets = {json.dumps(state["isr"]) for release in ("2.4.1", "2.8.2") for state in states(release) if len(state["isr"]) > 4}
    assert len(sets) >= 4
    assert [isr for isr in map(json.loads, sets) if in_order_of_hashes(isr) != isr] == []


def test_the_order_since_2_6_is_that_of_scalas_own_group_by() -> None:
    """All subsets of 1 to 9 and three long ranges come in the order that Scala 2.13.5 lists them in after `groupBy`."""
    # Source: tests/core/scala/GroupBy.java, which printed the lists with the Scala library of Kafka 2.8.2.
    lines = (Path(__file__).parent / "scala" / "group_by_2_13_5.txt").read_text().splitlines()
    listed = [[int(broker_id) for broker_id in line.split()] for line in lines]
    assert len(listed) == 2**9 - 1 + 3
    assert [(brokers, ours) for brokers in listed if (ours := in_order_of_champ(sorted(brokers))) != brokers] == []


def test_the_hash_of_a_replica_is_that_of_kafkas_own_class() -> None:
    """Each of 36 replicas has the hash of PartitionAndReplica of Kafka 0.10.2.2."""
    # Source: tests/core/scala/ReplicaHashes.java, which printed the hashes with the jars of that release.
    lines = (Path(__file__).parent / "scala" / "replica_hashes_0_10_2_2.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 36
    for line in lines:
        topic, partition, broker_id, hashed = line.split()
        ours = replica_hash(PartitionReplica(TopicPartition(topic, int(partition)), int(broker_id)))
        assert ours == int(hashed) & 0xFFFF_FFFF, line


def test_replicas_of_a_set_of_more_than_four_are_not_walked_broker_by_broker() -> None:
    """Where six replicas are alive those of a deleted topic leave in the recorded order, which is not broker by broker."""
    # Source: the recording replica-hashes-deleted of Kafka 0.10.2.2.
    transitions = recorded("more/0.10.2.2/replica-hashes-deleted")["steps"][3]["transitions"]
    moves = [move for move in transitions if (move["machine"], move["to"]) == ("replica", "Offline")]
    left = [PartitionReplica.parse(move["subject"]) for move in moves]
    by_broker: dict[int, list[PartitionReplica]] = {}
    for replica in sorted(left):
        by_broker.setdefault(replica.broker_id, []).append(replica)
    walked = [replica for group in order_of_the_caller(by_broker, (1, 2, 3, 4, 5), 6) for replica in group]
    assert walked == left
    assert [replica for group in order_of_the_caller(by_broker, (1, 2, 3, 4, 5), 4) for replica in group] != left
