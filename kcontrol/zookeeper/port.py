"""The interface through which kcontrol uses ZooKeeper, and the values of its calls.

It has two implementations: `memory.py` (in this process, virtual time) and `kazoo/` (a real server). One contract suite,
`tests/zookeeper/`, runs on both.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from kcontrol.core.effects import Op, SessionExpired, Stat, WatchEvent, Znode

T = TypeVar("T")

MARKER = "/.kcontrol"  # the znode that marks a root on a foreign ZooKeeper as ours (see kazoo/root_protection.py)
IN_USE = f"{MARKER}/in-use"  # the ephemeral znode of the lab that uses a root of ours
OF_THE_SERVER = "/zookeeper"  # ZooKeeper's own part of a tree without a chroot; below a chroot an ordinary name


class WriteResult(NamedTuple):
    """The result of one transaction: all operations were performed at `zxid`, or none because of `error`.

    `versions`, `paths` and `stats` have one entry per operation, and are () after a failed transaction.
    """

    zxid: int
    # ZooKeeper's name of the error, such as `NodeExists` or `BadVersion`.
    error: str | None
    # The index of the operation with the error; -1 after a success.
    failed_index: int
    # 0 after a create, the new data version after a set, else None.
    versions: tuple[int | None, ...]
    # The path of each operation; that of a sequential create has the number that ZooKeeper has appended.
    paths: tuple[str, ...]
    # The Stat of the znode right after each set, else None.
    stats: tuple[Stat | None, ...] = ()


class ClosedSession(NamedTuple):
    """The end of a session: its zxid and the ephemeral znodes that were deleted with it, sorted by path."""

    zxid: int
    deleted: tuple[str, ...]


class ConnectionLoss(Exception):
    """The connection was lost before the response: ZooKeeper may have performed the request or not.

    `answered` has the results of the first transactions of a pipelined `write`, whose responses did arrive.
    """

    def __init__(self, message: str = "The connection to ZooKeeper was lost.", answered: Sequence[WriteResult] = ()) -> None:
        super().__init__(message)
        self.answered = tuple(answered)


class Client(Protocol):
    """A client's session with ZooKeeper. Every method is one round trip, however many paths or transactions it carries.

    Raises:
        SessionExpired: the session has ended.
        ConnectionLoss: the connection was lost before the response.
        ValueError, TypeError: the request has a value that no server accepts, such as a path without a leading slash.
    """

    @property
    def session_id(self) -> int:
        """The session's number, which is also the `ephemeral_owner` of its ephemeral znodes."""

    def exists(self, paths: Sequence[str], watch: bool) -> list[Stat | None]:
        """None for a missing znode; `watch` sets a data watch on it too."""

    def read(self, paths: Sequence[str], watch: bool) -> list[Znode | None]:
        """Return one znode per path, None for a missing znode; with `watch` set a data watch on each existing znode."""

    def children(self, paths: Sequence[str], watch: bool) -> list[tuple[str, ...] | None]:
        """Return the sorted child names of each path, None for a missing znode; `watch` sets a child watch on existing znodes."""

    def write(self, transactions: Sequence[tuple[Op, ...]]) -> list[WriteResult]:
        """Perform each transaction completely or not at all, pipelined in order; return one result per transaction."""

    def events(self) -> list[WatchEvent]:
        """Take the watch events that have reached this session since the last call, in ZooKeeper's order."""

    def has_expired(self) -> bool:
        """Waits until a lost connection is restored. Raises ConnectionLoss if it stays lost."""


class ZooKeeper(Protocol):
    """A ZooKeeper, in memory or a real server: opens and ends sessions, waits for watch events, returns all znodes."""

    def connect(self, session_timeout_ms: int = 18_000) -> Client:
        """Open a session and return its client; a real server may grant another timeout."""

    def end(self, client: Client) -> ClosedSession:
        """As an expiry does; the client's process may still run. Raises SessionExpired if it has ended before."""

    def settle(self) -> None:
        """Wait until every open session sees all writes so far, and can take the watch events of these writes."""

    def tree(self) -> dict[str, Znode]:
        """Return every znode below the root, sorted by path, without kcontrol's `/.kcontrol` and the server's `/zookeeper`."""


def retry_read(read: Callable[[], T]) -> T:
    """Once, after ConnectionLoss or SessionExpired."""
    try:
        return read()
    except (ConnectionLoss, SessionExpired):
        return read()


def require_path(path: str) -> None:
    """Raise ValueError for a path without a leading slash or with a lone surrogate, so that it is never sent."""
    if path[:1] != "/":
        raise ValueError(f"{path!r} is not the path of a znode: it must begin with a slash.")
    # A path is sent as UTF-8, which has no surrogates.
    if not path.isascii() and any("\ud800" <= character <= "\udfff" for character in path):
        raise ValueError(f"{path!r} is not the path of a znode: leave out the lone surrogate.")


def require_op(op: Op) -> None:
    """Raise an error for an operation that cannot be sent: TypeError for data that are not bytes, ValueError for the path.

    A path without a leading slash, or with a lone surrogate, cannot be sent.
    """
    if op.path[:1] != "/" or not op.path.isascii():
        require_path(op.path)
    if not isinstance(op.data, bytes):
        raise TypeError(f"The data of {op.path} must be bytes, not {type(op.data).__name__}.")
