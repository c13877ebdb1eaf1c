"""Check that leaders move rarely, and that no election is unclean, under the learner's rule."""

from kcontrol.lab.exercises.check_kinds import A_FUNCTION
from kcontrol.lab.exercises.checks import Case, CheckedAnswer, CheckKind, ask, play
from kcontrol.lab.tables.rule_trials import counted


def prepare(entry):
    """Return a function that checks an answer: it plays every scenario with the learner's function in place of Kafka's rule.

    `entry` is the exercise's table in exercises.toml, which has the scenarios.
    """

    def mark(mine):
        answers = []

        def rule(assignment, isr, live):
            about = f", when called with assignment {assignment}, ISR {isr}, live replicas {live}"
            answers.append(ask(mine, assignment, isr, live, about=about))
            return answers[-1]

        by_scenario = [_cases(scenario, entry["at_most"], rule) for scenario in entry["scenario"]]
        cases = [case for kind in zip(*by_scenario, strict=True) for case in kind]  # lost records come first
        return CheckedAnswer(cases if any(answer is not None for answer in answers) else [Case("", None, True)])

    return mark


def _cases(scenario, at_most, rule):
    with play(scenario, strategies={"offline": rule}) as lab:
        found, down = counted(lab.records), int((lab.partitions().leader == -1).sum())
    title, moves, unclean = scenario["title"], found["elections"], found["unclean"]
    text = f"{title}: {unclean} of your elections chose a broker outside the ISR: the records that this broker lacks are lost."
    yield Case(text, unclean, 0)
    yield Case(f"{title}: {down} partitions have no leader in the end, although a replica of the ISR is alive.", down, 0)
    yield Case(f"{title}: leaders moved {moves} times; {at_most} are enough.", moves, min(moves, at_most))


KIND = CheckKind(prepare, A_FUNCTION, callable)
