"""Reads the table `records` of broker logs as log lines in the order of time.

Only lines with facts are read: values in a message that matches `log_lines.tsv`. Times are UTC if the zone of each such line is
known, else as written.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow.parquet as parquet
from pyspark.sql import Window
from pyspark.sql import functions as sql

from kcontrol.pipeline.log_journal.log_line import Line
from kcontrol.pipeline.log_journal.releases import KINDS, WORDINGS, newest, release_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LINES = "lines"
COLUMNS = ["file", "n", "at_ms", "kind", "facts", "broker"]
BATCH = 10_000
SLOT_LINES = 500_000
AS_JSON = """concat('{', array_join(transform(map_entries(facts), e -> concat('"', e.key, '":', e.value)), ','), '}')"""
"""The SQL expression that turns a map from names to values as JSON into one JSON object."""


class Logs(NamedTuple):
    """The broker logs of a folder: their release, the ids of brokers that they name, and whether their times are UTC."""

    release: str
    brokers: list[int]
    is_utc: bool
    # The rows of the table `records` whose message matches a row of `log_lines.tsv`; the column `facts` has the values in it.
    facts: DataFrame
    # The folder that has all files.
    root: str

    @property
    def zone(self) -> str:
        """The zone of the times: "in UTC", or "as written" if the zone of a line is not known."""
        return "in UTC" if self.is_utc else "as written"

    def lines(self, folder: Path | None = None) -> Iterator[Line]:
        """Yield the log lines that match `log_lines.tsv` and have a time, in the order of time, file and line number.

        Spark writes the sorted lines to a new folder in `folder` or in a temporary folder. The new folder is deleted at the end.
        """
        # Only a part of the lines is in memory at a time.
        with contextlib.ExitStack() as stack:
            parent = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kcontrol-lines-")))
            stack.callback(shutil.rmtree, parent / LINES, ignore_errors=True)
            self._sort(parent / LINES)
            for slot in sorted((parent / LINES).glob("slot=*"), key=lambda path: int(path.name.partition("=")[2])):
                for file in slot.glob("*.parquet"):
                    yield from self._of_file(file)

    def _sort(self, place: Path) -> None:
        """Write the log lines as Parquet into the folder `place`: one file per interval of time, sorted by time."""
        at = sql.unix_millis("time_utc") if self.is_utc else sql.expr("unix_millis(CAST(local_time AS TIMESTAMP))")
        rows = self.facts.where("local_time IS NOT NULL")
        (found,) = rows.agg(sql.count("*").alias("lines"), sql.min(at).alias("first"), sql.max(at).alias("last")).collect()
        if not found["lines"]:
            return
        slots = 1 + found["lines"] // SLOT_LINES
        width = 1 + (found["last"] - found["first"]) // slots
        in_file = Window.partitionBy("file").orderBy("n")
        chosen = rows.select("file", "n", at.alias("own_ms"), "kind", sql.expr(AS_JSON).alias("facts"), "broker").select(
            "file", "n", sql.max("own_ms").over(in_file).alias("at_ms"), "kind", "facts", "broker"
        )
        slot = sql.floor((sql.col("at_ms") - found["first"]) / width).alias("slot")
        ordered = chosen.select("*", slot).repartition("slot").sortWithinPartitions("slot", "at_ms", "file", "n")
        ordered.write.partitionBy("slot").parquet(str(place))

    def _of_file(self, file: Path) -> Iterator[Line]:
        decode = msgspec.json.Decoder(dict[str, Any]).decode
        names = dict[str, str]()
        for batch in parquet.ParquetFile(file).iter_batches(batch_size=BATCH, columns=COLUMNS):
            for path, n, at_ms, kind, facts, broker in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if path not in names:
                    names[path] = self.name(path)
                yield Line(names[path], n, at_ms, kind, decode(facts), broker)

    def name(self, file: str) -> str:
        """Return the path of the log file `file` relative to the folder that has all log files."""
        return os.path.relpath(file, self.root)


def logs_of(records: DataFrame, release: str | None = None) -> Logs:
    """Return the broker logs of the table `records`; without `release` the release is found from the log lines."""
    facts = records.where("kind <> 'other'")
    speaker = sql.coalesce("broker", sql.try_element_at("facts", sql.lit("controller")).try_cast("int"))
    live = sql.flatten(sql.collect_set(sql.from_json(sql.try_element_at("facts", sql.lit("live")), "array<int>"))).alias("live")
    version = sql.when(sql.col("kind") == "kafka_version", sql.try_element_at("facts", sql.lit("version")))
    (row,) = facts.agg(
        sql.count("*").alias("count"), sql.count("time_utc").alias("utc"), sql.collect_set("file").alias("files"),
        sql.collect_set(speaker).alias("speakers"), live, sql.collect_set(version).alias("versions"),
    ).collect()  # fmt: skip
    release = release or newest(msgspec.json.decode(text) for text in row["versions"]) or release_of((), _wordings(facts))
    folders = [str(PurePath(file).parent) for file in row["files"]]
    root = os.path.commonpath(folders) if folders else "."
    return Logs(release, sorted({*row["speakers"], *row["live"]}), row["count"] == row["utc"], facts, root)


def _wordings(facts: DataFrame) -> list[str]:
    """Return the patterns in WORDINGS of `releases.py` that match at least one log line of `facts`.

    Each pattern matches a wording that only some releases of Kafka print.
    """
    raw = sql.col("raw")
    tests = [sql.max(raw.contains(part) & raw.rlike(pattern)).alias(f"w{n}") for n, (part, pattern, *_) in enumerate(WORDINGS)]
    (row,) = facts.where(sql.col("kind").isin(*KINDS)).agg(*tests).collect()
    return [pattern for n, (_, pattern, *_) in enumerate(WORDINGS) if row[f"w{n}"]]
