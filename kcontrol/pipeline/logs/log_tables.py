"""The tables of broker logs as Parquet: `records` has a row per log record, `rejected` a row per line that is in no record.

A record is a line with a time, and the lines that continue it. A line is rejected if no record comes before it in its file, if it
belongs to another log, if it or its record is too long, or if it is damaged. The column `reason` of `rejected` says why. A file
that is no log has one row in `rejected`, also with the reason.

Columns of `records`, beside the values in the line:
    kind: the kind of the message, such as "partition_transition", by `log_lines.tsv`; "other" for a message without facts.
    copy_of: for a copy of a record in an earlier file, the file and the line number of that record; else NULL.
    zone: the offset of the record's time from UTC, such as "+02:00"; NULL if it is not known.
    zone_from: "written" if the time has the offset, else the log line that shows the offset, such as "server.log:1".

Nothing is lost. Each line of a file is counted in one of four ways: it is the first line of a record, or it continues a record,
or it is rejected, or it is in a record that --from, --to or --topic leave out of the tables. Before new tables replace former
tables, the sum of these counts is compared with the number of lines in each file.

Two files of one broker may have the same record, such as a log and a copy of the standard output. So that its facts are counted
once, the record in the later file is marked as a copy (`copy_of`), and has the kind "other" and no facts. Records of one file are
never copies of each other. Files of one broker are compared if they are below one folder that the user names; files that name no
broker are compared within one folder. Of a stream of `docker compose logs` the records of each container are compared like a
file: its records name its broker.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as sql

from kcontrol.core.errors import UserError
from kcontrol.pipeline.log_journal.evidence import PUBLIC
from kcontrol.pipeline.log_journal.evidence import write_tables as write_run_tables
from kcontrol.pipeline.log_journal.fact_lines import logs_of
from kcontrol.pipeline.log_journal.to_journal import to_journal
from kcontrol.pipeline.logs.chosen_records import is_chosen, topics_in
from kcontrol.pipeline.logs.files import LogFile, NoLog, examine, group_of, log_files
from kcontrol.pipeline.logs.layouts import container_of, unwrapped_record
from kcontrol.pipeline.logs.records import parsed
from kcontrol.pipeline.logs.redaction import Names, redacted
from kcontrol.pipeline.logs.zones import ZONES, Start, zones
from kcontrol.pipeline.pipeline import ALL, NEW, VERSION, Chosen, check_topic, claim, publish, sentences
from kcontrol.pipeline.redaction.stable_names import Redaction
from kcontrol.pipeline.sources import literal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TABLES = ("records", "rejected")
ALL_TABLES = (*TABLES, *PUBLIC)
FORMAT = {"kcontrol": "tables of broker logs", "version": VERSION}
FOLLOW = "_follow"
"""The folder of the checkpoint of `--follow`, beside the tables."""
FACTS = "map<string,string>"
LOCAL_MS = "unix_millis(CAST(local_time AS TIMESTAMP))"
REFUSED = "file STRING, n BIGINT, reason STRING, length BIGINT, raw STRING"
PARTITIONS, COALESCES = "spark.sql.shuffle.partitions", "spark.sql.adaptive.coalescePartitions.enabled"
LINES_OF_A_PARTITION = 250_000
# A function that is called with a text about the work that begins, such as "reading records".
Report = Callable[[str], None]


class LinesLost(UserError):
    """The error if the tables `records` and `rejected` do not have every line of a log file: an error of kcontrol."""


class Written(NamedTuple):
    """The result of `write_logs`: the files that were not read, and the numbers of files and lines that were read."""

    refused: list[NoLog]
    files: int
    # The sum of the five numbers below.
    lines: int
    # First lines of records with facts, the named values in a message that matches `log_lines.tsv`.
    facts: int
    # First lines of all other records.
    other: int
    # Lines that continue a record.
    continuations: int
    # Lines in no record.
    rejected: int
    # Lines of records that were not chosen.
    left_out: int


def write_logs(
    spark: SparkSession, paths: Sequence[Path], out: Path, report: Report = lambda _: None, chosen: Chosen = ALL,
    *, of_runs: bool = False, redact: Redaction | None = None,
) -> Written:  # fmt: skip
    """Write the tables of broker logs in `paths` as Parquet into `out`. Raises UserError without a log.

    `chosen` limits time and topic, `of_runs` adds tables such as `elections`, `redact` replaces names. `report` is called with
    texts about the progress, such as "reading records".
    """
    # Earlier tables are replaced at the end.
    names = log_files(paths)
    claim(out, ALL_TABLES, FORMAT)
    with sentences(out):
        report("counting lines")
        found = [examine(path, out / NEW / "copies") for path in names if not path.is_relative_to(out.resolve())]
        found = [file._replace(group=group_of(file.path, paths)) if isinstance(file, LogFile) else file for file in found]
        sizes = [size_of(file.path) for file in found if isinstance(file, NoLog)]
        if redact is not None:
            stable = Names(redact)
            found = redacted(found, paths, stable, out / NEW / "redacted")
            shutil.rmtree(out / NEW / "copies", ignore_errors=True)
            chosen = chosen._replace(topic=chosen.topic and stable.of(chosen.topic))
        files = [file for file in found if isinstance(file, LogFile)]
        refused = [file for file in found if isinstance(file, NoLog)]
        if not files:
            raise UserError(refused[0].reason if refused else f"There is no log in {paths[0]} beside the tables.")
        report("reading records")
        # `write_tables` raises LinesLost if a line is in no table.
        with small_partitions(spark, files):
            parsed(spark, files).write.parquet(str(out / NEW / "parsed"))
        rows = spark.read.parquet(literal(out / NEW / "parsed"))
        if chosen.topic is not None:
            check_topic(chosen.topic, topics_in(rows), "No line")
        written, names_of_runs = write_tables(spark, rows, files, refused, sizes, out / NEW, report, chosen, of_runs=of_runs)
        if written.left_out and not written.facts + written.other:
            raise UserError(
                "No record of these logs is in this time or about this topic: choose other values of --from, --to or --topic."
            )
        publish(out, (*TABLES, *names_of_runs))
    return written


@contextlib.contextmanager
def small_partitions(spark: SparkSession, files: Sequence[LogFile]) -> Iterator[None]:
    """Let Spark sort and join within the `with` block in partitions of about 250,000 log lines of `files`.

    Spark's own number of partitions stays if it is larger.
    """
    former = {name: spark.conf.get(name) or "" for name in (PARTITIONS, COALESCES)}
    number = sum(file.lines for file in files) // LINES_OF_A_PARTITION
    # Java's heap has a buffer of 1 MB for each piece of a partition that is sorted on the disk: with the two partitions of small
    # tables, or with partitions that Spark puts together again, a folder of 2 GB needs more buffers than fit.
    if number > int(former[PARTITIONS]):
        spark.conf.set(PARTITIONS, str(number))
        spark.conf.set(COALESCES, "false")
    try:
        yield
    finally:
        for name, value in former.items():
            spark.conf.set(name, value)


def write_tables(
    spark: SparkSession, parsed_rows: DataFrame, files: Sequence[LogFile], refused: list[NoLog], sizes: Sequence[int | None],
    folder: Path, report: Report, chosen: Chosen, *, of_runs: bool,
) -> tuple[Written, Sequence[str]]:  # fmt: skip
    """Write the tables `records` and `rejected` into `folder` from `parsed_rows`, which `parsed` has returned for `files`.

    `rejected` also has the unread files `refused`, with their `sizes` in bytes. With `of_runs`, also write tables such as
    `elections`. Return the counts and these tables' names.
    """
    # The time as written in the record, without a zone; NULL for a record without a time.
    local = sql.rpad(sql.translate(sql.substring("time", 1, 23), "/,T", "-. "), 23, ".000").try_cast("timestamp_ntz")
    rows = parsed_rows.withColumn("local_time", local)
    report("writing tables")
    with small_partitions(spark, files):
        _records(spark, rows.where("reason IS NULL"), files, chosen).write.parquet(str(folder / "records"))
    rejected = rows.where("reason IS NOT NULL").select("file", "n", "reason", "length", "raw")
    unread = [(str(file.path), None, file.reason, size, None) for file, size in zip(refused, sizes, strict=True)]
    rejected.unionByName(spark.createDataFrame(unread, REFUSED)).coalesce(1).write.parquet(str(folder / "rejected"))
    left_out = rows.where(sql.col("reason").isNull() & ~is_chosen(chosen))
    written = _counted(spark, folder, files, refused, left_out)
    return written, _of_runs(spark, folder, report) if of_runs else ()


def _of_runs(spark: SparkSession, folder: Path, report: Report) -> Sequence[str]:
    """Make the tables of runs, such as `elections`, from the log records in `folder`, and write them into `folder`.

    Return the names of the written tables.
    """
    report("reading facts")
    logs = logs_of(spark.read.parquet(literal(folder / "records")))
    return write_run_tables(spark, to_journal(logs.lines(folder), logs.release, logs.brokers, zone=logs.zone), folder)


def size_of(path: Path) -> int | None:
    """Return the size of a file in bytes, None if the file is gone or permissions hide the size."""
    try:
        return path.stat().st_size
    except OSError:
        return None


def _counted(spark: SparkSession, folder: Path, files: Sequence[LogFile], refused: list[NoLog], left_out: DataFrame) -> Written:
    """Return the counts of the lines in the new tables `records` and `rejected` of `folder`, together with `refused`.

    `left_out` has the records outside the chosen time and topic. Raises LinesLost if the lines of these three do not add up
    to those of `files`.
    """
    records = spark.read.parquet(literal(folder / "records"))
    lines = records.groupBy("file").agg(
        sql.sum("lines").alias("lines"), sql.count("*").alias("records"), sql.count_if(sql.col("kind") != "other").alias("facts")
    )
    rejected = spark.read.parquet(literal(folder / "rejected")).where("n IS NOT NULL")
    rejected = rejected.groupBy("file").agg(sql.count("*").alias("rejected"))
    other = left_out.groupBy("file").agg(sql.sum("lines").alias("left_out"))
    joined = lines.join(rejected, "file", "full").join(other, "file", "full")
    counts = {row["file"]: row for row in joined.na.fill(0).collect()}
    for file in files:
        row = counts.get(str(file.path))
        found = row["lines"] + row["rejected"] + row["left_out"] if row else 0
        if found != file.lines:
            raise LinesLost(
                f"The tables have {found} of the {file.lines} lines of {file.path}: report this; no table was replaced."
            )
    total = {name: sum(row[name] for row in counts.values()) for name in ("lines", "records", "facts", "rejected", "left_out")}
    return Written(
        refused, len(files), total["lines"] + total["rejected"] + total["left_out"], total["facts"],
        total["records"] - total["facts"], total["lines"] - total["records"], total["rejected"], total["left_out"],
    )  # fmt: skip


# ---------------------------------------------------------------- records


def _records(spark: SparkSession, rows: DataFrame, files: Sequence[LogFile], chosen: Chosen) -> DataFrame:
    """Return the table `records`: the parsed log records `rows` of `files` whose time and topic `chosen` selects.

    Columns that `rows` does not have:
        copy_of: for a copy of a record in an earlier file, the file and the line number of that record.
        zone, zone_from: the time zone, such as "+02:00", and the log line that shows the zone.
        time_utc: the time in UTC; NULL without a zone.
    """
    rows = rows.withColumn("folder", sql.regexp_replace("file", r"/[^/]*$", ""))
    # Each container of a stream of docker compose is a broker of its own.
    rows = rows.withColumn("container", container_of(sql.col("raw"), sql.col("wrap")))
    speakers = rows.groupBy("file", "container").agg(sql.array_sort(sql.collect_set("broker")).alias("speakers"))
    rows = rows.join(sql.broadcast(speakers), ["file", "container"], "left")
    # A copy is a record that another file of its broker has too; it gets the kind "other" and no facts.
    groups = spark.createDataFrame([(str(file.path), file.group) for file in files], "file STRING, group INT")
    copies = _copies(rows.join(sql.broadcast(groups), "file"))
    rows = _with_zone(spark, rows).join(copies, ["file", "n"], "left").where(is_chosen(chosen))
    is_copy = sql.col("copy_of").isNotNull()
    # A record that names no broker has the broker of its file or container, if the other records name only one.
    only = sql.when(sql.size("speakers") == 1, sql.get("speakers", sql.lit(0)))
    return rows.select(
        "file", "n", "lines", "layout", "wrap", "time", "local_time", "time_utc", "zone", "zone_from", "level", "logger",
        sql.when(is_copy, "other").otherwise(sql.col("kind")).alias("kind"),
        sql.when(is_copy, sql.create_map().cast(FACTS)).otherwise(sql.col("facts")).alias("facts"),
        sql.coalesce("broker", only).alias("broker"), "copy_of", "raw",
    )  # fmt: skip


def _copies(rows: DataFrame) -> DataFrame:
    """Return `file`, line number `n` and `copy_of` of each log record that an earlier file of its broker has too.

    Only records with facts (named values in the message) count. `copy_of` is the file and the line number of the earlier record.
    """
    facts = rows.where("kind <> 'other'").withColumn("text", sql.xxhash64(unwrapped_record(sql.col("raw"), sql.col("wrap"))))
    broker = sql.coalesce(sql.col("broker").cast("string"), sql.array_join(sql.col("speakers").cast("array<string>"), ","))
    # Files of one broker are compared within their group, files without a known broker within their folder.
    where = sql.coalesce(sql.when(broker != "", sql.col("group").cast("string")), sql.col("folder"))
    facts = facts.select("file", "n", "time", "logger", "text", broker.alias("whose"), where.alias("where"))
    key = ["where", "time", "logger", "text", "whose"]
    facts = facts.withColumn("nth", sql.row_number().over(Window.partitionBy(*key, "file").orderBy("n")))
    facts = facts.withColumn("copy_of", sql.min(sql.struct("file", "n")).over(Window.partitionBy(*key, "nth")))
    return facts.where(sql.col("copy_of.file") != sql.col("file")).select("file", "n", "copy_of")


def _with_zone(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """Return the rows with the columns `zone`, such as "+02:00", `zone_from` and `time_utc`; NULL for an unknown zone.

    `zone_from` is "written" if the time has the zone, else the log line that shows the zone: "server.log:1".
    """
    starts = rows.where("kind = 'kafka_start_ms' AND local_time IS NOT NULL")
    epoch_ms = sql.col("facts")["epoch_ms"].try_cast("bigint").alias("epoch_ms")
    lines = starts.select("file", "n", sql.expr(LOCAL_MS), epoch_ms).where("epoch_ms IS NOT NULL")
    known = spark.createDataFrame(zones(Start(*row) for row in lines.collect()), ZONES)
    rows = rows.join(
        sql.broadcast(known.withColumnRenamed("folder", "of_folder")),
        (sql.col("folder") == sql.col("of_folder")) & sql.expr(LOCAL_MS).between(sql.col("begin_ms"), sql.col("end_ms")), "left",
    )  # fmt: skip
    has_zone = sql.col("time").rlike(r"(?:Z|[+-]\d{4})$")
    sign = sql.when(sql.col("time").rlike(r"-\d{4}$"), -1).otherwise(1)
    written = sign * (_number(r"[+-](\d\d)\d\d$") * 60 + _number(r"[+-]\d\d(\d\d)$"))
    offset = sql.when(has_zone, written).otherwise(sql.col("offset_minutes"))
    size = sql.abs(offset)
    zone = sql.concat(sql.when(offset < 0, "-").otherwise("+"), sql.format_string("%02d:%02d", sql.floor(size / 60), size % 60))
    utc = sql.timestamp_millis(sql.expr(LOCAL_MS) - offset.cast("bigint") * 60_000)
    source = sql.when(has_zone, "written").otherwise(sql.col("found"))
    return rows.withColumns({"zone": sql.when(offset.isNotNull(), zone), "zone_from": source, "time_utc": utc})


def _number(pattern: str) -> Column:
    """Return a column with the integer that the first group of `pattern` finds in the column `time`, or 0."""
    return sql.coalesce(sql.regexp_extract("time", pattern, 1).try_cast("int"), sql.lit(0))
