"""The tables of many runs as Parquet: one folder per table, partitioned by the day of the run.

The table `journal` has the records of all runs that were ever read into the folder. A run that is read again replaces its records
if its file has at least as many, and every other table is made again from `journal`. So files that are read late, twice or only
in part add no row twice.

Everything is first written below `_new`; then each new table is moved to the place of its former table. A process that ends in
between leaves former tables under `_old` and new tables under `_new`; the next call restores `journal` and deletes the rest.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kcontrol.core.errors import LATER, UserError, listed
from kcontrol.pipeline import spark_views
from kcontrol.pipeline.closed_paths import check_open
from kcontrol.pipeline.gateway import loss
from kcontrol.pipeline.redaction.journals import redacted, run_name
from kcontrol.pipeline.redaction.stable_names import Redaction, check_same
from kcontrol.pipeline.run_files import JournalOfRun, Refused, in_time, journals_of, record_count
from kcontrol.pipeline.sources import journal_lines
from kcontrol.views.text import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MARK, UNFINISHED, NEW, OLD = "_kcontrol.json", "_kcontrol.json.new", "_new", "_old"
REDACTED = "redacted"
"""The key of the redaction's mark in the file MARK: later runs must get stable names by the same kinds and key."""
VERSION = 1
"""The version of all folders of tables."""
FORMAT = {"kcontrol": "tables of runs", "version": VERSION}

TOPICS = """
SELECT DISTINCT topic FROM (
    SELECT explode(regexp_extract_all(fields, '/(?:brokers/topics|admin/delete_topics)/([A-Za-z0-9._-]+)', 1)) AS topic
    FROM journal
    UNION ALL
    SELECT regexp_extract(get_json_object(fields, '$.subject'), '^(.+)-[0-9]+(?:@[0-9]+)?$', 1) FROM journal WHERE kind = 'change'
    UNION ALL
    SELECT explode(transform(map_keys(from_json(fields, 'completion_event STRUCT<offsets: MAP<STRING, STRING>>')
           .completion_event.offsets), partition -> regexp_extract(partition, '^(.+)-[0-9]+$', 1)))
    FROM journal WHERE kind = 'append'
) WHERE topic <> ''
"""
"""The SQL query of the topics in the table `journal`: in paths of znodes, in transitions, and in committed offsets."""

DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
NO_FOLDER = "Mkdirs failed to create"
"""The words of Hadoop's RawLocalFileSystem about a folder that cannot be made."""

Report = Callable[[str, int, int], None]
"""A function of a table's name, the number of finished tables, and the number of all tables."""


class Written(NamedTuple):
    """The result of `write_runs`: the number of runs that were read, and the number of rows in each table."""

    runs: int
    # Files that were not read, and files with damaged lines, each with a reason.
    refused: list[Refused]
    rows: dict[str, int]


class Chosen(NamedTuple):
    """What `--from`, `--to` and `--topic` choose; None stands for no limit."""

    # Runs that began at this time or later; for broker logs and offsets, records with this time or a later time.
    since: datetime | None = None
    # Runs that began before this time; for broker logs and offsets, records with an earlier time.
    until: datetime | None = None
    # Of the rows about a partition or a topic, those about this topic; other rows are always written.
    topic: str | None = None


ALL = Chosen()


def write_runs(
    spark: SparkSession, paths: Sequence[Path], out: Path, report: Report = lambda *_: None, chosen: Chosen = ALL,
    redact: Redaction | None = None,
) -> Written:  # fmt: skip
    """Write the tables of the recorded runs in `paths` into `out`, where earlier runs stay.

    `chosen` limits runs and rows, `redact` replaces names. Raises UserError if no run is chosen or `out` has other files.
    """
    found, refused = journals_of(paths)
    if not found:
        raise UserError(refused[0].reason)
    journals = in_time(found, chosen.since, chosen.until)
    if not journals:
        raise UserError(f"No run began in this time, of {counted(len(found), 'run')}: choose other values of --from and --to.")
    claim(out)
    if redact is not None:
        journals = [journal._replace(run=run_name(journal.run, redact)) for journal in journals]
        chosen = chosen._replace(topic=chosen.topic and redact.stable("topic", chosen.topic))
    with sentences(out):
        check_redaction(out, redact)
        former = _read(spark, out / "journal") if (out / "journal").is_dir() else None  # the records of earlier calls
        counts = {row["run"]: row["count"] for row in former.groupBy("run").count().collect()} if former is not None else {}
        longer = [journal for journal in journals if record_count(journal.path) >= counts.get(journal.run, 0)]
        # `out` has all records of these runs already.
        if former is not None and not longer and _mark(out).get("topic", False) == chosen.topic:
            return Written(len(journals), refused, {name: _read(spark, out / name).count() for name in spark_views.TABLES})
        read = longer if redact is None else redacted(longer, redact, out / NEW / "redacted")
        rows = _write(spark, read, former, out, report, chosen.topic)
        damaged = _damaged(spark, longer)
        content = FORMAT | ({} if redact is None else {REDACTED: redact.mark()})
        _write_mark(out, content)  # a process that ends before the last line leaves no topic, so the next call writes all tables
        publish(out)
        _write_mark(out, content | {"topic": chosen.topic})
    return Written(len(journals), refused + damaged, rows)


