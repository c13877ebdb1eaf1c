"""The kinds of checks: CHECKS has one row for each; an exercise names its kind, or a file of its own."""

from __future__ import annotations

import copy
import runpy
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kcontrol.errors import NotNow, UserError
from kcontrol.lab import answers, replacing
from kcontrol.lab.checks import (
    Broken,
    Case,
    Entry,
    Kind,
    Mark,
    Marked,
    another_type,
    ask,
    comparable,
    do,
    evaluate,
    play,
    same,
    short,
)

if TYPE_CHECKING:
    from kcontrol.lab.lab import Lab
    from kcontrol.lab.moment import Moment
    from kcontrol.runtime.journal import Record

# ---------------------------------------------------------------- swap a rule, swap a row


def rule(entry: Entry) -> Mark:
    """The learner's function takes part in the machine; Kafka's own answer goes on, so that all are asked the same."""
    from kcontrol.controller.election import STRATEGIES, Candidates, Elected

    strategy = entry["replaces"].removeprefix("election.")

    def mark(function: Any) -> Marked:
        def compared(place: dict[str, str], c: Candidates) -> tuple[Case, Elected | None]:
            assignment, isr, live = replacing.question(c)
            about = f", when asked about assignment {assignment}, ISR {isr}, alive {live}"
            yours, right = ask(replacing.ask, function, c, about=about), STRATEGIES[strategy].rule(c)
            leader = right.leader if right else None
            where = (
                f"{place['scenario']}: when {place['when']}, the assignment is {assignment}, the ISR {isr}, and alive are {live}."
            )
            drawn = tuple(
                {"title": f"{who}: {_leader(says)} leads", "assignment": assignment, "isr": isr, "live": live, "leader": says}
                for who, says in (("You", yours), ("Kafka", leader))
            )
            return Case(f"{where} You say {_leader(yours)}, Kafka says {_leader(leader)}.", yours, leader, drawn), right

        return _in_the_machine(entry, compared)

    return mark


def _leader(broker: int | None) -> str:
    return "nobody" if broker is None else f"broker {broker}"


def row(entry: Entry) -> Mark:
    """The learner's function is the action of a row of the partition machine, and is asked with (ctx, tp, question)."""
    ours = replacing.ours(entry["replaces"])

    def mark(function: Any) -> Marked:
        def compared(place: dict[str, str], *question: Any) -> tuple[Case, Any]:
            right, tp = ours(*question), question[1]
            yours = _decision(ask(function, *question, about=f", when asked about {tp}"))
            where = f"{place['scenario']}: when {place['when']}, {tp} is asked about."
            text = f"{where} You say {short(yours)}, Kafka says {short(_decision(right))}."
            return Case(text + another_type(yours, _decision(right)), yours, _decision(right)), right

        return _in_the_machine(entry, compared)

    return mark


def _decision(value: Any) -> Any:
    """What a row's action decides; a refusal is a refusal, whatever its words are."""
    return "refused" if isinstance(value, str) else comparable(value)


def _in_the_machine(entry: Entry, compared: Callable[..., tuple[Case, Any]]) -> Marked:
    """Every question that the machine asks in the scenarios. Raises Broken for the first that had no answer."""
    cases: list[Case] = []
    problems: list[Broken] = []
    for scenario in entry["scenario"]:
        place = {"scenario": scenario["title"], "when": "the brokers start"}

        def ours_goes_on(*question: Any, place: dict[str, str] = place) -> Any:
            case, right = compared(place, *question)
            cases.append(case)
            return right

        problem: UserError | None = None
        try:
            play(scenario, {entry["replaces"]: _noting(ours_goes_on, problems)}, place).close()
        except UserError as error:
            problem = error
        if problems:
            raise problems[0]
        if problem:
            raise problem
    return Marked(cases)


def _noting(function: Callable[..., Any], problems: list[Broken]) -> Callable[..., Any]:
    """The function, with what it could not answer noted: the machine itself makes a failed event of that."""

    def noting(*question: Any) -> Any:
        try:
            return function(*question)
        except Broken as problem:
            problems.append(problem)
            raise

    return noting


# ---------------------------------------------------------------- functions that are called by themselves


def function(entry: Entry) -> Mark:
    """The learner's function is called with the `args` of each `case`, and compared with the solution."""
    solution = answers.shipped(entry, "solution")

    def mark(mine: Any) -> Marked:
        return Marked([_called(entry, mine, solution, case) for case in entry["case"]])

    return mark


