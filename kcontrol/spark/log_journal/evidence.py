"""Writes the tables of runs for the journal of broker logs, each with the columns `line` and `inferred`.

`line` is the file and line number that show a row, `inferred` the names of the row's values that no line has.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kcontrol.journal import journal_file
from kcontrol.journal.journal import Record
from kcontrol.spark import spark_views
from kcontrol.spark.run_files import journals_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JOURNAL = "logs.jsonl"
EVIDENCE = """
SELECT t.*, NULLIF(concat_ws(', ', filter(split(b.inferred, ', '), c -> array_contains(array({columns}, 'record', 'time'), c)),
                             IF(e.inferred IN ('record', 'time'), 'end', NULL)), '') AS inferred, b.line {mismatch}
FROM {name} t JOIN evidence b ON b.run = t.run AND b.n = t.n LEFT JOIN evidence e ON e.run = t.run AND e.n = {end_n}
"""
FIELDS = """
SELECT run, n, f.* FROM (SELECT run, n, from_json(fields, 'inferred STRING, line STRING, mismatch STRING') AS f FROM journal)
"""


def write_tables(spark: SparkSession, records: Iterable[Record], folder: Path) -> list[str]:
    """Write each table of runs for these journal records as Parquet into `folder`, and return the names of the tables.

    The records are first written to a file, so that only a part of them is in memory.
    """
    path = folder / JOURNAL
    journal_file.write(records, path)
    journals, _ = journals_of([path])
    spark_views.register_journals(spark, journals)
    spark.table("journal").write.parquet(str(folder / "journal"))
    spark.read.parquet(str(folder / "journal")).createOrReplaceTempView("journal")
    spark.sql(FIELDS).createOrReplaceTempView("evidence")
    for name in spark_views.TABLES[1:]:
        spark.sql(spark_views.table_sql(name)).createOrReplaceTempView(name)
        if name in PUBLIC:
            with_evidence(spark, name).coalesce(1).write.parquet(str(folder / name))
    path.unlink()
    return list(PUBLIC)


def with_evidence(spark: SparkSession, name: str) -> DataFrame:
    """Return the table `name` with the columns `inferred` and `line`; the table `transitions` also gets `mismatch`.

    `mismatch` says why a transition is illegal or does not follow from the latest one; it is NULL for any other transition. See
    `kcontrol/lab/history/log_evidence.py`, which makes these columns without Spark.
    """
    columns = spark.table(name).columns
    listed = ", ".join(f"'{column}'" for column in columns)
    mismatch = ", b.mismatch" if name == "transitions" else ""
    end_n = "t.end_n" if "end_n" in columns else "NULL"
    return spark.sql(EVIDENCE.format(name=name, columns=listed, mismatch=mismatch, end_n=end_n)).orderBy("n")


STEPS = ("znode_writes", "partition_states", "broker_events", "refused_elections", "group_states")
"""The SQL tables that are steps of other tables."""
PUBLIC = tuple(name for name in spark_views.TABLES if name not in STEPS)
"""The tables of runs; the first is the journal."""
