"""The sections of a report: offline windows, leader moves, tenures of controllers and rebalances, counted by run and key.

The key is the reason of an offline window or a rebalance, the new leader of a move, and the broker of a tenure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from kcontrol.pipeline.report.tables import EVIDENCE, Row, Tables
from kcontrol.views import clock

UNKNOWN = "unknown"


class Section(NamedTuple):
    """A section of a report: the rows of one table, such as the offline windows of partitions.

    Each row has a key by which rows are counted, such as the reason of an offline window.
    """

    # The ids of all links into the section begin with this text.
    id: str
    # The heading, such as "Offline windows".
    title: str
    # The name of the key by which rows are counted, such as "reason".
    key: str
    # The columns that the report shows of each row.
    columns: Sequence[str]
    # Sorted by run, key, and `n`, the number of the journal record with which the row's event begins. In each row, the field
    # `key` has the key as text, and the field `place` the row's index in this list.
    rows: list[Row]

    @property
    def keys(self) -> list[str]:
        """The keys of the section's rows, such as reasons or broker ids, each once: numbers by size, then words."""
        return sorted({row["key"] for row in self.rows}, key=_order)

    def counts(self) -> Counter[tuple[str, str]]:
        """Return the number of the section's rows by (run, key); the key is a text such as a rebalance's reason."""
        return Counter((row["run"], row["key"]) for row in self.rows)

    def by_run(self) -> Counter[str]:
        """Return how many rows of this section each run has, by the name of the run."""
        return Counter(row["run"] for row in self.rows)

    def by_key(self) -> Counter[str]:
        """Return how many rows have each key, such as a rebalance's reason; keys are sorted, numbers by size, then words."""
        found = Counter(row["key"] for row in self.rows)
        return Counter({key: found[key] for key in self.keys})

    @property
    def inferred(self) -> int:
        """The number of rows with a value that no line of the broker logs has; 0 for tables of runs."""
        return sum(row.get("inferred") is not None for row in self.rows)

    def durations(self) -> list[Durations]:
        """By key, such as a rebalance's reason; keys without a duration are left out."""
        known: dict[str, list[Row]] = defaultdict(list)
        for row in self.rows:
            if row.get("duration_ms") is not None:
                known[row["key"]].append(row)
        return [_durations(key, known[key]) for key in self.keys if key in known]


class Durations(NamedTuple):
    """The durations of the events in the rows of a report's section that share one key: number, sum, median and longest."""

    # The value by which the section's rows are counted, such as a rebalance's reason.
    key: str
    # The number of these rows whose events have ended.
    ended: int
    total_ms: int
    median_ms: int
    # The row of the longest event.
    longest: Row


def _order(key: str) -> tuple[int, int, str]:
    return (0, int(key), "") if key.isdecimal() else (1, 0, key)


def _durations(key: str, rows: list[Row]) -> Durations:
    lengths = [row["duration_ms"] for row in rows]
    longest = max(rows, key=lambda row: row["duration_ms"])
    return Durations(key, len(rows), sum(lengths), round(median(lengths)), longest)


def sections(tables: Tables) -> list[Section]:
    """Return the four sections of a report: offline windows, leader moves, tenures of controllers, rebalances.

    If the tables come from broker logs, the sections also show `line` and `inferred` (the columns whose values no line has).
    """
    spans, more = ("from", "for"), EVIDENCE if tables.zone else ()
    found = [
        ("offline", "Offline windows", "reason", ("partition", *spans, "led_before", "led_after"),
         tables.rows["offline_windows"], lambda row: row["reason"]),
        ("moves", "Leader moves", "next leader", ("partition", "from", "led_before", "leader_epoch"),
         list(_moves(tables.rows["leaderships"])), lambda row: row["leader"]),
        ("tenures", "Tenures of controllers", "broker", ("controller_epoch", *spans, "ended_by"),
         tables.rows["tenures"], lambda row: row["broker"]),
        ("rebalances", "Rebalances", "reason", ("group_id", *spans, "from_generation", "to_generation", "ended_in"),
         tables.rows["rebalances"], lambda row: row["reason"]),
    ]  # fmt: skip
    clock_of: clock.Clock = "wall" if tables.zone else "virtual"
    return [
        Section(id, title, key, (*columns, *more), _ordered(rows, key_of, clock_of))
        for id, title, key, columns, rows, key_of in found
    ]


def _ordered(rows: Sequence[Row], key_of: Callable[[Row], object], clock_of: clock.Clock) -> list[Row]:
    """Return the rows of a section, sorted by run, key and `n` (record number), with four more fields.

    `key` is `key_of(row)` as text, `from` the row's begin by `clock_of`, `for` its duration as text, and `place` its index among
    all rows of the section.
    """
    # A key that is None becomes "unknown".
    shown = [row | {"key": _words(key_of(row)), "from": _begin(row, clock_of), "for": _length(row)} for row in rows]
    ordered = sorted(shown, key=lambda row: (row["run"], _order(row["key"]), row["n"]))
    return [row | {"place": place} for place, row in enumerate(ordered)]


def _words(key: object) -> str:
    return UNKNOWN if key is None else str(key)


def _begin(row: Row, clock_of: clock.Clock) -> str:
    begin = row.get("begin_ms", row.get("time_ms"))
    if begin is None:
        return f"record {row['n']}"
    return clock.stamp(begin, clock_of).strip("[] ") if clock_of == "wall" else f"{begin:,} ms"


def _length(row: Row) -> str:
    if row.get("duration_ms") is not None:
        return clock.duration(row["duration_ms"])
    return "unknown" if row.get("end_n") is not None else "until the end"


def _moves(leaderships: Sequence[Row]) -> Iterator[Row]:
    """Yield each row of the table `leaderships` that changes the leader of a partition, with the former leader as `led_before`.

    The first leader of a partition, and rows without a leader (-1), are no change.
    """
    led: dict[tuple[str, str], int] = {}
    for row in leaderships:
        place = row["run"], row["partition"]
        # A leader that comes back after a time without a leader is no move.
        if row["leader"] < 0:
            continue
        if led.get(place, row["leader"]) != row["leader"]:
            yield row | {"led_before": led[place]}
        led[place] = row["leader"]
