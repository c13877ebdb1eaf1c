"""Each answer gets one verdict in words, does no harm, and leaves the progress of the learner as it is or adds to it."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import pandas as pd
import psutil
import pytest

from kcontrol.core.errors import UserError
from kcontrol.install import progress, workspace
from kcontrol.lab.exercises import exercises, sandbox
from kcontrol.lab.exercises.checks import UnusableAnswer, comparable
from kcontrol.lab.exercises.examination import examine
from kcontrol.lab.exercises.exercises import FOLDER, check, exercise, judged, registry
from kcontrol.lab.exercises.verdicts import Verdict
from tests.infra.test_cli import assert_one_sentence, kcontrol
from tests.lab.support import is_one_sentence

Rule = Callable[..., Any]
WHO = "who-leads-next"
PARTITIONS = "/brokers/topics/t/partitions"
PARTITION = f"{PARTITIONS}/0"
SAMPLES = registry(Path(__file__).parent / "samples")


# The functions of this module travel as code: else the process of each answer would import pytest.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def children() -> set[int]:
    """The processes that this one has started, with the server of the checks."""
    sandbox.start()
    return {child.pid for child in psutil.Process().children(recursive=True)}


def test_the_first_answer_that_differs_is_shown() -> None:
    """Of several answers that differ, the first one is shown: with its scenario, and with what the function was asked."""
    verdict = check(WHO, lambda assignment, isr, live: isr[0])
    assert verdict.text.splitlines()[0] == (
        "Not yet. A leader dies, and the ISR still names it: when broker 2 is killed, the assignment is [2, 3, 1], "
        "the ISR [2, 3, 1], and alive are [1, 3]. Your leader: broker 2; Kafka's: broker 3."
    )


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
    """The machine asks about dead members of the ISR, about an ISR in another order, and about an ISR without a live member."""
    asked: list[tuple[list[int], list[int], list[int]]] = []

    def noting(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
        asked.append((assignment, isr, live))
        return with_a_loop(assignment, isr, live)

    found = examine(exercise(WHO), noting)
    assert found["passed"] and len(asked) == len(found["cases"]) >= 8
    assert any(set(isr) - set(live) for _, isr, live in asked)
    assert any(isr != [b for b in assignment if b in isr] for assignment, isr, _ in asked)
    assert any(case["expected"] is None and live for case, (_, _, live) in zip(found["cases"], asked, strict=True))


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


def writes_without_end(assignment: Any, isr: Any, live: Any) -> Any:
    with tempfile.TemporaryFile() as file:
        while True:
            file.write(bytes(1_000_000))


def talkative(assignment: Any, isr: Any, live: Any) -> Any:
    print("x" * 1_000_000)
    sys.stderr.write("y" * 1_000_000)
    raise ValueError("two\nlines")


HARM: list[tuple[Rule, str]] = [
    (endless, "did not end in time"),
    (raises, "IndexError"),
    (of_the_wrong_type, "a str"),
    (leaves, "ended its process"),
    (exits, "raised SystemExit"),
    (greedy, "1024 MB"),
    (recursive, "calls itself"),
    (takes_nothing, "TypeError"),
    (talkative, "two lines"),
    (writes_without_end, "OSError"),
]


@pytest.mark.parametrize(("rule", "words"), HARM)
def test_whatever_an_answer_does_there_is_a_sentence(rule: Rule, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The answer is tried in a process of its own: here nothing happens but one sentence, and no process is left."""
    before = children()
    verdict = judged(exercise(WHO) | {"seconds": 1}, rule)
    assert not verdict.passed and words in verdict.text and is_one_sentence(verdict.text), verdict.text
    assert children() <= before
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_an_answer_that_sleeps_is_stopped() -> None:
    """Time by the clock is bounded too."""
    before = children()
    assert "did not end in time" in check(WHO, asleep).text
    assert children() <= before


def test_an_answer_that_cannot_travel() -> None:
    """What refers to something that belongs to this process alone is refused in one sentence."""
    import threading

    lock = threading.Lock()
    verdict = check(WHO, lambda assignment, isr, live: lock and assignment[0])
    assert not verdict.passed and "cannot be sent to another process" in verdict.text and is_one_sentence(verdict.text)


@pytest.mark.parametrize("answer", [3, "next_leader", [1]])
def test_an_answer_that_is_no_function(answer: object) -> None:
    """What cannot be called is refused in one sentence."""
    verdict = check(WHO, answer)
    assert not verdict.passed and "a function" in verdict.text and is_one_sentence(verdict.text)


def test_a_verdict_is_shown_as_text() -> None:
    """In a notebook a verdict is its words, escaped."""
    verdict = Verdict(False, "a <b>\nsecond line")
    assert repr(verdict) == "a <b>\nsecond line" and verdict._repr_html_() == "<p>a &lt;b&gt;</p><p>second line</p>"


