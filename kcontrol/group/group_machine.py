"""A group's state machine: two tables, one for releases that keep groups without members, one for those before.

A row's action makes the group that it will be from the group that it is. Source: validPreviousStates and initNextGeneration of
GroupMetadata.scala (0.9, 2.8).
"""

from __future__ import annotations

from dataclasses import replace

from kcontrol.effects import Handler, Learn, MoveGroup
from kcontrol.generations import GroupRules
from kcontrol.group.context import GroupContext
from kcontrol.group.model import CONSUMER, Group, GroupState
from kcontrol.group.records import topics_of
from kcontrol.transitions import TransitionTable

EMPTY, PREPARING, COMPLETING = GroupState.EMPTY, GroupState.PREPARING, GroupState.COMPLETING
STABLE, DEAD = GroupState.STABLE, GroupState.DEAD


class IllegalStateError(Exception):
    """A move that no row allows, or a request that cannot come in this state. Source: IllegalStateException."""


def as_it_is(group: Group) -> Group:
    return group


def ask_all_to_join(group: Group) -> Group:
    """What has been handed out is void: no assignment, nobody from whom a SyncGroup is missing."""
    if group.state is COMPLETING:
        group = group.with_members(replace(member, assignment=b"") for member in group.members.values())
    return group.but(pending_sync=())


def begin_generation(group: Group) -> Group:
    """One generation on, by the protocol that has most votes."""
    protocol = group.select_protocol()
    chosen = group.but(generation=group.generation + 1, protocol=protocol, is_delayed=False)
    return chosen.but(subscribed_topics=subscribed_topics(chosen))


def end_empty(group: Group) -> Group:
    """One generation on, and nobody in it."""
    empty = group.but(generation=group.generation + 1, protocol=None, is_delayed=False)
    return empty.but(subscribed_topics=subscribed_topics(empty))


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """What a consumer group's members subscribe to; None where that cannot be read. Source: computeSubscribedTopics (2.8)."""
    if group.protocol_type != CONSUMER or (group.members and group.protocol is None):
        return None
    found = [topics_of(member.metadata(group.protocol)) for member in group.members.values()]
    return None if None in found else frozenset(topic for topics in found for topic in topics or ())


# fmt: off
MOVES = (
    # from        to           phase     action              what it means
    (EMPTY,       PREPARING,   "memory", ask_all_to_join,    "somebody joins a group without members"),
    (STABLE,      PREPARING,   "memory", ask_all_to_join,    "a member has come, gone or changed: all must join again"),
    (COMPLETING,  PREPARING,   "memory", ask_all_to_join,    "the same, before the leader's assignment is stored"),
    (PREPARING,   COMPLETING,  "memory", begin_generation,   "all have joined, or time is up: the leader is to assign"),
    (PREPARING,   EMPTY,       "memory", end_empty,          "time is up, or the last one left, and nobody is there"),
    (COMPLETING,  STABLE,      "memory", as_it_is,           "the leader's assignment is stored"),
    (EMPTY,       DEAD,        "memory", as_it_is,           "nothing is left of it, or another broker coordinates"),
    (PREPARING,   DEAD,        "memory", as_it_is,           "another broker coordinates; before 0.10.1 also: nobody is left"),
    (COMPLETING,  DEAD,        "memory", as_it_is,           "another broker coordinates"),
    (STABLE,      DEAD,        "memory", as_it_is,           "another broker coordinates"),
    (DEAD,        DEAD,        "memory", as_it_is,           "it was on its way out already"),
)
# fmt: on

GROUP_TRANSITIONS = TransitionTable("group", GroupState, "GroupMetadata.scala (2.8)", MOVES)
GROUP_TRANSITIONS_0_9 = TransitionTable(
    "group of 0.9", GroupState, "GroupMetadata.scala (0.9)", [row for row in MOVES if EMPTY not in row[:2] and row[0] is not DEAD]
)


def transitions(rules: GroupRules) -> TransitionTable:
    return GROUP_TRANSITIONS if rules.keeps_empty_groups else GROUP_TRANSITIONS_0_9


def first_state(rules: GroupRules) -> GroupState:
    """The state of a group that has just been made."""
    return EMPTY if rules.keeps_empty_groups else STABLE


def can_rebalance(rules: GroupRules, group: Group) -> bool:
    return transitions(rules).find(group.state, PREPARING) is not None


def new_group(context: GroupContext, group_id: str, protocol_type: str | None, timestamp_ms: int) -> Group:
    """A group nobody is in yet; only before 0.10.1 does it have its type already."""
    fixed = None if context.rules.keeps_empty_groups else protocol_type
    return Group(group_id, first_state(context.rules), timestamp_ms, fixed)


def move(
    context: GroupContext, group: Group, target: GroupState, timestamp_ms: int, rule: str, *, leaves: bool = False
) -> Handler:
    """Take a group to another state by the table's row; return it as it is then. It `leaves` the cache where it is Dead.

    Raises IllegalStateError where the table has no row.
    """
    row = transitions(context.rules).find(group.state, target)
    if row is None:
        raise IllegalStateError(f"Group {group.group_id} cannot go from {group.state} to {target}")
    moved = row.action(group).but(state=target, state_timestamp_ms=timestamp_ms)
    yield MoveGroup(group.group_id, group.state, target, None if leaves else moved, rule)
    if leaves:
        yield Learn("ended", {group.group_id: context.incarnation_of(group.group_id) + 1}, context="group")
    return moved
