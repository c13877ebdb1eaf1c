"""A question as a widget: one button for each option; a click sends the learner's answer to Python."""

from collections.abc import Callable, Sequence
from typing import Any

import anywidget
import traitlets

from kcontrol.core.errors import UserError
from kcontrol.views.explanations import STATIC


class QuestionForm(anywidget.AnyWidget):
    """A question with one button for each option; a click calls `choose` with the number of the option, from 1."""

    _esm = (STATIC / "question.js").read_text(encoding="utf-8")
    _css = (STATIC / "question.css").read_text(encoding="utf-8")

    # Sent to the browser, which sends {"choose": number}.
    question = traitlets.Unicode("").tag(sync=True)
    options: traitlets.List[str] = traitlets.List().tag(sync=True)
    # The number of the chosen option, from 1; 0 for none.
    chosen = traitlets.Int(0).tag(sync=True)
    # One sign for each option: "\u2713" for the right option, "\u2717" for a wrong answer, else "".
    marks: traitlets.List[str] = traitlets.List().tag(sync=True)
    # The sentence below the options.
    said = traitlets.Unicode("").tag(sync=True)

    def __init__(self, question: str, options: Sequence[str], choose: Callable[[int], object]) -> None:
        super().__init__(question=question, options=list(options))
        self._choose = choose
        self.on_msg(self._on_message)

    def show(self, *, chosen: int, marks: Sequence[str], said: str) -> None:
        """Show the number of the chosen option (0 for none), a sign for each option (`marks`), and the sentence `said` below."""
        with self.hold_sync():
            self.chosen, self.marks, self.said = chosen, list(marks), said

    def click(self, number: int) -> None:
        """Choose option `number` (from 1), as a click does; the UserError of a refused answer is shown below the options."""
        try:
            self._choose(number)
        except UserError as problem:
            self.said = str(problem)

    def _on_message(self, _: Any, message: dict[str, Any], buffers: Any) -> None:
        self.click(int(message["choose"]))
