"""The responses that a coordinator gives to each request in each group state: all as a table, the usual ones as a grid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kcontrol.core.errors import UserError
from kcontrol.group.group_machine import GROUP_TRANSITIONS
from kcontrol.group.group_rules import group_rules
from kcontrol.group.request_reactions import Reaction, Request, always, is_unknown, reactions_of
from kcontrol.journal.fold import fold
from kcontrol.journal.journal import Record
from kcontrol.lab.run import Run
from kcontrol.lab.support import arguments
from kcontrol.lab.support.late import frames, pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views import group_state, text

REACTIONS = {"state": "string", "request": "string", "condition": "string", "response": "string",
             "restarts_session": "bool", "since": "string", "source": "string"}  # fmt: skip
NO_GROUP = "no group"
COLUMNS = (Request.JOIN_NEW, Request.JOIN, Request.SYNC, Request.HEARTBEAT, Request.LEAVE)
EVENTS = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup")


def reactions(run: Run, request: str | None = None) -> pd.DataFrame:
    """The coordinator's response per group state, request and condition.

    The first row whose condition holds applies. `request`, such as "JoinGroup", limits the rows. Raises UserError for a request
    that the release lacks.
    """
    release = run._played
    require_coordinator(release)
    asked = {found.title: found for found in Request if reactions_of(release, "any", found)}
    if request is not None and request not in [*asked]:
        raise UserError(f"There is no request {arguments.shown(request)} in Kafka {release}; there are {text.listed(asked, 30)}.")
    # The rows of a state and request have the order in which the coordinator checks their conditions.
    chosen = [found for title, found in asked.items() if request in (None, title)]
    return frames.Wide(journal_tables.table((row for found in chosen for row in _reactions(release, found)), REACTIONS))


def require_coordinator(release: str) -> None:
    """Raise UserError for a release without a group coordinator."""
    try:
        group_rules(release)
    except ValueError as problem:
        raise UserError(f"{str(problem)[:1].upper()}{str(problem)[1:]}.") from None


def _reactions(release: str, request: Request) -> Iterator[dict[str, Any]]:
    names = group_state.state_names(GROUP_TRANSITIONS.for_(release), release)
    for state in (None, *GROUP_TRANSITIONS.states):
        if state is None or str(state) in names:
            named = NO_GROUP if state is None else names[str(state)]
            yield from (_reaction(named, request, row) for row in _reachable(reactions_of(release, state, request)))


def _reachable(rows: Iterable[Reaction]) -> Iterator[Reaction]:
    """Up to and with the first row without a condition: the coordinator takes no later row."""
    for row in rows:
        yield row
        if row.condition is always:
            return


def _reaction(state: str, request: Request, row: Reaction) -> dict[str, Any]:
    named = {"state": state, "request": request.title, "condition": row.words, "response": row.reaction}
    source = ", ".join(filter(None, [request.methods, row.source]))
    return named | {"restarts_session": row.restarts_session, "since": row.since, "source": source}


# ---------------------------------------------------------------- the usual responses as a grid


def reaction_grid(run: Run) -> frames.Grid:
    """Group states x requests: the coordinator's usual response in this release.

    "▶ " marks the cell of the last request in the journal. Raises UserError before 0.9 (no coordinator).
    """
    release = run._played
    require_coordinator(release)
    names = {None: NO_GROUP} | group_state.state_names(GROUP_TRANSITIONS.for_(release), release)
    states = {None: None} | {str(state): state for state in GROUP_TRANSITIONS.states}
    rows = {
        named: {request.title: _usual(reactions_of(release, states[state], request)) for request in COLUMNS}
        for state, named in names.items()
    }
    if used := _last_used(run.records):
        state, request = used
        rows[names[state]][request.title] = frames.MARK + rows[names[state]][request.title]
    return frames.Grid(pd.DataFrame.from_dict(rows, orient="index").rename_axis("state"))


def _usual(rows: Sequence[Reaction]) -> str:
    """Return the reaction of the row without a condition; `rows` are those of one request in one group state."""
    # If each row has a condition, it is the reaction to an unknown member id.
    return next(row.reaction for condition in (always, is_unknown) for row in rows if row.condition is condition)


def _last_used(records: Sequence[Record]) -> tuple[str | None, Request] | None:
    """Return (state, kind) for the last request of a group's member that a coordinator has handled.

    `state` is the group's state before the request. Return None if there is no such request.
    """
    events = {record.id: record for record in records if record.kind == "enqueue"}
    for index in range(len(records) - 1, -1, -1):
        record = records[index]
        if record.kind == "begin" and record.fields["event"] in EVENTS and record.cause in events:
            event = events[record.cause].to_json().fields["event"]
            held = fold(records[:index])["nodes"][str(record.id.node)]["group"].get("groups", {}).get(event["group_id"])
            # The state is None if the coordinator did not have the group.
            return (held["state"] if held else None), _request(event)
    return None


def _request(event: Mapping[str, Any]) -> Request:
    if event["event"] == "JoinGroup":
        return Request.JOIN if event.get("member_id") else Request.JOIN_NEW
    return next(request for request in COLUMNS if request.title == event["event"])
