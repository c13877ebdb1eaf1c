"""What an answer prints while it is judged."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

MOST_CHARACTERS = 2_000


class Printed(io.TextIOBase):
    """Keeps the beginning of what is written until it is taken; passes all of it on at once, for a process may be killed."""

    def __init__(self) -> None:
        self.kept, self.descriptor = "", -1

    def write(self, text: str) -> int:
        """Keep a text, and pass it on where a descriptor is known."""
        self.kept += text[: MOST_CHARACTERS - len(self.kept)]
        data = text.encode(errors="backslashreplace") if self.descriptor >= 0 else b""
        while data:
            data = data[os.write(self.descriptor, data) :]
        return len(text)


_printed = Printed()


def begin(descriptor: int) -> None:
    """Pass on to this descriptor whatever is printed from now on."""
    _printed.descriptor = descriptor


@contextmanager
def heard() -> Iterator[None]:
    """Keep what is printed in the meantime."""
    with redirect_stdout(_printed), redirect_stderr(_printed):
        yield


def taken() -> str:
    """Return the beginning of what has been printed since the last call."""
    kept, _printed.kept = _printed.kept, ""
    return kept
