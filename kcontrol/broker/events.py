"""The events of a broker besides those of its controller and of its group coordinator.

An event carries ids, times and responses as they were when it was queued, and no callbacks, so that
JSON can hold it.

Source: KafkaApis.scala and ReplicaManager.scala (2.8).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kcontrol.broker.log_segments import StoredRecord
from kcontrol.core.events import IN_REQUEST_RECORD, Event
from kcontrol.core.model import EpochEnd, TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerStartup(Event):
    """The process has started; `timestamp_ms` is the time in the broker's registration.

    `cluster_id` is a random id, which the broker writes if `/cluster/id` does not exist.
    """

    host: str
    port: int
    timestamp_ms: int
    cluster_id: str


@dataclass(frozen=True, slots=True)
class BrokerRequest(Event):
    """A request of a controller to this broker, with one entry for each partition."""

    correlation_id: str
    # The id (node, number of its process start, sequence number) of the journal record `send`.
    # Later journal records name this id instead of the entries.
    request: tuple[int, int, int]
    controller_id: int
    controller_epoch: int
    # The epoch of the receiver, as the controller knows it; -1 before 2.2.
    broker_epoch: int
    # The entries have the types LeaderAndIsrPartition, UpdateMetadataPartition and
    # StopReplicaPartition of `controller/request_batch.py`.
    partitions: Mapping[TopicPartition, Any] = field(metadata=IN_REQUEST_RECORD)


@dataclass(frozen=True, slots=True)
class LeaderAndIsrRequest(BrokerRequest):
    """A LeaderAndIsr request: the partitions that this broker leads or follows."""


@dataclass(frozen=True, slots=True)
class UpdateMetadataRequest(BrokerRequest):
    """An UpdateMetadata request: the live brokers and the leadership of partitions."""

    live_brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StopReplicaRequest(BrokerRequest):
    """A StopReplica request: replicas of this broker to stop or to delete."""


@dataclass(frozen=True, slots=True)
class PropagateIsrChanges(Event):
    """The timer that batches ISR changes has fired, from 0.9 to 2.6.

    The leader creates a znode below `/isr_change_notification`, whose data are the partitions of
    the batch.
    """


@dataclass(frozen=True, slots=True)
class ReplicaCaughtUp(Event):
    """A fetch shows the leader that a follower has all records of the leader.

    Only a simulation in which brokers store no records has this event; otherwise a fetch is the
    event FollowerFetch.
    """

    partition: TopicPartition
    # The broker id of the follower.
    replica_id: int


@dataclass(frozen=True, slots=True)
class ReplicaLags(Event):
    """The leader sees that a follower lags for longer than `replica.lag.time.max.ms`."""

    partition: TopicPartition
    # The broker id of the follower.
    replica_id: int


@dataclass(frozen=True, slots=True)
class Shutdown(Event):
    """The process begins or retries its controlled shutdown."""


@dataclass(frozen=True, slots=True)
class ControlledShutdownResponse(Event):
    """The response to ControlledShutdown: the partitions that this broker still leads."""

    # "NONE", an error of the controller or, if the controller's process has ended, the name of an
    # exception (`UNREACHABLE` or `DISCONNECTED` in `shutdown.py`).
    error: str
    remaining: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class AlterIsrResponse(Event):
    """The response to AlterIsr, with a result for each partition."""

    # The error of the whole request, or "NONE".
    error: str
    # Pairs of a partition and its result: an error, or the leadership that the controller has
    # stored.
    partitions: tuple[tuple[TopicPartition, Any], ...]


@dataclass(frozen=True, slots=True)
class LogDirFailure(Event):
    """Writes to the log directory of these partitions fail."""

    partitions: tuple[TopicPartition, ...]


# ---------------------------------------------------------------- records, in a world with logs


@dataclass(frozen=True, slots=True)
class Produce(Event):
    """A client sends one record; `acks` is "1" (leader) or "all" (whole ISR)."""

    correlation_id: str
    partition: TopicPartition
    value: str
    acks: str


@dataclass(frozen=True, slots=True)
class AppendTimedOut(Event):
    """An append of the group coordinator has waited for its replicas longer than its timeout.

    `partition` is of the offsets topic; `offset` is the offset of the last record of the append.
    """

    partition: TopicPartition
    offset: int


@dataclass(frozen=True, slots=True)
class TopicConfigChange(Event):
    """The settings of a topic have changed in ZooKeeper."""

    topic: str


@dataclass(frozen=True, slots=True)
class FollowerFetch(Event):
    """The follower `replica_id` fetches from `offset` on, which is its log end offset.

    `leader_epoch` is the leader epoch that the follower knows.
    """

    partition: TopicPartition
    replica_id: int
    leader_epoch: int
    offset: int


@dataclass(frozen=True, slots=True)
class FetchResponse(Event):
    """The response to a follower's fetch: the leader's records or, if the logs diverge, none."""

    partition: TopicPartition
    # The values of the leader at the moment of the read. No response has an error: a fetch that a
    # leader would refuse is not sent.
    leader_epoch: int
    high_watermark: int
    # If the logs diverge: the last common leader epoch, as far as the leader knows it, and its end
    # in the leader's log. `records` is then empty.
    diverging: EpochEnd | None = None
    # The leader's records from the fetch offset on.
    records: tuple[StoredRecord, ...] = field(default=(), metadata=IN_REQUEST_RECORD)
