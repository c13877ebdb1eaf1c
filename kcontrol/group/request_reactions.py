"""GROUP_REACTIONS: the coordinator's reaction to each request to a group, by the group's state.

A request finds a group in one of five states, or no group (ABSENT). GROUP_REACTIONS has a row for
each check that Kafka makes then. The coordinator reads the rows of its release from the top and
takes the first row that names the state and the request and whose condition holds. So the order of
the rows is the order of Kafka's checks, and it matters: a member with a wrong id and a wrong
generation gets UNKNOWN_MEMBER_ID, because that row comes first.

The columns of a row:

* `states`, `requests`: a row holds for every pair of them. A JoinGroup without a member id is
  another request than a JoinGroup with one, as in Kafka since 2.2 (`doUnknownJoinGroup`,
  `doJoinGroup`); an OffsetCommit with a producer is a TxnOffsetCommit.
* `condition`: a function that reads the group and the request and changes nothing, in words in
  CONDITIONS.
* `reaction`: in capitals the error of the response; else the name of a function of the handler, in
  the tables of `joining.py`, `membership.py`, `offsets.py` and `offset_expiration.py`.
* `since`, `until`: the first release that has the row, and the first later release without it.
* `restarts_session`: whether the request restarts the session timeout of its member.
* `source`: the KIP or the JIRA issue of the row. The method of GroupCoordinator.scala follows from
  the request (`Request.methods`); `Reaction.origin` has both.

What a client does after an error: UNKNOWN_MEMBER_ID, join again without an id; ILLEGAL_GENERATION
and REBALANCE_IN_PROGRESS, join again with the id; FENCED_INSTANCE_ID and
INCONSISTENT_GROUP_PROTOCOL, stop; COORDINATOR_NOT_AVAILABLE, find the coordinator again.

What the table does not say:

* the checks before it, which do not depend on the group: an empty group id, NOT_COORDINATOR,
  COORDINATOR_LOAD_IN_PROGRESS (`GroupContext.validate_group_status`, `WHILE_LOADING` in
  `membership.py`);
* when a parked request gets its response: `join`, `park` and `store` only begin something that
  `rebalance.py` and `offsets.py` end;
* OffsetFetch and ListGroups, whose responses do not depend on the state;
* timers, which are no requests: `rebalance.py`;
* the steps of a reaction in each state, such as those of `replace the static member`: `joining.py`;
* the transitions between the states: `group_machine.py`.

An Empty group has no members, so `is_unknown` holds in it for every member id. Kafka's handlers
check for Empty once more after that; no request gets there, and the table leaves these checks out.
A Dead group leaves the cache at once in kcontrol. Kafka's handlers can find a Dead group on another
thread, so the rows are there.

Read `group_machine.py` before this module, `joining.py` after it. `docs/group-reactions.md` has the
table by request.

Source: GroupCoordinator.scala (0.9.0.1 to 3.9) by method; `reactions_of` gives one release's rows.
"""

from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

from kcontrol.core.releases import is_since
from kcontrol.group import events as e
from kcontrol.group.context import GroupConfig, GroupContext
from kcontrol.group.group_machine import (
    COMPLETING,
    DEAD,
    EMPTY,
    PREPARING,
    STABLE,
    IllegalStateError,
)
from kcontrol.group.model import CONSUMER, NO_MEMBER_ID, Group, GroupState, Member


class Request(Enum):
    """A request whose response depends on a group's state.

    Each value is (title of the request, the methods of Kafka that handle the request, by release).
    """

    JOIN_NEW = "JoinGroup without a member id", "doJoinGroup; since 2.2 doUnknownJoinGroup"
    JOIN = "JoinGroup with a member id", "doJoinGroup"
    SYNC = "SyncGroup", "doSyncGroup"
    HEARTBEAT = "Heartbeat", "handleHeartbeat"
    LEAVE = "LeaveGroup", "handleLeaveGroup"
    COMMIT = "OffsetCommit", "handleCommitOffsets; since 0.10.1 doCommitOffsets"
    TXN_COMMIT = "TxnOffsetCommit", "doCommitOffsets; since 2.5 doTxnCommitOffsets"
    DESCRIBE = "DescribeGroup", "handleDescribeGroup, GroupMetadata.summary"
    DELETE = "DeleteGroups", "handleDeleteGroups"
    OFFSET_DELETE = "OffsetDelete", "handleDeleteOffsets"

    def __init__(self, title: str, methods: str) -> None:
        self.title, self.methods = title, methods

    def __str__(self) -> str:
        return self.title


