"""GROUP_REACTIONS: its shape, what its releases change, and that every row of it decides something."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kcontrol.core.model import TopicPartition
from kcontrol.core.releases import is_since
from kcontrol.group import events as e
from kcontrol.group import joining, membership, request_reactions
from kcontrol.group.context import GroupConfig, GroupContext
from kcontrol.group.error_codes import ERRORS
from kcontrol.group.group_machine import COMPLETING, DEAD, EMPTY, PREPARING, STABLE, IllegalStateError
from kcontrol.group.group_rules import group_rules
from kcontrol.group.model import Group, GroupProtocol, GroupState, Member, Members
from kcontrol.group.request_reactions import (
    ABSENT,
    COMMIT,
    DELETE,
    GROUP_REACTIONS,
    HEARTBEAT,
    JOIN,
    JOIN_NEW,
    LEAVE,
    OFFSET_DELETE,
    SYNC,
    THROWS,
    TXN_COMMIT,
    Reaction,
    Request,
    always,
    is_unknown,
    reactions_of,
)  # fmt: skip
from tests.conformance.cases import read
from tests.conformance.runner import play
from tests.group import reactions_page
from tests.group.differential import cases
from tests.group.golden import differences
from tests.parts import ROOT

HERE = Path(__file__).resolve().parent
RELEASES = ("0.9.0.1", "0.10.0.1", "0.10.1.0", "0.11.0.2", "1.0.0", "1.1.1", "2.0.1", "2.1.1", "2.2.2", "2.3.1", "2.4.1", "2.5.1",
            "2.6.0", "2.6.1", "2.8.2", "3.9.1")  # fmt: skip
STATES = (ABSENT, *GroupState)
FIRST = {TXN_COMMIT: "0.11.0", DELETE: "1.1.0", OFFSET_DELETE: "2.4.0"}  # the releases that brought these requests
# What handlers do by the name of a reaction, besides answering with an error.
DONE = {
    *joining.JOINS, *membership.SYNCS, "create the group", "store", "forget the member id", "remove the member", "delete",
    "answer Dead", "answer with assignments", "answer without assignments",
}  # fmt: skip


def name_of(row: Reaction) -> str:
    """Return a name for a row that no other row has."""
    states = ",".join(map(str, row.states))
    return f"{states}-{'+'.join(request.name for request in row.requests)}-{row.condition.__name__}-{row.since}"


# ---------------------------------------------------------------- shape


@pytest.mark.parametrize("row", GROUP_REACTIONS, ids=name_of)
def test_a_row_can_be_read(row: Reaction) -> None:
    """Its reaction is an error of Kafka or something that a handler does, its condition has words, its releases are in order."""
    assert row.reaction in ERRORS or row.reaction in DONE or row.reaction == THROWS
    assert row.words
    assert row.states and row.requests and row.origin
    assert row.until is None or not is_since(row.until, row.since)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("request_", Request, ids=str)
def test_every_state_has_a_reaction_to_every_request(release: str, request_: Request) -> None:
    """In each state the last row of a request holds whatever is asked; no release has rows for a request before there is one."""
    for state in STATES:
        rows = reactions_of(release, state, request_)
        if not is_since(FIRST.get(request_, "0.9.0"), release):
            assert all(row.requests != (request_,) for row in rows)
            continue
        certain = (always, is_unknown) if state is EMPTY else (always,)  # an Empty group has no members
        assert any(row.condition in certain for row in rows), f"{request_} in {state}"


def test_no_row_stands_behind_one_that_always_holds() -> None:
    """Each row is, in some release, for some state and request, not hidden by an earlier row without a condition."""
    seen: set[int] = set()
    for release in RELEASES:
        for state in STATES:
            for request in Request:
                for row in reactions_of(release, state, request):
                    seen.add(id(row))
                    if row.condition is always:
                        break
    assert [name_of(row) for row in GROUP_REACTIONS if id(row) not in seen] == []


def test_the_page_has_the_table() -> None:
    """docs/group-reactions.md is what `python -m tests.group.reactions_page` prints."""
    assert reactions_page.PAGE.read_text() == reactions_page.page()


# ---------------------------------------------------------------- what releases change

RANGE = (GroupProtocol("range", b"r"),)
MEMBER = Member("m", "c", "/h", 10_000, 10_000, RANGE, "i")
FOLLOWER = Member("f", "c", "/h", 10_000, 10_000, RANGE)
UNKNOWN_MEMBER = {"member_id": "x"}
TWIN = {"member_id": "x", "instance_id": "i"}
OLD = {"generation": 7}
PENDING = {"member_id": "p"}
FULL = {"max_size": 2}
UNKNOWN = "UNKNOWN_MEMBER_ID"
AGAIN = "REBALANCE_IN_PROGRESS"
LATE = "ILLEGAL_GENERATION"
FENCED = "FENCED_INSTANCE_ID"
MISFIT = "INCONSISTENT_GROUP_PROTOCOL"
AWAY = "COORDINATOR_NOT_AVAILABLE"
NO_REQUEST = "no such request"
ADDED = "add the member"


class Change(NamedTuple):
    """What one request in one state got in each of these releases, by reading their GroupCoordinator.scala."""

    state: GroupState
    request: Request
    asked: dict[str, Any]
    by_release: dict[str, str]


# The releases are tags of Kafka; a "+" says that the session of the member starts anew.
# fmt: off
CHANGES = [
    Change(COMPLETING, HEARTBEAT, {}, {"0.9.0.1": AGAIN, "0.10.1.0": AGAIN, "2.2.0": AGAIN,
                                       "2.3.0": AGAIN, "2.6.0": AGAIN, "2.6.1": "NONE +"}),
    Change(COMPLETING, HEARTBEAT, UNKNOWN_MEMBER, {"0.9.0.1": AGAIN, "0.10.0.1": AGAIN, "0.10.1.0": UNKNOWN}),
    Change(COMPLETING, HEARTBEAT, OLD, {"0.10.1.0": AGAIN, "2.2.0": AGAIN, "2.3.0": LATE}),
    Change(PREPARING, HEARTBEAT, {}, {"0.10.0.1": AGAIN, "0.10.1.0": "REBALANCE_IN_PROGRESS +"}),
    Change(PREPARING, HEARTBEAT, UNKNOWN_MEMBER, {"0.10.0.1": AGAIN, "0.10.1.0": UNKNOWN}),
    Change(STABLE, HEARTBEAT, TWIN, {"2.2.0": UNKNOWN, "2.3.0": FENCED}),
    Change(STABLE, SYNC, TWIN, {"2.2.0": UNKNOWN, "2.3.0": FENCED}),
    Change(STABLE, SYNC, {"protocol": "other"}, {"2.4.0": "answer with the assignment +", "2.5.0": MISFIT}),
    *(Change(DEAD, request, {}, {"0.9.0.1": UNKNOWN, "2.2.0": UNKNOWN, "2.3.0": AWAY})
      for request in (HEARTBEAT, SYNC, LEAVE, COMMIT, JOIN, JOIN_NEW)),
    Change(DEAD, TXN_COMMIT, {}, {"0.11.0.0": UNKNOWN, "2.2.0": UNKNOWN, "2.3.0": AWAY}),
    Change(DEAD, SYNC, OLD, {"0.9.0.1": LATE, "2.2.0": LATE, "2.3.0": AWAY}),
    Change(DEAD, JOIN, {"protocol_type": "connect"}, {"0.9.0.1": MISFIT, "2.1.0": MISFIT,
                                                      "2.2.0": UNKNOWN, "2.3.0": AWAY}),
    Change(EMPTY, JOIN_NEW, {"protocols": ()}, {"0.11.0.2": ADDED, "1.0.0": MISFIT, "2.1.0": MISFIT}),
    Change(PREPARING, JOIN_NEW, {"protocols": (), "members": {}}, {"2.1.0": ADDED, "2.2.0": MISFIT}),
    Change(STABLE, JOIN, PENDING, {"2.1.0": UNKNOWN, "2.2.0": ADDED}),
    Change(STABLE, JOIN, PENDING | {"instance_id": "new"}, {"2.2.0": ADDED, "2.3.0": THROWS}),
    Change(STABLE, JOIN, TWIN, {"2.2.0": UNKNOWN, "2.3.0": FENCED}),
    Change(STABLE, JOIN, {"instance_id": "new"}, {"2.2.0": "join", "2.3.0": UNKNOWN}),
    Change(STABLE, JOIN_NEW, {"instance_id": "i"}, {"2.2.0": ADDED, "2.3.0": "replace the static member"}),
    Change(STABLE, JOIN_NEW, {"requires_known_id": True}, {"2.1.0": ADDED, "2.2.0": "MEMBER_ID_REQUIRED"}),
    Change(STABLE, JOIN_NEW, FULL, {"2.1.0": ADDED, "2.2.0": "GROUP_MAX_SIZE_REACHED"}),
    Change(PREPARING, JOIN_NEW, FULL | {"awaiting_join": "r"}, {"2.1.0": ADDED, "2.2.0": "GROUP_MAX_SIZE_REACHED"}),
    Change(STABLE, LEAVE, PENDING, {"2.1.0": UNKNOWN, "2.2.0": "forget the member id"}),
    Change(STABLE, LEAVE, PENDING | {"instance_id": "new"}, {"2.3.0": "forget the member id", "2.4.0": THROWS}),
    Change(STABLE, LEAVE, TWIN, {"2.3.0": "remove the member", "2.4.0": FENCED}),
    Change(COMPLETING, COMMIT, {}, {"0.9.0.1": AGAIN, "2.3.1": AGAIN, "2.4.0": AGAIN}),
    Change(COMPLETING, COMMIT, UNKNOWN_MEMBER, {"0.9.0.1": AGAIN, "2.3.1": AGAIN, "2.4.0": UNKNOWN}),
    Change(STABLE, COMMIT, {}, {"0.9.0.1": "store", "0.10.0.0": "store +"}),
    Change(STABLE, COMMIT, TWIN, {"2.2.0": UNKNOWN, "2.3.0": FENCED}),
    Change(STABLE, TXN_COMMIT, {}, {"0.11.0.0": "store", "2.8.2": "store"}),
    Change(STABLE, TXN_COMMIT, UNKNOWN_MEMBER, {"2.4.0": "store", "2.5.0": UNKNOWN}),
    Change(STABLE, TXN_COMMIT, TWIN, {"2.4.0": "store", "2.5.0": FENCED}),
    Change(STABLE, TXN_COMMIT, OLD, {"2.4.0": "store", "2.5.0": LATE}),
    Change(EMPTY, DELETE, {}, {"1.0.0": NO_REQUEST, "1.1.0": "delete"}),
    Change(STABLE, DELETE, {}, {"1.0.0": NO_REQUEST, "1.1.0": "NON_EMPTY_GROUP"}),
    Change(DEAD, DELETE, {}, {"1.0.0": NO_REQUEST, "1.1.0": "GROUP_ID_NOT_FOUND"}),
    Change(EMPTY, OFFSET_DELETE, {}, {"2.3.0": NO_REQUEST, "2.4.0": "delete"}),
    Change(STABLE, OFFSET_DELETE, {}, {"2.3.0": NO_REQUEST, "2.4.0": "delete"}),
    Change(STABLE, OFFSET_DELETE, {"group_type": "connect"}, {"2.3.0": NO_REQUEST, "2.4.0": "NON_EMPTY_GROUP"}),
    Change(DEAD, OFFSET_DELETE, {}, {"2.3.0": NO_REQUEST, "2.4.0": "GROUP_ID_NOT_FOUND"}),
]
# fmt: on


def answer(release: str, change: Change) -> str:
    """Return the reaction to a request of the leader of a group of two, with what the change asks otherwise."""
    asked = dict(change.asked)
    config = GroupConfig.of(release, **({"max_size": asked.pop("max_size")} if "max_size" in asked else {}))
    waits = asked.pop("awaiting_join", None)
    both = {m.member_id: replace(m, awaiting_join=waits) for m in (MEMBER, FOLLOWER)}
    members = asked.pop("members", {} if change.state is EMPTY else both)
    kind = asked.pop("group_type", "consumer")
    group = Group("g", change.state, 0, kind, "range", 1, "m" if members else None, Members(members.values()), ("p",))
    context = GroupContext(group_rules(release), config)
    identity = e.MemberIdentity(asked.get("member_id", "m"), asked.get("instance_id")) if change.request is LEAVE else None
    event = EVENTS[change.request](**({} if identity else asked))
    try:
        row = request_reactions.react(context, group, event, identity)
    except IllegalStateError:
        return THROWS
    except LookupError:
        return NO_REQUEST
    return f"{row.reaction} +" if row.restarts_session else row.reaction


def _join(member_id: str, **asked: Any) -> e.JoinGroup:
    given = {"member_id": member_id, "protocol_type": "consumer", "protocols": RANGE} | asked
    return e.JoinGroup("r", "g", session_timeout_ms=10_000, rebalance_timeout_ms=10_000, **given)


def _commit(producer: int | None, **asked: Any) -> e.OffsetCommit:
    offsets = {TopicPartition("t", 0): e.CommittedOffset(1)}
    return e.OffsetCommit("r", "g", **({"member_id": "m", "generation": 1} | asked), offsets=offsets, producer=producer)


def _of_member(event: type[e.SyncGroup | e.Heartbeat], **asked: Any) -> e.GroupRequest:
    return event("r", "g", **({"member_id": "m", "generation": 1} | asked))


EVENTS: dict[Request, Callable[..., Any]] = {
    JOIN: lambda member_id="m", **asked: _join(member_id, **asked), JOIN_NEW: partial(_join, ""),
    SYNC: partial(_of_member, e.SyncGroup), HEARTBEAT: partial(_of_member, e.Heartbeat),
    LEAVE: lambda: e.LeaveGroup("r", "g", ()), COMMIT: partial(_commit, None), TXN_COMMIT: partial(_commit, 7),
    DELETE: lambda: e.DeleteGroups("r", ("g",)), OFFSET_DELETE: lambda: e.OffsetDelete("r", "g", ()),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: f"{c.state}-{c.request.name}-{','.join(map(str, c.asked)) or 'leader'}")
def test_a_release_answers_as_its_source_says(change: Change) -> None:
    """What a request gets before and after each release that changed it is what the methods of those tags say."""
    assert {release: answer(release, change) for release in change.by_release} == change.by_release


@pytest.mark.parametrize("row", [row for row in GROUP_REACTIONS if row.since != "0.9.0" or row.until], ids=name_of)
def test_a_row_in_another_release_is_noticed(row: Reaction, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a row begins or ends in an earlier or in a later release, one of these two moves changes some answer of CHANGES."""
    # The other move may change none, where another row answers first or the release has no such request.
    bounds = {"since": ("0.9.0", "3.9.9")} if row.since != "0.9.0" else {}
    bounds |= {"until": (row.since, None)} if row.until else {}
    for field, values in bounds.items():
        assert any(is_noticed(monkeypatch, row, row._replace(**{field: value})) for value in values), field


