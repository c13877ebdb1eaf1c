"""A learner's own rule in the place of one of ours, for one lab alone."""

from __future__ import annotations

import inspect
import operator
import sysconfig
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import kcontrol
from kcontrol.controller.election import STRATEGIES, Candidates, Elected
from kcontrol.controller.partition_machine import PARTITION_TRANSITIONS
from kcontrol.errors import UserError

NextLeader = Callable[[list[int], list[int], list[int]], int | None]

ELECTIONS = tuple(f"election.{name}" for name in STRATEGIES)
ROWS = tuple(f"partition.({row.source}, {row.target})" for row in PARTITION_TRANSITIONS)


LIBRARIES = (str(Path(kcontrol.__file__).parent), sysconfig.get_path("stdlib"), sysconfig.get_path("platlib"), "<frozen")
"""Where code is that no learner has written."""


class WrongAnswer(TypeError):
    """A learner's function has returned something that is neither a broker's id nor None."""


class RuleFailed(Exception):
    """A learner's function has raised: the text says which one and what."""


def ours(name: str) -> Callable[..., Any]:
    """Return our own function of this name, which is one of ELECTIONS and ROWS."""
    actions = {f"partition.({row.source}, {row.target})": row.action for row in PARTITION_TRANSITIONS}
    return actions[name] if name in actions else STRATEGIES[name.removeprefix("election.")].rule


def checked(replace: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """The functions as the machines call them. Raises UserError for a name that nothing has, listing those that there are."""
    for name, function in replace.items():
        if name not in (*ELECTIONS, *ROWS):
            raise UserError(f"Nothing here is called {name!r}; what can be replaced is {', '.join((*ELECTIONS, *ROWS))}.")
        if not callable(function):
            raise UserError(f"What replaces {name} must be a function, not {type(function).__name__}.")
    return {name: _guarded(name, _as_rule(function) if name in ELECTIONS else function) for name, function in replace.items()}


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whatever it raises turned into RuleFailed, by which a lab knows that it was not Kafka's rule that failed."""

    @wraps(function)
    def guarded(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            raise RuleFailed(f"your function for {name} failed: {described(error)}{place(error)}") from error

    return guarded


def described(error: BaseException) -> str:
    """An error as a part of a sentence: its kind, and what it says where it says something."""
    words = " ".join(str(error).split())[:200].rstrip(".")
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def place(error: BaseException) -> str:
    """Return the number and the text of the line of a learner's code in which an error was raised, in brackets; "" for none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(LIBRARIES)]
    if not frames:
        return ""
    number, line = frames[-1].lineno, " ".join((frames[-1].line or "").split())[:120]
    return f" (line {number}: {line})" if line else f" (line {number})"


def _as_rule(function: Callable[..., Any]) -> Callable[[Candidates], Elected | None]:
    """A function of `(assignment, isr, live)` as a rule of the election; one that takes `Candidates` is a rule already."""
    if arity(function) == 1:
        return function

    @wraps(function)
    def rule(c: Candidates) -> Elected | None:
        return elected(c, ask(function, c))

    return rule


def arity(function: Callable[..., Any]) -> int:
    """How many arguments a function takes; three where it does not tell."""
    try:
        return len(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return 3


def question(c: Candidates) -> tuple[list[int], list[int], list[int]]:
    """What a learner's function is asked about: the assignment, the ISR, and the brokers that live, as lists of its own."""
    return list(c.assignment), list(c.isr), sorted(c.live)


def ask(function: NextLeader, c: Candidates) -> int | None:
    """The function's answer. Raises WrongAnswer for one that is neither a broker's id nor None."""
    answer: Any = function(*question(c))
    if answer is None:
        return None
    if hasattr(answer, "__index__") and not isinstance(answer, bool):
        return operator.index(answer)
    raise WrongAnswer(f"it returned {answer!r:.60}, which is {_kind(answer)}; a broker's id, such as 2, or None is wanted")


def _kind(answer: Any) -> str:
    name = type(answer).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def elected(c: Candidates, leader: int | None) -> Elected | None:
    """The election of this leader: the live part of the ISR stays in sync; whoever comes from outside of it stands alone."""
    if leader is None:
        return None
    isr: Sequence[int] = tuple(b for b in c.isr if b in c.live)
    return Elected(leader, tuple(isr)) if leader in isr else Elected(leader, (leader,), unclean=True)
