"""The clock behind a journal's times: a wall clock, the simulated world's own, or none: a recording only counts its records."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from kcontrol.runtime.journal import Record

Clock = Literal["virtual", "wall", "none"]

CLOCKS: dict[str, Clock] = {"simulated": "virtual", "recorded": "none"}  # by world; every other world has a wall clock


def of_world(world: str) -> Clock:
    """Return the clock of a world, as a journal's first record names the world."""
    return CLOCKS.get(world, "wall")


def of_run(records: Sequence[Record]) -> Clock:
    """Return the clock of a journal; a journal without a first record of kind `run` has virtual times."""
    return of_world(str(records[0].fields.get("world", "simulated"))) if records else "virtual"


def stamp(at_ms: int, clock: Clock) -> str:
    """Return a time as Kafka's log lines begin: in UTC, in ms of virtual time, or empty where there is no clock."""
    if clock == "none":
        return ""
    return (
        f"[{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S},{at_ms % 1000:03}] "
        if clock == "wall"
        else f"[{at_ms} ms] "
    )
