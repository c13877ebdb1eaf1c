"""What differs is not taken for the same: quick worlds in which races are lost go the way of the world."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from kcontrol.cluster import actions
from kcontrol.cluster.world import Action, World
from kcontrol.core.effects import Children, Commit, Handler, Read, SessionExpired, Stat, Transaction, Znode
from kcontrol.core.events import RegisterBrokerAndReelect
from kcontrol.core.znodes import CONTROLLER, CONTROLLER_EPOCH, TOPICS, broker_path, encode_controller, state_path, topic_path
from kcontrol.search.memo_driver import Memo, ScratchJournal, answer_key
from kcontrol.search.memo_world import fork_for_search
from kcontrol.zookeeper.memory import MemoryZooKeeper
from kcontrol.zookeeper.port import ConnectionLoss, WriteResult
from tests.core.support import T0, Bench, alone, cluster, until
from tests.search.test_memo_world import same, seen

# ---------------------------------------------------------------- answers that differ

STAT = Stat(5, 0, 5, 0, 5, 0, 0, 0, 0, 0, 0)
WRITTEN = WriteResult(7, None, -1, (1,), ("/x",))
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
    "at which operation": (
        [WRITTEN._replace(error="BadVersion", failed_index=0)],
        [WRITTEN._replace(error="BadVersion", failed_index=1)],
    ),
    "which version came of it": ([WRITTEN], [WRITTEN._replace(versions=(2,))]),
    "which path": ([WRITTEN], [WRITTEN._replace(paths=("/x0000000001",))]),
    "which of two writes": ([WRITTEN, WRITTEN._replace(error="NoNode")], [WRITTEN._replace(error="NoNode"), WRITTEN]),
    "how a call has failed": (SessionExpired(), ConnectionLoss()),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_different_responses_have_different_keys(what: str) -> None:
    """The outcome of one such response is not reused for the other."""
    one, other = ANSWERS[what]
    assert answer_key(one) != answer_key(other)
    assert answer_key(one) == answer_key(deepcopy(one))


def test_responses_that_are_equal_for_a_handler_have_one_key() -> None:
    """The zxid of a write, and times, sizes and children in a stat do not make a second run of the handler necessary."""
    assert answer_key([WRITTEN]) == answer_key([WRITTEN._replace(zxid=8)])
    rest = STAT._replace(ctime=1, mzxid=6, mtime=1, pzxid=6, cversion=1, aversion=1, data_length=1, num_children=1)
    assert answer_key([STAT, Znode(b"", STAT)]) == answer_key([rest, Znode(b"", rest)])


# ---------------------------------------------------------------- states that differ


def waiting(correlation_id: str = "1", session: int = 1) -> Bench:
    """A driver whose queue has two events in it."""

    def story(ctx: Any) -> Handler:
        yield Read(("/x",))

    bench = Bench()
    bench.enqueue(story, correlation_id=correlation_id)
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
    "that its session is gone": with_other("has_lost_session", True),
    "the number of its next request": with_other("journal", ScratchJournal(3)),
    "what is watched": with_other("znode_handlers", {("/x", False)}),
}


@pytest.mark.parametrize("what", STATES)
def test_states_with_different_futures_are_different(what: str) -> None:
    """The outcome of a call on one driver is not reused for a different driver; equal drivers share one state."""
    memory = Memo(0)
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
    """`/controller` does not exist, and broker 2 is about to create it."""
    world = cluster({}, brokers=(1, 2))
    world.step(("delete", CONTROLLER))
    alone(world, 2, lambda w: about(w, Transaction, CONTROLLER))
    return world


def registration_is_lost() -> World:
    """Broker 2 has a new session and is about to register; the response will be lost, and the broker reads again."""
    world = cluster({}, brokers=(1, 2, 3)).fork(keep_replay_logs=True)  # so that forks are copies, with what will be lost
    world.step(("expire_session", 2))
    until(world, lambda w: about(w, Transaction, OWN))
    assert isinstance(world.zk, MemoryZooKeeper)
    world.zk.lose_next(world.processes[2].driver.client, before=False)
    return world


def text_of(world: World, path: str) -> str:
    return world.zk.tree()[path].data.decode()


def written(world: World, path: str, was: str = "", becomes: str = "") -> Action:
    return ("set", path, text_of(world, path).replace(was, becomes))


def anew(world: World, path: str) -> list[Action]:
    return [("delete", path), ("create", path, text_of(world, path))]


Ways = list[list[Action]]
"""The writes from outside, one of which comes before the controller goes on."""

RACES: dict[str, tuple[Callable[[], World], Callable[[World], Ways]]] = {
    "a write of a state": (
        lambda: leader_dies(Commit),
        lambda w: [[], [written(w, STATE)], [("delete", STATE)], [written(w, CONTROLLER_EPOCH)], [("delete", CONTROLLER_EPOCH)]],
    ),
    "a read of a state": (
        lambda: leader_dies(Read),
        lambda w: [
            [], [written(w, STATE)], [written(w, STATE)] * 2, [written(w, STATE, "[1,2,3]", "[1,3]")], [("delete", STATE)],
        ],
    ),
    "a registration": (broker_starts, lambda w: [[], anew(w, THIRD), anew(w, THIRD) * 2, [("delete", THIRD)]]),
    "an election": (controller_is_gone, lambda w: [[], [("create", CONTROLLER, encode_controller(1, 0).decode())]]),
    "a list of topics": (topic_is_created, lambda w: [[], [("create", topic_path("v"), text_of(w, topic_path("t")))]]),
    "an owner": (registration_is_lost, lambda w: [[GO_ON], [("create", OWN, "{}"), ("set", OWN, text_of(w, THIRD)), GO_ON]]),
}  # fmt: skip


@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
@pytest.mark.parametrize("race", RACES)
def test_a_race_that_is_lost_is_not_taken_for_one_that_is_won(race: str, turned: bool) -> None:
    """The same controller state with another response of ZooKeeper gives a plain world's next state, also when remembered."""
    made, ways_from = RACES[race]
    origin = made()
    ways = ways_from(origin)
    root, ends, prints = fork_for_search(origin), set[str](), set[tuple[str, str]]()
    for way in [*(reversed(ways) if turned else ways), *ways]:
        quick, plain = root.fork(), origin.fork(keep_replay_logs=True)
        for step in range(40):
            following = way[step] if step < len(way) else next(actions.routine_actions(plain), None)
            if following is None:
                break
            quick.step(following)
            plain.step(following)
            same(quick, plain, plain.done)
            prints.add((quick.fingerprint(), plain.fingerprint()))
        ends.add(str(seen(plain)))
    assert len(ends) == len(ways)
    assert len({quick for quick, _ in prints}) == len({plain for _, plain in prints}) == len(prints)
