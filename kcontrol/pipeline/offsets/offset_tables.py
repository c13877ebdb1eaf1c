"""The tables of segments of `__consumer_offsets` as Parquet: `commits`, `group_metadata`, `tombstones` and `rejected`.

`rejected` has the records that cannot be read and the bytes that are no batch, each with the reason. Nothing is lost: before new
tables replace former tables, the lengths of the batches and of the bytes that are no batch are added for each file, and the sum
is compared with the size of the file.

An offset that was committed in a transaction is valid only after the marker that commits the transaction. `transaction` is
"committed", "aborted" or "open" (no marker in the segments that were read), and NULL outside of transactions.

Each table is partitioned by the day of the record in UTC: of its timestamp, else (format 0) of the time in its value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as sql

from kcontrol.core.errors import UserError
from kcontrol.pipeline.logs.redaction import root_of
from kcontrol.pipeline.offsets.segments import LOG_PARTITION, Row, Segment, rows, segments
from kcontrol.pipeline.pipeline import ALL, NEW, VERSION, Chosen, check_topic, claim, of_topic, publish, sentences
from kcontrol.pipeline.redaction.stable_names import MEMBER_ID, Redaction
from kcontrol.pipeline.run_files import UNKNOWN_DAY
from kcontrol.pipeline.sources import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = {"kcontrol": "tables of __consumer_offsets", "version": VERSION}
MOST_PARTITIONS = 1000
MEMBER = (
    "member_id STRING, group_instance_id STRING, client_id STRING, client_host STRING, rebalance_timeout INT, "
    "session_timeout INT, topics ARRAY<STRING>, partitions ARRAY<STRING>, subscription BINARY, assignment BINARY"
)
FIELDS = (
    "key_version INT, value_version INT, group_id STRING, partition STRING, of STRING, offset BIGINT, leader_epoch INT, "
    "metadata STRING, commit_timestamp BIGINT, expire_timestamp BIGINT, protocol_type STRING, generation INT, protocol STRING, "
    f"leader STRING, current_state_timestamp BIGINT, members ARRAY<STRUCT<{MEMBER}>>"
)
PARSED = (
    "file STRING, log_partition INT, position BIGINT, length BIGINT, kind STRING, log_offset BIGINT, time_ms BIGINT, "
    f"producer_id BIGINT, fields STRUCT<{FIELDS}>, is_commit BOOLEAN, reason STRING"
)
RECORD = ("file", "log_partition", "position", "log_offset", "time_ms", "time_utc", "key_version", "value_version", "group_id")
COLUMNS = {
    "commits": (
        *RECORD, "partition", "offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp", "transaction",
    ),
    "group_metadata": (*RECORD, "protocol_type", "generation", "protocol", "leader", "current_state_timestamp", "members"),
    "tombstones": (*(name for name in RECORD if name != "value_version"), "of", "partition", "transaction"),
    "rejected": ("file", "position", "log_offset", "time_utc", "length", "reason"),
}  # fmt: skip
KINDS = {"commits": ["commit"], "group_metadata": ["group"], "tombstones": ["tombstone"], "rejected": ["unread", "rejected"]}
TABLES = tuple(COLUMNS)
LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999; Spark has no later timestamp."""
ROOT, KAFKAS = "segments", re.compile(r"\d{20}\.log")
Report = Callable[[str], None]


class BytesLost(UserError):
    """The error if the rows of a segment do not have every byte of its file: a defect of kcontrol, not of the file."""


class Written(NamedTuple):
    """The result of `write_offsets`: the numbers of segments and records that were read, and of rows in each table."""

    segments: int
    # All records, also those that --from, --to and --topic leave out.
    records: int
    # The records that end a transaction.
    markers: int
    rows: dict[str, int]
    # A sentence for each file that cannot be read or has no record.
    refused: list[str]


