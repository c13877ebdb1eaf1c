"""Writes the tables of a journal that was made from broker logs, each with the columns `line` and `inferred`.

`line` is the file and the number of the log line that shows a row; `inferred` has the names of the row's values that no log
line has.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kcontrol.journal.journal import Record
from kcontrol.pipeline import spark_views
from kcontrol.pipeline.log_journal.run_rows import NARROW, write_rows
from kcontrol.pipeline.sources import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVIDENCE = """
SELECT t.*, NULLIF(concat_ws(', ', filter(split(b.inferred, ', '), c -> array_contains(array({columns}, 'record', 'time'), c)),
                             IF(e.inferred IN ('record', 'time'), 'end', NULL), {state}), '') AS inferred, b.line
FROM {name} t JOIN evidence b ON b.run = t.run AND b.n = t.n LEFT JOIN evidence e ON e.run = t.run AND e.n = {end_n}
"""
STEPS = ("znode_writes", "partition_states", "broker_events", "refused_elections", "group_states")
"""The SQL tables that are steps of other tables."""
PUBLIC = tuple(name for name in spark_views.TABLES if name not in STEPS)
"""The tables of runs; the first is the journal."""
BY_RECORDS = ("journal", "transitions")
"""The tables that `run_rows` writes, without Spark."""
KINDS = {
    "refused_elections": "failed_change", "requests": "send", "records_lost": "record_lost", "group_states": "group",
    "rebalances": "group", "member_lives": "group", "commits": "append",
}  # fmt: skip
"""By table, the kind of record without which the table has no rows."""


def write_tables(spark: SparkSession, records: Iterable[Record], folder: Path) -> list[str]:
    """Write the tables of these journal records, such as "elections", as Parquet into `folder`; return the names of the tables.

    Only a part of the records is in memory at a time.
    """
    kinds = write_rows(records, folder)
    narrow = spark.read.parquet(literal(folder / NARROW))
    narrow.drop("inferred", "line").createOrReplaceTempView("journal")
    narrow.select("run", "n", "inferred", "line").createOrReplaceTempView("evidence")
    for name in spark_views.TABLES:
        if name == "transitions":
            spark.read.parquet(literal(folder / name)).drop("inferred", "line", "mismatch").createOrReplaceTempView(name)
        elif name not in BY_RECORDS:
            _write(spark, name, folder, is_empty=name in KINDS and KINDS[name] not in kinds)
    shutil.rmtree(folder / NARROW.parent)
    return list(PUBLIC)


def _write(spark: SparkSession, name: str, folder: Path, *, is_empty: bool) -> None:
    """Make the Spark view `name` by its SQL query, and write its rows as Parquet into `folder`.

    `is_empty` says that the view has no rows; then Spark does not read or join any table.
    """
    table = spark.sql(spark_views.table_sql(name))
    # Spark leaves out the reading and the joins of a table without rows.
    table = table.where("false") if is_empty else table
    table.createOrReplaceTempView(name)
    if name in PUBLIC:
        with_evidence(spark, name).repartition(1).sortWithinPartitions("n").write.parquet(str(folder / name))
    elif not is_empty:  # so that each table that is made of this step does not make the step again
        place = folder / NARROW.with_name(name)
        table.write.parquet(str(place))
        spark.read.parquet(literal(place)).createOrReplaceTempView(name)


def with_evidence(spark: SparkSession, name: str) -> DataFrame:
    """Return the table `name`, such as "elections", with two more columns, `line` and `inferred`.

    `line` is the row's log line, such as "server.log:12"; `inferred` names the row's values that no log line has.
    """
    columns = spark.table(name).columns
    listed = ", ".join(f"'{column}'" for column in columns)
    end_n = "t.end_n" if "end_n" in columns else "NULL"
    # No line says that a request waits or that it was dropped.
    state = "IF(t.response_record IS NULL, 'state', NULL)" if name == "requests" else "NULL"
    return spark.sql(EVIDENCE.format(name=name, columns=listed, end_n=end_n, state=state))
