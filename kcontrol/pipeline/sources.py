"""Journals as Spark DataFrames: files of JSON lines with a fixed schema, one row per record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kcontrol.journal.journal import JOURNAL_VERSION, OUTSIDE
from kcontrol.journal.journal_file import CONTEXT_FIELDS_3, FIELDS_3, KINDS_3, OUTSIDE_IN_VERSION_1
from kcontrol.pipeline.run_files import JournalOfRun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UPGRADED_ID = "IF(version = 1 AND struct({0}[0], {0}[1]) = struct({1}, {2}), array(BIGINT({3}), {0}[1], {0}[2]), {0})"
"""The expression that converts an id of any journal version to the present version: see `journal_file.UPGRADES`."""

NAMED = "transform_keys(from_json(fields, 'MAP<STRING, VARIANT>'), (k, v) -> coalesce({fields}[concat(kind, '.', k)], k))"
# A record `learn` of version 2 names a field of a context in `field`; a value of the field `hosted` has a leadership as `value`.
IN_VALUES = """transform_values({named}, (k, v) -> CASE
    WHEN k = 'journal_version' THEN CAST({version} AS VARIANT)
    WHEN kind = 'learn' AND k = 'field' THEN coalesce(CAST({contexts}[CAST(v AS STRING)] AS VARIANT), v)
    WHEN kind = 'learn' AND k = 'put' AND get_json_object(fields, '$.field') = 'hosted'
    THEN parse_json(replace(to_json(v), '"value":', '"leadership":')) ELSE v END)"""
UPGRADED_FIELDS = "IF(version < {version}, to_json({upgraded}), fields)"
"""The fields of a record under the names of the present version, still JSON; see `journal_file.UPGRADES`."""

LINE = """
    id ARRAY<BIGINT>, kind STRING, cause ARRAY<BIGINT>, at_ms BIGINT, fields STRING
"""
"""The schema of one line of a journal; the fields of a record stay JSON."""

LONGEST_LINE_BYTES = 8 * 2**20
LONGEST_LINE = "mapreduce.input.linerecordreader.line.maxlength"
"""The option of Hadoop's LineRecordReader for the length above which a line is skipped, and is never whole in memory."""

FILES = "path STRING, run STRING, version INT, clock STRING"
PATH = "regexp_replace(url_decode(replace({}, '+', '%2B')), '^file:/*', '/')"


def journal_lines(spark: SparkSession, journals: Sequence[JournalOfRun]) -> DataFrame:
    """Return one row per journal record: run, clock, number `n` from 1, id, kind, cause, at_ms, and fields as JSON.

    Kinds and fields of records in earlier journal versions get the latest version's names.
    """
    from pyspark.sql import functions as sql

    files = spark.createDataFrame([(str(j.path), j.run, j.version, j.clock) for j in journals], FILES)
    text = spark.read.option(LONGEST_LINE, str(LONGEST_LINE_BYTES)).text([literal(j.path) for j in journals])
    placed = text.select(
        sql.expr(path_of("_metadata.file_path")).alias("path"),
        sql.expr("_metadata.file_block_start").alias("block"),
        sql.monotonically_increasing_id().alias("place"),
        # A line that is no record, such as the last line of a killed run, has no id and is left out.
        sql.from_json("value", LINE).alias("record"),
    ).where("record.id IS NOT NULL")
    numbered = placed.join(sql.broadcast(files), "path").selectExpr(
        "run", "clock", "version", "INT(row_number() OVER (PARTITION BY run ORDER BY block, place)) AS n", "record.*"
    )
    ids = {column: sql.expr(UPGRADED_ID.format(column, *OUTSIDE_IN_VERSION_1, OUTSIDE)) for column in ("id", "cause")}
    return numbered.withColumns(ids | {"fields": sql.expr(_upgraded_fields())}).replace(KINDS_3, subset="kind").drop("version")


def _upgraded_fields() -> str:
    """Return a SQL expression that gives the JSON in the column `fields` the field names of the latest journal version."""
    # The keys are kinds in the journal's own version, so the column `kind` must not be upgraded yet.
    named = NAMED.format(fields=_map({f"{kind}.{old}": new for (kind, old), new in FIELDS_3.items()}))
    upgraded = IN_VALUES.format(named=named, version=JOURNAL_VERSION, contexts=_map(CONTEXT_FIELDS_3))
    return UPGRADED_FIELDS.format(version=JOURNAL_VERSION, upgraded=upgraded)


def _map(names: Mapping[str, str]) -> str:
    """Return a dict from old to new names as the SQL expression of a map."""
    return f"map({', '.join(f'{old!r}, {new!r}' for old, new in names.items())})"


def literal(path: Path) -> str:
    """Return a path with the characters of Spark's path patterns, such as `*`, escaped, so that Spark reads this path alone."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", str(path))


def path_of(uri: str) -> str:
    """Return a SQL expression for the path of a file on this machine; `uri` is the expression for the file's URI."""
    return PATH.format(uri)
