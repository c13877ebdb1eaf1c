"""Random programs: what three sessions do on a ZooKeeper, one command after the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from kcontrol.core.effects import Op

T = TypeVar("T")

SESSIONS = 3
BATCH = 50  # programs that hypothesis draws at a time


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
    """Wait for all sessions, and take the events of every session."""


Command = Write | Look | End | Late | Settle

PATHS = st.sampled_from(["/a", "/a/a", "/a/a", "/a/a", "/a/b", "/b", "/", "/a/a/a", "/a/n-0000000001"])
# What no server creates, and a name that is the server's own where there is no chroot.
ODD_PATHS = st.sampled_from(
    [
        "/a/", "/b//a", "/a/..", "//", "//a", "///", "/\x00", "/a/\x00", "/c/\x00", "/\x01", "/zookeeper", "/zookeeper",
        "/zookeeper/a",
    ]
)  # fmt: skip
ODD_KINDS = st.sampled_from(["create", "create", "delete", "delete", "set", "check"])
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
    (4, st.builds(Op, ODD_KINDS, ODD_PATHS, DATA, VERSIONS, NO, st.booleans())),
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
    (6, COMMANDS.map(lambda command: [command])), (3, PATHS.flatmap(watched)), (1, BY.flatmap(orphaned))
)
# Four short lists rather than a long one: hypothesis draws longer programs so, and still shortens each part down to nothing.
PROGRAMS = st.tuples(*[st.lists(SCENES, max_size=8)] * 4).map(
    lambda parts: [command for part in parts for scene in part for command in scene]
)

# Before every program, so that most of what it does finds something there.
PRELUDE: list[Command] = [Write(0, tuple((Op("create", path, b"0"),) for path in ("/a", "/b", "/a/a")))]


def programs(number: int) -> Iterator[list[Command]]:
    """Yield random programs, equal for equal numbers; those that begin with four known commands are left out as variations."""
    starts: set[str] = set()
    for batch in itertools.count():
        for program in _batch(f"{number}/{batch}"):
            if (start := repr(program[:4])) not in starts:
                starts.add(start)
                yield program


def _batch(key: str) -> list[list[Command]]:
    drawn: list[list[Command]] = []

    @seed(key)
    @settings(
        max_examples=BATCH,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(program=PROGRAMS)
    def draw(program: list[Command]) -> None:
        drawn.append(program)

    draw()
    return drawn
