"""Logs that grow and are rotated at random, as the appenders of log4j and logrotate do it."""

from __future__ import annotations

import gzip
import random
import shutil
from collections.abc import Callable
from pathlib import Path


class Growing:
    """The logs of a folder, written in pieces that end anywhere, even in a character; `texts` has what is left by name."""

    def __init__(self, folder: Path, texts: dict[str, bytes], choose: random.Random) -> None:
        folder.mkdir(parents=True)
        self.folder, self.choose = folder, choose
        self.texts = dict(texts)

    def append(self, most: int) -> None:
        name = self.choose.choice(sorted(self.texts))
        piece = self.texts[name][: self.choose.randint(0, most)]
        with (self.folder / name).open("ab") as file:
            file.write(piece)
        self.texts[name] = self.texts[name][len(piece) :]

    def finish(self) -> None:
        for name, text in self.texts.items():
            with (self.folder / name).open("ab") as file:
                file.write(text)
            self.texts[name] = b""

    def rotate(self, rotation: Callable[[Growing, Path], None] | None = None) -> None:
        """Rotate one log, at random in one of four ways."""
        names = sorted(name for name in self.texts if (self.folder / name).exists())
        if names:
            (rotation or self.choose.choice(ROTATIONS))(self, self.folder / self.choose.choice(names))

    def numbered(self, path: Path) -> None:
        """Rename the file and all earlier ones, as RollingFileAppender does."""
        taken = [n for n in range(1, 99) if path.with_name(f"{path.name}.{n}").exists()]
        for n in reversed(taken):
            path.with_name(f"{path.name}.{n}").rename(path.with_name(f"{path.name}.{n + 1}"))
        path.rename(path.with_name(f"{path.name}.1"))

    def _dated(self, path: Path) -> Path:
        return path.with_name(f"{path.name}.2020-01-{len(list(self.folder.iterdir())):02}-{self.choose.randrange(10**9)}")

    def dated(self, path: Path) -> None:
        """Rename the file, as DailyRollingFileAppender does; the next piece makes a new file."""
        path.rename(self._dated(path))

    def truncated(self, path: Path) -> None:
        """Copy the file and truncate it, as copytruncate of logrotate does."""
        shutil.copy(path, self._dated(path))
        path.write_bytes(b"")

    def compressed(self, path: Path) -> None:
        """Rename and compress the file, as compress of logrotate does."""
        path.with_name(f"{self._dated(path).name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()


ROTATIONS = (Growing.numbered, Growing.dated, Growing.truncated, Growing.compressed)
