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
from kcontrol.views import text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = (
    "journal", "znode_writes", "partition_states", "leaderships", "tenures", "transitions", "isr_history", "broker_events",
    "refused_elections", "deletions", "offline_windows", "elections", "reassignments", "broker_lives", "requests", "records_lost",
    "group_states", "rebalances", "member_lives", "commits",
)  # fmt: skip


@cache
def table_sql(name: str) -> str:
    """Return the SQL query that makes the table `name` of TABLES, such as "leaderships", from journal records.

    Raises UserError, which lists the tables, for an unknown name.
    """
    if name not in TABLES:
        raise UserError(f"There is no table {text.clean(repr(name), 100)} of runs; the tables are {', '.join(TABLES)}.")
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


def journal_table(spark: SparkSession, path: str | Path) -> DataFrame:
    """Return one row per journal record of a journal, or of all journals in a folder, in no order.

    Columns:
        run, n, id, kind, cause: the run, the record's number in the run, its id and kind, and the id of its cause.
        at: the time of a wall clock in UTC, NULL in a run without a wall clock.
        at_ms: the virtual time of a simulated run, NULL in any other run.
        time_ms: `at` in ms since 1970, or `at_ms` in a simulated run.
        node, incarnation, seq: the parts of the id; `node` is NULL if no broker wrote the record.
        fields: the rest of the record as JSON.

    Raises UserError if there is no journal.
    """
    register(spark, path, last="journal")
    return spark.table("journal")


def leadership_table(spark: SparkSession, path: str | Path) -> DataFrame:
    """Return one row for each write that changes the leader of a partition in ZooKeeper; leader -1 means no leader.

    `path` is a journal or a folder of journals.

    Columns:
        run, n, record: the run, and the number and the id of the record that has the write.
        at, at_ms, time_ms: the time, as in `journal_table`.
        zxid: the ZooKeeper transaction id of the write.
        partition, leader, leader_epoch, controller_epoch: the partition and the written values.

    Raises UserError if there is no journal.
    """
    register(spark, path, last="leaderships")
    return spark.table("leaderships")