def check_redaction(out: Path, redact: Redaction | None) -> None:
    """Raise UserError if the tables of runs in `out` were written with another `redact`: other kinds of names or another key.

    `redact` None replaces no names. Do nothing if `out` has no tables.
    """
    if (out / spark_views.TABLES[0]).is_dir():
        check_same(_mark(out).get(REDACTED), redact, out)


def _damaged(spark: SparkSession, journals: Sequence[JournalOfRun]) -> list[Refused]:
    """Return the journals that have a damaged line, each with a sentence about the number of its damaged lines."""
    # A damaged line ends with a line break and is no record.
    counts = {row["run"]: row["count"] for row in spark.table("journal").groupBy("run").count().collect()}
    lost = [(journal.path, record_count(journal.path) - counts.get(journal.run, 0)) for journal in journals]
    said = [(path, counted(number, "damaged line")) for path, number in lost if number > 0]
    return [Refused(path, f"The tables leave out {number} of {path}.") for path, number in said]


@contextlib.contextmanager
def sentences(out: Path) -> Iterator[None]:
    """Raise UserError with one sentence if the `with` block fails by a file system error or because Spark's Java ended.

    A UserError that the block raises is passed on. Before each UserError, the unfinished tables in `out` are deleted.
    """
    try:
        yield
    except UserError:
        shutil.rmtree(out / NEW, ignore_errors=True)
        raise
    except Exception as problem:
        if lost := loss(problem):
            shutil.rmtree(out / NEW, ignore_errors=True)
            raise lost from None
        if isinstance(problem, OSError):
            raise _refusal(out, problem.strerror or str(problem)) from None
        # Spark passes an error of the file system on in the text of errors of many types.
        reason = next((words for words in map(os.strerror, DISK) if words in str(problem)), None)
        if reason is None and NO_FOLDER not in str(problem):
            raise
        raise _refusal(out, reason or os.strerror(errno.EACCES)) from None


def _refusal(out: Path, reason: str) -> UserError:
    """Return the error, with its `reason`, for tables that cannot be written to `out`; delete the unfinished tables there."""
    # The unfinished tables may fill the disk.
    shutil.rmtree(out / NEW, ignore_errors=True)
    return UserError(f"The tables cannot be written to {out}: {reason}; make room, or name another folder.")


# ---------------------------------------------------------------- the folder


def claim(out: Path, tables: Sequence[str] = spark_views.TABLES, content: Mapping[str, Any] = FORMAT) -> None:
    """Make `out` a folder for `tables`; in an existing folder, repair what a killed process left unfinished.

    A new folder gets `_kcontrol.json` with `content`. Raises UserError if `out` is a file or has other files.
    """
    with sentences(out):
        nearest = next(path for path in (out, *out.parents) if path.exists())
        if not nearest.is_dir():
            raise UserError(f"{nearest} is a file: name a new or empty folder for the tables.")
        out.mkdir(parents=True, exist_ok=True)
        held = sorted(path.name for path in out.iterdir() if path.name != UNFINISHED)
    if held and MARK not in held:
        raise UserError(f"{out} holds other files, such as {held[0]}: name a new or empty folder for the tables.")
    known = {MARK, NEW, OLD, *tables}
    if MARK in held:
        check_version(out, _mark(out))
    if others := [name for name in held if name not in known and not name.startswith(MARK)]:
        raise UserError(f"{out} holds {others[0]} beside the tables: move it, or name a new or empty folder.")
    with sentences(out):
        # The file MARK has `content` as JSON; that of an earlier call stays.
        if MARK not in held:
            _write_mark(out, content)
        _repair(out, tables[0])


@contextlib.contextmanager
def claimed(out: Path, tables: Sequence[str] = spark_views.TABLES, content: Mapping[str, Any] = FORMAT) -> Iterator[None]:
    """Prepare the folder `out` for a `with` block that writes `tables` into it; write `content` to `_kcontrol.json` if missing.

    If the block raises and `out` has no table, remove the created folders and file. Raises UserError if `out` has other files.
    """
    check_open(out)
    created = [path for path in (out, *out.parents) if not path.exists()]
    with contextlib.ExitStack() as undo:
        if not (out / MARK).exists():
            undo.callback(_remove_created, out, created)
        claim(out, tables, content)
        yield
        undo.pop_all()


def _remove_created(out: Path, created: Sequence[Path]) -> None:
    """Delete `_kcontrol.json` in `out` if the folder has nothing else, then the folders `created`, innermost first."""
    with contextlib.suppress(OSError):
        if [path.name for path in out.iterdir()] == [MARK]:
            (out / MARK).unlink()
        for path in created:
            path.rmdir()


def check_version(out: Path, mark: Mapping[str, Any]) -> None:
    """Raise UserError if `mark`, the content of `_kcontrol.json` in a folder of tables, is that of a later kcontrol."""
    if mark.get("version", VERSION) != VERSION:
        raise UserError(LATER.format(out, VERSION))