# ---------------------------------------------------------------- answers that are no functions


@pytest.mark.parametrize(
    ("id", "answer", "words"),
    [
        (
            "reach-epoch-3",
            [("kill", 7)],
            "Act 1, ('kill', 7), is not possible now; the allowed acts that are possible: ('kill', 1)",
        ),
        ("reach-epoch-3", [("set", "/controller_epoch", "3")], "may not be used here; the allowed acts are kill, start"),
        ("reach-epoch-3", [()], "may not be used"),
        ("reach-epoch-3", "kill 1", "a list of acts"),
        ("reach-epoch-3", [7], "may not be used"),
        ("read-an-epoch", print, "a value"),
        ("read-an-epoch", object(), "cannot be compared"),
        ("a-check-of-its-own", "two", "a number"),
        ("state-an-invariant", lambda moment: 1 / 0, "ZeroDivisionError"),
        ("fill-a-function", lambda: 1, "TypeError"),
    ],
)
def test_answers_that_cannot_be_judged(id: str, answer: object, words: str) -> None:
    """What is of the wrong sort, or cannot be done, is refused in a sentence that says what is wanted."""
    problem = examine(SAMPLES[id], answer)["problem"]
    assert words in problem and problem.endswith(".") and "\n" not in problem


@pytest.mark.parametrize(
    ("id", "answer", "words"),
    [
        ("order-the-writes", [PARTITION, PARTITIONS], "Your list has 2 elements, 2 of them right; the right list has 3."),
        ("order-the-writes", [PARTITION, PARTITION], "Your list has 2 elements, 1 of them right; the right list has 3."),
        ("order-the-writes", [PARTITIONS, f"{PARTITION}/state", PARTITION], "element 2 is the first at a wrong place"),
        ("read-an-epoch", True, "Your answer is True"),
        ("reach-epoch-3", [("kill", 2), ("start", 2)] * 2 + [("kill", 1)], "Your answer has 5 acts: use at most 4"),
        ("reach-epoch-3", [("kill", 2)], "After your 1 acts the controller epoch is 1; the goal is 3"),
    ],
)
def test_the_text_about_a_wrong_value_does_not_have_the_right_one(id: str, answer: object, words: str) -> None:
    """A wrong value shows how far it is right and not what would be right."""
    found = examine(SAMPLES[id], answer)
    assert found["passed"] is False
    assert words in next(case["text"] for case in found["cases"] if not case["is_right"])


def test_more_acts_than_needed_pass_with_a_remark() -> None:
    """An answer with more acts than needed passes, up to the exercise's limit; its remark names the fewest known acts."""
    found = examine(SAMPLES["reach-epoch-3"], [("kill", 2), ("kill", 1), ("start", 1), ("start", 2)])
    assert not found["passed"]
    found = examine(SAMPLES["reach-epoch-3"], [("kill", 1), ("run",), ("start", 1), ("kill", 2), ("start", 2)])
    assert found["passed"] and found["remark"] == "Your answer has 4 acts; 3 are enough."


def test_values_of_every_library_are_compared_alike() -> None:
    """Tables, numbers of numpy, sets and tuples count as what they hold; missing is None; True is not 1."""
    frame = pd.DataFrame({"a": pd.Series([1, None], ["x", "y"], "Int64")})
    assert comparable(frame) == {"x": {"a": 1}, "y": {"a": None}}
    assert comparable(frame.a.dropna().to_numpy()) == [1] == comparable({1.0})
    assert comparable((pd.Timedelta(seconds=2), pd.NaT, {2, 1})) == [2000, None, [1, 2]]
    with pytest.raises(UnusableAnswer, match="whose type object cannot be compared"):
        comparable([object()])


