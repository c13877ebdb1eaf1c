"""Shows the coordinator's response to each request in each group state as a grid, with a mark at the cell of the last request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kcontrol.group.group_machine import GROUP_TRANSITIONS
from kcontrol.group.request_reactions import Reaction, Request, always, is_unknown, reactions_of
from kcontrol.journal.fold import fold
from kcontrol.journal.journal import Record
from kcontrol.lab.groups.rebalances import NO_GROUP, require_coordinator
from kcontrol.lab.run import Run
from kcontrol.lab.support.late import frames, pd
from kcontrol.views import group_state

COLUMNS = (Request.JOIN_NEW, Request.JOIN, Request.SYNC, Request.HEARTBEAT, Request.LEAVE)
EVENTS = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup")


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
