"""The decisions of the coordinator that a learner (a user of the lab) can replace.

GROUP_STRATEGIES has Kafka's function for each name; `Lab(strategies={"group.expired": function})`
replaces one. The arguments are tuples, numbers and texts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kcontrol.group.context import GroupContext
from kcontrol.group.model import Group

JOIN_GROUP, SYNC_GROUP = "JoinGroup", "SyncGroup"


class JoiningMember(NamedTuple):
    """One member in the join phase: its id, whether it leads, and its parked request."""

    member_id: str
    leads: bool
    # "JoinGroup", or None without a parked request.
    parked: str | None
    # True for a member id that the coordinator has assigned and no JoinGroup has used yet (since
    # 2.2).
    is_pending: bool = False


def try_complete_join(members: Sequence[JoiningMember]) -> bool:
    """Return whether the join phase may end: the JoinGroup of every member is parked.

    Source: tryCompleteJoin of GroupCoordinator.scala (0.9), hasAllMembersJoined of
    GroupMetadata.scala (2.8).
    """
    return all(member.parked == JOIN_GROUP for member in members)


def keep_alive(latest: int, session: int, deadline: int, parked: bool) -> bool:
    """Return whether a member stays in the group at the deadline of its session.

    A member with a parked request stays; any member stays if `latest` (the time of the latest
    heartbeat) plus `session` (the session timeout) is after `deadline`, all in ms.

    Source: shouldKeepMemberAlive of GroupCoordinator.scala (0.9), hasSatisfiedHeartbeat of
    MemberMetadata.scala (2.8).
    """
    # Times count from the heartbeat, so the coordinator passes 0 as `latest`. The JoinGroup of a
    # new member does not count as parked (since 2.1).
    return parked or latest + session > deadline


class ExpiringOffset(NamedTuple):
    """A committed offset: commit and expiry time in ms, and whether its topic is subscribed."""

    commit_timestamp: int
    # The time at which the offset itself expires; None if the group's retention decides (since
    # 2.1).
    expire_timestamp: int | None
    # Whether a member of the group subscribes to the topic.
    is_subscribed: bool


class ExpiringGroup(NamedTuple):
    """The group of an offset, and the settings that decide when the offset expires."""

    # "commit" up to 2.0: only the offset's own time counts. With "empty" (2.1 to 2.3) and
    # "unsubscribed" (since 2.4) the group's retention counts; only with "unsubscribed" an offset
    # can expire in a group with members.
    expiry: str
    # Kafka's name of the group's state, such as "Empty".
    state: str
    # The time in ms at which the group entered its state, -1 if unknown.
    state_timestamp: int
    # None for a group without members that was used for offsets alone.
    protocol_type: str | None
    # `offsets.retention.minutes`, in ms.
    retention_ms: int


def expired(offset: ExpiringOffset, group: ExpiringGroup, now: int) -> bool:
    """Return whether an offset has expired at `now`, in ms.

    An offset without `expire_timestamp` never expires up to 2.0; since 2.1 it expires by the
    group's retention.

    Source: deleteExpiredOffsets of GroupMetadataManager.scala (0.9), getExpiredOffsets of
    GroupMetadata.scala (2.1, 2.8), KIP-211.
    """
    base, own = offset.commit_timestamp, offset.expire_timestamp
    if group.expiry == "commit":
        return own is not None and own < now
    # The retention counts from the commit, or from the time at which the group became Empty.
    if group.protocol_type is not None and group.state == "Empty":
        base = group.state_timestamp if group.state_timestamp >= 0 else base
    # Offsets stay as long as members of the group may subscribe to the topic.
    elif group.protocol_type is not None and offset.is_subscribed:
        return False
    return now >= own if own is not None else now - base >= group.retention_ms


def unloaded(state: str, parked: str) -> str | None:
    """Return the error for a parked request whose group is unloaded; None keeps it parked.

    `state` is the group's state, such as "Stable"; `parked` is "JoinGroup" or "SyncGroup".

    Source: onGroupUnloaded of GroupCoordinator.scala (0.9, 2.8).
    """
    expected = JOIN_GROUP if state == "PreparingRebalance" else SYNC_GROUP
    # A JoinGroup that waits for the record of a static member's new id gets its response after this
    # write.
    return "NOT_COORDINATOR" if parked == expected else None


TRY_COMPLETE_JOIN, KEEP_ALIVE = "group.try_complete_join", "group.keep_alive"
EXPIRED, UNLOADED = "group.expired", "group.unloaded"
GROUP_STRATEGIES: Mapping[str, Callable[..., Any]] = {
    TRY_COMPLETE_JOIN: try_complete_join, KEEP_ALIVE: keep_alive, EXPIRED: expired,
    UNLOADED: unloaded,
}  # fmt: skip


def rule(ctx: GroupContext, name: str) -> Callable[..., Any]:
    """The learner's function, else Kafka's. Raises KeyError for an unknown name."""
    return ctx.changes.strategies.get(name, GROUP_STRATEGIES[name])


def may_complete_join(ctx: GroupContext, group: Group) -> bool:
    """The learner's `group.try_complete_join`, else Kafka's, decides."""
    # Kafka's answer needs no list of the members: it follows from the count.
    if TRY_COMPLETE_JOIN not in ctx.changes.strategies:
        return group.members.awaiting_join == len(group.members) and not group.pending_members
    members = [
        JoiningMember(id, id == group.leader, JOIN_GROUP if member.awaiting_join else None)
        for id, member in group.members.items()
    ]
    members += [JoiningMember(id, False, None, is_pending=True) for id in group.pending_members]
    return bool(rule(ctx, TRY_COMPLETE_JOIN)(members))
