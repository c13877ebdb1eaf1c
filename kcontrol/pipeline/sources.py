"""Journals as Spark DataFrames: files of JSON lines with a fixed schema, one row per record."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kcontrol.pipeline.run_files import JournalOfRun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LINE = """
    id ARRAY<BIGINT>, kind STRING, cause ARRAY<BIGINT>, at_ms BIGINT, fields STRING
"""
"""The schema of one line of a journal; the fields of a record stay JSON."""

LONGEST_LINE_BYTES = 8 * 2**20
LONGEST_LINE = "mapreduce.input.linerecordreader.line.maxlength"
"""The option of Hadoop's LineRecordReader for the length above which a line is skipped, and is never whole in memory."""

FILES = "path STRING, run STRING, clock STRING"
PATH = "regexp_replace(url_decode(replace({}, '+', '%2B')), '^file:/*', '/')"


def journal_lines(spark: SparkSession, journals: Sequence[JournalOfRun]) -> DataFrame:
    """Return one row per journal record: run, clock, number `n` from 1, id, kind, cause, at_ms, and fields as JSON."""
    from pyspark.sql import functions as sql

    files = spark.createDataFrame([(str(j.path), j.run, j.clock) for j in journals], FILES)
    text = spark.read.option(LONGEST_LINE, str(LONGEST_LINE_BYTES)).text([literal(j.path) for j in journals])
    placed = text.select(
        sql.expr(path_of("_metadata.file_path")).alias("path"),
        sql.expr("_metadata.file_block_start").alias("block"),
        sql.monotonically_increasing_id().alias("place"),
        # A line that is no record, such as the last line of a killed run, has no id and is left out.
        sql.from_json("value", LINE).alias("record"),
    ).where("record.id IS NOT NULL")
    return placed.join(sql.broadcast(files), "path").selectExpr(
        "run", "clock", "INT(row_number() OVER (PARTITION BY run ORDER BY block, place)) AS n", "record.*"
    )


def literal(path: Path) -> str:
    """Return a path with the characters of Spark's path patterns, such as `*`, escaped, so that Spark reads this path alone."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", str(path))


def path_of(uri: str) -> str:
    """Return a SQL expression for the path of a file on this machine; `uri` is the expression for the file's URI."""
    return PATH.format(uri)
