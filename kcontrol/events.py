"""Everything that can happen to a broker, one frozen value each.

An event carries what the world knew when it was queued: ids, times and answers, never callbacks, so that it survives JSON.
Controller events bear the names of Kafka 2.8's `ControllerEvent`s. Source: KafkaController.scala (2.8).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from kcontrol.model import EpochEnd, LeaderAndIsr, LogRecord, TopicPartition

IN_THE_REQUEST = {"journal": False}
"""Marks a field that the journal leaves out, because the record of the request holds it."""

IF_TOLD = {"journal": "if told"}
"""Marks a field that the journal leaves out where it has its default: what only the events of some releases carry."""


class ControllerState(Enum):
    """What the controller's event thread is busy with. Source: ControllerState.scala (2.8)."""

    IDLE = "Idle"
    CONTROLLER_CHANGE = "ControllerChange"
    BROKER_CHANGE = "BrokerChange"
    TOPIC_CHANGE = "TopicChange"
    TOPIC_DELETION = "TopicDeletion"
    ALTER_PARTITION_REASSIGNMENT = "AlterPartitionReassignment"
    AUTO_LEADER_BALANCE = "AutoLeaderBalance"
    MANUAL_LEADER_BALANCE = "ManualLeaderBalance"
    CONTROLLED_SHUTDOWN = "ControlledShutdown"
    ISR_CHANGE = "IsrChange"
    UNCLEAN_LEADER_ELECTION_ENABLE = "UncleanLeaderElectionEnable"
    TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE = "TopicUncleanLeaderElectionEnable"
    LEADER_AND_ISR_RESPONSE_RECEIVED = "LeaderAndIsrResponseReceived"
    LOG_DIR_CHANGE = "LogDirChange"
    UPDATE_METADATA_RESPONSE_RECEIVED = "UpdateMetadataResponseReceived"
    LIST_PARTITION_REASSIGNMENT = "ListPartitionReassignment"


@dataclass(frozen=True, slots=True)
class Event:
    """The base of all: an event is known by the name of its class."""

    @property
    def name(self) -> str:
        return type(self).__name__


# ---------------------------------------------------------------- the controller's event thread


@dataclass(frozen=True, slots=True)
class Startup(Event):
    """The controller module of this broker starts."""

    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class ControllerChange(Event):
    """`/controller` was created, or its data changed; where a listener has read it, `controller_id` is who it names."""

    controller_id: int | None = field(default=None, metadata=IF_TOLD)


@dataclass(frozen=True, slots=True)
class Reelect(Event):
    """`/controller` was deleted; where a listener has said so, or that there is a new session."""

    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class RegisterBrokerAndReelect(Event):
    """A new ZooKeeper session exists after the old one expired; the broker listens where it did."""

    host: str
    port: int
    session: int = 0
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class Expire(Event):
    """The ZooKeeper session has expired."""


@dataclass(frozen=True, slots=True)
class LeaderChange(Event):
    """`/controller` was created, rewritten or deleted: what `LeaderChangeListener` hears. Source: 0.8.1."""

    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class ControllerEpochChange(Event):
    """`/controller_epoch` was created or rewritten: what `ControllerEpochListener` hears. Source: 0.8.1."""


@dataclass(frozen=True, slots=True)
class NewSession(Event):
    """ZkClient has opened a new session after the old one expired: what the controller's `SessionExpirationListener` hears."""

    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class RegisterBroker(Event):
    """The same, as the broker's `SessionExpireListener` hears it: the broker listens where it did. Source: 0.8.1 to 1.0."""

    host: str
    port: int
    timestamp_ms: int = 0
    session: int = field(default=0, metadata=IF_TOLD)


@dataclass(frozen=True, slots=True)
class PathChanged(Event):
    """ZkClient's thread is to look again at a path, or at its `children`, and to call who listens. Source: ZkClient (0.10)."""

    path: str
    children: bool


@dataclass(frozen=True, slots=True)
class BrokerChange(Event):
    """The children of `/brokers/ids` changed."""


