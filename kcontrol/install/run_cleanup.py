"""Finds the folder of the journals of runs, and deletes the oldest journals when they are too many or too large.

An index in the folder lists the journals that may be deleted; a journal of `lab.save(path)` is not listed.
"""

import fcntl
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from kcontrol.install import progress
from kcontrol.install.workspace import SHIPPED, WORK

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

    Outside a learner's folder, return `runs` in the working directory, or `work/runs` in the project itself.
    """
    current = Path.cwd()
    # In the project itself `work/runs`, anywhere else `runs` in the working directory.
    default = WORK if current.is_relative_to(SHIPPED) else current
    return (progress.folder() or default) / NAME


def begin(path: Path) -> None:
    """Add the journal `path` of a new run to the index of journals that may be deleted.

    Raises OSError if the folder cannot be written.
    """
    # Old runs of notebooks are deleted by the next `./run lab`, those of scripts by the first new run.
    if "ipykernel.kernelapp" not in sys.modules and path.parent not in _cleared:
        _cleared.add(path.parent)
        if message := clear(path.parent):
            print(f"kcontrol: {message}", file=sys.stderr)
    with _index(path.parent) as index:
        index.write(f"{os.getpid()} {path.name}\n")


def keep(path: Path) -> None:
    """Remove the journal `path` from its folder's index of journals that may be deleted, so that it is kept."""
    if (path.parent / INDEX).is_file():
        with _index(path.parent) as index:
            _rewrite(index, (entry for entry in _entries(index, path.parent) if entry.path.name != path.name))


def clear(place: Path) -> str:
    """If the folder `place` has more than 200 journals or 50 MB of journals, delete the oldest; at most 100 and 25 MB remain.

    Return a sentence about the deletion, "" without deletion. Raises OSError if a deletion fails.
    """
    if not (place / INDEX).is_file():
        return ""
    with _index(place) as index:
        files = (entry for entry in _entries(index, place) if entry.path.is_file() and not entry.path.is_symlink())
        entries = sorted(files, key=lambda entry: entry.path.name)
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
    """Yield the oldest journals until at most 100 journals and 25 MB remain; skip those that are still written.

    Yield nothing if `entries` are at most 200 journals (MOST_RUNS) and 50 MB (MOST_MB).
    """
    sizes = {entry: entry.path.stat().st_size for entry in entries}
    runs, size = len(entries), sum(sizes.values())
    if runs <= MOST_RUNS and size <= MOST_MB * 1_000_000:
        return
    for entry in entries:
        if runs <= MOST_RUNS // 2 and size <= MOST_MB * 500_000:
            return
        # A journal that a running process still writes stays.
        if not _is_running(entry.pid):
            runs, size = runs - 1, size - sizes[entry]
            yield entry


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
    """The locked index of the journals that may be deleted: a process id and a file name per line."""
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
