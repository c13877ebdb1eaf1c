"""Functions that write the tables of runs, broker logs or segments, and report the progress and the result as lines of text."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from kcontrol.core.errors import UserError
from kcontrol.spark import pipeline
from kcontrol.spark.cluster import check_master
from kcontrol.spark.follow.checkpoint import opened
from kcontrol.spark.follow.follow import LOOK_S, Following, follow
from kcontrol.spark.gateway import LOCAL, spark_session, stop_spark
from kcontrol.spark.logs import log_tables
from kcontrol.spark.logs.files import log_files
from kcontrol.spark.offsets import offset_tables
from kcontrol.spark.offsets.segments import segments
from kcontrol.spark.report.page import write_report
from kcontrol.spark.report.sections import sections
from kcontrol.spark.report.summary import print_summary
from kcontrol.spark.report.tables import read_tables
from kcontrol.spark.run_files import journal_files

Say = Callable[[str], None]


TIMES = "such as 2026-01-31 or 2026-01-31T09:30"


def time_of(option: str, value: str | None) -> datetime | None:
    """Return the time, without a zone, in the value of a command's option, such as "2026-01-31T09:30"; None if `value` is None.

    Raises UserError, which names the `option`, for a text that is no date or time, and for a time with a zone.
    """
    try:
        found = datetime.fromisoformat(value) if value is not None else None
    except ValueError:
        found = datetime.max.replace(tzinfo=UTC)
    if found is not None and found.tzinfo is not None:
        raise UserError(f"{option} {value!r} is not a time without a zone: write a date, or a date and a time, {TIMES}.")
    return found


def runs(paths: Sequence[Path], out: Path, say: Say, chosen: pipeline.Chosen, master: str | None = None) -> bool:
    """Write the tables of the runs in `paths`, files and folders, to `out`; return whether all files are undamaged journals.

    `say` is called with each line of text: the tables, the refused files and the result. `chosen` says which runs are read, and
    which rows written. `master` is the address of a Spark cluster; None stands for Spark on this machine. Raises UserError for a
    path without a journal, for a folder `out` that holds other files, if Spark is missing, and if the cluster cannot be used.
    """
    _check(master)
    for path in paths:
        journal_files(path)
    pipeline.claim(out)
    begin = time.monotonic()
    spark = spark_session(master or LOCAL)
    try:
        written = pipeline.write_runs(spark, paths, out, _progress(say, begin), chosen)
    finally:
        stop_spark()
    for refused in written.refused:
        say(refused.reason)
    records, seconds = written.rows["journal"], time.monotonic() - begin
    say(f"{written.runs} runs were read; {out} has {records:,} records of all runs ({records / seconds:,.0f} per second).")
    return not written.refused


def logs(
    paths: Sequence[Path],
    out: Path,
    say: Say,
    chosen: pipeline.Chosen = pipeline.ALL,
    master: str | None = None,
    redact: Sequence[str] = (),
) -> bool:
    """Write the tables of the broker logs in `paths`, files and folders, to `out`; return whether all files are logs of Kafka.

    `say` is called with each line of text: the steps, the refused files and the result.
    `chosen` says which records are written. `master` is the address of a Spark cluster; None stands for Spark on this machine.
    `redact` are the kinds of names that stable names replace in every table (`redaction.kinds_of`).
    Raises UserError for a path without a log, for a folder `out` that holds other files, if Spark is missing, and if the cluster
    cannot be used.
    """
    log_files(paths)
    _check(master)
    if (out / log_tables.FOLLOW).exists():
        raise UserError(f"{out} has tables of --follow: add --follow, or name another folder.")
    pipeline.claim(out, log_tables.ALL_TABLES, log_tables.FORMAT)
    begin = time.monotonic()
    spark = spark_session(master or LOCAL)
    try:
        written = log_tables.write_logs(
            spark, paths, out, lambda step: say(f"{time.monotonic() - begin:5.1f} s  {step}"), chosen, of_runs=True, redact=redact
        )
    finally:
        stop_spark()
    for refused in written.refused:
        say(refused.reason)
    rate = written.lines / (time.monotonic() - begin)
    say(_lines_of(written, chosen))
    say(f"{rate:,.0f} lines per second.")
    if not written.facts + written.other:
        say("No line is a line of a Kafka broker's log: see the table rejected.")
    return not written.refused and written.facts + written.other > 0


def _lines_of(written: log_tables.Written, chosen: pipeline.Chosen) -> str:
    return (
        f"{written.files} files were read: {written.lines:,} lines = {written.facts:,} with facts "
        f"+ {written.other:,} other records + {written.continuations:,} continuations + {written.rejected:,} rejected"
        + (f" + {written.left_out:,} of records that were not chosen." if chosen != pipeline.ALL else ".")
    )


def follow_logs(
    paths: Sequence[Path], out: Path, say: Say, chosen: pipeline.Chosen = pipeline.ALL, master: str | None = None,
    *, once: bool = False,
) -> bool:  # fmt: skip
    """Write the tables of the broker logs in `paths` to `out`, and write them again when the logs have grown, until Ctrl-C.

    Return True after Ctrl-C. With `once`, end as soon as all lines are in the tables, and return whether all files are logs of
    Kafka. `say`, `chosen`, `master` and the errors are those of `logs`; UserError too if `out` follows other paths.
    """
    _check(master)
    begin, last = time.monotonic(), "No table was written."
    try:
        with opened(out, paths) as checkpoint:
            spark = spark_session(master or LOCAL)
            asked = Following(spark, paths, out, chosen, lambda step: say(f"{time.monotonic() - begin:5.1f} s  {step}"))
            try:
                for written in follow(asked, checkpoint, once=once, wait=lambda: time.sleep(LOOK_S)):
                    for refused in written.refused:
                        say(refused.reason)
                    last = _lines_of(written, chosen)
                    say(last)
            finally:
                stop_spark()
        return not written.refused and written.facts + written.other > 0
    except KeyboardInterrupt:
        say(f"Ctrl-C ended the command. {last}")
        return True


def offsets(paths: Sequence[Path], out: Path, say: Say, chosen: pipeline.Chosen) -> bool:
    """Write the tables of the segments of `__consumer_offsets` in `paths` to `out`; return whether all files are segments.

    `paths` are files and folders. The tables are commits, group_metadata, tombstones and rejected. `say` is called with each line
    of text: the steps, the refused files and the result. `chosen` says which records are written. Raises UserError for a path
    without a segment, for a folder `out` that holds other files, and if Spark is missing.
    """
    segments(paths)
    pipeline.claim(out, offset_tables.TABLES, offset_tables.FORMAT)
    begin = time.monotonic()
    spark = spark_session()
    try:
        steps = lambda step: say(f"{time.monotonic() - begin:5.1f} s  {step}")  # noqa: E731
        written = offset_tables.write_offsets(spark, paths, out, steps, chosen)
    finally:
        stop_spark()
    for reason in written.refused:
        say(reason)
    rows = ", ".join(f"{count:,} in {name}" for name, count in written.rows.items())
    rate = written.records / (time.monotonic() - begin)
    say(f"{written.segments} segments were read: {written.records:,} records, {written.markers:,} of them ends of transactions.")
    say(f"The tables have these rows: {rows} ({rate:,.0f} records per second).")
    return not written.refused


def report(folder: Path, out: Path, console: Console) -> None:
    """Write the report about a folder of tables of runs to the page `out`, and print the numbers of rows of its sections.

    Raises UserError for a folder without these tables, for a file `out` that is no report, and if `out` cannot be written.
    """
    tables = read_tables(folder)
    found = sections(tables)
    write_report(out, f"Report of {folder.resolve().name}", tables.runs, found, tables.zone)
    print_summary(console, tables.runs, found)
    console.print(f"{out} shows the report: open it in a browser.", soft_wrap=True, markup=False, highlight=False)


def _check(master: str | None) -> None:
    if master is not None:
        check_master(master)


def _progress(say: Say, begin: float) -> pipeline.Report:
    def report(name: str, done: int, all_tables: int) -> None:
        if name:
            say(f"{time.monotonic() - begin:5.1f} s  table {done + 1} of {all_tables}: {name}")

    return report
