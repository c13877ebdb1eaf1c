"""Two runs compared: the first decision about a partition that differs, the first record that differs, and both ends.

Runs of two releases differ in their first reads already, so the decision is shown first and the record is folded away.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from kcontrol.lab import decisions, tables
from kcontrol.lab.decisions import Differing
from kcontrol.runtime.fold import fold
from kcontrol.runtime.history import State
from kcontrol.runtime.journal import Record
from kcontrol.views import beside, text
from kcontrol.views.meanings import rule

if TYPE_CHECKING:
    from kcontrol.lab.moment import Moment

# What a real ZooKeeper and a wall clock decide, by the name of the field: it tells nothing about what brokers did.
INCIDENTAL = frozenset({"zxid", "session", "timestamp_ms", "fires_at_ms", "broker_epoch", "broker_epochs", "world", "seen"})
INCIDENTAL_BELIEFS = frozenset({"broker_epoch", "live_broker_epochs"})
_TIMESTAMP = re.compile(r'"timestamp":"\d+"')

DECIDED = dict.fromkeys(("decision", "rule", "source", "after", "id"), "string")
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
    def decision(self) -> Differing | None:
        """The first decision about a partition that differs, or None where all decisions are equal."""
        return decisions.first_difference(*self.runs) if any(self.records) else None

    @property
    def table(self) -> pd.DataFrame:
        """One row per run with its first record that the other run does not have, or no row where the runs are equal."""
        rows = [self._row(name, r) for name, r in zip(self.names, self.records, strict=True)] if any(self.records) else []
        return tables.table(rows, COLUMNS, "run")

    def _row(self, name: str, r: Record | None) -> dict[str, Any]:
        if r is None:
            return {"run": name, "what": "It has ended."}
        return {"run": name, "record": self.at, "id": str(r.id), "kind": r.kind, "what": text.say(r), "rule": rule(r.plain())}

    @property
    def decided(self) -> pd.DataFrame:
        """Return one row per run: its first decision that differs, the rule behind it, and the last act before it."""
        found = self.decision
        if found is None:
            return tables.table((), DECIDED, "run")
        partition, pair = found
        rows = []
        for name, decision, records in zip(self.names, pair, self.runs, strict=True):
            why, source = decisions.rule(decision, records, str(records[0].fields.get("release", "")))
            after = text.say(decision.act) if decision and decision.act else None
            id = str(decision.record.id) if decision else None
            said = decisions.say(decision, partition)
            rows.append({"run": name, "decision": said, "rule": why, "source": source, "after": after, "id": id})
        return tables.table(rows, DECIDED, "run")

    def __str__(self) -> str:
        if not any(self.records):
            return f"The same, record by record, all {self.at} of them."
        found = self.decision
        if found is None:
            return f"No decision about a partition differs. {self._first_record()}"
        sides = [f"{name}: {said} Rule: {why}." if why else f"{name}: {said}" for name, said, why in self._sides()]
        return f"The first decision that differs is about {found.partition}. {' '.join(sides)}"

    def _sides(self) -> list[tuple[str, str, str]]:
        table = self.decided
        return list(zip(self.names, table["decision"], table["rule"], strict=True))

    def _first_record(self) -> str:
        said = [text.say(r) if r else "It has ended." for r in self.records]
        sides = " ".join(f"{name}: {words}" for name, words in zip(self.names, said, strict=True))
        return f"The first record that differs is record {self.at}. {sides}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        if not any(self.records):
            return f"<p>{escape(str(self))}</p>"
        found = self.decision
        if found is None:
            head = f"<p>{escape(str(self))}</p>"
        else:
            head = f"<p>The first decision that differs is about <b>{escape(found.partition)}</b>.</p>"
            head += _html(self.decided.drop(columns="id"))
        record = f"<p>{escape(self._first_record())}</p>{_html(self.table)}"
        return f"{head}{beside.html(self.names, self.states)}{beside.fold_out(f'First record that differs: {self.at}', record)}"

    @property
    def states(self) -> tuple[State, State]:
        """Both runs folded to their ends."""
        one, other = map(fold, self.runs)
        return one, other

    @property
    def differences(self) -> dict[str, Any]:
        """What differs in the end: brokers with their two standings, partitions with the fields, and paths of znodes."""
        return beside.differences(*self.states)


def _html(table: pd.DataFrame) -> str:
    rows = ([str(cell) for cell in row] for row in table.astype("string").fillna("").itertuples())
    return beside.plain_table([str(table.index.name), *table.columns], rows)


def labels(names: tuple[str, str], runs: tuple[Moment, Moment]) -> tuple[str, str]:
    """Return what to call two runs: their names, or where neither has a name of its own, the settings in which they differ."""
    if not all(_is_unnamed(name, run) for name, run in zip(names, runs, strict=True)):
        return names
    pair = [_settings(run) for run in runs]
    differing = [name for name in {**pair[0], **pair[1]} if pair[0].get(name) != pair[1].get(name)]
    said = [", ".join(settings[name] for name in differing if name in settings) for settings in pair]
    if not any(said):
        return "the first run", "the second run"
    usual = [f"defaults of {settings['release']}" for settings in pair]
    return said[0] or usual[0], said[1] or usual[1]


def _is_unnamed(name: str, run: Moment) -> bool:
    """Whether a run bears the name of its world, which every lab has that was given no other one."""
    return bool(run.records) and name == run.records[0].fields.get("world")


def _settings(run: Moment) -> dict[str, str]:
    """Return the settings of a run in words, by name: those in its first record, and those that a lab knows besides."""
    fields = run.records[0].fields if run.records else {}
    said = {"release": str(fields.get("release")), "world": str(fields.get("world"))}
    said |= {"brokers": f"{len(fields.get('brokers', ()))} brokers", "seed": f"seed {fields.get('seed')}"}
    return said | run.changed_settings


def parting(names: tuple[str, str], one: Sequence[Record], other: Sequence[Record]) -> Parting:
    """Return the first difference between two journals, but for times, zxids and session ids."""
    runs = (list(one), list(other))
    for at, pair in enumerate(zip_longest(*runs)):
        here, there = pair
        if here is None or there is None or story(here) != story(there):
            return Parting(names, at, pair, runs)
    return Parting(names, len(one), (None, None), runs)
