"""Prints lines of the lab, and for a UserError its sentence in place of a traceback."""

import sys
from types import TracebackType

from kcontrol.core.errors import UserError


def say(text: str) -> None:
    """Print one line."""
    print(text)


def warn(text: str) -> None:
    """Print one line on stderr."""
    print(f"kcontrol: {text}", file=sys.stderr)


class Shown(str):
    """Text that a notebook shows without quotes and escapes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def show_sentences() -> None:
    """Install a `sys.excepthook` that prints only the sentence of a UserError that ends a script; the exit status stays 1.

    Any other error is shown as before.
    """
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, UserError):
            print(f"kcontrol: {error}", file=sys.stderr)
        else:
            before(kind, error, trace)

    sys.excepthook = hook
