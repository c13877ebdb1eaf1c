"""The clients of chapter 1: kazoo's own on a real ZooKeeper and their like in this process say the same, word by word."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kcontrol.core.errors import UserError
from kcontrol.lab.zookeeper_playground import Playground
from kcontrol.zookeeper.kazoo import memory_client
from kcontrol.zookeeper.kazoo.wire import error_name
from tests.lab.support import refusal

WORLDS = ["simulated", pytest.param("zookeeper", marks=pytest.mark.zookeeper)]
Words = list[Any]


@pytest.fixture(scope="module")
def kept() -> Iterator[None]:
    """Keep the server, which all playgrounds of a process share, from one test to the next."""
    playground = Playground("zookeeper")
    yield
    playground.close()


@pytest.fixture(params=WORLDS)
def ground(request: pytest.FixtureRequest) -> Iterator[Playground]:
    """An empty one in either world, closed at the end."""
    if request.param == "zookeeper":
        request.getfixturevalue("kept")
    playground = Playground(request.param)
    yield playground
    playground.close()


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(Exception) as problem:  # noqa: PT011 - its type is what is asked for
        call()
    return type(problem.value).__name__


def test_writes_and_their_refusals(ground: Playground) -> None:
    """Each refusal has kazoo's type, and a condition on the version decides between two writers."""
    anna, bert = ground.kazoo("anna"), ground.kazoo("bert")
    assert anna.create("/a", b"1") == "/a" and anna.set("/a", b"2", version=0).version == 1
    assert (bert.get("/a")[0], bert.get("/a")[1].version, bert.exists("/none")) == (b"2", 1, None)
    anna.create("/e", ephemeral=True)
    anna.create("/a/b")
    assert [
        refused(call)
        for call in (
            lambda: bert.create("/a"),
            lambda: bert.set("/a", b"3", version=0),
            lambda: bert.get("/none"),
            lambda: bert.get_children("/none"),
            lambda: bert.delete("/a"),
            lambda: bert.create("/e/below"),
        )
    ] == ["NodeExistsError", "BadVersionError", "NoNodeError", "NoNodeError", "NotEmptyError", "NoChildrenForEphemeralsError"]
    assert bert.get_children("/a") == ["b"] and bert.delete("/a/b") is True


def test_a_transaction_is_all_or_nothing(ground: Playground) -> None:
    """Results come one for each write; after a failure nothing is there, and each result says on which side of it it was."""
    anna = ground.kazoo("anna")
    good = anna.transaction()
    good.create("/a", b"1")
    good.set_data("/a", b"2")
    good.check("/a", 1)
    assert [type(found).__name__ for found in good.commit()] == ["str", "ZnodeStat", "bool"]
    bad = anna.transaction()
    bad.create("/b")
    bad.delete("/a", version=7)
    bad.create("/c")
    found = [type(found).__name__ for found in bad.commit()]
    assert found == ["RolledBackError", "BadVersionError", "RuntimeInconsistency"]
    assert sorted(ground.tree()) == ["/a"]


def test_each_set_of_a_transaction_returns_its_own_stat(ground: Playground) -> None:
    """A set returns the stat right after it, on a real ZooKeeper and here, where later writes change or delete the znode."""
    anna = ground.kazoo("anna")
    anna.create("/a", b"1")
    changes = anna.transaction()
    changes.set_data("/a", b"22")
    changes.create("/a/b")
    changes.set_data("/a", b"333")
    changes.delete("/a/b")
    changes.delete("/a")
    first, path, second, *deleted = changes.commit()
    assert (path, deleted) == ("/a/b", [True, True])
    assert [(s.version, s.cversion, s.dataLength, s.numChildren) for s in (first, second)] == [(1, 0, 2, 0), (2, 1, 3, 1)]
    assert ground.tree() == {}


@pytest.mark.parametrize("name", ["NodeExists", "NoNode", "BadVersion", "NotEmpty", "NoChildrenForEphemerals", "NoAuth",
                                  "InvalidAcl", "BadArguments"])  # fmt: skip
def test_each_error_of_a_write_is_an_exception_of_kazoo(name: str) -> None:
    """Each error that a write may return is the exception whose name kazoo's session reads as this error."""
    assert error_name(memory_client.error(name)) == name


