"""What a learner sees of a search: what was found, the run in a lab, the bounds, and the museum."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

from kcontrol import Lab, rules
from kcontrol.cluster.consumer_clients import REQUESTED
from kcontrol.core.errors import UserError
from kcontrol.lab.searches.searches import Found, NotFound
from kcontrol.search.museum import MUSEUM
from kcontrol.views.search_strip import SearchStrip, StripStep
from tests.lab.support import refusal

Opened = Callable[..., Lab]
DEPOSED = "a deposed controller writes nothing"


def creating(opened: Opened, **rule_values: Any) -> Lab:
    lab = opened(2, rules=rule_values)
    return lab.create_topic("t", [[1, 2]])


@pytest.fixture
def found(opened: Opened) -> Found:
    result = creating(opened, fenced_writes=False).search(DEPOSED, {"steps": 20}, ["delete_controller"])
    assert isinstance(result, Found)
    return result


@pytest.mark.breaks_invariants
def test_a_search_finds_a_shortest_run_under_the_learners_rule(found: Found) -> None:
    """Fifteen steps, one of them the fault; the picture and the text have each step, and the text says how it was searched."""
    assert len(found.actions) == 15 and ("delete", "/controller") in found.actions
    assert found.actions[-1] == ("advance", 1, "controller") and found.ended_by == "a violation"
    shown = found._repr_mimebundle_()
    assert shown["image/svg+xml"].count("<title>") == 15 and "writes t-0" in shown["image/svg+xml"]
    assert "> " in repr(found) and "quick engine" in repr(found) and found.violation in repr(found)


@pytest.mark.breaks_invariants
def test_a_found_run_opens_in_a_lab_up_to_any_step(found: Found) -> None:
    """Opened whole it breaks the invariant; from the step before the last but one, the other action keeps it."""
    assert found.open().tables.invariant_checks().outcome[DEPOSED] == "broken"
    before = found.open(13)
    assert before.tables.invariant_checks().outcome[DEPOSED] == "holds"
    before.step(("advance", 1, "controller")).run()
    assert before.tables.invariant_checks().outcome[DEPOSED] == "holds"
    with pytest.raises(UserError) as problem:
        found.open(16)
    assert "choose a step from 0 to 15" in refusal(problem)


def test_the_release_keeps_the_promise(opened: Opened) -> None:
    """With fenced writes nothing is found; the text says which bound has ended the search and what it leaves out."""
    lab = creating(opened)
    before = len(lab.records)
    result = lab.search(DEPOSED, {"steps": 16}, ["delete_controller"])
    assert isinstance(result, NotFound) and result.ended_by == "steps" and len(lab.records) == before
    text = repr(result)
    assert "all runs of up to 16 steps" in text and "faults of other kinds (kill" in text and "larger clusters" in text


@pytest.mark.parametrize("bounds", [{"states": 40}, {"seconds": 0}])
def test_a_search_that_ends_early_names_its_last_whole_depth(opened: Opened, bounds: dict[str, Any]) -> None:
    """A search that the bound on states or seconds ends leaves out all runs that are longer than its last whole level."""
    lab = opened(3, topics={"t": [[2, 3]]})
    result = lab.search("one controller", {"steps": 40, **bounds}, ["kill"])
    named = re.match(r"runs of more than (\d+) steps?, except some of (\d+) steps?; ", result.left_out)
    assert named and int(named[2]) == int(named[1]) + 1
    # The states after the last step that a search may take are not counted.
    before, after = (lab.search("one controller", {"steps": int(steps) + 1}, ["kill"]).states for steps in named.groups())
    assert result.ended_by == next(iter(bounds)) and before <= result.states < after


@pytest.mark.parametrize("start", [True, False])
def test_a_promise_that_the_first_state_breaks_is_found_without_a_step(opened: Opened, start: bool) -> None:
    """The run has no action and opens in a lab; text and picture say that the first state breaks the promise."""
    lab = opened(2, start=start)
    found = lab.search(rules.never(lambda state: True), {"faults": 0}, [])
    assert isinstance(found, Found) and found.actions == [] and found.open().partitions().empty
    begins = "he state in which the search begins breaks the promise"
    assert begins in repr(found) and begins in found.strip.svg()
    assert ("broken before the first action" in found.violation) != start


def test_a_search_of_no_step_looks_at_the_first_state_only(opened: Opened) -> None:
    """With the bound of 0 steps a run of one step, here a kill, is not searched."""
    promise = rules.always(lambda state: len(state.alive) == 2)
    none, one = (opened(2).search(promise, {"steps": steps}, ["kill"]) for steps in (0, 1.0))
    assert isinstance(none, NotFound) and (none.ended_by, none.states) == ("steps", 1)
    assert isinstance(one, Found) and one.actions == [("kill", 1)] and "1 step breaks the promise" in repr(one)


def test_runs_that_no_bound_of_steps_has_cut_off_are_not_left_out(opened: Opened) -> None:
    """If the bound on faults alone ends a search, all longer runs within this bound are searched."""
    result = opened(1).search("one controller", {"steps": 40}, ["kill"])
    assert result.ended_by == "faults" and result.left_out.startswith("runs with more than 1 fault, and")


@pytest.mark.breaks_invariants
def test_a_shorter_run_with_more_faults_is_left_out(opened: Opened) -> None:
    """A run that is found with one fault is longer than a run with two faults, which the text names as left out."""
    lab = opened(2)
    promise = rules.never(lambda state: not state.alive or state.controller_epoch > 1)
    one, two = (lab.search(promise, {"steps": 20, "faults": faults}, ["kill", "expire_session"]) for faults in (1, 2))
    assert isinstance(one, Found) and isinstance(two, Found) and len(two.actions) < len(one.actions)
    assert "runs with more faults or faults of other kinds" in one.left_out


def test_requests_of_consumers_that_no_run_has_are_left_out(opened: Opened) -> None:
    """A search of a cluster with consumers says whether the runs have requests of consumers."""
    lab = opened(1, consumers={"a": "g"}, topics={"t": [[1]]})
    silent, asking = (lab.search("one controller", {"steps": 2}, kinds) for kinds in (["kill"], [*REQUESTED]))
    assert "requests of consumers" in silent.left_out and "requests of consumers" not in asking.left_out


def test_a_condition_that_ends_python_is_a_sentence(opened: Opened) -> None:
    """A condition that calls `sys.exit` ends the search with a sentence, and not the process."""
    lab = opened(1)
    with pytest.raises(UserError) as problem:
        lab.search(rules.always(lambda state: sys.exit(3)), {"steps": 2}, ["kill"])
    assert "SystemExit: 3" in refusal(problem)


def test_a_search_runs_under_the_learners_election(opened: Opened) -> None:
    """A function that elects a replica outside the ISR is part of the searched cluster."""

    def first(assignment: list[int], isr: list[int], live: list[int]) -> int:
        return live[0]

    lab = opened(3, strategies={"offline": first}, topics={"t": [[2, 3]]})
    lab.shrink_isr("t-0", 3).run()
    promise = rules.always(lambda state: all(p.leader < 0 or p.leader == 2 for p in state.partitions.values()))
    result = lab.search(promise, {"steps": 20, "faults": 2}, ["kill", "expire_session"])
    assert isinstance(result, Found) and ("expire_session", 2) in result.actions


def test_a_lab_with_consumers_is_searched_by_the_plain_engine(opened: Opened) -> None:
    """The outcome says why the quick engine does not run."""
    lab = opened(1, consumers={"a": "g"}, topics={"t": [[1]]})
    result = lab.search(rules.never(lambda state: "g" in state.groups), {"steps": 3, "faults": 1}, ["join"])
    assert result.engine == "plain engine, because the cluster has consumers"


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        ({"step": 3}, "its bounds are steps, faults, states, seconds"),
        ({"steps": -1}, "a number that is not negative"),
        ({"faults": 0.5}, "a number that is not negative"),
        ({"seconds": True}, "a number that is not negative"),
        (3, "must be a dict"),
    ],
)
def test_a_bad_bound_is_a_sentence(opened: Opened, budget: Any, says: str) -> None:
    """The error lists the bounds."""
    lab = opened(1)
    with pytest.raises(UserError) as problem:
        lab.search("one controller", budget)
    assert says in refusal(problem)


@pytest.mark.parametrize("faults", [["boo"], None, 5])
def test_a_bad_fault_is_a_sentence(opened: Opened, faults: Any) -> None:
    """The error lists the kinds of faults."""
    lab = opened(1)
    with pytest.raises(UserError) as problem:
        lab.search("one controller", faults=faults)
    assert "choose some of kill, start" in refusal(problem)


def test_the_museum_is_a_table(opened: Opened) -> None:
    """One row per bug, and each switch is a rule that a lab takes."""
    table = rules.museum()
    assert list(table.ticket) == [row.ticket for row in MUSEUM] and table.columns[0] == "switch"
    for row in MUSEUM:
        opened(1, rules={row.rule: row.restored})
    with pytest.raises(UserError) as problem:
        rules.hunt("boo")
    assert "choose one of 'fenced_writes'" in refusal(problem)


@pytest.mark.breaks_invariants
@pytest.mark.slow
def test_a_bug_of_the_museum_opens_in_a_lab() -> None:
    """The run that is found opens, at its start and at its end."""
    found = rules.hunt("handlers_outlive_session")
    assert isinstance(found, Found)
    checks = [lab.tables.invariant_checks() for lab in (found.open(0), found.open())]
    assert [check.outcome["only the named controller writes"] for check in checks] == ["holds", "broken"]
    assert isinstance(rules.hunt("handlers_outlive_session", fixed=True), NotFound)


def test_a_long_violation_has_several_lines_in_the_picture() -> None:
    """The picture of a found run has the whole sentence about a violation, and all its lines are inside the picture."""
    violation = " ".join(f"word-{n}-of-the-sentence" for n in range(16))
    drawn = ElementTree.fromstring(SearchStrip([StripStep("1", "('advance', 1)")], violation).svg())
    lines = [node for node in drawn.iter() if "word-" in (node.text or "")]
    assert " ".join(str(node.text) for node in lines) == violation
    assert all(0 < float(node.attrib["y"]) < float(drawn.attrib["height"]) for node in lines)
    assert max(len(str(node.text)) for node in lines) <= 110
