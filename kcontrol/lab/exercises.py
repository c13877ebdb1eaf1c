"""Exercises: what there is to solve, hints one at a time, and verdicts."""

from __future__ import annotations

import tomllib
from collections import Counter
from functools import cache
from html import escape
from typing import Any, NamedTuple

from kcontrol.errors import UserError
from kcontrol.lab import judging
from kcontrol.lab.saying import Shown
from kcontrol.lab.workspace import PROJECT

FOLDER = PROJECT / "exercises"

_hints_given: Counter[str] = Counter()


@cache
def registry() -> dict[str, dict[str, Any]]:
    """Every exercise by its id, in the order of the chapters, as the file has it."""
    entries = tomllib.loads((FOLDER / "exercises.toml").read_text(encoding="utf-8"))["exercise"]
    return {entry["id"]: entry for entry in entries}


def exercise(id: str) -> dict[str, Any]:
    """One exercise. Raises UserError, listing the ids, for one that does not exist."""
    if id not in registry():
        raise UserError(f"There is no exercise {id!r}; there are {', '.join(registry())}.")
    return registry()[id]


def hint(id: str) -> Shown:
    """The next hint, one at a time; after the last one they begin anew."""
    hints = exercise(id)["hints"]
    number = _hints_given[id] % len(hints)
    _hints_given[id] += 1
    return Shown(f"Hint {number + 1} of {len(hints)}: {hints[number]}")


class Verdict(NamedTuple):
    """What became of an answer: whether it passed, in which words, and the misconception that it shows, if it is a known one."""

    passed: bool
    text: str
    misconception: str | None = None

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in self.text.splitlines())


def check(id: str, answer: object) -> Verdict:
    """Judge an answer to an exercise in its scenarios; whatever the answer does, this returns.

    Raises UserError, listing the ids, for an exercise that does not exist.
    """
    entry = exercise(id)
    if not callable(answer):
        return Verdict(
            False, f"An answer to {id!r} is a function, not {answer!r:.60}: hand it over by its name, without calling it."
        )
    report = judging.judge(answer, entry)
    if problem := report.get("problem"):
        return Verdict(False, problem)
    asked = report["asked"]
    if all(case["yours"] is None for case in asked):
        return Verdict(False, entry["open"])
    if all(case["yours"] == case["right"] for case in asked):
        return Verdict(True, f"Solved, in {len(entry['scenario'])} scenarios. {entry['solved']}\nIn Kafka: {entry['source']}")
    return _not_yet(entry, asked)


def _not_yet(entry: dict[str, Any], asked: list[dict[str, Any]]) -> Verdict:
    """The first answer that differs from Kafka's, and the misconception whose answers are the same throughout."""
    first = next(case for case in asked if case["yours"] != case["right"])
    where = f"{first['scenario']}: when {first['when']}, the assignment is {first['assignment']}, the ISR {first['isr']}, "
    answers = f"and alive are {first['live']}. You say {_leader(first['yours'])}, Kafka says {_leader(first['right'])}."
    yours = [case["yours"] for case in asked]
    known = next((w for w in entry["wrong"] if [rule_of(w)(*_arguments(case)) for case in asked] == yours), None)
    advice = known["message"] if known else f'A hint is in lab.hint("{entry["id"]}").'
    return Verdict(False, f"Not yet. {where}{answers}\n{advice}", known["misconception"] if known else None)


def _arguments(case: dict[str, Any]) -> tuple[list[int], list[int], list[int]]:
    return list(case["assignment"]), list(case["isr"]), list(case["live"])


def _leader(broker: int | None) -> str:
    return "nobody" if broker is None else f"broker {broker}"


def rule_of(wrong: dict[str, Any]) -> Any:
    """A listed wrong answer as a function; its text is ours."""
    scope: dict[str, Any] = {}
    exec(f"def rule(assignment, isr, live):\n    {wrong['code']}", scope)  # noqa: S102 - the text comes with the package
    return scope["rule"]
