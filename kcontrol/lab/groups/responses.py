"""Finds the responses to an administrator's requests: ListGroups, DescribeGroups, DeleteGroups, OffsetDelete.

It makes a table of them, and a sentence for each error in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kcontrol.cluster.group_admin import PREFIX
from kcontrol.core.errors import UserError
from kcontrol.core.releases import is_since
from kcontrol.group.error_codes import ERRORS
from kcontrol.group.group_machine import GROUP_TRANSITIONS
from kcontrol.journal.journal import Record
from kcontrol.lab.run import Run
from kcontrol.lab.support import arguments
from kcontrol.lab.support.late import frames, pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views import group_state, text

RESPONSES = {"broker": "int64", "request": "string", "about": "string", "error": "string", "code": "int64", "response": "string"}


def group_responses(run: Run) -> pd.DataFrame:
    """Responses to ListGroups, DescribeGroups and other admin requests, by group or partition (`about`).

    The index is the id of the response's journal record. `error` and `code` are the error's name and number; for ListGroups and
    DescribeGroups `response` describes the group.
    """
    rows = (row for record in run.records for row in _rows(record))
    return frames.Wide(journal_tables.table(rows, RESPONSES, "id"))


def _rows(record: Record) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table `responses` for one journal record; none if it is not a response to an administrator."""
    if record.kind != "respond" or not str(record.fields["correlation_id"]).startswith(PREFIX):
        return
    fields = record.to_json().fields
    # Without a group id, as in ListGroups, the correlation id may end with the number of the request.
    request, _, rest = fields["correlation_id"].removeprefix(PREFIX).partition(" ")
    group = rest.partition(" ")[2]
    row = {"id": str(record.id), "broker": record.id.node, "request": request}
    for about, error, response in _answers(request, "" if request == "ListGroups" else group, fields["body"]):
        yield row | {"about": about, "error": error, "code": ERRORS[error], "response": response}


def _answers(request: str, group: str, body: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (group or partition, error, other values in words) for each group or partition of the response `body`.

    `request` is an API, such as "DeleteGroups"; `group` is the group of the request, "" for ListGroups. The error is "NONE" after
    a success.
    """
    # A response to ListGroups gives one tuple for all groups, with an empty group.
    if request == "ListGroups":
        found = [f"{name} ({kind or 'no protocol type'}, {state})" for name, kind, state in body["groups"]]
        yield group, body["error"], ", ".join(found) or "no group"
    elif request == "DescribeGroups":
        yield group, body["error"], _description(body) if body["error"] == "NONE" else ""
    else:
        errors = dict(body["errors"])
        yield from ((about, error, "") for about, error in errors.items())
        if not errors:
            yield group, body["error"], ""


def _description(body: Mapping[str, Any]) -> str:
    members = [f"{member['member_id']} {group_state.partitions(held)}" for member, _, held in body["members"]]
    protocol = f", protocol {body['protocol']}" if body["protocol"] else ""
    return f"{body['state']}{protocol}, {text.listed(members, 30) or 'no member'}"


def refusals(record: Record) -> Iterator[str]:
    """A sentence per error in a response to an administrator's request about groups."""
    for row in _rows(record):
        if row["error"] != "NONE":
            about = f" of {text.clean(row['about'], 100)}" if row["about"] else ""
            yield f"Broker {row['broker']} refuses {row['request']}{about}: {row['error']} ({row['code']})."


def states(release: str, asked: Sequence[Any]) -> tuple[str, ...]:
    """Raises UserError for a state that the release lacks, and for any state before 2.6 (KIP-518)."""
    if asked and not is_since("2.6", release):
        raise UserError(f"Kafka {release} lists the groups of all states: ListGroups takes states since 2.6 (KIP-518).")
    names = list(group_state.state_names(GROUP_TRANSITIONS.for_(release), release).values()) if asked else []
    for state in asked:
        if state not in names:
            raise UserError(f"A group has no state {arguments.shown(state)}; the states are {text.listed(names, 9)}.")
    return tuple(asked)
