"""Functions that return the records of log files, and their rejected lines, as one Spark DataFrame.

A record is a line that starts with a time and level, with the lines that continue it up to the next such line. A line is rejected
if no record comes before it in its file, if it is, or continues, a line of another log, or if its record has more than
LONGEST_REST_BYTES after its first line. Every line of a file is in one row, whose `lines` is the number of its lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sql

from kcontrol.spark.logs.facts import all_facts, json_facts, named_facts, own_facts, state_facts
from kcontrol.spark.logs.files import KEPT_BYTES, LONGEST_LINE_BYTES, LogFile
from kcontrol.spark.logs.layouts import clean, fields_of, is_kafka, layout_of, message_lines, parts, unwrapped, wrap_of
from kcontrol.spark.sources import PATH, literal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LONGEST_REST_BYTES = 2**20
FILES = "path STRING, file STRING, damaged ARRAY<BIGINT>"
DAMAGED = "file STRING, n BIGINT, lines BIGINT, length BIGINT, reason STRING, raw STRING"
BEFORE, OTHER_LOG = "No record comes before the line.", "The line is of another log."
TOO_LONG = "The record has more than 1 MB after its first line."
SPEAKER = (
    r"^(?:(?:Controller|Error on broker) (\d+) |\[(?:Controller(?:-| id=| )|Broker id="
    r"|(?:Partition|Replica)StateMachine controllerId="
    r"|(?:Partition|Replica) state machine on [cC]ontroller |\w+Listener on (?:[cC]ontroller )?|Topic Deletion Manager "
    r"|RequestSendThread controllerId=|Channel manager on controller |GroupCoordinator (?:id=)?|GroupMetadataManager brokerId="
    r"|Group Metadata Manager on Broker |KafkaServer id=|Kafka Server |Replica ?Manager (?:broker=|on Broker )"
    r"|ReplicaFetcherManager on broker )(\d+)|\[Partition \S+ broker=(\d+)\]|Partition \[\S+\] on broker (\d+): "
    r"|(\d+) successfully elected as )"
)
OLD_BROKER = r"^Broker (\d+) "


def parsed(spark: SparkSession, files: Sequence[LogFile]) -> DataFrame:
    """Return one row per record (an entry of a log, which may have several lines) and per rejected line of these files.

    Columns: file, n (the number of the first line, from 1), lines (their number), length (in bytes), reason (why the line is
    rejected, NULL for a record), raw (the text), layout (the name of the format), wrap (the kind of text before the time), time,
    level, logger, kind (of the message; "other" without facts), facts (a map from the name of a value in the message to the value
    as JSON), and broker (NULL if the message does not name it).
    """
    rows = _grouped(_numbered(spark, files))
    damaged = [(str(f.path), line.n, 1, line.length, line.reason, line.start) for f in files for line in f.damaged]
    return _with_facts(rows).unionByName(spark.createDataFrame(damaged, DAMAGED), allowMissingColumns=True)


def _numbered(spark: SparkSession, files: Sequence[LogFile]) -> DataFrame:
    """Return one row per line that Spark reads: file, n (its number, from 1), raw, length, wrap, layout, reason and first.

    `raw` is the line, `length` its bytes without the line break. `wrap` is the kind of text before its time, such as "grep" (a
    key of WRAPS), and `layout` the format of its record, such as "apache" (a name in LAYOUTS); both are NULL if there is none.
    `reason` is NULL for a line of a record, else the reason why the line is rejected. `first` is the number of the first line of
    its record, which is `n` for a rejected line.
    """
    names = spark.createDataFrame([(str(f.read), str(f.path), [line.n for line in f.damaged]) for f in files], FILES)
    text = spark.read.option("lineSep", "\n").text([literal(f.read) for f in files])
    placed = text.select(
        sql.expr(PATH).alias("path"), sql.expr("_metadata.file_block_start").alias("block"),
        sql.monotonically_increasing_id().alias("place"),
        sql.rtrim(sql.make_valid_utf8("value"), sql.lit("\r")).alias("raw"),
        sql.octet_length("value").cast("bigint").alias("length"),
    )  # fmt: skip
    in_order = Window.partitionBy("path").orderBy("block", "place")
    start = placed.withColumn("wrap", wrap_of(clean(sql.col("raw"))))
    start = start.withColumn("layout", layout_of(unwrapped(clean(sql.col("raw")), sql.col("wrap"))))
    counted = start.withColumn("n", sql.row_number().over(in_order).cast("bigint"))
    counted = counted.withColumn("end", sql.sum("length").over(in_order))
    is_start = sql.col("layout").isNotNull()
    head = sql.last(sql.when(is_start, sql.struct("n", "end", "layout")), ignorenulls=True).over(in_order)
    reason = (
        sql.when(sql.col("head").isNull(), BEFORE)
        .when(sql.col("head.layout") == "foreign", OTHER_LOG)
        .when(~is_start & (sql.col("end") - sql.col("head.end") > LONGEST_REST_BYTES), TOO_LONG)
    )
    found = counted.withColumn("head", head).withColumn("reason", reason).join(sql.broadcast(names), "path")
    found = found.where(~sql.array_contains("damaged", sql.col("n")))
    first = sql.when(sql.col("reason").isNull(), sql.col("head.n")).otherwise(sql.col("n"))
    return found.select("file", "n", "raw", "length", "wrap", "layout", "reason", first.alias("first"))


def _grouped(lines: DataFrame) -> DataFrame:
    """Return one row per record and per rejected line; `lines` has one row per line, as `_numbered` returns them.

    Columns: file, n (the number of the first line), lines (their number), length, reason, all (the array of the lines, in order),
    raw (the text; of a rejected line only the first KEPT_BYTES characters), layout and wrap.
    """
    at_start = sql.col("n") == sql.col("first")
    rows = lines.groupBy("file", "first").agg(
        sql.sort_array(sql.collect_list(sql.struct("n", "raw"))).alias("all"), sql.sum("length").alias("length"),
        *(sql.max(sql.when(at_start, sql.col(name))).alias(name) for name in ("wrap", "layout", "reason")),
    )  # fmt: skip
    rows = rows.withColumn("all", sql.col("all.raw"))
    raw = sql.array_join("all", "\n")
    return rows.select(
        "file", sql.col("first").alias("n"), sql.size("all").cast("bigint").alias("lines"), "length", "reason", "all",
        sql.when(sql.col("reason").isNull(), raw).otherwise(sql.substring(raw, 1, KEPT_BYTES)).alias("raw"), "layout", "wrap",
    )  # fmt: skip


def _with_facts(rows: DataFrame) -> DataFrame:
    """Return the rows with time, level, logger, kind, facts and broker of each record; they are NULL for a rejected line.

    Facts are the values in the record's message, as a map from the name to JSON.
    """
    is_record = sql.col("reason").isNull()
    rows = rows.withColumn(
        "text", sql.when(is_record, message_lines(sql.transform("all", clean), sql.col("wrap"), sql.col("layout")))
    )
    rows = rows.withColumn("fields", fields_of(sql.col("text"), sql.col("layout")))
    rows = rows.withColumns(parts(sql.col("text"), sql.col("fields")))
    known = sql.when(is_kafka(sql.col("logger"), sql.col("layout")), sql.col("message"))
    rows = rows.withColumn("named", named_facts(known))
    rows = rows.withColumn("kind", sql.when(is_record, sql.coalesce(sql.col("named")["kind"], sql.lit("other"))))
    rows = rows.withColumns({"own": own_facts(sql.col("named")), "state": state_facts(sql.col("named"))})
    rows = rows.withColumn("known", all_facts(sql.col("own"), sql.col("state"))).withColumn("facts", json_facts(sql.col("known")))
    empty = sql.create_map().cast("map<string,string>")
    return rows.select(
        "file", "n", "lines", "length", "reason", "raw", "layout", "wrap", "time", "level", "logger", "kind",
        sql.when(is_record, sql.coalesce("facts", empty)).alias("facts"),
        _broker(sql.col("message"), sql.col("logger")).alias("broker"),
    )  # fmt: skip


def _broker(message: Column, logger: Column) -> Column:
    """Return the id of the broker that wrote a message, if the message names it, such as "[Broker id=1]"; else NULL."""
    number = sql.regexp_replace(sql.regexp_extract(message, SPEAKER, 0), SPEAKER, "$1$2$3$4$5")
    old = sql.when(logger == "state.change.logger", sql.regexp_extract(message, OLD_BROKER, 1))
    return sql.coalesce(number.try_cast("int"), old.try_cast("int"))


assert LONGEST_REST_BYTES < LONGEST_LINE_BYTES
