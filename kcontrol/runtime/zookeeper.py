"""The port through which everything here talks to ZooKeeper, and the values that cross it.

Two implementations stand behind it: `zk_memory` (in this process, virtual time) and `zk_kazoo` (a real server). One contract
suite, `tests/zookeeper/`, runs on both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from kcontrol.effects import Op, SessionExpired, Stat, WatchEvent, Znode

T = TypeVar("T")

MARKER = "/.kcontrol"  # the znode by which a root on somebody's ZooKeeper is known to be ours (see `zk_safety`)
IN_USE = f"{MARKER}/in-use"  # the ephemeral znode of the lab that works below a root of ours
OF_THE_SERVER = "/zookeeper"  # ZooKeeper's own part of a tree without a chroot; below a chroot it is a name like any other


class Written(NamedTuple):
    """The outcome of one transaction: all of it happened at `zxid`, or nothing did and `error` says why.

    `error` is ZooKeeper's name of the first failing operation's code (`NodeExists`, `NoNode`, `BadVersion`, `NotEmpty`,
    `NoChildrenForEphemerals`, `NoAuth`, `InvalidAcl`, `BadArguments`), and `failed` that operation's index, -1 if none failed.
    `versions` has one entry per operation: 0 after a create, the new data version after a set, None otherwise.
    `paths` has the path of each operation as it is stored, so with the number that ZooKeeper appended to a sequential name.
    A failed transaction has `versions == ()` and `paths == ()`.
    """

    zxid: int
    error: str | None
    failed: int
    versions: tuple[int | None, ...]
    paths: tuple[str, ...]


class Closed(NamedTuple):
    """The end of a session: the ephemeral znodes that went with it, sorted by path."""

    zxid: int
    deleted: tuple[str, ...]


class ConnectionLoss(Exception):
    """The server did not answer: nobody knows whether the request was performed.

    `answered` has the outcomes of the leading transactions of a pipelined `write` that were answered all the same, so that only
    the others need to be tried again; () for every other call.
    """

    def __init__(self, message: str = "The connection to ZooKeeper was lost.", answered: Sequence[Written] = ()) -> None:
        super().__init__(message)
        self.answered = tuple(answered)


class Client(Protocol):
    """One session. Every method is one round trip, however many paths or transactions it carries.

    Raises `kcontrol.effects.SessionExpired` once the session has ended, `ConnectionLoss` where the answer was lost, and
    ValueError or TypeError, with nothing sent, for what no server understands: a path without a leading slash or with a
    lone surrogate, data that is not bytes.
    """

    @property
    def session_id(self) -> int:
        """The session's number, which is also the `ephemeral_owner` of its ephemeral znodes."""

    def exists(self, paths: Sequence[str], watch: bool) -> list[Stat | None]:
        """One Stat per path, None where there is no znode. A watch is left in either case."""

    def read(self, paths: Sequence[str], watch: bool) -> list[Znode | None]:
        """One znode per path. A missing one leaves no watch."""

    def children(self, paths: Sequence[str], watch: bool) -> list[tuple[str, ...] | None]:
        """The sorted child names of each path, None where the parent is missing, which leaves no watch."""

    def write(self, transactions: Sequence[tuple[Op, ...]]) -> list[Written]:
        """Independent transactions, pipelined in order, each all or nothing: one result each."""

    def events(self) -> list[WatchEvent]:
        """Take the watch events that have reached this session since the last call, in ZooKeeper's order."""

    def has_expired(self) -> bool:
        """Return whether the session has ended, once a lost connection is back. Raises `ConnectionLoss` if it stays away."""


class ZooKeeper(Protocol):
    """An ensemble that sessions are opened on."""

    def connect(self, session_timeout_ms: int = 18_000) -> Client:
        """Open a session."""

    def end(self, client: Client) -> Closed:
        """End a session as its expiry would, whoever holds it and whether or not that process still lives."""

    def settle(self) -> None:
        """Wait until every open session has seen every write so far and its watch events can be taken."""

    def tree(self) -> dict[str, Znode]:
        """Return every znode below the root by path in sorted order, but neither our marker nor the server's own `/zookeeper`."""


def ask_twice(ask: Callable[[], T]) -> T:
    """Return the answer to a question that changes nothing; ask again, in a new session if need be, where there was none."""
    try:
        return ask()
    except (ConnectionLoss, SessionExpired):
        return ask()


def require_path(path: str) -> None:
    """Raise ValueError for what can be no znode's path, so that it never reaches a server, with a chroot in front or not."""
    if path[:1] != "/":
        raise ValueError(f"{path!r} is no path of a znode: it must begin with a slash.")
    if any("\ud800" <= character <= "\udfff" for character in path):  # UTF-8, in which a path is sent, has no such character
        raise ValueError(f"{path!r} is no path of a znode: leave out the lone surrogate.")


def require_op(op: Op) -> None:
    """Raise ValueError or TypeError for an operation that cannot be sent."""
    if op.path[:1] != "/" or not op.path.isascii():
        require_path(op.path)
    if not isinstance(op.data, bytes):
        raise TypeError(f"The data of {op.path} must be bytes, not {type(op.data).__name__}.")
