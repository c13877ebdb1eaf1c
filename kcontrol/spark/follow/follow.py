"""The tables of broker logs that grow: each round reads the appended bytes of all files, then the tables are made again.

A round copies the bytes that were not read, from the beginning of each file's last record on, and Spark reads the copies like
whole logs: a line that starts a record needs no line before it. The rows of all rounds together are the rows of a batch over the
files as they are now (see `checkpoint.py`). Every LOOK_S seconds a look at the files finds their sizes. If a file has grown since
it was read, more lines of its last record may come: the tables get this record when a look finds that the file has not grown.
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

from pyspark.sql import functions as sql

from kcontrol.core.errors import UserError
from kcontrol.spark.follow.checkpoint import Checkpoint, save
from kcontrol.spark.follow.followed_files import Followed, Slice, copy_slice, look, size_of_lines
from kcontrol.spark.logs.files import LogFile, NoLog, counted
from kcontrol.spark.logs.log_tables import FOLLOW, TABLES, Report, Written, size_of, write_tables
from kcontrol.spark.logs.records import parsed
from kcontrol.spark.pipeline import NEW, Chosen, publish, sentences
from kcontrol.spark.sources import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROUND_BYTES = 256 * 2**20
"""The number of bytes that a round copies, so that it needs little disk and ends soon."""
LOOK_S = 2.0
"""The seconds between two looks at the files."""
MOST_PARTS = 16
ALL_LINES = 2**62


class Following(NamedTuple):
    """What is followed, and how the tables are made; `report` is called with the name of each step.

    With `of_runs` the tables of runs, such as `leaderships`, are written too.
    """

    spark: SparkSession
    paths: Sequence[Path]
    out: Path
    chosen: Chosen
    report: Report
    of_runs: bool = True


def follow(asked: Following, checkpoint: Checkpoint, *, once: bool, wait: Callable[[], object]) -> Iterator[Written]:
    """Yield the numbers of lines each time that new tables are published, and `wait` before each further look.

    With `once`, end when all bytes that a look found are in the tables; then yield the numbers even if no table has changed.
    `checkpoint` is the one of the folder `asked.out`, as `opened` yields it. Raises UserError like `log_tables.write_logs`.
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
    """Update the files of the checkpoint; return the files that are not read. Raises UserError if there is no log."""
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
    """Read at most ROUND_BYTES of the unread bytes that the last look at the files found; return whether more are left."""
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
    """Write the rows of these slices as a new part, and enter into the checkpoint how far each file was read."""
    spark, folder = asked.spark, asked.out / FOLLOW
    logs = [counted(item.copy, item.copy.parent / "copies")._replace(path=Path(item.file.id)) for item in slices]
    starts = [
        (item.file.id, item.file.n - 1, item.file.n - 1 + log.lines - (not _ends_line(item.copy)))
        for item, log in zip(slices, logs, strict=True)
    ]
    before = spark.createDataFrame(starts, "id STRING, before BIGINT, ended BIGINT")
    rows = parsed(spark, logs).join(sql.broadcast(before), sql.col("file") == sql.col("id"))
    name = _write_part(asked, checkpoint, rows.withColumn("n", sql.col("n") + sql.col("before")).drop("id", "before"))
    written = spark.read.parquet(literal(folder / name)).where("layout IS NOT NULL AND n <= ended")
    last = {row["file"]: row["n"] for row in written.groupBy("file").agg(sql.max("n").alias("n")).collect()}
    for item, log in zip(slices, logs, strict=True):
        _enter(checkpoint, name, item, log, last.get(item.file.id))
    if len(checkpoint.parts) > MOST_PARTS:
        _merge(asked, checkpoint)


def _ends_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 1))
        return file.read() == b"\n"


def _enter(checkpoint: Checkpoint, part: str, item: Slice, log: LogFile, last: int | None) -> None:
    """Enter a slice that was read into the checkpoint; `last` is the line at which its last record begins.

    Without a record (None) every line that has its end was rejected: the next round begins after these lines.
    """
    file = item.file
    for files in checkpoint.parts.values():
        if file.id in files:
            files[file.id] = min(file.n, ALL_LINES if (until := files[file.id]) is None else until)
    checkpoint.parts[part][file.id] = None
    lines = file.n - 1 + log.lines
    if not file.is_packed:
        complete = log.lines - (not _ends_line(item.copy))
        next_n = last if last is not None else file.n + complete
        file.offset += size_of_lines(item.copy, next_n - file.n)
        file.n = next_n
    file.lines, file.seen, file.content, file.unread = lines, item.seen, item.content, False


def _write_part(asked: Following, checkpoint: Checkpoint, rows: DataFrame) -> str:
    """Write rows as a new part of the checkpoint, which has no files yet, and return its name."""
    checkpoint.round += 1
    name = f"part-{checkpoint.round}-{os.getpid()}"
    rows.withColumn("part", sql.lit(name)).write.parquet(str(asked.out / FOLLOW / name))
    checkpoint.parts[name] = {}
    return name


def _merge(asked: Following, checkpoint: Checkpoint) -> None:
    """Replace all parts (the rows of the rounds so far) by one part, without the rows that a later part has again."""
    rows = _rows(asked, checkpoint, {file.id: (file.id, ALL_LINES) for file in checkpoint.files})
    ids = {id for files in checkpoint.parts.values() for id in files}
    former = list(checkpoint.parts)
    name = _write_part(asked, checkpoint, rows.withColumn("ended", sql.lit(0).cast("bigint")))
    checkpoint.parts = {name: dict.fromkeys(sorted(ids))}
    assert name not in former


def _rows(asked: Following, checkpoint: Checkpoint, shown: dict[str, tuple[str, int]]) -> DataFrame:
    """Return the rows of all parts that count; `shown` has, by a file's id, its name and its first line that is left out."""
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
    """Return a text that is another one whenever the tables would be."""
    files = [(file.id, file.path, file.gone, file.seen, file.unread) for file in checkpoint.files]
    return repr((list(map(str, chosen)), checkpoint.round, sorted(files), [(str(item.path), item.reason) for item in refused]))


def _names(files: Sequence[Followed]) -> dict[str, str]:
    """Return the name of each file by its id: its path; a file that is gone gets #1, #2 ... after a path that is in use."""
    names, used = dict[str, str](), defaultdict[str, int](int)
    for file in sorted(files, key=lambda file: (file.gone, int(file.id[1:]))):
        names[file.id] = f"{file.path}#{used[file.path]}" if used[file.path] else file.path
        used[file.path] += 1
    return names


def _publish(asked: Following, checkpoint: Checkpoint, refused: list[NoLog], described: str) -> Written:
    """Make all tables again from the rows of the checkpoint, and put them in the place of the former tables.

    `refused` are the files that are no log; the table `rejected` has a row for each. `described` says which files the tables are
    of; the checkpoint keeps it.
    """
    names = _names(checkpoint.files)
    held = {file.id: file.n for file in checkpoint.files if file.unread and not file.is_packed}
    shown = {id: (name, held.get(id, ALL_LINES)) for id, name in names.items()}
    files = [
        LogFile(Path(names[file.id]), Path(), held[file.id] - 1 if file.id in held else file.lines, [])
        for file in checkpoint.files
    ]
    with sentences(asked.out):
        shutil.rmtree(asked.out / NEW, ignore_errors=True)
        rows, sizes = _rows(asked, checkpoint, shown), [size_of(file.path) for file in refused]
        written, of_runs = write_tables(
            asked.spark, rows, files, refused, sizes, asked.out / NEW, asked.report, asked.chosen, of_runs=asked.of_runs
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
