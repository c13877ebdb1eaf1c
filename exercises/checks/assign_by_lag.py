"""Check that an assignor moves few partitions and keeps the greatest lag small, in random series of joins and failures."""

import random

from kcontrol.core.errors import UserError
from kcontrol.group.assignors import Subscription
from kcontrol.lab.exercises.check_kinds import A_FUNCTION
from kcontrol.lab.exercises.checks import Case, CheckedAnswer, CheckKind, UnusableAnswer, ask
from kcontrol.lab.groups.assignor_trials import NUMBER, PARTITIONS, TOPIC, played, random_series

SERIES, MOVES = 1_000, 3_130
MEMBERS = {name: Subscription((TOPIC,)) for name in ("anna", "bert", "cleo")}


def prepare(entry):
    """Return a function that checks an answer: it plays every series with the learner's assignor.

    `entry` is the exercise's table in exercises.toml; its `at_most` is the greatest lag that is possible.
    """
    series = [random_series(random.Random(f"13 {number}")) for number in range(SERIES)]

    def mark(mine):
        if ask(mine, {"t": NUMBER}, MEMBERS, dict.fromkeys(PARTITIONS, 0)) is None:
            return CheckedAnswer([Case("", None, True)])
        try:
            found = [played("assign", mine, one) for one in series]
        except UserError as problem:
            raise UnusableAnswer(str(problem)) from None
        moved, lag = sum(row["moved"] for row in found), sum(row["greatest_lag"] for row in found) // len(found)
        return CheckedAnswer(list(_cases(entry["at_most"], moved, lag)))

    return mark


def _cases(at_most, moved, lag):
    yield Case(f"{SERIES} series: {moved} partitions have moved; {MOVES} moves are enough.", moved, min(moved, MOVES))
    text = f"{SERIES} series: the greatest lag is {lag} records on average; {at_most} are possible."
    yield Case(text, lag, min(lag, at_most))


KIND = CheckKind(prepare, A_FUNCTION, callable)