JOIN_NEW, JOIN, SYNC, HEARTBEAT = Request.JOIN_NEW, Request.JOIN, Request.SYNC, Request.HEARTBEAT
LEAVE, COMMIT, TXN_COMMIT = Request.LEAVE, Request.COMMIT, Request.TXN_COMMIT
DESCRIBE, DELETE, OFFSET_DELETE = Request.DESCRIBE, Request.DELETE, Request.OFFSET_DELETE
_BY_TITLE = {request.title: request for request in Request}


class ReactionInput(NamedTuple):
    """The input of a row's condition: a request (`event`), its group, the coordinator's settings.

    The rows are those of GROUP_REACTIONS. `member_id` and `instance_id` identify the member that
    the request names.
    """

    config: GroupConfig
    group: Group
    event: Any
    member_id: str = NO_MEMBER_ID
    instance_id: str | None = None

    @property
    def member(self) -> Member | None:
        """Return the member of the group with `member_id`, None if there is none."""
        return self.group.members.get(self.member_id)


# ---------------------------------------------------------------- conditions

Condition = Callable[[ReactionInput], bool]


def always(asked: ReactionInput) -> bool:
    return True


def session_timeout_is_illegal(asked: ReactionInput) -> bool:
    config = asked.config
    low, high = config.min_session_timeout_ms, config.max_session_timeout_ms
    return not low <= asked.event.session_timeout_ms <= high


def all_seats_are_taken(asked: ReactionInput) -> bool:
    has_seat = asked.member is not None and asked.member.awaiting_join is not None
    return not has_seat and asked.group.members.awaiting_join >= asked.config.max_size


def group_is_full(asked: ReactionInput) -> bool:
    return asked.member is None and len(asked.group.members) >= asked.config.max_size


def offers_nothing(asked: ReactionInput) -> bool:
    return not asked.event.protocol_type or not asked.event.protocols


def offers_other_protocols(asked: ReactionInput) -> bool:
    names = [protocol.name for protocol in asked.event.protocols]
    return not asked.group.supports(asked.event.protocol_type, names)


def names_other_protocol(asked: ReactionInput) -> bool:
    event, group = asked.event, asked.group
    is_other_type = event.protocol_type not in (None, group.protocol_type)
    return is_other_type or event.protocol not in (None, group.protocol)


def is_unknown(asked: ReactionInput) -> bool:
    return asked.member is None


def is_named_and_unknown(asked: ReactionInput) -> bool:
    return asked.member_id != NO_MEMBER_ID and asked.member is None


def is_pending(asked: ReactionInput) -> bool:
    return asked.member_id in asked.group.pending_members and asked.member is None


def is_pending_and_static(asked: ReactionInput) -> bool:
    return bool(asked.instance_id) and is_pending(asked)


def is_fenced(asked: ReactionInput) -> bool:
    return asked.group.is_fenced(asked.member_id, asked.instance_id)


def is_named_and_fenced(asked: ReactionInput) -> bool:
    return asked.member_id != NO_MEMBER_ID and is_fenced(asked)


def instance_is_unknown(asked: ReactionInput) -> bool:
    return bool(asked.instance_id) and asked.group.member_of(asked.instance_id) is None


def instance_is_known(asked: ReactionInput) -> bool:
    return asked.group.member_of(asked.instance_id) is not None


def names_no_member(asked: ReactionInput) -> bool:
    return asked.member is None and not instance_is_known(asked)


