"""The table of the responses that a coordinator gives to each request in each group state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kcontrol.core.errors import UserError
from kcontrol.group.group_machine import GROUP_TRANSITIONS
from kcontrol.group.group_rules import group_rules
from kcontrol.group.request_reactions import Reaction, Request, always, reactions_of
from kcontrol.lab.run import Run
from kcontrol.lab.support import arguments
from kcontrol.lab.support.late import frames, pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views import group_state, text

REACTIONS = {"state": "string", "request": "string", "condition": "string", "response": "string",
             "restarts_session": "bool", "since": "string", "source": "string"}  # fmt: skip
NO_GROUP = "no group"


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
