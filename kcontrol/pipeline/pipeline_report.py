"""Functions behind `kcontrol pipeline`: they write Spark tables of runs, broker logs or offsets, and print counts."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from kcontrol.cluster import topic_tool
from kcontrol.core.errors import UserError
from kcontrol.pipeline import pipeline
from kcontrol.pipeline.closed_paths import check_open
from kcontrol.pipeline.cluster import check_master
from kcontrol.pipeline.follow.checkpoint import opened
from kcontrol.pipeline.follow.follow import LOOK_S, Following, follow
from kcontrol.pipeline.gateway import LOCAL, spark_session, stop_spark
from kcontrol.pipeline.logs import log_tables
from kcontrol.pipeline.logs.files import log_files
from kcontrol.pipeline.offsets import offset_tables
from kcontrol.pipeline.offsets.segments import segments
from kcontrol.pipeline.redaction.stable_names import Redaction
from kcontrol.pipeline.report.page import write_report
from kcontrol.pipeline.report.sections import Section, sections
from kcontrol.pipeline.report.tables import RunTimes, read_tables
from kcontrol.pipeline.run_files import journal_files
from kcontrol.views import clock, text
from kcontrol.views.text import counted

# A function that prints a line for the user.
Say = Callable[[str], None]


TIMES = "such as 2026-01-31 or 2026-01-31T09:30"
MEASURED_COUNT = 100_000
FIRST_RELEASE = "0.8.0"
MOST_RUNS = 40


def per_second(count: int, seconds: float, what: str) -> str:
    """Return `count` / `seconds` as text, such as " (20,000 lines per second)" if the unit `what` is "lines".

    Return "" for a `count` below 100,000.
    """
    # With fewer lines or records Spark's start takes most of the `seconds`, so that a rate says nothing about the
    # count.
    return f" ({count / seconds:,.0f} {what} per second)" if count >= MEASURED_COUNT else ""


def time_of(option: str, value: str | None) -> datetime | None:
    """Return the time in the value of an option such as --from, midnight for a date alone; None for None.

    Raises UserError for any other text, such as a time without a date or with a zone.
    """
    try:
        found = datetime.fromisoformat(value) if value is not None else None
    except ValueError:
        found = datetime.max.replace(tzinfo=UTC)
    if found is not None and found.tzinfo is not None:
        raise UserError(f"{option} {value!r} is not a time without a zone: write a date, or a date and a time, {TIMES}.")
    return found


def times_of(since: str | None, until: str | None) -> tuple[datetime | None, datetime | None]:
    """Return the times in the values of --from and --to; None for an option without a value.

    Raises UserError for a text that is no time, and for a --from that is not before --to.
    """
    begin, end = time_of("--from", since), time_of("--to", until)
    if begin is not None and end is not None and begin >= end:
        raise UserError(f"--from {since} is not before --to {until}: choose a --from before --to.")
    return begin, end


def runs(
    paths: Sequence[Path],
    out: Path,
    say: Say,
    chosen: pipeline.Chosen,
    master: str | None = None,
    redact: Redaction | None = None,
) -> bool:
    """Write the tables of the runs in `paths` to `out`; return whether all files are undamaged journals.

    `chosen` limits times and topics, `redact` replaces names, `say` prints progress. Raises UserError for wrong arguments.
    """
    # `master` is Spark's address, None for a local Spark.
    _check(out, master)
    for path in paths:
        journal_files(path)
    begin = time.monotonic()
    with pipeline.claimed(out):
        pipeline.check_redaction(out, redact)
        with _spark(master) as spark:
            written = pipeline.write_runs(spark, paths, out, _progress(say, begin), chosen, redact)
    for refused in written.refused:
        say(refused.reason)
    records = written.rows["journal"]
    rate = per_second(records, time.monotonic() - begin, "records")
    read = counted(written.runs, "run was", "runs were")
    say(f"{read} read; {out} has {counted(records, 'record')} of all runs{rate}.")
    return not written.refused


def logs(
    paths: Sequence[Path],
    out: Path,
    say: Say,
    chosen: pipeline.Chosen = pipeline.ALL,
    master: str | None = None,
    redact: Redaction | None = None,
) -> bool:
    """Write the tables of the broker logs in `paths` to `out`; return whether all files are logs.

    `chosen` limits times and topics, `redact` replaces names, `say` prints progress. Raises UserError for wrong arguments.
    """
    # `master` is Spark's address, None for a local Spark.
    log_files(paths)
    _check(out, master)
    if (out / log_tables.FOLLOW).exists():
        raise UserError(f"{out} has tables of --follow: add --follow, or name another folder.")
    begin = time.monotonic()
    with pipeline.claimed(out, log_tables.ALL_TABLES, log_tables.FORMAT), _spark(master) as spark:
        written = log_tables.write_logs(spark, paths, out, _steps(say, begin), chosen, of_runs=True, redact=redact)
    for refused in written.refused:
        say(refused.reason)
    say(_lines_of(written, chosen) + per_second(written.lines, time.monotonic() - begin, "lines") + ".")
    if not written.facts + written.other:
        say("No line is a line of a Kafka broker's log: see the table rejected.")
    # False also if no file has a log record.
    return not written.refused and written.facts + written.other > 0


def _lines_of(written: log_tables.Written, chosen: pipeline.Chosen) -> str:
    read, lines = counted(written.files, "file was", "files were"), counted(written.lines, "line")
    other, more = counted(written.other, "other record"), counted(written.continuations, "continuation")
    left_out = f" + {written.left_out:,} of records that were not chosen" if chosen != pipeline.ALL else ""
    return f"{read} read: {lines} = {written.facts:,} with facts + {other} + {more} + {written.rejected:,} rejected{left_out}"


def follow_logs(
    paths: Sequence[Path], out: Path, say: Say, chosen: pipeline.Chosen = pipeline.ALL, master: str | None = None,
    redact: Redaction | None = None, *, once: bool = False,
) -> bool:  # fmt: skip
    """Write the tables of the broker logs in `paths` to `out` whenever a log grows; with `once`, end after reading all logs.

    Return whether all files are logs. `chosen` limits times and topics, `redact` replaces names.
    """
    # Wrong arguments raise UserError. After Ctrl-C the result is True. `master` is Spark's address, None for a local Spark.
    _check(out, master)
    # A later line may name the topic for the first time, so only a name that no topic can have is refused.
    if chosen.topic is not None:
        try:
            topic_tool.check_name(chosen.topic, (), FIRST_RELEASE)
        except topic_tool.TopicRefused as problem:
            raise UserError(f"--topic {chosen.topic!r} is no topic: {problem}.") from None
    begin, last = time.monotonic(), "No table was written."
    try:
        with opened(out, paths, redact) as checkpoint, _spark(master) as spark:
            asked = Following(spark, paths, out, chosen, _steps(say, begin), redact=redact)
            for written in follow(asked, checkpoint, once=once, wait=lambda: time.sleep(LOOK_S)):
                for refused in written.refused:
                    say(refused.reason)
                say(last := _lines_of(written, chosen) + ".")
        return not written.refused and written.facts + written.other + written.left_out > 0
    except KeyboardInterrupt:
        say(f"Ctrl-C ended the command. {last}")
        return True


def offsets(paths: Sequence[Path], out: Path, say: Say, chosen: pipeline.Chosen, redact: Redaction | None = None) -> bool:
    """Write the tables of the segments of `__consumer_offsets` in `paths` to `out`; return whether all files are segments.

    `chosen` limits times and topics, `redact` replaces names, `say` prints a line. Raises UserError for wrong arguments.
    """
    segments(paths)
    begin = time.monotonic()
    with pipeline.claimed(out, offset_tables.TABLES, offset_tables.FORMAT), _spark() as spark:
        written = offset_tables.write_offsets(spark, paths, out, _steps(say, begin), chosen, redact)
    for reason in written.refused:
        say(reason)
    rows = ", ".join(f"{count:,} in {name}" for name, count in written.rows.items())
    rate = per_second(written.records, time.monotonic() - begin, "records")
    read, markers = counted(written.segments, "segment was", "segments were"), counted(written.markers, "end", "ends")
    say(f"{read} read: {counted(written.records, 'record')}, with {markers} of transactions.")
    say(f"The tables have these rows: {rows}{rate}.")
    return not written.refused


def report(folder: Path, out: Path, console: Console) -> None:
    """Write a report page about the tables in `folder` to `out`, and print a summary.

    Raises UserError if `folder` has no tables of runs, or `out` is a file that is no report or cannot be written.
    """
    tables = read_tables(folder)
    found = sections(tables)
    write_report(out, f"Report of {folder.resolve().name}", tables.runs, found, tables.zone)
    print_summary(console, tables.runs, found)
    console.print(f"{out} shows the report: open it in a browser.", soft_wrap=True, markup=False, highlight=False)


@contextlib.contextmanager
def _spark(master: str | None = None) -> Iterator[Any]:
    spark = spark_session(master or LOCAL)
    try:
        yield spark
    finally:
        stop_spark()


def _check(out: Path, master: str | None = None) -> None:
    check_open(out)
    if master is not None:
        check_master(master)


def _steps(say: Say, begin: float) -> Callable[[str], None]:
    return lambda step: say(f"{time.monotonic() - begin:5.1f} s  {step}")


def _progress(say: Say, begin: float) -> pipeline.Report:
    step = _steps(say, begin)

    def report(name: str, done: int, all_tables: int) -> None:
        if name:
            step(f"table {done + 1} of {all_tables}: {name}")

    return report


# ---------------------------------------------------------------- the summary of a report


def print_summary(console: Console, runs: Sequence[RunTimes], found: Sequence[Section]) -> None:
    """A line for each of the first 40 runs, one for all, and a sentence per section."""
    table = Table(Column("run", overflow="fold"), *(Column(section.id, justify="right") for section in found))
    counts = [section.by_run() for section in found]
    for run in runs[:MOST_RUNS]:
        table.add_row(Text(text.clean(run.name)), *(f"{count[run.name]:,}" for count in counts))
    table.add_row(Text(text.counted(len(runs), "run", "runs in all")), *(f"{len(section.rows):,}" for section in found))
    console.print(table)
    for section in found:
        console.print(Text(sentence(section)), soft_wrap=True)


def sentence(section: Section) -> str:
    """Return a section in one sentence, such as "Rebalances: 3 (reason join: 3); the longest took 5 s in run-1"."""
    if not section.rows:
        return f"{section.title}: none"
    counts = ", ".join(f"{section.key} {text.clean(key)}: {count:,}" for key, count in section.by_key().items())
    if section.inferred:
        counts += f"; {section.inferred:,} with inferred values"
    durations = section.durations()
    if not durations:
        return f"{section.title}: {len(section.rows):,} ({counts})"
    row = max((one.longest for one in durations), key=lambda row: int(row["duration_ms"]))
    longest = f"the longest took {clock.duration(row['duration_ms'])} in {text.clean(row['run'])}"
    return f"{section.title}: {len(section.rows):,} ({counts}); {longest}"
