"""A check that an exercise brings along."""

from kcontrol.lab.checks import Case, Kind, Marked


def prepare(entry):
    return lambda answer: Marked([Case(f"{answer} is odd.", answer % 2, 0)])


KIND = Kind(prepare, "a number", lambda answer: isinstance(answer, int))
