"""Captures the output that a learner's answer prints while it is checked."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

MOST_CHARACTERS = 2_000


class Printed(io.TextIOBase):
    """A stream for an answer's output: it writes all text to the file descriptor `descriptor`, and stores a part in `kept`.

    The part is the first 2,000 characters (MOST_CHARACTERS). Nothing is written if `descriptor` is -1.
    """

    # There is no buffer, because the process of an answer may be killed at any moment. `take_output` empties `kept`.
    def __init__(self) -> None:
        self.kept, self.descriptor = "", -1

    def write(self, text: str) -> int:
        """Write a text to the file descriptor `descriptor`, unless it is negative; return the length of the text.

        Append the text also to `kept`, which holds at most the first 2,000 characters of the output.
        """
        self.kept += text[: MOST_CHARACTERS - len(self.kept)]
        data = text.encode(errors="backslashreplace") if self.descriptor >= 0 else b""
        while data:
            data = data[os.write(self.descriptor, data) :]
        return len(text)


_printed = Printed()


def begin(descriptor: int) -> None:
    """From now on write the text that is printed in `with capturing()` blocks also to the file descriptor `descriptor`."""
    _printed.descriptor = descriptor


@contextmanager
def capturing() -> Iterator[None]:
    """Capture the text that is written to standard output and standard error within a `with` block."""
    with redirect_stdout(_printed), redirect_stderr(_printed):
        yield


def take_output() -> str:
    """Return what a learner's answer has printed since the last call, without the part beyond 2,000 characters."""
    kept, _printed.kept = _printed.kept, ""
    return kept