def needs_member_id(asked: ReactionInput) -> bool:
    return bool(asked.event.requires_known_id) and asked.instance_id is None


def is_unchanged(asked: ReactionInput) -> bool:
    return asked.member is not None and asked.member.protocols == asked.event.protocols


def is_unchanged_follower(asked: ReactionInput) -> bool:
    return is_unchanged(asked) and asked.group.leader != asked.member_id


def has_other_generation(asked: ReactionInput) -> bool:
    return bool(asked.event.generation != asked.group.generation)


def has_generation(asked: ReactionInput) -> bool:
    return bool(asked.event.generation >= 0)


def has_no_generation(asked: ReactionInput) -> bool:
    return not has_generation(asked)


def names_other_generation(asked: ReactionInput) -> bool:
    return has_generation(asked) and has_other_generation(asked)


def leads(asked: ReactionInput) -> bool:
    return asked.group.leader == asked.member_id


def is_no_consumer_group(asked: ReactionInput) -> bool:
    return asked.group.protocol_type != CONSUMER


CONDITIONS: dict[Condition, str] = {
    always: "nothing: the row applies to every request",
    session_timeout_is_illegal: "the session timeout is outside of the coordinator's limits",
    all_seats_are_taken: "group.max.size members wait in the join phase, and this member does not",
    group_is_full: "the group has group.max.size members, and this member is not among them",
    offers_nothing: "the request names no protocol type or no protocol",
    offers_other_protocols: "the protocol type is not the group's, or no protocol is offered by "
    "all members",
    names_other_protocol: "the request names a protocol type or a protocol that is not the group's",
    is_unknown: "the group has no member with this member id",
    is_named_and_unknown: "the request has a member id that no member of the group has",
    is_pending: "the coordinator has assigned this member id, and no member uses it yet",
    is_pending_and_static: "the member id is pending and the request has an instance id",
    is_fenced: "a member with another member id has the request's instance id",
    is_named_and_fenced: "the request has a member id, and another member has the request's "
    "instance id",
    instance_is_unknown: "the request has an instance id that no member has",
    instance_is_known: "a static member has the request's instance id",
    names_no_member: "the group knows neither the member id nor the instance id",
    needs_member_id: "the client supports MEMBER_ID_REQUIRED, and the request has no instance id",
    is_unchanged: "the member offers the protocols that it offered before",
    is_unchanged_follower: "the member does not lead, and offers the protocols that it offered "
    "before",
    has_other_generation: "the generation of the request is not the group's",
    has_generation: "the request has a generation (0 or more)",
    has_no_generation: "the request has no generation (-1): the client uses offsets alone",
    names_other_generation: "the request has a generation, and the group has another generation",
    leads: "the member leads the group",
    is_no_consumer_group: 'the protocol type of the group is not "consumer"',
}
"""Each condition in words, as tables and errors show it."""

# ---------------------------------------------------------------- the table

ABSENT = None
State = GroupState | None


class Reaction(NamedTuple):
    """One row of GROUP_REACTIONS: the coordinator's reaction to a request, such as an error.

    The row applies to the requests in `requests` about a group in one of `states`, if `condition`
    returns True.
    """

    # ABSENT (None) means that the group does not exist.
    states: tuple[State, ...]
    requests: tuple[Request, ...]
    # A function such as `is_pending`; `always` if the row has no condition.
    condition: Condition
    # An error code, such as "UNKNOWN_MEMBER_ID", or words, such as "store" or "add the member".
    reaction: str
    # Releases from `since` on and before `until` (None: all later releases) have the row.
    since: str = "0.9.0"
    until: str | None = None
    # The KIP or JIRA issue of the row.
    source: str = ""
    # More about the reaction for readers of the table, such as "until the assignment is stored".
    note: str = ""
    # Whether the reaction also restarts the session of the member.
    restarts_session: bool = False

    @property
    def words(self) -> str:
        """Return this row's condition in words, such as "the member leads the group"."""
        return CONDITIONS[self.condition]

    @property
    def origin(self) -> str:
        """Return the row's source in Kafka, such as "doSyncGroup, KIP-345": method and issue."""
        methods = dict.fromkeys(request.methods for request in self.requests)
        return ", ".join(filter(None, [*methods, self.source]))

    def is_in(self, release: str) -> bool:
        """Return whether a release has this row: from `since` on, and before `until` if set."""
        has_ended = self.until is not None and is_since(self.until, release)
        return is_since(self.since, release) and not has_ended


