"""Reads the znodes that a controller uses from any ZooKeeper, without a write and without a watch.

The session of the reader is the only trace in that ZooKeeper.
"""

from collections.abc import Callable, Sequence
from typing import NoReturn, Self

from kcontrol.core.effects import Op, Stat, Znode
from kcontrol.core.errors import UserError
from kcontrol.zookeeper.kazoo import KazooZooKeeper
from kcontrol.zookeeper.kazoo.root_protection import parse_address
from kcontrol.zookeeper.port import Client

ROOTS = (
    "/controller", "/controller_epoch", "/brokers", "/admin", "/isr_change_notification", "/log_dir_event_notification",
    "/cluster", "/feature",
)  # fmt: skip
"""The znodes that are read, with all znodes below: not `/config`, which may hold passwords, nor other applications' znodes."""


class Observer:
    """A session that only reads, below a root that need not exist; `close` or the end of a `with` block ends it.

    Args:
        client: the session that reads.
        root: the path in front of every path; it is never created.
        on_close: the function that closes the session, without arguments.
    """

    def __init__(self, client: Client, root: str = "", on_close: Callable[[], None] = lambda: None) -> None:
        self._client, self._root, self._closing = client, root.rstrip("/"), on_close

    def exists(self, paths: Sequence[str], watch: bool = False) -> list[Stat | None]:
        """Return one Stat per path, None for a missing znode. Raises UserError if `watch` is True."""
        self._require_no_watch(watch)
        return self._client.exists([self._full(path) for path in paths], False)

    def read(self, paths: Sequence[str], watch: bool = False) -> list[Znode | None]:
        """Return one znode per path, None for a missing znode. Raises UserError if `watch` is True."""
        self._require_no_watch(watch)
        return self._client.read([self._full(path) for path in paths], False)

    def children(self, paths: Sequence[str], watch: bool = False) -> list[tuple[str, ...] | None]:
        """Return the sorted child names of each path, None for a missing znode. Raises UserError if `watch` is True."""
        self._require_no_watch(watch)
        return self._client.children([self._full(path) for path in paths], False)

    def write(self, transactions: Sequence[tuple[Op, ...]]) -> NoReturn:
        """Raise UserError; nothing is sent."""
        raise UserError("An observed ZooKeeper is read-only: open a lab of your own, with Lab(), to write.")

    def tree(self) -> dict[str, Znode]:
        """Kafka's top paths and all below, sorted; two rounds of pipelined reads per level."""
        level = _found(ROOTS, self.read(ROOTS))
        found = dict(level)
        while parents := [path for path, node in level.items() if node.stat.num_children]:
            families = zip(parents, self.children(parents), strict=True)
            paths = [f"{parent}/{name}" for parent, names in families for name in names or ()]
            level = _found(paths, self.read(paths))
            found |= level
        return dict(sorted(found.items()))

    def close(self) -> None:
        """End the session. A second call does nothing."""
        self._closing()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _full(self, path: str) -> str:
        return self._root + path if path != "/" else self._root or "/"

    def _require_no_watch(self, watch: bool) -> None:
        if watch:
            raise UserError("No watch is set on an observed ZooKeeper: pass watch=False, and read again later.")


def _found(paths: Sequence[str], nodes: Sequence[Znode | None]) -> dict[str, Znode]:
    return {path: node for path, node in zip(paths, nodes, strict=True) if node is not None}


def observe(address: str) -> Observer:
    """Open any ZooKeeper, `host:port[,host:port...][/chroot]`, for reading only.

    Raises:
        UserError: the address has another form, no ZooKeeper responds there, or the chroot does not exist.
    """
    hosts, chroot = parse_address(address)
    zookeeper = KazooZooKeeper(hosts)  # without the chroot, which it would create
    try:
        observer = Observer(zookeeper.connect(), chroot or "", zookeeper.close)
        if observer.exists(["/"]) == [None]:
            raise UserError(f"There is no znode {chroot} at {hosts}: check the chroot; nothing was created.")
    except BaseException:
        zookeeper.close()
        raise
    return observer
