"""Exhaustive search: every order of events up to a depth, and the shortest one that breaks a promise."""

from __future__ import annotations

import pytest

from kcontrol.cluster.world import World
from kcontrol.search.invariants import violation
from kcontrol.search.search import SearchResult, search
from tests.core.support import cluster
from tests.search.support import pasted, two_brokers
from tests.search.test_shortest_runs import small

STEPS_TO_A_DEPOSED_WRITE = 16
STATES_UNTIL_FOUND = 1_983
STATES_TO_DEPTH_18 = 3_686
STATES_OF_0_8_1_TO_DEPTH_12 = 458


@pytest.fixture(scope="module")
def found() -> SearchResult:
    """What a search under unfenced rules finds."""
    return search(two_brokers(fenced_writes=False), depth=18, faults=2)


def test_a_deposed_controllers_write_is_found_under_unfenced_rules(found: SearchResult) -> None:
    """Before 2.1 a controller that was deposed in the middle of creating a topic still writes its state znode (KAFKA-6082)."""
    assert found.violation == "a deposed controller writes nothing: t-0: broker 1 has written under epoch 1 when 2 was the newest"
    assert found.states == STATES_UNTIL_FOUND


def test_the_shortest_run_has_sixteen_steps(found: SearchResult) -> None:
    """Eight steps bring one controller to its write and eight make the other one controller: no run can do with fewer."""
    kinds = [action[:1] if action[0] in ("create_topic", "delete") else action[:2] for action in found.actions]
    first = [("create_topic",), ("deliver_notification", 1), ("begin", 1), *[("advance", 1)] * 5]
    second = [("delete",), ("deliver_notification", 2), ("begin", 2), *[("advance", 2)] * 5]
    assert len(found.actions) == STEPS_TO_A_DEPOSED_WRITE
    assert sorted(kinds) == sorted(first + second)
    assert found.actions[-1] == ("advance", 1, "controller")


def test_no_shorter_run_breaks_it(found: SearchResult) -> None:
    """Each single step left out of the shortest run leaves one that is impossible or breaks nothing."""
    start = two_brokers(fenced_writes=False)
    for left_out in range(len(found.actions)):
        assert not breaks(start.fork(), found.actions[:left_out] + found.actions[left_out + 1 :])


def breaks(world: World, actions: tuple[tuple[object, ...], ...]) -> bool:
    """Whether these actions, as far as each is possible, break a promise."""
    for action in actions:
        if action not in world.actions():
            continue
        world.step(action)
        if violation(world):
            return True
    return False


def test_none_is_found_under_the_rules_of_2_8() -> None:
    """With fenced writes no run of up to 18 steps breaks a promise, however its events are ordered."""
    result = search(two_brokers(), depth=18, faults=2)
    assert (result.violation, result.actions, result.states) == (None, (), STATES_TO_DEPTH_18)


def test_what_was_found_can_be_pasted(found: SearchResult) -> None:
    """The scenario of a finding is a program that leads to the violation, which its last line names."""
    text = found.scenario()
    assert violation(pasted(text)) == found.violation
    assert text.splitlines()[-1] == f"# {found.violation}"


def test_a_search_leaves_its_world_alone() -> None:
    """The world that a search starts from has taken no step and has the same fingerprint afterwards."""
    world = two_brokers()
    before = (world.fingerprint(), len(world.done), len(world.journal.records))
    search(world, depth=6, faults=1)
    assert (world.fingerprint(), len(world.done), len(world.journal.records)) == before


def test_a_search_keeps_to_its_bounds() -> None:
    """No run it looks at has more steps or more faults than it was allowed."""
    lengths, faults = set(), set()

    def noted(world: World) -> None:
        since = world.done[start:]
        lengths.add(len(since))
        faults.add(len([action for action in since if action[0] in ("kill", "delete", "create_topic")]))

    world = two_brokers(faults=("kill", "delete_controller"))
    start = len(world.done)
    assert search(world, depth=5, faults=1, properties=(noted,)).violation is None
    assert (max(lengths), max(faults)) == (5, 1)


def test_a_search_can_begin_in_the_middle_of_a_handler() -> None:
    """From a world with a suspended handler it finds what it would have found on the way there."""
    world = two_brokers(fenced_writes=False)
    for action in (
        ("create_topic", "t", ((1, 2),)),
        ("deliver_notification", 1),
        ("begin", 1, "controller"),
        ("advance", 1, "controller"),
    ):
        world.step(action)
    result = search(world, depth=12, faults=1)
    assert len(result.actions) == STEPS_TO_A_DEPOSED_WRITE - 4
    assert len(result.past) == len(world.done)
    assert violation(pasted(result.scenario())) == result.violation


def test_equal_states_are_visited_once() -> None:
    """Three brokers handle a watch event in any order: after two steps both orders of two brokers are one state."""
    world = cluster(topics={}, brokers=(1, 2, 3), followers=False)
    world.step(("delete", "/controller"))
    first, pairs, begun = 3, 3, 3
    assert search(world, depth=3, faults=0).states == 1 + first + pairs + begun


def test_a_small_world_of_0_8_1_has_so_many_states() -> None:
    """From two brokers of 0.8.1 with one topic, with two faults in twelve steps, there are so many states and no other."""
    result = search(small({"t": ((1, 2),)}, {}, "kill", "delete_controller"), depth=12, faults=2)
    assert (result.states, result.violation) == (STATES_OF_0_8_1_TO_DEPTH_12, None)
