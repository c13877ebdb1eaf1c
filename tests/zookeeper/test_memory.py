"""What only the ZooKeeper in memory can do: be copied, be looked into, lose answers, and be the same in every run."""

from __future__ import annotations

import pytest

from kcontrol.core.effects import Op, SessionExpired, WatchEvent
from kcontrol.zookeeper.memory import MemoryClient, MemoryZooKeeper
from kcontrol.zookeeper.port import ConnectionLoss
from tests.zookeeper.support import Clock, create, delete, node, put, stat


def undelivered(zookeeper: MemoryZooKeeper, client: MemoryClient) -> tuple[WatchEvent, ...]:
    """Return the watch events that the client has not taken yet, oldest first; () once the session has ended."""
    return tuple(zookeeper._events.get(client.session_id, ()))


@pytest.fixture
def zookeeper() -> MemoryZooKeeper:
    return MemoryZooKeeper(Clock())


@pytest.fixture
def client(zookeeper: MemoryZooKeeper) -> MemoryClient:
    return zookeeper.connect()


def test_times_are_the_clocks() -> None:
    """The ctime and mtime of a znode are what the given clock said at the write, one time for a whole transaction."""
    clock = Clock()
    client = MemoryZooKeeper(clock).connect()
    client.write([(Op("create", "/a"), Op("create", "/b"))])
    first = clock.now_ms
    put(client, "/a")
    assert (stat(client, "/a").ctime, stat(client, "/a").mtime) == (first, clock.now_ms) == (first, first + 1)
    assert stat(client, "/b").ctime == first


def test_the_root_of_an_empty_zookeeper_has_a_stat_of_noughts(client: MemoryClient) -> None:
    """The root was created by no transaction: all eleven lines of its stat are 0."""
    # Source: DataTree(), `new DataNode(new byte[0], -1L, new StatPersisted())` (ZooKeeper 3.9).
    assert stat(client, "/") == (0,) * 11


def test_equal_calls_give_equal_states() -> None:
    """Two ZooKeepers with equal calls have equal trees, session ids, watches and events."""

    def run() -> list[object]:
        zookeeper = MemoryZooKeeper(Clock())
        one, two = zookeeper.connect(), zookeeper.connect()
        one.exists(["/a", "/b"], watch=True)
        two.children(["/"], watch=True)
        create(two, "/a", ephemeral=True)
        create(two, "/n-", sequential=True)
        closed = zookeeper.end(two)
        return [zookeeper.tree(), zookeeper.sessions(), zookeeper.watches(), undelivered(zookeeper, one), closed]

    assert run() == run()


def test_what_nodes_has_returned_never_changes(zookeeper: MemoryZooKeeper, client: MemoryClient) -> None:
    """A mapping of `nodes` does not change after any kind of write, and the next mapping has the written data."""
    create(client, "/a")
    put(client, "/a")
    kept = zookeeper.nodes()
    before = dict(kept)
    create(client, "/b")
    put(client, "/a")
    delete(client, "/b")
    put(client, "/a")
    assert dict(kept) == before
    assert zookeeper.nodes()["/a"].stat.version == before["/a"].stat.version + 2


def test_watches_are_listed_by_path_kind_and_session(zookeeper: MemoryZooKeeper, client: MemoryClient) -> None:
    """`watches` is sorted, has one entry per path, kind and session, and loses it when the watch has fired."""
    other = zookeeper.connect()
    create(client, "/a")
    other.read(["/a"], watch=True)
    client.exists(["/a", "/b"], watch=True)
    client.children(["/a"], watch=True)
    one, two = client.session_id, other.session_id
    assert zookeeper.watches() == [("/a", "children", one), ("/a", "data", one), ("/a", "data", two), ("/b", "data", one)]
    put(client, "/a")
    assert zookeeper.watches() == [("/a", "children", one), ("/b", "data", one)]
    zookeeper.end(client)
    assert zookeeper.watches() == []


