"""The checkpoint of `--follow`: the folder `_follow` beside the tables, with the bytes of each log file that were read.

If a process is killed during a round of reading, `state.json` has the checkpoint before this round or the checkpoint after it,
since the file is replaced in one step.

With `--redact` the rows of the rounds have stable names only. But `state.json` has the true paths of the files and all true
names that were found, because later rounds must replace these names too. So do not give the folder `_follow` to others.
"""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kcontrol.core.errors import LATER, UserError
from kcontrol.pipeline.follow.followed_files import Followed
from kcontrol.pipeline.logs import log_tables
from kcontrol.pipeline.logs.files import log_files
from kcontrol.pipeline.pipeline import claim, claimed, sentences
from kcontrol.pipeline.redaction.stable_names import Redaction, check_same

STATE, UNFINISHED = "state.json", "state.json.new"
VERSION = 1


class Checkpoint(msgspec.Struct):
    """What `kcontrol pipeline logs --follow` has read and published so far: the content of `state.json`."""

    # The files and folders that are followed.
    paths: list[str]
    # The version of the form of `state.json`.
    version: int = VERSION
    # The number of the last round; a round reads the bytes that the files have gained.
    round: int = 0
    # The number in the id of the next new file, such as 7 for "f7".
    next_id: int = 1
    # The log files that were found so far; a file that is gone stays in the list, unless another file has its content.
    files: list[Followed] = []
    # Folder with the rows of one round -> id of each log file that was read in this round -> number of a line of the file: the
    # folder's rows from this line on are outdated, because a later round has read the file again from this line on. None: no
    # row is outdated.
    parts: dict[str, dict[str, int | None]] = {}
    # A description of the tables that were published last, "" before the first tables.
    published: str = ""
    # The numbers of files and lines in these tables: all fields of `log_tables.Written` except `refused`.
    counts: dict[str, int] = {}
    # The kinds of names that --redact replaces, and a text that changes with its key (`Redaction.mark`); None without --redact.
    redacted: dict[str, Any] | None = None
    # With --redact: each name that was found in the logs -> its kind, such as "topic".
    names: dict[str, str] = {}


@contextlib.contextmanager
def opened(out: Path, paths: Sequence[Path], redaction: Redaction | None = None) -> Iterator[Checkpoint]:
    """Yield the checkpoint of the folder `out`, or a new checkpoint; no other process can use it during the `with` block.

    Raises UserError if `out` is in use or damaged, has other files, or was made with other arguments.
    """
    folder = out / log_tables.FOLLOW
    with contextlib.ExitStack() as undo:
        if not folder.is_dir():
            log_files(paths)
            undo.enter_context(claimed(out, log_tables.ALL_TABLES, log_tables.FORMAT))
            undo.enter_context(_created(folder))
        undo.enter_context(_locked(folder))
        claim(out, (*log_tables.ALL_TABLES, log_tables.FOLLOW), log_tables.FORMAT)
        names = sorted(str(path.resolve()) for path in paths)
        mark = None if redaction is None else redaction.mark()
        checkpoint = _read(folder / STATE) if (folder / STATE).exists() else Checkpoint(names, redacted=mark)
        if checkpoint.paths != names:
            raise UserError(f"{out} follows {', '.join(checkpoint.paths)}: name these, or another folder for the tables.")
        check_same(checkpoint.redacted, redaction, out)
        # The parts of a round that was killed.
        _remove_others(folder, checkpoint)
        yield checkpoint


@contextlib.contextmanager
def _created(folder: Path) -> Iterator[None]:
    """Create the folder of the checkpoint for the `with` block; remove it after a UserError if no table was published."""
    with sentences(folder.parent):
        folder.mkdir()
    try:
        yield
    except UserError:
        if not (folder / STATE).exists() or not _read(folder / STATE).published:
            shutil.rmtree(folder)
        raise


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UserError(f"Another process follows logs into {folder.parent}: end it, or name another folder.") from None
    finally:
        os.close(lock)


def _read(path: Path) -> Checkpoint:
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Checkpoint)
    except msgspec.DecodeError:
        raise UserError(f"The checkpoint {path} is damaged: name another folder for the tables.") from None
    if found.version != VERSION:
        raise UserError(LATER.format(f"The checkpoint {path}", VERSION))
    return found


def save(out: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint in the folder `out`; delete each folder of rows that the new checkpoint does not list."""
    folder = out / log_tables.FOLLOW
    (folder / UNFINISHED).write_bytes(msgspec.json.encode(checkpoint))
    (folder / UNFINISHED).replace(folder / STATE)
    _remove_others(folder, checkpoint)


def _remove_others(folder: Path, checkpoint: Checkpoint) -> None:
    for path in folder.iterdir():
        if path.is_dir() and path.name not in checkpoint.parts:
            shutil.rmtree(path, ignore_errors=True)
