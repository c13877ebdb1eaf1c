"""Journals as Spark DataFrames: files of JSON lines with a fixed schema."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from kcontrol.core.errors import UserError
from kcontrol.journal.journal import OUTSIDE
from kcontrol.journal.journal_file import KINDS_3, OUTSIDE_IN_VERSION_1

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUFFIX = ".jsonl"

UPGRADED = "IF(struct({0}[0], {0}[1]) = struct({1}, {2}), array(BIGINT({3}), {0}[1], {0}[2]), {0})"
"""The expression that converts an id of any journal version to the present version: see `journal_file.UPGRADES`."""

LINE = """
    id ARRAY<BIGINT>, kind STRING, cause ARRAY<BIGINT>, at_ms BIGINT, fields STRING
"""
"""The schema of one line of a journal; the fields of a record stay JSON."""


def journal_lines(spark: SparkSession, path: str | Path) -> DataFrame:
    """Return one row per record of a journal, or of every journal in a folder: the columns of LINE, and `run`, the file's name.

    A line that is not a record, such as the last line of a run that was killed, is left out. Raises UserError if there is no
    journal.
    """
    from pyspark.sql import functions as sql

    files = journal_files(Path(path))
    lines = spark.read.text([_literal(file) for file in files])
    name = sql.regexp_replace(sql.url_decode(sql.element_at(sql.split(sql.input_file_name(), "/"), -1)), rf"\{SUFFIX}$", "")
    record = sql.from_json("value", LINE)
    found = lines.select(name.alias("run"), record.alias("record")).where("record.id IS NOT NULL").select("run", "record.*")
    ids = {column: sql.expr(UPGRADED.format(column, *OUTSIDE_IN_VERSION_1, OUTSIDE)) for column in ("id", "cause")}
    return found.withColumns(ids).replace(KINDS_3, subset="kind")


def journal_files(path: Path) -> list[Path]:
    """Return the file itself, or the journals in a folder, sorted. Raises UserError if there are none."""
    if path.is_file():
        return [path.resolve()]
    found = sorted(path.resolve().glob(f"*{SUFFIX}")) if path.is_dir() else []
    if not found:
        raise UserError(f"There is no journal in {path}: a lab keeps one in the folder runs, beside the notebook.")
    return found


def _literal(path: Path) -> str:
    """Return a path with its pattern characters escaped, for Spark's reader."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", str(path))
