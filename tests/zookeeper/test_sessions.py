"""The contract, fourth part: sessions, their ephemeral znodes and their end. Every case runs on both ZooKeepers."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.core.effects import Op, SessionExpired
from tests.zookeeper.support import create, delete, events, node, put, stat, transact


def test_sessions_have_ids_of_their_own(zookeeper: Any) -> None:
    """No two sessions have the same id, and none has 0."""
    ids = {zookeeper.connect().session_id for _ in range(3)}
    assert len(ids) == 3
    assert 0 not in ids


def test_the_end_takes_the_ephemeral_znodes_along(zookeeper: Any, client: Any, other: Any) -> None:
    """The end of a session deletes its ephemeral znodes, and no others."""
    create(client, "/stays")
    create(client, "/b", ephemeral=True)
    create(client, "/stays/a", ephemeral=True)
    create(other, "/other", ephemeral=True)
    closed = zookeeper.end(client)
    assert closed.deleted == ("/b", "/stays/a")
    assert list(zookeeper.tree()) == ["/other", "/stays"]


def test_the_end_is_one_write(zookeeper: Any, client: Any, other: Any) -> None:
    """All ephemeral znodes of a session go at one zxid, which their parents' stats show."""
    create(other, "/p")
    create(client, "/p/a", ephemeral=True)
    create(client, "/p/b", ephemeral=True)
    create(client, "/c", ephemeral=True)
    closed = zookeeper.end(client)
    assert stat(other, "/p").pzxid == stat(other, "/").pzxid == closed.zxid
    assert (stat(other, "/p").cversion, stat(other, "/p").num_children) == (4, 0)


def test_the_end_of_a_session_without_ephemerals(zookeeper: Any, client: Any, other: Any) -> None:
    """A session that owns nothing ends with nothing deleted and the tree unchanged."""
    create(client, "/a")
    before = zookeeper.tree()
    assert zookeeper.end(client).deleted == ()
    assert zookeeper.tree() == before


def test_other_sessions_are_notified_of_the_end(zookeeper: Any, client: Any, other: Any) -> None:
    """Watches on ephemeral znodes and on their parents' children fire when the session ends."""
    create(client, "/ids")
    create(client, "/ids/1", ephemeral=True)
    other.exists(["/ids/1"], watch=True)
    other.children(["/ids"], watch=True)
    zookeeper.end(client)
    assert events(zookeeper, other) == [("NodeDeleted", "/ids/1"), ("NodeChildrenChanged", "/ids")]


@pytest.mark.parametrize("call", ["exists", "read", "children", "write", "events"])
def test_an_ended_session_says_so(zookeeper: Any, client: Any, call: str) -> None:
    """Every call of a client whose session has ended raises SessionExpired."""
    create(client, "/a", ephemeral=True)
    zookeeper.end(client)
    arguments: dict[str, tuple[Any, ...]] = {"write": ([(Op("create", "/b"),)],), "events": ()}
    with pytest.raises(SessionExpired):
        getattr(client, call)(*arguments.get(call, (["/a"], True)))


def test_an_ended_session_writes_nothing(zookeeper: Any, client: Any, other: Any) -> None:
    """A write that raises SessionExpired has not happened and takes no zxid."""
    closed = zookeeper.end(client)
    with pytest.raises(SessionExpired):
        create(client, "/a")
    assert create(other, "/b").zxid == closed.zxid + 1
    assert list(zookeeper.tree()) == ["/b"]


def test_a_session_ends_once(zookeeper: Any, client: Any) -> None:
    """Ending a session that has ended raises SessionExpired."""
    zookeeper.end(client)
    with pytest.raises(SessionExpired):
        zookeeper.end(client)


def test_the_watches_of_an_ended_session_are_gone(zookeeper: Any, client: Any, other: Any) -> None:
    """Writes to what an ended session has watched go on undisturbed, and other sessions' watches there still fire."""
    create(other, "/a")
    for one in (client, other):
        one.read(["/a"], watch=True)
        one.children(["/a"], watch=True)
    zookeeper.end(client)
    put(other, "/a")
    create(other, "/a/b")
    assert events(zookeeper, other) == [("NodeDataChanged", "/a"), ("NodeChildrenChanged", "/a")]


def test_an_ephemeral_znode_may_be_deleted_by_others(zookeeper: Any, client: Any, other: Any) -> None:
    """An ephemeral znode that another session has deleted is not deleted a second time with its session."""
    create(client, "/a", ephemeral=True)
    create(client, "/b", ephemeral=True)
    delete(other, "/a")
    assert zookeeper.end(client).deleted == ("/b",)


def test_an_ephemeral_znode_belongs_to_its_last_creator(zookeeper: Any, client: Any, other: Any) -> None:
    """An ephemeral znode that was deleted and created again by another session stays when the first one ends."""
    create(client, "/a", ephemeral=True)
    delete(other, "/a")
    create(other, "/a", ephemeral=True)
    assert zookeeper.end(client).deleted == ()
    assert stat(other, "/a").ephemeral_owner == other.session_id


def test_a_set_does_not_change_the_owner(zookeeper: Any, client: Any, other: Any) -> None:
    """An ephemeral znode that another session has set still goes with its creator."""
    create(client, "/a", ephemeral=True)
    put(other, "/a", b"x")
    assert stat(other, "/a").ephemeral_owner == client.session_id
    assert zookeeper.end(client).deleted == ("/a",)


def test_ephemerals_of_a_transaction_count(zookeeper: Any, client: Any, other: Any) -> None:
    """Ephemeral znodes of a transaction go with the session, sequential ones too, but not those of a rolled back one."""
    transact(client, Op("create", "/a", ephemeral=True), Op("create", "/n-", ephemeral=True, sequential=True))
    transact(client, Op("create", "/c", ephemeral=True), Op("check", "/no"))
    create(other, "/c")
    assert zookeeper.end(client).deleted == ("/a", "/n-0000000001")
    assert node(other, "/c").stat.ephemeral_owner == 0


def test_the_next_session_owns_nothing_of_the_last(zookeeper: Any, client: Any) -> None:
    """A session opened after the end of another one has another id, and the ephemeral znodes are to be created again."""
    create(client, "/controller", ephemeral=True)
    zookeeper.end(client)
    successor = zookeeper.connect()
    assert successor.session_id != client.session_id
    assert create(successor, "/controller", ephemeral=True).error is None
    assert stat(successor, "/controller").ephemeral_owner == successor.session_id


def test_has_expired(zookeeper: Any, client: Any, other: Any) -> None:
    """`has_expired` is False while a session lives, and True once the session has ended."""
    assert not client.has_expired()
    zookeeper.end(client)
    assert client.has_expired() and not other.has_expired()
