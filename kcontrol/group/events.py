"""The events of a coordinator: requests, timers, ended writes, elections; and the responses.

Fields have the names and meanings of Kafka's protocol (JoinGroupRequest.json and the others, 2.8).
`handlers.py` has the handler of each event.
"""

# An event is frozen and holds no function, so that it can be written to a journal and read again.
# Time and randomness come in the event: the driver sets `timestamp_ms` when it queues the event,
# and `uuid` becomes the end of a new member id. The response to a request goes to its
# `correlation_id`.
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kcontrol.core.events import Event
from kcontrol.core.model import TopicPartition
from kcontrol.group.model import GroupProtocol, Member, OffsetAndMetadata


@dataclass(frozen=True, slots=True)
class TimedEvent(Event):
    """The base of events with a time; the driver sets `timestamp_ms` when it queues the event."""

    timestamp_ms: int = field(default=0, kw_only=True)


# ---------------------------------------------------------------- requests


@dataclass(frozen=True, slots=True)
class GroupRequest(TimedEvent):
    """The base of requests about one group: the request's correlation id, and the group's id."""

    correlation_id: str
    group_id: str


@dataclass(frozen=True, slots=True)
class JoinGroup(GroupRequest):
    """A client joins a group, or joins it again."""

    # "" before the coordinator has assigned a member id.
    member_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    # In the order of the member's preference.
    protocols: tuple[GroupProtocol, ...]
    # The group.instance.id of a static member, else None.
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    # The text that the coordinator appends to a new member id.
    uuid: str = ""
    # Whether the client supports MEMBER_ID_REQUIRED: it uses version 4 or later (KIP-394).
    requires_known_id: bool = False


@dataclass(frozen=True, slots=True)
class SyncGroup(GroupRequest):
    """A member requests its assignment; the leader's request has the assignments of all members.

    `protocol_type` and `protocol` are the group's values that the member expects, None before
    version 5 (KIP-559).
    """

    member_id: str
    generation: int
    # By member id; empty unless the leader sends the request.
    assignment: Mapping[str, bytes] = field(default_factory=dict)
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat(GroupRequest):
    """A member extends its session; the response says whether the member must join again."""

    member_id: str
    generation: int
    instance_id: str | None = None


class MemberIdentity(NamedTuple):
    """The member that leaves, by member id ("" if absent), instance id (None if absent) or both."""

    member_id: str = ""
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class LeaveGroup(GroupRequest):
    """Members leave the group; before 2.4 a request names exactly one member (KIP-345)."""

    members: tuple[MemberIdentity, ...]


class CommittedOffset(NamedTuple):
    """One offset of a commit.

    `commit_timestamp`, in ms, is None except in version 1 of OffsetCommit.
    """

    offset: int
    metadata: str = ""
    commit_timestamp: int | None = None
    # -1: the request has no leader epoch.
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class OffsetCommit(GroupRequest):
    """A client commits offsets; with a `producer` the request is a TxnOffsetCommit."""

    member_id: str
    # -1: the client is no member; it stores offsets in the group and chooses its partitions itself.
    generation: int
    offsets: Mapping[TopicPartition, CommittedOffset]
    instance_id: str | None = None
    # None from version 5 on.
    retention_ms: int | None = None
    # The producer id of a TxnOffsetCommit, else None.
    producer: int | None = None


@dataclass(frozen=True, slots=True)
class OffsetFetch(GroupRequest):
    """A client requests committed offsets.

    `partitions` None means all partitions, () no partition; before 0.10.2 () means all (KIP-88).
    With `requires_stable` a partition whose offset has a pending write gets the error
    UNSTABLE_OFFSET_COMMIT (KIP-447).
    """

    partitions: tuple[TopicPartition, ...] | None = None
    requires_stable: bool = False


@dataclass(frozen=True, slots=True)
class DescribeGroup(GroupRequest):
    """A client requests the state and the members of one group (DescribeGroups with one group)."""


@dataclass(frozen=True, slots=True)
class OffsetDelete(GroupRequest):
    """A client deletes offsets of some partitions (KIP-496).

    `unknown` are the partitions of the request that the metadata of the broker do not have,
    `partitions` the other partitions.
    """

    partitions: tuple[TopicPartition, ...]
    unknown: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class ListGroups(Event):
    """A client requests the groups of this coordinator in `states`; () means all states.

    `states` are names such as "Stable" (2.6 on).
    """

    correlation_id: str
    states: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteGroups(TimedEvent):
    """A client deletes groups with all their offsets (KIP-229)."""

    correlation_id: str
    group_ids: tuple[str, ...]


# ---------------------------------------------------------------- timers


@dataclass(frozen=True, slots=True)
class SessionTimedOut(TimedEvent):
    """A member's session has expired, or its first JoinGroup was parked for 5 minutes (2.1 on)."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class PendingMemberTimedOut(TimedEvent):
    """No member has joined under a pending member id within the session timeout."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class JoinTimedOut(TimedEvent):
    """The rebalance timeout of a join phase is over.

    `generation` is the generation before this join phase.
    """

    group_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class InitialJoinTimedOut(TimedEvent):
    """The wait of a group's first join phase (group.initial.rebalance.delay.ms) is over."""

    group_id: str
    # The generation before this join phase.
    generation: int
    # The length of the wait.
    delay_ms: int
    # The longest time by which the wait may be extended.
    remaining_ms: int


