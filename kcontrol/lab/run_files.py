"""Writes the journal of a lab's run into a file while the lab runs; `Lab.open` and Spark can read the file."""

import re
import time
from collections.abc import Sequence
from itertools import count
from os import SEEK_END
from pathlib import Path

from kcontrol.install import run_cleanup
from kcontrol.journal import journal_file
from kcontrol.journal.journal import Record, to_line
from kcontrol.lab.support.output import say

SUFFIX = ".jsonl"
LONGEST_LABEL = 100
"""The characters of a label in a file name: file systems allow 255 bytes, and the time and the suffix need some of them."""


class RunFile:
    """The file of one run's journal, to which `flush` appends; `path` is None if the run has no file."""

    def __init__(self, folder: str | Path | None, label: str) -> None:
        # After a failed write a sentence is printed and nothing more is written. `path` is None if no file is wanted, or if the
        # file cannot be written. In the folder "runs", `run_cleanup` deletes old runs.
        self._written = 0
        self._end: int | None = None  # the offset of the file's last line, which counts the records
        self._is_cleared = folder is not None and str(folder) == run_cleanup.NAME
        place = run_cleanup.folder() if self._is_cleared else folder
        self.path = None if place is None else self._place(Path(place), label)

    @staticmethod
    def _place(folder: Path, label: str) -> Path:
        """Return the path of a new file in `folder`, such as "20240131-101500-simulated.jsonl" for the label "simulated".

        If `folder` is a file, or is closed to this user, return its own path: `flush` cannot write there and prints why.
        """
        try:
            if folder.exists() and not folder.is_dir():
                return folder.absolute()
        except OSError:  # `flush` prints the reason
            return folder.absolute()
        stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{re.sub(r'[^A-Za-z0-9]+', '-', label).strip('-')[:LONGEST_LABEL]}"
        # If this file exists, the name has a number at its end.
        names = (f"{stem}-{n}" if n > 1 else stem for n in count(1))
        return next(path for name in names if not (path := folder.absolute() / f"{name}{SUFFIX}").exists())

    def flush(self, records: Sequence[Record]) -> None:
        """Append the journal records that the file does not have yet; `records` is the whole journal.

        If a write fails, print a sentence and write nothing more. If the run has no file, do nothing.
        """
        if self.path is None or len(records) == self._written:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self._is_cleared:
                run_cleanup.begin(self.path)
                self._is_cleared = False
            if not self.path.exists():
                self._written, self._end = 0, 0
            # The last line of the file has the number of all records: the new records overwrite it, and a new last line
            # follows.
            with self.path.open("r+b" if self.path.exists() else "wb") as file:
                self._end = file.seek(0, SEEK_END) if self._end is None else file.seek(self._end)
                file.writelines(map(to_line, records[self._written :]))
                file.flush()
                self._end = file.tell()
                file.write(journal_file.end(len(records)))
        except OSError as problem:
            say(
                f"The journal of this run cannot be written to {self.path} ({problem.strerror}): the lab goes on without a "
                "file, and lab.save(path) writes the journal to another place."
            )
            self.path = None
            return
        self._written = len(records)
