"""Computes one run's horizontal line in the picture of many runs, which has a time axis from left to right.

On the line are the terms of the run's controllers, the kills of brokers, and the times in which a partition has no leader.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from kcontrol.journal.journal import Record
from kcontrol.lab.history import brokers, partitions
from kcontrol.lab.history.entries import Entries, Row, entries_of
from kcontrol.views.run_lines import RunLine

KILLED = "killed"


def run_line(records: Sequence[Record], name: str) -> RunLine:
    """Return the run `name` as a timeline: terms of controllers, kills of brokers, and times without a leader.

    A timeline is a horizontal bar. In a time without a leader at least one partition has no running leader.
    """
    run = entries_of(records)
    # Positions on the line are in ms of the run's clock; in a recording without times they count journal records.
    has_times = run.clock != "none"
    begin = records[0].at_ms if has_times else 1
    length = (records[-1].at_ms if has_times else len(records)) - begin

    def times(row: Row) -> tuple[int, int]:
        first, last = (row["begin_ms"], row["end_ms"]) if has_times else (row["n"], row["end_n"])
        return first - begin, length if last is None else last - begin

    terms = [(*times(row), row["broker"]) for row in brokers.tenures(run)]
    kills = [times(row)[1] for row in brokers.broker_lives(run) if row["ended_by"] == KILLED]
    return RunLine(name, length, has_times, terms, sorted(kills), list(_united(run, times)))


def _united(run: Entries, times: Any) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of each stretch of the run in which at least one partition has no running leader.

    `times` converts a row of the table `offline_windows` into (begin, end), in ms since the begin of the run.
    """
    # The numbers are ms, or positions of records in a recording without times.
    last: tuple[int, int] | None = None
    for begin, end in sorted(times(row) for row in partitions.offline_windows(run)):
        if last is not None and begin <= last[1]:
            last = last[0], max(last[1], end)
            continue
        if last is not None:
            yield last
        last = begin, end
    if last is not None:
        yield last
