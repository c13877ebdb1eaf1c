"""The events of the controller: frozen dataclasses named after Kafka 2.8's `ControllerEvent`s.

An event carries ids, times and responses as they were when it was queued. `broker/events.py` has
the events of a broker.

Source: KafkaController.scala (2.8).
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum

from kcontrol.core.model import LeaderAndIsr, TopicPartition

IN_REQUEST_RECORD = {"journal": False}
"""Marks a field that the journal leaves out, because the record of the request has its value."""

IF_NOT_DEFAULT = {"journal": "if not default"}
"""Marks a field that the journal leaves out if it has its default, as in most releases."""


class ControllerState(Enum):
    """The controller's states, one for each kind of event that it handles, as metrics name them.

    Source: ControllerState.scala (2.8).
    """

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
    """The base class of all events; the journal names an event by its class."""

    @property
    def name(self) -> str:
        return type(self).__name__


# ---------------------------------------------------------------- the controller's event thread


@dataclass(frozen=True, slots=True)
class Startup(Event):
    """The broker starts its controller, which then competes for `/controller`."""

    # The time at which the driver queues the event: the `timestamp` for `/controller`.
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class ControllerChange(Event):
    """`/controller` was created, or its data changed.

    `controller_id` is the id in `/controller` if a listener has read it (up to 1.0), else None.
    """

    controller_id: int | None = field(default=None, metadata=IF_NOT_DEFAULT)


@dataclass(frozen=True, slots=True)
class Reelect(Event):
    """`/controller` was deleted, so the broker competes for it.

    In 0.11 and 1.0 this event is queued too when a new session has started.
    """

    # The time at which the driver queues the event: the `timestamp` for `/controller`.
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class RegisterBrokerAndReelect(Event):
    """The broker registers in a new session, and competes for `/controller` (1.1 on).

    The session follows an expired one; the broker's host and port are unchanged.
    """

    host: str
    port: int
    # The id of the new ZooKeeper session.
    session: int = 0
    # The time at which the driver queues the event: the `timestamp` for both znodes.
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class Expire(Event):
    """The ZooKeeper session has expired, so the broker resigns as controller (1.1 on)."""


@dataclass(frozen=True, slots=True)
class LeaderChange(Event):
    """ZkClient calls `LeaderChangeListener`: `/controller` was created, set or deleted.

    Source: 0.8.1.
    """

    # The time at which the driver queues the event: the `timestamp` for `/controller`.
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class ControllerEpochChange(Event):
    """ZkClient calls `ControllerEpochListener`: `/controller_epoch` was created or set.

    Source: 0.8.1.
    """


@dataclass(frozen=True, slots=True)
class NewSession(Event):
    """ZkClient has opened a new session, and calls the controller's `SessionExpirationListener`."""

    # The time at which the driver queues the event: the `timestamp` for `/controller`.
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class RegisterBroker(Event):
    """ZkClient has opened a new session, and calls the broker's `SessionExpireListener`.

    The broker's host and port are unchanged. Source: 0.8.1 to 1.0.
    """

    host: str
    port: int
    # The time at which the driver queues the event: the `timestamp` for `/brokers/ids/<id>`.
    timestamp_ms: int = 0
    # The id of the new ZooKeeper session; 0 up to 0.8.2.
    session: int = field(default=0, metadata=IF_NOT_DEFAULT)


@dataclass(frozen=True, slots=True)
class PathChanged(Event):
    """ZkClient's thread reads a path again, and calls the listeners of the path.

    The thread reads the children if `children` is true, else the data. Source: ZkClient (0.10).
    """

    path: str
    children: bool


@dataclass(frozen=True, slots=True)
class BrokerChange(Event):
    """The children of `/brokers/ids` changed."""


@dataclass(frozen=True, slots=True)
class BrokerModifications(Event):
    """The znode of a registered broker was set."""

    broker_id: int = -1


@dataclass(frozen=True, slots=True)
class TopicChange(Event):
    """The children of `/brokers/topics` changed.

    `topics` are the children if a listener has read them (up to 1.0), else None.
    """

    topics: tuple[str, ...] | None = field(default=None, metadata=IF_NOT_DEFAULT)


@dataclass(frozen=True, slots=True)
class PartitionModifications(Event):
    """The znode of a topic was set."""

    topic: str = ""


@dataclass(frozen=True, slots=True)
class TopicDeletion(Event):
    """The children of `/admin/delete_topics` changed.

    `topics` are the children if a listener has read them (up to 1.0), else None.
    """

    topics: tuple[str, ...] | None = field(default=None, metadata=IF_NOT_DEFAULT)


