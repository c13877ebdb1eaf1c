"""What a learner reads about an answer: it is true, it says what to look at, and its sign says whether the answer has passed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kcontrol.lab.exercises import answers, examination, exercises, printed_output
from kcontrol.lab.exercises.exercises import exercise, registry
from kcontrol.lab.exercises.verdicts import Cluster, Election, Verdict
from tests.infra.test_cli import assert_one_sentence, kcontrol
from tests.lab.support import is_one_sentence

SAMPLES = registry(Path(__file__).parent / "samples")
WHO = "who-leads-next"


def said(entry: dict[str, Any], answer: object) -> Verdict:
    """The verdict on an answer, judged in this process, with the text of a listed mistake."""
    found = examination.examine(entry, answer)
    if found.get("passed") is False:
        found["known"] = examination.known(entry, answer, found)
    return exercises.verdict(entry, found, "HINT")


def right(entry: dict[str, Any]) -> Any:
    return answers.shipped(entry, "solution")


# ---------------------------------------------------------------- what is said


def test_the_verdict_on_acts_without_a_record_says_that_none_is_produced() -> None:
    """In lose-one-record the verdict on a kill and a start alone says that the acts produce no record."""
    verdict = said(exercise("lose-one-record"), [("kill", 1), ("start", 1)])
    assert verdict.misconception == "no-record-is-produced" and "Your acts produce no record" in verdict.text


def test_what_can_happen_is_what_the_exercise_allows() -> None:
    """The verdict on an act that is not possible now names the possible acts that the exercise allows, and no other acts."""
    verdict = said(exercise("lose-one-record"), [("kill", 1), ("kill", 1)])
    assert "Act 2, ('kill', 1), is not possible now" in verdict.text and is_one_sentence(verdict.text)
    assert "('start', 1)" in verdict.text and not any(
        kind in verdict.text for kind in ("'expire_session'", "'terminate'", "'freeze'")
    )


def test_the_verdict_on_a_string_says_that_a_list_is_expected() -> None:
    """The verdict on a string in place of a list names both types."""
    entry = next(e for e in registry().values() if e["check"] == "value" and isinstance(right(e), list))
    verdict = said(entry, "".join(map(str, right(entry))))
    assert "The check expects a list; your answer is a string." in verdict.text


@pytest.mark.parametrize(("answer", "words"), [("yes", "a string"), (1, "a number"), ([True], "a list")])
def test_the_verdict_on_an_answer_of_another_type_names_both_types(answer: Any, words: str) -> None:
    """The verdict on a function that does not return True or False names the expected type and the type of the value."""
    verdict = said(exercise("is-it-complete"), lambda *_: answer)
    assert f"The check expects True or False; your answer is {words}." in verdict.text


def test_the_verdict_on_an_answer_of_the_right_type_names_no_type() -> None:
    """The verdict on a wrong answer of the right type does not say which type is expected."""
    verdict = said(exercise("is-it-complete"), lambda *_: False)
    assert verdict.text.startswith("Not yet.") and "The check expects" not in verdict.text


@pytest.mark.slow
def test_what_loses_records_is_said_before_what_costs_moves() -> None:
    """In fewest-moves the first line on a rule that also elects brokers outside the ISR says that records are lost."""

    def any_live(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
        return next((broker for broker in reversed(assignment) if broker in live), None)

    verdict = said(exercise("fewest-moves"), any_live)
    assert "chose a broker outside the ISR" in verdict.text.splitlines()[0] and "are lost" in verdict.text.splitlines()[0]


# ---------------------------------------------------------------- what the answer has printed, and where it has raised


def test_what_an_answer_prints_is_shown() -> None:
    """The verdict shows what the function has printed when it gave the answer that is shown, and nothing of other questions."""

    def chatty(assignment: list[int], isr: list[int], live: list[int]) -> int:
        print("asked about", isr, "<b>")
        return isr[0]

    verdict = said(exercise(WHO), chatty)
    assert verdict.printed == "asked about [2, 3, 1] <b>\n"
    assert "Your answer has printed:\n    asked about [2, 3, 1] <b>" in repr(verdict)
    assert "<pre>asked about [2, 3, 1] &lt;b&gt;</pre>" in verdict._repr_html_()


def test_what_an_answer_prints_without_end_is_cut() -> None:
    """Of a great deal that is printed the beginning is shown, and control characters are not sent to a terminal."""

    def loud(assignment: list[int], isr: list[int], live: list[int]) -> int:
        print("\x1b[2J" + "x" * 1_000_000)
        return isr[0]

    verdict = said(exercise(WHO), loud)
    assert len(verdict.printed) == printed_output.MOST_CHARACTERS and "\x1b" not in repr(verdict) + verdict._repr_html_()


def test_an_exception_has_its_line(tmp_path: Path) -> None:
    """The verdict on an answer that raises has the number and the text of its line, for a function and for a file."""

    def raising(assignment: list[int], isr: list[int], live: list[int]) -> int:
        return max(assignment[99:])

    line = raising.__code__.co_firstlineno + 1
    assert f"(line {line}: return max(assignment[99:]))" in said(exercise(WHO), raising).text
    text = "def next_leader(assignment, isr, live):\n    # a comment\n    return assignment[99]\n"
    assert (
        "(line 3: return assignment[99])" in exercises.judged(exercise(WHO), exercises.sandbox.AnswerText(text, "mine.py")).text
    )


# ---------------------------------------------------------------- pictures, our code, the sign


def test_a_wrong_rule_is_shown_beside_kafkas() -> None:
    """Where a rule and Kafka's part, there are two pictures of the same replicas: the learner's leader, and Kafka's."""
    yours, kafkas = said(exercise(WHO), lambda assignment, isr, live: isr[0]).pictures
    assert isinstance(yours, Election) and isinstance(kafkas, Election)
    assert (yours.leader, kafkas.leader) == (2, 3) and yours[1:4] == kafkas[1:4] == ([2, 3, 1], [2, 3, 1], [1, 3])
    assert "broker 2: leads, dead" in repr(yours) and "broker 3: leads, in sync" in repr(kafkas)


