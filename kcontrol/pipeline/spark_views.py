"""The tables of runs as Spark views; the SQL text of each table in `TABLES` is a file in `sql/`.

A SQL text may use the tables before it in `TABLES`, and the view `lines`, the journal records of all runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from kcontrol.core.errors import UserError
from kcontrol.pipeline.run_files import JournalOfRun, journals_of
from kcontrol.pipeline.sources import journal_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = (
    "journal", "znode_writes", "partition_states", "leaderships", "tenures", "transitions", "isr_history", "partition_history",
    "broker_events", "refused_elections", "deletions", "offline_windows", "elections", "reassignments", "broker_lives",
    "requests", "records_lost", "group_states", "rebalances", "member_lives", "commits",
)  # fmt: skip


@cache
def table_sql(name: str) -> str:
    """Return the SQL query that makes the table `name` of TABLES, such as "leaderships", from journal records."""
    return (files("kcontrol.pipeline") / "sql" / f"{name}.sql").read_text()


def register(spark: SparkSession, *paths: str | Path, last: str = TABLES[-1]) -> None:
    """Create a Spark view for each table of TABLES, up to and including the table `last`, with the runs in `paths`.

    `paths` are journals and folders of journals. Raises UserError for any other file or folder.
    """
    journals, refused = journals_of([Path(path) for path in paths])
    if refused:
        raise UserError(refused[0].reason)
    register_journals(spark, journals, last)


def register_journals(spark: SparkSession, journals: Sequence[JournalOfRun], last: str = TABLES[-1]) -> None:
    """Create a Spark view for each table of TABLES, up to and including the table `last`, with the records of these journals."""
    journal_lines(spark, journals).createOrReplaceTempView("lines")
    for name in TABLES[: TABLES.index(last) + 1]:
        spark.sql(table_sql(name)).createOrReplaceTempView(name)