def _called(entry: Entry, mine: Any, solution: Any, case: Mapping[str, Any]) -> Case:
    given = case["args"]
    where = case.get("title") or f"{answers.stub_slot(entry).name}({', '.join(map(short, given))})"
    yours = comparable(ask(mine, *copy.deepcopy(given), about=f", when asked {where}"))
    right = comparable(solution(*copy.deepcopy(given)))
    return Case(f"{where}: you say {short(yours)}, right is {short(right)}.{another_type(yours, right)}", yours, right)


def query(entry: Entry) -> Mark:
    """The learner's function is asked about the run of each scenario, as a Moment, and compared with the solution."""
    solution, runs = answers.shipped(entry, "solution"), [(s["title"], play(s)) for s in entry["scenario"]]

    def mark(mine: Any) -> Marked:
        return Marked([asked(title, lab, mine) for title, lab in runs])

    def asked(title: str, lab: Lab, mine: Any) -> Case:
        yours = comparable(ask(mine, _moment(lab), about=f", when asked about this run: {title}"))
        right = comparable(solution(_moment(lab)))
        text = f"{title}: you find {short(yours)}, the run says {short(right)}.{another_type(yours, right)}"
        return Case(text, yours, right, (_drawn(lab, f"{title}: the end of the run"),))

    return mark


def _moment(lab: Lab) -> Moment:
    from kcontrol.lab.moment import Moment

    return Moment(list(lab.records), lab.name)


def _drawn(run: Moment | Lab, title: str) -> dict[str, Any]:
    """What `verdicts.Cluster` is made of."""
    return {"title": title, "brokers": list(run.records[0].fields["brokers"]), "state": run.state}


def invariant(entry: Entry) -> Mark:
    """The learner's function is asked after every step of each run; where `holds` is false, it has to be False once."""
    runs = [(s["title"], s["holds"], list(_steps(s))) for s in entry["scenario"]]

    def mark(mine: Any) -> Marked:
        return Marked([_held(mine, *run) for run in runs])

    return mark


def _steps(scenario: Mapping[str, Any]) -> Iterator[list[Record]]:
    """The records of each step of a run, from its beginning: a step takes one ms of virtual time."""
    for _, step in groupby(play(scenario).records, key=lambda record: record.at_ms):
        yield list(step)


def _held(mine: Any, title: str, holds: bool, steps: list[list[Record]]) -> Case:
    from kcontrol.lab.moment import Moment

    records: list[Record] = []
    right = "holds" if holds else "is broken"
    moment = Moment(records, title)
    for step in steps:
        records.extend(step)
        answer = ask(mine, moment, about=f", when asked about this run: {title}")
        if answer is None:
            return Case(f"{title}: your invariant says nothing, neither True nor False.", None, right)
        if not answer:
            text = f"{title}: your invariant is broken by record {records[-1].id}, but nothing is wrong there."
            return Case(text, "is broken", right, (_drawn(moment, f"{title}: after record {records[-1].id}"),))
    text = f"{title}: in this run something goes wrong, and your invariant is True after every step."
    return Case(text, "holds", right, (_drawn(moment, f"{title}: the end of the run"),))


# ---------------------------------------------------------------- values


def value(entry: Entry) -> Mark:
    """The answer is what an expression, `right`, finds in the run of the scenario; with `any_of` it is one of those."""
    lab = play(entry["scenario"][0])
    right = comparable(evaluate(entry["right"], lab=lab))
    drawn = (_drawn(lab, "The end of the run that is asked about"),)

    def mark(answer: Any) -> Marked:
        yours = comparable(answer)
        if entry.get("any_of") and any(same(yours, one) for one in right):
            return Marked([Case("", yours, yours)])
        text = "" if same(yours, right) else _not_that(yours, right, right[0] if entry.get("any_of") else right)
        return Marked([Case(text, yours, right, drawn)])

    return mark


