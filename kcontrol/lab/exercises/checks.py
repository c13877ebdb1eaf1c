"""Classes and functions for all checks of exercises: they play scenarios, call a learner's function, and compare values.

It evaluates only expressions that come with the package, never a learner's text.
"""

from __future__ import annotations

import json
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kcontrol.lab.exercises import printed_output
from kcontrol.lab.support import learner_errors, replacements

if TYPE_CHECKING:
    from kcontrol.lab.lab import Lab

# The table of an exercise in exercises.toml.
Entry = dict[str, Any]

MEMORY_MB = 1024
ALIVE = "alive"  # the act that runs the lab with consumers that send requests by themselves
CALLS_OF_LAB = (ALIVE, "run", "run_event", "reassign")  # acts that call a method of the lab


class UnusableAnswer(Exception):
    """The error for an answer that cannot be checked; its text is one sentence for the learner."""


@dataclass(frozen=True)
class Case:
    """One comparison of a check: the learner's value `answer` and the right value `expected`, both in JSON's types."""

    # The sentence that the learner reads if the values differ.
    text: str
    answer: Any
    expected: Any
    # One mapping per picture: the arguments of `verdicts.Election` or `verdicts.Cluster` by name.
    drawn: tuple[dict[str, Any], ...] = ()
    # What the answer has printed since the preceding case.
    printed: str = field(default_factory=printed_output.take_output)

    @property
    def is_right(self) -> bool:
        """Whether `answer` equals `expected`; a number never equals a boolean."""
        return same(self.answer, self.expected)


class CheckedAnswer(NamedTuple):
    """The comparisons `cases` of an answer with the right values, and `remark`, a sentence that is shown if all are right.

    `cases` may be a generator, which calls the answer for each case: so a reader can end at the first wrong case.
    """

    cases: Iterable[Case]
    remark: str = ""


Checker = Callable[[Any], CheckedAnswer]


class CheckKind(NamedTuple):
    """A kind of check for exercises: its function, and the type that a legal answer has, in words and as a test."""

    # Takes an exercise's table in exercises.toml and returns the function that checks one answer.
    prepare: Callable[[Entry], Checker]
    # The type of a legal answer in words, such as "a value".
    wanted: str
    # Returns whether an answer has this type.
    accepts: Callable[[Any], bool]


# ---------------------------------------------------------------- runs


def play(
    scenario: Mapping[str, Any],
    place: dict[str, str] | None = None,
    *,
    rows: Mapping[str, Callable[..., Any]] | None = None,
    strategies: Mapping[str, Callable[..., Any]] | None = None,
) -> Lab:
    """Return a lab in which the actions `acts` of a scenario were performed.

    After each action, `place["when"]` is the action in words, such as "broker 1 is killed". `rows` and `strategies` are passed to
    Lab.
    """
    from kcontrol.lab.lab import Lab

    # The other keys of a scenario are arguments of Lab, or of Lab.play if `play` names the run that comes before the actions.
    # An action is one of World.actions, such as ["kill", 1], or a call of the lab: ["run"], ["run", until], ["run_event",
    # broker], ["reassign", {"t-0": [2, 3]}], and ["alive"] for run(alive=True).
    arguments = {key: value for key, value in scenario.items() if key not in ("title", "acts", "holds")}
    arguments |= {"rows": rows, "strategies": strategies}
    begin = partial(Lab.play, arguments.pop("play")) if "play" in arguments else Lab
    lab = begin(**{"seed": 7, "runs": None} | arguments)
    for act in scenario.get("acts", ()):
        do(lab, act)
        # A call of the lab, such as ["run"], does not change `place`.
        if act[0] not in CALLS_OF_LAB and place is not None:
            place["when"] = in_words(act)
    return lab


def do(lab: Lab, act: Iterable[Any]) -> None:
    """Perform `act`, one action of a scenario or of a learner, such as ("kill", 1) or ("run",), in a lab.

    Raises UserError for an action that is not possible.
    """
    kind, *rest = act
    if kind == ALIVE:
        lab.run(*rest, alive=True)
    elif kind in CALLS_OF_LAB:
        getattr(lab, kind)(*rest)
    else:
        lab.step((kind, *rest))


# fmt: off
WHEN = {"kill": "broker {} is killed", "start": "broker {} starts", "create_topic": "topic {} is created",
        "delete_topic": "the deletion of topic {} is requested",
        "create": "{} is created", "set": "{} is rewritten", "delete": "{} is deleted"}
# fmt: on


