"""Groups, members and offsets as immutable values; members are in the order in which they joined.

A change makes a new value, which a handler puts into the cache (`context.cache_group`). Read next:
`group_machine.py` and `rebalance.py`.

Source: GroupMetadata.scala and MemberMetadata.scala (0.9, 2.8).
"""

# Kafka keeps members in a hash map, whose order decides the next leader after the leader's removal
# and the protocol that wins a tie; here the order of joining decides.
from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from kcontrol.core.model import TopicPartition

CONSUMER = "consumer"
NO_MEMBER_ID = ""

K = TypeVar("K")
V = TypeVar("V")


class GroupState(Enum):
    """The states of a group, by Kafka's names of 2.8.

    CompletingRebalance was called AwaitingSync before 1.1.
    """

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"

    def __str__(self) -> str:
        return self.value


class GroupProtocol(NamedTuple):
    """An assignor that a member offers: its name, and the member's subscription for it as bytes."""

    name: str
    metadata: bytes = b""


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a group, with the correlation ids of its parked requests."""

    member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    # Before 0.10.1 equal to the session timeout.
    rebalance_timeout_ms: int
    # In the order of the member's preference.
    protocols: tuple[GroupProtocol, ...]
    # None for a dynamic member.
    instance_id: str | None = None
    # From the SyncGroup of the leader; b"" without an assignment.
    assignment: bytes = b""
    # The correlation ids of the parked JoinGroup and of the parked SyncGroup; None if no such
    # request is parked.
    awaiting_join: str | None = None
    awaiting_sync: str | None = None
    # Whether the member's first JoinGroup is parked (2.1 on).
    is_new: bool = False
    # The new ids of a static member that are not in the log yet.
    unwritten: tuple[str, ...] = ()
    # The correlation id of a JoinGroup that is no longer parked and has no response, else None: the
    # write of an earlier new id failed. It gets a response only if the write of its own new id
    # fails too.
    dropped: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the member's fields by name for the run's journal, bytes as hexadecimal text."""
        said = {name: getattr(self, name) for name in Member.__slots__}
        protocols = {protocol.name: protocol.metadata.hex() for protocol in self.protocols}
        said |= {"protocols": protocols, "assignment": self.assignment.hex()}
        return said | {"unwritten": list(self.unwritten)}

    @property
    def is_parked(self) -> bool:
        """Return whether a JoinGroup or SyncGroup of the member waits for its response."""
        return self.awaiting_join is not None or self.awaiting_sync is not None

    def after_id_write(self, member_id: str) -> Member:
        return replace(self, unwritten=tuple(id for id in self.unwritten if id != member_id))

    @property
    def protocol_names(self) -> tuple[str, ...]:
        """Return the names of the member's protocols, in the order of preference."""
        return tuple(protocol.name for protocol in self.protocols)

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's metadata for a protocol; b"" if the member does not offer it."""
        return next((offer.metadata for offer in self.protocols if offer.name == protocol), b"")

    def vote(self, candidates: Collection[str]) -> str:
        """Return the member's preferred protocol in `candidates`: the first in the member's order.

        Raises ValueError if no protocol of the member is in `candidates`.

        Source: vote of MemberMetadata.scala (0.9, 2.8).
        """
        for name in self.protocol_names:
            if name in candidates:
                return name
        names = ", ".join(sorted(candidates))
        raise ValueError(f"member {self.member_id} supports none of the candidates: {names}")


class Members(Mapping[str, Member]):
    """The members of a group by id, in the order in which they joined, with Kafka's two counts.

    The mapping never changes in place. The counts spare each JoinGroup a scan over all members; a
    changed copy shares all but the last changes, at most the root of their number.

    Source: numMembersAwaitingJoin, supportedProtocols of GroupMetadata.scala (2.8).
    """

    __slots__ = ("_changed", "_settled", "awaiting_join", "supported_protocols")

    def __init__(self, members: Iterable[Member] = ()) -> None:
        self._settled, self._changed = {m.member_id: m for m in members}, dict[str, Member]()
        self.awaiting_join = sum(m.awaiting_join is not None for m in self._settled.values())
        offered = (name for m in self._settled.values() for name in {*m.protocol_names})
        self.supported_protocols = Counter(offered)

    def __getitem__(self, member_id: str) -> Member:
        return (self._changed if member_id in self._changed else self._settled)[member_id]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._settled, **self._changed})

    def __len__(self) -> int:
        return len(self._settled) + len(self._changed.keys() - self._settled.keys())

    def to_json(self) -> dict[str, Any]:
        return {id: member.to_json() for id, member in self.items()}

    def with_member(self, member: Member) -> Members:
        id, changed, new = member.member_id, Members(), Members([member])
        old = Members([self[id]] if id in self else ())
        changed._settled, changed._changed = self._settled, {**self._changed, id: member}
        if len(changed._changed) ** 2 > len(self._settled):
            changed._settled, changed._changed = {**self._settled, **changed._changed}, {}
        changed.awaiting_join = self.awaiting_join + new.awaiting_join - old.awaiting_join
        offered = self.supported_protocols + new.supported_protocols
        changed.supported_protocols = offered - old.supported_protocols
        return changed


