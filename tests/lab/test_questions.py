"""Questions before, facts after, and what a notebook shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kcontrol import Lab
from kcontrol.errors import UserError
from kcontrol.lab import predicting
from kcontrol.lab.missing import Missing
from tests.lab.support import refusal

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def test_an_open_question_holds_the_viewers_buttons(lab: Lab) -> None:
    """Until the answer is there, the viewer's step does nothing and says why; Python's steps go on."""
    lab._repr_mimebundle_()
    shown, beside = lab._shown, lab.viewer
    assert shown is not None and shown.held == ""
    question = lab.predict("writes-to-t-0")
    assert lab.held and lab.held == shown.held == beside.held == question.waiting
    lab._repr_mimebundle_()
    shown = lab._shown
    assert shown is not None and shown.held == lab.held
    before = len(lab.records)
    shown._on_message(shown, {"do": "step", "n": 1, "action": ["kill", 1]}, [])
    assert len(lab.records) == before and "Answer first" in shown.error
    lab.kill(1)
    question.answer(2)
    assert lab.held is None and shown.held == beside.held == ""
    shown._on_message(shown, {"do": "step", "n": 2, "action": ["start", 1]}, [])
    assert lab.brokers().alive[1] and shown.error == ""


def test_a_question_is_open_under_run_all(lab: Lab) -> None:
    """Shown and not answered, it says that it is open, and lists its answers by number."""
    shown = repr(lab.predict("writes-to-t-0"))
    assert "Open" in shown and "  2  No, they go on as before." in shown
    assert "Rule" not in shown


def test_the_right_answer(lab: Lab) -> None:
    """After it: the answer, the outcome, the rule and where Kafka has it."""
    question = lab.predict("writes-to-t-0").answer(2)
    assert question.is_right and question.misconception is None
    shown = repr(question)
    for words in ("Your answer, 2, is right.", "They go on.", "Rule: ", "In Kafka: KafkaApis"):
        assert words in shown
    assert "Open" not in shown


def test_a_wrong_answer_names_its_misconception(lab: Lab) -> None:
    """Each wrong option stands for a misconception; the outcome and the rule are shown all the same."""
    question = lab.predict("writes-to-t-0").answer(1)
    assert not question.is_right and question.misconception == "dead-controller-stops-producers"
    assert "not so" in repr(question) and "Rule: " in repr(question)


@pytest.mark.parametrize("answer", [0, 5, "2", True, None])
def test_an_answer_that_is_no_option(lab: Lab, answer: Any) -> None:
    """What is no option is refused with the numbers that are, and the question stays open."""
    question = lab.predict("writes-to-t-0")
    with pytest.raises(UserError) as problem:
        question.answer(answer)
    assert "from 1 to 4" in refusal(problem) and question.waiting


def test_an_answer_stands(lab: Lab) -> None:
    """A second answer is refused; the same one again is none."""
    question = lab.predict("writes-to-t-0").answer(1).answer(1)
    with pytest.raises(UserError) as problem:
        question.answer(2)
    refusal(problem)


def test_the_form_has_a_button_for_each_option(lab: Lab) -> None:
    """A click is an answer: the buttons go out, and the verdict is shown in the form."""
    question = lab.predict("writes-to-t-0")
    bundle = question._repr_mimebundle_()
    assert WIDGET_VIEW in bundle and "Open" in bundle["text/plain"] and "<ol>" in bundle["text/html"]
    buttons = [child for child in question.form.children if type(child).__name__ == "Button"]
    assert [button.description[0] for button in buttons] == ["1", "2", "3", "4"]
    buttons[1].click()
    assert question.chosen == 2 and lab.held is None
    assert all(button.disabled for button in buttons) and "Rule" in question.form.children[-1].value


def test_text_of_a_question_is_escaped() -> None:
    """Markup in a question is shown as text."""
    entry = {"question": "<b>?", "options": [{"text": "<i>"}], "right": 1, "outcome": "<u>", "rule": "&", "source": "<s>"}
    question = predicting.Question("x", entry, lambda: None).answer(1)
    assert not any(tag in question._html() for tag in ("<b>", "<i>", "<u>", "<s>"))


@pytest.mark.parametrize("id", predicting.predictions())
def test_every_question_is_complete(id: str) -> None:
    """A question has one right answer, misconceptions behind all others, an outcome, a rule and its source."""
    entry = predicting.predictions()[id]
    wrong = [option for number, option in enumerate(entry["options"], 1) if number != entry["right"]]
    assert 1 <= entry["right"] <= len(entry["options"]) and len(entry["options"]) >= 3
    assert all(option["misconception"] for option in wrong)
    assert "misconception" not in entry["options"][entry["right"] - 1]
    assert entry["question"].endswith("?") and re.search(r"\((0\.8\.1|2\.8)\)", entry["source"]) and entry["rule"].endswith(".")


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
    lab.expect("the fact", want, got)
    assert capsys.readouterr().out == f"the fact: {want!r}, as expected\n"


def test_a_fact_that_does_not_hold_is_an_error(lab: Lab) -> None:
    """The error says in one sentence what is and what was expected, and a notebook shows just that."""
    with pytest.raises(AssertionError) as problem:
        lab.expect("leader of t-0", 3, lab.partitions().leader["t-0"])
    assert str(problem.value) == "leader of t-0: 2, but 3 was expected."
    assert problem.value._render_traceback_() == [str(problem.value)]


def test_what_stands_in_answers_with_itself() -> None:
    """Whatever is asked of a missing part is the missing part, which shows its sentence and is false."""
    missing = Missing("Spark is not installed.")
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
    """A machine's diagram names every state, and counts those who are in it at the controller."""
    outline = lab.diagram("partition").outline().splitlines()
    assert outline[:4] == ["NonExistentPartition", "NewPartition", "OnlinePartition 2", "OfflinePartition"]
    assert "OnlineReplica 5" in lab.diagram("replica").outline()
    assert lab.diagram("partition").svg().startswith("<svg")


def test_hints_come_one_at_a_time(opened: Callable[..., Lab]) -> None:
    """Each call gives the next hint, numbered; after the last they begin anew."""
    lab = opened(1)
    given = [str(lab.hint("who-leads-next")) for _ in range(4)]
    numbers = [hint.split(":")[0] for hint in given]
    assert sorted(numbers[:3]) == ["Hint 1 of 3", "Hint 2 of 3", "Hint 3 of 3"] and given[3] == given[0]
