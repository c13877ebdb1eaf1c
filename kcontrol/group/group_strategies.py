"""The decisions of the coordinator that a learner (a user of the lab) can replace.

GROUP_STRATEGIES has Kafka's function for each name. `Lab(strategies={"group.expired": function})`
replaces one. The arguments of the function are tuples, numbers and texts, which the caller, such as
`may_complete_join`, makes from the group; a learner's function gets equal arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kcontrol.group.context import GroupContext
from kcontrol.group.model import Group

JOIN_GROUP, SYNC_GROUP = "JoinGroup", "SyncGroup"


class JoiningMember(NamedTuple):
    """One member in the join phase: its id, whether it leads, and its parked request.

    `parked` is "JoinGroup", or None without a parked request. `is_pending` marks a member id that
    the coordinator has assigned and that no JoinGroup has used yet (since 2.2).
    """

    member_id: str
    leads: bool
    parked: str | None
    is_pending: bool = False


def try_complete_join(members: Sequence[JoiningMember]) -> bool:
    """Return whether the join phase may end: the JoinGroup of every member is parked.

    Source: tryCompleteJoin of GroupCoordinator.scala (0.9), hasAllMembersJoined of
    GroupMetadata.scala (2.8).
    """
    return all(member.parked == JOIN_GROUP for member in members)


def keep_alive(latest: int, session: int, deadline: int, parked: bool) -> bool:
    """Return whether a member stays in the group at the deadline of its session.

    It stays if one of its requests is parked (`parked`), or if the session that began with its
    latest heartbeat ends later than `deadline`. `latest` is the time of this heartbeat and
    `session` the session timeout. Times are in ms and count from the heartbeat, so the coordinator
    calls the function with `latest` 0, when it sets the timer and when the timer fires. The
    JoinGroup of a new member does not count as parked (since 2.1). Source: shouldKeepMemberAlive of
    GroupCoordinator.scala (0.9), hasSatisfiedHeartbeat of MemberMetadata.scala (2.8).
    """
    return parked or latest + session > deadline


class ExpiringOffset(NamedTuple):
    """A committed offset: its times in ms, and whether members may subscribe to its topic.

    `expire_timestamp` is the time at which the offset itself expires, or None if the group's
    retention decides (since 2.1).
    """

    commit_timestamp: int
    expire_timestamp: int | None
    is_subscribed: bool


class ExpiringGroup(NamedTuple):
    """The group of an offset, and the settings that decide when the offset expires.

    `expiry` is "commit" up to 2.0: only the offset's own time counts. With "empty" (2.1 to 2.3) and
    "unsubscribed" (since 2.4) the group's retention counts; only with "unsubscribed" an offset can
    expire in a group with members. `state_timestamp` is the time at which the group entered its
    state, -1 if unknown. A group without members that was used for offsets alone has
    `protocol_type` None.
    """

    expiry: str
    state: str
    state_timestamp: int
    protocol_type: str | None
    retention_ms: int


def expired(offset: ExpiringOffset, group: ExpiringGroup, now: int) -> bool:
    """Return whether an offset has expired at `now`, in ms.

    Up to 2.0 only `expire_timestamp` counts. Since 2.1 an offset without this time expires after
    the retention, which counts from its commit, or from the time at which the group became Empty;
    offsets of a group with members do not expire as long as members may subscribe to the topic.
    Source: deleteExpiredOffsets of GroupMetadataManager.scala (0.9), getExpiredOffsets of
    GroupMetadata.scala (2.1, 2.8), KIP-211.
    """
    base, own = offset.commit_timestamp, offset.expire_timestamp
    if group.expiry == "commit":
        return own is not None and own < now
    if group.protocol_type is not None and group.state == "Empty":
        base = group.state_timestamp if group.state_timestamp >= 0 else base
    elif group.protocol_type is not None and offset.is_subscribed:
        return False
    return now >= own if own is not None else now - base >= group.retention_ms


def unloaded(state: str, parked: str) -> str | None:
    """Return the error of a parked request when its group is unloaded in this state, else None.

    `parked` is "JoinGroup" or "SyncGroup". A JoinGroup that waits for the record of a static
    member's new id gets its response from the end of this write. Source: onGroupUnloaded of
    GroupCoordinator.scala (0.9, 2.8).
    """
    expected = JOIN_GROUP if state == "PreparingRebalance" else SYNC_GROUP
    return "NOT_COORDINATOR" if parked == expected else None


TRY_COMPLETE_JOIN, KEEP_ALIVE = "group.try_complete_join", "group.keep_alive"
EXPIRED, UNLOADED = "group.expired", "group.unloaded"
GROUP_STRATEGIES: Mapping[str, Callable[..., Any]] = {
    TRY_COMPLETE_JOIN: try_complete_join, KEEP_ALIVE: keep_alive, EXPIRED: expired,
    UNLOADED: unloaded,
}  # fmt: skip


def rule(ctx: GroupContext, name: str) -> Callable[..., Any]:
    """Return the function of the rule `name`: the learner's or, if there is none, Kafka's.

    Raises KeyError if GROUP_STRATEGIES has no such name.
    """
    return ctx.changes.strategies.get(name, GROUP_STRATEGIES[name])


def may_complete_join(ctx: GroupContext, group: Group) -> bool:
    """Return whether the join phase of the group may end.

    The function `group.try_complete_join`, of Kafka or of the learner, decides. It gets the members
    and the pending member ids.
    """
    members = [
        JoiningMember(id, id == group.leader, JOIN_GROUP if member.awaiting_join else None)
        for id, member in group.members.items()
    ]
    members += [JoiningMember(id, False, None, is_pending=True) for id in group.pending_members]
    return bool(rule(ctx, TRY_COMPLETE_JOIN)(members))
