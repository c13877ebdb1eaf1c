"""Searches on Spark's executors."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kcontrol import Lab, rules
from kcontrol.core.errors import UserError
from kcontrol.lab.searches import spark_search
from kcontrol.lab.searches.searches import Found
from kcontrol.search.museum import MUSEUM, Exhibit
from kcontrol.search.search import FOUND, Budget

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# As in a notebook: the functions belong to no module that an executor could import.
NOTEBOOK = """
MOST = 1

def few(state):
    return len(state.controllers) <= MOST

def last(assignment, isr, live):
    return next((broker for broker in reversed(assignment) if broker in isr and broker in live), None)

def wrong(state):
    return state.alive[MOST + 7]
"""


def learners(name: str) -> Any:
    room: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(NOTEBOOK, "cell", "exec"), room)
    return room[name]


def quiet() -> Lab:
    """Three brokers under the learner's election; no file is kept."""
    return Lab(brokers=3, topics={"t": [[2, 3, 1]]}, strategies={"offline": learners("last")}, runs=None)


@pytest.mark.parametrize("row", MUSEUM, ids=lambda row: row.ticket)
@pytest.mark.parametrize("restored", [True, False], ids=["found", "fixed"])
def test_spark_returns_the_result_of_one_process(
    spark: Any, row: Exhibit, restored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each bug of the museum Spark finds the shortest run of one process after as many states; without the bug nothing."""
    monkeypatch.setattr(spark_search, "AT_ONCE", 300)  # the largest levels need several jobs
    expected = row.search(restored=restored)
    world = row.world(restored=restored)
    found = spark_search.search_within(spark, world, row.budget, (row.promise,))
    assert (found.states, found.ended_by, found.violation) == (expected.states, expected.ended_by, expected.violation)
    assert (found.past, found.actions) == (expected.past, expected.actions)
    assert (found.ended_by == FOUND) is restored is bool(found.actions)


@pytest.mark.breaks_invariants
def test_a_promise_and_an_election_of_a_notebook_travel(spark: Any) -> None:
    """A promise and an election of a notebook give on Spark the run of one process, from a state with a past; it opens."""
    lab = quiet().kill(2).run()
    assert lab.partitions().leader["t-0"] == 1
    promise = rules.always(learners("few"))
    found, expected = (lab.search(promise, {"steps": 12}, ["expire_session"], spark=each) for each in (spark, None))
    assert isinstance(found, Found) and isinstance(expected, Found)
    assert (found.actions, found.states, found.violation) == (expected.actions, expected.states, expected.violation)
    assert (found.engine, expected.engine) == ("quick engine on Spark", "quick engine")
    assert len(found.open().records) > len(lab.records)
    assert rules.hunt("fenced_writes", spark=spark).engine == "quick engine on Spark"


def test_a_condition_that_fails_is_one_sentence(spark: Any) -> None:
    """A condition that raises an error on an executor gives the sentence of one process."""
    sentences = []
    for each in (spark, None):
        with pytest.raises(UserError) as raised:
            quiet().search(rules.always(learners("wrong")), {"steps": 3}, spark=each)
        sentences.append(str(raised.value))
    assert sentences[0] == sentences[1] and "IndexError" in sentences[0]


def test_a_condition_that_cannot_be_sent_is_refused(spark: Any) -> None:
    """A condition with a lock, which cannot be pickled, is refused in one sentence."""
    lock = threading.Lock()
    with pytest.raises(UserError, match=r"cannot be sent to Spark .*: let them use no open files or objects of a lab"):
        quiet().search(rules.never(lambda state: lock.locked()), {"steps": 3}, spark=spark)


@pytest.mark.parametrize(
    ("bound", "ended_by"), [({"states": 40}, "states"), ({"steps": 3}, "steps"), ({"seconds": 0}, "seconds")]
)
def test_a_bound_ends_a_search_on_spark(spark: Any, bound: dict[str, int], ended_by: str) -> None:
    """The bound that is too small ends a search on Spark after as many states as a search in one process."""
    row = MUSEUM[0]
    budget = Budget(20, 1)._replace(**bound)
    expected = row._replace(budget=budget).search(restored=False)
    found = spark_search.search_within(spark, row.world(restored=False), budget, (row.promise,))
    assert (found.ended_by, found.states) == (ended_by, expected.states) == (expected.ended_by, expected.states)
