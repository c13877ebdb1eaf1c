"""Which bytes of growing log files were read, and which file of a rotated folder continues a file of an earlier scan.

A file is recognised by its content, not by its name: its first and last kilobyte of the bytes that were read must be equal.
So a file that was renamed, copied, compressed or truncated is neither read twice nor mixed up with the file that takes its name:

| what happens to a file | what the next scan finds |
|---|---|
| lines are appended | a file that continues the known file: the appended bytes are read |
| it is renamed, or copied and deleted | the known file under a new name: the rows that were read get the name |
| it is compressed | the known file under a new name: the compressed file is read as a whole |
| it is copied, then truncated | the copy has the content that was read; the truncated file is a new file |
| it is deleted, or truncated without a copy | a file that is gone: its rows stay |

If several files have the content of a known file, an unchanged file is preferred, then the file with the known inode, then any
other file in this folder (`TESTS`). The functions here do not use Spark.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from kcontrol.core.errors import UserError
from kcontrol.pipeline.logs.files import CHUNK_BYTES, GZ, NoLog, chunks, log_files, no_text

EDGE_BYTES = 1024
Stamp = tuple[int, int, int, int]
"""The device, the inode, the size in bytes and the time of the last change in ns of a file."""


class Followed(msgspec.Struct):
    """A log file, and the part of it that was read."""

    # "f1", "f2" and so on; a renamed file keeps its id.
    id: str
    # Its name when the folder was last listed.
    path: str
    # Device, inode, size in bytes, and last change in ns, all of that time.
    stamp: Stamp
    # The first `seen` bytes were read; of a compressed file, unpacked bytes.
    seen: int = 0
    # The number of lines in these bytes.
    lines: int = 0
    # A hash of these bytes, as `fingerprint` returns it; "" if a compressed file is damaged.
    content: str = ""
    # The byte, from 0, and the number of the line, from 1, at which the last record begins; 0 and 1 for a compressed file, which
    # is read as a whole.
    offset: int = 0
    n: int = 1
    # The file was not there when the folder was last listed.
    gone: bool = False
    # The file has bytes that were not read.
    unread: bool = False

    @property
    def is_packed(self) -> bool:
        """Whether this log file is compressed: its name ends in ".gz"."""
        return self.path.endswith(GZ)


class Present(NamedTuple):
    """A file that a scan of the followed paths found; `reason` is None if the file is read as a log, else why it is not read."""

    path: Path
    # Device, inode, size in bytes, and last change in ns; zeros if the file cannot be opened.
    stamp: Stamp
    reason: str | None


class Look(NamedTuple):
    """The outcome of a scan of the followed paths: the files that are followed, gone files included, and the files not read."""

    files: list[Followed]
    refused: list[NoLog]


class Slice(NamedTuple):
    """A copy of a log file's bytes from `file.offset` up to `seen`, or of a whole compressed file."""

    file: Followed
    copy: Path
    seen: int
    # The fingerprint of the first `seen` bytes of the log file.
    content: str


def look(paths: Sequence[Path], out: Path, known: Sequence[Followed], next_id: int) -> Look:
    """Scan `paths`, except files below `out`; return the log files, and the files that are no logs.

    Files of earlier scans (`known`) keep their ids; others get f<number>, from `next_id` on. Without known files, raises
    UserError for a path without a log.
    """
    present = list(_present(paths, out.resolve(), known))
    logs = [item for item in present if item.reason is None]
    found = _matched(logs, known)
    # A new file gets the id f<number>.
    ids = (f"f{number}" for number in range(next_id, next_id + len(logs)))
    files = [_continued(found[item.path], item) if item.path in found else _new(next(ids), item) for item in logs]
    matched = {file.id for file in files}
    lost = [file for file in known if file.id not in matched and file.seen and not _is_elsewhere(file, logs, found, present)]
    # A known file that is gone stays in the result, unless another file has its content.
    gone = [msgspec.structs.replace(file, gone=True, unread=False) for file in lost]
    return Look(files + gone, [NoLog(item.path, item.reason) for item in present if item.reason is not None])


def _new(id: str, item: Present) -> Followed:
    return _continued(Followed(id, str(item.path), (0, 0, 0, 0)), item)


def _continued(file: Followed, item: Present) -> Followed:
    found = msgspec.structs.replace(file, path=str(item.path), stamp=item.stamp, gone=False)
    if not found.is_packed:
        return msgspec.structs.replace(found, unread=item.stamp[2] > file.seen)
    return msgspec.structs.replace(found, unread=file.unread or file.stamp != item.stamp, offset=0, n=1)


def _present(paths: Sequence[Path], out: Path, known: Sequence[Followed]) -> Iterator[Present]:
    for path in _listed(paths, known):
        try:
            with path.open("rb") as file:
                stamp = _stamp(file)
            if not path.is_relative_to(out):
                yield Present(path, stamp, no_text(path))
        except FileNotFoundError:  # renamed after it was listed
            continue
        except OSError as problem:
            yield Present(path, (0, 0, 0, 0), f"{path} cannot be read: {problem.strerror}.")


def _listed(paths: Sequence[Path], known: Sequence[Followed]) -> list[Path]:
    """Return, sorted, the files in `paths`, the log files in folders of `paths`, and renamed files of `known`.

    `known` are the files that earlier scans found; a renamed file is such as "server.log.1" for "server.log".
    """
    # Without known files a path without a log is an error of the user.
    if not known:
        return log_files(paths)
    inodes = {file.stamp[:2] for file in known}
    found: set[Path] = set()
    for path in paths:
        with contextlib.suppress(UserError):  # a rotation may leave a moment without a log
            found.update(log_files([path]))
        if not path.is_dir() and path.parent.is_dir():
            found.update(
                other.resolve()
                for other in path.parent.iterdir()
                if other.name.startswith(f"{path.name}.") and (other.stat().st_dev, other.stat().st_ino) in inodes
            )
    return sorted(found)


