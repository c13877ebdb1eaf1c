"""Exercises and questions of the chapters: `from kcontrol import exercises`.

exercises.list()                    every exercise, with your result
exercises.check(id, answer)         check an answer to an exercise
exercises.hint(id)                  the next hint
exercises.incident(id)              the run that an exercise asks about
exercises.questions()               every question
exercises.predict(id, lab)          ask a question before the run that shows its outcome
exercises.outcome(id)               show the outcome after that run
exercises.expect(label, want, got)  compare a value with an expected value
exercises.progress()                how many exercises are solved, by chapter
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcontrol.core.errors import UserError
from kcontrol.lab import catalogue, expectations
from kcontrol.lab.exercises import exercises, predictions, sandbox
from kcontrol.lab.support import calls

if TYPE_CHECKING:
    import pandas as pd

    from kcontrol.lab.exercises.verdicts import Verdict
    from kcontrol.lab.lab import Lab
    from kcontrol.lab.run import Run
    from kcontrol.lab.support.output import Shown

__all__ = ["check", "expect", "hint", "incident", "list", "outcome", "predict", "progress", "questions"]


def __dir__() -> Any:
    return __all__


def list() -> pd.DataFrame:
    """Return one row per exercise, indexed by the id for `check`: chapter, verb, minutes, standing, hints and title.

    `verb` is the kind of task ("Fill"), `standing` the result ("tried once"), and `hints` counts the hints shown.
    """
    sandbox.start()
    return catalogue.exercise_table()


def check(id: str, answer: object) -> Verdict:
    """Check an answer to an exercise, a function or a value, in a separate process, and return the verdict.

    Raises UserError, which lists the ids, for an unknown exercise.
    """
    return exercises.check(id, answer)


def hint(id: str) -> Shown:
    """Return the next hint to an exercise; after the last hint a sentence that says so, and then the first hint again.

    Raises UserError, which lists the ids, for an unknown exercise.
    """
    sandbox.start()
    return exercises.hint(id)


def incident(id: str) -> Run:
    """Simulate the run that an exercise asks about, and return the run with its journal and tables.

    Raises UserError for an unknown exercise, and for an exercise without a run.
    """
    sandbox.start()
    return exercises.incident(id)


def questions() -> pd.DataFrame:
    """Return one row per question, indexed by the id for `predict`; the columns are chapter and question (the text)."""
    return catalogue.questions()


def predict(id: str, lab: Lab) -> predictions.PredictionQuestion:
    """Return a question about the next run of `lab`, as a form with one button per option.

    The viewer's Step button waits for the answer. Raises UserError, which lists the ids, for an unknown question.
    """
    from kcontrol.lab.lab import Lab

    if not isinstance(lab, Lab):
        raise UserError(f'A question needs a lab: use exercises.predict("{id}", lab).')
    sandbox.start()  # the chapter has exercises: their first check finds a server
    return lab._ask(id)


def outcome(id: str) -> None:
    """Show the outcome of the question `id` below the notebook cell, with Kafka's rule and its source.

    Without an answer, show only that the answer is missing. Raises UserError, which lists the ids, for an unknown question.
    """
    predictions.show_outcome(id)


def expect(label: str, want: object, got: object) -> None:
    """Print `label` and the value if `got` equals `want`; raise AssertionError, with one sentence, if it does not."""
    expectations.expect(label, want, got)


def progress() -> pd.DataFrame:
    """Return one row per chapter; columns: exercises, tried and solved, the numbers of all, of tried and of solved exercises."""
    return catalogue.progress_table()


calls.check_all(globals(), __all__)
