"""For each promise that 0.8.1 does not give yet: a shortest run of 0.8.1 in which it is broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import Action, World
from kcontrol.search import group_invariants
from kcontrol.search.invariants import INVARIANTS, QUIET, Property, is_at_rest
from kcontrol.search.search import search

RELEASE = "0.8.1"
ROW = {row.name: row for row in INVARIANTS}
DELETE = ("delete", "/controller")


def small(existing: dict[str, Any], offered: dict[str, Any], *faults: str) -> World:
    """Two brokers at rest with some topics; requests are delivered at once, and no follower ever catches up."""
    topics = {**existing, **offered}
    world = World(Settings(RELEASE, (1, 2), topics=topics, faults=faults, instant_requests=True, followers=False))
    for act in (("start", 1), ("start", 2), *(("create_topic", *topic) for topic in existing.items())):
        world.step(act)
        world.run()
    return world


def after(world: World, *actions: Action) -> World:
    for action in actions:
        world.step(action)
    return world


def on(broker: int, times: int) -> list[Action]:
    return [("advance", broker, "zk-events")] * times


def notice(broker: int) -> list[Action]:
    """The next notification is delivered to a broker, and its ZooKeeper thread begins the event."""
    return [("deliver_notification", broker), ("begin", broker, "zk-events")]


def last_member() -> World:
    """A partition with one replica, on a broker that may die."""
    return small({"t": ((2,),)}, {}, "kill")


def creation_begun() -> World:
    """Controller 1 has begun to create a topic."""
    return after(small({}, {"t": ((1, 2),)}, "delete_controller"), ("create_topic", "t", ((1, 2),)), *notice(1))


def second_election() -> World:
    """Broker 2 has created `/controller`, and it is deleted once more before the broker has taken the next epoch."""
    world = small({"t": ((1, 2),)}, {"u": ((1, 2),)}, "delete_controller")
    return after(world, DELETE, ("create_topic", "u", ((1, 2),)), *notice(2), *on(2, 3), DELETE)


def created_by_the_next() -> World:
    """Broker 2 has taken over and created the topic, while broker 1 was about to look who leads it."""
    begun = after(small({}, {"t": ((1, 2),)}, "delete_controller"), ("create_topic", "t", ((1, 2),)), *notice(1), *on(1, 5))
    return after(begun, DELETE, *notice(2), *on(2, 22))


def creation_begun_in_a_session() -> World:
    """Controller 1 has begun to create a topic, and its session may expire."""
    world = small({}, {"t": ((1, 2),)}, "expire_session")
    return after(world, ("create_topic", "t", ((1, 2),)), *notice(1))


def restarted() -> World:
    """Broker 2, the leader of t-0, has ended and started again before controller 1 has read which brokers there are."""
    begun = (("kill", 2), ("expire_session", 2), ("start", 2), ("begin", 2, "main"), *[("advance", 2, "main")] * 14)
    return after(small({"t": ((2, 1),)}, {}), *begun)


class Pin(NamedTuple):
    """A row, where its search begins, how many faults it may take, and the run that it finds."""

    name: str
    start: Callable[[], World]
    faults: int
    run: list[Action]


PINS = (
    Pin("ISR never empty", last_member, 1, [("kill", 2), ("expire_session", 2), *notice(1), *on(1, 6)]),
    Pin("a deposed controller writes nothing", creation_begun, 1, [*on(1, 9), DELETE, *notice(2), *on(2, 4), *on(1, 1)]),
    Pin("one writer per epoch", second_election, 0, [*notice(1), *on(1, 4), *on(2, 21)]),
    Pin("only the named controller writes", creation_begun_in_a_session, 1,
        [*on(1, 9), ("expire_session", 1), ("renew", 1), *on(1, 1)]),
    Pin("leaders know", restarted, 0, [*notice(1), *on(1, 4)]),
    Pin("no epoch from the future", created_by_the_next, 0, on(1, 2)),
    Pin("one controller", lambda: small({}, {}, "delete_controller"), 1,
        [DELETE, *notice(1), *notice(2), *on(2, 3), *on(1, 2), *on(2, 15), *notice(1), *on(1, 2), *notice(2), *on(2, 2),
         *notice(2), *on(2, 2)]),
)  # fmt: skip
LONG = {"one writer per epoch", "one controller"}  # searches that take minutes
EACH = pytest.mark.parametrize("pin", PINS, ids=lambda pin: pin.name)


def breaks(pin: Pin) -> Property:
    """What the row says although the release does not promise it: of a world at rest, if it speaks of that, unless it is void."""
    row = ROW[pin.name]
    return lambda world: row.broken(world) if (row.when != QUIET or is_at_rest(world)) and not row.is_void(world) else None


def test_every_promise_that_came_later_is_broken() -> None:
    """There is a run for each row about controllers that this release does not promise, and for no other one."""
    # 0.8.1 has no group coordinator, so no run of it says anything about the rows about groups.
    of_groups = {row.name for row in INVARIANTS if row.broken.__module__ == group_invariants.__name__}
    assert {pin.name for pin in PINS} == {row.name for row in INVARIANTS if not row.is_promised_by(RELEASE)} - of_groups


@EACH
def test_the_run_breaks_the_promise_at_its_last_step(pin: Pin) -> None:
    """No step before the last one breaks the row, and the last one does; the release promises nothing of the kind."""
    world, broken = pin.start(), breaks(pin)
    for action in pin.run:
        assert broken(world) is None
        world.step(action)
    assert broken(world) is not None
    assert ROW[pin.name](world) is None


@pytest.mark.parametrize(
    "pin", [pytest.param(p, marks=pytest.mark.slow if p.name in LONG else ()) for p in PINS], ids=lambda p: p.name
)
def test_no_run_is_shorter(pin: Pin) -> None:
    """A search through every order of events, breadth first, finds this run first."""
    found = search(pin.start(), len(pin.run), pin.faults, (breaks(pin),))
    assert list(found.actions) == pin.run


def test_2_8_keeps_them() -> None:
    """In 2.8 every run of fourteen steps from a cluster like these, with two faults, keeps all these promises."""
    settings = Settings("2.8", (1, 2), topics={"t": ((2,),)}, faults=("kill", "delete_controller"), instant_requests=True)
    world = World(settings)
    for act in (("start", 1), ("start", 2), ("create_topic", "t", ((2,),))):
        world.step(act)
        world.run()
    found = search(world, 14, 2, tuple(map(breaks, PINS)))
    assert found.violation is None and found.states > 500
