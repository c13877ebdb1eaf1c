"""Exercises: stubs fail with their message, solutions pass, wrong answers are told why, and nothing that is tried does harm."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from kcontrol.lab import exercises, judging
from kcontrol.lab.exercises import FOLDER, Verdict, check, exercise, registry, rule_of
from tests.lab.support import is_one_sentence

Rule = Callable[..., Any]
WHO = "who-leads-next"
IDS = list(registry())
WRONG = [pytest.param(id, wrong, id=f"{id}: {wrong['misconception']}") for id in IDS for wrong in registry()[id]["wrong"]]


def function_of(path: Path) -> Rule:
    """The one function that a file defines."""
    scope: dict[str, Any] = {}
    exec(compile(path.read_text(), path, "exec"), scope)
    (function,) = (value for name, value in scope.items() if not name.startswith("_"))
    return function


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


# ---------------------------------------------------------------- the registry


@pytest.mark.parametrize("id", IDS)
def test_every_exercise_is_complete(id: str) -> None:
    """Each has all that the notebooks, the class report and this file ask for."""
    entry = exercise(id)
    assert {"title", "chapter", "verb", "replaces", "minutes", "size", "open", "solved", "source"} <= entry.keys()
    assert entry["verb"] in ("Read", "Reach", "Order", "Fill", "Diagnose", "Query", "State", "Design")
    assert len(entry["hints"]) >= 2 and len(entry["scenario"]) >= 3
    names = [wrong["misconception"] for wrong in entry["wrong"]]
    assert len(names) == len(set(names)) >= 3
    assert (FOLDER / entry["stub"]).exists() and (FOLDER / entry["solution"]).exists()


@pytest.mark.parametrize("id", IDS)
def test_no_hint_holds_the_solution(id: str) -> None:
    """No line of the solution's body is in a hint."""
    lines = (FOLDER / exercise(id)["solution"]).read_text().split('"""')[-1].splitlines()
    code = [line.strip() for line in lines if len(line.strip()) > 8]
    assert code and not [line for line in code for hint in exercise(id)["hints"] if line in hint]


@pytest.mark.parametrize("id", IDS)
def test_the_stub_fails_with_its_own_message(id: str) -> None:
    """Whoever has not begun is told so."""
    assert check(id, function_of(FOLDER / exercise(id)["stub"])) == Verdict(False, exercise(id)["open"])


@pytest.mark.parametrize("id", IDS)
def test_the_solution_passes(id: str) -> None:
    """The solution is solved, and shows Kafka's rule and where it is."""
    verdict = check(id, function_of(FOLDER / exercise(id)["solution"]))
    assert verdict.passed and exercise(id)["solved"] in verdict.text and exercise(id)["source"] in verdict.text


@pytest.mark.parametrize(("id", "wrong"), WRONG)
def test_each_listed_wrong_answer_gets_its_own_message(id: str, wrong: dict[str, Any]) -> None:
    """A wrong rule is recognised by its answers, in a scenario that is named, with what it said and what Kafka says."""
    verdict = check(id, rule_of(wrong))
    assert (verdict.passed, verdict.misconception) == (False, wrong["misconception"])
    assert verdict.text.splitlines()[1] == wrong["message"]
    first = verdict.text.splitlines()[0]
    assert first.startswith("Not yet. ") and "You say" in first and "Kafka says" in first


def test_the_first_answer_that_differs_is_shown() -> None:
    """Of several answers that differ, the first one is shown: with its scenario, and with what the function was asked."""
    verdict = check(WHO, lambda assignment, isr, live: isr[0])
    assert verdict.text.splitlines()[0] == (
        "Not yet. A leader dies, and the ISR still names it: when broker 2 is killed, the assignment is [2, 3, 1], "
        "the ISR [2, 3, 1], and alive are [1, 3]. You say broker 2, Kafka says broker 3."
    )