def is_noticed(monkeypatch: pytest.MonkeyPatch, row: Reaction, instead: Reaction) -> bool:
    """Return whether some answer of CHANGES is another one with this row instead."""
    with monkeypatch.context() as patch:
        put(patch, row, instead)
        return any(answer(release, c) != said for c in CHANGES for release, said in c.by_release.items())


# ---------------------------------------------------------------- what Kafka did


def plays() -> Iterator[tuple[str, Callable[[], bool]]]:
    """Yield each reference with a function that says whether our coordinator agrees; only a mistake makes it raise."""
    for name in ("group.yaml", "group_own.yaml"):
        for case in read(HERE.parent / "conformance" / name):
            if case["kind"] == "coordinator":
                for release in case["applies_to"]:
                    yield f"{case['id']}@{release}", lambda case=case, release=release: play(case, release).ok  # type: ignore[misc]
    for file in sorted((ROOT / "notebooks" / "recordings").glob("*/group/*.json")):
        name = f"{file.parts[-3]}-{file.stem}"
        yield name, lambda file=file: not differences(json.loads(file.read_text()))  # type: ignore[misc]
    for file in sorted((HERE / "cases").glob("*.json")):
        yield file.stem, lambda file=file: cases.replay(cases.read(file)) is None  # type: ignore[misc]