@dataclass(frozen=True, slots=True)
class SyncTimedOut(TimedEvent):
    """The rebalance timeout of the sync phase (CompletingRebalance) of this generation is over."""

    group_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class ExpireOffsets(TimedEvent):
    """The removal of expired offsets is due.

    If the scheduler's timer queued this event (`is_scheduled`), the handler sets the timer again.
    """

    is_scheduled: bool = False


# ---------------------------------------------------------------- writes that have ended


@dataclass(frozen=True, slots=True)
class Appended(TimedEvent):
    """The base class of events at the end of an append to the offsets topic."""

    group_id: str
    # Of the group that wrote the batch: how many groups with this id had left the cache before. A
    # later group with this id has a higher number.
    incarnation: int = field(default=0, kw_only=True)
    # The error of the append, "NONE" after a success.
    error: str = field(default="NONE", kw_only=True)
    # The log offset of the batch's first record.
    base_offset: int = field(default=-1, kw_only=True)


@dataclass(frozen=True, slots=True)
class AssignmentStored(Appended):
    """The write of the leader's assignment in this generation has ended.

    `assignment` maps each member id to the bytes of the member's assignment.
    """

    generation: int
    assignment: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class StaticMemberStored(Appended):
    """The write of a static member's new id, `member_id`, to the log has ended."""

    # The correlation id of the JoinGroup that requested the new id.
    correlation_id: str
    member_id: str
    # After an error the member gets this id again, but keeps the `protocols` of the JoinGroup that
    # requested the new id, as in Kafka.
    old_member_id: str
    # The leader before the write, which the response to the JoinGroup names.
    leader: str | None
    protocols: tuple[GroupProtocol, ...]


@dataclass(frozen=True, slots=True)
class OffsetsStored(Appended):
    """The write of a commit's offsets has ended.

    `offsets` are the written offsets; `refused` are the partitions of the request whose metadata
    was too long. `producer` is the producer id of a TxnOffsetCommit, else None.
    """

    # The correlation id of the commit.
    correlation_id: str
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    refused: tuple[TopicPartition, ...] = ()
    producer: int | None = None


# ---------------------------------------------------------------- partitions of the offsets topic


@dataclass(frozen=True, slots=True)
class PartitionElected(TimedEvent):
    """This broker leads this partition of the offsets topic now.

    `coordinator_epoch` is the leader epoch.
    """

    partition: int
    coordinator_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionResigned(TimedEvent):
    """This broker no longer leads this partition of the offsets topic.

    `coordinator_epoch` is the new leader epoch, None if the broker has no replica any more.
    """

    partition: int
    coordinator_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class TransactionCompleted(Event):
    """A transaction's commit or abort marker is in the log of `partitions` of the offsets topic."""

    # The id of the transaction's producer.
    producer: int
    partitions: tuple[int, ...]
    # True for a commit marker, False for an abort marker.
    is_commit: bool


# ---------------------------------------------------------------- responses


class JoinResult(NamedTuple):
    """The response to a JoinGroup: the member's id, the generation, its protocol and its leader.

    After an error protocol and leader are empty.
    """

    # "NONE" without an error.
    error: str
    member_id: str
    generation: int
    protocol: str = ""
    leader: str = ""
    # (member id, metadata for the chosen protocol) of each member, in the leader's response alone.
    members: tuple[tuple[str, bytes], ...] = ()
    # None before 2.5, and after an error.
    protocol_type: str | None = None


class SyncResult(NamedTuple):
    """The response to a SyncGroup: the member's assignment, b"" after an error."""

    error: str
    assignment: bytes = b""
    # The group's protocol type and protocol; None before 2.5, and after an error.
    protocol_type: str | None = None
    protocol: str | None = None


class HeartbeatResult(NamedTuple):
    """The response to a Heartbeat; `error` is "NONE" after a success."""

    error: str


class LeaveResult(NamedTuple):
    """The response to a LeaveGroup: the error of the request, and one for each named member."""

    error: str
    # The errors of `identities`, in this order; both are empty before 2.4, and if the whole request
    # is refused.
    members: tuple[str, ...] = ()
    # The members that the request names.
    identities: tuple[MemberIdentity, ...] = ()


class ErrorsResult(NamedTuple):
    """The response to a commit or a deletion: the request's error, and `errors` by partition.

    In the response to DeleteGroups, `errors` maps group ids to errors.
    """

    errors: dict[TopicPartition, str] | dict[str, str]
    error: str = "NONE"


class FetchedOffset(NamedTuple):
    """One partition in the response to an OffsetFetch: offset, metadata, error and leader epoch.

    The offset -1 means that none is committed; `error` is "NONE" without an error.
    """

    offset: int = -1
    metadata: str = ""
    error: str = "NONE"
    leader_epoch: int = -1


class FetchResult(NamedTuple):
    """The response to an OffsetFetch: the error of the request, and the offsets by partition."""

    error: str
    offsets: dict[TopicPartition, FetchedOffset]


class DescribeResult(NamedTuple):
    """The response to a DescribeGroups request for one group.

    `members` has (`Member`, its metadata, its assignment) for each member; metadata and assignment
    are b"" unless the group is Stable.
    """

    # "NONE" without an error.
    error: str
    # Kafka's name in this release, such as "Stable".
    state: str = ""
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[tuple[Member, bytes, bytes], ...] = ()


class ListResult(NamedTuple):
    """The response to a ListGroups: its error, and (id, protocol type, state) of each group."""

    error: str
    groups: tuple[tuple[str, str, str], ...] = ()