def test_a_watch_gets_one_notification_and_recipes_set_the_watch_again(ground: Playground) -> None:
    """A watch gets the first change alone; DataWatch and ChildrenWatch get each change until their function returns False."""
    anna, bert = ground.kazoo("anna"), ground.kazoo("bert")
    notified: Words = []
    data: Words = []
    names: Words = []
    bert.exists("/a", watch=lambda event: notified.append((event.type, event.path)))
    bert.DataWatch("/a")(lambda found, stat: data.append(found) or len(data) < 4)
    for value in (b"1", b"2", b"3", b"4"):
        (anna.set if anna.exists("/a") else anna.create)("/a", value)
        ground.settle()
    anna.create("/q")
    bert.get_children("/q", watch=lambda event: notified.append((event.type, event.path)))
    bert.ChildrenWatch("/q")(lambda found: names.append(sorted(found)))
    for _ in range(2):
        anna.create("/q/n-", ephemeral=True, sequence=True)
        ground.settle()
    assert notified == [("CREATED", "/a"), ("CHILD", "/q")]
    assert data == [None, b"1", b"2", b"3"]
    assert names == [[], ["n-0000000000"], ["n-0000000000", "n-0000000001"]]


def test_a_cut_off_client_learns_the_end_of_its_session_when_it_connects_again(ground: Playground) -> None:
    """A client that is cut off keeps its ephemeral znodes until the session ends; it gets LOST when it connects again."""
    anna, bert = ground.kazoo("anna"), ground.kazoo("bert")
    states: Words = []
    anna.add_listener(states.append)
    anna.create("/who", ephemeral=True)
    ground.cut("anna")
    assert (states, anna.state, ground.owner("/who")) == (["SUSPENDED"], "SUSPENDED", "anna")
    ground.mend("anna")
    assert states == ["SUSPENDED", "CONNECTED"] and ground.owner("/who") == "anna"
    ground.cut("anna").time_out("anna")
    assert (states[2:], anna.state, bert.exists("/who")) == (["SUSPENDED"], "SUSPENDED", None)
    ground.mend("anna")
    assert states[2:] == ["SUSPENDED", "LOST", "CONNECTED"]
    anna.create("/who", ephemeral=True)
    assert ground.owner("/who") == "anna"


def test_who_leaves_in_order_takes_its_znodes_along(ground: Playground) -> None:
    """`stop` ends the session at once."""
    anna, bert = ground.kazoo("anna"), ground.kazoo("bert")
    anna.create("/who", ephemeral=True)
    anna.stop()
    ground.settle()
    assert bert.exists("/who") is None


def test_the_picture_says_who_owns_and_who_watches(ground: Playground) -> None:
    """Text from outside is shown as text, in either world the same."""
    anna = ground.kazoo("anna")
    anna.create("/<b>", b"<script>", ephemeral=True)
    anna.exists("/later", watch=lambda event: None)
    assert repr(ground).splitlines() == [
        "anna CONNECTED",
        "/<b> <script> version 0",
        "/later is missing",
        "anna -> /<b>: owns",
        "anna -> /later: watches its data",
    ]
    assert "<script" not in ground.diagram().svg()


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda g: Playground("moon"), "'simulated' and 'zookeeper'"),
        (lambda g: g.kazoo("anna"), "already"),
        (lambda g: g.cut("carl"), "anna"),
        (lambda g: g.time_out("anna"), 'call cut("anna")'),
        (lambda g: g.owner("/nowhere"), "none yet"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(call: Callable[[Playground], object], part: str) -> None:
    """A wrong name, or an act that makes no sense, is answered with what there is."""
    ground = Playground()
    ground.kazoo("anna")
    with pytest.raises(UserError) as problem:
        call(ground)
    assert part in refusal(problem)


@pytest.mark.zookeeper
def test_nothing_is_left_running() -> None:
    """After `close`, cut off or not, no thread of a client or of its line is left."""
    before = set(threading.enumerate())
    ground = Playground("zookeeper")
    ground.kazoo("anna")
    ground.kazoo("bert")
    ground.cut("anna").close()
    ground.close()
    left = [thread for thread in threading.enumerate() if thread not in before]
    for thread in left:
        thread.join(10)
    assert [thread for thread in left if thread.is_alive()] == []
