"""Prepares the checks of exercises: one function per kind of check, by name in the mapping CHECKS.

Such a function takes an exercise's table in exercises.toml, and returns a function that takes the learner's answer and returns
a CheckedAnswer.
"""

from __future__ import annotations

import copy
import runpy
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kcontrol.core.errors import ActionNotPossible, UserError
from kcontrol.lab.exercises import answers, group_checks
from kcontrol.lab.exercises.checks import (
    Case,
    CheckedAnswer,
    Checker,
    CheckKind,
    Entry,
    UnusableAnswer,
    another_type,
    ask,
    capitalized,
    comparable,
    do,
    evaluate,
    play,
    same,
    short,
)
from kcontrol.lab.support import replacements
from kcontrol.views.text import counted

if TYPE_CHECKING:
    from kcontrol.journal.journal import Record
    from kcontrol.lab.lab import Lab
    from kcontrol.lab.run import Run

# ---------------------------------------------------------------- swap a rule, swap a row


def rule(entry: Entry) -> Checker:
    """Prepare a check that a learner's function returns Kafka's leader at each election of the scenarios.

    `entry`, the exercise's table in exercises.toml, has the scenarios to play, and the kind of election.
    """
    from kcontrol.controller.leader_election import STRATEGIES, Elected, ElectionInput

    # The learner's function takes the assignment, the ISR and the live replicas, and returns a broker id or None. The partition
    # state machine uses the leader that Kafka's rule elects, so that every answer gets equal inputs. `strategy` is the kind of
    # election, such as "offline".
    strategy = entry["replaces"]

    def mark(function: Any) -> CheckedAnswer:
        def compared(place: dict[str, str], c: ElectionInput) -> tuple[Case, Elected | None]:
            assignment, isr, live = replacements.question(c)
            about = f", when called with assignment {assignment}, ISR {isr}, live replicas {live}"
            yours, right = ask(replacements.ask, function, c, about=about), STRATEGIES[strategy].rule(c)
            leader = right.leader if right else None
            where = (
                f"{place['scenario']}: when {place['when']}, the assignment is {assignment}, the ISR {isr}, and alive are {live}."
            )
            drawn = tuple(
                {"title": f"{whose}: {_leader(b)} leads", "assignment": assignment, "isr": isr, "live": live, "leader": b}
                for whose, b in (("Your function", yours), ("Kafka", leader))
            )
            return Case(f"{where} Your leader: {_leader(yours)}; Kafka's: {_leader(leader)}.", yours, leader, drawn), right

        return _compare_in_machine(entry, compared, "strategies")

    return mark


def _leader(broker: int | None) -> str:
    return "no broker" if broker is None else f"broker {broker}"


def row(entry: Entry) -> Checker:
    """Prepare a check that a learner's function for a state transition returns results equal to those of Kafka's function.

    `entry`, the exercise's table in exercises.toml, names the transition, and has the scenarios in which both are called.
    """
    # The transition is such as "partition.(OfflinePartition, OnlinePartition)". Both functions get the arguments of the action:
    # the controller context, the partition or replica, and the input of the transition. The state machine uses the result of
    # Kafka's action.
    ours = replacements.own_function(entry["replaces"])

    def mark(function: Any) -> CheckedAnswer:
        def compared(place: dict[str, str], *question: Any) -> tuple[Case, Any]:
            right, tp = ours(*question), question[1]
            yours = _decision(ask(function, *question, about=f", when called for {tp}"))
            where = f"{place['scenario']}: when {place['when']}, your function is called for {tp}."
            text = f"{where} It returns {short(yours)}; Kafka's returns {short(_decision(right))}."
            return Case(text + another_type(yours, _decision(right)), yours, _decision(right)), right

        return _compare_in_machine(entry, compared, "rows")

    return mark


def _decision(value: Any) -> Any:
    """Return "refused" if a transition's action returned a text, the reason of a refusal.

    Otherwise return the action's result in JSON's types.
    """
    # A str is the reason of a refusal; reasons are not compared.
    return "refused" if isinstance(value, str) else comparable(value)


