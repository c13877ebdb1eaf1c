"""The immutable values that all packages share: partitions, replicas, states, leadership."""

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
        """As in "my-topic-3", which is partition 3 of `my-topic`; else ValueError."""
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
        """As in "t-0@1", the replica of `t-0` on broker 1. Raises ValueError for other text."""
        partition, _, broker_id = text.rpartition("@")
        return cls(TopicPartition.parse(partition), int(broker_id))


class PartitionState(Enum):
    """The four states of a partition, with the names that Kafka's logs use."""

    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"

    __hash__ = object.__hash__  # each member exists once; Enum's own hash slows down row lookups

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
    """The leadership of a partition: leader, ISR and epochs.

    Source: LeaderAndIsr and LeaderIsrAndControllerEpoch (2.8), LeaderRecoveryState (3.2).
    """

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int = 0
    # The version of the state znode at the last read or write.
    zk_version: int = -1
    # The epoch of the controller that made the last decision about the leader or the ISR.
    controller_epoch: int = 0
    # 1 (recovering) from an unclean election until the leader changes the ISR, in releases with
    # KIP-704.
    leader_recovery_state: int = RECOVERED

    def new_leader_and_isr(self, leader: int, isr: tuple[int, ...], epoch: int) -> LeaderAndIsr:
        """Return this leadership with the next leader epoch; `epoch` is that of the controller.

        `zk_version` stays: the next write of the state znode succeeds only with this data version.
        """
        return LeaderAndIsr(leader, isr, self.leader_epoch + 1, self.zk_version, epoch, self[5])

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name as JSON types; `leader_recovery_state` only if it is not 0."""
        fields = zip(self._fields, (self.leader, list(self.isr), *self[2:]), strict=True)
        skipped = ("leader_recovery_state", RECOVERED)
        return {name: value for name, value in fields if (name, value) != skipped}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> LeaderAndIsr:
        """Return the leadership with these fields, as `to_json` returns them."""
        return cls(**{**fields, "isr": tuple(fields["isr"])})


class LogRecord(NamedTuple):
    """One record of a partition's log: offset, epoch of the leader that appended it, and value."""

    offset: int
    leader_epoch: int
    value: str


class EpochEnd(NamedTuple):
    """The end of a leader epoch in a log: the epoch, and the offset after its last record.

    The value -1 means unknown in both fields.

    Source: OffsetForLeaderEpochResponse (0.11 on), whose leader epoch came with KIP-279 (2.0).
    """

    leader_epoch: int
    end_offset: int


class ReplicaAssignment(NamedTuple):
    """The brokers of a partition's replicas, preferred leader first.

    `adding` and `removing` are the brokers that a reassignment adds and removes; all of them are in
    `replicas`. Source: ReplicaAssignment in ControllerContext.scala (2.4 on).
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
        """Return the assignment that moves to `target`: the target's replicas, then the old ones.

        >>> ReplicaAssignment((1, 2)).reassign_to((2, 3))
        ReplicaAssignment(replicas=(2, 3, 1), adding=(3,), removing=(1,))
        """
        replicas = tuple(dict.fromkeys(target + self.origin))
        adding = tuple(b for b in replicas if b not in self.origin)
        removing = tuple(b for b in replicas if b not in target)
        return ReplicaAssignment(replicas, adding, removing)
