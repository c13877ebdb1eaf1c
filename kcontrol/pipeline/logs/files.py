"""Finds the log files in files and folders, and examines each of them before Spark reads it.

If a file has lines that are too long or damaged, Spark reads a copy of the file, in which these lines are empty.
"""

import gzip
import os
import re
import stat
import zlib
from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from kcontrol.core.errors import UserError
from kcontrol.pipeline import zip_files
from kcontrol.pipeline.closed_paths import check_open

LONGEST_LINE_BYTES = 8 * 2**20
KEPT_BYTES = 1024
CHUNK_BYTES = 2**20
NAMES = re.compile(r"\.(?:log|out|txt|gz)(?:$|[.\-_\d])|^(?:server|controller|state-change|kafkaServer)", re.IGNORECASE)
LONG, CUT = "The line is longer than 8 MB.", "The compressed file is damaged in this line; the lines after it are lost."
GZ, GZIP = ".gz", b"\x1f\x8b"
TEXT_CONTROLS = b"\x00\t\n\r\x0c\x1b"


class Damaged(NamedTuple):
    """A line of a log file that Spark does not read, because it is too long or its compressed bytes are damaged."""

    # The number of the line, from 1.
    n: int
    # In bytes.
    length: int
    # The first kilobyte of the line.
    start: str
    # A sentence: the line is too long, or its compressed bytes are damaged.
    reason: str


class LogFile(NamedTuple):
    """A log file, its number of lines, and the damaged lines that Spark does not read."""

    # The path that the tables have for the file.
    path: Path
    # The file that Spark reads: a copy if there are damaged lines.
    read: Path
    lines: int
    damaged: list[Damaged]
    # The number of the given folder that contains the file, by `group_of`. Only files of a broker with equal numbers may have
    # copies of one record; without a number (None), only files of a broker in one folder.
    group: int | None = None


class NoLog(NamedTuple):
    """A file that is not read, with the reason in one sentence."""

    path: Path
    reason: str


def log_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files in `paths`, and of folders all files with names such as server.log, sorted.

    A folder that cannot be listed is returned too: `examine` gives the reason. Raises UserError for a missing or forbidden
    path, and for a folder without a log.
    """
    found: set[Path] = set()
    for path in paths:
        check_open(path)
        if path.is_dir():
            inside = {file.resolve() for file in _below(path)}
            if not inside:
                remedy = zip_files.advice(path, "name a folder with files such as server.log or state-change.log.gz")
                raise UserError(f"There is no log in {path}: {remedy}.")
            found |= inside
        elif path.exists():
            found.add(path.resolve())
        else:
            raise UserError(f"There is no file or folder {path}.")
    return sorted(found)


def _below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder that have names of logs, and the subfolders that cannot be listed."""
    closed: list[Path] = []
    for place, _, names in os.walk(folder, onerror=lambda problem: closed.append(Path(problem.filename))):
        yield from (path for path in map(Path(place).joinpath, names) if NAMES.search(path.name) and _is_file(path))
    yield from closed


