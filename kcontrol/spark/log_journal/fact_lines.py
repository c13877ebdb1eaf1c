"""Reads the table `records` of broker logs, which Spark has made, as lines in the order of time.

The times are UTC if the zone of every line with facts is known, else as written. If the time of a line is before that of an
earlier line of its file, the line gets the time of the earlier line, so that no file is read out of order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from pyspark.sql import Window
from pyspark.sql import functions as sql

from kcontrol.spark.log_journal.log_line import Line
from kcontrol.spark.log_journal.releases import KINDS, WORDINGS, release_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Logs(NamedTuple):
    """The lines of a folder of logs: their release, the ids of brokers that they name, and whether their times are UTC.

    `facts` are the rows of the table `records`, one for each record of the logs, that have facts: values in a message that
    matches a row of `patterns.tsv`. `root` is the folder that has all files.
    """

    release: str
    brokers: list[int]
    is_utc: bool
    facts: DataFrame
    root: str

    @property
    def zone(self) -> str:
        """The zone of the times: "in UTC", or "as written" if the zone of a line is not known."""
        return "in UTC" if self.is_utc else "as written"

    def lines(self) -> Iterator[Line]:
        """Yield the lines of `facts` that have a time, in the order of time; lines of one time by file, then by number."""
        at = sql.unix_millis("time_utc") if self.is_utc else sql.expr("unix_millis(CAST(local_time AS TIMESTAMP))")
        in_file = Window.partitionBy("file").orderBy("n")
        rows = self.facts.where("local_time IS NOT NULL").withColumn("at_ms", sql.max(at).over(in_file))
        chosen = rows.select("file", "n", "at_ms", "kind", "facts", "broker").orderBy("at_ms", "file", "n")
        decode = msgspec.json.decode
        for file, n, at_ms, kind, facts, broker in chosen.toLocalIterator():
            found: dict[str, Any] = {name: decode(value) for name, value in facts.items()}
            yield Line(self.name(file), n, at_ms, kind, found, broker)

    def name(self, file: str) -> str:
        """Return the path of the log file `file` relative to the folder that has all log files."""
        return os.path.relpath(file, self.root)


def logs_of(records: DataFrame, release: str | None = None) -> Logs:
    """Return the Logs of the table `records`, as those of `release`; None stands for the release that the lines show."""
    facts = records.where("kind <> 'other'")
    words = [
        sql.max(sql.col("kind").isin(*KINDS) & sql.col("raw").rlike(pattern)).alias(f"w{n}")
        for n, (pattern, *_) in enumerate(WORDINGS)
    ]
    ids = [
        sql.collect_set(sql.coalesce("broker", sql.try_element_at("facts", sql.lit("controller")).try_cast("int"))).alias(
            "speakers"
        )
    ]
    live = sql.flatten(sql.collect_set(sql.from_json(sql.try_element_at("facts", sql.lit("live")), "array<int>"))).alias("live")
    version = sql.collect_set(
        sql.when(sql.col("kind") == "kafka_version", sql.try_element_at("facts", sql.lit("version")))
    ).alias("versions")
    (row,) = facts.agg(
        sql.count("*").alias("count"),
        sql.count("time_utc").alias("utc"),
        sql.collect_set("file").alias("files"),
        *words,
        *ids,
        live,
        version,
    ).collect()
    found = [pattern for n, (pattern, *_) in enumerate(WORDINGS) if row[f"w{n}"]]
    versions = [msgspec.json.decode(text) for text in row["versions"]]
    folders = [str(PurePath(file).parent) for file in row["files"]]
    root = os.path.commonpath(folders) if folders else "."
    brokers = sorted({*row["speakers"], *row["live"]})
    return Logs(release or release_of(versions, found), brokers, row["count"] == row["utc"], facts, root)
