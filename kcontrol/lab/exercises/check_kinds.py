"""Prepares the checks of exercises: one function per kind of check, by name in the mapping CHECKS.

Such a function takes an exercise's table in exercises.toml, and returns a function that takes the learner's answer and returns
a CheckedAnswer.
"""

from __future__ import annotations

import copy
import pickle
import runpy
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kcontrol.core.errors import ActionNotPossible, UserError
from kcontrol.lab.exercises import answers, checks, group_checks
from kcontrol.lab.support import replacements
from kcontrol.views import folded_state
from kcontrol.views.text import counted

if TYPE_CHECKING:
    import pandas as pd

    from kcontrol.controller.leader_election import Elected, ElectionInput
    from kcontrol.journal.journal import Record
    from kcontrol.lab.lab import Lab
    from kcontrol.lab.run import Run

# ---------------------------------------------------------------- swap a rule, swap a row


def rule(entry: checks.Entry) -> checks.Checker:
    """Prepare a check that a learner's function returns Kafka's leader at each election of the scenarios.

    `entry`, the exercise's table in exercises.toml, has the scenarios to play, and the kind of election.
    """

    # The learner's function takes the assignment, the ISR and the live replicas, and returns a broker id or None.
    def compared(function: Any, place: str, c: ElectionInput, right: Elected | None) -> checks.Case:
        assignment, isr, live = replacements.question(c)
        about = f", when called with assignment {assignment}, ISR {isr}, live replicas {live}"
        yours, leader = checks.ask(replacements.ask, function, c, about=about), right.leader if right else None
        where = f"{place}, the assignment is {assignment}, the ISR {isr}, and alive are {live}."
        question: dict[str, Any] = {"assignment": assignment, "isr": isr, "live": live}
        led = (("Your function", yours), ("Kafka", leader))
        drawn = tuple({"title": f"{whose}: {_leader(b)} leads", "leader": b, **question} for whose, b in led)
        return checks.Case(f"{where} Your leader: {_leader(yours)}; Kafka's: {_leader(leader)}.", yours, leader, drawn)

    calls = [(place, *question, right) for place, question, right in _calls(entry, "strategies")]
    return lambda function: checks.CheckedAnswer(compared(function, *call) for call in calls)


def _leader(broker: int | None) -> str:
    return "no broker" if broker is None else f"broker {broker}"


def row(entry: checks.Entry) -> checks.Checker:
    """Prepare a check that a learner's function for a state transition returns results equal to those of Kafka's function.

    `entry`, the exercise's table in exercises.toml, names the transition, and has the scenarios in which both are called.
    """
    # The transition is such as "partition.(OfflinePartition, OnlinePartition)". Both functions get the arguments of the action:
    # the controller context, the partition or replica, and the input of the transition.
    calls = [
        checks.Call(f"{place}, in the call for {question[1]}", partial(copy.deepcopy, question), _decision(right))
        for place, question, right in _calls(entry, "rows")
    ]
    return checks.comparing(calls, _decision)


def _decision(value: Any) -> Any:
    """Such as "refused" for a text, the reason of a refusal; else the action's result in JSON's types."""
    # A str is the reason of a refusal; reasons are not compared.
    return "refused" if isinstance(value, str) else checks.comparable(value)


def _calls(entry: checks.Entry, argument: Literal["rows", "strategies"]) -> list[tuple[str, tuple[Any, ...], Any]]:
    """Play the scenarios of an exercise; return each call of Kafka's function: (when it is, its arguments, its result)."""
    ours, calls = replacements.own_function(entry["replaces"]), list[tuple[str, tuple[Any, ...], Any]]()
    for scenario in entry["scenario"]:
        place = {"when": "the brokers start"}

        def noting(*question: Any, title: str = scenario["title"], place: dict[str, str] = place) -> Any:
            # A copy: the controller changes its context later.
            calls.append((f"{title}: when {place['when']}", copy.deepcopy(question), ours(*question)))
            return calls[-1][2]

        own = noting if argument == "rows" else _of_one_input(noting)
        checks.play(scenario, place, **{argument: {entry["replaces"]: own}}).close()
    return calls


def _of_one_input(function: Callable[..., Any]) -> Callable[[Any], Any]:
    # A lab counts the parameters of an election rule: with one parameter the rule gets an ElectionInput.
    return lambda c: function(c)


# ---------------------------------------------------------------- functions that are called outside a machine


def function(entry: checks.Entry) -> checks.Checker:
    """A check that the learner's function and the solution return equal values for the `args` of each `case`."""
    return checks.comparing([_call(entry, case["args"], case.get("title")) for case in entry["case"]])


def _call(entry: checks.Entry, given: list[Any], title: str | None) -> checks.Call:
    where = checks.capitalized(title) if title else f"{answers.stub_slot(entry).name}({', '.join(map(checks.short, given))})"
    right = answers.shipped(entry, "solution")(*copy.deepcopy(given))
    return checks.Call(where, partial(copy.deepcopy, tuple(given)), checks.comparable(right))


