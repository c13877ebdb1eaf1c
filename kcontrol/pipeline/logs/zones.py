"""The function `zones` computes the time zone of log lines from the lines themselves.

Kafka writes times without a zone. From 2.3 a broker logs at its start the milliseconds since 1970 (`Kafka startTimeMs`), within
some milliseconds of the time of that line; the difference is the offset of the broker's zone. Starts in one folder count for all
of its files: between two starts with different offsets the zone is unknown. A change to or from summer time is not seen if the
starts before and after it have equal offsets, or if no start comes after it.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePath
from typing import NamedTuple

STEP_MS, TOLERANCE_MS, MOST_STEPS = 15 * 60_000, 60_000, 14 * 4
ALWAYS_MS, NEVER_MS = -(2**62), 2**62
ZONES = "folder STRING, begin_ms BIGINT, end_ms BIGINT, offset_minutes INT, found STRING"


class Start(NamedTuple):
    """A log line about the start of a broker with two times: the local time, and the milliseconds since 1970 in UTC."""

    # The path of the log file.
    file: str
    # The number of the line in the file.
    n: int
    # The local time in milliseconds since 1970-01-01 00:00 of the local clock; so `local_ms` - `epoch_ms` is the offset
    # of the zone.
    local_ms: int
    epoch_ms: int


class Zone(NamedTuple):
    """A span of time in which the log files of a folder have one offset from UTC, with the log line that shows it."""

    folder: str
    # Local times in milliseconds since 1970-01-01 00:00 of the local clock: ALWAYS_MS without a begin, NEVER_MS without
    # an end.
    begin_ms: int
    end_ms: int
    # Local time minus UTC, such as 120 for "+02:00".
    offset_minutes: int
    # The name of the file and the number of the line that shows the offset, such as "server.log:1".
    found: str


def zones(starts: Iterable[Start]) -> list[Zone]:
    """Return the spans of time for which the offset of local time from UTC is known, for each folder with log files.

    `starts` are log lines of broker starts. Successive starts with equal offsets make one span, from the first to the
    last of them.
    """
    # Between zones with different offsets no zone is known. The first zone of a folder has no begin, and the last one
    # no end. A start is left out if its offset is no multiple of 15 minutes.
    by_folder: dict[str, list[tuple[Start, int]]] = defaultdict(list)
    for start in sorted(starts, key=lambda start: start.local_ms):
        offset = _offset_minutes(start)
        if offset is not None:
            by_folder[str(PurePath(start.file).parent)].append((start, offset))
    return [zone for folder, found in by_folder.items() for zone in _zones(folder, found)]


def _zones(folder: str, found: list[tuple[Start, int]]) -> list[Zone]:
    known: list[Zone] = []
    for start, offset in found:
        if known and known[-1].offset_minutes == offset:
            known[-1] = known[-1]._replace(end_ms=start.local_ms)
        else:
            begin_ms = start.local_ms if known else ALWAYS_MS
            known.append(Zone(folder, begin_ms, start.local_ms, offset, f"{PurePath(start.file).name}:{start.n}"))
    known[-1] = known[-1]._replace(end_ms=NEVER_MS)
    return known


def _offset_minutes(start: Start) -> int | None:
    steps = round((start.local_ms - start.epoch_ms) / STEP_MS)
    if abs(start.local_ms - start.epoch_ms - steps * STEP_MS) > TOLERANCE_MS or abs(steps) > MOST_STEPS:
        return None
    return steps * STEP_MS // 60_000
