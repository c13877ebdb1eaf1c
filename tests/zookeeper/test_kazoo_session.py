"""What only the real ZooKeeper can show: lost connections, expiry, several threads, and what is left when all is over."""

from __future__ import annotations

import contextlib
import logging
import socket
import struct
import threading
import warnings
from collections.abc import Iterator
from typing import Literal

import pytest
from kazoo.protocol.serialization import Connect
from kazoo.protocol.states import Callback

from kcontrol.core.effects import Op, SessionExpired, WatchEvent
from kcontrol.core.errors import UserError
from kcontrol.zookeeper.kazoo import KazooSession, KazooZooKeeper
from kcontrol.zookeeper.kazoo.wire import close_session
from kcontrol.zookeeper.port import ConnectionLoss
from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper
from tests.zookeeper.support import Trickling, Wire, create, delete, events, node, patiently, put, refused_port, stat, transact

pytestmark = pytest.mark.zookeeper


@pytest.fixture
def wire(server: EmbeddedZooKeeper) -> Iterator[Wire]:
    wire = Wire(server.port)
    yield wire
    wire.close()


@pytest.fixture
def near(wire: Wire, chroot: str) -> Iterator[KazooZooKeeper]:
    """The real ZooKeeper through the wire."""
    with KazooZooKeeper(wire.hosts, chroot) as zookeeper:
        yield zookeeper


# ------------------------------------------------------------ lost connections


def test_a_request_lost_on_the_way_is_not_performed(near: KazooZooKeeper, real: KazooZooKeeper, wire: Wire) -> None:
    """A write whose request is lost raises ConnectionLoss and has not happened; the next call goes on in the same session."""
    client = near.connect()
    wire.cut_before_request()
    with pytest.raises(ConnectionLoss):
        create(client, "/a", ephemeral=True)
    assert real.tree() == {}
    create(client, "/b", ephemeral=True)
    assert stat(client, "/b").ephemeral_owner == client.session_id


def test_an_answer_lost_on_the_way_is_one_to_a_request_performed(near: KazooZooKeeper, real: KazooZooKeeper, wire: Wire) -> None:
    """A write whose answer is lost raises ConnectionLoss and has happened."""
    client = near.connect()
    wire.cut_before_answer()
    with pytest.raises(ConnectionLoss) as loss:
        create(client, "/a")
    assert loss.value.answered == ()
    assert list(real.tree()) == ["/a"]
    assert create(client, "/a").error == "NodeExists"


def test_what_was_answered_before_the_loss_is_known(near: KazooZooKeeper, wire: Wire) -> None:
    """Of ten pipelined writes of which three were answered, the loss carries these three outcomes."""
    client = near.connect()
    wire.cut_before_answer(after=3)
    with pytest.raises(ConnectionLoss) as loss:
        client.write([(Op("create", f"/n{number}"),) for number in range(10)])
    assert [written.paths for written in loss.value.answered] == [("/n0",), ("/n1",), ("/n2",)]
    zxids = [stat(client, f"/n{number}").czxid for number in range(3)]
    assert [written.zxid for written in loss.value.answered] == zxids


def test_watches_outlive_a_lost_connection(near: KazooZooKeeper, real: KazooZooKeeper, wire: Wire) -> None:
    """Watches of every kind that nothing has fired yet fire after the connection was lost and found again, once each."""
    client, writer = near.connect(), real.connect()
    for path in ("/data", "/parent"):
        create(writer, path)
    client.read(["/data"], watch=True)
    client.exists(["/missing"], watch=True)
    client.children(["/parent"], watch=True)
    wire.cut()
    assert patiently(lambda: client.exists(["/data"], watch=False)) != [None]
    for _ in range(2):
        put(writer, "/data")
        create(writer, "/parent/n-", sequential=True)
    create(writer, "/missing")
    put(writer, "/missing")
    assert events(near, client) == [
        ("NodeDataChanged", "/data"), ("NodeChildrenChanged", "/parent"), ("NodeCreated", "/missing"),
    ]  # fmt: skip


