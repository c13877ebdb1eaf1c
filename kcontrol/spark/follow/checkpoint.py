"""The checkpoint of `--follow`: the folder `_follow` beside the tables, with the rows that were read and the place of each file.

`state.json` lists the files with the byte at which each goes on, and the parts: folders with the rows that `parsed` returns, of
one round of reading each. A row of a part counts if its line number is below the number that the part has for its file: the rows
of a file's last record were replaced by a later part if the record went on.

`state.json` is replaced in one step, after the rows of a round are written. So a process that ends at any moment leaves the state
before or after a round, and parts that no state lists; `opened` deletes those.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kcontrol.core.errors import UserError
from kcontrol.spark.follow.followed_files import Followed
from kcontrol.spark.logs import log_tables
from kcontrol.spark.logs.files import log_files
from kcontrol.spark.pipeline import claim, sentences

STATE, UNFINISHED = "state.json", "state.json.new"
VERSION = 1


class Checkpoint(msgspec.Struct):
    """The content of `state.json`.

    `paths` are the files and folders that are followed, `round` is the number of the last round. A part is the folder with the
    rows of one round; `parts` has for each part the ids of its files, each with the first line number whose row a later part has
    again, so that it no longer counts here; None if all count. `published` describes the tables
    that were published last, with `counts`, the numbers of `log_tables.Written` without the refused files.
    """

    paths: list[str]
    version: int = VERSION
    round: int = 0
    next_id: int = 1
    files: list[Followed] = []
    parts: dict[str, dict[str, int | None]] = {}
    published: str = ""
    counts: dict[str, int] = {}


@contextlib.contextmanager
def opened(out: Path, paths: Sequence[Path]) -> Iterator[Checkpoint]:
    """Yield the checkpoint of the folder `out`, a new one if there is none; until the end no other process can open it.

    What a killed process left is undone. Raises UserError if `out` holds other files, is used by another process, follows other
    paths, or has a damaged checkpoint.
    """
    folder = out / log_tables.FOLLOW
    if not folder.is_dir():
        log_files(paths)
        claim(out, log_tables.ALL_TABLES, log_tables.FORMAT)
        with sentences(out):
            folder.mkdir()
    with _locked(folder):
        claim(out, (*log_tables.ALL_TABLES, log_tables.FOLLOW), log_tables.FORMAT)
        names = sorted(str(path.resolve()) for path in paths)
        checkpoint = _read(folder / STATE) if (folder / STATE).exists() else Checkpoint(names)
        if checkpoint.paths != names:
            raise UserError(f"{out} follows {', '.join(checkpoint.paths)}: name these, or another folder for the tables.")
        _remove_others(folder, checkpoint)
        yield checkpoint


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
        raise UserError(f"The checkpoint {path} has version {found.version}; this kcontrol reads version {VERSION}.")
    return found


def save(out: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint of the folder `out`, and delete the folders of parts that the new checkpoint does not list."""
    folder = out / log_tables.FOLLOW
    (folder / UNFINISHED).write_bytes(msgspec.json.encode(checkpoint))
    (folder / UNFINISHED).replace(folder / STATE)
    _remove_others(folder, checkpoint)


def _remove_others(folder: Path, checkpoint: Checkpoint) -> None:
    for path in folder.iterdir():
        if path.is_dir() and path.name not in checkpoint.parts:
            shutil.rmtree(path, ignore_errors=True)
