"""The decisions of the coordinator that a learner's function can replace: `Lab(strategies=...)`.

GROUP_STRATEGIES has Kafka's function by name. Its arguments are tuples, numbers and texts, which
`may_complete_join` makes from the group; a learner's function gets equal arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kcontrol.group.context import GroupContext
from kcontrol.group.model import Group

JOIN_GROUP = "JoinGroup"


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


TRY_COMPLETE_JOIN = "group.try_complete_join"
GROUP_STRATEGIES: Mapping[str, Callable[..., Any]] = {TRY_COMPLETE_JOIN: try_complete_join}


def may_complete_join(ctx: GroupContext, group: Group) -> bool:
    """Return whether the join phase of the group may end.

    The learner's function for `group.try_complete_join` decides, if there is one, else Kafka's
    `try_complete_join`. Its argument has the members and the pending member ids of the group.
    """
    members = [
        JoiningMember(id, id == group.leader, JOIN_GROUP if member.awaiting_join else None)
        for id, member in group.members.items()
    ]
    members += [JoiningMember(id, False, None, is_pending=True) for id in group.pending_members]
    rule = ctx.changes.strategies.get(TRY_COMPLETE_JOIN, try_complete_join)
    return bool(rule(members))
