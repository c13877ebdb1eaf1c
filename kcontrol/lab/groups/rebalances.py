"""Tables of the rebalances of a run, and of the responses that a coordinator gives to each request in each group state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kcontrol.core.errors import UserError
from kcontrol.group.group_machine import GROUP_TRANSITIONS
from kcontrol.group.group_rules import group_rules
from kcontrol.group.request_reactions import Reaction, Request, always, reactions_of
from kcontrol.journal.journal import Record
from kcontrol.lab.support import arguments
from kcontrol.lab.support.late import frames, pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views import group_state, text

PREPARING, COMPLETING = "PreparingRebalance", "CompletingRebalance"
REBALANCES = {"coordinator": "int64", "begin": journal_tables.TIME, "end": journal_tables.TIME, "reason": "string",
              "from_generation": "Int64", "to_generation": "Int64", "members": "object", "ended_in": "string"}  # fmt: skip
REACTIONS = {"state": "string", "request": "string", "condition": "string", "response": "string",
             "restarts_session": "bool", "since": "string", "source": "string"}  # fmt: skip
NO_GROUP = "no group"


def rebalances(records: Sequence[Record]) -> pd.DataFrame:
    """Return one row per rebalance, indexed by group: from PreparingRebalance to Stable, Empty or Dead.

    The end is missing while the rebalance goes on.
    """
    # A rebalance also ends with the coordinator's process. If a group returns to PreparingRebalance before its assignment is
    # stored, one row ends and the next row begins.
    rows = list(_rebalances(records))
    return journal_tables.table(rows, journal_tables.timed(REBALANCES, records), "group")


def _rebalances(records: Sequence[Record]) -> Iterator[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    under_way: dict[tuple[int, str], dict[str, Any]] = {}
    for record in records:
        if record.kind == "stop":
            for key in [key for key in under_way if key[0] == record.fields["broker"]]:
                under_way.pop(key).update(end_ms=record.at_ms, ended_in="the coordinator has ended")
        if record.kind != "group":
            continue
        r = record.to_json()
        key, value = (r.id.node, r.fields["group_id"]), r.fields["group_metadata"] or {}
        row = under_way.get(key)
        if row is not None and value.get("state") != PREPARING:
            row["to_generation"] = value.get("generation", row["to_generation"])
            row["members"] = [m["client_id"] for m in value.get("members", {}).values()]
        if row is not None and value.get("state") != COMPLETING:
            under_way.pop(key).update(end_ms=r.at_ms, ended_in=r.fields["to"])
        if value.get("state") == PREPARING:
            under_way[key] = row = _begun(r, value)
            rows.append(row)
    yield from rows


def _begun(r: Record, value: Mapping[str, Any]) -> dict[str, Any]:
    members = [m["client_id"] for m in value["members"].values()]
    begun = {"group": r.fields["group_id"], "coordinator": r.id.node, "begin_ms": r.at_ms, "reason": r.fields["rule"]}
    return begun | {"from_generation": value["generation"], "to_generation": value["generation"], "members": members}


def reactions(release: str, request: str | None = None) -> pd.DataFrame:
    """Return one row per group state, request and condition, with the coordinator's response in this release.

    With `request`, such as "JoinGroup", return only its rows. Raises UserError for a request that the release lacks.
    """
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
    return named | {
        "restarts_session": row.restarts_session,
        "since": row.since,
        "source": ", ".join(filter(None, [request.methods, row.source])),
    }
