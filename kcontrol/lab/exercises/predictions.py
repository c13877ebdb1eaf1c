"""Asks a learner questions before a run, and shows their outcomes in the output of the notebook cell that runs the lab."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, cast

from kcontrol.core.errors import UserError
from kcontrol.install import progress
from kcontrol.install.workspace import SHIPPED
from kcontrol.lab.support import arguments

if TYPE_CHECKING:
    from kcontrol.lab.lab import Lab

FILE = SHIPPED / "exercises" / "predictions.toml"
SIGN = {True: "✓", False: "✗"}
BADGE = {True: ("#1a7f37", "✓ Right"), False: ("#b3261e", "✗ Not right")}

_asked: dict[str, PredictionQuestion] = {}  # by id, the question of the last cell that asked it


@cache
def predictions() -> Mapping[str, Mapping[str, Any]]:
    """Return the questions of `exercises/predictions.toml` by id, each with its text, options and right option."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def entry_of(id: object) -> Mapping[str, Any]:
    """Return the entry of a question, its table in predictions.toml. Raises UserError, listing the ids, for an unknown id."""
    return predictions()[arguments.one_of(id, predictions(), "question")]


def shuffled(id: str, options: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return the options in a random order whose seed is the question's id.

    `random()` returns equal numbers for equal seeds in every version of Python; Python does not promise this of `shuffle`.
    """
    draws = random.Random(id)
    return sorted(options, key=lambda _: draws.random())


def belongs(entry: Mapping[str, Any], lab: Lab) -> bool:
    """Return whether the expression `fits` of a question is true in this lab, so that the question can be asked there."""
    from kcontrol.lab.exercises.checks import evaluate

    try:
        return bool(evaluate(entry.get("fits", "True"), lab=lab))
    except (KeyError, TypeError):  # the lab lacks the topic, the broker or the leader of the expression
        return False


def ask(id: str, lab: Lab, answered: Callable[[], None]) -> PredictionQuestion:
    """Return the question `id` for this lab, already answered if the learner's folder has an answer to the question.

    Each new answer to the question calls `answered`. Raises UserError, which lists the ids, for an unknown question.
    """
    # A question whose expression `fits` is false in the lab takes no answer.
    _asked[id] = PredictionQuestion(id, entry_of(id), answered, is_foreign=not belongs(entry_of(id), lab))
    return _asked[id]


def show_outcome(id: str) -> None:
    """Show the outcome of a question below the notebook cell that calls this function.

    Before the learner's answer show a sentence instead. Raises UserError, which lists the ids, for an unknown id.
    """
    entry = entry_of(id)
    # Without an `ask` no lab is checked.
    if id not in _asked:
        _asked[id] = PredictionQuestion(id, entry, lambda: None)
    _asked[id].show_outcome()


class PredictionQuestion:
    """A question with its options, which are numbered from 1; `chosen` is the learner's answer, None before an answer."""

    # The number of the chosen option.
    chosen: int | None

    def __init__(self, id: str, entry: Mapping[str, Any], answered: Callable[[], None], *, is_foreign: bool = False) -> None:
        # `is_foreign` is True if the expression `fits` of the question is false in the lab: then the question has no buttons and
        # takes no answer.
        self.id, self.is_foreign = id, is_foreign
        self._entry, self._answered = entry, answered
        self._options = shuffled(id, entry["options"])
        self.options = [option["text"] for option in self._options]
        self.right = self._options.index(entry["options"][entry["right"] - 1]) + 1
        kept = progress.prediction(progress.folder(), id)
        self.chosen = self.options.index(kept) + 1 if kept in self.options else None
        self._form: Any = None
        self._handle: Any = None
        self._run_has_shown = False

    def answer(self, chosen: int) -> PredictionQuestion:
        """Set the learner's answer to option `chosen`, from 1 on; return this question.

        Raises UserError for a number without an option, for a change after the outcome is shown, and if the question does not
        fit the lab.
        """
        if self.is_foreign:
            raise UserError(self._foreign())
        if isinstance(chosen, bool) or chosen not in range(1, len(self.options) + 1):
            raise UserError(f"{chosen!r} is not an answer: give a number from 1 to {len(self.options)}.")
        if self.outcome_is_shown and chosen != self.chosen:
            raise UserError(
                "The outcome of this question is shown already: to change your answer, run the cell that asks it again."
            )
        self.chosen = chosen
        progress.note_prediction(progress.folder(), self.id, self.options[chosen - 1])
        self._show()
        self._answered()
        return self

    @property
    def outcome_is_shown(self) -> bool:
        """Whether the learner has answered, and `show_outcome` has shown the outcome in a notebook cell."""
        return self.chosen is not None and self._run_has_shown

    @property
    def is_right(self) -> bool:
        """Whether the learner's answer to this question is right; False if the learner has not answered."""
        return self.chosen == self.right

    @property
    def misconception(self) -> str | None:
        """The id of the misconception that predictions.toml names for the chosen option, None before an answer.

        It is None for an option without a misconception, such as the right answer.
        """
        return self._options[self.chosen - 1].get("misconception") if self.chosen else None

    @property
    def waiting(self) -> str | None:
        """The sentence "Answer first: ..." for the viewer's Step button, None after an answer.

        It is also None for a question that takes no answer in this lab (`is_foreign`).
        """
        return None if self.chosen or self.is_foreign else f"Answer first: {self._entry['question']}"

    def show_outcome(self) -> None:
        """Show the outcome of this question below the output of the notebook cell that is running.

        Without an answer of the learner, show a sentence that the question has no answer yet.
        """
        from IPython.core.getipython import get_ipython

        shell = get_ipython()
        if shell is None:
            self._show_outcome()
            return

        def once(_: object) -> None:
            shell.events.unregister("post_run_cell", once)
            self._show_outcome()

        shell.events.register("post_run_cell", once)

    def _show_outcome(self) -> None:
        from IPython.display import display

        self._run_has_shown = True
        self._handle = cast(Any, display)(Outcome(self), display_id=True)
        self._show()

    # ---------------------------------------------------------------- text

    def _foreign(self) -> str:
        return f"The question {self.id!r} belongs to another run: ask it of the run in chapter {self._entry['chapter']}."

    @property
    def _yours(self) -> str:
        """The text of the learner's answer; "" before an answer."""
        return self.options[self.chosen - 1] if self.chosen else ""

    def _said(self) -> str:
        """The text below the options: the answer, and after the outcome whether it is right."""
        if not self.chosen:
            return "Not answered yet."
        if not self.outcome_is_shown:
            return f"Your answer: {self._yours} Run the next cells to see what happens."
        return "Right: the run has shown it." if self.is_right else "Not right: the run has shown another outcome."

    def outcome(self) -> list[str]:
        """Return the outcome as lines: the answer, the right option if the answer is wrong, the run's outcome, Kafka's rule.

        Before an answer, and for a question that takes no answer in this lab, the list has one sentence.
        """
        if self.is_foreign:
            return [self._foreign()]
        if self.chosen is None:
            return [f"Not answered: {self._entry['question']} The outcome is shown here as soon as you answer."]
        correction = [] if self.is_right else [f"✓ Right is: {self.options[self.right - 1]}"]
        return [f"{SIGN[self.is_right]} Your answer: {self._yours}", *correction, *self._facts()]

    def _facts(self) -> list[str]:
        return [self._entry["outcome"], f"Rule: {self._entry['rule']}", f"In Kafka: {self._entry['source']}"]

    def __repr__(self) -> str:
        if self.is_foreign:
            return self._foreign()
        numbers = range(1, len(self.options) + 1)
        options = [f"{self._mark(number):1} {number}  {text}" for number, text in zip(numbers, self.options, strict=True)]
        advice = " Choose above, or call question.answer(number)." if self.chosen is None else ""
        return "\n".join([self._entry["question"], *options, self._said() + advice])

    def _mark(self, number: int) -> str:
        """The right option has "✓" and a wrong answer "✗", all others and all before the outcome ""."""
        if not self.outcome_is_shown or number not in (self.right, self.chosen):
            return ""
        return SIGN[number == self.right]

    def _html(self) -> str:
        if self.is_foreign:
            return f"<p>{escape(self._foreign())}</p>"
        options = "".join(f"<li>{escape(text)}</li>" for text in self.options)
        return f"<p>{escape(self._entry['question'])}</p><ol>{options}</ol><p>{escape(self._said())}</p>"

    def outcome_html(self) -> str:
        """Return the outcome as HTML; until the learner has answered, a click is needed to show the run's outcome.

        For a question about another run (`is_foreign`) return a sentence that names the chapter of that run.
        """
        facts = "".join(f"<p>{escape(line)}</p>" for line in self._facts())
        if self.is_foreign:
            return f"<p>{escape(self._foreign())}</p>"
        if self.chosen is None:
            first = escape(self.outcome()[0])
            return f"<p>{first}</p><details><summary>Show the outcome without an answer</summary>{facts}</details>"
        colour, word = BADGE[self.is_right]
        badge = f'<b style="background:{colour};color:#fff;border-radius:4px;padding:1px 8px">{word}</b>'
        lines = "".join(f'<div style="margin-top:4px">{escape(line)}</div>' for line in self.outcome()[1:])
        yours = f"<div>{badge} Your answer: {escape(self._yours)}</div>"
        return f'<div style="border-left:4px solid {colour};padding-left:10px">{yours}{lines}</div>'

    # ---------------------------------------------------------------- form

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        shown = {} if self.is_foreign else self.form._repr_mimebundle_()[0]
        return {**shown, "text/plain": repr(self), "text/html": self._html()}

    @property
    def form(self) -> Any:
        """The question as a widget (QuestionForm) with one button for each option."""
        if self._form is None:
            from kcontrol.views.question_widget import QuestionForm

            self._form = QuestionForm(self._entry["question"], self.options, self.answer)
            self._show()
        return self._form

    def _show(self) -> None:
        """Update the question's widget and its outcome in the notebook, if they are displayed."""
        if self._handle is not None:
            self._handle.update(Outcome(self))
        if self._form is not None:
            marks = [self._mark(number) for number in range(1, len(self.options) + 1)]
            self._form.show(chosen=self.chosen or 0, marks=marks, said=self._said())


class Outcome:
    """Shows the outcome of a question below a cell, as text and as HTML: the right option, the run's outcome, Kafka's rule."""

    def __init__(self, question: PredictionQuestion) -> None:
        self._question = question

    def __repr__(self) -> str:
        return "\n".join(self._question.outcome())

    def _repr_html_(self) -> str:
        return self._question.outcome_html()
