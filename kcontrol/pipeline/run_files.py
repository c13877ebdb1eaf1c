"""The journal files of many runs, and each run's name, day and clock ("virtual", "wall" or "none")."""

import contextlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from kcontrol.core.errors import UserError
from kcontrol.journal import journal_file
from kcontrol.pipeline import zip_files
from kcontrol.pipeline.closed_paths import check_open
from kcontrol.views import clock

SUFFIX = ".jsonl"
UNKNOWN_DAY = "unknown"
DATED = re.compile(r"(\d{4})(\d{2})(\d{2})-(\d{6})-")
CHUNK_BYTES = 2**20


class JournalOfRun(NamedTuple):
    path: Path
    # The run's name.
    run: str
    # "virtual" (simulated time), "wall", or "none" (a recording of brokers).
    clock: clock.Clock
    # The time in the file's name, in the zone of the machine that wrote the file; else the time of the first record of a "wall"
    # journal, in UTC.
    began: datetime | None

    @property
    def day(self) -> str:
        """The day on which the run began as YYYY-MM-DD; "unknown" if `began` is None."""
        return self.began.date().isoformat() if self.began else UNKNOWN_DAY


class Refused(NamedTuple):
    """A file that is no journal, with the reason in one sentence."""

    path: Path
    reason: str


class _First(msgspec.Struct):
    # The first line of a journal: the record of kind `run`, with the settings of the run as fields.
    kind: str
    at_ms: int
    fields: dict[str, object]


def journal_files(path: Path) -> list[Path]:
    """Return [path] for a file, and for a folder the absolute paths of all files `*.jsonl` in it and below it, sorted.

    Raises UserError if the path does not exist or this user may not read it, or if the folder has no such file.
    """
    check_open(path)
    if path.is_file():
        return [path.resolve()]
    found = sorted(file for file in path.resolve().rglob(f"*{SUFFIX}") if file.is_file()) if path.is_dir() else []
    if not found:
        remedy = zip_files.advice(path, "a lab keeps one in the folder runs, beside the notebook")
        raise UserError(f"There is no journal in {path}: {remedy}.")
    return found


def journals_of(paths: Sequence[Path]) -> tuple[list[JournalOfRun], list[Refused]]:
    """Return the journals in files and folders, sorted by run name, and the files that cannot be read as journals, with reasons.

    Raises UserError for a path that does not exist, and for a folder without a file whose name is that of a journal.
    """
    # The name of a run is the path of its file from the folder in `paths`, such as "anna/runs/20260131-093000-simulated".
    names: dict[Path, str] = {}
    for path in paths:
        # A link to a journal, such as latest.jsonl, is no further run: the journal's own name counts.
        for file in sorted(journal_files(path), key=Path.is_symlink):
            root = path.resolve() if path.is_dir() else file.parent
            names.setdefault(file.resolve(), file.relative_to(root).as_posix().removesuffix(SUFFIX))
    found = [_opened(file, names[file]) for file in sorted(names)]
    journals = _named([j for j in found if isinstance(j, JournalOfRun)])
    return sorted(journals, key=lambda j: j.run), [r for r in found if isinstance(r, Refused)]


def _opened(path: Path, run: str) -> JournalOfRun | Refused:
    """Return a description of the journal file, from its first line; a Refused if the file is unreadable or no journal.

    `run` is the run's name. A journal of a later version than this kcontrol reads is refused too.
    """
    try:
        with path.open("rb") as file:
            first = msgspec.json.decode(file.readline(journal_file.LONGEST_BYTES), type=_First)
    except OSError as problem:
        return Refused(path, f"{path} cannot be read: {problem.strerror}.")
    except (msgspec.MsgspecError, UnicodeDecodeError):
        if zip_files.begins_as_zip(path):
            return Refused(path, f"{path} is a ZIP file: unpack it first.")
        return Refused(path, journal_file.NO_JOURNAL.format(path))
    if reason := journal_file.refusal(path, first.kind, first.fields):
        return Refused(path, reason)
    measured = clock.of_world(str(first.fields.get("world", "simulated")))
    return JournalOfRun(path, run, measured, _began(path, measured, first.at_ms))


def _began(path: Path, measured: clock.Clock, at_ms: int) -> datetime | None:
    if dated := DATED.match(path.name):
        with contextlib.suppress(ValueError):  # a name of digits that are no date
            return datetime.fromisoformat("{}{}{}T{}".format(*dated.groups()))
    return datetime.fromtimestamp(at_ms / 1000, UTC).replace(tzinfo=None) if measured == "wall" else None


def in_time(journals: Sequence[JournalOfRun], since: datetime | None, until: datetime | None) -> list[JournalOfRun]:
    """Return the journals of runs that began at `since` or later and before `until`; None stands for no limit."""
    if since is None and until is None:
        return list(journals)
    # With a limit, a run whose begin is unknown is left out.
    known = ((journal, journal.began) for journal in journals if journal.began is not None)
    return [j for j, began in known if (since is None or began >= since) and (until is None or began < until)]


# Files with one name in several folders of a call are one run if each is a copy or the beginning of the longest file.
def _named(journals: Iterable[JournalOfRun]) -> Iterable[JournalOfRun]:
    """Yield one journal per run. Files with equal names are one run if the longest file begins with each other file.

    Then the longest file is yielded. If not, each different file is a run, named by folder and file: "anna/run-1".
    """
    by_name: dict[str, list[JournalOfRun]] = defaultdict(list)
    for journal in journals:
        by_name[journal.run].append(journal)
    for found in by_name.values():
        longest = max(found, key=lambda j: (content_bytes(j.path), str(j.path)))
        if all(is_beginning(j.path, longest.path) for j in found):
            yield longest
        else:
            # Otherwise the files are several runs, named by their paths from the innermost folder that holds all of them.
            different = _different(found)
            root = Path(os.path.commonpath([j.path.parent for j in different]))
            for j in different:
                folder = j.path.parent.relative_to(root).as_posix() if j.path.parent != root else root.name
                yield j._replace(run=f"{folder}/{j.path.name.removesuffix(SUFFIX)}")


def _different(found: Sequence[JournalOfRun]) -> list[JournalOfRun]:
    """Return the journals of `found`, longest first, without each journal that is the beginning of a longer journal.

    Of equal files only the first by its path is returned.
    """
    kept: list[JournalOfRun] = []
    for journal in sorted(found, key=lambda j: (-content_bytes(j.path), str(j.path))):
        if not any(is_beginning(journal.path, other.path) for other in kept):
            kept.append(journal)
    return kept


def content_bytes(path: Path) -> int:
    """Return the size of a journal file in bytes without its last line, if that line has the number of records.

    For a file without such a line, return its whole size.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - 64))
        tail = file.read()
    at = tail.rfind(journal_file.END)
    return size - (len(tail) - at) if at >= 0 else size


def record_count(path: Path) -> int:
    """Return the number of lines of a journal file that end with a line break.

    A last line that has the number of records is not counted.
    """
    left, found = content_bytes(path), 0
    with path.open("rb") as file:
        while left > 0 and (chunk := file.read(min(left, CHUNK_BYTES))):
            found += chunk.count(b"\n")
            left -= len(chunk)
    return found


def is_beginning(path: Path, longest: Path) -> bool:
    """Return whether all records of the file `path` are the first records of the file `longest`, byte by byte."""
    left = content_bytes(path)
    with path.open("rb") as a, longest.open("rb") as b:
        while left > 0:
            size = min(left, CHUNK_BYTES)
            if a.read(size) != b.read(size):
                return False
            left -= size
    return True
