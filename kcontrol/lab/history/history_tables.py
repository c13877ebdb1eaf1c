"""The tables of a whole run, which Spark has too: each is a line with the function that yields its rows, and its columns.

What `lab.tables` shows is what the SQL in `kcontrol/pipeline/sql` makes of the run's journal, cell by cell. The functions here
follow the journal record by record and share nothing with the SQL but the names of columns, so each checks the other (a test
compares all cells).

Each row names its evidence: the position `n` (from 1) and the id `record` of a journal record. A row about a time has the record
that begins it, and in `end_n` and `end_record` the record that ends it; they are missing while the time goes on. Times are in ms
of the run's clock; a recording has none. Read next: `entries.py`, `partitions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kcontrol.journal.journal import Record
from kcontrol.lab import spark_session
from kcontrol.lab.history import brokers, consumer_groups, entries, log_evidence, partitions, topics
from kcontrol.lab.run import Run
from kcontrol.lab.support import arguments
from kcontrol.lab.support.late import frames, pd
from kcontrol.lab.support.registered import Section, of_run
from kcontrol.lab.tables import elections as election_tables
from kcontrol.lab.tables import journal_tables
from kcontrol.pipeline.door import WORLD

Columns = Mapping[str, str]
# fmt: off
RECORD: Columns = {"run": "string", "n": "Int64", "record": "string"}
MOMENT: Columns = {**RECORD, "time_ms": "Int64"}
TIMES: Columns = {"begin_ms": "Int64", "end_ms": "Int64", "duration_ms": "Int64", "end_n": "Int64", "end_record": "string"}


class Table(NamedTuple):
    """The rows of a table of a whole run, from the run's journal, and the pandas type of each column by name."""

    rows: Callable[[entries.Entries], Iterator[entries.Row]]
    columns: Columns


def history(rows: Callable[[entries.Entries], Iterator[entries.Row]], columns: Columns) -> Callable[..., pd.DataFrame]:
    """Return the method of `lab.tables` for a table; one with a column `partition` takes the name of a partition too."""

    def whole(run: Run) -> pd.DataFrame:
        found = table(run.records, run.name, rows.__name__)
        # A run of `Lab.open_logs` has the columns `inferred` and `line` too.
        is_of_logs = run.records[0].fields["world"] == WORLD
        return log_evidence.with_evidence(found, run.records, rows.__name__) if is_of_logs else found

    def of_partition(run: Run, partition: str | None = None) -> pd.DataFrame:
        found = whole(run)
        chosen = found if partition is None else found[found["partition"] == arguments.words(partition, "A partition", "t-0")]
        if partition is not None and chosen.empty:
            election_tables.find(run.state, partition)
        return chosen.reset_index(drop=True)

    made: Callable[..., pd.DataFrame] = of_partition if "partition" in columns else whole
    vars(made).update(table=Table(rows, columns))
    made.__name__, made.__doc__ = rows.__name__, rows.__doc__
    return of_run(made)


class WholeRun(Section):
    """The whole run, as Spark has it."""

    journal = history(entries.journal, {
        "run": "string", "n": "Int64", "id": "string", "at": journal_tables.TIME, "at_ms": "Int64", "time_ms": "Int64",
        "node": "Int64", "incarnation": "Int64", "seq": "Int64", "kind": "string", "cause": "string", "fields": "string"})
    leaderships = history(partitions.leaderships, {
        **RECORD, "at": journal_tables.TIME, "at_ms": "Int64", "time_ms": "Int64", "zxid": "Int64", "partition": "string",
        "leader": "Int64", "leader_epoch": "Int64", "controller_epoch": "Int64"})
    tenures = history(brokers.tenures, {
        **RECORD, "broker": "Int64", "controller_epoch": "Int64", **TIMES, "ended_by": "string"})
    transitions = history(partitions.transitions, {
        **MOMENT, "controller": "Int64", "machine": "string", "partition": "string", "replica": "Int64", "source": "string",
        "target": "string", "rule": "string", "write": "string"})
    isr_history = history(partitions.isr_history, {
        **MOMENT, "zxid": "Int64", "partition": "string", "written_by": "Int64", "isr_before": "object", "isr": "object",
        "entered": "object", "left": "object", "leader_epoch": "Int64"})
    partition_history = history(partitions.partition_history, {
        **MOMENT, "zxid": "Int64", "partition": "string", "written_by": "Int64", "replicas": "object",
        "adding_replicas": "object", "removing_replicas": "object", "leader": "Int64", "isr": "object", "leader_epoch": "Int64"})
    offline_windows = history(partitions.offline_windows, {
        **RECORD, "partition": "string", "led_before": "Int64", **TIMES, "led_after": "Int64", "refused_record": "string",
        "reason": "string"})
    elections = history(partitions.elections, {
        **MOMENT, "zxid": "Int64", "partition": "string", "controller": "Int64", "led_before": "Int64", "leader": "Int64",
        "isr_before": "object", "isr": "object", "leader_epoch": "Int64", "kind": "string"})
    reassignments = history(topics.reassignments, {**RECORD, "partition": "string", "target": "object", **TIMES})
    deletions = history(topics.deletions, {**RECORD, "topic": "string", **TIMES, "ineligible": "Int64"})
    broker_lives = history(brokers.broker_lives, {
        **RECORD, "broker": "Int64", "incarnation": "Int64", **TIMES, "registered_record": "string", "registered_ms": "Int64",
        "exit_code": "Int64", "ended_by": "string"})
    requests = history(brokers.requests, {
        **MOMENT, "api": "string", "sender": "Int64", "receiver": "Int64", "controller_epoch": "Int64",
        "partitions": "object", "state": "string", "error": "string", "response_record": "string"})
    records_lost = history(brokers.records_lost, {
        **MOMENT, "partition": "string", "offset": "Int64", "leader_epoch": "Int64", "value": "string", "acks": "string",
        "acknowledged_by": "Int64", "cause": "string"})
    rebalances = history(consumer_groups.rebalances, {
        **RECORD, "group_id": "string", "coordinator": "Int64", "reason": "string", **TIMES, "ended_in": "string",
        "from_generation": "Int64", "to_generation": "Int64", "members": "object", "disturbance_begin_ms": "Int64"})
    member_lives = history(consumer_groups.member_lives, {
        **RECORD, "group_id": "string", "coordinator": "Int64", "member_id": "string", "client_id": "string", **TIMES,
        "first_generation": "Int64", "last_generation": "Int64"})
    commits = history(consumer_groups.commits, {
        **MOMENT, "coordinator": "Int64", "group_id": "string", "partition": "string", "offset": "Int64", "metadata": "string",
        "log_partition": "string", "log_offset": "Int64", "log_record": "string"})
    table_sql = of_run(spark_session.table_sql)


# fmt: on
TABLES: dict[str, Table] = {name: made.table for name, made in vars(WholeRun).items() if hasattr(made, "table")}


def table(records: Sequence[Record], run: str, name: str) -> pd.DataFrame:
    """Compute the table `name` of a run, such as "commits" (a key of TABLES), from the run's journal `records`.

    `run` is the run's name, for the column `run`. Raises KeyError for an unknown table.
    """
    # The rows are in the order of the journal.
    made = TABLES[name]
    rows = sorted(made.rows(entries.entries_of(records)), key=lambda row: int(row["n"]))
    columns = {column: pd.Series([{"run": run, **row}[column] for row in rows], dtype="object") for column in made.columns}
    return frames.WholeRun({column: journal_tables.typed(values, made.columns[column]) for column, values in columns.items()})