@dataclass(frozen=True, slots=True)
class BrokerModifications(Event):
    """The registration of a broker was rewritten."""

    broker_id: int = -1


@dataclass(frozen=True, slots=True)
class TopicChange(Event):
    """The children of `/brokers/topics` changed; where a listener has read them, `topics` are what it found."""

    topics: tuple[str, ...] | None = field(default=None, metadata=IF_TOLD)


@dataclass(frozen=True, slots=True)
class PartitionModifications(Event):
    """A topic znode was rewritten."""

    topic: str = ""


@dataclass(frozen=True, slots=True)
class TopicDeletion(Event):
    """The children of `/admin/delete_topics` changed; where a listener has read them, `topics` are what it found."""

    topics: tuple[str, ...] | None = field(default=None, metadata=IF_TOLD)


@dataclass(frozen=True, slots=True)
class TopicDeletionStopReplicaResponseReceived(Event):
    """A broker has answered a StopReplica request that deletes: `partitions` are those of topics that are being deleted."""

    broker_id: int
    error: str
    errors: tuple[tuple[TopicPartition, str], ...] = ()
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class DeletionsResumed(Event):
    """The delete-topics thread has been signalled. Source: TopicDeletionManager.resumeTopicDeletionThread (0.8.1)."""


@dataclass(frozen=True, slots=True)
class ZkPartitionReassignment(Event):
    """`/admin/reassign_partitions` was created."""


@dataclass(frozen=True, slots=True)
class ApiPartitionReassignment(Event):
    """An admin client asks for reassignments, and waits for an answer: each partition with its target, or None to cancel.

    Source: AlterPartitionReassignments (KIP-455, 2.4 on).
    """

    correlation_id: str
    targets: tuple[tuple[TopicPartition, tuple[int, ...] | None], ...]


@dataclass(frozen=True, slots=True)
class ListPartitionReassignments(Event):
    """An admin client asks what is being reassigned; no `partitions` means all of them."""

    correlation_id: str
    partitions: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True)
class PartitionReassignmentIsrChange(Event):
    """The state znode of a partition that is being reassigned was rewritten."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class ReplicaLeaderElection(Event):
    """Elections are asked for: through `/admin/preferred_replica_election`, or by an admin client, who waits for an answer.

    `election_type` is PREFERRED or UNCLEAN, `trigger` ZkTriggered or AdminClientTriggered; no `partitions` means all of them.
    """

    correlation_id: str = ""
    partitions: tuple[TopicPartition, ...] | None = None
    election_type: str = "PREFERRED"
    trigger: str = "ZkTriggered"


@dataclass(frozen=True, slots=True)
class AutoPreferredReplicaLeaderElection(Event):
    """It is time to look for brokers that lead too few of the partitions that prefer them."""


@dataclass(frozen=True, slots=True)
class UncleanLeaderElectionEnable(Event):
    """The default of `unclean.leader.election.enable` was switched on."""


@dataclass(frozen=True, slots=True)
class TopicUncleanLeaderElectionEnable(Event):
    """A topic's `unclean.leader.election.enable` was switched on."""

    topic: str = ""


@dataclass(frozen=True, slots=True)
class ControlledShutdown(Event):
    """A broker wants to stop; epoch -1 means that it does not name one."""

    correlation_id: str
    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class IsrChangeNotification(Event):
    """The children of `/isr_change_notification` changed; where a listener has read them, these are their names."""

    sequence_numbers: tuple[str, ...] | None = field(default=None, metadata=IF_TOLD)


@dataclass(frozen=True, slots=True)
class PropagateIsrChanges(Event):
    """No ISR that this broker leads has changed for a while: the controller may be told of those that have."""


@dataclass(frozen=True, slots=True)
class LogDirEventNotification(Event):
    """The children of `/log_dir_event_notification` changed; where a listener has read them, these are their names."""

    sequence_numbers: tuple[str, ...] | None = field(default=None, metadata=IF_TOLD)