def without_id(ids: tuple[str, ...], gone: str) -> tuple[str, ...]:
    at = ids.index(gone) if gone in ids else len(ids)
    return ids[:at] + ids[at + 1 :]


@dataclass(frozen=True, slots=True)
class Group:
    """One group: its members by id, in the order in which they joined, and its state."""

    group_id: str
    state: GroupState
    # The time at which the group entered its state, in ms; -1 if unknown.
    state_timestamp_ms: int = -1
    # Such as "consumer"; None if no member has joined the group yet (0.10.1 on).
    protocol_type: str | None = None
    # The chosen assignor, such as "range"; None before the first generation, and without members.
    protocol: str | None = None
    # 0 before the end of the first join phase.
    generation: int = 0
    # A member id.
    leader: str | None = None
    members: Members = field(default_factory=Members)
    # Member ids that the coordinator has assigned and no member uses yet.
    pending_members: tuple[str, ...] = ()
    # The ids of members that have not sent SyncGroup since the join phase ended (2.8 on).
    pending_sync: tuple[str, ...] = ()
    # True during group.initial.rebalance.delay.ms, a wait that does not end early.
    is_delayed: bool = False
    # Whether a member has joined in the wait, which extends the wait.
    has_newcomer: bool = False
    # The topics to which the members subscribe; None if the topics are unknown.
    subscribed_topics: frozenset[str] | None = None

    def with_changes(self, **changes: Any) -> Group:
        """Return a copy of the group in which the fields named in `changes` have these values."""
        return replace(self, **changes)

    # ---- members

    def with_member(self, member: Member) -> Group:
        """Return the group with `member`, which replaces a present member with the same id.

        If the group has no leader, `member` becomes the leader. A pending id that the member uses
        is no longer pending. Source: add of GroupMetadata.scala (0.9, 2.8).
        """
        return replace(
            self,
            members=self.members.with_member(member),
            leader=self.leader if self.leader is not None else member.member_id,
            pending_members=without_id(self.pending_members, member.member_id),
        )

    def with_members(self, members: Iterable[Member]) -> Group:
        """Return the group with these members in place of its members; all other fields stay."""
        return replace(self, members=Members(members))

    def with_each_member(self, **changes: Any) -> Group:
        """Return the group in which `changes` (field to value) are made in every member."""
        return self.with_members(replace(m, **changes) for m in self.members.values())

    def without(self, *gone: str) -> Group:
        """Return the group without the members with these ids.

        If the leader is removed, the member that joined first is the new leader; the leader is None
        if no member is left.

        Source: remove of GroupMetadata.scala (0.9, 2.8).
        """
        members = Members(member for id, member in self.members.items() if id not in gone)
        # Kafka takes the first member of a hash map, whose order has no meaning.
        leader = next(iter(members), None) if self.leader in gone else self.leader
        pending = tuple(id for id in self.pending_sync if id not in gone)
        return replace(self, members=members, leader=leader, pending_sync=pending)

    def member_of(self, instance_id: str | None) -> str | None:
        """The static member with this instance id."""
        members = self.members.values() if instance_id else ()
        return next((m.member_id for m in members if m.instance_id == instance_id), None)

    def writer_of(self, member_id: str) -> Member | None:
        """The static member one of whose new ids, not yet in the log, is `member_id`."""
        return next((m for m in self.members.values() if member_id in m.unwritten), None)

    def is_fenced(self, member_id: str, instance_id: str | None) -> bool:
        """Return whether the instance id belongs to a member with another id than `member_id`.

        False for `instance_id` None, and for an instance id that no member has.

        Source: isStaticMemberFenced of GroupMetadata.scala (2.8).
        """
        holder = self.member_of(instance_id)
        return holder is not None and holder != member_id

    def rebalance_timeout_ms(self, *, is_session: bool) -> int:
        """Return the longest rebalance timeout of the members; 0 without members.

        With `is_session` return the longest session timeout instead, as before 0.10.1. Source:
        rebalanceTimeoutMs.
        """
        name = "session_timeout_ms" if is_session else "rebalance_timeout_ms"
        return max((getattr(member, name) for member in self.members.values()), default=0)

    # ---- protocols

    @property
    def candidates(self) -> frozenset[str]:
        """Return the protocols that all members offer. Source: candidateProtocols (0.9, 2.8)."""
        counts = self.members.supported_protocols
        return frozenset(name for name, count in counts.items() if count == len(self.members) > 0)

    @property
    def votes(self) -> Counter[str]:
        """Of the protocols that all members offer, in the order of first votes: `{"range": 2}`."""
        candidates = self.candidates
        return Counter(member.vote(candidates) for member in self.members.values())

    def select_protocol(self) -> str:
        """Return the protocol with most votes; in a tie the protocol whose first vote is earlier.

        Raises ValueError if no protocol is offered by all members. Source: selectProtocol (0.9,
        2.8).
        """
        votes = self.votes
        return max(votes, key=lambda name: votes[name])

    def supports(self, protocol_type: str, names: Collection[str]) -> bool:
        """Return whether a member with this protocol type and these protocols can join the group.

        The type must be the group's, and one of the protocols must be offered by all members.

        Source: supportsProtocols of GroupMetadata.scala (2.1, 2.8).
        """
        is_common = not self.members or not self.candidates.isdisjoint(names)
        return protocol_type == self.protocol_type and is_common


