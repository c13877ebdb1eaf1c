"""Functions that return the records of log files, and their rejected lines, as one Spark DataFrame.

A record is a line that starts with a time and level, with the lines that continue it up to the next such line. A line is rejected
if no record comes before it in its file, if it is, or continues, a line of another log, or if its record has more than 1 MiB
(LONGEST_REST_BYTES) after its first line. Every line of a file is in one row, whose `lines` is the number of its lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sql

from kcontrol.pipeline.logs import layouts
from kcontrol.pipeline.logs.facts import all_facts, converted, encoded_facts, encoded_state, json_facts, kind_of
from kcontrol.pipeline.logs.files import KEPT_BYTES, LONGEST_LINE_BYTES, LogFile
from kcontrol.pipeline.sources import literal, path_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LONGEST_REST_BYTES = 2**20
MANY_LINES = 100_000
"""From this number of lines on, the records of one large file are divided among the cores."""
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
    """Return one row per log record, which may have several lines, and per rejected line of these files.

    Columns:
        file, n, lines, length: the file, the number of the first line, the number of lines, and the number of bytes.
        reason: why the line is rejected; NULL for a record.
        raw: the text.
        layout: the name of the record's line format; "foreign" for a line of another log, NULL for a line without a time.
        wrap: the kind of the text before the time of the line, such as "grep"; NULL if the time comes first.
        time, level, logger: as written.
        kind, facts: the kind of the message ("other" without facts), and a map from the name of a value to JSON.
        broker: the broker that the message names, or NULL.
    """
    names = spark.createDataFrame([(str(f.read), str(f.path), [line.n for line in f.damaged]) for f in files], FILES)
    rows = _grouped(_numbered(spark, files, names), names)
    lines = [file.lines for file in files]
    if sum(lines) > MANY_LINES and 2 * max(lines) > sum(lines):  # all lines of a file are in one partition, so on one core
        rows = rows.repartition("file", "n")
    damaged = [(str(f.path), line.n, 1, line.length, line.reason, line.start) for f in files for line in f.damaged]
    return _with_facts(rows).unionByName(spark.createDataFrame(damaged, DAMAGED), allowMissingColumns=True)


def _numbered(spark: SparkSession, files: Sequence[LogFile], names: DataFrame) -> DataFrame:
    """Return one row per line of `files`; damaged lines are left out: `names` has their numbers for each file.

    Columns:
        uri, n, raw, length: the file, the number of the line, the text, the number of bytes.
        unclean: whether the line has NUL or U+0001 to U+0003.
        wrap: the kind of the text before the time of the line, such as "grep"; NULL if the time comes first.
        layout: the name of the line's format (log4j pattern); NULL for a line without a time.
        reason: why the line is rejected, else NULL.
        first: the number of the first line of the record to which the line belongs; of a rejected line its own number.
    """
    in_order = Window.partitionBy("uri").orderBy("block", "place")
    counted = _starts(spark, files).withColumn("n", sql.row_number().over(in_order).cast("bigint"))
    counted = counted.withColumn("end", sql.sum("length").over(in_order))
    is_start = sql.col("layout").isNotNull()
    head = sql.last(sql.when(is_start, sql.struct("n", "end", "layout")), ignorenulls=True).over(in_order)
    reason = (
        sql.when(sql.col("head").isNull(), BEFORE)
        .when(sql.col("head.layout") == "foreign", OTHER_LOG)
        .when(~is_start & (sql.col("end") - sql.col("head.end") > LONGEST_REST_BYTES), TOO_LONG)
    )
    found = counted.withColumn("head", head).withColumn("reason", reason)
    if any(file.damaged for file in files):
        found = found.join(sql.broadcast(names), sql.expr(path_of("uri")) == sql.col("path"))
        found = found.where(~sql.array_contains("damaged", sql.col("n")))
    first = sql.when(sql.col("reason").isNull(), sql.col("head.n")).otherwise(sql.col("n"))
    return found.select("uri", "n", "raw", "length", "unclean", "wrap", "layout", "reason", first.alias("first"))


def _starts(spark: SparkSession, files: Sequence[LogFile]) -> DataFrame:
    """Return one row per line of the files: uri (the file), block, place, raw, length, unclean, wrap and layout.

    `raw` is the text, `length` its bytes; `unclean` says whether it has characters that `clean` removes. `block` and `place`
    together order the lines of a file.
    """
    text = spark.read.option("lineSep", "\n").text([literal(f.read) for f in files])
    valid = text.select(
        sql.col("_metadata.file_path").alias("uri"), sql.col("_metadata.file_block_start").alias("block"),
        sql.monotonically_increasing_id().alias("place"),
        sql.make_valid_utf8("value").alias("raw"), sql.octet_length("value").cast("bigint").alias("length"),
    )  # fmt: skip
    valid = valid.withColumn("raw", layouts.from_docker(sql.col("raw")))
    raw = sql.when(sql.endswith("raw", sql.lit("\r")), sql.rtrim("raw", sql.lit("\r"))).otherwise(sql.col("raw"))
    # `block` is the byte at which Spark's split of the file begins, `place` a number that grows from line to line in a split.
    # `wrap` is the name of the text before the time, such as "grep", and `layout` that of the log4j pattern.
    placed = valid.withColumn("raw", raw).withColumn("unclean", sql.col("raw").rlike(layouts.UNCLEAN))
    cleaned = sql.when(sql.col("unclean"), layouts.clean(sql.col("raw"))).otherwise(sql.col("raw"))
    placed = placed.withColumn("text", cleaned).withColumn("wrap", layouts.wrap_of(sql.col("text")))
    return placed.withColumn("layout", layouts.layout_of(layouts.unwrapped(sql.col("text"), sql.col("wrap")))).drop("text")


def _grouped(lines: DataFrame, names: DataFrame) -> DataFrame:
    """Return one row per log record and per rejected line, from `lines`, which has one row per line of a file.

    `names` has each file's path and the name of the file in the tables.
    """
    # `parsed` describes the columns of the result; `unclean` says whether a line has control characters.
    at_start = sql.col("n") == sql.col("first")
    rows = lines.groupBy("uri", "first").agg(  # all lines of a file are in one partition: this needs no second shuffle
        sql.sort_array(sql.collect_list(sql.struct("n", "raw"))).alias("all"), sql.sum("length").alias("length"),
        sql.bool_or("unclean").alias("unclean"),
        *(sql.max(sql.when(at_start, sql.col(name))).alias(name) for name in ("wrap", "layout", "reason")),
    )  # fmt: skip
    rows = rows.join(sql.broadcast(names), sql.expr(path_of("uri")) == sql.col("path"))
    rows = rows.withColumn("all", sql.col("all.raw"))
    # Of a rejected line only the first KEPT_BYTES characters.
    raw = sql.array_join("all", "\n")
    return rows.select(
        "file", sql.col("first").alias("n"), sql.size("all").cast("bigint").alias("lines"), "length", "reason", "all", "unclean",
        sql.when(sql.col("reason").isNull(), raw).otherwise(sql.substring(raw, 1, KEPT_BYTES)).alias("raw"), "layout", "wrap",
    )  # fmt: skip


def _with_facts(rows: DataFrame) -> DataFrame:
    """Return the rows with the parts of their log records: time, level, logger, kind, facts and broker.

    The facts are the values in the message, by name. All parts of a rejected line are NULL.
    """
    is_record = sql.col("reason").isNull()
    rows = rows.withColumn("all", sql.when(sql.col("unclean"), sql.transform("all", layouts.clean)).otherwise(sql.col("all")))
    rows = rows.withColumn("text", sql.when(is_record, layouts.message_lines(sql.col("all"), sql.col("wrap"), sql.col("layout"))))
    rows = rows.withColumn("fields", layouts.fields_of(sql.col("text"), sql.col("layout")))
    rows = rows.withColumns(layouts.parts(sql.col("text"), sql.col("fields")))
    known = sql.when(layouts.is_kafka(sql.col("logger"), sql.col("layout")), sql.col("message"))
    rows = rows.withColumn("encoded", encoded_facts(known))
    rows = rows.withColumn("state", converted(encoded_state(sql.col("encoded"))))
    rows = rows.withColumns({"kind": kind_of(sql.col("encoded")), "encoded": converted(sql.col("encoded"))})
    rows = rows.withColumns({"own": json_facts(sql.col("encoded")), "state": json_facts(sql.col("state"))})
    empty = sql.create_map().cast("map<string,string>")
    return rows.select(
        "file", "n", "lines", "length", "reason", "raw", "layout", "wrap", "time", "level", "logger",
        sql.when(is_record, sql.coalesce("kind", sql.lit("other"))).alias("kind"),
        sql.when(is_record, sql.coalesce(all_facts(sql.col("own"), sql.col("state")), empty)).alias("facts"),
        _broker(known, sql.col("logger")).alias("broker"),
    )  # fmt: skip


def _broker(message: Column, logger: Column) -> Column:
    """Return the id of the broker that wrote a message, if the message names it, such as "[Broker id=1]"; else NULL."""
    number = sql.regexp_replace(sql.regexp_extract(message, SPEAKER, 0), SPEAKER, "$1$2$3$4$5")
    old = sql.when(logger == "state.change.logger", sql.regexp_extract(message, OLD_BROKER, 1))
    return sql.coalesce(number.try_cast("int"), old.try_cast("int"))


assert LONGEST_REST_BYTES < LONGEST_LINE_BYTES
