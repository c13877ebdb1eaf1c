"""Finds the folder in which runs write their journals, and deletes the oldest of them when they are too many or too large.

An index in the folder lists the files that may be deleted; a journal of `lab.save(path)` is not among them.
"""

from __future__ import annotations

import fcntl
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from kcontrol.install import progress
from kcontrol.install.workspace import PROJECT

NAME = "runs"
INDEX = ".automatic"
LINE = re.compile(r"(\d+) (\d{8}-\d{6}-[A-Za-z0-9-]*\.jsonl)")
MOST_RUNS, MOST_MB = 200, 50
"""Above one of these limits the oldest runs are deleted until both are at half of the limit."""


_cleared: set[Path] = set()


class Entry(NamedTuple):
    """A journal that may be deleted: the id of the process that writes it, and the path of its file."""

    pid: int
    path: Path


def folder() -> Path:
    """Return the folder of runs: `runs` in the learner's folder that contains the working directory.

    If the working directory is in no learner's folder, it is `work/runs` of the project for a working directory in the project,
    else `runs` in the working directory.
    """
    current = Path.cwd()
    default = PROJECT / "work" if current.is_relative_to(PROJECT) else current
    return (progress.folder() or default) / NAME


def begin(path: Path) -> None:
    """Add the file `path` of a new run to the index of the runs in its folder that may be deleted.

    In a script the first run that this process begins in a folder also deletes the oldest runs above the limits (`clear`); runs
    of notebooks are deleted by the next start of JupyterLab (`./run lab`). Raises OSError if the folder cannot be written.
    """
    if "ipykernel.kernelapp" not in sys.modules and path.parent not in _cleared:
        _cleared.add(path.parent)
        if message := clear(path.parent):
            print(f"kcontrol: {message}", file=sys.stderr)
    with _index(path.parent) as index:
        index.write(f"{os.getpid()} {path.name}\n")


def keep(path: Path) -> None:
    """Remove the file `path`, a journal that the learner has saved with `lab.save(path)`, from the index of its folder.

    So the file is never deleted.

    Do nothing if the folder of the file has no index.
    """
    if (path.parent / INDEX).is_file():
        with _index(path.parent) as index:
            _rewrite(index, (entry for entry in _entries(index, path.parent) if entry.path.name != path.name))


def clear(place: Path) -> str:
    """Delete the oldest journals in the folder `place` if there are more than MOST_RUNS, or if they have more than MOST_MB.

    The deletion ends when both numbers are at most half of their limits. Return a sentence about it; "" if nothing was deleted.
    Only journals that labs have entered in the folder's index are deleted, and none of a running process. Raises OSError if a
    deletion fails.
    """
    if not (place / INDEX).is_file():
        return ""
    with _index(place) as index:
        entries = sorted((entry for entry in _entries(index, place) if _is_file(entry.path)), key=lambda entry: entry.path.name)
        oldest = list(_too_many(entries))
        for entry in oldest:
            entry.path.unlink(missing_ok=True)
        if oldest:
            _rewrite(index, (entry for entry in entries if entry not in oldest))
    if not oldest:
        return ""
    return (
        f"The {len(oldest)} oldest runs in {place} have been deleted, since there were more than {MOST_RUNS} or more than "
        f"{MOST_MB} MB; a file of lab.save(path) is never deleted."
    )


def _too_many(entries: list[Entry]) -> Iterator[Entry]:
    """Yield the journals to delete if there are more than MOST_RUNS of them, or if their files have more than MOST_MB.

    `entries` has the oldest journal first. Journals are yielded until both numbers are at most half of their limits; a journal
    whose process still runs is not yielded.
    """
    sizes = {entry: entry.path.stat().st_size for entry in entries}
    runs, size = len(entries), sum(sizes.values())
    if runs <= MOST_RUNS and size <= MOST_MB * 1_000_000:
        return
    for entry in entries:
        if runs <= MOST_RUNS // 2 and size <= MOST_MB * 500_000:
            return
        if not _is_running(entry.pid):
            runs, size = runs - 1, size - sizes[entry]
            yield entry


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # the process of another user
        return True
    return True


@contextmanager
def _index(place: Path) -> Iterator[IO[str]]:
    """Yield the index of the runs in the folder `place`, open for reading and appending, and locked within the `with` block.

    It is a text file with a process id and a file name per line, and is created if it does not exist.
    """
    with (place / INDEX).open("a+", encoding="utf-8") as index:
        fcntl.flock(index, fcntl.LOCK_EX)
        yield index


def _entries(index: IO[str], place: Path) -> list[Entry]:
    index.seek(0)
    return [Entry(int(match[1]), place / match[2]) for match in filter(None, map(LINE.fullmatch, index.read().splitlines()))]


def _rewrite(index: IO[str], entries: Iterable[Entry]) -> None:
    text = "".join(f"{entry.pid} {entry.path.name}\n" for entry in entries)
    index.seek(0)
    index.truncate()
    index.write(text)
