"""A fork has the past and the futures of its world; worlds with equal fingerprints have equal futures."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from kcontrol.cluster.network import DelayedResponse
from kcontrol.cluster.process import QueuedNotification, copy_driver
from kcontrol.cluster.world import BASE_EVERY_COPIES, World
from kcontrol.core.effects import Commit, Handler, Op, Read, UpdateContext, WatchEvent
from kcontrol.core.events import TopicChange
from kcontrol.core.znodes import CONTROLLER, encode_state, state_path
from kcontrol.journal.journal import OUTSIDE, RecordId
from kcontrol.search.invariants import stored as states
from tests.core.support import ALL_FAULTS, T0, Bench, choose, cluster, journal_bytes, settle, until, waits_for, walk


def in_mid_handler(seed: int, *, exact: bool = False) -> World:
    """A world after at least thirty random steps, with a handler suspended."""
    world = cluster(faults=ALL_FAULTS).fork(keep_replay_logs=exact)
    rng, steps = random.Random(seed), 0
    while steps < 30 or world.is_quiet:
        world.step(choose(world, rng, faulty=0.1))
        steps += 1
    return world


@pytest.mark.parametrize("exact", [False, True], ids=["steps again", "given the answers"])
@pytest.mark.parametrize("seed", range(12))
def test_a_fork_in_mid_handler_has_the_same_past_and_the_same_future(seed: int, exact: bool) -> None:
    """It has the fingerprint and the journal of the original, and the next twenty actions give equal journals on both."""
    world = in_mid_handler(seed, exact=exact)
    branch = world.fork()
    assert branch.fingerprint() == world.fingerprint()
    assert journal_bytes(branch.journal.records) == journal_bytes(world.journal.records)
    assert branch.actions() == world.actions()
    for action in walk(branch, seed, 20):
        world.step(action)
        assert branch.snapshot() == world.snapshot()
    assert journal_bytes(branch.journal.records) == journal_bytes(world.journal.records)
    assert branch.fingerprint() == world.fingerprint()


@pytest.mark.parametrize("exact", [False, True], ids=["steps again", "given the answers"])
@pytest.mark.parametrize("seed", range(6))
def test_a_fork_is_independent(seed: int, exact: bool) -> None:
    """Whatever a fork goes through, the original stays as it was, and can still go on from there."""
    world = in_mid_handler(seed, exact=exact)
    before = (world.fingerprint(), journal_bytes(world.journal.records), world.snapshot(), list(world.done))
    branch = world.fork()
    for _ in walk(branch, seed + 1, 40):
        pass
    assert (world.fingerprint(), journal_bytes(world.journal.records), world.snapshot(), list(world.done)) == before
    again = world.fork()
    for _ in walk(again, seed + 1, 40):
        pass
    assert journal_bytes(again.journal.records) == journal_bytes(branch.journal.records)


@pytest.mark.parametrize("seed", range(6))
def test_a_fork_of_a_fork_is_a_fork(seed: int) -> None:
    """Forks taken of each other in the middle of handlers, one of them exact, are all the same world."""
    world = in_mid_handler(seed)
    one = world.fork(keep_replay_logs=True)
    two = one.fork()
    for _ in walk(two, seed, 10):
        pass
    three = two.fork()
    assert one.fingerprint() == world.fingerprint()
    assert (three.fingerprint(), three.actions()) == (two.fingerprint(), two.actions())


@pytest.mark.parametrize("seed", range(4))
def test_a_fork_is_the_same_whenever_its_world_copied_itself(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Worlds that copy themselves before each handler, once, and as they do have equal forks of forks in mid-handler."""
    worlds = []
    for copies in (0, 1_000_000, BASE_EVERY_COPIES):
        monkeypatch.setattr("kcontrol.cluster.world.BASE_EVERY_COPIES", copies)
        fork = in_mid_handler(seed).fork()
        for _ in walk(fork, seed, 30):
            pass
        until(fork, lambda w: not w.is_quiet)
        worlds.append(fork.fork())
    assert len({(world.now_ms, world.fingerprint(), journal_bytes(world.journal.records)) for world in worlds}) == 1


def test_a_fork_keeps_a_handler_that_waits_for_its_second_part() -> None:
    """Before 1.1 a handler that reads many znodes has read some of them: the fork goes on with the others and no other."""
    world = cluster({"t": ((1, 2, 3), (1, 3, 2))}, brokers=(2, 1, 3), rule_changes={"pipelined": False}).fork(
        keep_replay_logs=True
    )
    world.step(("delete", "/controller"))

    def half_read(w: World) -> bool:
        trip = next((w.processes[n].driver.threads["controller"].waits_for for n in w.processes if waits_for(w, n, Read)), None)
        return trip is not None and 0 < len(trip.partial_results) < len(trip.parts)

    until(world, half_read)
    branch = world.fork()
    world.run()
    branch.run()
    assert journal_bytes(branch.journal.records) == journal_bytes(world.journal.records)


