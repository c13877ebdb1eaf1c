"""The contract, third part: one-shot watches, what fires them and in which order. Every case runs on both ZooKeepers."""

from __future__ import annotations

from typing import Any

from kcontrol.core.effects import Op
from tests.zookeeper.support import create, delete, events, put, transact


def test_a_set_fires_the_watch_of_a_read(zookeeper: Any, client: Any, other: Any) -> None:
    """A watch that `read` has set fires for a set as NodeDataChanged."""
    create(client, "/a")
    client.read(["/a"], watch=True)
    put(other, "/a")
    assert events(zookeeper, client) == [("NodeDataChanged", "/a")]


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


def test_exists_leaves_a_watch_where_nothing_is(zookeeper: Any, client: Any, other: Any) -> None:
    """A watch that `exists` has set on a missing znode fires for its creation."""
    client.exists(["/a"], watch=True)
    create(other, "/a")
    assert events(zookeeper, client) == [("NodeCreated", "/a")]


def test_exists_leaves_a_watch_where_something_is(zookeeper: Any, client: Any, other: Any) -> None:
    """A watch that `exists` has set on a znode fires for a set."""
    create(client, "/a")
    client.exists(["/a"], watch=True)
    put(other, "/a")
    assert events(zookeeper, client) == [("NodeDataChanged", "/a")]


def test_a_deletion_fires_the_data_watch(zookeeper: Any, client: Any, other: Any) -> None:
    """A data watch fires for the deletion of its znode."""
    create(client, "/a")
    client.read(["/a"], watch=True)
    delete(other, "/a")
    assert events(zookeeper, client) == [("NodeDeleted", "/a")]


def test_a_read_of_nothing_leaves_no_watch(zookeeper: Any, client: Any, other: Any) -> None:
    """`read` and `children` of a missing znode leave no watch."""
    client.read(["/a"], watch=True)
    client.children(["/a"], watch=True)
    create(other, "/a")
    create(other, "/a/b")
    delete(other, "/a/b")
    delete(other, "/a")
    assert events(zookeeper, client) == []


def test_a_child_that_comes_fires_the_child_watch(zookeeper: Any, client: Any, other: Any) -> None:
    """A child watch fires once for a creation below its znode."""
    create(client, "/a")
    client.children(["/a"], watch=True)
    create(other, "/a/b")
    create(other, "/a/c")
    assert events(zookeeper, client) == [("NodeChildrenChanged", "/a")]


def test_a_child_that_goes_fires_the_child_watch(zookeeper: Any, client: Any, other: Any) -> None:
    """A child watch fires for a deletion below its znode."""
    create(client, "/a")
    create(client, "/a/b")
    client.children(["/a"], watch=True)
    delete(other, "/a/b")
    assert events(zookeeper, client) == [("NodeChildrenChanged", "/a")]


def test_a_child_watch_is_not_about_data(zookeeper: Any, client: Any, other: Any) -> None:
    """A child watch gets no notification about sets of the znode and its children, and none about grandchildren."""
    create(client, "/a")
    create(client, "/a/b")
    client.children(["/a"], watch=True)
    put(other, "/a")
    put(other, "/a/b")
    create(other, "/a/b/c")
    assert events(zookeeper, client) == []


def test_a_data_watch_is_not_about_children(zookeeper: Any, client: Any, other: Any) -> None:
    """A data watch gets no notification about created and deleted children."""
    create(client, "/a")
    client.read(["/a"], watch=True)
    create(other, "/a/b")
    delete(other, "/a/b")
    assert events(zookeeper, client) == []


def test_a_deletion_fires_the_child_watch_of_the_znode_itself(zookeeper: Any, client: Any, other: Any) -> None:
    """A child watch fires for the deletion of its own znode as NodeDeleted."""
    create(client, "/a")
    client.children(["/a"], watch=True)
    delete(other, "/a")
    assert events(zookeeper, client) == [("NodeDeleted", "/a")]


def test_a_deletion_gives_one_event_and_removes_both_watches(zookeeper: Any, client: Any, other: Any) -> None:
    """A session with a data and a child watch on one znode gets one event for its deletion, and no event after it."""
    create(client, "/a")
    client.read(["/a"], watch=True)
    client.children(["/a"], watch=True)
    delete(other, "/a")
    assert events(zookeeper, client) == [("NodeDeleted", "/a")]
    create(other, "/a")
    create(other, "/a/b")
    assert events(zookeeper, client) == []


def test_data_and_child_watch_fire_apart(zookeeper: Any, client: Any, other: Any) -> None:
    """A data and a child watch on one znode are two watches: each is used up by its own change."""
    create(client, "/a")
    client.read(["/a"], watch=True)
    client.children(["/a"], watch=True)
    create(other, "/a/b")
    put(other, "/a")
    assert events(zookeeper, client) == [("NodeChildrenChanged", "/a"), ("NodeDataChanged", "/a")]


def test_two_watches_of_one_kind_are_one(zookeeper: Any, client: Any, other: Any) -> None:
    """A session that sets one watch twice, by `exists` and by `read`, gets one event."""
    create(client, "/a")
    client.exists(["/a", "/a"], watch=True)
    client.read(["/a"], watch=True)
    put(other, "/a")
    assert events(zookeeper, client) == [("NodeDataChanged", "/a")]


def test_a_watch_that_waited_for_creation_does_not_wait_on(zookeeper: Any, client: Any, other: Any) -> None:
    """The creation of a missing znode ends its watch, which gets no notification about the set that follows."""
    client.exists(["/a"], watch=True)
    create(other, "/a")
    put(other, "/a")
    delete(other, "/a")
    assert events(zookeeper, client) == [("NodeCreated", "/a")]


def test_a_creation_notifies_the_znode_before_the_parent(zookeeper: Any, client: Any, other: Any) -> None:
    """A creation fires the watch on the znode first, then the one on the parent's children."""
    client.children(["/"], watch=True)
    client.exists(["/a"], watch=True)
    create(other, "/a")
    assert events(zookeeper, client) == [("NodeCreated", "/a"), ("NodeChildrenChanged", "/")]


def test_a_deletion_notifies_the_znode_before_the_parent(zookeeper: Any, client: Any, other: Any) -> None:
    """A deletion fires the watches on the znode first, then the one on the parent's children."""
    create(client, "/a")
    client.children(["/", "/a"], watch=True)
    delete(other, "/a")
    assert events(zookeeper, client) == [("NodeDeleted", "/a"), ("NodeChildrenChanged", "/")]


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


def test_the_data_of_the_root_can_be_watched(zookeeper: Any, client: Any, other: Any) -> None:
    """A watch on the root fires for a set of the root with the path `/`."""
    client.read(["/"], watch=True)
    put(other, "/", b"x")
    assert events(zookeeper, client) == [("NodeDataChanged", "/")]
