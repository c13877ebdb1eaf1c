"""Makes the viewer's rows: one dict per journal record, which is sent to the viewer's JavaScript.

A row has the record's values, its sentence, its importance (0 to 2), and its changes of the viewer's state.
"""

from collections.abc import Iterable
from typing import Any

from kcontrol.journal.fold import Fold
from kcontrol.journal.journal import Record
from kcontrol.journal.journal_file import WRONG
from kcontrol.views import clock, explanations, text
from kcontrol.views.decisions import decision
from kcontrol.views.patches import Patches
from kcontrol.views.picture_state import Seen, session_name

Row = dict[str, Any]


class Rows:
    """The rows of one run for the viewer: `add` is called for each journal record in order, `made` has one dict per record."""

    def __init__(self) -> None:
        self.made: list[Row] = []
        self._seen, self._patches = Seen(), Patches()
        self._release = ""
        self._explanations: dict[tuple[str, ...], int] = {}

    def add(self, record: Record, fold: Fold) -> None:
        """Append the viewer's row for the journal's next record to `made`; `fold` has the state after it, and its changes."""
        fields = record.fields
        if (session := fields.get("session")) is not None:
            fields = fields | {"session": session_name(session)}
        before = self._controller()
        self._seen.add(record, fold)
        row = {
            "id": list(record.id),
            "kind": record.kind,
            "cause": list(record.cause) if record.cause else None,
            "at_ms": record.at_ms,
            "fields": fields,
            "say": text.sentence(record),
            "weight": text.importance(record),
        }
        # A decision about a partition or the controller as text, and its reason.
        row |= {"decides": decided, "rule": explanations.rule(record)} if (decided := decision(record)) else {}
        # The broker that /controller names since this record; None if it names no broker any more.
        row |= {"reign": named} if (named := self._controller()) != before else {}
        # The lines that explain the record, or their number if an earlier row has equal lines.
        row |= self._explained(record)
        # The record's changes of the parts of the state that a panel draws.
        self.made.append(row | self._patches.of(row, [*fold.noted, *self._seen.noted]))

    def _controller(self) -> int | None:
        """Return the broker that `/controller` names after the last record, None if it names no broker."""
        return found[0] if (found := self._seen.state["controller"]) else None

    def _explained(self, record: Record) -> Row:
        if record.kind == "run":
            self._release = str(record.fields.get("release", ""))
        if not (found := tuple(explanations.decided(record, self._release))):
            return {}
        if (number := self._explanations.get(found)) is not None:
            return {"explained": number}
        self._explanations[found] = len(self._explanations)
        return {"explained": list(found)}


def rows(records: Iterable[Record]) -> list[Row]:
    """Return a dict per journal record of a run: the record's values, its sentence `say`, and its importance `weight`, 0 to 2."""
    found, fold = Rows(), Fold()
    for record in records:
        plain, broken = record.to_json(), {}
        try:
            fold.add(plain)
        except WRONG as problem:
            # A record that contradicts an earlier record changes nothing.
            broken = {"broken": f"{type(problem).__name__}: {problem}"}
            fold.noted = []
        found.add(plain, fold)
        found.made[-1] |= broken
    return found.made


def about_run(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Empty values and the virtual clock, unless the first row is of kind "run"."""
    # A damaged journal may lack the record `run`.
    first = found[0]["fields"] if found and found[0]["kind"] == "run" else {}
    world = str(first.get("world", ""))
    about = {"brokers": first.get("brokers", []), "release": str(first.get("release", "")), "world": world}
    return about | {"clock": clock.of_world(world or "simulated")}
