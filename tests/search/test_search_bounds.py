"""Promises and the bounds of a search: which bound has ended it, and what a condition of one's own is asked."""

from __future__ import annotations

import re

import pytest

from kcontrol.core.errors import UserError
from kcontrol.search.invariants import violation
from kcontrol.search.promises import Promise, SearchedState, always, comes_to_rest_with, never, promise
from kcontrol.search.search import Budget, search_within
from tests.core.support import settle
from tests.search.support import two_brokers
from tests.search.test_invariants import deposed

HOLDS = always(lambda state: True)


@pytest.mark.parametrize(("budget", "ended_by"), [
    (Budget(4, 1), "steps"),
    (Budget(400, 0), "faults"),
    (Budget(400, 1, states=20), "states"),
    (Budget(400, 1, seconds=0), "seconds"),
], ids=["steps", "faults", "states", "seconds"])  # fmt: skip
def test_a_search_says_which_bound_has_ended_it(budget: Budget, ended_by: str) -> None:
    """Nothing is found, and the bound that is too small is named."""
    result = search_within(two_brokers(("kill",)), budget, (HOLDS,))
    assert (result.violation, result.ended_by) == (None, ended_by)


def test_a_search_without_faults_ends_when_no_state_is_left() -> None:
    """From a cluster whose brokers have failed, with no fault on offer, a search ends before it reaches a bound."""
    world = two_brokers(())
    world.step(("kill", 1))
    world.step(("kill", 2))
    result = search_within(world, Budget(100, 5), (HOLDS,))
    assert (result.violation, result.ended_by) == (None, "no state left")


def test_a_violation_ends_a_search_first() -> None:
    """A violation in the first step ends a search, although steps and faults are left; the run has this step alone."""
    result = search_within(two_brokers(("kill",)), Budget(9, 2), (never(lambda state: 1 not in state.alive),))
    assert (result.ended_by, result.actions) == ("a violation", (("kill", 1),))


def test_a_promise_about_rest_is_asked_at_rest_alone() -> None:
    """While a broker has something to do the condition is not asked; once the cluster is at rest it is."""
    world, asked = two_brokers(), comes_to_rest_with(lambda state: False)
    assert asked(world) is not None
    world.step(("create_topic", "t", ((1, 2),)))
    assert asked(world) is None


def test_a_state_has_what_it_lists() -> None:
    """A condition reads brokers, controller and epoch, partitions and the last action; `dir` has the documented names."""
    world = two_brokers(("kill",))
    settle(world, ("create_topic", "t", ((1, 2),)))
    state = SearchedState(world)
    assert (state.alive, state.controllers, state.controller, state.controller_epoch) == ([1, 2], [1], 1, 1)
    assert {name: (p.leader, p.isr) for name, p in state.partitions.items()} == {"t-0": (1, (1, 2))}
    assert state.groups == {}
    world.step(("kill", 2))
    assert (state.action, state.alive) == (("kill", 2), [1])
    assert dir(state) == sorted(re.findall(r"^    state\.(\w+)", SearchedState.__doc__ or "", re.MULTILINE))
    assert all(hasattr(state, name) for name in dir(state))


def test_never_is_the_opposite_of_always() -> None:
    """One condition, true now: always keeps it, never does not."""
    world = two_brokers()
    assert always(lambda state: state.controller == 1)(world) is None
    assert never(lambda state: state.controller == 1)(world) is not None


def test_a_name_is_the_row_of_the_table_whatever_the_release_promises() -> None:
    """An invariant is looked at in a release before the one that promises it, since a learner searches there for a violation."""
    assert promise("ISR never empty") == always("ISR never empty")
    assert "last member" in str(promise("ISR never empty"))
    world, name = deposed(), "a deposed controller writes nothing"
    object.__setattr__(world.settings, "release", "2.0")
    assert violation(world) is None and str(promise(name)(world)).startswith(f"{name}: ")


@pytest.mark.parametrize(("made", "says"), [
    (lambda: always("boo"), "'one controller'"),
    (lambda: always(3), "'one controller'"),  # type: ignore[arg-type]
    (lambda: never("one controller"), "never takes a function of the state"),  # type: ignore[arg-type]
    (lambda: comes_to_rest_with("leader in ISR"), "use always, or choose one of 'one controller'"),
    (lambda: promise(always), "pass always(...), never(...) or comes_to_rest_with(...)"),
])  # fmt: skip
def test_a_bad_promise_is_one_sentence_with_the_legal_names(made: object, says: str) -> None:
    """The error names what is legal."""
    assert callable(made)
    with pytest.raises(UserError) as problem:
        made()
    assert says in str(problem.value) and str(problem.value).count(". ") == 0


def test_a_condition_that_raises_is_named_with_what_a_state_has() -> None:
    """The error of a learner's function is a sentence, and lists the attributes of a state."""
    wrong: Promise = always(lambda state: state.leader)  # type: ignore[attr-defined]
    with pytest.raises(UserError, match=r"AttributeError.*controller_epoch, controllers, groups"):
        search_within(two_brokers(), Budget(2, 1), (wrong,))