def _stamp(file: BinaryIO) -> Stamp:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


# ---------------------------------------------------------------- which file continues which file

TESTS: tuple[Callable[[Followed, Present], bool], ...] = (
    lambda file, item: file.stamp == item.stamp,
    lambda file, item: file.stamp[:2] == item.stamp[:2] and continues(file, item),
    lambda file, item: _is_beside(file, item) and continues(file, item),
)
"""Whether a file that was found is a known file, the strongest test first: an unchanged file, its inode, a copy of it."""


def _matched(logs: Sequence[Present], known: Sequence[Followed]) -> dict[Path, Followed]:
    """A known file may have grown, been renamed or copied; a new file is left out."""
    free, found = {file.id: file for file in known}, dict[Path, Followed]()
    for test in TESTS:
        for item in logs:
            file = next((file for file in free.values() if item.path not in found and test(file, item)), None)
            if file is not None:
                found[item.path] = free.pop(file.id)
    return found


def _is_beside(file: Followed, item: Present) -> bool:
    return file.seen > 0 and Path(file.path).parent == item.path.parent


def _is_elsewhere(file: Followed, logs: Sequence[Present], found: dict[Path, Followed], present: Sequence[Present]) -> bool:
    """Whether `file` is no log any more, or another log in its folder begins with the bytes read from it."""
    # If `file` was gone before this scan, only new and changed logs are compared.
    if any(item.reason is not None and item.stamp[:2] == file.stamp[:2] for item in present):
        return True
    changed = [item for item in logs if not file.gone or item.path not in found or found[item.path].stamp != item.stamp]
    return any(_is_beside(file, item) and continues(file, item) for item in changed)


def continues(file: Followed, item: Present) -> bool:
    """Return whether the file `item` begins with all bytes that were read from `file` before."""
    # The compressed file was damaged, because its writer had not ended: its name or its inode must be equal.
    if file.seen and not file.content:
        return file.path == str(item.path) or file.stamp[:2] == item.stamp[:2]
    try:
        return fingerprint(item.path, file.seen) == file.content
    except OSError:
        return False


def fingerprint(path: Path, size: int) -> str | None:
    """Of the first and last kilobyte, unpacked; None if the file is shorter than `size`."""
    if path.name.endswith(GZ):
        whole, found = unpacked(path, size)
        return found if whole == size else None
    with path.open("rb") as file:
        return _edges(file, size) if _stamp(file)[2] >= size else None


def _edges(file: BinaryIO, size: int) -> str:
    file.seek(0)
    first = file.read(min(size, EDGE_BYTES))
    file.seek(max(0, size - EDGE_BYTES))
    return _hash(first, file.read(min(size, EDGE_BYTES)))


def _hash(first: bytes, last: bytes) -> str:
    return hashlib.sha256(first + last).hexdigest() if first else ""


def unpacked(path: Path, most: int | None = None) -> tuple[int, str]:
    """Return (number of unpacked bytes of a compressed file, at most `most`; their hash, as `fingerprint` returns it).

    If the file is damaged before `most` bytes, return the number of bytes before the damage, and "".
    """
    size, first, last = 0, b"", b""
    for chunk in chunks(path):
        if chunk is None:
            return size, ""
        part = chunk if most is None else chunk[: most - size]
        first += part[: EDGE_BYTES - len(first)]
        last = (last + part)[-EDGE_BYTES:]
        size += len(part)
        if size == most:
            break
    return size, _hash(first, last)


# ---------------------------------------------------------------- the bytes that were not read


def copy_slice(file: Followed, folder: Path, most: int) -> Slice | None:
    """Copy at most `most` bytes of a log file to `folder`, from the beginning of the last record that was read; return the Slice.

    Return None if the file was replaced or renamed meanwhile.
    """
    copy = folder / (f"{file.id}.log{GZ}" if file.is_packed else f"{file.id}.log")
    try:
        with Path(file.path).open("rb") as source, copy.open("wb") as target:
            if _stamp(source)[:2] != file.stamp[:2] or (not file.is_packed and _edges(source, file.seen) != file.content):
                return None
            source.seek(file.offset)
            # A compressed file is copied and unpacked as a whole.
            end = file.stamp[2] if file.is_packed else min(file.stamp[2], file.offset + most)
            size = _copy(source, target, end - file.offset)
            if not file.is_packed:
                return Slice(file, copy, file.offset + size, _edges(source, file.offset + size))
    except FileNotFoundError:  # renamed since the look
        return None
    return Slice(file, copy, *unpacked(copy))


def _copy(source: BinaryIO, target: BinaryIO, size: int) -> int:
    left = size
    while left and (chunk := source.read(min(left, CHUNK_BYTES))):
        target.write(chunk)
        left -= len(chunk)
    return size - left


def size_of_lines(path: Path, lines: int) -> int:
    """Return the number of bytes in the first `lines` lines of a file."""
    size = 0
    for chunk in chunks(path):
        if lines == 0 or chunk is None:
            break
        breaks = chunk.count(b"\n")
        if breaks < lines:
            lines, size = lines - breaks, size + len(chunk)
            continue
        place = -1
        for _ in range(lines):
            place = chunk.index(b"\n", place + 1)
        return size + place + 1
    return size