@dataclass(frozen=True, slots=True)
class LeaderAndIsrResponseReceived(Event):
    """A broker has answered a LeaderAndIsr request: `partitions` were in it, `errors` names those that did not go well."""

    broker_id: int
    error: str
    errors: tuple[tuple[TopicPartition, str], ...] = ()
    partitions: Collection[TopicPartition] = field(default=(), metadata=IN_THE_REQUEST)


@dataclass(frozen=True, slots=True)
class UpdateMetadataResponseReceived(Event):
    """A broker has answered an UpdateMetadata request."""

    broker_id: int
    error: str


@dataclass(frozen=True, slots=True)
class AlterIsrReceived(Event):
    """A leader asks for other ISRs; each value is to be written over its zk version."""

    correlation_id: str
    broker_id: int
    broker_epoch: int
    partitions: tuple[tuple[TopicPartition, LeaderAndIsr], ...]


# ---------------------------------------------------------------- the rest of the broker


@dataclass(frozen=True, slots=True)
class BrokerStartup(Event):
    """The process has started; `cluster_id` is what it would call a new cluster."""

    host: str
    port: int
    timestamp_ms: int
    cluster_id: str


@dataclass(frozen=True, slots=True)
class BrokerRequest(Event):
    """What a controller's request has in its header, and which record of the journal it was sent by."""

    correlation_id: str
    request: tuple[int, int, int]
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: Mapping[TopicPartition, Any] = field(metadata=IN_THE_REQUEST)


@dataclass(frozen=True, slots=True)
class LeaderAndIsrRequest(BrokerRequest):
    """A controller tells this broker which partitions it leads and follows."""


@dataclass(frozen=True, slots=True)
class UpdateMetadataRequest(BrokerRequest):
    """A controller tells this broker who lives and who leads."""

    live_brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StopReplicaRequest(BrokerRequest):
    """A controller tells this broker to stop, or to delete, replicas."""


@dataclass(frozen=True, slots=True)
class ReplicaCaughtUp(Event):
    """A follower's fetch shows that it has everything that its leader has."""

    partition: TopicPartition
    replica_id: int


@dataclass(frozen=True, slots=True)
class ReplicaLags(Event):
    """A follower has not caught up for longer than `replica.lag.time.max.ms`."""

    partition: TopicPartition
    replica_id: int


@dataclass(frozen=True, slots=True)
class Shutdown(Event):
    """The process is asked to stop in good order, or it is time to ask the controller again."""


@dataclass(frozen=True, slots=True)
class ControlledShutdownResponse(Event):
    """The controller's answer to a broker that wants to stop: what it still leads."""

    error: str
    remaining: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class AlterIsrResponse(Event):
    """The controller's answer to this leader: the error of each partition, or its leadership as it is now."""

    error: str
    partitions: tuple[tuple[TopicPartition, Any], ...]


@dataclass(frozen=True, slots=True)
class LogDirFailure(Event):
    """The log directory that holds these partitions cannot be written any more."""

    partitions: tuple[TopicPartition, ...]


# ---------------------------------------------------------------- the data side, where a world keeps logs


@dataclass(frozen=True, slots=True)
class Produce(Event):
    """A client sends one record; `acks` is "1" (the leader has it) or "all" (the whole ISR has it)."""

    correlation_id: str
    partition: TopicPartition
    value: str
    acks: str


@dataclass(frozen=True, slots=True)
class TopicConfigChange(Event):
    """A broker hears that settings of a topic have changed."""

    topic: str


@dataclass(frozen=True, slots=True)
class FollowerFetch(Event):
    """A follower has asked its leader for records from `offset` on, which says that it has everything before."""

    partition: TopicPartition
    replica_id: int
    leader_epoch: int
    offset: int


@dataclass(frozen=True, slots=True)
class FetchResponse(Event):
    """What a follower gets: records, or where its log parts from the leader's; and the leader's high watermark at the read."""

    partition: TopicPartition
    leader_epoch: int
    high_watermark: int
    diverging: EpochEnd | None = None
    records: tuple[LogRecord, ...] = field(default=(), metadata=IN_THE_REQUEST)