def query(entry: checks.Entry) -> checks.Checker:
    """A check that the learner's function and the solution return equal values for the Run of each `scenario`."""
    solution = answers.shipped(entry, "solution")
    return checks.comparing([_asked(scenario["title"], checks.play(scenario), solution) for scenario in entry["scenario"]])


def _asked(title: str, lab: Lab, solution: Any) -> checks.Call:
    from kcontrol.lab.run import Run

    def run() -> tuple[Run]:
        return (Run(list(lab.records), lab.name),)

    return checks.Call(title, run, checks.comparable(solution(*run())), (_drawn(lab, f"{title}: the end of the run"),))


def _drawn(run: Run | Lab, title: str) -> dict[str, Any]:
    """The arguments of `verdicts.Cluster` for a picture of the cluster at the end of `run`."""
    return {"title": title, "brokers": list(run.records[0].fields["brokers"]), "state": run.state}


def invariant(entry: checks.Entry) -> checks.Checker:
    """Prepare a check that calls a learner's function after each ms of each scenario in `entry`, with the Run up to this ms.

    The function must return True every time; in a scenario with `holds` false, False at least once.
    """
    # `entry` is the exercise's table in exercises.toml.
    runs = [(s["title"], s["holds"], list(_steps(s))) for s in entry["scenario"]]
    made: dict[str, bytes] = {}
    return lambda mine: checks.CheckedAnswer(_held(mine, *run, made) for run in runs)


def _steps(scenario: Mapping[str, Any]) -> Iterator[list[Record]]:
    """The journal records of a scenario in lists, one per ms of virtual time that has records."""
    for _, step in groupby(checks.play(scenario).records, key=lambda record: record.at_ms):
        yield list(step)


def _held(mine: Any, title: str, holds: bool, steps: list[list[Record]], made: dict[str, bytes]) -> checks.Case:
    from kcontrol.lab.run import Run

    records: list[Record] = []
    right = "holds" if holds else "is broken"
    moment = Run(records, title)
    vars(moment)["partitions"] = lambda: _partitions(moment, made)
    for step in steps:
        records.extend(step)
        answer = checks.ask(mine, moment, about=f", when called with this run: {title}")
        if answer is None:
            return checks.Case(f"{title}: your invariant returns None: let it return True or False.", None, right)
        if not answer:
            text = f"{title}: your invariant is False after record {records[-1].id}, but nothing is wrong there."
            return checks.Case(text, "is broken", right, (_drawn(moment, f"{title}: after record {records[-1].id}"),))
    text = f"{title}: in this run something goes wrong, and your invariant is True after every step."
    return checks.Case(text, "holds", right, (_drawn(moment, f"{title}: the end of the run"),))


def _partitions(moment: Run, made: dict[str, bytes]) -> pd.DataFrame:
    """Return the table of the partitions; one that is in `made` is copied, since it takes a ms to make it for every step."""
    from kcontrol.lab.tables import journal_tables

    known = (list(folded_state.partitions(moment.state)), journal_tables.states_at_the_controller(moment.state, "partition"))
    if (key := repr(known)) not in made:
        made[key] = pickle.dumps(journal_tables.partitions(moment.state))
    copied: pd.DataFrame = pickle.loads(made[key])  # noqa: S301 - it was pickled above
    return copied


# ---------------------------------------------------------------- values


def value(entry: checks.Entry) -> checks.Checker:
    """Prepare a check that passes if the answer equals the value of the expression `right` in `entry`.

    The expression can use `lab`, in which the first scenario of `entry`, the exercise's table in exercises.toml, was played.
    """
    lab = checks.play(entry["scenario"][0])
    right = checks.comparable(checks.evaluate(entry["right"], lab=lab))
    drawn = (_drawn(lab, "The end of the run in question"),)

    def mark(answer: Any) -> checks.CheckedAnswer:
        yours = checks.comparable(answer)
        # With `any_of` each element of the value is a right answer.
        if entry.get("any_of") and any(checks.same(yours, option) for option in right):
            return checks.CheckedAnswer([checks.Case("", yours, yours)])
        text = "" if checks.same(yours, right) else _difference(yours, right, right[0] if entry.get("any_of") else right)
        return checks.CheckedAnswer([checks.Case(text, yours, right, drawn)])

    return mark


def _difference(yours: Any, right: Any, like: Any) -> str:
    """Return a sentence on what is wrong with the learner's value `yours`, such as its type; it does not show the right value.

    `like` is a value of the right type: `right` or, if each element of `right` is a right answer, an element of `right`.
    """
    if other := checks.another_type(yours, like):
        return f"Your answer is {checks.short(yours)}.{other}"
    if isinstance(yours, list) and isinstance(right, list) and not checks.same(sorted(yours, key=str), sorted(right, key=str)):
        left = [*right]
        for element in yours:
            # An element that stands once in the right list counts once.
            if element in left:
                left.remove(element)
        hits = len(right) - len(left)
        return f"Your list has {counted(len(yours), 'element')}, {hits} of them right; the right list has {len(right)}."
    if isinstance(yours, list) and isinstance(right, list):
        first = next(n for n, pair in enumerate(zip(yours, right, strict=True), 1) if not checks.same(*pair))
        return f"Your list has the right elements in another order: element {first} is the first at a wrong place."
    return f"Your answer is {checks.short(yours)}; the run has another value."


