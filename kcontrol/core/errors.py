"""Errors for users: UserError and its subclass, shown as one sentence without a traceback."""

from collections.abc import Iterable, Sequence
from typing import Any


def listed(names: Iterable[Any], max_names: int = 4) -> str:
    """As `a, b, c and d`; of more than `max_names` names `a, b, c and 2 more`."""
    shown = [str(name) for name in names]
    if len(shown) > max_names:
        shown = [*shown[: max_names - 1], f"{len(shown) - max_names + 1} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


LATER = "{} was written by a later kcontrol; this one reads version {}: update kcontrol."
"""The error for a file or a folder of a later format version."""


class UserError(Exception):
    """An error that the user can correct: one sentence that says what is wrong and what to do.

    The command line prints the sentence and exits with status 1.
    """

    def _render_traceback_(self) -> list[str]:
        """Return the error's sentence alone, which IPython shows instead of a traceback."""
        return [str(self)]


class ActionNotPossible(UserError):
    """The error of an action that the simulated cluster (`World`) cannot perform now.

    `possible` has the actions that are possible instead.
    """

    def __init__(self, text: str, possible: Sequence[tuple[Any, ...]]) -> None:
        super().__init__(text)
        self.possible = possible
