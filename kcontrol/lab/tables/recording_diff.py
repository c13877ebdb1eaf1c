"""Compares a recording of real brokers with a simulated run of its scenario: writes, transitions, requests and znodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kcontrol.core.errors import UserError
from kcontrol.journal.journal import Record
from kcontrol.lab.support.late import pd
from kcontrol.lab.tables import journal_tables
from kcontrol.recordings.door import compare, group_from_journal, group_recording, recording
from kcontrol.views import text

if TYPE_CHECKING:
    from kcontrol.lab.run import Run

COLUMNS = {"step": "int64", "do": "string", "kind": "string", "theirs": "string", "ours": "string", "verdict": "string"}
LISTS = ("writes", "transitions", "requests")


def is_recorded(records: Sequence[Record]) -> bool:
    """Return whether a journal was made from a recording of real brokers."""
    return bool(records) and records[0].fields.get("world") == recording.RECORDED


def scenario_of(given: Run | Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Return the scenario of `given`, and the name of a new run of this scenario, such as "our isr-order".

    `given` is a run, or the scenario itself as a mapping. Raises UserError for another value.
    """
    # A scenario has brokers and steps, or the requests of a consumer group.
    if isinstance(given, Mapping):
        if "exchange" in given:
            return group_recording.parse(msgspec.json.encode(given), "This dict"), f"our {group_recording.scenario(given)}"
        return given, text.clean(str(given.get("name") or given.get("scenario") or "scenario"), 60)
    if not hasattr(given, "records"):
        raise UserError(f"{given!r} is not a scenario: pass the name of a recording, or a dict with brokers and steps.")
    if group_from_journal.is_of_group(given.records):
        found = group_from_journal.of_journal(given.records)
        return found, f"our {group_recording.scenario(found)}"
    found = recording.of_journal(given.records)
    return found, f"our {found['scenario'] or 'scenario'}"


def recording_diff(names: tuple[str, str], one: Sequence[Record], other: Sequence[Record]) -> RecordingDiff:
    """Return the comparison of two runs of one scenario, of which at least one is a recording of real brokers.

    `one` and `other` are the journals, `names` the labels of the runs. Raises UserError for a run that plays no scenario.
    """
    # "theirs" is the recording; of two recordings it is the first.
    if not is_recorded(one):
        names, one, other = names[::-1], other, one
    return RecordingDiff(names, recording.of_journal(one), recording.of_journal(other))


