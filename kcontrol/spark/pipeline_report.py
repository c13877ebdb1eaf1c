"""The progress and the result of a call of the pipeline, as lines of text."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kcontrol.spark import pipeline
from kcontrol.spark.gateway import spark_session, stop_spark

Say = Callable[[str], None]


def runs(paths: Sequence[Path], out: Path, say: Say) -> bool:
    """Write the tables of the runs in `paths`, files and folders, to `out`; return whether all files are undamaged journals.

    `say` is called with each line of text: the tables, the refused files and the result.
    Raises UserError for a path without a journal, for a folder `out` that holds other files, and if Spark is missing.
    """
    pipeline.claim(out)
    begin = time.monotonic()
    spark = spark_session()
    try:
        written = pipeline.write_runs(spark, paths, out, _progress(say, begin))
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
