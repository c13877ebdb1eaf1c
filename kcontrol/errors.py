"""What goes wrong for the person in front of the workbook, said in one sentence."""

from collections.abc import Sequence
from typing import Any


class UserError(Exception):
    """A problem the user can act on: its text is one sentence that says what is wrong and what to do.

    The command line prints the text alone and exits with status 1; a notebook shows the text alone, without a traceback.
    """

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback."""
        return [str(self)]


class NotNow(UserError):
    """An action that is known and cannot happen now; `possible` are those that can."""

    def __init__(self, text: str, possible: Sequence[tuple[Any, ...]]) -> None:
        super().__init__(text)
        self.possible = possible
