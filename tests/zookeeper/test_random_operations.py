"""Random operations drive the ZooKeeper in memory and a real one, and everything that can be seen is compared.

Compared are the result of every call, the whole tree and the root with all lines of the stat but the two times, and the watch
events of each session after a barrier. Zxids are compared by rank among all that were seen, session ids by order of opening.

The programs are the same in every run; `--hypothesis-profile=default` makes new ones.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kcontrol.effects import Op, SessionExpired, Stat, Znode
from kcontrol.runtime.embedded import EmbeddedZooKeeper
from kcontrol.runtime.java import find_java
from kcontrol.runtime.zk_kazoo import KazooZooKeeper
from kcontrol.runtime.zk_memory import MemoryZooKeeper
from kcontrol.runtime.zookeeper import Closed, Written
from tests.zookeeper.support import Clock

pytestmark = pytest.mark.zookeeper

_CHROOTS = itertools.count(1)
SESSIONS = 3


class Write(NamedTuple):
    """Session number `by` writes."""

    by: int
    transactions: tuple[tuple[Op, ...], ...]


class Look(NamedTuple):
    """Session number `by` calls `exists`, `read` or `children`."""

    by: int
    call: str
    paths: tuple[str, ...]
    watch: bool


class End(NamedTuple):
    """Session number `by` ends, and a new one takes its place if `again`."""

    by: int
    again: bool


class Settle(NamedTuple):
    """Everybody waits, and every session takes its events."""


Command = Write | Look | End | Settle

PATHS = st.sampled_from(["/a", "/b", "/a/a", "/a/b", "/b/a", "/b/c", "/a/a/a", "/a/n-0000000001", "/", "/a/", "/b//a"])
PREFIXES = st.sampled_from(["/", "/n-", "/a/n-", "/a/", "/b/n-", "/a/a/m"])
VERSIONS = st.sampled_from([-1, -1, -1, 0, 1, 2])
DATA = st.sampled_from([b"", b"x", b"longer"])
BY = st.integers(0, SESSIONS - 1)

OPS = st.one_of(
    st.builds(Op, st.just("create"), PATHS, DATA, st.just(-1), st.booleans(), st.just(value=False)),
    st.builds(Op, st.just("create"), PREFIXES, DATA, st.just(-1), st.booleans(), st.just(value=True)),
    st.builds(Op, st.just("set"), PATHS, DATA, VERSIONS, st.just(value=False), st.just(value=False)),
    st.builds(Op, st.just("delete"), PATHS, st.just(b""), VERSIONS, st.just(value=False), st.just(value=False)),
    st.builds(Op, st.just("check"), PATHS, st.just(b""), VERSIONS, st.just(value=False), st.just(value=False)),
)
SINGLE = st.tuples(OPS)
MULTI = st.lists(OPS, max_size=4).map(tuple)
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(Write, BY, st.tuples(SINGLE)),
    st.builds(Write, BY, st.lists(st.one_of(SINGLE, MULTI), max_size=5).map(tuple)),
    st.builds(Look, BY, st.sampled_from(["exists", "read", "children"]), st.lists(PATHS, max_size=3).map(tuple), st.booleans()),
    st.builds(Look, BY, st.sampled_from(["exists", "read", "children"]), st.tuples(PATHS), st.just(True)),
    st.builds(End, BY, st.booleans()),
    st.just(Settle()),
)
PROGRAMS = st.lists(COMMANDS, min_size=1, max_size=40)


class Player:
    """Plays commands on one ZooKeeper and keeps what can be seen, in a form in which two ZooKeepers can be compared."""

    def __init__(self, zookeeper: Any) -> None:
        self._zookeeper = zookeeper
        self._clients = [zookeeper.connect() for _ in range(SESSIONS)]
        self._session_ids = [client.session_id for client in self._clients]
        self.seen: list[Any] = []

    def play(self, command: Command) -> None:
        """Do one thing and note what came back."""
        try:
            match command:
                case Write(by, transactions):
                    self.seen += self._clients[by].write(transactions)
                case Look(by, call, paths, watch):
                    self.seen.append((call, getattr(self._clients[by], call)(paths, watch)))
                case End(by, again):
                    self._end(by, again)
                case Settle():
                    self._settle()
        except SessionExpired:
            self.seen.append("SessionExpired")

    def finish(self) -> list[Any]:
        """Take the last events, look at the whole tree, and return all that was seen, zxids by rank."""
        self._settle()
        observer = self._zookeeper.connect()
        self.seen += [observer.read(["/"], False), observer.children(["/"], False), self._zookeeper.tree()]
        zxids: list[int] = []
        self._map(self.seen, zxids.append)
        ranks = {zxid: rank for rank, zxid in enumerate(sorted(set(zxids)))}
        return [self._map(item, ranks.__getitem__) for item in self.seen]

    def _end(self, by: int, again: bool) -> None:
        try:
            self.seen.append(self._zookeeper.end(self._clients[by]))
        finally:
            if again:
                self._clients[by] = self._zookeeper.connect()
                self._session_ids.append(self._clients[by].session_id)

    def _settle(self) -> None:
        self._zookeeper.settle()
        for client in self._clients:
            try:
                self.seen.append(client.events())
            except SessionExpired:
                self.seen.append("SessionExpired")

    def _map(self, item: Any, zxid: Any) -> Any:
        """The same with every zxid mapped, owners numbered in order of opening and times left out."""
        match item:
            case Stat():
                owner = self._session_ids.index(item.ephemeral_owner) + 1 if item.ephemeral_owner else 0
                stat = item._replace(ctime=0, mtime=0, ephemeral_owner=owner)
                return stat._replace(czxid=zxid(stat.czxid), mzxid=zxid(stat.mzxid), pzxid=zxid(stat.pzxid))
            case Znode():
                return Znode(item.data, self._map(item.stat, zxid))
            case Written() | Closed():
                return item._replace(zxid=zxid(item.zxid))
            case dict():
                return {path: self._map(node, zxid) for path, node in item.items()}
            case list():
                return [self._map(one, zxid) for one in item]
            case (str() as call, list() as answers):
                return (call, self._map(answers, zxid))
        return item


def compare(server: EmbeddedZooKeeper, program: list[Command]) -> None:
    """Play a program on both and hold what was seen of each side by side, command by command."""
    chroot = f"/random-{next(_CHROOTS)}"
    memory = Player(MemoryZooKeeper(Clock(), chroot, find_java().version))
    for command in program:
        memory.play(command)
    with KazooZooKeeper(server.hosts, chroot) as zookeeper:
        real = Player(zookeeper)
        for command in program:
            real.play(command)
        seen_on_real = real.finish()
    assert memory.finish() == seen_on_real


@given(program=PROGRAMS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_memory_and_real_agree_on_40_random_programs(server: EmbeddedZooKeeper, program: list[Command]) -> None:
    """Forty programs are answered alike by both ZooKeepers; a failure prints the shortest one that shows it."""
    compare(server, program)


@pytest.mark.slow
@given(program=PROGRAMS)
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_memory_and_real_agree_on_600_random_programs(server: EmbeddedZooKeeper, program: list[Command]) -> None:
    """Six hundred programs are answered alike by both ZooKeepers; a failure prints the shortest one that shows it."""
    compare(server, program)
