"""Checks facts in a notebook: prints a fact that holds, and raises an error of one sentence for a fact that does not hold."""

from kcontrol.lab.support.missing_parts import MissingPart
from kcontrol.lab.support.output import say


class Unexpected(AssertionError):
    """The error of `expect` for a value that is not the expected value; a notebook shows its text without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def expect(label: str, want: object, got: object) -> None:
    """Print `label` and `got` with a check mark if `got` equals `want`; else raise Unexpected.

    If `got` is a MissingPart, the substitute for a part such as Spark that is not installed, print that the result is open.
    """
    if isinstance(got, MissingPart):
        say(f"○ {label}: open, because this machine lacks a part that it needs")
    elif bool(got == want):
        say(f"✓ {label}: {_shown(got)}, as expected")
    else:
        raise Unexpected(f"✗ {label}: {_shown(got)}, but {_shown(want)} was expected.")


def _shown(value: object) -> str:
    """Return the `repr` of a value; a NumPy number is shown as a number of Python, such as 5."""
    return repr(value.item() if hasattr(value, "item") else value)