EXISTING = (EMPTY, PREPARING, COMPLETING, STABLE, DEAD)
GONE, SETTLED, BUSY = (ABSENT, DEAD), (COMPLETING, STABLE), (PREPARING, COMPLETING, STABLE)
JOINS, NOT_JOINS = (JOIN_NEW, JOIN), (HEARTBEAT, LEAVE, COMMIT, TXN_COMMIT)
MEMBER_REQUESTS = (JOIN, SYNC, HEARTBEAT, COMMIT)  # legal only with the id of a member
UNKNOWN, AGAIN, LATE = "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION"
FENCED, MISFIT = "FENCED_INSTANCE_ID", "INCONSISTENT_GROUP_PROTOCOL"
AWAY, FULL, NO_GROUP = "COORDINATOR_NOT_AVAILABLE", "GROUP_MAX_SIZE_REACHED", "GROUP_ID_NOT_FOUND"
BUSY_GROUP, THROWS = "NON_EMPTY_GROUP", "IllegalStateException"
ROW = Reaction

# fmt: off
GROUP_REACTIONS: tuple[Reaction, ...] = (
    # states, requests, condition, reaction, since, until, source, note
    ROW((ABSENT, *EXISTING), JOINS, session_timeout_is_illegal, "INVALID_SESSION_TIMEOUT"),
    # ---- no group of this name; a new one is Empty (before 0.10.1 Stable), and its rows follow
    ROW((ABSENT,), (JOIN_NEW, TXN_COMMIT), always, "create the group"),
    ROW((ABSENT,), (JOIN, SYNC, HEARTBEAT, LEAVE), always, UNKNOWN),
    ROW((ABSENT,), (COMMIT,), has_generation, LATE),
    ROW((ABSENT,), (COMMIT,), always, "store", note="since 0.10.1 in a new group"),
    # ---- a Dead group: since 2.3 the client finds the coordinator again
    ROW((DEAD,), NOT_JOINS, always, UNKNOWN, "0.9.0", "2.3.0"),
    ROW((DEAD,), JOINS, always, UNKNOWN, "2.2.0", "2.3.0", "KIP-394"),
    ROW((DEAD,), (*JOINS, SYNC, *NOT_JOINS), always, AWAY, "2.3.0", None, "KAFKA-8386"),
    # ---- new members
    ROW((PREPARING,), JOINS, all_seats_are_taken, FULL, "2.2.0", None, "KIP-389"),
    ROW(SETTLED, JOINS, group_is_full, FULL, "2.2.0", None, "KIP-389"),
    ROW((EMPTY,), JOINS, offers_nothing, MISFIT, "1.0.0", None, "KAFKA-6005"),
    ROW(BUSY, JOINS, offers_nothing, MISFIT, "2.2.0"),
    ROW((*BUSY, DEAD), JOINS, offers_other_protocols, MISFIT),
    ROW(EXISTING, (JOIN,), is_pending_and_static, THROWS, "2.3.0", None, "KIP-345"),
    ROW(EXISTING, (JOIN,), is_pending, "add the member", "2.2.0", None, "KIP-394"),
    # ---- member id and generation; some releases check first whether a rebalance is in progress
    ROW((PREPARING, COMPLETING), (HEARTBEAT,), always, AGAIN, "0.9.0", "0.10.1"),
    ROW(EXISTING, MEMBER_REQUESTS, is_fenced, FENCED, "2.3.0", None, "KIP-345"),
    ROW(EXISTING, (TXN_COMMIT,), is_fenced, FENCED, "2.5.0", None, "KIP-447"),
    ROW(EXISTING, (LEAVE,), is_named_and_fenced, FENCED, "2.4.0", None, "KIP-345"),
    ROW((EMPTY,), (COMMIT,), has_no_generation, "store"),
    ROW((COMPLETING,), (COMMIT,), always, AGAIN, "0.9.0", "2.4.0"),
    ROW(EXISTING, MEMBER_REQUESTS, is_unknown, UNKNOWN),
    ROW(EXISTING, (TXN_COMMIT,), is_named_and_unknown, UNKNOWN, "2.5.0", None, "KIP-447"),
    ROW(EXISTING, (JOIN,), instance_is_unknown, UNKNOWN, "2.3.0", None, "KIP-345"),
    ROW((COMPLETING,), (HEARTBEAT,), always, AGAIN, "0.10.1", "2.3.0"),
    ROW(EXISTING, (SYNC, HEARTBEAT, COMMIT), has_other_generation, LATE),
    ROW(EXISTING, (TXN_COMMIT,), names_other_generation, LATE, "2.5.0", None, "KIP-447"),
    ROW(EXISTING, (SYNC,), names_other_protocol, MISFIT, "2.5.0", None, "KIP-559"),
    # ---- JoinGroup: an unchanged member may have lost a response; a leader may have read other
    # ---- topics or partitions, so its JoinGroup starts a rebalance
    ROW((DEAD,), JOINS, always, UNKNOWN, "0.9.0", "2.2.0"),
    ROW(BUSY, (JOIN_NEW,), instance_is_known, "replace the static member",
        "2.3.0", None, "KIP-345"),
    ROW((EMPTY, *BUSY), (JOIN_NEW,), needs_member_id, "MEMBER_ID_REQUIRED",
        "2.2.0", None, "KIP-394"),
    ROW((EMPTY, *BUSY), (JOIN_NEW,), always, "add the member"),
    ROW((COMPLETING,), (JOIN,), is_unchanged, "answer with the generation"),
    ROW((STABLE,), (JOIN,), is_unchanged_follower, "answer with the generation"),
    ROW(BUSY, (JOIN,), always, "join", note="all members join again, unless they are doing so"),
    # ---- SyncGroup
    ROW((DEAD,), (SYNC,), always, UNKNOWN, "0.9.0", "2.3.0"),
    ROW((PREPARING,), (SYNC,), always, AGAIN),
    ROW((COMPLETING,), (SYNC,), leads, "park and store the assignment"),
    ROW((COMPLETING,), (SYNC,), always, "park", note="until the assignment is stored"),
    ROW((STABLE,), (SYNC,), always, "answer with the assignment", restarts_session=True),
    # ---- Heartbeat
    ROW((PREPARING,), (HEARTBEAT,), always, AGAIN, "0.10.1", None, "KIP-62", restarts_session=True),
    ROW((COMPLETING,), (HEARTBEAT,), always, AGAIN, "2.3.0", "2.6.1", "KIP-345"),
    ROW((COMPLETING,), (HEARTBEAT,), always, "NONE", "2.6.1", None, "KAFKA-10134",
        restarts_session=True),
    ROW((STABLE,), (HEARTBEAT,), always, "NONE", restarts_session=True),
    # ---- LeaveGroup, for each member of the request; a known instance id identifies the member
    ROW(EXISTING, (LEAVE,), is_pending_and_static, THROWS, "2.4.0", None, "KIP-345"),
    ROW(EXISTING, (LEAVE,), is_pending, "forget the member id", "2.2.0", None, "KIP-394"),
    ROW(EXISTING, (LEAVE,), names_no_member, UNKNOWN),
    ROW(EXISTING, (LEAVE,), always, "remove the member"),
    # ---- OffsetCommit and TxnOffsetCommit
    ROW((COMPLETING,), (COMMIT,), always, AGAIN, "2.4.0", None, "KAFKA-8487"),
    ROW(BUSY, (COMMIT,), always, "store", "0.9.0", "0.10.0"),
    ROW(BUSY, (COMMIT,), always, "store", "0.10.0", None, "KAFKA-3470", restarts_session=True),
    ROW((EMPTY, *BUSY), (TXN_COMMIT,), always, "store", "0.11.0", None, "KIP-98"),
    # ---- administration
    ROW((ABSENT,), (DESCRIBE,), always, "answer Dead"),
    ROW((STABLE,), (DESCRIBE,), always, "answer with assignments"),
    ROW(EXISTING, (DESCRIBE,), always, "answer without assignments"),
    ROW(GONE, (DELETE,), always, NO_GROUP, "1.1.0", None, "KIP-229"),
    ROW((EMPTY,), (DELETE,), always, "delete", "1.1.0", None, "KIP-229"),
    ROW(BUSY, (DELETE,), always, BUSY_GROUP, "1.1.0", None, "KIP-229"),
    ROW(GONE, (OFFSET_DELETE,), always, NO_GROUP, "2.4.0", None, "KIP-496"),
    ROW((EMPTY,), (OFFSET_DELETE,), always, "delete", "2.4.0", None, "KIP-496"),
    ROW(BUSY, (OFFSET_DELETE,), is_no_consumer_group, BUSY_GROUP, "2.4.0", None, "KIP-496"),
    ROW(BUSY, (OFFSET_DELETE,), always, "delete", "2.4.0", None, "KIP-496",
        "GROUP_SUBSCRIBED_TO_TOPIC for topics that members subscribe to"),
)
# fmt: on


