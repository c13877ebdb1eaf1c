"""The contract, third part: one-shot watches, what fires them and in which order. Every case runs on both ZooKeepers."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.core.effects import Op
from tests.zookeeper.support import create, delete, events, put, transact

EVENTS = {"created": "NodeCreated", "deleted": "NodeDeleted", "data": "NodeDataChanged", "children": "NodeChildrenChanged"}
CASES = {
    # case: (what is there, what is watched, what is written, the events)
    "a watch of read fires for a set": ("/a", "read /a", "set /a", "data /a"),
    "a watch of exists on a missing znode: a creation": ("", "exists /a", "create /a", "created /a"),
    "a watch of exists on a znode: a set": ("/a", "exists /a", "set /a", "data /a"),
    "a data watch fires for the deletion": ("/a", "read /a", "delete /a", "deleted /a"),
    "reads of nothing leave no watch": ("", "read /a, children /a", "create /a, create /a/b, delete /a/b, delete /a", ""),
    "a child watch fires once for creations below": ("/a", "children /a", "create /a/b, create /a/c", "children /a"),
    "a child watch fires for a deletion below": ("/a /a/b", "children /a", "delete /a/b", "children /a"),
    "a child watch is not about data and grandchildren": ("/a /a/b", "children /a", "set /a, set /a/b, create /a/b/c", ""),
    "a data watch is not about children": ("/a", "read /a", "create /a/b, delete /a/b", ""),
    "a child watch fires for the deletion of its own znode": ("/a", "children /a", "delete /a", "deleted /a"),
    "one deletion ends both watches": ("/a", "read /a, children /a", "delete /a, create /a, create /a/b", "deleted /a"),
    "a data and a child watch fire apart": ("/a", "read /a, children /a", "create /a/b, set /a", "children /a, data /a"),
    "a watch that is set twice gives one event": ("/a", "exists /a /a, read /a", "set /a", "data /a"),
    "the creation of a missing znode ends its watch": ("", "exists /a", "create /a, set /a, delete /a", "created /a"),
    "a creation fires for the znode before the parent": ("", "children /, exists /a", "create /a", "created /a, children /"),
    "a deletion fires for the znode before the parent": ("/a", "children / /a", "delete /a", "deleted /a, children /"),
    "a watch on the root fires for a set": ("", "read /", "set /", "data /"),
}


@pytest.mark.parametrize(("there", "watched", "written", "expected"), CASES.values(), ids=CASES)
def test_what_a_watch_fires_for(
    zookeeper: Any, client: Any, other: Any, there: str, watched: str, written: str, expected: str
) -> None:
    """One session creates and watches, another one writes: which events the first one gets, in their order."""
    for path in there.split():
        create(client, path)
    for call in watched.split(", "):
        method, *paths = call.split()
        getattr(client, method)(paths, watch=True)
    for call in written.split(", "):
        kind, path = call.split()
        {"create": create, "set": put, "delete": delete}[kind](other, path)
    named = (event.split() for event in expected.split(", ") if event)
    assert events(zookeeper, client) == [(EVENTS[kind], path) for kind, path in named]


def test_a_watch_fires_once(zookeeper: Any, client: Any, other: Any) -> None:
    """Of two sets only the first fires the watch, whether its event is taken between them or not."""
    create(client, "/a")
    client.read(["/a"], watch=True)
    put(other, "/a")
    put(other, "/a")
    assert events(zookeeper, client) == [("NodeDataChanged", "/a")]
    put(other, "/a")
    assert events(zookeeper, client) == []


def test_a_new_read_leaves_a_new_watch(zookeeper: Any, client: Any, other: Any) -> None:
    """A watch that has fired and is left again fires again."""
    create(client, "/a")
    for _ in range(3):
        client.read(["/a"], watch=True)
        put(other, "/a")
    assert events(zookeeper, client) == [("NodeDataChanged", "/a")] * 3


def test_a_read_without_watch_leaves_none(zookeeper: Any, client: Any, other: Any) -> None:
    """Calls that ask for no watch leave none."""
    create(client, "/a")
    client.read(["/a"], watch=False)
    client.exists(["/a", "/b"], watch=False)
    client.children(["/a"], watch=False)
    put(other, "/a")
    create(other, "/a/c")
    create(other, "/b")
    assert events(zookeeper, client) == []


def test_every_watching_session_is_notified(zookeeper: Any, client: Any, other: Any) -> None:
    """Each session with a watch gets an event of its own, and a session without a watch gets none."""
    third = zookeeper.connect()
    create(client, "/a")
    client.read(["/a"], watch=True)
    other.exists(["/a"], watch=True)
    put(client, "/a")
    assert [events(zookeeper, one) for one in (client, other, third)] == [[("NodeDataChanged", "/a")]] * 2 + [[]]


def test_ones_own_write_fires_ones_own_watch(zookeeper: Any, client: Any) -> None:
    """A session gets watch events for its own writes too."""
    client.exists(["/a"], watch=True)
    create(client, "/a")
    assert events(zookeeper, client) == [("NodeCreated", "/a")]


def test_events_come_in_the_order_of_the_writes(zookeeper: Any, client: Any, other: Any) -> None:
    """Events of several znodes come in the order in which the writes happened, whatever the order of the watches."""
    paths = ["/c", "/a", "/b"]
    client.exists(sorted(paths), watch=True)
    other.write([(Op("create", path),) for path in paths])
    assert events(zookeeper, client) == [("NodeCreated", path) for path in paths]


def test_a_transaction_fires_operation_by_operation(zookeeper: Any, client: Any, other: Any) -> None:
    """The events of one transaction come in the order of its operations, and a watch that fires twice in it gives one event."""
    create(client, "/a")
    create(client, "/b")
    client.read(["/a", "/b"], watch=True)
    transact(other, Op("set", "/b"), Op("set", "/a"), Op("set", "/b"), Op("delete", "/a"))
    assert events(zookeeper, client) == [("NodeDataChanged", "/b"), ("NodeDataChanged", "/a")]


def test_a_failed_write_fires_nothing(zookeeper: Any, client: Any, other: Any) -> None:
    """A failed operation and a transaction that is rolled back fire no watch and use none up."""
    create(client, "/a")
    client.read(["/a"], watch=True)
    client.children(["/a"], watch=True)
    put(other, "/a", version=7)
    transact(other, Op("set", "/a"), Op("create", "/a/b"), Op("check", "/no"))
    assert events(zookeeper, client) == []
    put(other, "/a")
    assert events(zookeeper, client) == [("NodeDataChanged", "/a")]


def test_events_are_taken(zookeeper: Any, client: Any, other: Any) -> None:
    """An event that was taken is not there a second time."""
    client.exists(["/a"], watch=True)
    create(other, "/a")
    assert len(events(zookeeper, client)) == 1
    assert client.events() == []


def test_a_list_of_events_is_the_callers(zookeeper: Any, client: Any, other: Any) -> None:
    """A list that `events` has returned does not grow when more events come."""
    zookeeper.settle()
    taken = client.events()
    client.exists(["/a"], watch=True)
    create(other, "/a")
    assert events(zookeeper, client) == [("NodeCreated", "/a")]
    assert taken == []


def test_settle_waits_until_all_sessions_have_seen_all_writes(zookeeper: Any, client: Any, other: Any) -> None:
    """After one `settle` a hundred writes by one session have reached the watches of all sessions, in order."""
    third = zookeeper.connect()
    paths = [f"/n{number:03}" for number in range(100)]
    for one in (client, third):
        one.exists(paths, watch=True)
    other.write([(Op("create", path),) for path in paths])
    zookeeper.settle()
    for one in (client, third):
        assert [event.path for event in one.events()] == paths
