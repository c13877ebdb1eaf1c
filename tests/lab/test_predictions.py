"""Questions before, facts after, and what a notebook shows."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kcontrol import Lab, exercises
from kcontrol.core.errors import UserError
from kcontrol.install import progress
from kcontrol.install.workspace import STATE
from kcontrol.lab.exercises import predictions
from kcontrol.lab.support.missing_parts import MissingPart
from tests.lab.support import refusal

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
ORDERS = {
    "writes-to-t-0": "bdca",
    "broker-1-comes-back": "dabc",
    "two-writers-one-version": "abdc",
    "one-watch-two-writes": "bcda",
}


RIGHT, WRONG = "No, broker 2 goes on accepting writes as before.", "Yes, until another broker becomes the controller."


def asked(lab: Lab, id: str = "writes-to-t-0") -> predictions.PredictionQuestion:
    return exercises.predict(id, lab)


def number(question: predictions.PredictionQuestion, text: str) -> int:
    """The number under which this option is shown."""
    return question.options.index(text) + 1


def answered(lab: Lab, text: str, capsys: pytest.CaptureFixture[str]) -> tuple[predictions.PredictionQuestion, list[str]]:
    """The question after this answer and the run, and the lines of its outcome."""
    question = asked(lab)
    question.answer(number(question, text))
    lab.kill(1)
    exercises.outcome("writes-to-t-0")
    return question, capsys.readouterr().out.splitlines()


@pytest.fixture
def learners_folder(folder: Path) -> Path:
    """The folder that this process works in, as a learner's."""
    (folder / STATE).parent.mkdir()
    (folder / STATE).write_text("{}")
    return folder


def test_an_open_question_holds_the_viewers_buttons(lab: Lab) -> None:
    """Until the answer is there, the viewer's step does nothing and says why; Python's steps go on."""
    lab._repr_mimebundle_()
    shown, beside = lab._shown, lab.viewer
    assert shown is not None and shown.held == ""
    question = asked(lab)
    assert lab._held and lab._held == shown.held == beside.held == question.waiting
    lab._repr_mimebundle_()
    shown = lab._shown
    assert shown is not None and shown.held == lab._held
    before = len(lab.records)
    shown._on_message(shown, {"do": "step", "n": 1, "action": ["kill", 1]}, [])
    assert len(lab.records) == before and "Answer first" in shown.error
    lab.kill(1)
    question.answer(2)
    assert lab._held is None and shown.held == beside.held == ""
    shown._on_message(shown, {"do": "step", "n": 2, "action": ["start", 1]}, [])
    assert lab.brokers().alive[1] and shown.error == ""