def test_a_fork_keeps_what_a_suspended_handler_has_gathered() -> None:
    """Between two rounds of an election the requests about the first are still to be sent: the fork sends the same ones."""
    world = cluster({"t": ((1, 2, 3), (1, 3, 2))}, brokers=(2, 1, 3), followers=False).fork(keep_replay_logs=True)
    world.step(("kill", 1))
    until(world, lambda w: waits_for(w, 2, Commit))
    text = encode_state(dict(states(world))[T0]).decode()
    world.step(("set", state_path(T0), text))
    world.step(("advance", 2, "controller"))
    assert [r.kind for r in world.last_step if r.kind in ("conflict", "change")] == ["conflict", "change"]
    branch = world.fork()
    world.run()
    branch.run()
    assert journal_bytes(branch.journal.records) == journal_bytes(world.journal.records)


def test_a_fork_shares_nothing_that_travels_or_waits() -> None:
    """Requests, questions, watch events, queues, ghosts and timers of the original stay while its fork runs until quiet."""
    world = cluster()
    for action in (("kill", 3), ("expire_session", 3), ("start", 3), ("kill", 2)):
        world.step(action)
    until(world, lambda w: bool(w.network.channels))
    before = (world.fingerprint(), world.snapshot(), journal_bytes(world.journal.records))
    assert world.network.channels
    assert world.orphaned_sessions
    world.fork().run()
    assert (world.fingerprint(), world.snapshot(), journal_bytes(world.journal.records)) == before


def test_a_copy_of_a_suspended_handler_does_not_forget_what_others_have_learnt() -> None:
    """A driver with a handler under way is copied with what its other threads have learnt since that handler began."""
    bench = Bench({"main": None, "requests": None})
    bench.driver.keeps_replay_logs = True

    def waits(ctx: Any) -> Handler:
        yield Read(("/x",))

    def learns(ctx: Any) -> Handler:
        yield UpdateContext("controller_id", 7, context="broker")

    bench.enqueue(waits, "main")
    bench.driver.begin("main")
    bench.enqueue(learns, "requests")
    bench.go("requests")
    d = bench.driver
    twin = copy_driver(d, d.client, d.journal, d.clock, bench.post)
    assert (twin.broker.controller_id, twin.threads["main"].waits_for is None) == (7, False)


def test_a_world_on_a_real_zookeeper_cannot_be_forked() -> None:
    """A world with a ZooKeeper from outside raises an error for fork and fingerprint."""
    simulated = World()
    world = World(zookeeper=simulated.zk, clock=lambda: 0)
    with pytest.raises(ValueError, match=r"World\.fork needs the in-memory ZooKeeper"):
        world.fork()


# ---------------------------------------------------------------- fingerprints: the same


def test_two_ways_to_the_same_state_have_one_fingerprint() -> None:
    """Two brokers that handle a watch event in either order have equal fingerprints after equal steps."""
    prints = set()
    for order in ((1, 2, 3), (3, 1, 2)):
        world = cluster()
        world.step(("delete", CONTROLLER))
        for broker in order:
            world.step(("deliver_notification", broker))
        prints.add(world.fingerprint())
    assert len(prints) == 1


def test_a_detour_leaves_no_trace_in_the_fingerprint() -> None:
    """A request that was lost and sent again, time that went by, zxids that were spent and sequence numbers do not matter."""
    world = cluster(followers=False)
    world.step(("delete", CONTROLLER))
    until(world, lambda w: bool(w.network.deliverable()))
    before = world.fingerprint()
    detour = world.fork()
    detour.step(("drop_request", *detour.network.deliverable()[0]))
    detour.now_ms += 1_000
    detour.tool.write([(Op("delete", "/nothing"),)])
    detour.journal.add(0, 0, "thaw", None, 0, {})
    assert detour.fingerprint() == before


def test_absolute_zxids_do_not_matter_and_their_order_does() -> None:
    """Clusters that spent different zxids are the same; a broker that registered later than another is not."""

    def started(order: tuple[int, ...], waste: int) -> str:
        world = World(cluster(topics={}).settings)
        settle(world, ("start", 1))
        for broker in order:
            world.tool.write([(Op("delete", "/nothing"),)] * waste)
            settle(world, ("start", broker))
        return world.fingerprint()

    assert started((2, 3), 0) == started((2, 3), 7)
    assert started((2, 3), 0) != started((3, 2), 0)


