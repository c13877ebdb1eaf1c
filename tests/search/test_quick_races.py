"""What differs is not taken for the same: quick worlds in which races are lost go the way of the world."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from kcontrol.effects import Children, Commit, Handler, Read, SessionExpired, Stat, Transaction, Znode
from kcontrol.events import RegisterBrokerAndReelect
from kcontrol.runtime.zk_memory import MemoryZooKeeper
from kcontrol.runtime.zookeeper import ConnectionLoss, Written
from kcontrol.sim import acts
from kcontrol.sim.quick import start
from kcontrol.sim.recall import Memory, Notes, told
from kcontrol.sim.world import Action, World
from kcontrol.znodes import CONTROLLER, CONTROLLER_EPOCH, TOPICS, broker_path, encode_controller, state_path, topic_path
from tests.core.support import T0, Bench, alone, cluster, until
from tests.search.test_quick import same, seen

# ---------------------------------------------------------------- answers that differ

STAT = Stat(5, 0, 5, 0, 5, 0, 0, 0, 0, 0, 0)
WRITTEN = Written(7, None, -1, (1,), ("/x",))
ANSWERS = {
    "the version of a znode that is there": ([STAT], [STAT._replace(version=1)]),
    "when it was created": ([STAT], [STAT._replace(czxid=6)]),
    "whose it is": ([STAT], [STAT._replace(ephemeral_owner=1)]),
    "whether it is there": ([STAT], [None]),
    "the data of a znode": ([Znode(b"a", STAT)], [Znode(b"b", STAT)]),
    "the version of what was read": ([Znode(b"a", STAT)], [Znode(b"a", STAT._replace(version=1))]),
    "the children": ([("a", "b")], [("a",)]),
    "no children, or no parent": ([()], [None]),
    "whether a write has failed": ([WRITTEN], [WRITTEN._replace(error="BadVersion")]),
    "why": ([WRITTEN._replace(error="NoNode")], [WRITTEN._replace(error="BadVersion")]),
    "at which operation": ([WRITTEN._replace(error="BadVersion", failed=0)], [WRITTEN._replace(error="BadVersion", failed=1)]),
    "which version came of it": ([WRITTEN], [WRITTEN._replace(versions=(2,))]),
    "which path": ([WRITTEN], [WRITTEN._replace(paths=("/x0000000001",))]),
    "which of two writes": ([WRITTEN, WRITTEN._replace(error="NoNode")], [WRITTEN._replace(error="NoNode"), WRITTEN]),
    "how a call has failed": (SessionExpired(), ConnectionLoss()),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_answers_that_a_handler_can_tell_apart_are_told_apart(what: str) -> None:
    """What came of one of two such answers is not taken for what comes of the other."""
    one, other = ANSWERS[what]
    assert told(one) != told(other)
    assert told(one) == told(deepcopy(one))


def test_answers_that_no_handler_can_tell_apart_are_one() -> None:
    """The zxid of a write, and times, sizes and children in a stat are no reason to run a handler once more."""
    assert told([WRITTEN]) == told([WRITTEN._replace(zxid=8)])
    rest = STAT._replace(ctime=1, mzxid=6, mtime=1, pzxid=6, cversion=1, aversion=1, data_length=1, num_children=1)
    assert told([STAT, Znode(b"", STAT)]) == told([rest, Znode(b"", rest)])


# ---------------------------------------------------------------- states that differ


def waiting(correlation_id: str = "1", session: int = 1) -> Bench:
    """A driver whose queue has two events in it."""

    def story(ctx: Any) -> Handler:
        yield Read(("/x",))

    bench = Bench()
    bench.tell(story, correlation_id=correlation_id)
    bench.driver.enqueue(RegisterBrokerAndReelect("localhost", 9092, session), None)
    return bench


def with_other(name: str, value: Any) -> Callable[[], Bench]:
    """The same, with one thing about the driver that is different."""

    def made() -> Bench:
        bench = waiting()
        setattr(bench.driver, name, value)
        return bench

    return made


STATES: dict[str, Callable[[], Bench]] = {
    "who asks": lambda: waiting(correlation_id="2"),
    "the session of an event": lambda: waiting(session=2),
    "the process": with_other("node", 2),
    "which of its lives": with_other("incarnation", 2),
    "that it wants to stop": with_other("exit_code", 1),
    "that its session is gone": with_other("is_cut_off", True),
    "the number of its next request": with_other("journal", Notes(3)),
    "what is watched": with_other("watched", {("/x", False)}),
}


@pytest.mark.parametrize("what", STATES)
def test_states_with_different_futures_are_told_apart(what: str) -> None:
    """What came of a call on one driver is not taken for what comes of it on another; two that differ in nothing are one."""
    memory = Memory(0)
    assert memory.local(waiting().driver) is memory.local(waiting().driver)
    assert memory.local(waiting().driver) is not memory.local(STATES[what]().driver)


# ---------------------------------------------------------------- races

STATE, OWN, THIRD = state_path(T0), broker_path(2), broker_path(3)
GO_ON = ("advance", 2, "controller")


def about(world: World, kind: type, path: str) -> bool:
    """Whether broker 2's controller waits for such a round trip about such a path."""
    waiting = world.processes[2].driver.threads["controller"].waits_for
    return waiting is not None and isinstance(waiting.effect, kind) and path in str(waiting.effect)


