"""Compares two runs: the first decision and the first journal record that differ, and the last states.

A decision is about a partition. Two releases already read different znodes at their start, so the first record that differs
says little; a notebook shows the first decision that differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from kcontrol.journal.fold import fold
from kcontrol.journal.journal import Record
from kcontrol.journal.state_history import State
from kcontrol.lab.comparison import first_decision
from kcontrol.lab.support.late import pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views import state_diff, text
from kcontrol.views.explanations import rule

if TYPE_CHECKING:
    from kcontrol.lab.run import Run

# Fields that a real ZooKeeper or a wall clock decides: they say nothing about the decisions of brokers.
INCIDENTAL = frozenset({"zxid", "session", "timestamp_ms", "fires_at_ms", "broker_epoch", "broker_epochs", "world", "seen"})
INCIDENTAL_FIELDS = frozenset({"broker_epoch", "live_broker_epochs"})

DECIDED = dict.fromkeys(("decision", "rule", "source", "after", "id"), "string")
COLUMNS = {"record": "Int64", "id": "string", "kind": "string", "what": "string", "rule": "string"}


def comparable_record(record: Record) -> tuple[Any, ...]:
    """Return id, kind, cause and fields of a journal record, without times, zxids, session ids and broker epochs."""
    # The first record of a journal has the settings of the run. Without them, and without the values left out, journals of a
    # simulated and of a real ZooKeeper can be compared.
    if record.kind == "run":
        return (record.kind,)
    plain = record.to_json()
    fields = plain.fields
    if record.kind == "update" and fields["field"] in INCIDENTAL_FIELDS:
        fields = fields | {"put": None}
    return record.id, record.kind, record.cause, _essence(fields)


def _essence(value: Any) -> Any:
    match value:
        case dict():
            return {key: _essence(item) for key, item in value.items() if key not in INCIDENTAL}
        case list():
            return [_essence(item) for item in value]
        case str():
            return state_diff.TIMESTAMP.sub('"timestamp":"*"', value)
    return value


class Divergence(NamedTuple):
    """The first pair of journal records, `records`, that differ between two runs, and its position `at` in both journals."""

    # The label of each run, such as "seed 7", in tables and sentences.
    names: tuple[str, str]
    # Counted from 0; the number of records if the journals are equal.
    at: int
    # A record is None if its journal has ended before this position. In equal journals both are None.
    records: tuple[Record | None, Record | None]
    # Copies of the journals at the time of the comparison.
    runs: tuple[Sequence[Record], Sequence[Record]] = ((), ())

    @property
    def parted(self) -> int:
        """The position in both journals, from 0, of the first records that differ; -1 if the journals are equal."""
        return self.at if any(self.records) else -1

    @property
    def decision(self) -> first_decision.Differing | None:
        """The first difference between the decisions of both runs: the partition, and one decision per run.

        A decision is about the leader or the ISR of a partition. The value is None if all decisions are equal.
        """
        return first_decision.first_difference(*self.runs) if any(self.records) else None

    @property
    def table(self) -> pd.DataFrame:
        """One row per run with its journal record at the first position at which the journals differ.

        If the journals are equal, the table has no rows.
        """
        rows = [self._row(name, r) for name, r in zip(self.names, self.records, strict=True)] if any(self.records) else []
        return journal_tables.table(rows, COLUMNS, "run")

    def _row(self, name: str, r: Record | None) -> dict[str, Any]:
        if r is None:
            return {"run": name, "what": "It has ended."}
        return {
            "run": name,
            "record": self.at,
            "id": str(r.id),
            "kind": r.kind,
            "what": text.sentence(r),
            "rule": rule(r.to_json()),
        }

    @property
    def decided(self) -> pd.DataFrame:
        """One row per run with the first decision about a partition that differs between the runs, its rule and Kafka's method.

        If all decisions about partitions are equal, the table has no rows.
        """
        found = self.decision
        if found is None:
            return journal_tables.table((), DECIDED, "run")
        partition, pair = found
        rows = []
        for name, decision, records in zip(self.names, pair, self.runs, strict=True):
            why, source = first_decision.rule(decision, records, str(records[0].fields.get("release", "")))
            # The last action from outside before the decision, such as a kill.
            after = text.sentence(decision.act) if decision and decision.act else None
            id = str(decision.record.id) if decision else None
            said = first_decision.say(decision, partition)
            rows.append({"run": name, "decision": said, "rule": why, "source": source, "after": after, "id": id})
        return journal_tables.table(rows, DECIDED, "run")

    def __str__(self) -> str:
        if not any(self.records):
            return f"Both runs have equal records, {self.at} of them."
        found = self.decision
        if found is None:
            return f"No decision about a partition differs. {self._first_record()}"
        decided = zip(self.names, self.decided["decision"], self.decided["rule"], strict=True)
        sides = [f"{name}: {said} Rule: {why}." if why else f"{name}: {said}" for name, said, why in decided]
        return f"The first decision that differs is about {found.partition}. {' '.join(sides)}"

    def _first_record(self) -> str:
        said = [text.sentence(r) if r else "It has ended." for r in self.records]
        sides = " ".join(f"{name}: {words}" for name, words in zip(self.names, said, strict=True))
        one, other = (r.to_json().fields if r else None for r in self.records)
        paths = ", ".join(_paths(one, other)) or "none, but the ids or causes do"
        unsaid = f" The fields that differ: {paths}." if said[0] == said[1] else ""
        return f"The first record that differs is record {self.at}. {sides}{unsaid}"

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
        first = state_diff.collapsible(f"First record that differs: {self.at}", record)
        return f"{head}{state_diff.html(self.names, self.states)}{first}"

    @property
    def states(self) -> tuple[State, State]:
        """The states of both clusters after the last record of each run, as `journal.fold` computes them."""
        one, other = map(fold, self.runs)
        return one, other

    @property
    def differences(self) -> dict[str, Any]:
        """The differences at the end of both runs, such as {"brokers": {"1": ["alive", "dead"]}, "partitions": {}, "znodes": []}.

        `partitions` has the fields that differ, by partition; `znodes` has the paths that differ.
        """
        # `brokers` maps ids to two states, such as "alive" and "dead", `partitions` maps names to the names of differing
        # fields, and `znodes` lists the paths that differ. Times in znodes do not count.
        return state_diff.differences(*self.states)


def _paths(one: Any, other: Any, path: tuple[str, ...] = ()) -> list[str]:
    """Of the values that differ, such as "do.version"."""
    if one == other:
        return []
    if isinstance(one, dict) and isinstance(other, dict):
        return [name for key in {**one, **other} for name in _paths(one.get(key), other.get(key), (*path, key))]
    return [".".join(path)]


def _html(table: pd.DataFrame) -> str:
    rows = ([str(cell) for cell in row] for row in table.astype("string").fillna("").itertuples())
    return state_diff.plain_table([str(table.index.name), *table.columns], rows)


def labels(names: tuple[str, str], runs: tuple[Run, Run]) -> tuple[str, str]:
    """Return a label for each of two runs: `names` or, if neither run has a name, the settings that differ, such as "seed 7".

    For a run without a name, `names` has the kind of its cluster.
    """
    # A run without a name of its own has the name of its world in `names`.
    if not all(_is_unnamed(name, run) for name, run in zip(names, runs, strict=True)):
        return names
    pair = [_settings(run) for run in runs]
    differing = [name for name in {**pair[0], **pair[1]} if pair[0].get(name) != pair[1].get(name)]
    said = [", ".join(settings[name] for name in differing if name in settings) for settings in pair]
    # No setting differs.
    if not any(said):
        return "the first run", "the second run"
    # Only the other run has a differing setting in words: then the label is such as "defaults of 2.8".
    usual = [f"defaults of {settings['release']}" for settings in pair]
    return said[0] or usual[0], said[1] or usual[1]


def _is_unnamed(name: str, run: Run) -> bool:
    """Return whether `name` is only the kind of the run's cluster, such as "simulated": the run has no name of its own."""
    return bool(run.records) and name == run.records[0].fields.get("world")


def _settings(run: Run) -> dict[str, str]:
    """Return the settings of a run in words, by the name of the setting: `{"seed": "seed 7", "brokers": "3 brokers"}`."""
    fields = run.records[0].fields if run.records else {}
    said = {"release": str(fields.get("release")), "world": str(fields.get("world"))}
    said |= {"brokers": f"{len(fields.get('brokers', ()))} brokers", "seed": f"seed {fields.get('seed')}"}
    # A run of a Lab also has the settings that differ from the release's defaults, and the rules and functions that replace
    # those of the release.
    return said | run._changed_settings


def divergence(names: tuple[str, str], one: Sequence[Record], other: Sequence[Record]) -> Divergence:
    """Return the first difference between the journals `one` and `other`, whose runs have the labels `names`.

    Times, zxids, session ids, broker epochs, and the settings in the first records do not count. For equal journals the result
    has the number of records and two None.
    """
    runs = (list(one), list(other))
    for at, pair in enumerate(zip_longest(*runs)):
        here, there = pair
        if here is None or there is None or comparable_record(here) != comparable_record(there):
            return Divergence(names, at, pair, runs)
    return Divergence(names, len(one), (None, None), runs)
