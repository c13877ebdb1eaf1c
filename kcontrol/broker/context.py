"""The memory of a broker: the replicas that it hosts, and the metadata that controllers have sent.

Source: ReplicaManager.scala, Partition.scala and MetadataCache.scala (2.8).
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.broker.log import ReplicaLog
from kcontrol.core.controller_rules import Rules
from kcontrol.core.effects import ApplyRequest, Context, UpdateContext
from kcontrol.core.model import LeaderAndIsr, TopicPartition


class HostedPartition(NamedTuple):
    """One replica on this broker: the partition's leadership and replicas.

    `pending_isr` is the ISR that the leader has requested, until the controller has responded.
    """

    leadership: LeaderAndIsr
    replicas: tuple[int, ...]
    pending_isr: tuple[int, ...] = ()

    @classmethod
    def from_request(cls, entry: Any) -> HostedPartition:
        """Return the replica after a LeaderAndIsr request with this entry for its partition."""
        head = entry.leader, entry.isr, entry.leader_epoch, entry.zk_version
        return cls(LeaderAndIsr(*head, entry.controller_epoch), entry.replicas)


@dataclass(frozen=True, slots=True)
class BrokerContext(Context):
    """The memory of one broker beside its controller module; only the driver changes it.

    `logs` is empty unless the broker `keeps_logs`. `unfetched_partitions` are the partitions that
    the broker does not fetch, because LeaderAndIsr named their leader during a controlled shutdown.
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
    unfetched_partitions: AbstractSet[TopicPartition] = field(default_factory=set)
    # Followers that the controller has refused as members of the ISR, with INELIGIBLE_REPLICA.
    ineligible_replicas: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    offline_partitions: AbstractSet[TopicPartition] = field(default_factory=set)
    logs: Mapping[TopicPartition, ReplicaLog] = field(default_factory=dict)

    def is_leader(self, tp: TopicPartition) -> bool:
        held = self.hosted.get(tp)
        return held is not None and held.leadership.leader == self.broker_id

    def is_fetching(self, tp: TopicPartition) -> bool:
        held = self.hosted.get(tp)
        return (
            held is not None
            and held.leadership.leader != self.broker_id
            and tp not in self.unfetched_partitions
        )

    def is_replica_isr_eligible(self, tp: TopicPartition, replica_id: int) -> bool:
        """Return whether a leader may add this follower to the ISR: since 3.3 only a live follower.

        A follower that the controller has refused stays out until the broker receives new metadata;
        Kafka's leader sends the refused request again with each fetch. Source:
        Partition.isReplicaIsrEligible (3.9).
        """
        return not self.rules.isr_requires_live_broker or (
            replica_id in self.live_brokers
            and replica_id not in self.ineligible_replicas.get(tp, ())
        )


def adopted(effect: ApplyRequest, request: Any) -> UpdateContext:
    """Return the update of a broker's context by which `effect` applies partitions of `request`."""
    chosen = request.partitions
    if effect.partitions is not None:
        chosen = {tp: chosen[tp] for tp in effect.partitions}
    if effect.field == "hosted":
        chosen = {tp: HostedPartition.from_request(entry) for tp, entry in chosen.items()}
    return UpdateContext(effect.field, chosen)