def leader_dies(kind: type) -> World:
    """Broker 2 rules, the leader of t-0 has died, and broker 2 is about to read its state, or to write it."""
    world = cluster({"t": ((1, 2, 3),)}, brokers=(2, 1, 3), followers=False)
    world.step(("kill", 1))
    until(world, lambda w: about(w, kind, "topic='t'" if kind is Commit else STATE))
    return world


def topic_is_created() -> World:
    """A topic is there, and broker 2 is about to read which there are."""
    world = cluster({}, brokers=(2, 1))
    world.step(("create_topic", "t", ((1, 2),)))
    until(world, lambda w: about(w, Children, TOPICS))
    return world


def broker_starts() -> World:
    """Broker 3 has registered, and the controller is about to read what."""
    world = cluster({}, brokers=(2, 1))
    world.step(("start", 3))
    until(world, lambda w: about(w, Read, THIRD))
    return world


def controller_is_gone() -> World:
    """Nobody is named in `/controller`, and broker 2 is about to write itself there."""
    world = cluster({}, brokers=(1, 2))
    world.step(("delete", CONTROLLER))
    alone(world, 2, lambda w: about(w, Transaction, CONTROLLER))
    return world


def registration_is_lost() -> World:
    """Broker 2 has a new session and is about to register; it will not hear what came of that, and ask."""
    world = cluster({}, brokers=(1, 2, 3)).fork(exact=True)  # so that forks are copies, with what will be lost
    world.step(("expire", 2))
    until(world, lambda w: about(w, Transaction, OWN))
    assert isinstance(world.zk, MemoryZooKeeper)
    world.zk.lose_next(world.processes[2].driver.client, before=False)
    return world


def text_of(world: World, path: str) -> str:
    """What is stored there."""
    return world.zk.tree()[path].data.decode()


def written(world: World, path: str, was: str = "", becomes: str = "") -> Action:
    """An outside hand writes the same once more, or with something else in it."""
    return ("set", path, text_of(world, path).replace(was, becomes))


def anew(world: World, path: str) -> list[Action]:
    """An outside hand deletes a znode and creates it again."""
    return [("delete", path), ("create", path, text_of(world, path))]


Ways = list[list[Action]]
"""What outside hands do, one or the other, before the controller goes on."""

RACES: dict[str, tuple[Callable[[], World], Callable[[World], Ways]]] = {
    "a write of a state": (
        lambda: leader_dies(Commit),
        lambda w: [[], [written(w, STATE)], [("delete", STATE)], [written(w, CONTROLLER_EPOCH)], [("delete", CONTROLLER_EPOCH)]],
    ),
    "a read of a state": (
        lambda: leader_dies(Read),
        lambda w: [
            [],
            [written(w, STATE)],
            [written(w, STATE)] * 2,
            [written(w, STATE, "[1,2,3]", "[1,3]")],
            [("delete", STATE)],
        ],
    ),
    "a registration": (broker_starts, lambda w: [[], anew(w, THIRD), anew(w, THIRD) * 2, [("delete", THIRD)]]),
    "an election": (controller_is_gone, lambda w: [[], [("create", CONTROLLER, encode_controller(1, 0).decode())]]),
    "a list of topics": (topic_is_created, lambda w: [[], [("create", topic_path("v"), text_of(w, topic_path("t")))]]),
    "an owner": (
        registration_is_lost,
        lambda w: [[GO_ON], [("create", OWN, "{}"), ("set", OWN, text_of(w, THIRD)), GO_ON]],
    ),
}


@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
@pytest.mark.parametrize("race", RACES)
def test_a_race_that_is_lost_is_not_taken_for_one_that_is_won(race: str, turned: bool) -> None:
    """The same controller in the same state, whom ZooKeeper answers differently: each time it goes the way of the world.

    The second time around everything is remembered.
    """
    made, hands = RACES[race]
    origin = made()
    ways = hands(origin)
    root, ends, prints = start(origin), set[str](), set[tuple[str, str]]()
    for way in [*(reversed(ways) if turned else ways), *ways]:
        quick, plain = root.fork(), origin.fork(exact=True)
        for step in range(40):
            following = way[step] if step < len(way) else next(acts.routine(plain), None)
            if following is None:
                break
            quick.step(following)
            plain.step(following)
            same(quick, plain, plain.done)
            prints.add((quick.fingerprint(), plain.fingerprint()))
        ends.add(str(seen(plain)))
    assert len(ends) == len(ways)
    assert len({quick for quick, _ in prints}) == len({plain for _, plain in prints}) == len(prints)