def test_changes_during_a_lost_connection_are_notified(near: KazooZooKeeper, real: KazooZooKeeper, wire: Wire) -> None:
    """Changes during a lost connection fire their watches after the reconnection; watches on unchanged znodes do not fire."""
    client, writer = near.connect(), real.connect()
    for path in ("/set", "/gone", "/parent", "/same"):
        create(writer, path)
    client.read(["/set", "/gone", "/same"], watch=True)
    client.exists(["/new", "/never"], watch=True)
    client.children(["/parent", "/same"], watch=True)
    wire.down()
    put(writer, "/set")
    delete(writer, "/gone")
    create(writer, "/new")
    create(writer, "/parent/child")
    wire.up()
    seen = events(near, client)
    assert sorted(seen) == [
        ("NodeChildrenChanged", "/parent"), ("NodeCreated", "/new"), ("NodeDataChanged", "/set"), ("NodeDeleted", "/gone"),
    ]  # fmt: skip
    put(writer, "/same")
    create(writer, "/never")
    create(writer, "/same/child")
    assert events(near, client) == [("NodeDataChanged", "/same"), ("NodeCreated", "/never"), ("NodeChildrenChanged", "/same")]


def test_an_end_that_got_no_answer_is_asked_for_again(wire: Wire, chroot: str) -> None:
    """`end` raises ConnectionLoss while no server can be reached, and ends the session when it is called again."""
    with KazooZooKeeper(wire.hosts, chroot, patience_s=0.2) as zookeeper:
        client = zookeeper.connect()
        create(client, "/a", ephemeral=True)
        wire.down()
        with pytest.raises(ConnectionLoss):
            zookeeper.end(client)
        wire.up()
        assert patiently(lambda: zookeeper.end(client)).deleted == ("/a",)


def test_a_server_that_stays_away_is_a_lost_connection(wire: Wire, chroot: str) -> None:
    """While no server can be reached every round trip raises ConnectionLoss after the given patience, and none hangs."""
    with KazooZooKeeper(wire.hosts, chroot, patience_s=0.2) as zookeeper:
        client = zookeeper.connect()
        wire.down()
        for call in (lambda: create(client, "/a"), lambda: client.read(["/"], watch=True), zookeeper.settle, zookeeper.tree):
            with pytest.raises(ConnectionLoss):
                call()
        wire.up()


def test_ephemerals_of_lost_answers_are_found_at_the_end(near: KazooZooKeeper, wire: Wire) -> None:
    """A sequential ephemeral znode whose name was lost with the answer is among those that go with the session."""
    client = near.connect()
    create(client, "/q")
    wire.cut_before_answer()
    with pytest.raises(ConnectionLoss):
        create(client, "/q/n-", ephemeral=True, sequential=True)
    create(client, "/known", ephemeral=True)
    assert near.end(client).deleted == ("/known", "/q/n-0000000000")


# ------------------------------------------------------------ slow servers


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


GRANTED = framed(struct.pack("!iiqi16sb", 0, 18_000, 0x1234, 16, b"", 0))
CLOSED = framed(struct.pack("!iqi", 1, 5, 0))


def test_patience_is_for_the_whole_handshake() -> None:
    """A server whose correct handshake comes byte by byte, for longer than the patience, does not count as a ZooKeeper."""
    with contextlib.closing(Trickling((b"", GRANTED + CLOSED))) as server:
        with pytest.raises(UserError, match=r"does not respond like a ZooKeeper \(timed out\): check host and port"):
            KazooZooKeeper(server.hosts, patience_s=0.5)
        assert server.broken_off.wait(30)


def test_patience_is_for_the_whole_opening_of_a_session() -> None:
    """A server that answers a session's handshake byte by byte and comes to no end is left before it has sent all its bytes."""
    with contextlib.closing(Trickling((GRANTED + CLOSED, b""), (b"", framed(bytes(600))))) as server:
        with pytest.raises(UserError, match=r"has granted no session in 0\.5 s"):
            KazooZooKeeper(server.hosts, patience_s=0.5)
        assert server.broken_off.wait(60)


def test_patience_is_for_the_whole_end_of_a_session() -> None:
    """A server that answers a request byte by byte and comes to no end does not keep its client from closing."""
    with contextlib.closing(Trickling((GRANTED + CLOSED, b""), (GRANTED, framed(bytes(600))))) as server:
        zookeeper = KazooZooKeeper(server.hosts, patience_s=2)
        zookeeper.close()
        assert server.broken_off.wait(60)


# ------------------------------------------------------------ expiry