class RecordingDiff:
    """The comparison of two runs of one scenario, of which at least one is a recording of real brokers.

    `difference` is the first difference, None if there is none; `table` shows both runs.
    """

    def __init__(self, names: tuple[str, str], theirs: recording.Recording, ours: recording.Recording) -> None:
        # Differences that Kafka leaves open, such as the order of two brokers' writes, do not count.
        self.names, self.theirs, self.ours = names, theirs, ours
        self.differences = list(self._compare())

    def _compare(self) -> Iterator[compare.Difference]:
        return compare.differences(self.theirs, self.ours)

    @property
    def difference(self) -> compare.Difference | None:
        return self.differences[0] if self.differences else None

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per write, transition, request and differing znode: `theirs` in the (first) recording, `ours` in the other run.

        `verdict` is "same", "differs", "free" (a difference that does not count) or "not compared" (the runs diverged).
        """
        steps = zip_longest(self.theirs["steps"], self.ours["steps"])
        return journal_tables.table((row for at, pair in enumerate(steps) for row in self._rows(at, pair)), COLUMNS)

    def _rows(self, number: int, pair: Sequence[Any]) -> Iterator[dict[str, Any]]:
        do = text.clean(text.scenario_step(next(step for step in pair if step is not None)["do"]))
        for kind in (*LISTS, "znodes"):
            for lines in _aligned(*([_line(kind, item) for item in _items(kind, step)] for step in pair)):
                theirs, ours = (f"{line.about} {line.rest}".rstrip() if line else None for line in lines)
                if kind != "znodes" or theirs != ours:
                    verdict = self._verdict(number, kind, same=theirs == ours)
                    yield {"step": number, "do": do, "kind": kind, "theirs": theirs, "ours": ours, "verdict": verdict}

    def _verdict(self, number: int, kind: str, *, same: bool) -> str:
        # Nothing is compared after the runs diverged: different brokers won an election, or the steps differ. "free" is a
        # difference that the comparison ignores, such as the order of two brokers' writes.
        last = self.differences[-1] if self.differences else None
        if last is not None and last.kind in ("winner", "steps") and number >= last.step:
            return "not compared"
        if same:
            return "same"
        return "differs" if any((d.step, d.kind) == (number, kind) for d in self.differences) else "free"

    def __str__(self) -> str:
        theirs, ours = self.names
        if self.difference is None:
            steps = max(len(self.theirs["steps"]), len(self.ours["steps"]))
            return f"No difference between {theirs} and {ours} in {steps} steps, by the rule of the recordings."
        d = self.difference
        where = f"step {d.step} ({text.scenario_step(d.do)})" if d.do else f"step {d.step}"
        sides = f"{theirs}: {_short(d.theirs)}; {ours}: {_short(d.ours)}"
        return f"The first difference is in {where}, in {d.kind}, {d.about}. {sides}."

    def _around(self, d: compare.Difference) -> pd.DataFrame:
        """Return the rows of `table` whose scenario step and kind, such as "requests", are those of the difference `d`."""
        return self.table[(self.table["step"] == d.step) & (self.table["kind"] == d.kind)]

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        d = self.difference
        if d is None:
            return f"<p>{escape(str(self))}</p>"
        where = f"step {d.step} ({text.scenario_step(d.do)})" if d.do else f"step {d.step}"
        said = f"<p>The first difference is in {escape(where)}, in {escape(d.kind)}, {escape(d.about)}.</p>"
        heads = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in self.names)
        marked = "".join(f"<td style='text-align:left'><mark>{escape(_short(value))}</mark></td>" for value in (d.theirs, d.ours))
        around = self._around(d)
        return (
            f"{said}<table><thead><tr>{heads}</tr></thead><tbody><tr>{marked}</tr></tbody></table>"
            f"<details><summary>step {d.step}, {escape(d.kind)}, side by side</summary>{around.to_html(notebook=True)}</details>"
        )


def _short(value: Any) -> str:
    return "nothing" if value is None else text.clean(value if isinstance(value, str) else _json(value), 400)


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


class Line(NamedTuple):
    """A write, transition, request or znode of a recording as two texts, for a table of two runs."""

    # The subject, such as "1: create /controller" for a write by broker 1, or "1: t-0" for a transition of t-0 at broker 1.
    about: str
    # The values as JSON, or "" without values; for a transition the two states and the controller epoch.
    rest: str


def _items(kind: str, step: Mapping[str, Any] | None) -> list[Any]:
    if step is None:
        return []
    return sorted(step[kind].items()) if kind == "znodes" else list(step[kind])


def _line(kind: str, item: Any) -> Line:
    if kind == "transitions":
        moved = f"{item['from'] or '?'} → {item['to']}{', failed' if item.get('failed') else ''}"
        return _clean(f"{item['by']}: {item['subject']}", f"{moved}, epoch {item['epoch']}")
    if kind == "requests":
        about = f"{item['by']} → {item['to']}: {item['api']} {text.listed(sorted(item['partitions']))}"
        return _clean(about, _json(_without(item, "by", "to", "api")))
    if kind == "znodes":
        return _clean(item[0], _json(item[1]))
    about = " ".join(filter(None, (f"{item['by']}: {item['op']}", item.get("path"))))
    return _clean(about, _json(_without(item, "by", "op", "path", "multi")).removeprefix("{}"))


def _without(item: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in names}


def _clean(about: str, rest: str) -> Line:
    return Line(text.clean(about, 500), text.clean(rest, 1_000))


def _aligned(theirs: list[Line], ours: list[Line]) -> Iterator[tuple[Line | None, Line | None]]:
    """Yield each line of `theirs` with an equal line of `ours`, else with a line of `ours` about its subject, else with None.

    Then yield (None, line) for each line of `ours` that is in no pair.
    """
    left = list(ours)
    found: list[Line | None] = []
    for line in theirs:
        found.append(line if line in left else None)
        if line in left:
            left.remove(line)
    for line, same in zip(theirs, found, strict=True):
        other = same or next((one for one in left if one.about == line.about), None)
        if other is not None and same is None:
            left.remove(other)
        yield line, other
    yield from ((None, line) for line in left)
