"""The effect of one transaction on a tree of znodes, as in a ZooKeeper 3.9 server, and the order of ephemeral deletions.

A `Draft` collects the changes of a transaction; `memory.py` applies them to its tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

from kcontrol.core.effects import Op, Stat, Znode

Kind = Literal["NodeCreated", "NodeDeleted", "NodeDataChanged"]

# The paths that a server accepts. Source: PathUtils.validatePath (ZooKeeper 3.9), which reads UTF-16: nothing beyond U+FFFF.
_LEGAL_PATH = re.compile(r"/|(?:/(?!\.\.?(?:/|$))[^/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]+)+")


def is_legal(path: str) -> bool:
    """Return whether a ZooKeeper server accepts this path for a znode, such as "/" or "/brokers/ids/1".

    Source: PathUtils.validatePath (ZooKeeper 3.9).
    """
    return _LEGAL_PATH.fullmatch(path) is not None


class Draft:
    """The operations of one transaction so far: each operation sees the result of the operations before it.

    `create`, `set`, `delete` and `check` return the name of ZooKeeper's error, or None. After an error the draft must not be
    used.

    Attributes:
        changed: the changed znodes, by path; None for a deleted znode.
        done: (kind of the change, path, parent's path, session id of an ephemeral znode or 0), in order; a check adds no entry.
        results: one per operation: (data version, 0 after a create, the new one after a set, else None; path, that of a
            sequential create with the number that was appended; Stat of the znode after a set, else None).
    """

    __slots__ = ("_nodes", "_now_ms", "_session_id", "_zxid", "changed", "done", "results")

    def __init__(self, nodes: Mapping[str, Znode], zxid: int, now_ms: int, session_id: int) -> None:
        self._nodes = nodes
        self._zxid = zxid
        self._now_ms = now_ms
        self._session_id = session_id
        self.changed: dict[str, Znode | None] = {}
        self.done: list[tuple[Kind, str, str, int]] = []
        self.results: list[tuple[int | None, str, Stat | None]] = []

    def create(self, op: Op) -> str | None:
        """Add a new znode to the draft; return the name of ZooKeeper's error, or None after a success.

        A sequential name gets the number of creations below the parent, in ten digits.

        Source: PrepRequestProcessor.pRequest2TxnCreate (ZooKeeper 3.9): a null character is refused before the server looks up
        the parent, every other illegal path after that.
        """
        path = op.path
        if "\0" in path:
            return "BadArguments"
        parent_path = _parent(path)
        find = self._find if self.changed else self._nodes.get
        parent = find(parent_path)
        if parent is None:
            return "NoNode"
        if op.sequential:
            path = f"{path}{(parent.stat.cversion + parent.stat.num_children) // 2:010d}"
        if not is_legal(path):
            return "BadArguments"
        if find(path) is not None:
            return "NodeExists"
        if parent.stat.ephemeral_owner:
            return "NoChildrenForEphemerals"
        zxid, now_ms, owner = self._zxid, self._now_ms, self._session_id if op.ephemeral else 0
        self.changed[path] = Znode(op.data, Stat(zxid, now_ms, zxid, now_ms, zxid, 0, 0, 0, owner, len(op.data), 0))
        self.changed[parent_path] = _with_child_change(parent, zxid, 1)
        self.done.append(("NodeCreated", path, parent_path, owner))
        self.results.append((0, path, None))
        return None

    def set(self, op: Op) -> str | None:
        """Write new data in the draft; return the name of ZooKeeper's error, or None after a success.

        The znode's mzxid, mtime, version and length change; the parent does not change.
        """
        path = op.path
        node = self._find(path)
        if node is None:
            return _missing(path)
        czxid, ctime, _, _, pzxid, cversion, version, aversion, owner, _, num_children = node.stat
        if op.expected_version not in (-1, version):
            return "BadVersion"
        version += 1
        stat = Stat(czxid, ctime, self._zxid, self._now_ms, pzxid, cversion, version, aversion, owner, len(op.data), num_children)
        self.changed[path] = Znode(op.data, stat)
        self.done.append(("NodeDataChanged", path, "", owner))
        self.results.append((version, path, stat))
        return None

    def delete(self, op: Op) -> str | None:
        """Remove a znode from the draft, if it exists, has the expected version and has no children.

        Return the name of ZooKeeper's error, or None after a success.

        Source: PrepRequestProcessor.getParentPathAndValidate (ZooKeeper 3.9).
        """
        path = op.path
        # The server refuses the root and a null character; a deletion has no other check of the path.
        if path == "/" or "\0" in path:
            return "BadArguments"
        parent_path = _parent(path)
        parent, node = self._find(parent_path), self._find(path)
        if parent is None or node is None:
            return "NoNode"
        if op.expected_version not in (-1, node.stat.version):
            return "BadVersion"
        if node.stat.num_children:
            return "NotEmpty"
        self.changed[path] = None
        self.changed[parent_path] = _with_child_change(parent, self._zxid, -1)
        self.done.append(("NodeDeleted", path, parent_path, node.stat.ephemeral_owner))
        self.results.append((None, path, None))
        return None

    def check(self, op: Op) -> str | None:
        """Check that the znode exists and has the expected data version, if that is not -1.

        Return the name of ZooKeeper's error, or None after a success.
        """
        node = self._find(op.path)
        if node is None:
            return _missing(op.path)
        if op.expected_version not in (-1, node.stat.version):
            return "BadVersion"
        self.results.append((None, op.path, None))
        return None

    def _find(self, path: str) -> Znode | None:
        if path in self.changed:
            return self.changed[path]
        return self._nodes.get(path)


OPERATIONS: dict[str, Callable[[Draft, Op], str | None]] = {
    "create": Draft.create, "set": Draft.set, "delete": Draft.delete, "check": Draft.check,
}  # fmt: skip


class Ephemerals:
    """The ephemeral znodes of one session, in the order in which the server deletes them: that of a Java hash set.

    Source: DataTree.getEphemerals and killSession (ZooKeeper 3.9), HashMap.putMapEntries (Java 8 to 18, 19 on). A bucket with
    more than eight entries would be a tree in Java; that order is not implemented.
    """

    __slots__ = ("_capacity", "_paths")

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}
        self._capacity = 16  # of the server's table; it grows and never shrinks

    def add(self, path: str) -> None:
        """Add the path of a new znode to the session's ephemeral znodes; the hash set grows as in Java."""
        self._paths[path] = None
        if len(self._paths) > self._capacity * 3 // 4:
            self._capacity *= 2

    def remove(self, path: str) -> None:
        """Remove the path of a deleted znode from the set. Raises KeyError if the set does not have it."""
        del self._paths[path]

    def copy(self) -> Ephemerals:
        """Return an independent copy of this session's set of ephemeral znodes."""
        copied = Ephemerals()
        copied._paths, copied._capacity = self._paths.copy(), self._capacity
        return copied

    def in_order_of_deletion(self, chroot: str, java: int) -> list[str]:
        """As a server on Java `java` (17) deletes them; the order depends on the paths with `chroot`."""
        # The server copies its hash set of full paths, and deletes in the order of the copy.
        count = len(self._paths)
        wanted = -(-count * 4 // 3) if java >= 19 else int(count / 0.75 + 1)
        cloned = 1 << max(0, wanted - 1).bit_length()
        hashes = {path: _java_hash(chroot + path) for path in self._paths}
        return sorted(self._paths, key=lambda path: (hashes[path] & (cloned - 1), hashes[path] & (self._capacity - 1)))


def _java_hash(text: str) -> int:
    """Return the hash of a string in a Java HashMap: its hashCode with the upper 16 bits mixed into the lower 16 bits."""
    value = 0
    for unit in text.encode("utf-16-be").hex(" ", 2).split():
        value = (value * 31 + int(unit, 16)) & 0xFFFFFFFF
    return value ^ (value >> 16)


def _parent(path: str) -> str:
    return path[: path.rfind("/")] or "/"


def _missing(path: str) -> str:
    return "NoNode" if is_legal(path) else "BadArguments"


def _with_child_change(parent: Znode, zxid: int, change: int) -> Znode:
    """Return the parent after a child was created (1) or deleted (-1): only pzxid, cversion and the number of children change."""
    data, (czxid, ctime, mzxid, mtime, _, cversion, version, aversion, owner, length, children) = parent
    return Znode(data, Stat(czxid, ctime, mzxid, mtime, zxid, cversion + 1, version, aversion, owner, length, children + change))
