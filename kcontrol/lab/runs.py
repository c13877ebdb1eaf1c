"""Every run leaves its journal in a file, so that it can be opened again and asked with Spark."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from itertools import count
from os import SEEK_END
from pathlib import Path

from kcontrol.lab import old_runs
from kcontrol.lab.saying import say
from kcontrol.runtime import journal_file
from kcontrol.runtime.journal import Record, to_line

SUFFIX = ".jsonl"
LONGEST_LABEL = 100
"""File systems take names of 255 bytes, of which the time, a number and the suffix need some."""


class RunFile:
    """One run's journal on disk, brought up to date by `flush`; where that fails, it says so once and gives up.

    `path` is None where no file is wanted, or none can be written. The folder "runs" is the one of `old_runs`, which is cleared.
    """

    def __init__(self, folder: str | Path | None, label: str) -> None:
        self._written = 0
        self._end: int | None = None  # where the last line of the file begins
        self._is_cleared = folder is not None and str(folder) == old_runs.NAME
        place = old_runs.folder() if self._is_cleared else folder
        self.path = None if place is None else self._place(Path(place), label)

    @staticmethod
    def _place(folder: Path, label: str) -> Path:
        """A name that says when and what, and that no other run has; a `folder` that is a file is taken as it is."""
        if folder.exists() and not folder.is_dir():
            return folder.absolute()
        stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{re.sub(r'[^A-Za-z0-9]+', '-', label).strip('-')[:LONGEST_LABEL]}"
        names = (f"{stem}-{n}" if n > 1 else stem for n in count(1))
        return next(path for name in names if not (path := folder.absolute() / f"{name}{SUFFIX}").exists())

    def flush(self, records: Sequence[Record]) -> None:
        """Append what has come since the last time, over the line that ended the journal."""
        if self.path is None or len(records) == self._written:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self._is_cleared:
                old_runs.begin(self.path)
                self._is_cleared = False
            if not self.path.exists():
                self._written, self._end = 0, 0
            with self.path.open("r+b" if self.path.exists() else "wb") as file:
                self._end = file.seek(0, SEEK_END) if self._end is None else file.seek(self._end)
                file.writelines(map(to_line, records[self._written :]))
                file.flush()
                self._end = file.tell()
                file.write(journal_file.end(len(records)))
        except OSError as problem:
            say(
                f"The journal of this run cannot be kept in {self.path} ({problem.strerror}): the lab goes on without it, "
                "and lab.save(path) writes it elsewhere."
            )
            self.path = None
            return
        self._written = len(records)
