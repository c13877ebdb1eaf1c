"""When nobody could write to a partition: from the death of its leader to the record that names a living one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from kcontrol.lab import tables
from kcontrol.runtime.journal import Record
from kcontrol.views import decisions

# fmt: off
COLUMNS = {"partition": "string", "since": tables.TIME, "until": tables.TIME, "steps": "Int64",
           "led": "Int64", "leads": "Int64"}
# fmt: on


def outages(records: Sequence[Record]) -> pd.DataFrame:
    """One row per partition and time without a living leader, in the order in which they began.

    `until` is missing while it lasts. `steps` are milliseconds, which is one step of the simulated clock each, and records in a
    recording. A broker that is
    stopped or frozen leads nobody. `led` is who led before, and `leads` who leads after.
    """
    found = sorted(rows(records), key=lambda row: (row["since_ms"], row["partition"]))
    return tables.table(found, tables.timed(COLUMNS, records))


def rows(records: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table, times in milliseconds, those that are over in the order of their ends.

    A time without a leader ends with a write that names a living broker, with the thaw of the leader, or where a broker that has
    come back takes the leadership over again from a LeaderAndIsr request.
    """
    leaders: dict[str, int] = {}
    sent: dict[tuple[int, ...], dict[str, Any]] = {}
    down: dict[str, tuple[int, int]] = {}
    up: set[int] = set()
    for record in records:
        if record.kind in ("start", "thaw"):
            up.add(record.fields["broker"])
        elif record.kind in ("stop", "freeze"):
            up.discard(record.fields["broker"])
        if record.kind == "send":
            sent[tuple(record.id)] = record.plain().fields["requests"]
        named = {name: stored["leader"] for name, stored in decisions.written(record).items()} | _taken_over(record, sent)
        leaders |= named
        thawed = record.fields["broker"] if record.kind == "thaw" else None  # whoever starts leads only once it is named again
        for partition in [p for p in down if leaders[p] in up and (p in named or leaders[p] == thawed)]:
            since, led = down.pop(partition)
            yield _row(partition, since, led, record.at_ms, leaders[partition])
        if record.kind in ("stop", "freeze", "change", "write"):
            gone = (p for p, leader in leaders.items() if leader not in up and p not in down)
            down |= {partition: (record.at_ms, leaders[partition]) for partition in gone}
    for partition, (since, led) in down.items():
        yield _row(partition, since, led)


def _taken_over(record: Record, sent: Mapping[tuple[int, ...], dict[str, Any]]) -> dict[str, int]:
    """Return the partitions that the record's broker leads from now on, by what a LeaderAndIsr request says."""
    if record.kind != "adopt" or record.fields["field"] != "hosted":
        return {}
    named = sent[tuple(record.fields["request"])]["leader_and_isr"]
    broker, chosen = record.id.node, record.plain().fields["partitions"]
    values = [named["values"][i] for i in named["to"][str(broker)]]
    found = {value["partition"]: value["leader"] for value in values if value["leader"] == broker}
    return found if chosen is None else {name: leader for name, leader in found.items() if name in chosen}


def _row(partition: str, since: int, led: int, until: int | None = None, leads: int | None = None) -> dict[str, Any]:
    steps = until - since if until is not None else None
    return {"partition": partition, "since_ms": since, "until_ms": until, "steps": steps, "led": led, "leads": leads}