def write_offsets(
    spark: SparkSession, paths: Sequence[Path], out: Path, report: Report = lambda _: None, chosen: Chosen = ALL,
    redact: Redaction | None = None,
) -> Written:  # fmt: skip
    """Write the tables of the `__consumer_offsets` segments in `paths` to `out` as Parquet. Raises UserError without segments.

    `chosen` limits time and topic, `redact` replaces names; `report` is called with texts about the progress. Raises BytesLost
    if bytes of a segment are in no row.
    """
    # Former tables are replaced at the end.
    found = segments(paths)
    claim(out, TABLES, FORMAT)
    with sentences(out):
        report("reading records")
        shown = [str(segment.path) for segment in found]
        if redact is not None:
            root = root_of(paths)
            shown = [shown_path(segment.path, root, redact) for segment in found]
            chosen = chosen._replace(topic=chosen.topic and redact.stable("topic", chosen.topic))
        pairs = list(zip(found, shown, strict=True))
        parsed = spark.sparkContext.parallelize(pairs, min(len(pairs), MOST_PARTITIONS)).flatMap(
            lambda pair: _tuples(pair[0], pair[1], redact)
        )
        spark.createDataFrame(parsed, PARSED, verifySchema=False).write.parquet(str(out / NEW / "parsed"))
        table = spark.read.parquet(literal(out / NEW / "parsed"))
        records, markers, refused = _checked(table, pairs)
        if chosen.topic is not None:
            topics = table.select(sql.regexp_extract("fields.partition", "^(.+)-[0-9]+$", 1).alias("topic")).where("topic <> ''")
            check_topic(chosen.topic, (row["topic"] for row in topics.distinct().collect()), "No record")
        report("writing tables")
        placed = _with_time(_with_transactions(table))
        counts = {name: _write_table(spark, placed, name, out / NEW / name, chosen) for name in TABLES}
        publish(out, TABLES)
    return Written(len(found), records, markers, counts, refused)


def _tuples(segment: Segment, shown: str, redact: Redaction | None = None) -> Iterator[tuple[Any, ...]]:
    """One "rejected" row if the file cannot be read."""
    of = (shown, segment.log_partition)
    try:
        for row in rows(segment):
            yield *of, *(row if redact is None else redacted(row, redact))
    except OSError as problem:
        reason = f"{shown} cannot be read: {problem.strerror}."
        yield *of, *Row(0, segment.size, "rejected", reason=reason)


def _checked(table: DataFrame, found: Sequence[tuple[Segment, str]]) -> tuple[int, int, list[str]]:
    """Return (number of records, number of transaction markers, a sentence for each file without a record).

    `table` has the rows of all segments, `found` has (segment, its path in `table`). Raises BytesLost if a byte of a segment is
    in no row.
    """
    sums = table.groupBy("file").agg(
        sql.sum("length").alias("length"), sql.count_if(~sql.col("kind").isin("rejected", "empty")).alias("records"),
        sql.count_if(sql.col("kind") == "marker").alias("markers"), sql.first("reason", ignorenulls=True).alias("reason"),
    )  # fmt: skip
    counts = {row["file"]: row for row in sums.collect()}
    refused = []
    for segment, shown in found:
        row = counts.get(shown)
        if (row["length"] if row else 0) != segment.size:
            raise BytesLost(f"The rows of {segment.path} do not have all of its bytes: report this; no table was replaced.")
        # A refused file has bytes and no record, or cannot be read.
        if row and not row["records"]:
            refused.append(f"{segment.path} gives no record: {row['reason']}" if row["reason"] else f"{segment.path} is empty.")
    return sum(row["records"] for row in counts.values()), sum(row["markers"] for row in counts.values()), refused


def _with_transactions(table: DataFrame) -> DataFrame:
    """Return the table with the column `transaction`, by the producer's next commit or abort marker in the partition.

    Its value is "committed" or "aborted", "open" if no such marker comes, and NULL for a row outside of transactions.
    """
    folder = sql.regexp_replace("file", r"/[^/]*$", "")
    in_order = Window.partitionBy(folder, "log_partition", "producer_id").orderBy("log_offset")
    later = in_order.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    decided = table.where("producer_id IS NOT NULL").withColumn("is_commit", sql.first("is_commit", ignorenulls=True).over(later))
    word = sql.when(sql.col("is_commit"), "committed").when(~sql.col("is_commit"), "aborted").otherwise("open")
    plain = table.where("producer_id IS NULL").withColumn("transaction", sql.lit(None).cast("string"))
    return plain.unionByName(decided.withColumn("transaction", word))


