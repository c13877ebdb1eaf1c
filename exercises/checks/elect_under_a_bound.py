"""Check that a rule loses no record and leaves partitions without a leader for little longer than Kafka's, in random failures."""

from kcontrol.lab.exercises.check_kinds import A_FUNCTION
from kcontrol.lab.exercises.checks import Case, CheckedAnswer, CheckKind, ask
from kcontrol.lab.tables.rule_trials import trials

SEEDS, RUNS, PERCENT = (19, 20), 3, 105  # three clusters per seed; at most 5 % above the time under Kafka's rule


def prepare(entry):
    """Return a function that checks an answer: it runs the learner's rule and Kafka's in equal clusters, for each of SEEDS.

    `entry`, the exercise's table in exercises.toml, is not used.
    """

    def mark(mine):
        def rule(assignment, isr, live):
            about = f", when called with assignment {assignment}, ISR {isr}, live replicas {live}"
            return ask(mine, assignment, isr, live, about=about)

        if all(rule([1, 2], isr, live) is None for isr in ([1, 2], [2]) for live in ([1, 2], [2])):
            return CheckedAnswer([Case("", None, True)])
        found = [(seed, trials({"Kafka": None, "yours": rule}, RUNS, seed)) for seed in SEEDS]
        by_seed = [_cases(seed, table) for seed, table in found]
        return CheckedAnswer([case for kind in zip(*by_seed, strict=True) for case in kind])  # lost records come first

    return mark


def _cases(seed, found):
    unclean, yours = int(found.unclean["yours"]), int(found.down_ms["yours"])
    most = int(found.down_ms["Kafka"]) * PERCENT // 100
    yield Case(f"Seed {seed}: {unclean} of your elections chose a broker outside the ISR, so records can be lost.", unclean, 0)
    yield Case(f"Seed {seed}: partitions are without a leader for {yours} ms; {most} ms are enough.", yours, min(yours, most))


KIND = CheckKind(prepare, A_FUNCTION, callable)