def _is_file(path: Path) -> bool:
    """Return whether a path is a file; also True if permissions hide the answer, and False for a broken link."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except PermissionError:
        return True
    except OSError:  # a link to a file that is gone
        return False


def group_of(file: Path, paths: Sequence[Path]) -> int | None:
    """Return the index of the outermost folder that contains `file`, None without such a folder.

    The folders are those in `paths`, and those of the files in `paths`, in sorted order.
    """
    folders = sorted({path.resolve() if path.is_dir() else path.resolve().parent for path in paths})
    return next((number for number, folder in enumerate(folders) if file.is_relative_to(folder)), None)


def examine(path: Path, copies: Path) -> LogFile | NoLog:
    """Return the LogFile of a file that Spark can read as a log, else a NoLog with the reason.

    A log with damaged lines is copied into the folder `copies`, with these lines empty.
    """
    try:
        if reason := no_text(path):
            return NoLog(path, reason)
        return counted(path, copies)
    except OSError as problem:
        return NoLog(path, f"{path} cannot be read: {problem.strerror}.")


def counted(path: Path, copies: Path) -> LogFile:
    """Return the file `path` with its number of lines.

    If the file has damaged lines, write a copy, in which these lines are empty, into the folder `copies`.
    """
    lines, damaged = _scan(path)
    if not damaged:
        return LogFile(path, path, lines, [])
    copies.mkdir(parents=True, exist_ok=True)
    copy = copies / f"{len(list(copies.iterdir()))}.log"
    _copy(path, copy, {line.n for line in damaged})
    return LogFile(path, copy, lines, damaged)


def no_text(path: Path) -> str | None:
    """Return why a file is no log, such as "... is a ZIP file: unpack it first."; None if the file may be a log."""
    with path.open("rb") as file:
        first = file.read(CHUNK_BYTES)
    if first.startswith(zip_files.ZIP):
        return f"{path} is a ZIP file: unpack it first."
    if first.startswith(GZIP):
        if path.suffix != GZ:
            return f"{path} is a gzip file: give it a name that ends in .gz."
        first = next(chunks(path), None) or b""
    elif path.suffix == GZ and first:
        return f"{path} is no gzip file although its name ends in .gz: rename it."
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        return f"{path} is UTF-16 text: convert it to UTF-8."
    controls = sum(first.count(bytes([code])) for code in range(32) if code not in TEXT_CONTROLS)
    if controls > len(first.replace(b"\0", b"")) // 50:
        return f"{path} is a binary file, no log."
    return None


def _opened(path: Path) -> gzip.GzipFile | BufferedReader:
    return gzip.open(path) if path.suffix == GZ else path.open("rb")


def chunks(path: Path) -> Iterator[bytes | None]:
    """Yield the bytes of a file in pieces, unpacked if its name ends in .gz; yield None last if compressed bytes are damaged."""
    with _opened(path) as stream:
        try:
            while chunk := stream.read1(CHUNK_BYTES):
                yield chunk
        except (EOFError, gzip.BadGzipFile, zlib.error):
            yield None


def _scan(path: Path) -> tuple[int, list[Damaged]]:
    """Return the number of lines of a file, and its lines that Spark cannot read: too long, or damaged compressed bytes.

    At damaged compressed bytes the file ends: the bytes after them are lost.
    """
    lines, length, start, is_cut, damaged = 0, 0, b"", False, list[Damaged]()
    for chunk in chunks(path):
        if chunk is None:
            is_cut = True
            break
        end = chunk.find(b"\n")
        start += chunk[: KEPT_BYTES - len(start)] if end < 0 else chunk[: min(end, KEPT_BYTES - len(start))]
        length += len(chunk) if end < 0 else end
        if end < 0:
            continue
        if length > LONGEST_LINE_BYTES:
            damaged.append(_damaged(lines + 1, length, start, LONG))
        lines += chunk.count(b"\n")
        last = chunk.rfind(b"\n") + 1
        length, start = len(chunk) - last, chunk[last : last + KEPT_BYTES]
    if length or is_cut:
        lines += 1
        if is_cut:
            damaged.append(_damaged(lines, length, start, CUT))
        elif length > LONGEST_LINE_BYTES:
            damaged.append(_damaged(lines, length, start, LONG))
    return lines, damaged


def _damaged(n: int, length: int, start: bytes, reason: str) -> Damaged:
    return Damaged(n, length, start.replace(b"\0", b"").decode("utf-8", "replace"), reason)


def _copy(path: Path, copy: Path, left_out: set[int]) -> None:
    """Write the lines of a file to `copy`, with an empty line in place of each line whose number, from 1, is in `left_out`."""
    n = 1
    with copy.open("wb") as out:
        for chunk in chunks(path):
            for place, piece in enumerate((chunk or b"").split(b"\n")):
                if place:
                    out.write(b"\n")
                    n += 1
                if n not in left_out:
                    out.write(piece)