class OffsetAndMetadata(NamedTuple):
    """One committed offset of a partition; the times are in ms since 1970.

    If `expire_timestamp` is None, the coordinator's retention decides when the offset expires
    (`offset_expiration.py`).
    """

    offset: int
    metadata: str = ""
    commit_timestamp: int = -1
    expire_timestamp: int | None = None
    # -1: the commit had no leader epoch.
    leader_epoch: int = -1


class CommitRecordMetadataAndOffset(NamedTuple):
    """A committed offset, and the first offset of the batch that has the commit's record.

    `base_offset`, the offset of the batch in the log, is None while unknown.
    """

    value: OffsetAndMetadata
    base_offset: int | None = None


Entries = Mapping[TopicPartition, CommitRecordMetadataAndOffset]


@dataclass(frozen=True, slots=True)
class Offsets:
    """The offsets of one group.

    `committed` are the visible offsets, `pending` the offsets whose record the log has not
    acknowledged, and `by_producer` the offsets of open transactions, by producer id.
    """

    committed: Entries = field(default_factory=dict)
    pending: Mapping[TopicPartition, OffsetAndMetadata] = field(default_factory=dict)
    by_producer: Mapping[int, Entries] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether there is any committed or pending offset, or any open transaction."""
        return bool(self.committed or self.pending or self.by_producer)

    def is_unstable(self, tp: TopicPartition) -> bool:
        """Return whether an offset of the partition is pending, or in an open transaction."""
        return tp in self.pending or any(tp in entries for entries in self.by_producer.values())

    def committing(self, new: Entries) -> Offsets:
        """Return these offsets with the offsets in `new` as committed offsets; `pending` stays.

        A new offset is left out if its batch is earlier in the log than the batch of the
        partition's committed offset.

        Source: onOffsetCommitAppend, completePendingTxnOffsetCommit of GroupMetadata.scala (2.8).
        """
        old = self.committed
        newer = {tp: stored for tp, stored in new.items() if _is_newer(stored, old.get(tp))}
        return replace(self, committed={**old, **newer})

    def without_committed(self, gone: Collection[TopicPartition]) -> Offsets:
        """Return the offsets without the committed offsets of the partitions in `gone`.

        Pending offsets stay.

        Source: removeExpiredOffsets (2.8).
        """
        return replace(self, committed=_without(self.committed, gone))

    def without(self, gone: Collection[TopicPartition]) -> Offsets:
        """Return the offsets without any offset, committed or pending, of the partitions in `gone`.

        A producer whose last offset is removed stays in `by_producer`. Source: removeOffsets of
        GroupMetadata.scala (2.8).
        """
        return replace(
            self.without_committed(gone),
            pending=_without(self.pending, gone),
            by_producer={id: _without(entries, gone) for id, entries in self.by_producer.items()},
        )

    def for_producer(self, producer: int, entries: Entries) -> Offsets:
        """Replace the offsets of the producer's open transaction."""
        return replace(self, by_producer={**self.by_producer, producer: entries})

    def without_empty(self) -> Offsets:
        """Return the offsets without the producer ids in `by_producer` that have no offset.

        Source: doLoadGroupsAndOffsets (2.8).
        """
        left = {id: entries for id, entries in self.by_producer.items() if entries}
        return replace(self, by_producer=left)

    def without_producer(self, producer: int) -> Offsets:
        """Return the offsets without the open transaction of producer id `producer`."""
        return replace(self, by_producer=_without(self.by_producer, (producer,)))


def _without(entries: Mapping[K, V], gone: Collection[K]) -> dict[K, V]:
    return {key: value for key, value in entries.items() if key not in gone}


def _is_newer(
    new: CommitRecordMetadataAndOffset, old: CommitRecordMetadataAndOffset | None
) -> bool:
    """By place in the log; True if a place is unknown."""
    if old is None or old.base_offset is None or new.base_offset is None:
        return True
    return new.base_offset > old.base_offset