# ---------------------------------------------------------------- fingerprints: not the same


def nothing_yet(world: World) -> World:
    """The middle of an election: znodes, watches, queues, channels and a suspended handler are all in use."""
    world.step(("kill", 3))
    world.step(("expire_session", 3))
    world.step(("deliver_notification", 1))
    until(world, lambda w: bool(w.network.channels) and waits_for(w, 1, Read))
    return world


def queue_an_event(world: World) -> None:
    world.processes[2].driver.enqueue(TopicChange(), None)


def drop_a_parcel(world: World) -> None:
    next(iter(world.network.channels.values())).pop()


def drop_an_answer(world: World) -> None:
    """A suspended handler remembers one answer less."""
    begun = world.processes[1].driver.threads["controller"].replay_log
    assert begun is not None
    begun.results.pop()


def forget_a_watch(world: World) -> None:
    """A session no longer watches `/controller`."""
    del world.zk._data_watches[CONTROLLER]  # type: ignore[attr-defined]


DIFFERENCES: dict[str, Callable[[World], Any]] = {
    "a znode's data": lambda w: w.tool.write([(Op("set", "/brokers/topics/t", b"{}"),)]),
    "a znode's version": lambda w: w.tool.write([(Op("set", "/brokers/topics/t", w.zk.tree()["/brokers/topics/t"].data),)]),
    "a znode more": lambda w: w.tool.write([(Op("create", "/note"),)]),
    "a watch": forget_a_watch,
    "a registered handler": lambda w: w.processes[1].driver.znode_handlers.pop(),
    "an undelivered watch event": lambda w: w.processes[2].notifications.append(
        QueuedNotification(WatchEvent("NodeCreated", CONTROLLER), RecordId(OUTSIDE, 0, 1))
    ),
    "a queue": queue_an_event,
    "a channel": drop_a_parcel,
    "a request in flight": lambda w: w.network.in_flight.update({"x": (1, 2)}),
    "a fetch that a request finds under way": lambda w: w.network.fetching_from.update({"x": (RecordId(OUTSIDE, 0, 1), (3,))}),
    "an answer held back": lambda w: w.network.delayed_responses.update(
        {"x": DelayedResponse(2, {}, RecordId(OUTSIDE, 0, 1), (3,))}
    ),
    "the controller's context": lambda w: object.__setattr__(w.processes[1].driver.controller, "controller_epoch", 7),
    "the broker's context": lambda w: object.__setattr__(w.processes[2].driver.broker, "controller_epoch", 7),
    "a broker epoch": lambda w: w.processes[1].driver.controller.live_broker_epochs.update({1: 10_000}),
    "a suspended handler's answers": drop_an_answer,
    "a frozen process": lambda w: setattr(w.processes[2], "frozen", True),
    "a session": lambda w: setattr(w.processes[2], "session", "expired"),
    "a session left behind": lambda w: w.orphaned_sessions.update({2: [object()]}),
    "a timer": lambda w: w.processes[1].driver.timers.clear(),
    "a parked request": lambda w: w.processes[1].driver.parked.update({"1-2": "key"}),
}


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_what_can_matter_is_in_the_fingerprint(difference: str) -> None:
    """Two worlds that differ in one of these have different fingerprints."""
    world = nothing_yet(cluster().fork(keep_replay_logs=True))
    other = world.fork()
    assert other.fingerprint() == world.fingerprint()
    DIFFERENCES[difference](other)
    assert other.fingerprint() != world.fingerprint()


def test_the_results_of_a_suspended_handler_are_in_the_fingerprint() -> None:
    """Two controllers that read a state before and after it was changed back and forth differ, though all the znodes agree."""
    prints = []
    for early in (True, False):
        world = cluster({"t": ((1, 2, 3),)}, brokers=(2, 1, 3), followers=False)
        world.step(("kill", 1))
        until(
            world,
            lambda w: (
                waits_for(w, 2, Read) and state_path(T0) in w.processes[2].driver.threads["controller"].waits_for.effect.paths
            ),
        )  # type: ignore[union-attr]
        text = encode_state(dict(states(world))[T0]).decode()
        if early:
            world.step(("advance", 2, "controller"))
        for content in (text.replace("[1,2,3]", "[1,3]"), text):
            world.step(("set", state_path(T0), content))
        if not early:
            world.step(("advance", 2, "controller"))
        tree = {path: (node.data, node.stat.version) for path, node in world.zk.tree().items()}
        prints.append((tree, world.snapshot()["nodes"], world.fingerprint()))
    assert prints[0][:2] == prints[1][:2]
    assert prints[0][2] != prints[1][2]
