"""Finds the outages of partitions in a journal: the times in which a partition has no leader whose process runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kcontrol.journal.journal import Record
from kcontrol.lab.support.late import pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views import decisions

# fmt: off
# `steps` is the length of the outage: in ms of the run's clock, in a recording in journal records. `led` is the leader before,
# `leads` the leader after. While the outage lasts, `until`, `steps` and `leads` are missing.
COLUMNS = {"partition": "string", "since": journal_tables.TIME, "until": journal_tables.TIME, "steps": "Int64",
           "led": "Int64", "leads": "Int64"}
# fmt: on


def outages(records: Sequence[Record]) -> pd.DataFrame:
    """Return one row per outage, which is a time in which a partition has no running leader, in the order of their beginnings.

    A leader that is stopped or frozen causes an outage.
    """
    found = sorted(rows(records), key=lambda row: (row["since_ms"], row["partition"]))
    return journal_tables.table(found, journal_tables.timed(COLUMNS, records))


def rows(records: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """Yield one row per outage of a partition, with times in ms, and the leader before (`led`) and after (`leads`).

    Ended outages come first, in the order of their ends; outages that go on follow.
    """
    leaders: dict[str, int] = {}
    brokers: dict[str, int] = {}  # by partition: the last leader that is a broker, and not -1
    sent: dict[tuple[int, ...], dict[str, Any]] = {}
    down: dict[str, tuple[int, int]] = {}
    up: set[int] = set()
    for record in records:
        if record.kind in ("start", "thaw"):
            up.add(record.fields["broker"])
        elif record.kind in ("stop", "freeze"):
            up.discard(record.fields["broker"])
        if record.kind == "send":
            sent[tuple(record.id)] = record.to_json().fields["requests"]
        named = {name: stored["leader"] for name, stored in decisions.written(record).items()} | _taken_over(record, sent)
        leaders |= named
        brokers |= {name: leader for name, leader in named.items() if leader >= 0}
        thawed = record.fields["broker"] if record.kind == "thaw" else None  # a broker that starts leads after LeaderAndIsr only
        # An outage ends with a write that names a running broker as leader, when the frozen leader is resumed, or when a
        # restarted broker becomes leader again by a LeaderAndIsr request.
        for partition in [p for p in down if leaders[p] in up and (p in named or leaders[p] == thawed)]:
            since, led = down.pop(partition)
            yield _row(partition, since, led, record.at_ms, leaders[partition])
        if record.kind in ("stop", "freeze", "change", "write"):
            # An outage begins when the leader's process ends or is frozen, or when a write leaves no running broker as leader.
            gone = (p for p, leader in leaders.items() if leader not in up and p not in down)
            down |= {partition: (record.at_ms, brokers.get(partition, leaders[partition])) for partition in gone}
    for partition, (since, led) in down.items():
        yield _row(partition, since, led)


def _taken_over(record: Record, sent: Mapping[tuple[int, ...], dict[str, Any]]) -> dict[str, int]:
    """Return {partition: broker} for each partition that a broker leads by the LeaderAndIsr request that it has just applied.

    The record kind `apply_request` stands for this; other records give {}. `sent` maps the id of each `send` record to its
    requests.
    """
    if record.kind != "apply_request" or record.fields["field"] != "hosted":
        return {}
    named = sent[tuple(record.fields["request"])]["leader_and_isr"]
    broker, chosen = record.id.node, record.to_json().fields["partitions"]
    values = [named["values"][i] for i in named["to"][str(broker)]]
    found = {value["partition"]: value["leader"] for value in values if value["leader"] == broker}
    return found if chosen is None else {name: leader for name, leader in found.items() if name in chosen}


def _row(partition: str, since: int, led: int, until: int | None = None, leads: int | None = None) -> dict[str, Any]:
    steps = until - since if until is not None else None
    return {"partition": partition, "since_ms": since, "until_ms": until, "steps": steps, "led": led, "leads": leads}
