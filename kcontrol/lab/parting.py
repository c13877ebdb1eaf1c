"""Where two runs part: the first record of each that the other does not have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from itertools import zip_longest
from typing import Any, NamedTuple

import pandas as pd

from kcontrol.lab import tables
from kcontrol.runtime.fold import fold
from kcontrol.runtime.history import State
from kcontrol.runtime.journal import Record
from kcontrol.views import beside, text
from kcontrol.views.meanings import rule

# What a real ZooKeeper and a wall clock decide, by the name of the field: it tells nothing about what brokers did.
INCIDENTAL = frozenset({"zxid", "session", "timestamp_ms", "fires_at_ms", "broker_epoch", "broker_epochs", "world", "seen"})
INCIDENTAL_BELIEFS = frozenset({"broker_epoch", "live_broker_epochs"})
_TIMESTAMP = re.compile(r'"timestamp":"\d+"')

COLUMNS = {"record": "Int64", "id": "string", "kind": "string", "what": "string", "rule": "string"}


def story(record: Record) -> tuple[Any, ...]:
    """A record without times, zxids and session ids: equal in every world where the same happens.

    How a run is set up, which its first record says, is no part of it.
    """
    if record.kind == "run":
        return (record.kind,)
    plain = record.plain()
    fields = plain.fields
    if record.kind == "learn" and fields["field"] in INCIDENTAL_BELIEFS:
        fields = fields | {"put": None}
    return record.id, record.kind, record.cause, _essence(fields)


def _essence(value: Any) -> Any:
    match value:
        case dict():
            return {key: _essence(item) for key, item in value.items() if key not in INCIDENTAL}
        case list():
            return [_essence(item) for item in value]
        case str():
            return _TIMESTAMP.sub('"timestamp":"*"', value)
    return value


class Parting(NamedTuple):
    """The first records that differ between two runs, None where a run has ended or nothing differs; `at` counts from 0.

    `runs` are the journals as they were when they were compared.
    """

    names: tuple[str, str]
    at: int
    records: tuple[Record | None, Record | None]
    runs: tuple[Sequence[Record], Sequence[Record]] = ((), ())

    @property
    def table(self) -> pd.DataFrame:
        """One row per run, or none where the runs are the same."""
        rows = [self._row(name, r) for name, r in zip(self.names, self.records, strict=True)] if any(self.records) else []
        return tables.table(rows, COLUMNS, "run")

    def _row(self, name: str, r: Record | None) -> dict[str, Any]:
        if r is None:
            return {"run": name, "what": "It has ended."}
        return {"run": name, "record": self.at, "id": str(r.id), "kind": r.kind, "what": text.say(r), "rule": rule(r.plain())}

    def __str__(self) -> str:
        if not any(self.records):
            return f"The same, record by record, all {self.at} of them."
        said = [text.say(r) if r else "It has ended." for r in self.records]
        return f"They part at record {self.at}. {self.names[0]}: {said[0]} {self.names[1]}: {said[1]}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        if not any(self.records):
            return f"<p>{escape(str(self))}</p>"
        return f"<p>{escape(str(self))}</p>{self.table.to_html(notebook=True)}{beside.html(self.names, self.states)}"

    @property
    def states(self) -> tuple[State, State]:
        """Both runs folded to their ends."""
        one, other = map(fold, self.runs)
        return one, other

    @property
    def differences(self) -> dict[str, Any]:
        """What differs in the end: brokers with their two standings, partitions with the fields, and paths of znodes."""
        return beside.differences(*self.states)


def parting(names: tuple[str, str], one: Sequence[Record], other: Sequence[Record]) -> Parting:
    """The first difference between two journals, but for times, zxids and session ids."""
    for at, pair in enumerate(zip_longest(one, other)):
        here, there = pair
        if here is None or there is None or story(here) != story(there):
            return Parting(names, at, pair, (list(one), list(other)))
    return Parting(names, len(one), (None, None), (list(one), list(other)))