# ---------------------------------------------------------------- progress, and the shell


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A learner's folder, in which this process works."""
    workspace.prepare(tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def test_progress_is_kept_in_the_learners_folder(work: Path) -> None:
    """Tries are counted, solved stays solved, and an answer that is not begun is no try; another folder has its own progress."""
    solution = "def next_leader(a, isr, live):\n    return next((b for b in a if b in isr and b in live), None)\n"
    assert exercises.standing(work, WHO) == "open"
    check(WHO, None)
    assert exercises.standing(work, WHO) == "open"
    check(WHO, 3)
    assert exercises.standing(work, WHO) == "tried once"
    exercises.file_of(work, WHO).write_text(solution.replace("b in live", "b != 3"))
    assert exercises.check_file(work, WHO).text.endswith(f"A hint is in `kcontrol exercises hint {WHO}`.")
    exercises.file_of(work, WHO).write_text(solution)
    assert exercises.check_file(work, WHO).passed
    check(WHO, 3)
    assert exercises.standing(work, WHO) == "solved" and progress.of(work, WHO)["tries"] == 4
    assert exercises.standing(work.parent, WHO) == "open"


def test_progress_that_cannot_be_read_is_none(work: Path) -> None:
    """A broken file costs the progress and nothing else."""
    (work / progress.FILE).write_text('{"who-leads-next": {"tries": "many", "solved": 1}, "x": 3}')
    assert exercises.standing(work, WHO) == "open"
    (work / progress.FILE).write_text("{broken")
    assert exercises.hint(WHO).startswith("Hint 1 of 3: ") and exercises.hint(WHO).startswith("Hint 2 of 3: ")


def test_hints_come_one_at_a_time(work: Path) -> None:
    """Python and the shell give the same row of hints; after the last hint there is a sentence, and then the first hint again."""
    on_the_shell = kcontrol("exercises", "hint", WHO, "--dir", str(work)).stdout.strip()
    said = [on_the_shell, *(exercises.hint(WHO) for _ in range(4))]
    assert [hint[:9] for hint in said] == ["Hint 1 of", "Hint 2 of", "Hint 3 of", "This exer", "Hint 1 of"]
    assert "no more than 3 hints" in said[3] and is_one_sentence(said[3])
    assert [hint.partition(": ")[2] for hint in said[:3]] == exercise(WHO)["hints"]


@pytest.mark.slow
def test_an_exercise_on_the_shell(work: Path) -> None:
    """Start, check, reset and list do what they say; the status of a check says whether it is solved."""
    folder = ("--dir", str(work))
    file = exercises.file_of(work, WHO)
    file.unlink()
    started = kcontrol("exercises", "start", WHO, *folder)
    assert started.returncode == 0 and str(file) in started.stdout and exercise(WHO)["text"] in started.stdout
    assert file.read_bytes() == (FOLDER / exercise(WHO)["stub"]).read_bytes()
    tried = kcontrol("exercises", "check", WHO, *folder)
    assert (tried.returncode, tried.stdout) == (1, exercise(WHO)["open"] + "\n")
    mine = (FOLDER / exercise(WHO)["solution"]).read_text()
    file.write_text(mine)
    assert kcontrol("exercises", "start", WHO, *folder).returncode == 0 and file.read_text() == mine
    solved = kcontrol("exercises", "check", WHO, *folder)
    assert solved.returncode == 0 and solved.stdout.startswith(
        "\u2713 Solved: the check reports that your answer is right in all 6 scenarios."
    )
    line = next(line for line in kcontrol("exercises", "list", *folder).stdout.splitlines() if line.startswith(WHO))
    assert " 0  Fill " in line and "3 min" in line and "solved" in line
    brought = kcontrol("exercises", "reset", WHO, *folder)
    assert brought.returncode == 0 and "who_leads_next.kept-1.py" in brought.stdout
    assert file.with_name("who_leads_next.kept-1.py").read_text() == mine


def test_solutions_stay_at_home(work: Path) -> None:
    """The learner's folder holds a stub for every exercise, and nothing else of the exercises."""
    shipped = {path.name: path.read_text() for path in (work / workspace.EXERCISES).rglob("*")}
    assert shipped == {entry["stub"]: (FOLDER / entry["stub"]).read_text() for entry in registry().values()}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def next_leader(:", "not Python code"),
        ("x = 1", "does not define next_leader"),
        ("import os", "has no answer"),
        ("raise ValueError('x')\nnext_leader = 1", "ValueError: x"),
        pytest.param("while True: pass\nnext_leader = 1", "did not end in time", marks=pytest.mark.slow),
        ("next_leader = 3", "a function"),
    ],
)
def test_a_file_that_holds_no_answer(work: Path, text: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stands in the learner's file, the shell says one sentence."""
    monkeypatch.setitem(exercise(WHO), "seconds", 1)
    exercises.file_of(work, WHO).write_text(text)
    said = exercises.check_file(work, WHO)
    assert not said.passed and words in said.text and is_one_sentence(said.text), said.text


def test_names_that_nothing_has(work: Path) -> None:
    """An unknown exercise, an unknown chapter and a file that is not there are one sentence with what there is."""
    assert_one_sentence(kcontrol("exercises", "check", "who", "--dir", str(work)), "no exercise 'who'", WHO)
    assert_one_sentence(kcontrol("exercises", "list", "--chapter", "99", "--dir", str(work)), "Chapter '99' has no exercises")
    exercises.file_of(work, WHO).unlink()
    assert_one_sentence(kcontrol("exercises", "check", WHO, "--dir", str(work)), f"exercises start {WHO}")
    with pytest.raises(UserError, match="choose one of 'who-leads-next'"):
        exercises.hint("x")