PLAYS = dict(plays())


@cache
def reached() -> dict[int, list[str]]:
    """Return by the place of each row in the table the plays that decide something by it."""
    found: dict[int, dict[str, None]] = defaultdict(dict)
    places = {id(row): place for place, row in enumerate(GROUP_REACTIONS)}
    row_of, name = request_reactions.row_of, ""

    def noted(asked: request_reactions.ReactionInput, state: GroupState | None, release: str) -> Reaction:
        row = row_of(asked, state, release)
        found[places[id(row)]][name] = None
        return row

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(request_reactions, "row_of", noted)
        for name, agrees in PLAYS.items():
            assert agrees(), name
    return {place: list(names) for place, names in found.items()}


def put(patch: pytest.MonkeyPatch, row: Reaction, *instead: Reaction) -> None:
    """Put other rows, or none, in the place of a row, as long as the patch lasts."""
    place = next(place for place, other in enumerate(GROUP_REACTIONS) if other is row)
    rows = (*GROUP_REACTIONS[:place], *instead, *GROUP_REACTIONS[place + 1 :])
    fresh = cache(reactions_of.__wrapped__)
    patch.setattr(request_reactions, "GROUP_REACTIONS", rows)
    patch.setattr(request_reactions, "reactions_of", fresh)


# No reference reaches these rows: they are of releases between 0.9.0.1 and 2.8.2, or of Dead groups. CHANGES has them.
BY_SOURCE = {place for place, row in enumerate(GROUP_REACTIONS) if row.until in ("2.2.0", "2.3.0", "2.6.1")}


