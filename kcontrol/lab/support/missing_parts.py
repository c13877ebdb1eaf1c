"""The substitute for a part of the lab, such as a Spark session, that this machine does not have: each use shows one sentence."""

from collections.abc import Callable
from typing import Any, Self, TypeVar

from kcontrol.core.errors import UserError
from kcontrol.lab.support.output import say

Part = TypeVar("Part")


class MissingPart:
    """A substitute for a part that is not installed, such as a Spark session: its `repr` is one sentence."""

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    # Each attribute, call and item is the substitute itself, so that a cell that uses it shows the sentence and no error.
    def __getattr__(self, name: str) -> Self:
        if name.startswith("_"):
            raise AttributeError(name)  # IPython and copy test for such names to find the abilities of an object
        return self

    def __call__(self, *_: Any, **__: Any) -> Self:
        return self

    def __getitem__(self, _: Any) -> Self:
        return self

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return self._sentence


def part_or_substitute(open_part: Callable[[], Part], *, optional: bool) -> Part | MissingPart:
    """Return the part that `open_part` opens, such as a Spark session, or a MissingPart as a substitute.

    If `open_part` raises UserError, print its sentence and return the substitute; without `optional`, raise the error.
    """
    try:
        return open_part()
    except UserError as problem:
        if not optional:
            raise
        say(str(problem))
        return MissingPart(str(problem))
