"""What every check is made of: a kind prepares an exercise, and gives back a function that marks one answer, case by case.

All of this runs in the process of `judge`. Text that is evaluated here comes with the package: what a learner wrote is called,
never evaluated.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from kcontrol.lab import printing, replacing

if TYPE_CHECKING:
    from kcontrol.lab.lab import Lab

Entry = dict[str, Any]

MEMORY_MB = 1024
CALLS_OF_LAB = ("run", "run_event", "reassign")  # what a scenario's act may call of a lab besides the actions of the world


class Broken(Exception):
    """An answer that cannot be judged: the text is one sentence about it."""


@dataclass(frozen=True)
class Case:
    """One thing that was asked: what the answer came to, what is right (in JSON's own types), and what to say if they differ.

    `printed` is what the answer has printed since the case before; `drawn` describes pictures, see `verdicts.pictures`.
    """

    text: str
    yours: Any
    right: Any
    drawn: tuple[dict[str, Any], ...] = ()
    printed: str = field(default_factory=printing.taken)

    @property
    def is_right(self) -> bool:
        """Whether they are the same; numbers and booleans are not."""
        return same(self.yours, self.right)


class Marked(NamedTuple):
    """An answer's cases, and a sentence for whoever has solved it."""

    cases: list[Case]
    remark: str = ""


Mark = Callable[[Any], Marked]


class Kind(NamedTuple):
    """One kind of check: it prepares an exercise; its answers are of this sort, in words and as a test."""

    prepare: Callable[[Entry], Mark]
    wanted: str
    accepts: Callable[[Any], bool]


# ---------------------------------------------------------------- runs


def play(
    scenario: Mapping[str, Any], replace: Mapping[str, Callable[..., Any]] | None = None, place: dict[str, str] | None = None
) -> Lab:
    """A lab after a scenario: `acts` are done one after the other, `title` is its name, every other key an argument of Lab.

    An act is an action of the world, or ["run"], ["run", until], ["run_event", broker], ["reassign", {"t-0": [2, 3]}]. In
    `place`, where given, `when` is kept up to date: the last act in words.
    """
    from kcontrol.lab.lab import Lab

    arguments = {key: value for key, value in scenario.items() if key not in ("title", "acts", "holds")}
    lab = Lab(**{"seed": 7, "runs": None} | arguments, replace=replace)
    for act in scenario["acts"]:
        do(lab, act)
        if act[0] not in CALLS_OF_LAB and place is not None:
            place["when"] = in_words(act)
    return lab


def do(lab: Lab, act: Iterable[Any]) -> None:
    """One act of a scenario or of a learner. Raises UserError for what cannot happen."""
    kind, *rest = act
    if kind in CALLS_OF_LAB:
        getattr(lab, kind)(*rest)
    else:
        lab.step((kind, *rest))


# fmt: off
WHEN = {"kill": "broker {} is killed", "start": "broker {} starts", "create_topic": "topic {} is created",
        "delete_topic": "the deletion of topic {} is asked for",
        "create": "{} is created", "set": "{} is rewritten", "delete": "{} is deleted"}
# fmt: on


def in_words(act: Iterable[Any]) -> str:
    """An act as a clause."""
    kind, *rest = act
    return WHEN[kind].format(*rest) if kind in WHEN else " ".join(map(str, (kind, *rest))) + " has happened"


# ---------------------------------------------------------------- answers


def ask(function: Callable[..., Any], *arguments: Any, about: str = "") -> Any:
    """What a learner's function answers. Raises Broken, whatever it raises; `about` says what it was asked."""
    try:
        with printing.heard():
            return function(*arguments)
    except replacing.WrongAnswer as error:
        raise Broken(f"Your function gave no answer: {error}.") from None
    except MemoryError:
        raise Broken(f"Your function needs more than {MEMORY_MB} MB of memory: keep less.") from None
    except RecursionError:
        raise Broken("Your function calls itself without end: look for what should stop the recursion.") from None
    except Exception as error:
        raise Broken(f"Your function raised {replacing.described(error)}{replacing.place(error)}{about}.") from None


def evaluate(expression: str, **names: Any) -> Any:
    """The value of an expression of the registry."""
    return eval(expression, dict(names))  # noqa: S307 - the text comes with the package


def same(one: Any, other: Any) -> bool:
    """Whether two values in JSON's own types are equal, in which True is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


# fmt: off
TYPES = ((bool, "True or False"), (int | float, "a number"), (str, "a string"), (list, "a list"), (dict, "a mapping"))
# fmt: on


def kind_of_value(value: Any) -> str:
    """Return what sort of value this is, one in JSON's own types; "" for None, which is of no sort."""
    return next((words for known, words in TYPES if isinstance(value, known)), "")


def another_type(yours: Any, right: Any) -> str:
    """Return a sentence on the type of a value that is not of the right one's type, with a space before it; "" for any other."""
    given, wanted = kind_of_value(yours), kind_of_value(right)
    return f" The check expects {wanted}; your answer is {given}." if given and wanted and given != wanted else ""


def comparable(value: Any) -> Any:
    """A value in JSON's own types: tables as one mapping per row, sets in order, numbers of numpy as Python's.

    Raises Broken for a value that is none of these.
    """
    match value:
        case None | bool() | str():
            return value
        case int() | float():
            return int(value) if value == value // 1 else float(value)
        case Mapping():
            return {str(key): comparable(item) for key, item in value.items()}
        case set() | frozenset():
            return sorted(map(comparable, value), key=str)
        case tuple() if hasattr(value, "_asdict"):
            return comparable(value._asdict())
        case list() | tuple():
            return [comparable(item) for item in value]
    return _of_a_library(value)


def _of_a_library(value: Any) -> Any:
    import pandas as pd

    if value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, pd.DataFrame):
        return comparable(value.to_dict("index"))
    if isinstance(value, pd.Series):
        return comparable(value.to_dict())
    if isinstance(value, pd.Timedelta):
        return int(value / pd.Timedelta(milliseconds=1))
    if hasattr(value, "tolist"):
        return comparable(value.tolist())
    if hasattr(value, "__index__"):
        return operator.index(value)
    raise Broken(f"Your answer has {short(value)} in it, which is of type {type(value).__name__} and cannot be compared.")


def short(value: Any) -> str:
    """A value in at most 120 characters."""
    try:
        words = repr(value)
    except Exception:
        words = f"something of type {type(value).__name__}"
    return words if len(words) <= 120 else f"{words[:117]}..."
