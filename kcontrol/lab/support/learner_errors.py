"""Describes the errors of functions that a learner has written: the error in words, and the learner's line that raised it."""

import sysconfig
import traceback
from pathlib import Path

import kcontrol

LIBRARIES = (str(Path(kcontrol.__file__).parent), sysconfig.get_path("stdlib"), sysconfig.get_path("platlib"), "<frozen")
"""The folders with code that the learner did not write."""


def described(error: BaseException) -> str:
    """Return an error as text, such as "KeyError: 't-0'": its type, and its message (at most 200 characters) if it has one."""
    words = " ".join(str(error).split())[:200].rstrip(".")
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def place(error: BaseException) -> str:
    """Return the line of a learner's code that raised an error, such as " (line 3: return isr[0])"; "" without such a line.

    A learner's code is all code outside kcontrol and Python's libraries.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(LIBRARIES)]
    if not frames:
        return ""
    number, line = frames[-1].lineno, " ".join((frames[-1].line or "").split())[:120]
    return f" (line {number}: {line})" if line else f" (line {number})"


def with_line(error: BaseException) -> str:
    """Return an error as text, with the line of the learner's code that raised it: "KeyError: 't-0' (line 3: return isr[0])"."""
    return f"{described(error)}{place(error)}"
