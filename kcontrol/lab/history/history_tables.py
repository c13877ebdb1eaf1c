"""The tables of a run's history: `TABLES` maps a table's name to the function that yields its rows, and to its columns.

Each row names its evidence: the position `n` and the id `record` of a journal record. Read next: `entries.py`, `partitions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from kcontrol.journal.journal import Record
from kcontrol.lab.history import brokers, consumer_groups, partitions, topics
from kcontrol.lab.history.entries import Entries, Row, entries_of
from kcontrol.lab.support.late import frames, pd
from kcontrol.lab.tables import journal_tables

Columns = Mapping[str, str]
# A row about a time has the record that begins it, and in `end_n` and `end_record` the record that ends it. Times are in ms of
# the run's clock; a recording has none. The same tables exist as SQL for Spark (`kcontrol/pipeline/sql`). The functions here
# follow the journal record by record and share nothing with the SQL but the names of columns, so each derivation checks the
# other: a test compares them cell by cell.
# fmt: off
RECORD: Columns = {"run": "string", "n": "Int64", "record": "string"}
MOMENT: Columns = {**RECORD, "time_ms": "Int64"}
TIMES: Columns = {"begin_ms": "Int64", "end_ms": "Int64", "duration_ms": "Int64", "end_n": "Int64", "end_record": "string"}


class Table(NamedTuple):
    """A table of a run's history, such as "elections" (a value of TABLES)."""

    # A function that yields the rows from the journal records of a run.
    rows: Callable[[Entries], Iterator[Row]]
    # The pandas type of each column by name, such as {"partition": "string"}.
    columns: Columns


def _journal(run: Entries) -> Iterator[Row]:
    """Yield one row per journal record; the column `fields` has the record's fields as JSON text, such as {"broker": 1}."""
    for entry in run.entries:
        _, incarnation, seq = entry.r.id
        at = {"at": entry.time_ms if run.clock == "wall" else None, "at_ms": entry.time_ms if run.clock == "virtual" else None}
        yield {"n": entry.n, "id": str(entry.r.id), **at, "time_ms": entry.time_ms, "node": entry.r.id.broker,
               "incarnation": incarnation, "seq": seq, "kind": entry.r.kind, "cause": entry.r.cause and str(entry.r.cause),
               "fields": msgspec.json.encode(entry.r.fields).decode()}


TABLES: dict[str, Table] = {
    "journal": Table(_journal, {
        "run": "string", "n": "Int64", "id": "string", "at": journal_tables.TIME, "at_ms": "Int64", "time_ms": "Int64",
        "node": "Int64", "incarnation": "Int64", "seq": "Int64", "kind": "string", "cause": "string", "fields": "string"}),
    "leaderships": Table(partitions.leaderships, {
        **RECORD, "at": journal_tables.TIME, "at_ms": "Int64", "time_ms": "Int64", "zxid": "Int64", "partition": "string",
        "leader": "Int64", "leader_epoch": "Int64", "controller_epoch": "Int64"}),
    "tenures": Table(brokers.tenures, {
        **RECORD, "broker": "Int64", "controller_epoch": "Int64", **TIMES, "ended_by": "string"}),
    "transitions": Table(partitions.transitions, {
        **MOMENT, "controller": "Int64", "machine": "string", "partition": "string", "replica": "Int64", "source": "string",
        "target": "string", "rule": "string", "write": "string"}),
    "isr_history": Table(partitions.isr_history, {
        **MOMENT, "zxid": "Int64", "partition": "string", "written_by": "Int64", "before": "object", "isr": "object",
        "entered": "object", "left": "object", "leader_epoch": "Int64"}),
    "offline_windows": Table(partitions.offline_windows, {
        **RECORD, "partition": "string", "led_before": "Int64", **TIMES, "led_after": "Int64", "refused_record": "string",
        "reason": "string"}),
    "elections": Table(partitions.elections, {
        **MOMENT, "zxid": "Int64", "partition": "string", "controller": "Int64", "led_before": "Int64", "leader": "Int64",
        "isr_before": "object", "isr": "object", "leader_epoch": "Int64", "kind": "string"}),
    "reassignments": Table(topics.reassignments, {**RECORD, "partition": "string", "target": "object", **TIMES}),
    "deletions": Table(topics.deletions, {**RECORD, "topic": "string", **TIMES, "ineligible": "Int64"}),
    "broker_lives": Table(brokers.broker_lives, {
        **RECORD, "broker": "Int64", "incarnation": "Int64", **TIMES, "registered_record": "string", "registered_ms": "Int64",
        "exit_code": "Int64", "ended_by": "string"}),
    "requests": Table(brokers.requests, {
        **MOMENT, "api": "string", "sender": "Int64", "receiver": "Int64", "controller_epoch": "Int64",
        "answer_record": "string", "state": "string"}),
    "records_lost": Table(brokers.records_lost, {
        **MOMENT, "partition": "string", "offset": "Int64", "leader_epoch": "Int64", "value": "string", "acks": "string",
        "acknowledged_by": "Int64", "cause": "string"}),
    "rebalances": Table(consumer_groups.rebalances, {
        **RECORD, "group_id": "string", "coordinator": "Int64", "reason": "string", **TIMES, "ended_in": "string",
        "from_generation": "Int64", "to_generation": "Int64", "members": "object", "disturbance_begin_ms": "Int64"}),
    "member_lives": Table(consumer_groups.member_lives, {
        **RECORD, "group_id": "string", "coordinator": "Int64", "member_id": "string", "client_id": "string", **TIMES,
        "first_generation": "Int64", "last_generation": "Int64"}),
    "commits": Table(consumer_groups.commits, {
        **MOMENT, "coordinator": "Int64", "group_id": "string", "partition": "string", "offset": "Int64", "metadata": "string",
        "log_partition": "string", "log_offset": "Int64", "log_record": "string"}),
}
# fmt: on


def table(records: Sequence[Record], run: str, name: str) -> pd.DataFrame:
    """Compute the table `name` of a run, such as "commits" (a key of TABLES), from the run's journal `records`.

    `run` is the run's name, for the column `run`. Raises KeyError for an unknown table.
    """
    # The rows are in the order of the journal.
    made = TABLES[name]
    rows = sorted(made.rows(entries_of(records)), key=lambda row: int(row["n"]))
    columns = {column: pd.Series([{"run": run, **row}[column] for row in rows], dtype="object") for column in made.columns}
    return frames.Frame({column: journal_tables.typed(values, made.columns[column]) for column, values in columns.items()})
