"""Questions that are answered before the answer can be seen."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from typing import Any

from kcontrol.errors import UserError
from kcontrol.lab.workspace import PROJECT

FILE = PROJECT / "exercises" / "predictions.toml"


@cache
def predictions() -> Mapping[str, Mapping[str, Any]]:
    """Every question by its id, as the file has it."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def question(id: str, answered: Callable[[], None]) -> Question:
    """The question, open; `answered` is called after its answer. Raises UserError, listing the ids, for an unknown one."""
    if id not in predictions():
        raise UserError(f"There is no question {id!r}; there are {', '.join(predictions())}.")
    return Question(id, predictions()[id], answered)


class Question:
    """One question with its options, counted from 1; `chosen` is the reader's answer, None while it is open."""

    def __init__(self, id: str, entry: Mapping[str, Any], answered: Callable[[], None]) -> None:
        self.id, self.chosen = id, None
        self._entry, self._answered = entry, answered
        self._options: list[Mapping[str, str]] = entry["options"]
        self._form: Any = None

    chosen: int | None

    def answer(self, chosen: int) -> Question:
        """Take the reader's answer. Raises UserError for one that is no option, or after another answer."""
        if isinstance(chosen, bool) or chosen not in range(1, len(self._options) + 1):
            raise UserError(f"{chosen!r} is none of the answers: say a number from 1 to {len(self._options)}.")
        if self.chosen not in (None, chosen):
            raise UserError(f"You have answered {self.chosen} already; run the cell that asks to answer anew.")
        self.chosen = chosen
        self._show_answer()
        self._answered()
        return self

    @property
    def is_right(self) -> bool:
        """Whether the reader was right; False while the question is open."""
        return bool(self.chosen == self._entry["right"])

    @property
    def misconception(self) -> str | None:
        """The id of the misconception behind a wrong answer."""
        return self._options[self.chosen - 1].get("misconception") if self.chosen else None

    @property
    def waiting(self) -> str | None:
        """Why a step has to wait; None once the question is answered."""
        return None if self.chosen else f"Answer first: {self._entry['question']}"

    # ---------------------------------------------------------------- text

    def _verdict(self) -> list[str]:
        """What is shown after the answer: the answer, the outcome, the rule."""
        if self.chosen is None:
            return ["Open: choose above, or call .answer(number)."]
        judged = "right" if self.is_right else "not so"
        return [
            f"Your answer, {self.chosen}, is {judged}.",
            self._entry["outcome"],
            f"Rule: {self._entry['rule']}",
            f"In Kafka: {self._entry['source']}",
        ]

    def __repr__(self) -> str:
        options = [f"  {number}  {option['text']}" for number, option in enumerate(self._options, 1)]
        return "\n".join([self._entry["question"], *options, *self._verdict()])

    def _html(self) -> str:
        options = "".join(f"<li>{escape(option['text'])}</li>" for option in self._options)
        return f"<p>{escape(self._entry['question'])}</p><ol>{options}</ol>{self._verdict_html()}"

    def _verdict_html(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in self._verdict())

    # ---------------------------------------------------------------- form

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {**self.form._repr_mimebundle_(), "text/plain": repr(self), "text/html": self._html()}

    @property
    def form(self) -> Any:
        """The question as a form with one button for each option."""
        if self._form is None:
            self._form = self._make_form()
            self._show_answer()
        return self._form

    def _make_form(self) -> Any:
        import ipywidgets as widgets

        self._said = widgets.HTML()
        self._buttons = [self._button(number, option["text"]) for number, option in enumerate(self._options, 1)]
        return widgets.VBox([widgets.HTML(f"<p>{escape(self._entry['question'])}</p>"), *self._buttons, self._said])

    def _button(self, number: int, text: str) -> Any:
        import ipywidgets as widgets

        layout = widgets.Layout(width="100%", max_width="36em")
        button = widgets.Button(description=f"{number}  {text}", tooltip=text, layout=layout)
        button.on_click(lambda _: self.answer(number))
        return button

    def _show_answer(self) -> None:
        if self._form is None:
            return
        self._said.value = self._verdict_html()
        for number, button in enumerate(self._buttons, 1):
            button.disabled = self.chosen is not None
            button.button_style = "info" if number == self.chosen else ""
