"""The nouns: immutable values that every room shares."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

NO_LEADER = -1
LEADER_DURING_DELETE = -2
EPOCH_DURING_DELETE = -2
NO_EPOCH = -1


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TopicPartition:
        """`"my-topic-3"` is partition 3 of `my-topic`. Raises ValueError if what follows the last dash is no number."""
        topic, _, number = text.rpartition("-")
        return cls(topic, int(number))


class PartitionReplica(NamedTuple):
    """One replica: a partition on a broker."""

    topic_partition: TopicPartition
    broker_id: int

    @property
    def topic(self) -> str:
        return self.topic_partition.topic

    def __str__(self) -> str:
        return f"{self.topic_partition}@{self.broker_id}"

    @classmethod
    def parse(cls, text: str) -> PartitionReplica:
        """`"t-0@1"` is the replica of `t-0` on broker 1. Raises ValueError for anything of another form."""
        partition, _, broker_id = text.rpartition("@")
        return cls(TopicPartition.parse(partition), int(broker_id))


class PartitionState(Enum):
    """Kafka's own names, so that journal, diagram, Spark column and Kafka's logs say the same word."""

    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"

    __hash__ = object.__hash__  # members are alone of their kind, and the enum's own hash is slow where machines look rows up

    def __str__(self) -> str:
        return self.value


class ReplicaState(Enum):
    """The seven states of a replica, under Kafka's names."""

    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"
    NON_EXISTENT = "NonExistentReplica"

    __hash__ = object.__hash__

    def __str__(self) -> str:
        return self.value


RECOVERED, RECOVERING = 0, 1


class LeaderAndIsr(NamedTuple):
    """Who leads a partition and who is in sync.

    `zk_version` is the version of the state znode that this was read from or written as; `controller_epoch` is that of the
    controller that decided it; `leader_recovery_state` is 1, recovering, from an unclean election until the leader changes the
    ISR, where releases note that. Source: LeaderAndIsr and LeaderIsrAndControllerEpoch (2.8), LeaderRecoveryState (3.2).
    """

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int = 0
    zk_version: int = -1
    controller_epoch: int = 0
    leader_recovery_state: int = RECOVERED

    def decided(self, leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
        """A controller's next decision: one leader epoch on, to be written over the version that was read."""
        return self._replace(leader=leader, isr=isr, leader_epoch=self.leader_epoch + 1)

    def plain(self) -> dict[str, Any]:
        """In JSON's own types; who has recovered is not said."""
        said = zip(self._fields, (self.leader, list(self.isr), *self[2:]), strict=True)
        return {name: value for name, value in said if name != "leader_recovery_state" or value != RECOVERED}

    @classmethod
    def of_plain(cls, said: Mapping[str, Any]) -> LeaderAndIsr:
        """The value that `plain` has told."""
        return cls(**{**said, "isr": tuple(said["isr"])})


class LogRecord(NamedTuple):
    """One record of a partition's log. Its leader epoch is that of the leader who appended it first (0.11 on, KIP-101)."""

    offset: int
    leader_epoch: int
    value: str


class EpochEnd(NamedTuple):
    """Where a leader epoch ends in a log: the first offset behind it. -1 is unknown.

    Source: OffsetForLeaderEpochResponse (0.11 on), whose leader epoch came with KIP-279 (2.0).
    """

    leader_epoch: int
    end_offset: int


class ReplicaAssignment(NamedTuple):
    """Where a partition's replicas live, preferred leader first, and what a reassignment adds and removes.

    Source: ReplicaAssignment in ControllerContext.scala (2.4 on).
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def origin(self) -> tuple[int, ...]:
        return tuple(b for b in self.replicas if b not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(b for b in self.replicas if b not in self.removing)

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding or self.removing)

    def reassign_to(self, target: tuple[int, ...]) -> ReplicaAssignment:
        """Head for `target`: its order comes first, then what is left of the origin.

        >>> ReplicaAssignment((1, 2)).reassign_to((2, 3))
        ReplicaAssignment(replicas=(2, 3, 1), adding=(3,), removing=(1,))
        """
        replicas = tuple(dict.fromkeys(target + self.origin))
        adding = tuple(b for b in replicas if b not in self.origin)
        removing = tuple(b for b in replicas if b not in target)
        return ReplicaAssignment(replicas, adding, removing)
