"""What can happen to a coordinator: requests of clients, timers that fire, writes that end, partitions that come and go.

Time and randomness come in the event: the driver sets `timestamp_ms` when it queues the event, and `uuid` ends a new member id.
An answer goes to `correlation_id`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kcontrol.events import Event
from kcontrol.group.model import GroupProtocol, Member, OffsetAndMetadata
from kcontrol.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Timed(Event):
    """The base of all events that need the time: the driver sets `timestamp_ms` when it queues the event."""

    timestamp_ms: int = field(default=0, kw_only=True)


# ---------------------------------------------------------------- requests


@dataclass(frozen=True, slots=True)
class GroupRequest(Timed):
    """The base of all requests to a coordinator."""

    correlation_id: str
    group_id: str


@dataclass(frozen=True, slots=True)
class JoinGroup(GroupRequest):
    """`requires_known_id`: the client speaks a version whose members come back with an id that was handed out (KIP-394)."""

    member_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[GroupProtocol, ...]
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    uuid: str = ""
    requires_known_id: bool = False


@dataclass(frozen=True, slots=True)
class SyncGroup(GroupRequest):
    member_id: str
    generation: int
    assignment: Mapping[str, bytes] = field(default_factory=dict)
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat(GroupRequest):
    member_id: str
    generation: int
    instance_id: str | None = None


class MemberIdentity(NamedTuple):
    """Who leaves: by member id, by instance id, or by both."""

    member_id: str = ""
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class LeaveGroup(GroupRequest):
    members: tuple[MemberIdentity, ...]


class CommittedOffset(NamedTuple):
    """One offset as a client sends it. `commit_timestamp` is its own idea of the time (version 1 only)."""

    offset: int
    metadata: str = ""
    commit_timestamp: int | None = None
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class OffsetCommit(GroupRequest):
    """With a producer it is a TxnOffsetCommit. Generation -1: the group does not manage its members here."""

    member_id: str
    generation: int
    offsets: Mapping[TopicPartition, CommittedOffset]
    instance_id: str | None = None
    retention_ms: int | None = None
    producer: int | None = None


@dataclass(frozen=True, slots=True)
class OffsetFetch(GroupRequest):
    """`partitions` None asks for all, () for none; before 0.10.2 () asks for all."""

    partitions: tuple[TopicPartition, ...] | None = None
    requires_stable: bool = False


@dataclass(frozen=True, slots=True)
class DescribeGroup(GroupRequest):
    pass


@dataclass(frozen=True, slots=True)
class OffsetDelete(GroupRequest):
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ListGroups(Event):
    """`states` empty: all."""

    correlation_id: str
    states: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteGroups(Timed):
    correlation_id: str
    group_ids: tuple[str, ...]


# ---------------------------------------------------------------- timers


@dataclass(frozen=True, slots=True)
class SessionTimedOut(Timed):
    """Nothing has been heard of a member for its session timeout, or a newcomer has waited too long."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class PendingMemberTimedOut(Timed):
    """A member id was handed out and not used."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class JoinTimedOut(Timed):
    """The join phase after this generation has lasted as long as it may."""

    group_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class InitialJoinTimedOut(Timed):
    """The first wait of an Empty group is over; `remaining_ms` is by how much it can still be made longer."""

    group_id: str
    generation: int
    delay_ms: int
    remaining_ms: int


@dataclass(frozen=True, slots=True)
class SyncTimedOut(Timed):
    """The members of this generation have had time to ask for their assignments."""

    group_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class ExpireOffsets(Timed):
    """It is time to look for offsets that nobody needs any more."""


# ---------------------------------------------------------------- writes that have ended


@dataclass(frozen=True, slots=True)
class Appended(Timed):
    """The base of these: the log has put in `error` ("NONE" is success) and where the batch begins.

    `incarnation` is the number of the group that wrote, which a later group of this name does not share.
    """

    group_id: str
    incarnation: int = field(default=0, kw_only=True)
    error: str = field(default="NONE", kw_only=True)
    base_offset: int = field(default=-1, kw_only=True)


@dataclass(frozen=True, slots=True)
class AssignmentStored(Appended):
    generation: int
    assignment: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class StaticMemberStored(Appended):
    """A static member's new id is in the log; `leader` is whom the answer names.

    On an error `old_member_id` comes back, and with it the `protocols` of the JoinGroup that brought the new id.
    """

    correlation_id: str
    member_id: str
    old_member_id: str
    leader: str | None
    protocols: tuple[GroupProtocol, ...]


@dataclass(frozen=True, slots=True)
class OffsetsStored(Appended):
    """`refused` are the partitions whose metadata were too long."""

    correlation_id: str
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    refused: tuple[TopicPartition, ...] = ()
    producer: int | None = None


# ---------------------------------------------------------------- partitions of the offsets topic


@dataclass(frozen=True, slots=True)
class PartitionElected(Timed):
    """This broker leads the partition; `coordinator_epoch` is its leader epoch."""

    partition: int
    coordinator_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionResigned(Timed):
    """This broker does not lead the partition any more."""

    partition: int
    coordinator_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class TransactionCompleted(Event):
    """A producer's marker has reached these partitions of the offsets topic."""

    producer: int
    partitions: tuple[int, ...]
    is_commit: bool


# ---------------------------------------------------------------- answers


class JoinResult(NamedTuple):
    """`members` is the leader's alone: (member id, its metadata for the chosen protocol)."""

    error: str
    member_id: str
    generation: int
    protocol: str = ""
    leader: str = ""
    members: tuple[tuple[str, bytes], ...] = ()
    protocol_type: str | None = None


class SyncResult(NamedTuple):
    error: str
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol: str | None = None


class Result(NamedTuple):
    """What a heartbeat is answered, and a LeaveGroup for one member."""

    error: str


class LeaveResult(NamedTuple):
    """The error of each member, and under which ids it was named."""

    error: str
    members: tuple[str, ...] = ()
    identities: tuple[MemberIdentity, ...] = ()


class ErrorsResult(NamedTuple):
    """An error for each partition or group asked about, and one for all of them."""

    errors: dict[TopicPartition, str] | dict[str, str]
    error: str = "NONE"


class FetchedOffset(NamedTuple):
    offset: int = -1
    metadata: str = ""
    error: str = "NONE"
    leader_epoch: int = -1


class FetchResult(NamedTuple):
    error: str
    offsets: dict[TopicPartition, FetchedOffset]


class DescribeResult(NamedTuple):
    """Of each member the metadata and assignment bytes, empty unless the group is Stable."""

    error: str
    state: str = ""
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[tuple[Member, bytes, bytes], ...] = ()


class ListResult(NamedTuple):
    """(group, protocol type, state) of each."""

    error: str
    groups: tuple[tuple[str, str, str], ...] = ()
