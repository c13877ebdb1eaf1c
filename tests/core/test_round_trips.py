"""One step of the world is one round trip; what happens between two of them is an ordinary step."""

from __future__ import annotations

import random

import pytest

from kcontrol.cluster import actions, broker_to_controller
from kcontrol.cluster.sessions import SessionState
from kcontrol.cluster.world import World
from kcontrol.core.effects import Commit, Read, Transaction
from kcontrol.core.znodes import CONTROLLER
from tests.core.support import ALL_FAULTS, Spy, alone, choose, cluster, of_kind, stored, until, waits_for, walk


def spied(world: World) -> list[tuple[object, ...]]:
    """Notes every call of every broker's session from now on."""
    calls: list[tuple[object, ...]] = []
    for process in world.processes.values():
        if not isinstance(process.driver.client, Spy):
            process.driver.client = Spy(process.driver.client, calls)
    return calls


@pytest.mark.parametrize("seed", range(10))
def test_an_advance_is_one_round_trip_and_nothing_else_is_any(seed: int) -> None:
    """In random runs every `advance` makes exactly one call to ZooKeeper, and no other step of a broker makes one."""
    world = cluster()
    calls, rng = spied(world), random.Random(seed)
    for _ in range(60):
        world.step(action := choose(world, rng, faulty=0.05))
        made = len(calls)
        calls.clear()
        assert made == (action[0] == "advance"), action
        for process in world.processes.values():
            if not isinstance(process.driver.client, Spy):
                process.driver.client = Spy(process.driver.client, calls)


@pytest.mark.parametrize("seed", range(6))
def test_after_each_step_no_watch_event_is_left_in_a_session_of_a_running_broker(seed: int) -> None:
    """In random runs each watch event is among the broker's notifications after the step that fired its watch."""
    world = cluster(faults=ALL_FAULTS)
    for action in walk(world, seed, 150):
        sessions = [p.driver.client.session_id for p in world.processes.values() if p.session is SessionState.OPEN]
        assert not any(world.zk._events[session] for session in sessions), action  # type: ignore[attr-defined]


@pytest.mark.parametrize("release", ["0.8.1", "0.10.2", "2.8"])
def test_the_ready_threads_are_those_that_can_begin_or_advance(release: str) -> None:
    """In random runs `ready`, which looks only at threads with an event or a handler, misses no thread and adds none."""
    world = cluster(faults=ALL_FAULTS, release=release)
    for _ in walk(world, 7, 300):
        for driver in (p.driver for p in world.processes.values()):
            can = [(t.name, driver.can_begin(t), driver.can_advance(t)) for t in driver.threads.values()]
            steps = [("begin" if begins else "advance", name) for name, begins, advances in can if begins or advances]
            assert driver.ready() == steps


@pytest.mark.parametrize("release", ["0.10.2", "2.8"])
def test_the_routine_timers_are_among_the_timers(release: str) -> None:
    """In random runs, and in forks of them, `routine_timers` has the names of the timers that `run` fires."""
    world, seen = cluster(faults=ALL_FAULTS, release=release), set[str]()
    for number, _ in enumerate(walk(world, 5, 300)):
        for p in (world if number % 30 else world.fork()).processes.values():
            routine = {name for name, timer in p.driver.timers.items() if timer.is_routine}
            assert p.driver.routine_timers == routine
            seen |= routine
    assert seen


@pytest.mark.parametrize("release", ["0.8.1", "2.8"])
def test_the_brokers_that_send_to_the_controller_are_those_that_can(release: str) -> None:
    """In random runs `send_to_controller` is routine for each broker that is not frozen and has a request to send."""
    world, asked = cluster(faults=ALL_FAULTS, release=release), 0
    for _ in walk(world, 3, 400):
        living = [n for n, p in world.processes.items() if not p.frozen]
        able = [("send_to_controller", n) for n in sorted(living) if broker_to_controller.can_send(world, n)]
        assert sorted(a for a in actions.routine_actions(world) if a[0] == "send_to_controller") == able
        asked += len(able)
    assert asked


def test_a_handler_that_is_suspended_lets_everything_else_happen() -> None:
    """Between the controller's read and its write `actions` still offers the other brokers' threads and every fault."""
    world = cluster(faults=("kill", "expire_session", "delete_controller"))
    world.step(("kill", 3))
    until(world, lambda w: waits_for(w, 1, Read))
    world.step(("start", 3))
    kinds = {(action[0], action[1]) for action in world.actions()}
    assert {("advance", 1), ("begin", 3), ("kill", 1), ("kill", 2), ("expire_session", 2), ("delete", CONTROLLER)} <= kinds


def test_run_event_goes_to_the_end_of_one_handler() -> None:
    """`run_event` runs one event of one thread to its end; no other thread runs in between."""
    world = cluster()
    world.step(("delete", CONTROLLER))
    while world.processes[2].notifications:
        world.step(("deliver_notification", 2))
    before = len(world.done)
    world.run_event(2)
    assert {action[:2] for action in world.done[before:]} == {("begin", 2), ("advance", 2)}
    assert [action[0] for action in world.done[before:]].count("begin") == 1
    assert world.is_quiet
    assert world.processes[2].driver.controller.is_active


def test_a_second_election_fits_into_a_failover() -> None:
    """A controller that is deposed in the middle of its failover resigns, the next one takes over, and epochs do not repeat."""
    world = cluster()
    world.step(("delete", CONTROLLER))
    alone(world, 2, lambda w: w.processes[2].driver.controller.is_active and waits_for(w, 2, Read))
    world.step(("delete", CONTROLLER))
    alone(world, 3, lambda w: w.processes[3].driver.controller.is_active)
    world.run()
    learnt = [r for r in of_kind(world, "update") if r.fields["field"] == "controller_epoch" and r.fields["put"]]
    epochs = [(r.id.node, r.fields["put"]) for r in learnt if r.fields["context"] == "controller"]
    assert epochs == [(1, 1), (2, 2), (3, 3)]
    assert [n for n, p in world.processes.items() if p.driver.controller.is_active] == [3]


def test_a_death_between_two_writes_leaves_the_first() -> None:
    """A controller that dies between two of its writes leaves what it had written, and its successor finishes the work."""
    world = cluster(topics={})
    world.step(("create_topic", "t", ((1, 2, 3), (2, 3, 1))))
    until(world, lambda w: waits_for(w, 1, Commit))
    world.step(("kill", 1))
    assert "/brokers/topics/t/partitions/1" in world.zk.tree()
    assert stored(world) == {}
    world.run()
    assert stored(world) == {"t-0": (2, (2, 3)), "t-1": (2, (2, 3))}


def test_time_passes_one_ms_a_step() -> None:
    """In the simulated world every record of a step bears the number of steps before it as its time."""
    world = World()
    world.step(("start", 1))
    until(world, lambda w: waits_for(w, 1, Transaction, "main"))
    assert {record.at_ms for record in world.last_step} == {len(world.done) - 1}
