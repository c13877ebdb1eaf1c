"""The tables of broker logs that grow: each round reads the appended bytes of all files, then the tables are made again.

Each round begins at the last record of a file, because more lines of that record may have been appended since the round before.
The rows of all rounds together equal those of one batch over the files.

Why a loop every two seconds and no stream of Spark: a stream refuses the window functions that number the lines and group them to
records (NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING). A source in Python would only pass lines to the same batch, and passes a
tenth of the lines per second that Spark reads from a copy of the appended bytes. Nor need such an offset survive a rotation.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from pyspark.sql import functions as sql

from kcontrol.core.errors import UserError
from kcontrol.pipeline.follow.checkpoint import Checkpoint, save
from kcontrol.pipeline.follow.followed_files import Followed, Slice, copy_slice, look, size_of_lines
from kcontrol.pipeline.logs.chosen_records import topics_in
from kcontrol.pipeline.logs.files import LogFile, NoLog, counted, group_of
from kcontrol.pipeline.logs.log_tables import FOLLOW, TABLES, Report, Written, size_of, write_tables
from kcontrol.pipeline.logs.records import parsed
from kcontrol.pipeline.logs.redaction import Names, any_of, copied, file_without_names, root_of, shown
from kcontrol.pipeline.pipeline import NEW, Chosen, publish, sentences, topics_found
from kcontrol.pipeline.redaction.stable_names import Redaction
from kcontrol.pipeline.sources import literal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ROUND_BYTES = 256 * 2**20
"""The number of bytes that a round copies, so that it needs little disk and ends soon."""
LOOK_S = 2.0
"""The seconds between two looks at the files."""
MOST_PARTS = 16
ALL_LINES = 2**62


class Following(NamedTuple):
    """The arguments of `kcontrol pipeline logs --follow`."""

    spark: SparkSession
    # The log files and the folders with log files.
    paths: Sequence[Path]
    # The folder of the tables.
    out: Path
    # The time and the topic of the log records in the tables.
    chosen: Chosen
    # Called with a text about the work that begins, such as "reading 3 files", to show progress.
    report: Report
    # Whether tables that are derived from the log records, such as `elections`, are written too.
    of_runs: bool = True
    # Which kinds of names, such as topics, are replaced in the tables; None without --redact.
    redact: Redaction | None = None


def follow(asked: Following, checkpoint: Checkpoint, *, once: bool, wait: Callable[[], object]) -> Iterator[Written]:
    """Read the log files of `asked` repeatedly; after each change publish tables, and yield their numbers of lines.

    Call `wait` between reads. With `once`, end after reading all bytes. Raises UserError for a failed write.
    """
    while True:
        _look(asked, checkpoint)
        if _read(asked, checkpoint):
            continue
        refused = _look(asked, checkpoint)
        described = _described(asked.chosen, checkpoint, refused)
        if described != checkpoint.published:
            yield _publish(asked, checkpoint, refused, described)
        elif once:
            yield Written(refused, **checkpoint.counts)
        if once:
            return
        wait()


def _look(asked: Following, checkpoint: Checkpoint) -> list[NoLog]:
    """The files that are no logs. Raises UserError if no file is a log."""
    found = look(asked.paths, asked.out, checkpoint.files, checkpoint.next_id)
    if not found.files:
        raise UserError(found.refused[0].reason if found.refused else f"There is no log in {asked.paths[0]} beside the tables.")
    checkpoint.files = found.files
    checkpoint.next_id = max([checkpoint.next_id, *(int(file.id[1:]) + 1 for file in found.files)])
    ids = {file.id for file in found.files}
    checkpoint.parts = {part: {id: until for id, until in files.items() if id in ids} for part, files in checkpoint.parts.items()}
    return found.refused


# ---------------------------------------------------------------- a round


def _read(asked: Following, checkpoint: Checkpoint) -> bool:
    """Read up to 256 MiB (ROUND_BYTES) of new bytes of the files in `checkpoint`; return whether new bytes are left.

    Their log records become a part of the table of records in `asked.out`; `checkpoint` gets the new position in each file.
    """
    unread = [file for file in checkpoint.files if file.unread or not checkpoint.parts]
    if not unread:
        return False
    with sentences(asked.out):
        folder = asked.out / NEW / "slices"
        shutil.rmtree(asked.out / NEW, ignore_errors=True)
        folder.mkdir(parents=True)
        slices, is_behind = _slices(unread, folder)
        if slices:
            asked.report(f"reading {len(slices)} files")
            _add_part(asked, checkpoint, slices)
            save(asked.out, checkpoint)
        shutil.rmtree(asked.out / NEW)
    return is_behind


def _slices(unread: Sequence[Followed], folder: Path) -> tuple[list[Slice], bool]:
    slices, left = list[Slice](), ROUND_BYTES
    for file in unread:
        if left <= 0 and not file.is_packed:
            continue
        found = copy_slice(file, folder, max(left, 2 * (file.seen - file.offset)))  # twice a last record that has no end yet
        if found is not None:
            slices.append(found)
            left -= found.copy.stat().st_size
    is_whole = {item.file.id for item in slices if item.file.is_packed or item.seen >= item.file.stamp[2]}
    return slices, any(file.id not in is_whole for file in unread)


def _add_part(asked: Following, checkpoint: Checkpoint, slices: Sequence[Slice]) -> None:
    """Write the rows of the appended bytes in `slices` as a new part (one folder of Parquet files).

    Also note in the checkpoint how far each file was read.
    """
    spark, folder = asked.spark, asked.out / FOLLOW
    logs = [counted(item.copy, item.copy.parent / "copies")._replace(path=Path(item.file.id)) for item in slices]
    read = logs if asked.redact is None else _redacted(asked, checkpoint, asked.redact, logs)
    starts = [
        (item.file.id, item.file.n - 1, item.file.n - 1 + log.lines - (not _ends_line(item.copy)))
        for item, log in zip(slices, logs, strict=True)
    ]
    before = spark.createDataFrame(starts, "id STRING, before BIGINT, ended BIGINT")
    rows = parsed(spark, read).join(sql.broadcast(before), sql.col("file") == sql.col("id"))
    name = _write_part(asked, checkpoint, rows.withColumn("n", sql.col("n") + sql.col("before")).drop("id", "before"))
    written = spark.read.parquet(literal(folder / name)).where("layout IS NOT NULL AND n <= ended")
    last = {row["file"]: row["n"] for row in written.groupBy("file").agg(sql.max("n").alias("n")).collect()}
    for item, log in zip(slices, logs, strict=True):
        _enter(checkpoint, name, item, log, last.get(item.file.id))
    if len(checkpoint.parts) > MOST_PARTS:
        _merge(asked, checkpoint, _all_rows(asked, checkpoint))


def _redacted(asked: Following, checkpoint: Checkpoint, redaction: Redaction, logs: Sequence[LogFile]) -> list[LogFile]:
    """New names are also replaced in the rows of earlier rounds."""
    # Earlier rows may contain a new name, because it was not recognised as a name there.
    names = Names(redaction, checkpoint.names)
    for log in logs:
        names.learn_file(log)
    if names.fresh and checkpoint.parts:
        _replace_late(asked, checkpoint, names)
    checkpoint.names = names.kinds
    return [copied(log, log.path, names, log.read.with_name(f"redacted-{log.path}.log")) for log in logs]


def _replace_late(asked: Following, checkpoint: Checkpoint, names: Names) -> None:
    """In the rows of earlier rounds of reading, replace the names that were first found in this round by their stable names.

    If a row has such a name, the rows of all rounds are written again, into one folder.
    """
    rows = _all_rows(asked, checkpoint)
    word = sql.regexp_extract_all("raw", sql.lit(any_of(names.fresh)), 0)
    late = [row[0] for row in rows.select(sql.explode(word)).distinct().collect()]
    if not late:
        return

    def replaced(text: Column) -> Column:
        for name in sorted(late, key=lambda name: (-len(name), name)):
            text = sql.regexp_replace(text, any_of([name]), names.of(name))
        return text

    facts = sql.transform_values("facts", lambda _, value: replaced(value))
    _merge(asked, checkpoint, rows.withColumns({"raw": replaced(sql.col("raw")), "facts": facts}))


def _ends_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 1))
        return file.read() == b"\n"


def _enter(checkpoint: Checkpoint, part: str, item: Slice, log: LogFile, last: int | None) -> None:
    """Store in the checkpoint that `item`, a copy of a log file's new bytes, was read into the folder `part`.

    `log` has the copy's number of lines. `last` is the number, in the file, of the first line of the copy's last record, or None.
    """
    file = item.file
    for files in checkpoint.parts.values():
        if file.id in files:
            files[file.id] = min(file.n, ALL_LINES if (until := files[file.id]) is None else until)
    checkpoint.parts[part][file.id] = None
    lines = file.n - 1 + log.lines
    if not file.is_packed:
        # Without a record every line that has its end was rejected: the next round begins after these lines.
        complete = log.lines - (not _ends_line(item.copy))
        next_n = last if last is not None else file.n + complete
        file.offset += size_of_lines(item.copy, next_n - file.n)
        file.n = next_n
    file.lines, file.seen, file.content, file.unread = lines, item.seen, item.content, False


def _write_part(asked: Following, checkpoint: Checkpoint, rows: DataFrame) -> str:
    """The name of a new folder below `_follow`, which the checkpoint then names."""
    checkpoint.round += 1
    name = f"part-{checkpoint.round}-{os.getpid()}"
    rows.withColumn("part", sql.lit(name)).write.parquet(str(asked.out / FOLLOW / name))
    # The caller enters the files of the part.
    checkpoint.parts[name] = {}
    return name


def _all_rows(asked: Following, checkpoint: Checkpoint) -> DataFrame:
    """Return the rows of all rounds of reading; of a record that several rounds have read, only the row of the latest round."""
    return _rows(asked, checkpoint, {file.id: (file.id, ALL_LINES) for file in checkpoint.files})


def _merge(asked: Following, checkpoint: Checkpoint, rows: DataFrame) -> None:
    """Replace all parts of the checkpoint by one part with `rows`; a part has the rows of one round of reading."""
    ids = {id for files in checkpoint.parts.values() for id in files}
    former = list(checkpoint.parts)
    name = _write_part(asked, checkpoint, rows.withColumn("ended", sql.lit(0).cast("bigint")))
    checkpoint.parts = {name: dict.fromkeys(sorted(ids))}
    assert name not in former


def _rows(asked: Following, checkpoint: Checkpoint, shown: dict[str, tuple[str, int]]) -> DataFrame:
    """Return the log records and rejected lines that the rounds of reading have found, each record from its latest round.

    A round reads appended lines. `shown` maps a file's id to (its name in the result, number of the first line left out).
    """
    # The columns are those of `parsed`. Each round wrote the new lines of the files as one part. A later part repeats a file's
    # last record: the rows of the earlier part are left out from there on. `shown` leaves out a last record that may still grow;
    # ALL_LINES leaves out no line.
    counts = [
        (part, id, shown[id][0], min(shown[id][1], ALL_LINES if until is None else until))
        for part, files in checkpoint.parts.items()
        for id, until in files.items()
    ]
    known = asked.spark.createDataFrame(counts, "part STRING, file STRING, name STRING, until BIGINT")
    parts = asked.spark.read.parquet(*(literal(asked.out / FOLLOW / part) for part in checkpoint.parts))
    rows = parts.join(sql.broadcast(known), ["part", "file"]).where("n < until")
    return rows.withColumn("file", sql.col("name")).drop("part", "name", "until", "ended")


# ---------------------------------------------------------------- the tables


def _described(chosen: Chosen, checkpoint: Checkpoint, refused: Sequence[NoLog]) -> str:
    """Changes whenever the tables must be written again."""
    files = [(file.id, file.path, file.gone, file.seen, file.unread) for file in checkpoint.files]
    return repr((list(map(str, chosen)), checkpoint.round, sorted(files), [(str(item.path), item.reason) for item in refused]))


def _names(files: Sequence[Followed]) -> dict[str, str]:
    """Return a name for each file, by file id: the path, or "path#1", "path#2" ... for further files with this path."""
    names, used = dict[str, str](), defaultdict[str, int](int)
    # Files that are gone come last, so that an existing file gets the plain path.
    for file in sorted(files, key=lambda file: (file.gone, int(file.id[1:]))):
        names[file.id] = f"{file.path}#{used[file.path]}" if used[file.path] else file.path
        used[file.path] += 1
    return names


def _publish(asked: Following, checkpoint: Checkpoint, refused: list[NoLog], described: str) -> Written:
    """Make all tables of the log lines that `checkpoint` has, and put them in place of the tables in the folder.

    `refused` are files that are no log. `described`, a text by `_described`, is stored: the tables are made again when a later
    text differs.
    """
    names, chosen = _names(checkpoint.files), asked.chosen
    sizes = [size_of(file.path) for file in refused]
    if asked.redact is not None:
        found, root = Names(asked.redact, checkpoint.names), root_of(asked.paths)
        names = _names(
            [msgspec.structs.replace(file, path=str(shown(Path(file.path), root, found))) for file in checkpoint.files]
        )
        refused = [file_without_names(file, root, found) for file in refused]
        chosen = chosen._replace(topic=chosen.topic and found.of(chosen.topic))
    held = {file.id: file.n for file in checkpoint.files if file.unread and not file.is_packed}
    until = {id: (name, held.get(id, ALL_LINES)) for id, name in names.items()}
    files = [
        LogFile(
            Path(names[file.id]), Path(), held[file.id] - 1 if file.id in held else file.lines, [],
            group_of(Path(file.path), asked.paths),
        )
        for file in checkpoint.files
    ]  # fmt: skip
    with sentences(asked.out):
        shutil.rmtree(asked.out / NEW, ignore_errors=True)
        rows = _rows(asked, checkpoint, until)
        if chosen.topic is not None and chosen.topic not in (named := topics_in(rows)):
            asked.report(f"no line names the topic {asked.chosen.topic} yet; {topics_found(named)}")
        written, of_runs = write_tables(
            asked.spark, rows, files, refused, sizes, asked.out / NEW, asked.report, chosen, of_runs=asked.of_runs
        )
        with uninterrupted():
            publish(asked.out, (*TABLES, *of_runs))
            checkpoint.published = described
            checkpoint.counts = {name: count for name, count in written._asdict().items() if name != "refused"}
            save(asked.out, checkpoint)
    return written


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay a Ctrl-C until the end of the `with` block, so that the tables are published as a whole."""
    signals: list[int] = []
    former = signal.signal(signal.SIGINT, lambda number, _: signals.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
    if signals:
        raise KeyboardInterrupt