def test_undelivered_events_stay_until_taken(zookeeper: MemoryZooKeeper, client: MemoryClient) -> None:
    """A watch event stays until `events` takes it; nothing is left for a session that has ended."""
    client.exists(["/a"], watch=True)
    create(client, "/a")
    assert undelivered(zookeeper, client) == undelivered(zookeeper, client) == (WatchEvent("NodeCreated", "/a"),)
    assert client.events() == [WatchEvent("NodeCreated", "/a")]
    assert undelivered(zookeeper, client) == ()
    client.exists(["/a"], watch=True)
    put(client, "/a")
    zookeeper.end(client)
    assert undelivered(zookeeper, client) == ()


def test_sessions_are_listed_in_order_of_opening(zookeeper: MemoryZooKeeper, client: MemoryClient) -> None:
    """`sessions` has the open sessions only, oldest first."""
    others = [zookeeper.connect() for _ in range(3)]
    zookeeper.end(others[0])
    assert zookeeper.sessions() == [client.session_id, others[1].session_id, others[2].session_id]


def test_a_session_is_found_again_by_its_id(zookeeper: MemoryZooKeeper, client: MemoryClient) -> None:
    """`client` returns a client of the session with this id, or a client that raises SessionExpired if there is none."""
    client.exists(["/a"], watch=True)
    same = zookeeper.client(client.session_id)
    create(same, "/a", ephemeral=True)
    assert same.events() == [WatchEvent("NodeCreated", "/a")]
    assert zookeeper.end(client).deleted == ("/a",)
    with pytest.raises(SessionExpired):
        same.read(["/"], watch=False)
    with pytest.raises(SessionExpired):
        zookeeper.client(12345).events()


# ------------------------------------------------------------ copies


def test_a_copy_is_equal(zookeeper: MemoryZooKeeper, client: MemoryClient) -> None:
    """A copy has the same tree, root, sessions, watches and undelivered events, and goes on with the same zxids and ids."""
    create(client, "/a", b"x", ephemeral=True)
    client.children(["/", "/a"], watch=True)
    client.exists(["/b"], watch=True)
    create(client, "/b")
    twin = zookeeper.copy()
    same = twin.client(client.session_id)
    assert (twin.tree(), node(same, "/")) == (zookeeper.tree(), node(client, "/"))
    assert (twin.sessions(), twin.watches()) == (zookeeper.sessions(), zookeeper.watches())
    assert undelivered(twin, same) == undelivered(zookeeper, client) != ()
    assert create(same, "/c").zxid == create(client, "/c").zxid
    assert twin.connect().session_id == zookeeper.connect().session_id


@pytest.mark.parametrize("changed", ["the copy", "the original"])
def test_a_copy_goes_its_own_way(zookeeper: MemoryZooKeeper, client: MemoryClient, changed: str) -> None:
    """Whatever happens to one of the two leaves the other one as it was: znodes, names, sessions, watches, events, losses."""
    for path in ("/p", "/p/old", "/q"):
        create(client, path)
    create(client, "/p/mine", ephemeral=True)
    client.exists(["/q", "/r"], watch=True)
    twin = zookeeper.copy()
    one, still = (twin, zookeeper) if changed == "the copy" else (zookeeper, twin)
    watcher = still.client(client.session_id)
    before = (still.tree(), node(watcher, "/"), still.sessions(), still.watches(), watcher.children(["/", "/p"], watch=False))
    actor = one.client(client.session_id)
    create(actor, "/p/new")
    create(actor, "/p/too", ephemeral=True)
    delete(actor, "/p/old")
    delete(actor, "/p/mine")
    put(actor, "/q", b"x")
    create(actor, "/r")
    actor.children(["/p"], watch=True)
    one.lose_next(actor, before=True)
    one.connect()
    one.end(actor)
    assert (
        still.tree(), node(watcher, "/"), still.sessions(), still.watches(), watcher.children(["/", "/p"], watch=False),
    ) == before  # fmt: skip
    assert undelivered(still, watcher) == ()
    assert still.end(watcher).deleted == ("/p/mine",)