# ---------------------------------------------------------------- bring the cluster into a state


def reach(entry: checks.Entry) -> checks.Checker:
    """Prepare a check that performs the learner's actions, such as ("kill", 1), and passes if the cluster then meets all goals.

    `entry`, the exercise's table in exercises.toml, has the goals: expressions and their values.
    """

    def mark(answer: Any) -> checks.CheckedAnswer:
        acts = [tuple(act) if isinstance(act, list | tuple) else (act,) for act in answer]
        # The actions follow those of the first scenario. Only `allowed` kinds of actions and "run" may be used, at most
        # `at_most` actions, without counting "run".
        count = _permitted(acts, entry)
        with _after(acts, entry) as lab:
            drawn = (_drawn(lab, f"After your {count} acts"), {**goal, "title": "The goal, reached by other acts"})
            # After the last action the expression `of` of each goal has to equal the goal's `is`.
            cases = [_goal(goal, lab, count, drawn) for goal in entry["goal"]]
        few = checks.Case(f"Your answer has {count} acts: use at most {entry['at_most']}.", count <= entry["at_most"], True)
        remark = "" if count <= entry["par"] else f"Your answer has {count} acts; {entry['par']} are enough."
        return checks.CheckedAnswer([few, *cases], remark)

    with _after(answers.shipped(entry, "solution"), entry) as reached:
        goal = _drawn(reached, "")
    return mark


def _after(acts: Iterable[Any], entry: checks.Entry) -> Lab:
    """Play the first scenario of an exercise in a new lab, perform the learner's actions, and return the lab."""
    lab = checks.play(entry["scenario"][0])
    for number, act in enumerate(acts, 1):
        _played(lab, act, number, entry["allowed"])
        # The cluster performs its own steps, such as deliveries, after each action; if `rest` is false, only for "run" and at
        # the end.
        if entry.get("rest", True):
            lab.run()
    lab.run()
    return lab


def _permitted(acts: list[tuple[Any, ...]], entry: checks.Entry) -> int:
    """Return the number of the learner's actions `acts` other than ("run",).

    Raises UnusableAnswer for an empty action and for a kind, such as "kill", that `entry["allowed"]` lacks.
    """
    for act in acts:
        if not act or act[0] not in ("run", *entry["allowed"]):
            raise checks.UnusableAnswer(
                f"{checks.short(act)} may not be used here; the allowed acts are {', '.join(entry['allowed'])}."
            )
    return sum(act[0] != "run" for act in acts)


def _played(lab: Lab, act: tuple[Any, ...], number: int, allowed: list[str]) -> None:
    try:
        checks.do(lab, act)
    except ActionNotPossible as problem:
        now = ", ".join(repr(other) for other in problem.possible if other[0] in allowed) or "none"
        raise checks.UnusableAnswer(
            f"Act {number}, {checks.short(act)}, is not possible now; the allowed acts that are possible: {now}."
        ) from None
    except UserError as problem:
        raise checks.UnusableAnswer(f"Act {number} is not possible: {problem}") from None


def _goal(goal: Mapping[str, Any], lab: Lab, count: int, drawn: tuple[dict[str, Any], ...]) -> checks.Case:
    yours = checks.comparable(checks.evaluate(goal["of"], lab=lab))
    text = f"After your {count} acts {goal['what']} is {checks.short(yours)}; the goal is {goal['is']!r}."
    return checks.Case(text, yours, goal["is"], drawn)


# ---------------------------------------------------------------- the table


A_FUNCTION = "a function: pass its name, without a call"
A_LIST = 'a list of acts, such as [("kill", 1), ("start", 1)]'

# fmt: off
CHECKS = {
    "rule":       checks.CheckKind(rule,                    A_FUNCTION, callable),
    "row":        checks.CheckKind(row,                     A_FUNCTION, callable),
    "group_rule": checks.CheckKind(group_checks.group_rule, A_FUNCTION, callable),
    "function":   checks.CheckKind(function,                A_FUNCTION, callable),
    "query":      checks.CheckKind(query,                   A_FUNCTION, callable),
    "invariant":  checks.CheckKind(invariant,               A_FUNCTION, callable),
    "value":      checks.CheckKind(value,                   "a value",  lambda answer: not callable(answer)),
    "reach":      checks.CheckKind(reach,                   A_LIST,     lambda answer: isinstance(answer, list | tuple)),
}
# fmt: on


def kind_of(entry: checks.Entry) -> checks.CheckKind:
    """Return the kind of check that an exercise's table in exercises.toml names under the key `check`.

    The name is a key of CHECKS, or a Python file, such as "checks/x.py", that defines KIND.
    """
    name = entry["check"]
    # The kind may be the variable KIND of a file in the exercises' folder, such as "checks/fewest_moves.py".
    if name.endswith(".py"):
        found: checks.CheckKind = runpy.run_path(str(Path(entry["folder"]) / name))["KIND"]
        return found
    return CHECKS[name]
