"""How far a lab runs: until it is quiet, until something has happened, or until a function of the lab says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kcontrol import events
from kcontrol.errors import UserError
from kcontrol.runtime.journal import Record
from kcontrol.znodes import CONTROLLER

QUIET = "quiet"
ELECTED = "a controller is elected"
EVENTS = tuple(
    sorted(
        name
        for name, value in vars(events).items()
        if isinstance(value, type) and issubclass(value, events.Event) and not value.__subclasses__()
    )
)

Goal = Callable[[Any, Sequence[Record]], bool]
"""A function of the lab and of the records of its last step."""


def goal(until: str | Callable[[Any], object]) -> Goal:
    """What `until` means. Raises UserError, listing what there is, for words that mean nothing."""
    if callable(until):
        reached = until
        return lambda lab, step: bool(reached(lab))
    if until == QUIET:
        return lambda lab, step: False
    if until == ELECTED:
        return lambda lab, step: any(map(_elects, step))
    if until in EVENTS:
        return lambda lab, step: any(record.kind == "begin" and record.fields["event"] == until for record in step)
    ways = f"say {QUIET!r}, {ELECTED!r}, a function of the lab, or an event that a broker begins with"
    raise UserError(f"A lab cannot run until {until!r}: {ways}, one of {', '.join(EVENTS)}.")


def _elects(record: Record) -> bool:
    f = record.fields
    return record.kind == "write" and f["error"] is None and any(op[:2] == ["create", CONTROLLER] for op in f["ops"])