def test_a_copy_of_a_copy_shares_nothing_that_changes(zookeeper: MemoryZooKeeper, client: MemoryClient) -> None:
    """Three generations of copies that each create a child below the same parent have each their own list of names."""
    create(client, "/p")
    second = zookeeper.copy()
    create(client, "/p/1")
    create(second.client(client.session_id), "/p/2")
    third = second.copy()
    create(third.client(client.session_id), "/p/3")
    create(second.client(client.session_id), "/p/4")
    lists = [one.client(client.session_id).children(["/p"], watch=False)[0] for one in (zookeeper, second, third)]
    assert lists == [("1",), ("2", "4"), ("2", "3")]


def test_a_copy_may_have_a_clock_of_its_own(zookeeper: MemoryZooKeeper, client: MemoryClient) -> None:
    """A copy that is given a clock writes by it, and the original goes on with its own."""
    twin = zookeeper.copy(lambda: 77)
    create(twin.client(client.session_id), "/a")
    create(client, "/a")
    assert stat(twin.client(client.session_id), "/a").ctime == 77
    assert stat(client, "/a").ctime > 77


# ------------------------------------------------------------ lost answers


def test_a_call_lost_before_is_not_performed(zookeeper: MemoryZooKeeper, client: MemoryClient) -> None:
    """A write that is lost before the server raises ConnectionLoss, and changes neither znode nor zxid."""
    first = create(client, "/a").zxid
    zookeeper.lose_next(client, before=True)
    with pytest.raises(ConnectionLoss):
        create(client, "/b")
    assert create(client, "/c").zxid == first + 1
    assert list(zookeeper.tree()) == ["/a", "/c"]


def test_a_call_lost_after_is_performed(zookeeper: MemoryZooKeeper, client: MemoryClient) -> None:
    """A write whose answer is lost raises ConnectionLoss, and has happened; nothing of it counts as answered."""
    zookeeper.lose_next(client, before=False)
    with pytest.raises(ConnectionLoss) as loss:
        client.write([(Op("create", "/a"),), (Op("create", "/b"),)])
    assert loss.value.answered == ()
    assert list(zookeeper.tree()) == ["/a", "/b"]


@pytest.mark.parametrize("call", ["exists", "read", "children"])
@pytest.mark.parametrize("before", [True, False])
def test_a_lost_read_leaves_its_watch_only_if_it_got_there(
    zookeeper: MemoryZooKeeper, client: MemoryClient, call: str, before: bool
) -> None:
    """A read that is lost on the way leaves no watch; one whose answer is lost does."""
    zookeeper.lose_next(client, before=before)
    with pytest.raises(ConnectionLoss):
        getattr(client, call)(["/"], watch=True)
    assert len(zookeeper.watches()) == (0 if before else 1)


@pytest.mark.parametrize("before", [True, False])
def test_one_call_is_lost(zookeeper: MemoryZooKeeper, client: MemoryClient, before: bool) -> None:
    """A loss strikes the next round trip of that client alone: not the one after, not another client's, not `events`."""
    other = zookeeper.connect()
    zookeeper.lose_next(client, before=before)
    assert client.events() == []
    assert other.exists(["/"], watch=False) != [None]
    with pytest.raises(ConnectionLoss):
        client.exists(["/"], watch=False)
    assert client.exists(["/"], watch=False) != [None]


def test_a_loss_is_copied(zookeeper: MemoryZooKeeper, client: MemoryClient) -> None:
    """A copy made before the lost call loses it too."""
    zookeeper.lose_next(client, before=True)
    twin = zookeeper.copy()
    for one in (zookeeper, twin):
        with pytest.raises(ConnectionLoss):
            one.client(client.session_id).exists(["/"], watch=False)
        assert one.client(client.session_id).exists(["/"], watch=False) != [None]


def test_an_ended_session_loses_no_call(zookeeper: MemoryZooKeeper, client: MemoryClient) -> None:
    """After a session's end SessionExpired comes before any loss, and no loss can be asked for."""
    zookeeper.lose_next(client, before=True)
    zookeeper.end(client)
    with pytest.raises(SessionExpired):
        client.exists(["/"], watch=False)
    with pytest.raises(SessionExpired):
        zookeeper.lose_next(client, before=True)
