"""Random operations drive the ZooKeeper in memory and a real one, and everything that can be seen is compared.

Compared are the result of every call, the whole tree and the root with all lines of the stat but the two times, and the watch
events of each session after a barrier. Zxids are compared by rank among all that were seen, session ids by order of opening.

The programs are the same in every run; `--hypothesis-profile=default` makes new ones.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple, TypeVar

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

T = TypeVar("T")

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
    """Session number `by` ends, and a new one takes its place."""

    by: int


class Late(NamedTuple):
    """The client whose session was the last to end makes a call."""

    call: str


class Settle(NamedTuple):
    """Everybody waits, and every session takes its events."""


Command = Write | Look | End | Late | Settle

PATHS = st.sampled_from(["/a", "/a/a", "/a/a", "/a/a", "/a/b", "/b", "/", "/a/a/a", "/a/n-0000000001"])
ODD_PATHS = st.sampled_from(["/a/", "/b//a", "/a/.."])
PREFIXES = st.sampled_from(["/a/n-", "/a/n-", "/a/n-", "/b/", "/a/a/m", "/"])
VERSIONS = st.sampled_from([-1, -1, -1, 0, 1, 2])
DATA = st.sampled_from([b"", b"x", b"longer"])
BY = st.integers(0, SESSIONS - 1)
CALLS = st.sampled_from(["exists", "read", "children"])
NO, YES, ANY = st.just(value=False), st.just(value=True), st.just(-1)


def weighted(*choices: tuple[int, st.SearchStrategy[T]]) -> st.SearchStrategy[T]:
    """One of several strategies, each as often as its weight says; the first is the simplest. `one_of` would drop the weights."""
    return st.sampled_from([index for index, (weight, _) in enumerate(choices) for _ in range(weight)]).flatmap(
        lambda index: choices[index][1]
    )


OPS = weighted(
    (2, st.builds(Op, st.just("create"), PATHS, DATA, ANY, NO, NO)),
    (2, st.builds(Op, st.just("create"), PATHS, DATA, ANY, YES, NO)),
    (2, st.builds(Op, st.just("create"), PREFIXES, DATA, ANY, st.booleans(), YES)),
    (4, st.builds(Op, st.just("set"), PATHS, DATA, VERSIONS, NO, NO)),
    (4, st.builds(Op, st.just("delete"), PATHS, st.just(b""), VERSIONS, NO, NO)),
    (1, st.builds(Op, st.just("check"), PATHS, st.just(b""), VERSIONS, NO, NO)),
    (1, st.builds(Op, st.sampled_from(["create", "set", "delete", "check"]), ODD_PATHS, DATA, VERSIONS, NO, NO)),
)
SINGLE = st.tuples(OPS)
MULTI = st.lists(OPS, max_size=3).map(tuple)
COMMANDS: st.SearchStrategy[Command] = weighted(
    (8, st.builds(Write, BY, st.tuples(SINGLE))),
    (4, st.builds(Write, BY, st.tuples(MULTI))),
    (2, st.builds(Write, BY, st.lists(st.one_of(SINGLE, MULTI), max_size=4).map(tuple))),
    (10, st.builds(Look, BY, CALLS, st.tuples(PATHS), YES)),
    (2, st.builds(Look, BY, CALLS, st.lists(st.one_of(PATHS, ODD_PATHS), max_size=3).map(tuple), st.booleans())),
    (2, st.builds(End, BY)),
    (1, st.just(Settle())),
    (1, st.builds(Late, st.sampled_from(["exists", "read", "children", "write", "events"]))),
)


def watched(path: str) -> st.SearchStrategy[list[Command]]:
    """One session watches a path in one way or two, another writes to it, its parent or a child, and all look what came of it."""
    near = st.sampled_from([path, path, path, f"{path.rstrip('/')}/a", path[: path.rfind("/")] or "/"])
    ops = st.one_of(
        st.builds(Op, st.just("set"), near, DATA, ANY, NO, NO),
        st.builds(Op, st.just("delete"), near, st.just(b""), ANY, NO, NO),
        st.builds(Op, st.just("create"), near, DATA, ANY, st.booleans(), NO),
    )
    looks = st.builds(
        lambda by, calls: [Look(by, call, (path,), watch=True) for call in calls], BY, st.lists(CALLS, min_size=1, max_size=3)
    )
    writes = st.lists(st.builds(Write, BY, st.tuples(st.lists(ops, min_size=1, max_size=2).map(tuple))), min_size=1, max_size=3)
    return st.builds(lambda looks, writes: [*looks, *writes, Settle()], looks, writes)


def orphaned(by: int) -> st.SearchStrategy[list[Command]]:
    """A session creates ephemeral znodes, another one deletes some and watches the rest, and the session ends."""

    def scene(names: list[str], gone: int) -> list[Command]:
        paths = tuple(f"/{name}" for name in names)
        creations = tuple((Op("create", path, ephemeral=True),) for path in paths)
        deletions = tuple((Op("delete", path),) for path in paths[:gone])
        other = (by + 1) % SESSIONS
        return [Write(by, creations), Write(other, deletions), Look(other, "exists", paths, watch=True), End(by), Settle()]

    names = st.lists(st.sampled_from([f"{letter}{number}" for letter in "de" for number in range(8)]), max_size=12, unique=True)
    return st.builds(scene, names, st.integers(0, 2))


SCENES: st.SearchStrategy[list[Command]] = weighted(
    (6, COMMANDS.map(lambda command: [command])),
    (3, PATHS.flatmap(watched)),
    (1, BY.flatmap(orphaned)),
)
# Four short lists rather than a long one: hypothesis draws longer programs so, and still shortens each part down to nothing.
PROGRAMS = st.tuples(*[st.lists(SCENES, max_size=8)] * 4).map(
    lambda parts: [command for part in parts for scene in part for command in scene]
)

# Before every program, so that most of what it does finds something there.
PRELUDE: list[Command] = [Write(0, tuple((Op("create", path, b"0"),) for path in ("/a", "/b", "/a/a")))]


class Player:
    """Plays commands on one ZooKeeper and keeps what can be seen, in a form in which two ZooKeepers can be compared."""

    def __init__(self, zookeeper: Any) -> None:
        self._zookeeper = zookeeper
        self._clients = [zookeeper.connect() for _ in range(SESSIONS)]
        self._ended: Any = None
        self._session_ids = [client.session_id for client in self._clients]
        self.seen: list[Any] = []

    def play(self, command: Command) -> None:
        """Do one thing and note what came back."""
        match command:
            case Write(by, transactions):
                self.seen += self._clients[by].write(transactions)
            case Look(by, call, paths, watch):
                self.seen.append((call, getattr(self._clients[by], call)(paths, watch)))
            case End(by):
                self._ended, self._clients[by] = self._clients[by], self._zookeeper.connect()
                self._session_ids.append(self._clients[by].session_id)
                self.seen.append(self._zookeeper.end(self._ended))
            case Late(call) if self._ended:
                arguments: dict[str, tuple[Any, ...]] = {"write": ([],), "events": ()}
                with pytest.raises(SessionExpired):
                    getattr(self._ended, call)(*arguments.get(call, ([], True)))
            case Settle():
                self._settle()

    def finish(self) -> list[Any]:
        """Take the last events, look at the whole tree, and return all that was seen, zxids by rank."""
        self._settle()
        observer = self._zookeeper.connect()
        self.seen += [observer.read(["/"], False), observer.children(["/"], False), self._zookeeper.tree()]
        zxids: list[int] = []
        self._map(self.seen, zxids.append)
        ranks = {zxid: rank for rank, zxid in enumerate(sorted(set(zxids)))}
        return [self._map(item, ranks.__getitem__) for item in self.seen]

    def _settle(self) -> None:
        self._zookeeper.settle()
        self.seen += [client.events() for client in self._clients]

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
    for command in PRELUDE + program:
        memory.play(command)
    with KazooZooKeeper(server.hosts, chroot) as zookeeper:
        real = Player(zookeeper)
        for command in PRELUDE + program:
            real.play(command)
        seen_on_real = real.finish()
    assert memory.finish() == seen_on_real


@given(program=PROGRAMS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_memory_and_real_agree_on_60_random_programs(server: EmbeddedZooKeeper, program: list[Command]) -> None:
    """Sixty programs are answered alike by both ZooKeepers; a failure prints the shortest one that shows it."""
    compare(server, program)


@pytest.mark.slow
@given(program=PROGRAMS)
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_memory_and_real_agree_on_600_random_programs(server: EmbeddedZooKeeper, program: list[Command]) -> None:
    """Six hundred programs are answered alike by both ZooKeepers; a failure prints the shortest one that shows it."""
    compare(server, program)
