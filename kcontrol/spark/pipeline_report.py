"""The progress and the result of a call of the pipeline, as lines of text."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from kcontrol.core.errors import UserError
from kcontrol.spark import pipeline
from kcontrol.spark.gateway import spark_session, stop_spark

Say = Callable[[str], None]


TIMES = "such as 2026-01-31 or 2026-01-31T09:30"


def time_of(option: str, value: str | None) -> datetime | None:
    """Return the time in the value of a command's option, None without a value. Raises UserError for any other text."""
    try:
        found = datetime.fromisoformat(value) if value is not None else None
    except ValueError:
        found = datetime.max.replace(tzinfo=UTC)
    if found is not None and found.tzinfo is not None:
        raise UserError(f"{option} {value!r} is not a time without a zone: write a date, or a date and a time, {TIMES}.")
    return found


def runs(paths: Sequence[Path], out: Path, say: Say, chosen: pipeline.Chosen) -> bool:
    """Write the tables of the runs in `paths`, files and folders, to `out`; return whether all files are undamaged journals.

    `say` is called with each line of text: the tables, the refused files and the result.
    Raises UserError for a path without a journal, for a folder `out` that holds other files, and if Spark is missing.
    """
    pipeline.claim(out)
    begin = time.monotonic()
    spark = spark_session()
    try:
        written = pipeline.write_runs(spark, paths, out, _progress(say, begin), chosen)
    finally:
        stop_spark()
    for refused in written.refused:
        say(refused.reason)
    records, seconds = written.rows["journal"], time.monotonic() - begin
    say(f"{written.runs} runs were read; {out} has {records:,} records of all runs ({records / seconds:,.0f} per second).")
    return not written.refused


def _progress(say: Say, begin: float) -> pipeline.Report:
    def report(name: str, done: int, all_tables: int) -> None:
        if name:
            say(f"{time.monotonic() - begin:5.1f} s  table {done + 1} of {all_tables}: {name}")

    return report
