"""Checks an answer in this process, and recognises a wrong answer that the exercise lists.

The scenarios of an exercise are played once in a process, and its listed wrong answers are checked once.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from typing import Any, TypeVar, cast

from kcontrol.lab.exercises import answers, printed_output
from kcontrol.lab.exercises.check_kinds import kind_of
from kcontrol.lab.exercises.checks import Checker, Entry, UnusableAnswer, evaluate, short
from kcontrol.lab.support import learner_errors

MOST_RESULTS = 500
Of = TypeVar("Of", bound=Callable[..., Any])


def once(function: Of) -> Of:
    """Let a function of an exercise's table, and of other arguments, keep its results: equal tables have one result."""
    kept = lru_cache(MOST_RESULTS)(lambda text, *others: function(json.loads(text), *others))
    return cast(Of, lambda entry, *others: kept(json.dumps(entry), *others))


@once
def prepared(entry: Entry) -> Checker:
    """Return the check of an exercise, with the scenarios of `entry`, its table in exercises.toml, played."""
    return kind_of(entry).prepare(entry)


@once
def report_of_wrong(entry: Entry, number: int) -> dict[str, Any]:
    """Return the report of `examine` on the wrong answer `entry["wrong"][number]`."""
    return examine(entry, answers.wrong(entry, entry["wrong"][number]))


def examine(entry: Entry, answer: object) -> dict[str, Any]:
    """Check an answer, and return the report on it as a mapping, such as {"problem": "..."}."""
    # The report has `problem` and `printed` if the answer cannot be checked, `open` if it is empty, else `cases`, `passed` and
    # `remark`.
    if answer is None or answer is ... or (isinstance(answer, list | tuple | dict | str) and not answer):
        return {"open": True}
    kind = kind_of(entry)
    if not kind.accepts(answer):
        return {"problem": f"The answer to {entry['id']!r} must be {kind.wanted}; yours is {short(answer)}.", "printed": ""}
    try:
        marked = prepared(entry)(answer)
        cases = list(marked.cases)
    except UnusableAnswer as problem:
        return {"problem": str(problem), "printed": printed_output.take_output()}
    except Exception as error:  # the objects in an answer may raise when they are read
        words = f"Your answer cannot be checked: {learner_errors.described(error)}."
        return {"problem": words, "printed": printed_output.take_output()}
    if all(case.answer is None for case in cases):
        return {"open": True}
    found = [asdict(case) | {"is_right": case.is_right} for case in cases]
    return {"passed": all(case["is_right"] for case in found), "cases": found, "remark": marked.remark}


def known(entry: Entry, answer: object, found: dict[str, Any]) -> int | None:
    """Return the index in `entry["wrong"]`, the known wrong answers, of the first that equals `answer`; None if none does."""
    # A known wrong answer equals this answer if its expression `when` is true or, without `when`, if its `code` has the value of
    # this answer in each case.
    yours = [case["answer"] for case in found["cases"]]
    for number, listed in enumerate(entry["wrong"]):
        if "when" in listed:
            equal = bool(evaluate(listed["when"], answer=answer, yours=yours))
        else:
            equal = [case["answer"] for case in report_of_wrong(entry, number).get("cases", ())] == yours
        if equal:
            return number
    return None