def test_acts_that_miss_the_goal_are_shown_beside_it() -> None:
    """Where acts miss the goal, there are two pictures: the cluster after them, and a cluster that has reached the goal."""
    yours, goal = said(SAMPLES["reach-epoch-3"], [("kill", 2)]).pictures
    assert "epoch 1" in repr(yours) and "epoch 3" in repr(goal)


@pytest.mark.parametrize("kind", ["query", "invariant", "value"])
def test_a_wrong_answer_about_a_run_shows_the_run(kind: str) -> None:
    """A wrong answer about a run comes with a picture of that run's cluster."""
    entry = next(entry for entry in registry().values() if entry["check"] == kind and entry["wrong"])
    (shown,) = said(entry, answers.wrong(entry, entry["wrong"][0])).pictures
    assert isinstance(shown, Cluster) and shown.svg().startswith("<svg")


@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry["id"]) for entry in registry().values()])
def test_a_solved_exercise_names_kafkas_source(entry: dict[str, Any]) -> None:
    """Each of Kafka's sources is named with its method or class, its file and its release."""
    parts = [part for part in entry["source"].split("; ") if "kazoo" not in part and "ZooKeeper's recipe" not in part]
    assert [part for part in parts if not re.search(r"\.(scala|java) \(", part)] == []


def test_verdicts_differ_by_sign_and_colour() -> None:
    """Solved and not yet differ by a sign, in a notebook by their colour too; an exercise that is not begun has neither."""
    entry = exercise(WHO)
    solved, wrong, begun = said(entry, right(entry)), said(entry, lambda *_: 1), said(entry, None)
    assert repr(solved).startswith("\u2713 Solved") and repr(wrong).startswith("\u2717 Not yet") and repr(begun) == entry["open"]
    assert "--jp-success-color1" in solved._repr_html_() and "--jp-error-color1" in wrong._repr_html_()
    assert "color" not in begun._repr_html_() and not begun.signed


def test_a_verdict_is_data_where_it_is_shown() -> None:
    """Markup in the words, in what was printed or in a picture's title is shown as text."""
    evil = "<img src=x onerror=alert(1)>"
    verdict = Verdict(False, evil, signed=True, printed=evil, pictures=(Election(evil, [1], [1], [1], 1),), code=evil)
    assert evil not in verdict._repr_html_() and evil not in verdict.pictures[0].svg()


def test_a_picture_of_a_leader_that_is_no_replica() -> None:
    """A leader that the assignment does not name stands at the end of the picture, and is called no replica."""
    assert repr(Election("x", [1, 2], [1], [1, 7], 7)).splitlines()[1:] == [
        "  broker 1: in sync",
        "  broker 2: dead, not in sync",
        "  broker 7: leads, no replica",
    ]


# ---------------------------------------------------------------- progress, and empty words


def test_what_is_solved_outside_of_a_learners_folder_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solution checked where no progress is kept says so in one sentence; a wrong answer does not."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(exercises, "judged", lambda entry, answer: said(entry, answer))
    assert exercises.check(WHO, right(exercise(WHO))).text.splitlines()[-1] == exercises.NOT_COUNTED
    assert exercises.NOT_COUNTED not in exercises.check(WHO, lambda *_: 1).text
    assert is_one_sentence(exercises.NOT_COUNTED)


@pytest.mark.parametrize("word", ["", " "])
def test_an_empty_chapter_is_refused(word: str, tmp_path: Path) -> None:
    """An empty word, such as an unset variable of a shell, is no chapter: nothing is put back, and nothing is listed."""
    folder = ("--dir", str(tmp_path / "work"))
    assert_one_sentence(kcontrol("reset", word, *folder), "no chapter")
    assert_one_sentence(
        kcontrol("exercises", "list", "--chapter", word, *folder), "has no exercises; the chapters with exercises are"
    )
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("word", ["0", "00", "10"])
def test_a_chapter_is_named_by_its_number(word: str, tmp_path: Path) -> None:
    """Exercises are listed by chapter, with leading zeros or without."""
    listed = kcontrol("exercises", "list", "--chapter", word, "--dir", str(tmp_path)).stdout.splitlines()
    ids = [id for id, entry in registry().items() if entry["chapter"] == int(word)]
    assert [line.split()[0] for line in listed] == ids != []
