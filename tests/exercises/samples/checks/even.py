"""A check that an exercise brings along."""

from kcontrol.lab.exercises.checks import Case, CheckedAnswer, CheckKind


def prepare(entry):
    return lambda answer: CheckedAnswer([Case(f"{answer} is odd.", answer % 2, 0)])


KIND = CheckKind(prepare, "a number", lambda answer: isinstance(answer, int))