def test_an_expired_session_does_not_come_back_as_another(near: KazooZooKeeper, real: KazooZooKeeper, wire: Wire) -> None:
    """A client that the server has given up raises SessionExpired for good, and no new session is opened in its place."""
    client, watcher = near.connect(session_timeout_ms=1_000), real.connect()
    create(client, "/a", ephemeral=True)
    expired = threading.Event()
    watcher.exists(["/a"], watch=True)
    watcher._kazoo.exists(f"{real.chroot}/a", watch=lambda _event: expired.set())
    wire.down()
    assert expired.wait(30)
    wire.up()
    with pytest.raises(SessionExpired):
        client.read(["/"], watch=False)
    with pytest.raises(SessionExpired):
        client.events()
    with pytest.raises(SessionExpired):
        near.end(client)
    with pytest.raises(SessionExpired):
        create(client, "/c")
    near.settle()
    assert client._kazoo._connection.connection_stopped.wait(30)
    expiry = stat(watcher, "/").pzxid
    assert create(watcher, "/d").zxid == expiry + 1
    successor = near.connect()
    assert create(successor, "/a", ephemeral=True).error is None


def test_the_end_is_final_while_the_client_is_busy(real: KazooZooKeeper) -> None:
    """A session that is ended while its client keeps reading from another thread stays ended; the client gets SessionExpired."""
    for _ in range(10):
        client = real.connect()
        create(client, "/a", ephemeral=True)
        outcome: list[type[BaseException]] = []
        thread = threading.Thread(target=_read_until_it_fails, args=(client, outcome))
        thread.start()
        assert real.end(client).deleted == ("/a",)
        thread.join(30)
        assert outcome == [SessionExpired]
        assert real.tree() == {}


