"""When nobody could write to a partition: from the death of its leader to the record that names a living one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from kcontrol.lab import subjects, tables
from kcontrol.runtime.journal import Record

# fmt: off
COLUMNS = {"partition": "string", "since": "datetime64[ms]", "until": "datetime64[ms]", "steps": "Int64",
           "led": "Int64", "leads": "Int64"}
# fmt: on


def outages(records: Sequence[Record]) -> pd.DataFrame:
    """One row per partition and time without a living leader, in the order in which they began.

    `until` is missing while it lasts. `steps` are milliseconds, which is one step of the simulated clock each. A broker that is
    stopped or frozen leads nobody. `led` is who led before, and `leads` who leads after.
    """
    return tables.table(sorted(rows(records), key=lambda row: (row["since"], row["partition"])), COLUMNS)


def rows(records: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """The rows of the table, times in milliseconds, a partition at a time."""
    leaders: dict[str, int] = {}
    down: dict[str, tuple[int, int]] = {}
    up: set[int] = set()
    for record in records:
        if record.kind in ("start", "thaw"):
            up.add(record.fields["broker"])
        elif record.kind in ("stop", "freeze"):
            up.discard(record.fields["broker"])
        elif record.kind in ("change", "write"):
            leaders |= {name: stored["leader"] for name, stored in subjects.written(record.plain()).items()}
        else:
            continue
        for partition, leader in leaders.items():
            if leader in up and partition in down:
                since, led = down.pop(partition)
                yield _row(partition, since, led, record.at_ms, leader)
            elif leader not in up and partition not in down:
                down[partition] = (record.at_ms, leader)
    for partition, (since, led) in down.items():
        yield _row(partition, since, led)


def _row(partition: str, since: int, led: int, until: int | None = None, leads: int | None = None) -> dict[str, Any]:
    steps = until - since if until is not None else None
    return {"partition": partition, "since": since, "until": until, "steps": steps, "led": led, "leads": leads}