@dataclass(frozen=True, slots=True)
class TopicDeletionStopReplicaResponseReceived(Event):
    """A broker has responded to a StopReplica request that deletes replicas."""

    broker_id: int
    # "NONE" or the error of the whole request.
    error: str
    # The error of each partition that failed.
    errors: tuple[tuple[TopicPartition, str], ...] = ()
    # The request's partitions of topics that are being deleted.
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class DeletionsResumed(Event):
    """Another thread has signalled the delete-topics thread, which now tries the queued deletions.

    Source: TopicDeletionManager.resumeTopicDeletionThread (0.8.1).
    """


@dataclass(frozen=True, slots=True)
class ZkPartitionReassignment(Event):
    """`/admin/reassign_partitions` was created or, up to 1.0, also set.

    From 1.1 on the controller queues this event also after it has deleted the znode.
    """


@dataclass(frozen=True, slots=True)
class ApiPartitionReassignment(Event):
    """An AlterPartitionReassignments request: per partition the target replicas, None to cancel.

    Source: AlterPartitionReassignments (KIP-455, 2.4 on).
    """

    correlation_id: str
    targets: tuple[tuple[TopicPartition, tuple[int, ...] | None], ...]


@dataclass(frozen=True, slots=True)
class ListPartitionReassignments(Event):
    """A ListPartitionReassignments request; `partitions` None means all partitions."""

    correlation_id: str
    partitions: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True)
class PartitionReassignmentIsrChange(Event):
    """The state znode of a partition that is being reassigned was set."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class ReplicaLeaderElection(Event):
    """A request for elections, through `/admin/preferred_replica_election` or by ElectLeaders."""

    # "" if the request came through the znode.
    correlation_id: str = ""
    # With ZkTriggered: None, as the handler reads the znode; in 0.11 and 1.0 the partitions that
    # ZkClient's listener has read from the znode. With AdminClientTriggered: None means all
    # partitions.
    partitions: tuple[TopicPartition, ...] | None = None
    # PREFERRED or UNCLEAN.
    election_type: str = "PREFERRED"
    # ZkTriggered or AdminClientTriggered.
    trigger: str = "ZkTriggered"


@dataclass(frozen=True, slots=True)
class AutoPreferredReplicaLeaderElection(Event):
    """The timer of the preferred election has fired (`leader.imbalance.check.interval.seconds`)."""


@dataclass(frozen=True, slots=True)
class UncleanLeaderElectionEnable(Event):
    """This broker's default of `unclean.leader.election.enable` was set to true."""


@dataclass(frozen=True, slots=True)
class TopicUncleanLeaderElectionEnable(Event):
    """The setting `unclean.leader.election.enable` of a topic was set to true."""

    topic: str = ""


@dataclass(frozen=True, slots=True)
class ControlledShutdown(Event):
    """A ControlledShutdown request of the broker `broker_id`.

    `broker_epoch` is -1 if the request has no broker epoch.
    """

    correlation_id: str
    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class IsrChangeNotification(Event):
    """The children of `/isr_change_notification` changed.

    `sequence_numbers` are the names of the children, such as "isr_change_0000000001", if a listener
    has read them (up to 1.0), else None.
    """

    sequence_numbers: tuple[str, ...] | None = field(default=None, metadata=IF_NOT_DEFAULT)


@dataclass(frozen=True, slots=True)
class LogDirEventNotification(Event):
    """The children of `/log_dir_event_notification` changed.

    `sequence_numbers` are the names of the children, such as "log_dir_event_0000000001", if a
    listener has read them (up to 1.0), else None.
    """

    sequence_numbers: tuple[str, ...] | None = field(default=None, metadata=IF_NOT_DEFAULT)


@dataclass(frozen=True, slots=True)
class LeaderAndIsrResponseReceived(Event):
    """A broker has responded to a LeaderAndIsr request.

    `partitions` are the request's partitions. `errors` has the error of each partition that failed,
    and `error` is "NONE" or the error of the whole request.
    """

    broker_id: int
    error: str
    errors: tuple[tuple[TopicPartition, str], ...] = ()
    partitions: Collection[TopicPartition] = field(default=(), metadata=IN_REQUEST_RECORD)


@dataclass(frozen=True, slots=True)
class UpdateMetadataResponseReceived(Event):
    """A broker has responded to UpdateMetadata; `error` is "NONE" or the error of the request."""

    broker_id: int
    error: str


@dataclass(frozen=True, slots=True)
class AlterIsrReceived(Event):
    """An AlterIsr request of the broker `broker_id`: each partition with the requested leadership.

    The `zk_version` of this leadership is the version of the state znode that the leader knows.
    """

    correlation_id: str
    broker_id: int
    broker_epoch: int
    partitions: tuple[tuple[TopicPartition, LeaderAndIsr], ...]
