"""Finds out which clock a journal's times come from, and writes a time of this clock as text.

A run on a real ZooKeeper has times of a wall clock, and a simulated run those of a virtual clock. A recording of controllers has
no times. The times of a recorded group count as virtual: they begin at its first request.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from kcontrol.journal.journal import Record

Clock = Literal["virtual", "wall", "none"]

CLOCKS: dict[str, Clock] = {"simulated": "virtual", "recorded group": "virtual", "recorded": "none"}
"""By world; every other world has a wall clock."""


def of_world(world: str) -> Clock:
    """`world` is the field of the first journal record that says how the run was made."""
    return CLOCKS.get(world, "wall")


def of_run(records: Sequence[Record]) -> Clock:
    """Return the clock of a journal; a journal without a first record of kind `run` has virtual times."""
    return of_world(str(records[0].fields.get("world", "simulated"))) if records else "virtual"


def stamp(at_ms: int, clock: Clock) -> str:
    """As Kafka's log files begin a line: "[2015-11-24 10:00:00,087] "; a virtual time is "[87 ms] "."""
    if clock == "none":
        return ""
    if clock == "virtual":
        return f"[{at_ms} ms] "
    return f"[{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S},{at_ms % 1000:03}] "


def duration(length_ms: int) -> str:
    """Return a length of time as text in minutes, seconds or ms.

    >>> [duration(n) for n in (0, 87, 2_500, 10_003, 300_087)]
    ['0 ms', '87 ms', '2.5 s', '10 s', '5 min']
    """
    for size, unit in ((60_000, "min"), (1_000, "s")):
        if abs(length_ms) >= size:
            return f"{round(length_ms / size, 1):g} {unit}"
    return f"{length_ms} ms"