def in_words(act: Iterable[Any]) -> str:
    """Return an action, such as ("kill", 1), as a clause, such as "broker 1 is killed"."""
    kind, *rest = act
    return WHEN[kind].format(*rest) if kind in WHEN else " ".join(map(str, (kind, *rest))) + " has happened"


# ---------------------------------------------------------------- answers


def ask(function: Callable[..., Any], *arguments: Any, about: str = "") -> Any:
    """Call a learner's function with these arguments and return its result.

    Raises UnusableAnswer if the function raises; the error's text ends with `about`, such as ", when called with this run".
    """
    try:
        with printed_output.capturing():
            return function(*arguments)
    except replacements.WrongAnswer as error:
        raise UnusableAnswer(f"Your function has no usable result: {error}.") from None
    except MemoryError:
        raise UnusableAnswer(f"Your function needs more than {MEMORY_MB} MB of memory: store less.") from None
    except RecursionError:
        raise UnusableAnswer("Your function calls itself without end: add the case that stops the recursion.") from None
    except (Exception, SystemExit) as error:
        raise UnusableAnswer(f"Your function raised {learner_errors.with_line(error)}{about}.") from None


def evaluate(expression: str, **names: Any) -> Any:
    """Return the value of a Python expression from exercises.toml or predictions.toml."""
    return eval(expression, dict(names))  # noqa: S307 - the text comes with the package


def same(one: Any, other: Any) -> bool:
    """Return whether two values in JSON's types are equal; True does not equal 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


# fmt: off
TYPES = ((bool, "True or False"), (int | float, "a number"), (str, "a string"), (list, "a list"), (dict, "a mapping"))
# fmt: on


def kind_of_value(value: Any) -> str:
    """Return words for the type of `value`, such as "a number" for 5; "" for None. `value` is in JSON's types."""
    return next((words for known, words in TYPES if isinstance(value, known)), "")


def another_type(yours: Any, right: Any) -> str:
    """Return a text such as " The check expects a number; your answer is a string." about the types of `right` and `yours`.

    The text begins with a space. It is "" if the types are equal, and if a value is None.
    """
    given, wanted = kind_of_value(yours), kind_of_value(right)
    return f" The check expects {wanted}; your answer is {given}." if given and wanted and given != wanted else ""


def comparable(value: Any) -> Any:
    """Return a value in JSON's types: a DataFrame as {index: {column: cell}}, a set as a sorted list, a Timedelta in ms.

    Raises UnusableAnswer for a value that cannot be converted.
    """
    match value:
        case None | bool() | str():
            return value
        # A number of NumPy becomes a number of Python, and a whole float, such as 1.0, an int.
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
    pd: Any = sys.modules.get("pandas")  # without it no value is one of pandas
    if pd and (value is pd.NA or value is pd.NaT):
        return None
    if pd and isinstance(value, pd.DataFrame):
        return comparable(value.to_dict("index"))
    if pd and isinstance(value, pd.Series):
        return comparable(value.to_dict())
    if pd and isinstance(value, pd.Timedelta):
        return int(value / pd.Timedelta(milliseconds=1))
    if hasattr(value, "tolist"):
        return comparable(value.tolist())
    if hasattr(value, "__index__"):
        return operator.index(value)
    raise UnusableAnswer(f"Your answer contains {short(value)}, whose type {type(value).__name__} cannot be compared.")


class Call(NamedTuple):
    """A call of the learner's function: a clause that says `where`, new `arguments` for each answer, and the right result."""

    where: str
    arguments: Callable[[], tuple[Any, ...]]
    right: Any
    drawn: tuple[dict[str, Any], ...] = ()


def comparing(calls: Sequence[Call], as_data: Callable[[Any], Any] = comparable) -> Checker:
    """Return a check that makes these calls of the learner's function, and compares each result `as_data` with the right one."""

    def compared(mine: Any, call: Call) -> Case:
        yours = as_data(ask(mine, *call.arguments(), about=f", when called in this case: {call.where}"))
        words = f"{call.where}: your function returns {short(yours)}; right is {short(call.right)}."
        return Case(words + another_type(yours, call.right), yours, call.right, call.drawn)

    return lambda mine: CheckedAnswer(compared(mine, call) for call in calls)


def capitalized(text: str) -> str:
    """Return `text` with a capital first letter; the other letters stay."""
    return text[:1].upper() + text[1:]


def short(value: Any) -> str:
    """Return the `repr` of a value; a text with more than 120 characters is cut, and ends with "..."."""
    try:
        words = repr(value)
    except Exception:
        words = f"a value of type {type(value).__name__}"
    return words if len(words) <= 120 else f"{words[:117]}..."
