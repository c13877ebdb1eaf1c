"""Compares a recording of a group coordinator, its responses and its log, with a simulated run or with another recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Any

import msgspec

from kcontrol.journal.journal import Record
from kcontrol.lab.support.late import pd
from kcontrol.lab.tables import journal_tables
from kcontrol.lab.tables.recording_diff import RecordingDiff
from kcontrol.recordings.door import compare as differences
from kcontrol.recordings.door import group_compare as compare
from kcontrol.recordings.door import group_from_journal, group_recording
from kcontrol.views import recorded_text, text

COLUMNS = {"entry": "Int64", "at_ms": "Int64", "request": "string", "theirs": "string", "ours": "string", "verdict": "string"}


def is_recorded_group(records: Sequence[Record]) -> bool:
    """Return whether a journal was made from a recording of a real group coordinator."""
    return bool(records) and records[0].fields.get("world") == group_recording.RECORDED_GROUP


def group_recording_diff(names: tuple[str, str], one: Sequence[Record], other: Sequence[Record]) -> GroupRecordingDiff:
    """`names` are the labels. Raises UserError for a run that was not made from a recording."""
    # In the table, "theirs" is `one` if that is the recording of a real coordinator, else `other`.
    if not is_recorded_group(one):
        names, one, other = names[::-1], other, one
    return GroupRecordingDiff(names, group_from_journal.of_journal(one), group_from_journal.of_journal(other))


class GroupRecordingDiff(RecordingDiff):
    """The comparison of two runs in which a coordinator received one sequence of requests: its responses and log records."""

    # Differences that Kafka leaves open, such as the order of members and times in records, do not count.
    def _compare(self) -> Iterator[differences.Difference]:
        return compare.differences(self.theirs, self.ours)

    def __str__(self) -> str:
        theirs, ours = self.names
        if self.difference is not None:
            return super().__str__()
        count, orders = len(self.theirs["exchange"]), compare.free_orders(self.theirs, self.ours)
        said = f"No difference between {theirs} and {ours} in {count} entries, by the rule of the recordings of groups."
        where = f"In {'entry' if len(orders) == 1 else 'entries'} {text.listed(orders)}"
        return f"{said} {where} {compare.FREE_ORDER}." if orders else said

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per response and per record of the log: `theirs` in the recording, `ours` in the other run.

        `verdict` is "same", "differs", "free" (Kafka leaves the difference open) or, after unequal requests, "not compared".
        """
        # "free" is a difference that the comparison ignores, such as a time in a record. From the first request on that is not
        # equal in both runs the verdict is "not compared". The member ids are those of the recording.
        return journal_tables.table([*self._exchange_rows(), *self._log_rows()], COLUMNS)

    def _exchange_rows(self) -> Iterator[dict[str, Any]]:
        ours = compare.renamed(self.ours["exchange"], compare.member_names(self.theirs, self.ours))
        for one, other in zip_longest(self.theirs["exchange"], ours):
            step: group_recording.Step = one or other or {}
            pair = [side and _shown(side.get("answer")) for side in (one, other)]
            about = {"entry": step["n"], "at_ms": step["at"], "request": text.clean(recorded_text.entry(step))}
            yield about | dict(zip(("theirs", "ours"), pair, strict=True)) | {"verdict": self._of(step["n"], "answers", pair)}

    def _log_rows(self) -> Iterator[dict[str, Any]]:
        ours = compare.renamed(self.ours["log"], compare.member_names(self.theirs, self.ours))
        for number, sides in enumerate(zip_longest(self.theirs["log"], ours), 1):
            pair = [side and _shown(side["value"]) for side in sides]
            row = {"entry": None, "request": f"record {number} of __consumer_offsets"}
            yield row | dict(zip(("theirs", "ours"), pair, strict=True)) | {"verdict": self._of(number, "log", pair)}

    def _around(self, d: differences.Difference) -> pd.DataFrame:
        return self.table[self.table["verdict"] != "same"]

    def _of(self, number: int, kind: str, pair: Sequence[Any]) -> str:
        ended = next((d for d in self.differences if d.kind == "exchange"), None)
        if ended is not None and (kind == "log" or number >= ended.step):
            return "not compared"
        if any((d.step, d.kind) == (number, kind) for d in self.differences):
            return "differs"
        return "same" if pair[0] == pair[1] else "free"


def _shown(value: Any) -> str:
    return "nothing" if value is None else text.clean(msgspec.json.encode(value, order="sorted").decode(), 1_000)
