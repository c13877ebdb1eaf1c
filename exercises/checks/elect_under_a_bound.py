"""Check that a rule loses no record and leaves partitions without a leader for little longer than Kafka's, in random failures."""

from kcontrol.lab.exercises.check_kinds import A_FUNCTION
from kcontrol.lab.exercises.checks import Case, CheckedAnswer, CheckKind, ask
from kcontrol.lab.tables.rule_trials import trials

SEEDS, RUNS, PERCENT = (19, 20), 3, 105  # three clusters per seed; at most 5 % above the time under Kafka's rule


def prepare(entry):
    """Return a function that checks an answer: it runs the learner's rule and Kafka's in equal clusters, for each of SEEDS.

    `entry`, the exercise's table in exercises.toml, is not used.
    """
    kafka = {seed: _trial("Kafka", None, seed) for seed in SEEDS}

    def mark(mine):
        def rule(assignment, isr, live):
            about = f", when called with assignment {assignment}, ISR {isr}, live replicas {live}"
            return ask(mine, assignment, isr, live, about=about)

        if all(rule([1, 2], isr, live) is None for isr in ([1, 2], [2]) for live in ([1, 2], [2])):
            return CheckedAnswer([Case("", None, True)])
        return CheckedAnswer(_cases(rule, kafka))

    return mark


def _trial(name, rule, seed):
    return trials({name: rule}, RUNS, seed).loc[name]


def _cases(rule, kafka):
    found = {}
    for seed in SEEDS:  # lost records come first
        found[seed] = _trial("yours", rule, seed)
        unclean = int(found[seed].unclean)
        yield Case(
            f"Seed {seed}: {unclean} of your elections chose a broker outside the ISR, so records can be lost.", unclean, 0
        )
    for seed, row in found.items():
        yours, most = int(row.offline_ms), int(kafka[seed].offline_ms) * PERCENT // 100
        text = f"Seed {seed}: partitions are without a leader for {yours} ms; {most} ms are enough."
        yield Case(text, yours, min(yours, most))


KIND = CheckKind(prepare, A_FUNCTION, callable)