# ---------------------------------------------------------------- the machine


@cache
def reactions_of(
    release: str, state: State | str = "any", request: Request | None = None
) -> tuple[Reaction, ...]:
    """`state` None: no group, "any": all states; `request` None: all requests."""
    rows = [row for row in GROUP_REACTIONS if row.is_in(release)]
    rows = rows if state == "any" else [row for row in rows if state in row.states]
    return tuple(row for row in rows if request is None or request in row.requests)


def request_of(event: Any) -> Request:
    """A JoinGroup without a member id is JOIN_NEW. Raises KeyError for another event."""
    if isinstance(event, e.JoinGroup):
        return JOIN_NEW if event.member_id == NO_MEMBER_ID else JOIN
    if isinstance(event, e.OffsetCommit):
        return COMMIT if event.producer is None else TXN_COMMIT
    return _BY_TITLE[type(event).__name__]


def row_of(asked: ReactionInput, state: State, release: str) -> Reaction:
    """Return the first row of GROUP_REACTIONS in this release that fits the request and the state.

    The request is `asked.event`. A row fits if its condition holds for `asked`. Raises LookupError
    if the release does not have this request.
    """
    request = request_of(asked.event)
    for row in reactions_of(release, state, request):
        if row.condition(asked):
            return row
    raise LookupError(f"Kafka {release} has no {request}.")


def react(
    ctx: GroupContext, group: Group | None, event: Any, identity: e.MemberIdentity | None = None
) -> Reaction:
    """Return the row of GROUP_REACTIONS that applies to the request `event` about `group`.

    `group` None means no group. For LeaveGroup, `identity` is one of the leaving members. Raises
    IllegalStateError where Kafka throws IllegalStateException.
    """
    member_id = getattr(event, "member_id", NO_MEMBER_ID)
    named = identity or e.MemberIdentity(member_id, getattr(event, "instance_id", None))
    asked: Any = ReactionInput(ctx.config, group, event, *named)  # type: ignore[arg-type]
    # Raises LookupError if the release has no such request.
    row = row_of(asked, group.state if group else ABSENT, ctx.rules.release)
    if row.reaction == THROWS:
        raise IllegalStateError(f"{request_of(event)}: {row.words} ({named})")
    return row


def has_reaction(release: str, reaction: str) -> bool:
    """`reaction` is an error code, or words such as "add the member"."""
    return any(row.reaction == reaction for row in reactions_of(release))
