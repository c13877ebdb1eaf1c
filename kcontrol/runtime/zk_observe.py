"""Looking at somebody's ZooKeeper: nothing is written there, no watch is left, and only what the controller lives on is read.

A session has to be opened for it, which every ZooKeeper notes, but no znode of anybody changes: no chroot is created, no marker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from kcontrol.effects import Op, Stat, Znode
from kcontrol.errors import UserError
from kcontrol.runtime.zk_kazoo import KazooZooKeeper
from kcontrol.runtime.zk_safety import parse_address
from kcontrol.runtime.zookeeper import Client

ROOTS = (
    "/controller", "/controller_epoch", "/brokers", "/admin", "/isr_change_notification", "/log_dir_event_notification",
    "/cluster", "/feature",
)  # fmt: skip
"""What is read, with all below: neither `/config`, where passwords may be, nor what belongs to others."""


class Observer:
    """A session that only reads, below a root that may not even exist. Use it as a context manager, or call `close`.

    Args:
        client: the session that is read through.
        root: the path that is put in front of every path; it is never created.
        closing: what closes that session.
    """

    def __init__(self, client: Client, root: str = "", closing: Callable[[], None] = lambda: None) -> None:
        self._client, self._root, self._closing = client, root.rstrip("/"), closing

    def exists(self, paths: Sequence[str], watch: bool = False) -> list[Stat | None]:
        """One Stat per path, None where there is no znode. Raises UserError where a watch is wanted."""
        self._require_no_watch(watch)
        return self._client.exists([self._full(path) for path in paths], False)

    def read(self, paths: Sequence[str], watch: bool = False) -> list[Znode | None]:
        """One znode per path, None where there is none. Raises UserError where a watch is wanted."""
        self._require_no_watch(watch)
        return self._client.read([self._full(path) for path in paths], False)

    def children(self, paths: Sequence[str], watch: bool = False) -> list[tuple[str, ...] | None]:
        """The sorted child names of each path, None where the parent is missing. Raises UserError where a watch is wanted."""
        self._require_no_watch(watch)
        return self._client.children([self._full(path) for path in paths], False)

    def write(self, transactions: Sequence[tuple[Op, ...]]) -> NoReturn:
        """Refused, whatever it is. Raises UserError; nothing is sent."""
        raise UserError("This ZooKeeper is only looked at, so nothing is written to it: open a lab of your own to change things.")

    def tree(self) -> dict[str, Znode]:
        """What is there of ROOTS, with all below, by path in sorted order: two pipelined rounds for each level of the tree."""
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

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _full(self, path: str) -> str:
        return self._root + path if path != "/" else self._root or "/"

    def _require_no_watch(self, watch: bool) -> None:
        if watch:
            raise UserError("This ZooKeeper is only looked at, so no watch is left on it: read again instead.")


def _found(paths: Sequence[str], nodes: Sequence[Znode | None]) -> dict[str, Znode]:
    return {path: node for path, node in zip(paths, nodes, strict=True) if node is not None}


def observe(address: str) -> Observer:
    """Open somebody's ZooKeeper, `host:port[,host:port...][/chroot]`, to look at it.

    Raises:
        UserError: the address has another form, nothing answers there as a ZooKeeper, or there is no such chroot.
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
