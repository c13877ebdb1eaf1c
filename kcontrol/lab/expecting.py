"""Facts pinned in a notebook: printed while they hold, an error in one sentence when they do not."""

from __future__ import annotations

from kcontrol.lab.missing import Missing
from kcontrol.lab.saying import say


class Unexpected(AssertionError):
    """A pinned fact does not hold."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def expect(label: str, want: object, got: object) -> None:
    """Print the fact, with the sign of a right one, if `got` equals `want`.

    Raises Unexpected otherwise. What is missing on this machine is neither right nor wrong.
    """
    if isinstance(got, Missing):
        say(f"○ {label}: open, for want of what this machine does not have")
    elif bool(got == want):
        say(f"✓ {label}: {_shown(got)}, as expected")
    else:
        raise Unexpected(f"✗ {label}: {_shown(got)}, but {_shown(want)} was expected.")


def _shown(value: object) -> str:
    """The value as text, a number of pandas like one of Python's."""
    return repr(value.item() if hasattr(value, "item") else value)