def last_in_the_assignment(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
    return next((b for b in reversed(assignment) if b in isr and b in live), None)


def highest_id(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
    return max((b for b in isr if b in live), default=None)


def only_the_preferred_one(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
    return assignment[0] if assignment[0] in isr and assignment[0] in live else None


def second_in_the_assignment(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
    return assignment[1] if assignment[1] in live else None


def first_alive_in_sync_or_first_in_sync(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
    return next((b for b in assignment if b in isr and b in live), isr[0])


def right_but_counts_calls(assignment: list[int], isr: list[int], live: list[int], calls: list[int] = []) -> int | None:  # noqa: B006
    calls.append(1)
    return None if len(calls) == 3 else next((b for b in assignment if b in isr and b in live), None)


MORE_WRONG = (
    last_in_the_assignment, highest_id, only_the_preferred_one, second_in_the_assignment,
    first_alive_in_sync_or_first_in_sync, right_but_counts_calls,
)  # fmt: skip


@pytest.mark.parametrize("rule", MORE_WRONG)
def test_wrong_rules_that_nobody_has_listed_are_refused(rule: Rule) -> None:
    """A rule that is wrong in its own way is shown the first answer that differs, and where to get a hint."""
    verdict = check(WHO, rule)
    assert not verdict.passed and verdict.misconception is None
    assert verdict.text.startswith("Not yet. ") and "lab.hint" in verdict.text


def with_a_loop(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
    for broker in assignment:
        if broker in live and broker in isr:
            return broker
    return None


def with_sets_and_a_spoilt_argument(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
    good = set(isr) & set(live)
    found = [broker for broker in assignment if broker in good]
    assignment.clear()
    isr.clear()
    live.clear()
    return found[0] if found else None


@pytest.mark.parametrize("rule", [with_a_loop, with_sets_and_a_spoilt_argument])
def test_other_right_rules_pass(rule: Rule) -> None:
    """What is judged is the answers, not how they are found."""
    assert check(WHO, rule).passed


def test_the_questions_are_those_of_real_scenarios() -> None:
    """The machine asks about dead members of the ISR, about an ISR in another order, and about nobody who qualifies."""
    asked = judging.judge(with_a_loop, exercise(WHO))["asked"]
    assert len(asked) >= 8 and len({case["scenario"] for case in asked}) == len(exercise(WHO)["scenario"])
    assert any(set(case["isr"]) - set(case["live"]) for case in asked)
    assert any(case["isr"] != [b for b in case["assignment"] if b in case["isr"]] for case in asked)
    assert any(case["right"] is None and case["live"] for case in asked)
    assert all(case["yours"] == case["right"] for case in asked)


# ---------------------------------------------------------------- what answers can do


def endless(assignment: Any, isr: Any, live: Any) -> Any:
    while True:
        pass


def asleep(assignment: Any, isr: Any, live: Any) -> Any:
    time.sleep(3_600)


def raises(assignment: Any, isr: Any, live: Any) -> Any:
    return assignment[99]


def of_the_wrong_type(assignment: Any, isr: Any, live: Any) -> Any:
    return str(assignment[0])


def leaves(assignment: Any, isr: Any, live: Any) -> Any:
    os._exit(0)


def exits(assignment: Any, isr: Any, live: Any) -> Any:
    sys.exit()


def greedy(assignment: Any, isr: Any, live: Any) -> Any:
    return len(bytearray(5 << 30))


def recursive(assignment: Any, isr: Any, live: Any) -> Any:
    return recursive(assignment, isr, live)


def takes_nothing() -> Any:
    return 1


def talkative(assignment: Any, isr: Any, live: Any) -> Any:
    print("x" * 1_000_000)
    sys.stderr.write("y" * 1_000_000)
    raise ValueError("two\nlines")


HARM: list[tuple[Rule, str]] = [
    (endless, "does not come to an end"),
    (raises, "IndexError"),
    (of_the_wrong_type, "a str"),
    (leaves, "ended its process"),
    (exits, "ended its process"),
    (greedy, "1024 MB"),
    (recursive, "calls itself"),
    (takes_nothing, "TypeError"),
    (talkative, "two lines"),
]


@pytest.mark.parametrize(("rule", "words"), HARM)
def test_whatever_an_answer_does_there_is_a_sentence(rule: Rule, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The answer is tried in a process of its own: here nothing happens but one sentence, and no process is left."""
    before = children()
    verdict = check(WHO, rule)
    assert not verdict.passed and words in verdict.text and is_one_sentence(verdict.text), verdict.text
    assert children() <= before
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_an_answer_that_sleeps_is_stopped() -> None:
    """Time by the clock is bounded too."""
    before = children()
    assert "does not come to an end" in check(WHO, asleep).text
    assert children() <= before


def test_an_answer_that_cannot_travel() -> None:
    """What refers to something that belongs to this process alone is refused in one sentence."""
    import threading

    lock = threading.Lock()
    verdict = check(WHO, lambda assignment, isr, live: lock and assignment[0])
    assert not verdict.passed and "nothing from outside" in verdict.text and is_one_sentence(verdict.text)


@pytest.mark.parametrize("answer", [3, "next_leader", None, [1]])
def test_an_answer_that_is_no_function(answer: object) -> None:
    """What cannot be called is refused in one sentence."""
    verdict = check(WHO, answer)
    assert not verdict.passed and "a function" in verdict.text and is_one_sentence(verdict.text)


def test_a_verdict_is_shown_as_text() -> None:
    """In a notebook a verdict is its words, escaped."""
    verdict = Verdict(False, "a <b>\nsecond line")
    assert repr(verdict) == "a <b>\nsecond line" and verdict._repr_html_() == "<p>a &lt;b&gt;</p><p>second line</p>"


def test_a_broken_exercise_is_caught() -> None:
    """An exercise whose listed wrong answers cannot be told apart would be seen: all of them answer differently somewhere."""
    asked = judging.judge(with_a_loop, exercise(WHO))["asked"]
    answers = {
        wrong["misconception"]: tuple(rule_of(wrong)(*exercises._arguments(case)) for case in asked)
        for wrong in exercise(WHO)["wrong"]
    }
    assert len(set(answers.values())) == len(answers)
    assert tuple(case["right"] for case in asked) not in answers.values()
