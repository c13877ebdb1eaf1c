"""Groups, members and offsets as immutable values: what one coordinator believes of each.

Source: GroupMetadata.scala and MemberMetadata.scala (0.9, 2.8).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

from kcontrol.model import TopicPartition

CONSUMER = "consumer"
NO_MEMBER_ID = ""


class GroupState(Enum):
    """Kafka's own names; what is CompletingRebalance here was called AwaitingSync before 1.1."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"

    def __str__(self) -> str:
        return self.value


class GroupProtocol(NamedTuple):
    """One assignment strategy that a member offers, with its metadata for it."""

    name: str
    metadata: bytes = b""


@dataclass(frozen=True, slots=True)
class Member:
    """One member. `awaiting_join` and `awaiting_sync` are the correlation ids of its parked requests.

    `unwritten` are ids that a static member has come back under and that are not in the log yet; the JoinGroup `dropped` is
    answered only if the write of its own id fails.
    """

    member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[GroupProtocol, ...]
    instance_id: str | None = None
    assignment: bytes = b""
    awaiting_join: str | None = None
    awaiting_sync: str | None = None
    is_new: bool = False
    unwritten: tuple[str, ...] = ()
    dropped: str | None = None

    def plain(self) -> dict[str, Any]:
        """What a journal says of it: bytes as hex, so that they can be read back."""
        said = {name: getattr(self, name) for name in Member.__slots__}
        protocols = {protocol.name: protocol.metadata.hex() for protocol in self.protocols}
        return said | {"protocols": protocols, "assignment": self.assignment.hex(), "unwritten": list(self.unwritten)}

    @property
    def is_parked(self) -> bool:
        return self.awaiting_join is not None or self.awaiting_sync is not None

    def wrote(self, member_id: str) -> Member:
        """Return the member after the write of one of its ids has ended."""
        return replace(self, unwritten=tuple(other for other in self.unwritten if other != member_id))

    @property
    def protocol_names(self) -> tuple[str, ...]:
        return tuple(protocol.name for protocol in self.protocols)

    def metadata(self, protocol: str | None) -> bytes:
        """Its metadata for one protocol; empty for one that it does not offer."""
        return next((offered.metadata for offered in self.protocols if offered.name == protocol), b"")

    def vote(self, candidates: Collection[str]) -> str:
        """The first of its protocols that is a candidate. Raises ValueError if there is none."""
        for name in self.protocol_names:
            if name in candidates:
                return name
        raise ValueError(f"member {self.member_id} supports none of the candidates {sorted(candidates)}")


@dataclass(frozen=True, slots=True)
class Group:
    """One group: its members in the order in which they came, and how far its rebalance is.

    `is_delayed` tells a first wait, which nothing ends early, from a join phase that ends when all are there.
    `subscribed_topics` is None where they are unknown.
    """

    group_id: str
    state: GroupState
    state_timestamp_ms: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    generation: int = 0
    leader: str | None = None
    members: Mapping[str, Member] = field(default_factory=dict)
    pending_members: tuple[str, ...] = ()
    pending_sync: tuple[str, ...] = ()
    is_delayed: bool = False
    has_newcomer: bool = False
    subscribed_topics: frozenset[str] | None = None

    def but(self, **changes: Any) -> Group:
        return replace(self, **changes)

    # ---- members

    def with_member(self, member: Member) -> Group:
        """With one member more, or anew; whoever is there while nobody leads becomes leader, and the first one sets the type."""
        return replace(
            self,
            members={**self.members, member.member_id: member},
            leader=self.leader if self.leader is not None else member.member_id,
            pending_members=tuple(id for id in self.pending_members if id != member.member_id),
        )

    def with_members(self, members: Iterable[Member]) -> Group:
        """The same members, each changed."""
        return replace(self, members={member.member_id: member for member in members})

    def without(self, *gone: str) -> Group:
        """Without some members; whoever has been here longest leads if the leader has gone."""
        members = {id: member for id, member in self.members.items() if id not in gone}
        leader = next(iter(members), None) if self.leader in gone else self.leader
        pending = tuple(id for id in self.pending_sync if id not in gone)
        return replace(self, members=members, leader=leader, pending_sync=pending)

    def member_of(self, instance_id: str | None) -> str | None:
        """The id of the static member with this instance id."""
        found = (member.member_id for member in self.members.values() if instance_id and member.instance_id == instance_id)
        return next(found, None)

    def writer_of(self, member_id: str) -> Member | None:
        """Return the static member that has come back under this id, which is being written."""
        return next((member for member in self.members.values() if member_id in member.unwritten), None)

    def is_fenced(self, member_id: str, instance_id: str | None) -> bool:
        """Whether another process works under the instance id. Source: isStaticMemberFenced (2.8)."""
        holder = self.member_of(instance_id)
        return holder is not None and holder != member_id

    @property
    def not_yet_rejoined(self) -> tuple[Member, ...]:
        return tuple(member for member in self.members.values() if member.awaiting_join is None)

    @property
    def has_all_joined(self) -> bool:
        return not self.not_yet_rejoined and not self.pending_members

    def rebalance_timeout_ms(self, *, is_session: bool) -> int:
        """The longest rebalance timeout of its members, or, before 0.10.1, session timeout; 0 without members."""
        chosen = (m.session_timeout_ms if is_session else m.rebalance_timeout_ms for m in self.members.values())
        return max(chosen, default=0)

    # ---- protocols

    @property
    def candidates(self) -> frozenset[str]:
        """The protocols that all members offer."""
        offered = [frozenset(member.protocol_names) for member in self.members.values()]
        return frozenset.intersection(*offered) if offered else frozenset()

    @property
    def votes(self) -> dict[str, int]:
        """How many members want each candidate most, in the order of the first vote."""
        candidates, votes = self.candidates, dict[str, int]()
        for member in self.members.values():
            chosen = member.vote(candidates)
            votes[chosen] = votes.get(chosen, 0) + 1
        return votes

    def select_protocol(self) -> str:
        """The protocol with most votes, at a tie the one voted for first. Raises ValueError where there is none."""
        votes = self.votes
        return max(votes, key=lambda name: votes[name])

    def supports(self, protocol_type: str, names: Collection[str], first: str) -> bool:
        """Return whether a member may offer these protocols. `first` is the rule `first_protocols`.

        From 2.2 on a member must offer a protocol even where the group has no members. Source: supportsProtocols (2.1, 2.8).
        """
        if self.state is GroupState.EMPTY:
            return first == "any" or (bool(protocol_type) and bool(names))
        if protocol_type != self.protocol_type:
            return False
        return not self.candidates.isdisjoint(names) if self.members else first == "any" or bool(names)


