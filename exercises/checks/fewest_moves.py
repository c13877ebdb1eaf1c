"""How often leaders move, and whether any election is unclean, under the learner's own rule."""

from kcontrol.lab.checks import Case, Kind, Marked, ask, play
from kcontrol.lab.kinds import A_FUNCTION
from kcontrol.lab.trials import counted


def prepare(entry):
    """Every scenario is played with the learner's function in the place of Kafka's rule."""

    def mark(mine):
        answers = []

        def rule(assignment, isr, live):
            about = f", when asked about assignment {assignment}, ISR {isr}, alive {live}"
            answers.append(ask(mine, assignment, isr, live, about=about))
            return answers[-1]

        by_scenario = [_cases(scenario, entry["at_most"], rule) for scenario in entry["scenario"]]
        cases = [case for kind in zip(*by_scenario, strict=True) for case in kind]  # lost records come first
        return Marked(cases if any(answer is not None for answer in answers) else [Case("", None, True)])

    return mark


def _cases(scenario, at_most, rule):
    with play(scenario, {"election.offline": rule}) as lab:
        found, down = counted(lab.records), int((lab.partitions().leader == -1).sum())
    title, moves, unclean = scenario["title"], found["elections"], found["unclean"]
    text = f"{title}: {unclean} of your elections took a broker from outside the ISR: the records that it lacks are lost."
    yield Case(text, unclean, 0)
    yield Case(f"{title}: {down} partitions have no leader in the end, although somebody in sync is alive.", down, 0)
    yield Case(f"{title}: leaders moved {moves} times; {at_most} are enough.", moves, min(moves, at_most))


KIND = Kind(prepare, A_FUNCTION, callable)
