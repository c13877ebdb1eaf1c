"""The Spark views `journal`, the records of runs, and `leaderships`, the changes of leaders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kcontrol.journal.journal import OUTSIDE
from kcontrol.spark.sources import journal_lines
from kcontrol.views import clock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A run's first record, of kind `run`, names its world; the kind of world determines the clock of the times in the records.
JOURNAL = """
    SELECT run, concat_ws('.', id) AS id,
           IF(world IN ({virtual}, {none}), NULL, timestamp_millis(at_ms)) AS at, IF(world = {virtual}, at_ms, NULL) AS at_ms,
           CAST(NULLIF(id[0], {outside}) AS INT) AS node, CAST(id[1] AS INT) AS incarnation, CAST(id[2] AS INT) AS seq,
           kind, IF(cause IS NULL, NULL, concat_ws('.', cause)) AS cause, fields
    FROM (SELECT *, coalesce(max(IF(kind = 'run', get_json_object(fields, '$.world'), NULL)) OVER (PARTITION BY run), {virtual})
                    AS world
          FROM {lines})
"""
WORLDS = {of_world: world for world, of_world in clock.CLOCKS.items()}  # clock without wall time -> its world

# The leader in a partition's state znode after each write: by a transition of the controller, or by any other client.
# The zxid, ZooKeeper's own order, is the order of the writes.
LEADERSHIPS = r"""
    WITH moves AS (
        SELECT run, at, at_ms, f.zxid, regexp_replace(f.subject, '@[0-9]+$', '') AS partition, v.*
        FROM (SELECT *, coalesce(f.leadership, f.value) AS v  -- versions 1 and 2 of the journal have `value`
              FROM (SELECT run, at, at_ms, from_json(fields, 'zxid BIGINT, subject STRING, write STRING,
                           leadership STRUCT<leader: INT, leader_epoch: INT, controller_epoch: INT>,
                           value STRUCT<leader: INT, leader_epoch: INT, controller_epoch: INT>') AS f
                    FROM {journal} WHERE kind = 'change'))
        WHERE f.write IS NOT NULL
    ), others AS (
        SELECT run, at, at_ms, zxid, regexp_extract_all(op[1], '^/brokers/topics/([^/]+)/partitions/([0-9]+)/state$', 0) AS found,
               op[1] AS path, from_json(op[2], 'leader INT, leader_epoch INT, controller_epoch INT') AS v
        FROM (SELECT run, at, at_ms, f.zxid, explode(f.ops) AS op
              FROM (SELECT run, at, at_ms, from_json(fields, 'zxid BIGINT, error STRING, ops ARRAY<ARRAY<STRING>>') AS f
                    FROM {journal} WHERE kind = 'write')
              WHERE f.error IS NULL)
        WHERE op[0] IN ('create', 'set')
    ), stored AS (
        SELECT * FROM moves
        UNION ALL
        SELECT run, at, at_ms, zxid, regexp_replace(path, '^/brokers/topics/([^/]+)/partitions/([0-9]+)/state$', '$1-$2'), v.*
        FROM others WHERE size(found) > 0
    ), named AS (
        SELECT *, lag(leader) OVER (PARTITION BY run, partition ORDER BY zxid) AS before FROM stored
    )
    SELECT run, at, at_ms, zxid, partition, leader, leader_epoch, controller_epoch FROM named WHERE leader IS DISTINCT FROM before
"""


def journal_table(spark: SparkSession, path: str | Path) -> DataFrame:
    """Return one row per record of a journal, or of every journal in a folder.

    Columns: run, id, at, at_ms, node, incarnation, seq, kind, cause, and fields, the rest of the record as JSON. `at` is the
    time of a wall clock, in UTC, NULL in a run without a wall clock; `at_ms` is the virtual time of a simulated run, NULL in
    any other run. `node` is the broker that wrote the record, NULL if no broker wrote it. Rows have no order.

    Raises UserError if there is no journal.
    """
    return spark.sql(JOURNAL, lines=journal_lines(spark, path), outside=OUTSIDE, **WORLDS)


def leadership_table(spark: SparkSession, journal: DataFrame) -> DataFrame:
    """Return one row for each write that changes the leader of a partition in ZooKeeper; -1 means no leader.

    Columns: run, at, at_ms, zxid, partition, leader, leader_epoch, controller_epoch. Within a run the zxid is the order.
    """
    return spark.sql(LEADERSHIPS, journal=journal)


def register(spark: SparkSession, path: str | Path) -> None:
    """Create the views `journal` and `leaderships` of a journal, or of every journal in a folder."""
    journal = journal_table(spark, path)
    journal.createOrReplaceTempView("journal")
    leadership_table(spark, journal).createOrReplaceTempView("leaderships")