def _with_time(table: DataFrame) -> DataFrame:
    """`time_utc` is NULL and `day` "unknown" for a record without a time."""
    columns = [column for column in table.columns if column != "fields"]
    table = table.select(*columns, "fields.*")
    # The record's timestamp; a record of format 0 has none, and gets the time in its value.
    time_ms = sql.coalesce("time_ms", "commit_timestamp", "current_state_timestamp")
    time_utc = sql.when(time_ms.between(0, LAST_MS), sql.timestamp_millis(time_ms))
    day = sql.coalesce(sql.date_format("time_utc", "yyyy-MM-dd"), sql.lit(UNKNOWN_DAY))
    return table.withColumn("time_utc", time_utc).withColumn("day", day)


def _write_table(spark: SparkSession, placed: DataFrame, name: str, folder: Path, chosen: Chosen) -> int:
    """Write the table `name`, such as "commits", as Parquet to `folder`, partitioned by day; return its number of rows.

    `placed` has the records of all tables; `chosen` limits time and topic, but not the table "rejected".
    """
    table = placed.where(sql.col("kind").isin(KINDS[name]))
    # The bytes that are no record have no time and no topic.
    if name != "rejected":
        for limit, holds in ((chosen.since, sql.col("time_utc").__ge__), (chosen.until, sql.col("time_utc").__lt__)):
            table = table if limit is None else table.where(holds(sql.lit(limit.replace(tzinfo=UTC))))
        table = of_topic(table, chosen.topic)
    table = table.select(*COLUMNS[name], "day")
    ordered = table.repartition("day").sortWithinPartitions("file", "position", "log_offset")
    ordered.write.partitionBy("day").parquet(str(folder))
    # A table without rows is one file without a partition, so that readers find its columns.
    if not any(folder.glob("day=*")):
        table.limit(0).coalesce(1).write.mode("overwrite").parquet(str(folder))
    return int(spark.read.option("basePath", str(folder)).parquet(literal(folder)).count())


# ---------------------------------------------------------------- rows with stable names


def shown_path(path: Path, root: Path, redaction: Redaction) -> str:
    """As "segments/" and the path below `root`; stable names stand for names that are not Kafka's."""
    *folders, name = Path(os.path.relpath(path, root)).parts
    if "host" in redaction.kinds:
        folders = [part if LOG_PARTITION.fullmatch(part) else f"folder-{redaction.letters(part)}" for part in folders]
        name = name if KAFKAS.fullmatch(name) else f"file-{redaction.letters(name)}.log"
    return str(Path(ROOT, *folders, name))


def redacted(row: Row, redaction: Redaction) -> Row:
    """Return a row about a record of a segment file with stable names in place of the names that `redaction` replaces.

    The field in which a text stands says whether the text is a name. The text that a consumer commits with an offset is replaced
    as a whole. The bytes of subscriptions and assignments are left out, because any part of them may be a name; their topics
    stand in the columns `topics` and `partitions`, with stable names.
    """
    fields = row.fields
    if fields is None:
        return row
    found = {name: _field(name, value, redaction) for name, value in fields.items()}
    if members := fields.get("members"):
        found["members"] = [{name: _field(name, value, redaction) for name, value in member.items()} for member in members]
    return row._replace(fields=found)


def _field(name: str, value: Any, redaction: Redaction) -> Any:
    if not value:
        return value
    match name:
        case "group" | "group_id" | "client_id" | "group_instance_id":
            return redaction.stable("client", value)
        case "member_id" | "leader":
            return member_id(value, redaction)
        case "client_host":
            return "/" * value.startswith("/") + redaction.stable("host", value.removeprefix("/"))
        case "partition":
            return _partition(value, redaction)
        case "partitions":
            return [_partition(partition, redaction) for partition in value]
        case "topics":
            return [redaction.stable("topic", topic) for topic in value]
        case "metadata":
            return f"text-{redaction.letters(value)}"
        case "subscription" | "assignment":
            return None
    return value


def member_id(value: str, redaction: Redaction) -> str:
    """Return a member id in which a stable name replaces the client id or instance id before the UUID."""
    found = MEMBER_ID.fullmatch(value)
    return f"{redaction.stable('client', found[1])}-{found[2]}" if found else redaction.stable("client", value)


def _partition(partition: str, redaction: Redaction) -> str:
    topic, _, number = partition.rpartition("-")
    return f"{redaction.stable('topic', topic)}-{number}"
