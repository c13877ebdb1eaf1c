"""Hypothesis drives `actions()` and `step()`: whatever order things happen in, what Kafka promises holds."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.cluster import actions
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import Action, World
from kcontrol.core.releases import PLAYABLE_RELEASES
from kcontrol.search.invariants import AT_REST, violation
from kcontrol.search.search import report
from tests.core.support import ALL_FAULTS, TOPICS
from tests.search.support import DEPOSED_WRITE, pasted, two_brokers

ROUTINE = 93  # of a hundred steps, those that go on by themselves: with fewer, nothing ever comes to its end
CHOICES = st.lists(st.integers(0, 99_999), min_size=20, max_size=60)
OF_LISTENERS = frozenset({"LeaderChange", "NewSession"})
RELEASES_OWN = {
    **dict.fromkeys(("0.8.0", "0.8.1", "0.8.2"), OF_LISTENERS),
    **dict.fromkeys(("0.9", "0.10.2"), OF_LISTENERS | {"PropagateIsrChanges"}),
    **dict.fromkeys(("0.11.0", "1.0"), frozenset({"PathChanged", "RegisterBroker"})),
    **dict.fromkeys(("1.1", "2.4"), frozenset({"Reelect", "PropagateIsrChanges"})),
    **dict.fromkeys(("2.8", "3.9"), frozenset({"Reelect", "AlterIsrReceived"})),
}
SCHEDULER_FAILS = (
    "0.8.1",
    "0.8.2",
)  # one that rules twice without a resignation gives up, and competes, for ever: see test_listeners_0_8_1
WAITS_FOR_EVER = ("0.8.0", "0.8.1", "0.8.2")
NAPS = 6  # no broker needs to wait so often for the session of an earlier life
FOR_EVER = 20_000  # steps; the longest way to rest takes a tenth of them
UNHURRIED = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def quiet(release: str) -> World:
    """A quiet cluster of three brokers with two topics, and a third one that may be created."""
    config = BrokerConfig.of(release).with_setting("auto.leader.rebalance.enable", release not in SCHEDULER_FAILS)
    world = World(Settings(release, config=config, topics={**TOPICS, "v": ((2, 3), (3, 2, 1))}, faults=ALL_FAULTS))
    for act in (
        *(("start", broker) for broker in world.settings.brokers),
        *(("create_topic", *topic) for topic in TOPICS.items()),
    ):
        world.step(act)
        world.run()
    return world


QUIET = {release: quiet(release) for release in PLAYABLE_RELEASES}


def run(world: World, choices: list[int], more_faults: Callable[[World, int], list[Action]] = lambda world, number: []) -> None:
    """Take one action for each choice, mostly without faults, and check the invariants after each, and at quiet."""
    # `more_faults` returns further faults that a choice can take. A violation is reported as Python code.
    for number in choices:
        routine, faults = list(actions.routine_actions(world)), [*actions.fault_actions(world), *more_faults(world, number)]
        offered = (routine if number % 100 < ROUTINE else faults) or routine or faults
        if not offered:
            break
        world.step(offered[number // 100 % len(offered)])
        if found := violation(world):
            raise AssertionError(report(world, found))
    for broker in [n for n, p in world.processes.items() if p.frozen]:
        world.step(("thaw", broker))  # a broker of 0.8 may wait for a frozen one for ever
    if came_to_rest(world) and (found := violation(world, AT_REST)):
        raise AssertionError(report(world, found))


def came_to_rest(world: World) -> bool:
    """Go on until nothing is left, or a broker of 0.8 waits for its own session after two quick expiries (KAFKA-1387)."""
    naps, before = 0, len(world.done)
    while (following := next(actions.routine_actions(world), None)) and naps < NAPS:
        naps += following[0] == "fire_timer" and following[2].startswith("sleep-")
        world.step(following)
        if len(world.done) - before > FOR_EVER:
            raise AssertionError(report(world, f"goes on for more than {FOR_EVER} steps"))
    assert following is None or world.settings.release in WAITS_FOR_EVER
    return following is None


@settings(UNHURRIED, max_examples=50)
@given(st.sampled_from(PLAYABLE_RELEASES), CHOICES)
def test_what_kafka_promises_holds_in_any_order(release: str, choices: list[int]) -> None:
    """From a quiet cluster of three brokers of any release, with every fault on offer, none of its promises is ever broken."""
    run(QUIET[release].fork(), choices)


@pytest.mark.slow
@settings(UNHURRIED, max_examples=1_000)
@given(st.sampled_from(PLAYABLE_RELEASES), CHOICES)
def test_what_kafka_promises_holds_in_many_orders(release: str, choices: list[int]) -> None:
    """The same for a thousand runs."""
    run(QUIET[release].fork(), choices)


@pytest.mark.slow
@pytest.mark.parametrize("release", PLAYABLE_RELEASES)
def test_the_runs_meet_what_matters(release: str) -> None:
    """Two hundred runs of this kind, of each release, meet failovers, elections, ISR changes, lost sessions, resent requests."""
    wanted = RELEASES_OWN[release] | {
        "offline", "leaves the ISR", "initialize", "drop_request", "duplicate_request", "session_lost",
    }  # fmt: skip
    seen: set[str] = set()
    for seed in range(200):
        if wanted <= seen:
            break
        world, rng = QUIET[release].fork(), random.Random(seed)
        before = len(world.journal.records)
        run(world, [rng.randrange(100_000) for _ in range(60)])
        records = world.journal.records[before:]
        seen |= {r.kind for r in records}
        seen |= {str(r.fields["rule"]) for r in records if r.kind == "change"}
        seen |= {r.fields["event"] for r in records if r.kind == "begin"}
    assert wanted <= seen


def test_a_broken_invariant_is_reported_as_python_code() -> None:
    """A failing run prints Python code which leads to a world that breaks the same invariant."""
    world = two_brokers(fenced_writes=False)
    choices, twin = [], world.fork()
    for action in DEPOSED_WRITE:
        routine, faults = list(actions.routine_actions(twin)), list(actions.fault_actions(twin))
        choices.append(100 * routine.index(action) if action in routine else 100 * faults.index(action) + 99)
        twin.step(action)
    with pytest.raises(AssertionError) as problem:
        run(world, choices)
    text = str(problem.value)
    assert "under epoch 1 when 2 was the newest" in text
    assert violation(pasted(text)) == text.splitlines()[-1].removeprefix("# ")