def _mark(out: Path) -> dict[str, Any]:
    """Return the content of `_kcontrol.json` in `out`, which shows that kcontrol made the folder; {} if the file is damaged.

    Raises FileNotFoundError if there is no such file.
    """
    try:
        found = json.loads((out / MARK).read_text())
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _write_mark(out: Path, content: Mapping[str, Any]) -> None:
    unfinished = out / UNFINISHED
    unfinished.write_text(json.dumps(content) + "\n")
    unfinished.replace(out / MARK)


def _repair(out: Path, first: str) -> None:
    """Restore the folder of tables `out` after a process was killed while it replaced the tables.

    If `first`, the table that `publish` moves first, is missing, move it back from `_old`. Delete `_old` and other remains.
    """
    if (out / OLD / first).is_dir() and not (out / first).is_dir():
        (out / OLD / first).rename(out / first)
    (out / UNFINISHED).unlink(missing_ok=True)
    for name in (OLD, NEW):
        shutil.rmtree(out / name, ignore_errors=True)


def publish(out: Path, tables: Sequence[str] = spark_views.TABLES) -> None:
    """Move each of `tables` from the folder `out/_new` to `out`, and delete the former tables and `out/_new`.

    The first of `tables` is moved first: all other tables can be made again from it.
    """
    (out / OLD).mkdir()
    for name in tables:
        if (out / name).exists():
            (out / name).rename(out / OLD / name)
        (out / NEW / name).rename(out / name)
    for name in (OLD, NEW):
        shutil.rmtree(out / name)


# ---------------------------------------------------------------- the tables


def _write(
    spark: SparkSession, journals: Sequence[JournalOfRun], former: DataFrame | None, out: Path, report: Report, topic: str | None
) -> dict[str, int]:
    """Write all tables, limited to `topic`, into `out/_new`; return the number of rows of each table by its name.

    The records of `journals` replace those of the same runs in `former`, the former table `journal`.
    """
    days = spark.createDataFrame([(journal.run, journal.day) for journal in journals], "run STRING, day STRING")
    kept = former.join(days.select("run"), "run", "left_anti") if former is not None else None
    journal_lines(spark, journals).createOrReplaceTempView("lines")
    rows = {}
    for number, name in enumerate(spark_views.TABLES):
        report(name, number, len(spark_views.TABLES))
        table = spark.sql(spark_views.table_sql(name))
        if name == "journal" and kept is not None:
            table = table.unionByName(kept.drop("day"))
            days = days.unionByName(kept.selectExpr("run", "CAST(day AS STRING) AS day").distinct())  # Spark reads dates as DATE
        rows[name] = _write_table(spark, of_topic(table, topic).join(days, "run"), out / NEW / name, name)
        if name == "journal" and topic is not None:
            check_topic(topic, (row["topic"] for row in spark.sql(TOPICS).collect()), "No run")
    return rows


def check_topic(topic: str, found: Iterable[str], none: str) -> None:
    """Raise UserError, which lists the topics `found`, if `topic` is not among them.

    `none` begins the error: "No run" gives "No run names the topic of --topic ...".
    """
    names = sorted(found)
    if topic not in names:
        remedy = topics_found(names) if names else "no topic was found, so leave out --topic"
        raise UserError(f"{none} names the topic of --topic: {remedy}.")


def topics_found(names: Sequence[str]) -> str:
    """Return words that list the topics `names`, such as "the topics found are orders and payments"."""
    return f"the topics found are {listed(names, 9)}" if names else "no topic was found"


def of_topic(table: DataFrame, topic: str | None) -> DataFrame:
    """Return the rows of a table that are about partitions of `topic` or about no topic at all; all rows if `topic` is None."""
    from pyspark.sql import functions as sql

    named = {"partition": sql.regexp_replace("partition", "-[0-9]+$", ""), "topic": sql.col("topic")}
    for column in (column for column in named if topic is not None and column in table.columns):
        table = table.where(sql.col(column).isNull() | (named[column] == sql.lit(topic)))
    return table


def _read(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.option("basePath", str(folder)).parquet(str(folder))


def _write_table(spark: SparkSession, table: DataFrame, folder: Path, name: str) -> int:
    """Write a table as Parquet to a folder, partitioned by its column `day`; make the view `name`; return the number of rows.

    A table without rows is written as one file without a partition.
    """
    import pyarrow.parquet as parquet

    columns = [column for column in table.columns if column != "day"]
    days = table.select(*columns, "day").repartition("day").sortWithinPartitions("run", "n")
    days.write.partitionBy("day").parquet(str(folder))
    if not any(folder.glob("day=*")):
        spark.createDataFrame([], days.schema).coalesce(1).write.mode("overwrite").parquet(str(folder))
    # With the schema, Spark starts no job that reads it from the files.
    spark.read.schema(days.schema).option("basePath", str(folder)).parquet(str(folder)).drop("day").createOrReplaceTempView(name)
    # The metadata of each file has the number of rows, so Spark need not plan and run another query.
    return sum(parquet.read_metadata(path).num_rows for path in folder.rglob("*.parquet"))
