"""The states of a group, and the transitions between them, as a table.

A group lives through rounds, its generations. In each round the coordinator collects all members,
the leader assigns partitions, and the members work until a member joins, leaves or changes its
protocols:

* Empty: the group has no members; it may have offsets. Before 0.10.1 there is no such state, and a
  new group is Stable without members.
* PreparingRebalance: every member must send JoinGroup. The state ends when all have done so, or
  when the rebalance timeout is over.
* CompletingRebalance (AwaitingSync before 1.1): the members have joined the new generation and wait
  for the assignment, which the leader sends with its SyncGroup.
* Stable: the assignment is in the log, and the members consume.
* Dead: the group has left the cache, because no offset is left or another broker coordinates.

Rules:

* Only PreparingRebalance leads to a new generation, so the generation counts the rounds.
* A rebalance can begin in every state but PreparingRebalance and Dead.
* A pair of states without a row raises IllegalStateError, as Kafka throws IllegalStateException.
* A row's action takes the group before the transition and returns the group after it; it changes
  nothing else.

Why the table looks as it does: Kafka lists for each state the states before it
(validPreviousStates). The rows are these pairs, each with its action, because the action depends on
the pair: a group that becomes Empty starts a generation without a protocol, a group that completes
a rebalance selects one. The rows of Empty begin with 0.10.1, the release of that state. The row
from Dead to Dead exists because two threads of Kafka may remove one group.

What the table does not say: the callers that request a transition (`rebalance.py`,
`offset_expiration.py`, `group_loading.py`), and what a request gets in each state
(`request_reactions.py`). Transitions take no time in the table: timers and writes end in events of
their own. A change within a state, such as a heartbeat or a commit, is no transition. The journal
has a record of kind `group` for each transition, with the group after it.

Read next: `request_reactions.py`, then `rebalance.py`.

Source: validPreviousStates and initNextGeneration of GroupMetadata.scala (0.9, 2.8).
"""

from kcontrol.core.effects import Handler, TransitionGroup, UpdateContext
from kcontrol.core.transitions import Transition, TransitionTable
from kcontrol.group.context import GroupContext
from kcontrol.group.group_rules import GroupRules
from kcontrol.group.model import CONSUMER, Group, GroupState
from kcontrol.group.offsets_topic_records import topics_of

EMPTY, PREPARING, COMPLETING = GroupState.EMPTY, GroupState.PREPARING, GroupState.COMPLETING
STABLE, DEAD = GroupState.STABLE, GroupState.DEAD


class IllegalStateError(Exception):
    """The error for a transition that is not in the table, and for a request in an illegal state.

    Source: IllegalStateException.
    """


def unchanged(group: Group) -> Group:
    """Return `group`, for a transition that changes the state alone: the caller sets the state."""
    return group


def reset_assignments(group: Group) -> Group:
    """From CompletingRebalance the members' assignments go too."""
    if group.state is COMPLETING:
        group = group.with_each_member(assignment=b"")
    return group.with_changes(pending_sync=())


def init_next_generation(group: Group) -> Group:
    """Return the group in its next generation, with the protocol that most members prefer.

    Raises ValueError if no protocol is supported by all members.

    Source: initNextGeneration of GroupMetadata.scala (0.9, 2.8).
    """
    # Each member votes for the first protocol of its list that all members support; in a tie the
    # protocol counts whose first vote came earliest.
    return _next_generation(group, group.select_protocol())


def init_empty_generation(group: Group) -> Group:
    """Return `group`, which has no members any more, in its next generation, without a protocol.

    Source: initNextGeneration of GroupMetadata.scala (2.8).
    """
    return _next_generation(group, None)


def _next_generation(group: Group, protocol: str | None) -> Group:
    generation = group.generation + 1
    after = group.with_changes(generation=generation, protocol=protocol, is_delayed=False)
    return after.with_changes(subscribed_topics=subscribed_topics(after))


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """Return the topics to which the group's members subscribe, None if the topics are unknown.

    Topics are unknown if the protocol type is not "consumer", if the members have no chosen
    protocol yet, or if a subscription cannot be read.

    Source: computeSubscribedTopics of GroupMetadata.scala (2.8).
    """
    if group.protocol_type != CONSUMER or (group.members and group.protocol is None):
        return None
    found = [topics_of(member.metadata(group.protocol)) for member in group.members.values()]
    return None if None in found else frozenset(topic for topics in found for topic in topics or ())


Row = Transition

# fmt: off
GROUP_TRANSITIONS = TransitionTable("group", GroupState, "GroupMetadata.scala (2.8)", [
    #   from        to           action                 what the transition means
    Row(EMPTY,      PREPARING,   reset_assignments,     "a first member joins", since="0.10.1"),
    Row(STABLE,     PREPARING,   reset_assignments,     "a member joined, left or changed"),
    Row(COMPLETING, PREPARING,   reset_assignments,     "a member joined, left or changed"),
    Row(PREPARING,  COMPLETING,  init_next_generation,  "all have joined, or the timeout is over"),
    Row(PREPARING,  EMPTY,       init_empty_generation, "no member is left", since="0.10.1"),
    Row(COMPLETING, STABLE,      unchanged,             "the leader's assignment is stored"),
    Row(EMPTY,      DEAD,        unchanged,
        "no offset is left, or another broker coordinates", since="0.10.1"),
    Row(PREPARING,  DEAD,        unchanged,
        "another broker coordinates; before 0.10.1 also: no member is left"),
    Row(COMPLETING, DEAD,        unchanged,             "another broker coordinates"),
    Row(STABLE,     DEAD,        unchanged,             "another broker coordinates"),
    Row(DEAD,       DEAD,        unchanged,
        "another thread has removed the group already", since="0.10.1"),
])
# fmt: on


def transitions(ctx: GroupContext) -> TransitionTable:
    """The release's table, with the learner's actions in place of Kafka's."""
    return GROUP_TRANSITIONS.for_(ctx.rules.release, ctx.changes)


def first_state(rules: GroupRules) -> GroupState:
    """Return the state of a new group: Empty, before 0.10.1 Stable."""
    return EMPTY if rules.keeps_empty_groups else STABLE


def can_rebalance(ctx: GroupContext, group: Group) -> bool:
    return transitions(ctx).find(group.state, PREPARING) is not None


def new_group(
    ctx: GroupContext, group_id: str, protocol_type: str | None, timestamp_ms: int
) -> Group:
    """Since 0.10.1 a group gets its protocol type from its first member."""
    fixed = None if ctx.rules.keeps_empty_groups else protocol_type
    return Group(group_id, first_state(ctx.rules), timestamp_ms, fixed)


def transition_to(
    ctx: GroupContext,
    group: Group,
    target: GroupState,
    timestamp_ms: int,
    rule: str,
    *,
    leaves: bool = False,
) -> Handler:
    """Move a group to `target` by a row of GROUP_TRANSITIONS; return the changed group.

    `rule` is the reason, for the journal; with `leaves` the group also leaves the cache. Raises
    IllegalStateError without such a row.
    """
    row = transitions(ctx).find(group.state, target)
    if row is None:
        raise IllegalStateError(f"Group {group.group_id} cannot go from {group.state} to {target}")
    moved = row.action(group).with_changes(state=target, state_timestamp_ms=timestamp_ms)
    yield TransitionGroup(group.group_id, group.state, target, None if leaves else moved, rule)
    if leaves:
        ended = ctx.incarnation_of(group.group_id) + 1
        yield UpdateContext("ended", {group.group_id: ended}, context="group")
    return moved
