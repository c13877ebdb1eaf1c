"""The memory of a broker: the replicas that it hosts, and the metadata that controllers have sent.

Source: ReplicaManager.scala, Partition.scala and MetadataCache.scala (2.8).
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.broker.log import ReplicaLog
from kcontrol.core.controller_rules import Rules
from kcontrol.core.effects import ApplyRequest, Context, UpdateContext
from kcontrol.core.model import LeaderAndIsr, TopicPartition


class HostedPartition(NamedTuple):
    """A partition with a replica on this broker: leadership, replicas, pending ISR."""

    leadership: LeaderAndIsr
    # Broker ids, the preferred replica first.
    replicas: tuple[int, ...]
    # The ISR that this broker has requested as leader, until the response; else empty.
    pending_isr: tuple[int, ...] = ()

    @classmethod
    def from_request(cls, entry: Any) -> Self:
        """`entry`: the partition's entry in LeaderAndIsr. A new leadership ends a pending ISR."""
        leader, leader_epoch, isr, controller_epoch, zk_version, replicas = entry[:6]
        return cls(LeaderAndIsr(leader, isr, leader_epoch, zk_version, controller_epoch), replicas)


@dataclass(frozen=True, slots=True)
class BrokerContext(Context):
    """The memory of one broker, without the memory of its controller (`ControllerContext`)."""

    # Handlers only read these fields; the driver, which runs the handlers, changes them.
    broker_id: int
    # The rules (differences between releases) of this broker's release.
    rules: Rules
    config: BrokerConfig = field(default_factory=BrokerConfig)
    # Whether the broker stores records; if not, `logs` is empty.
    keeps_logs: bool = False

    # The czxid of the broker's znode; -1 before the registration, and in releases before 2.2.
    broker_epoch: int = -1
    # The attempts of the controlled shutdown so far; not 0 means that the broker shuts down.
    shutdown_attempts: int = 0
    # The partitions of the next ISR change notification, from 0.9 to 2.6.
    isr_changes: AbstractSet[TopicPartition] = field(default_factory=set)
    # From the latest request of a controller that this broker has accepted.
    controller_id: int = -1
    controller_epoch: int = 0
    # The brokers in the latest UpdateMetadata.
    live_brokers: AbstractSet[int] = field(default_factory=set)
    # The latest entry of UpdateMetadata for each partition.
    metadata: Mapping[TopicPartition, Any] = field(default_factory=dict)
    # The replicas of this broker by partition; `logs` has their logs.
    hosted: Mapping[TopicPartition, HostedPartition] = field(default_factory=dict)
    # The partitions that the broker does not fetch, because their LeaderAndIsr came during its
    # controlled shutdown.
    unfetched_partitions: AbstractSet[TopicPartition] = field(default_factory=set)
    # Followers that the controller has refused as members of the ISR, with INELIGIBLE_REPLICA.
    ineligible_replicas: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    # The partitions whose log directory on this broker has failed.
    offline_partitions: AbstractSet[TopicPartition] = field(default_factory=set)
    # The logs on this broker's disk, also of replicas that the broker does not host now.
    logs: Mapping[TopicPartition, ReplicaLog] = field(default_factory=dict)

    def is_leader(self, tp: TopicPartition) -> bool:
        held = self.hosted.get(tp)
        return held is not None and held.leadership.leader == self.broker_id

    def is_fetching(self, tp: TopicPartition) -> bool:
        held = self.hosted.get(tp)
        if held is None or held.leadership.leader == self.broker_id:
            return False
        return tp not in self.unfetched_partitions

    def is_replica_isr_eligible(self, tp: TopicPartition, replica_id: int) -> bool:
        """Return whether the leader may add the follower `replica_id` to the ISR of `tp`.

        Since 3.3 the follower's broker must be alive, and the controller must not have refused the
        follower.

        Source: Partition.isReplicaIsrEligible (3.9).
        """
        # Unlike kcontrol, Kafka's leader stores no refusal: it requests the refused ISR again with
        # each fetch.
        if not self.rules.isr_requires_live_broker:
            return True
        refused = self.ineligible_replicas.get(tp, ())
        return replica_id in self.live_brokers and replica_id not in refused


def adopted(effect: ApplyRequest, request: Any) -> UpdateContext:
    """Return the effect that stores entries of a LeaderAndIsr or UpdateMetadata request.

    The entries, those of the partitions `effect.partitions` (None: all), are stored in the field
    `effect.field` of the broker's context, "hosted" or "metadata".
    """
    chosen = request.partitions
    if effect.partitions is not None:
        chosen = {tp: chosen[tp] for tp in effect.partitions}
    if effect.field == "hosted":
        chosen = {tp: HostedPartition.from_request(entry) for tp, entry in chosen.items()}
    return UpdateContext(effect.field, chosen)
