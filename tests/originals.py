"""The files that this project has copied from the folder `shared`, compared with their originals."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Mapping
from pathlib import Path

from tests.parts import ROOT


class OriginalChanged(UserWarning):
    """A copy in this project differs from its original; the text is the shell command that brings the copy up to date."""


def commands(originals: Mapping[Path, Path]) -> list[str]:
    """The shell command, by path, that brings each copy that differs from its original (`originals[copy]`) up to date."""
    # A missing copy is copied, one without an original removed; a README is not compared. They run in the project's folder.
    found = []
    for copy, original in sorted(originals.items()):
        if copy.name == "README.md":
            continue
        if not original.is_file():
            found.append(f"git rm {_from_root(copy)}")
        elif not copy.is_file() or copy.read_bytes() != original.read_bytes():
            found.append(f"cp {_from_root(original)} {_from_root(copy)}")
    return found


def notice(originals: Mapping[Path, Path]) -> None:
    """Warn once for each copy that differs from its original, with the command that brings the copy up to date."""
    for command in commands(originals):
        warnings.warn(f"A copy differs from its original. Bring it up to date with: {command}", OriginalChanged, stacklevel=2)


def by_name(copies: Path, originals: Path, pattern: str) -> dict[Path, Path]:
    """Return the pairs of two folders whose files are paired by name, for the names that match `pattern` in either folder."""
    names = {path.name for folder in (copies, originals) for path in folder.glob(pattern)}
    return {copies / name: originals / name for name in names}


def _from_root(path: Path) -> str:
    return shlex.quote(os.path.relpath(path, ROOT))
