"""Hypothesis drives `actions()` and `step()`: whatever order things happen in, what Kafka promises holds."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kcontrol.sim.invariants import ALWAYS, violation
from kcontrol.sim.world import World
from tests.core.support import ALL_FAULTS, cluster
from tests.search.support import pasted, scenario, two_brokers

CHOICES = st.lists(st.tuples(st.booleans(), st.integers(0, 10_000)), min_size=5, max_size=60)
UNHURRIED = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
QUIET = cluster(faults=ALL_FAULTS)
UNFENCED = two_brokers(fenced_writes=False)


def run(world: World, choices: list[tuple[bool, int]]) -> None:
    """Takes one of the actions on offer for each choice, from the first ones or from the last, and looks at the invariants.

    A broken one is told as a scenario that can be pasted.
    """
    for late, number in choices:
        actions = world.actions()
        if not actions:
            return
        action = actions[-1 - number % len(actions)] if late else actions[number % min(3, len(actions))]
        world.step(action)
        if found := violation(world):
            raise AssertionError(scenario(world, found))


@UNHURRIED
@given(CHOICES)
def test_what_kafka_promises_holds_in_any_order(choices: list[tuple[bool, int]]) -> None:
    """From a quiet cluster of three brokers, with every fault on offer, no invariant is ever broken."""
    run(QUIET.fork(), choices)


@pytest.mark.slow
@settings(UNHURRIED, max_examples=2_000)
@given(CHOICES)
def test_what_kafka_promises_holds_in_many_orders(choices: list[tuple[bool, int]]) -> None:
    """The same for two thousand runs."""
    run(QUIET.fork(), choices)


def until_it_breaks(world: World) -> str:
    """Goes the shortest way to a write of a deposed controller; returns what the run prints."""
    way = [("create_topic", "t", ((1, 2),)), ("deliver", 1), ("begin", 1, "controller"), *[("advance", 1, "controller")] * 4]
    way += [("delete", "/controller"), ("deliver", 2), ("begin", 2, "controller"), *[("advance", 2, "controller")] * 5]
    choices = []
    twin = world.fork()
    for action in [*way, ("advance", 1, "controller")]:
        actions = twin.actions()
        choices.append((True, len(actions) - 1 - actions.index(action)))
        twin.step(action)
    with pytest.raises(AssertionError) as problem:
        run(world, choices)
    return str(problem.value)


def test_a_broken_invariant_is_told_as_a_scenario_that_can_be_pasted() -> None:
    """What a failing run prints is Python that leads, as it stands, to a world in which the same invariant is broken."""
    text = until_it_breaks(UNFENCED.fork())
    assert "under epoch 1 when 2 ruled" in text
    assert violation(pasted(text)) == text.splitlines()[-1].removeprefix("# ")


def test_the_invariants_can_be_broken() -> None:
    """Each invariant has been seen to fail: a leader outside its ISR, and a write under an epoch that no longer rules."""
    broken = set()
    world = cluster()
    world.step(
        (
            "set",
            "/brokers/topics/t/partitions/0/state",
            '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[2]}',
        )
    )
    broken |= {holds.__name__ for holds in ALWAYS if holds(world)}
    zombie = pasted(until_it_breaks(UNFENCED.fork()))
    broken |= {holds.__name__ for holds in ALWAYS if holds(zombie)}
    assert broken == {holds.__name__ for holds in ALWAYS}