def test_a_session_that_is_taken_over_is_not_taken_back(real: KazooZooKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the end of a session takes, its own client's connection ends and does not come back in between."""
    client = real.connect()
    create(client, "/a", ephemeral=True)

    def take_over_slowly(hosts: list[tuple[str, int]], _patience_s: float, session_id: int, password: bytes) -> int | None:
        connect = Connect(0, 0, 18_000, session_id, password, False).serialize()
        with socket.create_connection(hosts[0]) as link:
            link.sendall(len(connect).to_bytes(4, "big") + connect)
            assert link.recv(1)
            assert client._kazoo._connection.connection_stopped.wait(30)
        return close_session(hosts, 10, session_id, password)

    monkeypatch.setattr("kcontrol.zookeeper.kazoo.session.close_session", take_over_slowly)
    assert real.end(client).deleted == ("/a",)
    assert real.tree() == {}


def _read_until_it_fails(client: KazooSession, outcome: list[type[BaseException]]) -> None:
    try:
        while True:
            client.read(["/a"], watch=True)
    except (SessionExpired, ConnectionLoss) as problem:
        outcome.append(type(problem))


# ------------------------------------------------------------ several at once


@pytest.mark.slow
def test_zxids_are_exact_while_many_write(real: KazooZooKeeper) -> None:
    """While four sessions pipeline 400 transactions each, zxids grow, come once, and are the czxid and mzxid read back."""
    clients = [real.connect() for _ in range(4)]
    results: dict[int, list[tuple[str, int]]] = {}

    def write(number: int) -> None:
        paths = [f"/s{number}-{index - index % 4 % 3 // 2}" for index in range(400)]  # every fourth path is taken already
        written = clients[number].write([(Op("check", "/"), Op("create", path), Op("set", path, b"x")) for path in paths])
        assert [one.zxid for one in written] == sorted({one.zxid for one in written})
        assert [one.failed_index for one in written if one.error] == [1] * 100
        results[number] = [(path, one.zxid) for path, one in zip(paths, written, strict=True) if not one.error]

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(results) == [0, 1, 2, 3]
    successes = [success for result in results.values() for success in result]
    assert len({zxid for _, zxid in successes}) == len(successes) == 1_200
    stats = clients[0].exists([path for path, _ in successes], watch=False)
    assert [(found.czxid, found.mzxid) for found in stats if found] == [(zxid, zxid) for _, zxid in successes]


def test_a_settled_session_has_seen_the_writes_of_all(real: KazooZooKeeper) -> None:
    """After `settle` every one of 300 watches that three sessions have fired is there, a hundred times over."""
    watcher, *writers = [real.connect() for _ in range(4)]
    client = writers[0]
    for number in range(100):
        paths = [f"/w{index}" for index in range(3)]
        watcher.exists(paths, watch=True)
        for writer, path in zip(writers, paths, strict=True):
            transact(writer, Op("create", path) if number % 2 == 0 else Op("delete", path))
        kind = "NodeCreated" if number % 2 == 0 else "NodeDeleted"
        assert events(real, watcher) == [(kind, path) for path in paths]
    assert client.events() == []


def test_settling_waits_for_kazoos_callbacks(real: KazooZooKeeper) -> None:
    """`settle` returns only after kazoo's own thread, however slow, has delivered the events."""
    watcher, writer = real.connect(), real.connect()
    watcher.exists(["/a"], watch=True)
    gate = threading.Event()
    watcher._handler.dispatch_callback(Callback("slow", gate.wait, ()))
    create(writer, "/a")
    settling = threading.Thread(target=real.settle)
    settling.start()
    try:
        settling.join(0.3)
        assert settling.is_alive()
        assert watcher.events() == []
    finally:
        gate.set()
    settling.join(30)
    assert watcher.events() == [WatchEvent("NodeCreated", "/a")]


# ------------------------------------------------------------ chroot


def test_a_chroot_is_made_with_its_parents(server: EmbeddedZooKeeper, chroot: str) -> None:
    """A chroot that is not there is created with its parents, empty and persistent, and a second opening leaves it alone."""
    with KazooZooKeeper(server.hosts, f"{chroot}/x/y") as inner:
        create(inner.connect(), "/a")
    with KazooZooKeeper(server.hosts, f"{chroot}/x/y") as inner, KazooZooKeeper(server.hosts, chroot) as outer:
        assert list(inner.tree()) == ["/a"]
        assert list(outer.tree()) == ["/x", "/x/y", "/x/y/a"]
        assert outer.tree()["/x"].data == b""
        assert outer.tree()["/x"].stat.ephemeral_owner == 0


def test_nothing_reaches_beyond_the_chroot(server: EmbeddedZooKeeper, chroot: str) -> None:
    """Neither a sequential name at the root nor a deletion of the root touches the chroot's own name or its parent."""
    with KazooZooKeeper(server.hosts, chroot) as outer, KazooZooKeeper(server.hosts, f"{chroot}/in") as inner:
        client = inner.connect()
        assert create(client, "/", sequential=True).paths == ("/0000000000",)
        assert delete(client, "/0000000000").error is None
        assert delete(client, "/").error == "BadArguments"
        assert list(outer.tree()) == ["/in"]


@pytest.mark.parametrize("path", ["//", "//a", "///", "//a/b", "/\x00", "/a/", "/..", "/"])
@pytest.mark.parametrize("kind", ["create", "set", "delete", "check"])
def test_a_chroot_changes_no_error(
    server: EmbeddedZooKeeper, chroot: str, path: str, kind: Literal["create", "set", "delete", "check"]
) -> None:
    """An operation on an odd path has one and the same error below a chroot and without one."""
    op = Op(kind, path, expected_version=7)
    with KazooZooKeeper(server.hosts) as whole, KazooZooKeeper(server.hosts, chroot) as inner:
        errors = [transact(zookeeper.connect(), op).error for zookeeper in (whole, inner)]
    assert errors[0] == errors[1] is not None


def test_the_tree_leaves_zookeepers_own_part_out(server: EmbeddedZooKeeper) -> None:
    """Without a chroot `tree` has nothing of `/zookeeper`, which is there all the same."""
    with KazooZooKeeper(server.hosts) as zookeeper:
        assert not [path for path in zookeeper.tree() if path.startswith("/zookeeper")]
        assert zookeeper.connect().exists(["/zookeeper"], watch=False) != [None]


def test_two_clients_of_one_chroot_see_the_same(server: EmbeddedZooKeeper, real: KazooZooKeeper, chroot: str) -> None:
    """Paths in results, trees and events are relative to the chroot."""
    with KazooZooKeeper(server.hosts, chroot + "/") as again:
        watcher = again.connect()
        watcher.children(["/"], watch=True)
        create(real.connect(), "/a", b"x")
        assert events(again, watcher) == [("NodeChildrenChanged", "/")]
        assert node(watcher, "/a") == real.tree()["/a"] == again.tree()["/a"]


# ------------------------------------------------------------ errors


def test_an_unreachable_server_is_one_sentence() -> None:
    """If no process listens, opening fails at once with one sentence that names the address and the remedy."""
    with refused_port() as port:
        words = rf"^No ZooKeeper can be reached at 127.0.0.1:{port} \(Connection refused\): start one with [^.]*\.$"
        with pytest.raises(UserError, match=words):
            KazooZooKeeper(f"127.0.0.1:{port}")


def test_an_unknown_host_is_one_sentence() -> None:
    """A host that no name service knows fails with one sentence."""
    with pytest.raises(UserError, match=r"^No ZooKeeper can be reached at no-such-host\.invalid:1 "):
        KazooZooKeeper("no-such-host.invalid:1")


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00\x00\x00\x02ab", b"", None])
def test_another_kind_of_server_is_one_sentence(answer: bytes | None) -> None:
    """A server that uses another protocol, hangs up or sends nothing is refused in one sentence."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        links: list[socket.socket] = []

        def serve() -> None:
            with contextlib.suppress(OSError):
                link, _ = listener.accept()
                links.append(link)
                if answer is not None:
                    link.recv(1024)
                    link.sendall(answer)
                    link.close()

        thread = threading.Thread(target=serve)
        thread.start()
        hosts = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(UserError, match=rf"^The server at {hosts} does not respond like a ZooKeeper \([^)]*\): [^.]*\.$"):
            KazooZooKeeper(hosts, patience_s=0.3)
        thread.join(10)
        for link in links:
            link.close()


def test_the_first_server_that_answers_is_taken(server: EmbeddedZooKeeper, chroot: str) -> None:
    """Of several addresses one that answers is enough, for opening and for ending sessions."""
    with refused_port() as port, KazooZooKeeper(f"127.0.0.1:{port},{server.hosts}", chroot) as zookeeper:
        client = zookeeper.connect()
        create(client, "/a", ephemeral=True)
        assert zookeeper.end(client).deleted == ("/a",)


# ------------------------------------------------------------ what is left


def threads(wire: Wire) -> set[threading.Thread]:
    return set(threading.enumerate()) - wire.threads


def test_no_thread_is_left(wire: Wire, chroot: str) -> None:
    """After `close` no thread is left: of sessions open, ended, cut off, or of a ZooKeeper that was not there."""
    before = threads(wire)
    zookeeper = KazooZooKeeper(wire.hosts, chroot)
    clients = [zookeeper.connect() for _ in range(3)]
    assert len(threads(wire)) > len(before) + 3
    zookeeper.end(clients[0])
    wire.cut()
    zookeeper.close()
    zookeeper.close()
    with refused_port() as port, pytest.raises(UserError):
        KazooZooKeeper(f"127.0.0.1:{port}")
    assert threads(wire) == before


def test_closing_without_a_server_ends_too(wire: Wire, chroot: str) -> None:
    """`close` returns with no thread left when the server is gone and kazoo waits to try again."""
    before = threads(wire)
    zookeeper = KazooZooKeeper(wire.hosts, chroot, patience_s=0.2)
    client = zookeeper.connect()
    wire.down()
    with pytest.raises(ConnectionLoss):
        create(client, "/a")
    zookeeper.close()
    assert threads(wire) == before


def test_the_threads_of_an_expired_session_go_with_the_next_one(near: KazooZooKeeper, wire: Wire) -> None:
    """A new session after an expiry leaves no more threads than before."""
    client = near.connect()
    before = len(threads(wire))
    close_session(client._kazoo.hosts, 5, client.session_id, client._password)
    outcome: list[type[BaseException]] = []
    while outcome != [SessionExpired]:
        outcome.clear()
        _read_until_it_fails(client, outcome)
    near.connect()
    assert len(threads(wire)) == before


def test_a_closed_zookeeper_says_so(server: EmbeddedZooKeeper, chroot: str) -> None:
    """After `close` its clients' calls and its own raise SessionExpired, and the ephemeral znodes are gone."""
    zookeeper = KazooZooKeeper(server.hosts, chroot)
    client = zookeeper.connect()
    create(client, "/a", ephemeral=True)
    zookeeper.close()
    with pytest.raises(SessionExpired):
        client.read(["/"], watch=False)
    with pytest.raises(SessionExpired):
        zookeeper.tree()
    with KazooZooKeeper(server.hosts, chroot) as again:
        assert again.tree() == {}


def test_nothing_is_said_on_the_side(
    wire: Wire, chroot: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Lost connections, an ended session and a server that is not there leave no log record, no warning and no output."""
    caplog.set_level(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with KazooZooKeeper(wire.hosts, chroot) as zookeeper:
            client = zookeeper.connect()
            wire.cut()
            patiently(lambda: create(client, "/a", ephemeral=True))
            zookeeper.end(client)
            wire.down()
            wire.up()
            assert zookeeper.tree() == {}
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def test_a_watch_event_of_another_kind_is_not_ours(real: KazooZooKeeper) -> None:
    """Events of kazoo about the state of its connection are not taken as watch events."""
    client = real.connect()
    client.exists(["/a"], watch=True)
    create(client, "/a")
    real.settle()
    client._on_event(type("Event", (), {"type": "NONE", "path": None})())
    assert client.events() == [WatchEvent("NodeCreated", "/a")]