@pytest.mark.parametrize("place", range(len(GROUP_REACTIONS)), ids=lambda place: name_of(GROUP_REACTIONS[place]))
def test_a_row_that_does_something_else_is_noticed(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case, a trace or a kept sequence that reaches the row fails where the row answers otherwise, or is not there."""
    # The references are Kafka's classes and brokers of 0.9.0.1 and 2.8.2; for the rows of BY_SOURCE it is Kafka's source.
    row = GROUP_REACTIONS[place]
    if place in BY_SOURCE:
        assert place not in reached()
        assert is_noticed(monkeypatch, row, row._replace(reaction="UNKNOWN_SERVER_ERROR"))
        return
    is_shown = row.requests == (Request.DESCRIBE,)  # its handler looks at the row to show more or less
    names = reached()[place]
    put(monkeypatch, row, *(() if is_shown else (row._replace(reaction="UNKNOWN_SERVER_ERROR"),)))
    assert not all(PLAYS[name]() for name in names)


@pytest.mark.parametrize("place", [place for place, row in enumerate(GROUP_REACTIONS) if row.restarts_session])
def test_a_session_that_is_not_started_anew_is_noticed(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row with `restarts_session` that does not start the session anew makes a reference fail."""
    row, names = GROUP_REACTIONS[place], reached()[place]
    put(monkeypatch, row, row._replace(restarts_session=False))
    assert not all(PLAYS[name]() for name in names)