def _not_that(yours: Any, right: Any, like: Any) -> str:
    """What can be said about a wrong value without giving away the right one; `like` is of the type that is expected."""
    if other := another_type(yours, like):
        return f"You say {short(yours)}.{other}"
    if isinstance(yours, list) and isinstance(right, list) and not same(sorted(yours, key=str), sorted(right, key=str)):
        return f"You list {len(yours)}, and {sum(one in right for one in yours)} of them belong there; {len(right)} are wanted."
    if isinstance(yours, list) and isinstance(right, list):
        first = next(n for n, pair in enumerate(zip(yours, right, strict=True), 1) if not same(*pair))
        return f"These are the right ones, in another order: number {first} of your list is the first that stands elsewhere."
    return f"You say {short(yours)}; the run says something else."


# ---------------------------------------------------------------- bring the cluster into a state


def reach(entry: Entry) -> Mark:
    """The answer is a list of at most `at_most` acts besides "run"; after them the expression `of` of each goal has to be `is`.

    After each act the cluster comes to rest, unless `rest` is false. Only the kinds of acts in `allowed` count.
    """

    def mark(answer: Any) -> Marked:
        acts = [tuple(act) if isinstance(act, list | tuple) else (act,) for act in answer]
        count = _permitted(acts, entry)
        with _after(acts, entry) as lab:
            drawn = (_drawn(lab, f"After your {count} acts"), {**goal, "title": "The goal, reached by other acts"})
            cases = [_goal(goal, lab, count, drawn) for goal in entry["goal"]]
        few = Case(f"You need {count} acts: {entry['at_most']} have to be enough.", count <= entry["at_most"], True)
        remark = "" if count <= entry["par"] else f"You needed {count} acts; it can be done in {entry['par']}."
        return Marked([few, *cases], remark)

    with _after(answers.shipped(entry, "solution"), entry) as reached:
        goal = _drawn(reached, "")
    return mark


def _after(acts: Iterable[Any], entry: Entry) -> Lab:
    """The lab of the scenario after these acts, at rest."""
    lab = play(entry["scenario"][0])
    for number, act in enumerate(acts, 1):
        _played(lab, act, number, entry["allowed"])
        if entry.get("rest", True):
            lab.run()
    lab.run()
    return lab


def _permitted(acts: list[tuple[Any, ...]], entry: Entry) -> int:
    """How many acts count. Raises Broken for one that is not among those that may be used."""
    for act in acts:
        if not act or act[0] not in ("run", *entry["allowed"]):
            raise Broken(f"{short(act)} may not be used here; what may is {', '.join(entry['allowed'])}.")
    return sum(act[0] != "run" for act in acts)


def _played(lab: Lab, act: tuple[Any, ...], number: int, allowed: list[str]) -> None:
    try:
        do(lab, act)
    except NotNow as problem:
        now = ", ".join(repr(other) for other in problem.possible if other[0] in allowed) or "nothing"
        raise Broken(f"Act {number}, {short(act)}, cannot happen now; what is allowed here and can happen is {now}.") from None
    except UserError as problem:
        raise Broken(f"Act {number} cannot be done: {problem}") from None


def _goal(goal: Mapping[str, Any], lab: Lab, count: int, drawn: tuple[dict[str, Any], ...]) -> Case:
    yours = comparable(evaluate(goal["of"], lab=lab))
    text = f"After your {count} acts {goal['what']} is {short(yours)}; the goal is {goal['is']!r}."
    return Case(text, yours, goal["is"], drawn)


# ---------------------------------------------------------------- the table


def _is_list(answer: Any) -> bool:
    return isinstance(answer, list | tuple)


def _is_value(answer: Any) -> bool:
    return not callable(answer)


A_FUNCTION = "a function: hand it over by its name, without calling it"

# fmt: off
CHECKS = {
    "rule":      Kind(rule,      A_FUNCTION,                                                  callable),
    "row":       Kind(row,       A_FUNCTION,                                                  callable),
    "function":  Kind(function,  A_FUNCTION,                                                  callable),
    "query":     Kind(query,     A_FUNCTION,                                                  callable),
    "invariant": Kind(invariant, A_FUNCTION,                                                  callable),
    "value":     Kind(value,     "a value",                                                   _is_value),
    "reach":     Kind(reach,     'a list of acts, such as [("kill", 1), ("start", 1)]',       _is_list),
}
# fmt: on


def kind_of(entry: Entry) -> Kind:
    """The row that an exercise names, or the `KIND` of its own file below `exercises/`, such as `checks/fewest_moves.py`."""
    name = entry["check"]
    if name.endswith(".py"):
        found: Kind = runpy.run_path(str(Path(entry["folder"]) / name))["KIND"]
        return found
    return CHECKS[name]