def test_a_question_is_open_under_run_all(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """A question without an answer says so, and its outcome names neither the right option nor the rule."""
    question = asked(lab)
    assert "Not answered yet." in repr(question) and f"  {number(question, RIGHT)}  {RIGHT}" in repr(question)
    lab.kill(1)
    exercises.outcome("writes-to-t-0")
    said = capsys.readouterr().out
    assert said.startswith("Not answered: ") and RIGHT not in said and "Rule" not in said
    assert "Rule" in question.outcome_html().partition("<details>")[2]


@pytest.mark.parametrize("text", [RIGHT, WRONG])
def test_an_answer_before_the_run_shows_no_outcome(lab: Lab, text: str) -> None:
    """After an answer and before the run, form and text repeat the answer, and neither says whether it is right."""
    question = asked(lab)
    form = question.form
    form.click(number(question, text))
    shown = " ".join([repr(question), question._html(), form.said, *form.marks])
    assert f"Your answer: {text}" in form.said and "Run the next cells" in form.said
    assert form.chosen == number(question, text) and form.marks == ["", "", "", ""]
    assert not any(word in shown for word in ("Rule", "They go on", "✓", "✗", "Right", "Not right"))


def test_a_right_answer_after_the_run(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """The run's cell shows the sign, the answer, the outcome, the rule and its place in Kafka."""
    question, lines = answered(lab, RIGHT, capsys)
    assert lines[0] == f"✓ Your answer: {RIGHT}" and lines[1].startswith("They go on.")
    assert lines[2].startswith("Rule: ") and lines[3].startswith("In Kafka: KafkaApis")
    assert question.is_right and question.misconception is None
    assert question.form.marks == ["✓" if text == RIGHT else "" for text in question.options]


def test_a_wrong_answer_after_the_run(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """The run's cell marks the answer with one sign and names the right option with the other; the form marks both."""
    question, lines = answered(lab, WRONG, capsys)
    assert lines[:2] == [f"✗ Your answer: {WRONG}", f"✓ Right is: {RIGHT}"]
    assert not question.is_right and question.misconception == "dead-controller-stops-producers"
    signs = {RIGHT: "✓", WRONG: "✗"}
    assert question.form.marks == [signs.get(text, "") for text in question.options]


def test_right_and_wrong_have_a_sign_and_a_colour(lab: Lab) -> None:
    """The badge of a right outcome differs from that of a wrong one in its sign, its word and its colour."""
    badges = []
    for text in (RIGHT, WRONG):
        question = asked(lab)
        question.answer(number(question, text)).show_outcome()
        found = re.search(r"background:(#\w+);[^>]*>(.) ([^<]+)</b>", question.outcome_html())
        assert found
        badges.append(found.groups())
    assert all(one != other for one, other in zip(*badges, strict=True))


def test_an_answer_after_the_run_updates_the_output_of_the_run(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer after Run All updates the outcome below the run."""
    shown: list[str] = []

    class Handle:
        def update(self, outcome: object) -> None:
            shown.append(repr(outcome))

    monkeypatch.setattr("IPython.display.display", lambda outcome, display_id: shown.append(repr(outcome)) or Handle())
    question = asked(lab)
    lab.kill(1)
    exercises.outcome("writes-to-t-0")
    question.answer(number(question, RIGHT))
    assert shown[0].startswith("Not answered") and shown[-1].startswith(f"✓ Your answer: {RIGHT}")


@pytest.mark.parametrize("answer", [0, 5, "2", True, None])
def test_an_answer_that_is_no_option(lab: Lab, answer: Any) -> None:
    """What is no option is refused with the numbers that are, and the question stays open."""
    question = asked(lab)
    with pytest.raises(UserError) as problem:
        question.answer(answer)
    assert "from 1 to 4" in refusal(problem) and question.waiting


def test_an_answer_can_be_changed_until_the_outcome_is_shown(lab: Lab) -> None:
    """Before the run another answer takes the place of the first; after it another one is refused, and the form says why."""
    question = asked(lab).answer(1).answer(2)
    assert question.chosen == 2
    exercises.outcome("writes-to-t-0")
    assert question.answer(2).chosen == 2
    with pytest.raises(UserError) as problem:
        question.answer(3)
    question.form.click(3)
    assert question.chosen == 2 and question.form.said == refusal(problem)


def test_an_outcome_that_was_never_asked_for(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the cell that asks has not run, the outcome is that of an open question; an unknown id is refused."""
    monkeypatch.setattr(predictions, "_asked", {})
    exercises.outcome("writes-to-t-0")
    assert capsys.readouterr().out.startswith("Not answered: ")
    with pytest.raises(UserError) as problem:
        exercises.outcome("writes-to-t-9")
    assert "writes-to-t-0" in refusal(problem)


def test_a_question_of_another_run_is_not_asked(opened: Callable[..., Lab], capsys: pytest.CaptureFixture[str]) -> None:
    """Asked of a lab in which broker 1 has a copy of t-0, the question says in one sentence that it belongs to another run."""
    lab = opened(3, topics={"t": [[2, 1, 3], [1, 2, 3]]})
    question = asked(lab)
    sentence = repr(question)
    assert sentence.endswith("belongs to another run: ask it of the run in chapter 0.") and "\n" not in sentence
    assert WIDGET_VIEW not in question._repr_mimebundle_() and lab._held is None
    with pytest.raises(UserError) as problem:
        question.answer(1)
    exercises.outcome("writes-to-t-0")
    assert refusal(problem) == sentence == capsys.readouterr().out.strip()


SITUATED = [id for id, entry in predictions.predictions().items() if "fits" in entry]


def test_a_question_that_speaks_of_a_cluster_fits_no_other(opened: Callable[..., Lab]) -> None:
    """A cluster of other brokers, none of which runs, is that of no question that names a state."""
    other = opened([11, 12], start=False)
    assert len(SITUATED) > 30
    assert [id for id in SITUATED if predictions.belongs(predictions.entry_of(id), other)] == []


# ---------------------------------------------------------------- what is kept


def test_an_answer_is_kept_by_its_text(lab: Lab, learners_folder: Path) -> None:
    """In a learner's folder the answer outlives the kernel, by the text of the option and not by its place."""
    question = asked(lab)
    question.answer(number(question, WRONG))
    kept = json.loads((learners_folder / progress.FILE).read_text())
    assert kept == {"predictions": {"writes-to-t-0": WRONG}}
    again = asked(lab)
    assert again.chosen == number(again, WRONG) and again.waiting is None and not again.outcome_is_shown


def test_an_answer_that_no_option_is_any_more(lab: Lab, learners_folder: Path) -> None:
    """Where the kept text is that of no option, as after an update, the question is open."""
    progress.note_prediction(learners_folder, "writes-to-t-0", "It depends.")
    assert asked(lab).chosen is None


def test_answers_and_exercises_are_kept_side_by_side(lab: Lab, learners_folder: Path) -> None:
    """An answer to a question takes nothing from what is known of exercises, and the other way round."""
    progress.note(learners_folder, "who-leads-next", tries=2)
    asked(lab).answer(1)
    progress.note(learners_folder, "who-leads-next", tries=3)
    assert progress.of(learners_folder, "who-leads-next")["tries"] == 3
    assert progress.prediction(learners_folder, "writes-to-t-0") == asked(lab).options[0]


# ---------------------------------------------------------------- the form


def test_the_form_has_every_option_whole(lab: Lab) -> None:
    """The form has each option's text and nothing chosen; a page without a kernel gets a list."""
    question = asked(lab)
    bundle = question._repr_mimebundle_()
    assert WIDGET_VIEW in bundle and "Not answered" in bundle["text/plain"] and "<ol>" in bundle["text/html"]
    assert question.form.options == question.options and question.form.chosen == 0
    question.form._on_message(question.form, {"choose": 2}, [])
    assert question.chosen == 2 and lab._held is None


def test_text_of_a_question_is_escaped() -> None:
    """Markup in a question is shown as text, also in its outcome."""
    entry = {"question": "<b>?", "options": [{"text": "<i>"}], "right": 1, "outcome": "<u>", "rule": "&", "source": "<s>"}
    question = predictions.PredictionQuestion("x", entry, lambda: None)
    question.show_outcome()
    shown = question._html() + question.outcome_html()
    shown += question.answer(1)._html() + question.outcome_html()
    assert not any(tag in shown for tag in ("<b>?", "<i>", "<u>", "<s>"))


# ---------------------------------------------------------------- all questions


def lengths(id: str) -> list[int]:
    return [len(option["text"]) for option in predictions.predictions()[id]["options"]]


def test_the_order_of_the_options_is_drawn_from_the_id() -> None:
    """The order is pinned, so that it is that of every version of Python and of every PYTHONHASHSEED."""
    orders = {id: "".join(predictions.shuffled(id, "abcd")) for id in list(predictions.predictions())[:4]}  # type: ignore[arg-type]
    assert orders == ORDERS


def test_the_place_of_an_option_does_not_show_the_right_answer() -> None:
    """Of the 61 questions at most 40 % have the right option at any one place."""
    questions = {id: predictions.PredictionQuestion(id, entry, lambda: None) for id, entry in predictions.predictions().items()}
    assert len(questions) == 61
    places = Counter(question.right for question in questions.values())
    assert max(places.values()) <= 0.4 * 61


def test_the_length_of_an_option_does_not_show_the_right_answer() -> None:
    """The right option is the longest in at most a third of the questions, the shortest in at most a third, and each in some."""
    entries = predictions.predictions()
    right = {id: lengths(id)[entry["right"] - 1] for id, entry in entries.items()}
    longest = sum(right[id] == max(lengths(id)) for id in entries)
    shortest = sum(right[id] == min(lengths(id)) for id in entries)
    assert 0 < longest <= 61 / 3 and 0 < shortest <= 61 / 3


@pytest.mark.parametrize("id", predictions.predictions())
def test_the_options_of_a_question_are_equally_long(id: str) -> None:
    """The longest option has at most a fifth more letters than the shortest."""
    assert max(lengths(id)) <= 1.2 * min(lengths(id))


@pytest.mark.parametrize("id", predictions.predictions())
def test_every_question_is_complete(id: str) -> None:
    """A question has one right answer, misconceptions behind all others, an outcome, a rule and its source."""
    entry = predictions.predictions()[id]
    wrong = [option for number, option in enumerate(entry["options"], 1) if number != entry["right"]]
    assert 1 <= entry["right"] <= len(entry["options"]) and len(entry["options"]) >= 3
    assert all(option["misconception"] for option in wrong)
    assert "misconception" not in entry["options"][entry["right"] - 1]
    assert (
        entry["question"].endswith("?")
        and re.search(r"\((0\.8\.1|(0\.9(\.0)?, )?2\.8|Spark 4\.3)\)", entry["source"])
        and entry["rule"].endswith(".")
    )


def test_the_outcomes_that_questions_promise(lab: Lab) -> None:
    """What the two questions of chapter 0 say will happen does happen."""
    before = lab.partitions().loc["t-0"]
    assert lab.kill(1).run().partitions().loc["t-0"].equals(before)
    lab.start(1).run()
    assert lab.brokers().controller[2] and lab.partitions().leader["t-1"] == 2 and lab.partitions().isr["t-1"] == [2, 3, 1]


# ---------------------------------------------------------------- facts


@pytest.mark.parametrize(("want", "got"), [(2, 2), (2, np.int64(2)), ([1], [1]), ("x", "x"), (None, None)])
def test_a_fact_that_holds_is_printed(lab: Lab, capsys: pytest.CaptureFixture[str], want: Any, got: Any) -> None:
    """One line says what holds, numbers of pandas like any others."""
    exercises.expect("the fact", want, got)
    assert capsys.readouterr().out == f"✓ the fact: {want!r}, as expected\n"


def test_a_fact_that_does_not_hold_is_an_error(lab: Lab) -> None:
    """The error says in one sentence what is and what was expected, and a notebook shows just that."""
    with pytest.raises(AssertionError) as problem:
        exercises.expect("leader of t-0", 3, lab.partitions().leader["t-0"])
    assert str(problem.value) == "✗ leader of t-0: 2, but 3 was expected."
    assert problem.value._render_traceback_() == [str(problem.value)]


def test_what_stands_in_answers_with_itself() -> None:
    """Whatever is asked of a missing part is the missing part, which shows its sentence and is false."""
    missing = MissingPart("Spark is not installed.")
    assert repr(missing.sql("SELECT 1").toPandas()["x"].anything) == "Spark is not installed."
    assert not missing


# ---------------------------------------------------------------- pictures


def test_a_lab_shows_the_viewer(lab: Lab) -> None:
    """A lab at the end of a cell is the viewer, with a picture and a line for where none is shown."""
    data, _ = lab._repr_mimebundle_()
    assert WIDGET_VIEW in data and data["image/svg+xml"].startswith("<svg") and "broker 1 is controller" in data["text/plain"]


def test_only_the_latest_picture_has_buttons(lab: Lab) -> None:
    """A picture stays as it was when its cell ran; the next one takes its buttons over."""
    lab._repr_mimebundle_()
    first = lab._shown
    lab.kill(1)._repr_mimebundle_()
    second = lab._shown
    assert first is not None and second is not None
    assert (first.live, second.live) == (False, True)
    assert "3 brokers" in first.line() and "2 of 3" in second.line()


def test_the_viewer_beside_follows_everything(lab: Lab) -> None:
    """`lab.viewer` is one viewer that shows the last record after every act, by whomever; its clicks are the lab's."""
    viewer = lab.viewer
    lab.kill(1).run()
    assert viewer is lab.viewer and viewer.at == len(lab.records) - 1
    viewer.click_step(["start", 1])
    assert lab.brokers().alive[1]


def test_a_moment_shows_a_viewer_without_buttons(lab: Lab) -> None:
    """A rewound run can be looked at and not stepped."""
    data, _ = lab.kill(1).rewind(-2)._repr_mimebundle_()
    assert WIDGET_VIEW in data and "3 brokers" in data["text/plain"]


def test_a_user_error_is_a_sentence_in_a_notebook(lab: Lab) -> None:
    """IPython shows a UserError by its sentence alone."""
    with pytest.raises(UserError) as problem:
        lab.kill(9)
    assert problem.value._render_traceback_() == [str(problem.value)]


WHY = ("leader of t-1", "isr of t-1", "controller", "/controller_epoch", "2.1.60")


@pytest.mark.parametrize("what", WHY)
def test_why_is_the_chain_of_causes(lab: Lab, what: str) -> None:
    """The diagram's nodes are the records from the first cause down to the one that is asked about."""
    lab.kill(1).run()
    nodes = [line.split()[0] for line in lab.why(what).outline().splitlines() if "->" not in line.split()[1]]
    by_id = {str(record.id): record for record in lab.records}
    chain = [by_id[node] for node in nodes]
    assert chain[0].cause is None
    assert [str(record.cause) for record in chain[1:]] == nodes[:-1]


def test_why_does_a_broker_lead(lab: Lab) -> None:
    """The leader's record is the last one that changed the leader, and its first cause is the kill."""
    lab.kill(1).run().start(1).run()
    lines = lab.why("leader of t-1").outline().splitlines()
    assert "Broker 1 is killed" in lines[0]
    last = [line for line in lines if "->" not in line.split()[1]][-1]
    assert "leader 2" in last and "t-1" in last
    assert "AlterIsr" in lab.why("isr of t-1").outline()


def test_diagrams_have_the_machines_states_and_counts(lab: Lab) -> None:
    """A machine's diagram names every state, and counts the subjects of the controller that are in it."""
    outline = lab.diagram("partition").outline().splitlines()
    assert outline[:4] == ["NonExistentPartition", "NewPartition", "OnlinePartition 2", "OfflinePartition"]
    assert "OnlineReplica 5" in lab.diagram("replica").outline()
    assert lab.diagram("partition").svg().startswith("<svg")


def test_hints_come_one_at_a_time() -> None:
    """Each call gives the next hint, numbered; the call after the last one says that there are no more."""
    given = [str(exercises.hint("who-leads-next")) for _ in range(5)]
    while given[-1].startswith("Hint"):  # another test of this process may have taken hints before
        given = [*given[1:], str(exercises.hint("who-leads-next"))]
    numbers = [hint.split(":")[0] for hint in given]
    assert numbers[1:4] == ["Hint 1 of 3", "Hint 2 of 3", "Hint 3 of 3"] and given[4].startswith("This exercise has no more")
