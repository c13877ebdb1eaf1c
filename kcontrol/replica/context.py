"""What a broker knows: the replicas that it hosts, and who it has been told lives and leads.

Source: ReplicaManager.scala, Partition.scala and MetadataCache.scala (2.8).
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kcontrol.config import BrokerConfig
from kcontrol.generations import Rules
from kcontrol.model import LeaderAndIsr, TopicPartition
from kcontrol.replica.log import ReplicaLog


class HostedPartition(NamedTuple):
    """One replica on this broker. `pending_isr` is what its leader has asked the controller for and not been answered yet."""

    value: LeaderAndIsr
    replicas: tuple[int, ...]
    pending_isr: tuple[int, ...] = ()

    @classmethod
    def told(cls, entry: Any) -> HostedPartition:
        """What a broker takes over from a LeaderAndIsr entry."""
        value = LeaderAndIsr(entry.leader, entry.isr, entry.leader_epoch, entry.zk_version, entry.controller_epoch)
        return cls(value, entry.replicas)


@dataclass(frozen=True, slots=True)
class BrokerContext:
    """One broker beside its controller module; the driver alone writes it. Only where it `keeps_logs` has it a data side.

    `unfetched` are the partitions whose leaders it was told only when it was stopping already.
    """

    broker_id: int
    rules: Rules
    config: BrokerConfig = field(default_factory=BrokerConfig)
    keeps_logs: bool = False

    broker_epoch: int = -1
    cluster_id: str = ""
    shutdown_attempts: int = 0
    isr_changes: AbstractSet[TopicPartition] = field(default_factory=set)
    controller_id: int = -1
    controller_epoch: int = 0
    live_brokers: AbstractSet[int] = field(default_factory=set)
    metadata: Mapping[TopicPartition, Any] = field(default_factory=dict)
    hosted: Mapping[TopicPartition, HostedPartition] = field(default_factory=dict)
    unfetched: AbstractSet[TopicPartition] = field(default_factory=set)
    refused: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)  # followers, as INELIGIBLE_REPLICA
    offline_partitions: AbstractSet[TopicPartition] = field(default_factory=set)
    logs: Mapping[TopicPartition, ReplicaLog] = field(default_factory=dict)

    def leads(self, tp: TopicPartition) -> bool:
        held = self.hosted.get(tp)
        return held is not None and held.value.leader == self.broker_id

    def fetches(self, tp: TopicPartition) -> bool:
        held = self.hosted.get(tp)
        return held is not None and held.value.leader != self.broker_id and tp not in self.unfetched

    def takes_in(self, tp: TopicPartition, replica_id: int) -> bool:
        """Whether a leader may want this follower in sync: since 3.3 only one that it takes for alive.

        Nor does it want one that it was refused before it has heard of something else: in Kafka it asks with each fetch, in vain.
        Source: Partition.isReplicaIsrEligible (3.9).
        """
        return not self.rules.isr_of_the_living or (
            replica_id in self.live_brokers and replica_id not in self.refused.get(tp, ())
        )

    def copy(self) -> BrokerContext:
        """An independent twin; the values inside are shared, since they are immutable."""
        twin = object.__new__(BrokerContext)
        for name in BrokerContext.__slots__:
            value = getattr(self, name)
            object.__setattr__(twin, name, value.copy() if isinstance(value, dict | set) else value)
        return twin