def _compare_in_machine(
    entry: Entry, compared: Callable[..., tuple[Case, Any]], argument: Literal["rows", "strategies"]
) -> CheckedAnswer:
    """Play the scenarios of `entry` with `compared` in place of Kafka's function; return the Case of each call.

    `compared` calls the learner's function and Kafka's, and returns (Case, Kafka's result); the lab uses Kafka's result.
    `argument` is the argument of Lab that takes `compared`.
    """
    # `entry` is the exercise's table in exercises.toml.
    cases: list[Case] = []
    problems: list[UnusableAnswer] = []
    for scenario in entry["scenario"]:
        place = {"scenario": scenario["title"], "when": "the brokers start"}

        def compare_and_return_ours(*question: Any, place: dict[str, str] = place) -> Any:
            case, right = compared(place, *question)
            cases.append(case)
            return right

        problem: UserError | None = None
        try:
            mine = _recording_errors(compare_and_return_ours, problems)
            own = {entry["replaces"]: _of_one_input(mine) if argument == "strategies" else mine}
            play(scenario, place, **{argument: own}).close()
        except UserError as error:
            problem = error
        if problems:
            # This is the first UnusableAnswer of a call.
            raise problems[0]
        if problem:
            raise problem
    return CheckedAnswer(cases)


def _of_one_input(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a function with exactly one parameter, which it passes to `function`; `function` may declare it as `*args`.

    A lab counts the parameters of an election rule: with one parameter the rule gets an ElectionInput.
    """

    # With any other number the rule gets three arguments: assignment, ISR and live replicas.
    def strategy(c: Any) -> Any:
        return function(c)

    return strategy


def _recording_errors(function: Callable[..., Any], problems: list[UnusableAnswer]) -> Callable[..., Any]:
    """Return a function that calls `function`, and appends each UnusableAnswer to `problems` before raising it again.

    The list is needed because a lab turns the error of a handler into a `handler_error` record, and continues.
    """

    def noting(*question: Any) -> Any:
        try:
            return function(*question)
        except UnusableAnswer as problem:
            problems.append(problem)
            raise

    return noting


# ---------------------------------------------------------------- functions that are called outside a machine


def function(entry: Entry) -> Checker:
    """Prepare a check that passes if the learner's function and the solution return equal values for the `args` of each `case`.

    `entry` is the exercise's table in exercises.toml.
    """
    solution = answers.shipped(entry, "solution")

    def mark(mine: Any) -> CheckedAnswer:
        return CheckedAnswer([_called(entry, mine, solution, case) for case in entry["case"]])

    return mark


def _called(entry: Entry, mine: Any, solution: Any, case: Mapping[str, Any]) -> Case:
    given = case["args"]
    where = case.get("title") or f"{answers.stub_slot(entry).name}({', '.join(map(short, given))})"
    yours = comparable(ask(mine, *copy.deepcopy(given), about=f", when called as {where}"))
    right = comparable(solution(*copy.deepcopy(given)))
    shown = capitalized(where) if "title" in case else where
    text = f"{shown}: your function returns {short(yours)}; right is {short(right)}.{another_type(yours, right)}"
    return Case(text, yours, right)


def query(entry: Entry) -> Checker:
    """Prepare a check that passes if the learner's function and the solution return equal values for the Run of each `scenario`.

    `entry` is the exercise's table in exercises.toml.
    """
    solution, runs = answers.shipped(entry, "solution"), [(s["title"], play(s)) for s in entry["scenario"]]

    def mark(mine: Any) -> CheckedAnswer:
        return CheckedAnswer([asked(title, lab, mine) for title, lab in runs])

    def asked(title: str, lab: Lab, mine: Any) -> Case:
        yours = comparable(ask(mine, _run_of(lab), about=f", when called with this run: {title}"))
        right = comparable(solution(_run_of(lab)))
        text = f"{title}: your function returns {short(yours)}; right is {short(right)}.{another_type(yours, right)}"
        return Case(text, yours, right, (_drawn(lab, f"{title}: the end of the run"),))

    return mark


def _run_of(lab: Lab) -> Run:
    from kcontrol.lab.run import Run

    return Run(list(lab.records), lab.name)


def _drawn(run: Run | Lab, title: str) -> dict[str, Any]:
    """Return, by name, the arguments of `verdicts.Cluster` for a picture of the cluster at the end of `run`.

    `title` is the title of the picture.
    """
    return {"title": title, "brokers": list(run.records[0].fields["brokers"]), "state": run.state}


def invariant(entry: Entry) -> Checker:
    """Prepare a check that calls a learner's function after each ms of each scenario in `entry`, with the Run up to this ms.

    The function must return True every time; in a scenario with `holds` false, False at least once.
    """
    # `entry` is the exercise's table in exercises.toml.
    runs = [(s["title"], s["holds"], list(_steps(s))) for s in entry["scenario"]]

    def mark(mine: Any) -> CheckedAnswer:
        return CheckedAnswer([_held(mine, *run) for run in runs])

    return mark


def _steps(scenario: Mapping[str, Any]) -> Iterator[list[Record]]:
    """Run a scenario of the exercise; yield its journal records in lists, one per ms of virtual time that has records.

    `scenario` has the arguments of the lab, and the actions in `acts`.
    """
    for _, step in groupby(play(scenario).records, key=lambda record: record.at_ms):
        yield list(step)


def _held(mine: Any, title: str, holds: bool, steps: list[list[Record]]) -> Case:
    from kcontrol.lab.run import Run

    records: list[Record] = []
    right = "holds" if holds else "is broken"
    moment = Run(records, title)
    for step in steps:
        records.extend(step)
        answer = ask(mine, moment, about=f", when called with this run: {title}")
        if answer is None:
            return Case(f"{title}: your invariant returns None: let it return True or False.", None, right)
        if not answer:
            text = f"{title}: your invariant is False after record {records[-1].id}, but nothing is wrong there."
            return Case(text, "is broken", right, (_drawn(moment, f"{title}: after record {records[-1].id}"),))
    text = f"{title}: in this run something goes wrong, and your invariant is True after every step."
    return Case(text, "holds", right, (_drawn(moment, f"{title}: the end of the run"),))


# ---------------------------------------------------------------- values


def value(entry: Entry) -> Checker:
    """Prepare a check that passes if the answer equals the value of the expression `right` in `entry`.

    The expression can use `lab`, in which the first scenario of `entry`, the exercise's table in exercises.toml, was played.
    """
    lab = play(entry["scenario"][0])
    right = comparable(evaluate(entry["right"], lab=lab))
    drawn = (_drawn(lab, "The end of the run in question"),)

    def mark(answer: Any) -> CheckedAnswer:
        yours = comparable(answer)
        # With `any_of` each element of the value is a right answer.
        if entry.get("any_of") and any(same(yours, option) for option in right):
            return CheckedAnswer([Case("", yours, yours)])
        text = "" if same(yours, right) else _difference(yours, right, right[0] if entry.get("any_of") else right)
        return CheckedAnswer([Case(text, yours, right, drawn)])

    return mark


def _difference(yours: Any, right: Any, like: Any) -> str:
    """Return a sentence on what is wrong with the learner's value `yours`, such as its type; it does not show the right value.

    `like` is a value of the right type: `right` or, if each element of `right` is a right answer, an element of `right`.
    """
    if other := another_type(yours, like):
        return f"Your answer is {short(yours)}.{other}"
    if isinstance(yours, list) and isinstance(right, list) and not same(sorted(yours, key=str), sorted(right, key=str)):
        left = [*right]
        for element in yours:
            # An element that stands once in the right list counts once.
            if element in left:
                left.remove(element)
        hits = len(right) - len(left)
        return f"Your list has {counted(len(yours), 'element')}, {hits} of them right; the right list has {len(right)}."
    if isinstance(yours, list) and isinstance(right, list):
        first = next(n for n, pair in enumerate(zip(yours, right, strict=True), 1) if not same(*pair))
        return f"Your list has the right elements in another order: element {first} is the first at a wrong place."
    return f"Your answer is {short(yours)}; the run has another value."


# ---------------------------------------------------------------- bring the cluster into a state


def reach(entry: Entry) -> Checker:
    """Prepare a check that performs the learner's actions, such as ("kill", 1), and passes if the cluster then meets all goals.

    `entry`, the exercise's table in exercises.toml, has the goals: expressions and their values.
    """

    def mark(answer: Any) -> CheckedAnswer:
        acts = [tuple(act) if isinstance(act, list | tuple) else (act,) for act in answer]
        # The actions follow those of the first scenario. Only `allowed` kinds of actions and "run" may be used, at most
        # `at_most` actions, without counting "run".
        count = _permitted(acts, entry)
        with _after(acts, entry) as lab:
            drawn = (_drawn(lab, f"After your {count} acts"), {**goal, "title": "The goal, reached by other acts"})
            # After the last action the expression `of` of each goal has to equal the goal's `is`.
            cases = [_goal(goal, lab, count, drawn) for goal in entry["goal"]]
        few = Case(f"Your answer has {count} acts: use at most {entry['at_most']}.", count <= entry["at_most"], True)
        remark = "" if count <= entry["par"] else f"Your answer has {count} acts; {entry['par']} are enough."
        return CheckedAnswer([few, *cases], remark)

    with _after(answers.shipped(entry, "solution"), entry) as reached:
        goal = _drawn(reached, "")
    return mark


def _after(acts: Iterable[Any], entry: Entry) -> Lab:
    """Play the first scenario of an exercise in a new lab, perform the learner's actions, and return the lab.

    `acts` has tuples or lists, such as ("kill", 1); `entry` is the exercise's table in exercises.toml.
    """
    lab = play(entry["scenario"][0])
    for number, act in enumerate(acts, 1):
        _played(lab, act, number, entry["allowed"])
        # The cluster performs its own steps, such as deliveries, after each action; if `rest` is false, only for "run" and at
        # the end.
        if entry.get("rest", True):
            lab.run()
    lab.run()
    return lab


def _permitted(acts: list[tuple[Any, ...]], entry: Entry) -> int:
    """Return the number of the learner's actions `acts` other than ("run",).

    Raises UnusableAnswer for an empty action and for a kind, such as "kill", that `entry["allowed"]` lacks.
    """
    for act in acts:
        if not act or act[0] not in ("run", *entry["allowed"]):
            raise UnusableAnswer(f"{short(act)} may not be used here; the allowed acts are {', '.join(entry['allowed'])}.")
    return sum(act[0] != "run" for act in acts)


def _played(lab: Lab, act: tuple[Any, ...], number: int, allowed: list[str]) -> None:
    try:
        do(lab, act)
    except ActionNotPossible as problem:
        now = ", ".join(repr(other) for other in problem.possible if other[0] in allowed) or "none"
        raise UnusableAnswer(
            f"Act {number}, {short(act)}, is not possible now; the allowed acts that are possible: {now}."
        ) from None
    except UserError as problem:
        raise UnusableAnswer(f"Act {number} is not possible: {problem}") from None


def _goal(goal: Mapping[str, Any], lab: Lab, count: int, drawn: tuple[dict[str, Any], ...]) -> Case:
    yours = comparable(evaluate(goal["of"], lab=lab))
    text = f"After your {count} acts {goal['what']} is {short(yours)}; the goal is {goal['is']!r}."
    return Case(text, yours, goal["is"], drawn)


# ---------------------------------------------------------------- the table


def _is_list(answer: Any) -> bool:
    return isinstance(answer, list | tuple)


def _is_value(answer: Any) -> bool:
    return not callable(answer)


A_FUNCTION = "a function: pass its name, without a call"

# fmt: off
CHECKS = {
    "rule":      CheckKind(rule, A_FUNCTION,                                                  callable),
    "row":       CheckKind(row,  A_FUNCTION,                                                  callable),
    "group_rule": CheckKind(group_checks.group_rule, A_FUNCTION,                              callable),
    "function":  CheckKind(function, A_FUNCTION,                                                  callable),
    "query":     CheckKind(query, A_FUNCTION,                                                  callable),
    "invariant": CheckKind(invariant, A_FUNCTION,                                             callable),
    "value":     CheckKind(value, "a value",                                                   _is_value),
    "reach":     CheckKind(reach, 'a list of acts, such as [("kill", 1), ("start", 1)]',       _is_list),
}
# fmt: on


def kind_of(entry: Entry) -> CheckKind:
    """Return the kind of check that an exercise's table in exercises.toml names under the key `check`.

    The name is a key of CHECKS, or a Python file, such as "checks/x.py", that defines KIND.
    """
    name = entry["check"]
    # The kind may be the variable KIND of a file in the exercises' folder, such as "checks/fewest_moves.py".
    if name.endswith(".py"):
        found: CheckKind = runpy.run_path(str(Path(entry["folder"]) / name))["KIND"]
        return found
    return CHECKS[name]