class OffsetAndMetadata(NamedTuple):
    """One committed offset. Times in ms since 1970; without `expire_timestamp` the group's retention decides."""

    offset: int
    metadata: str = ""
    commit_timestamp: int = -1
    expire_timestamp: int | None = None
    leader_epoch: int = -1


class Stored(NamedTuple):
    """A committed offset and where the batch that carried it begins; None while that is unknown."""

    value: OffsetAndMetadata
    base_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Offsets:
    """The offsets of one group: visible ones, those on their way to the log, and by producer those of open transactions."""

    committed: Mapping[TopicPartition, Stored] = field(default_factory=dict)
    pending: Mapping[TopicPartition, OffsetAndMetadata] = field(default_factory=dict)
    by_producer: Mapping[int, Mapping[TopicPartition, Stored]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.committed or self.pending or self.by_producer)

    def is_unstable(self, tp: TopicPartition) -> bool:
        return tp in self.pending or any(tp in entries for entries in self.by_producer.values())

    def committing(self, new: Mapping[TopicPartition, Stored]) -> Offsets:
        """With some made visible, but none over what a later batch has brought."""
        newer = {tp: stored for tp, stored in new.items() if _is_newer(stored, self.committed.get(tp))}
        return replace(self, committed={**self.committed, **newer})

    def without_committed(self, gone: Collection[TopicPartition]) -> Offsets:
        """Return all but some visible offsets. Source: removeExpiredOffsets (2.8)."""
        return replace(self, committed={tp: stored for tp, stored in self.committed.items() if tp not in gone})

    def without(self, gone: Collection[TopicPartition]) -> Offsets:
        """Return all but those of some partitions; a producer left without any keeps its entry. Source: removeOffsets (2.8)."""
        return replace(
            self.without_committed(gone),
            pending={tp: value for tp, value in self.pending.items() if tp not in gone},
            by_producer={p: {tp: s for tp, s in e.items() if tp not in gone} for p, e in self.by_producer.items()},
        )

    def for_producer(self, producer: int, entries: Mapping[TopicPartition, Stored]) -> Offsets:
        """Return all offsets, with these as what one producer's transaction holds."""
        return replace(self, by_producer={**self.by_producer, producer: entries})

    def without_empty(self) -> Offsets:
        """Return all, without producers that have none: loading makes no entry for them. Source: doLoadGroupsAndOffsets (2.8)."""
        return replace(self, by_producer={producer: entries for producer, entries in self.by_producer.items() if entries})

    def without_producer(self, producer: int) -> Offsets:
        """Return all offsets but those of one producer's transaction, which has ended."""
        return replace(self, by_producer={p: entries for p, entries in self.by_producer.items() if p != producer})


def _is_newer(new: Stored, old: Stored | None) -> bool:
    return old is None or old.base_offset is None or new.base_offset is None or new.base_offset > old.base_offset
