"""ZooKeeper in this process: the same answers as a real server of 3.9, virtual time, no threads, cheap to copy.

What a real server was seen doing, and what is therefore done here (`tests/zookeeper/` compares the two):

* Every write request takes a zxid, and so do a failed transaction and the opening and the end of a session. Reads take none.
* The `cversion` that a client is shown counts the creations and the deletions of children. The number in a sequential name is
  that of the creations alone, so deletions leave no gap in the names.
* Errors come in this order. Create: BadArguments (a null character), NoNode (parent), BadArguments (name), NodeExists,
  NoChildrenForEphemerals. Delete: BadArguments (the root, a null character), NoNode, BadVersion, NotEmpty.
  Set and check: BadArguments (name), NoNode, BadVersion.
* The answers are those of a server without a chroot: the parent of `//` is the root (see `KazooSession._record`).
* A transaction checks each operation against what the ones before it would leave behind; watches fire once all have happened.
* `exists` and `read` leave one and the same data watch, `children` a watch of its own. A deletion uses up both kinds of watch
  on the znode, yet tells a session that left both only once; then come the watches on the parent's children.
* A session's ephemeral znodes go in the order of a Java hash set of their full paths, chroot included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kcontrol.effects import Op, SessionExpired, Stat, WatchEvent, Znode
from kcontrol.runtime.zk_rules import OPERATIONS, Draft, Ephemerals, Kind
from kcontrol.runtime.zookeeper import Client, Closed, ConnectionLoss, Written, require_op, require_path

FIRST_SESSION_ID = 0x100001

_Watches = dict[str, tuple[int, ...]]


class MemoryZooKeeper:
    """An ensemble of one in memory. Nothing happens in it but what its callers do, so equal calls give equal states.

    Args:
        now_ms: the clock that `ctime` and `mtime` are read from.
        chroot: the path that a real client would have put in front of every path. It only decides the order in which the
            ephemeral znodes of an ended session go.
        java: the release of Java whose hash sets decide that order, for a session with three of them or more.
    """

    __slots__ = ("_child_watches", "_children", "_chroot", "_data_watches", "_ephemerals", "_events", "_java", "_lost",
                 "_next_session", "_nodes", "_nodes_are_shared", "_now_ms", "_owned", "_zxid")  # fmt: skip

    def __init__(self, now_ms: Callable[[], int], chroot: str = "", java: int = 25) -> None:
        self._now_ms = now_ms
        self._chroot = chroot
        self._java = java
        self._zxid = 0
        self._next_session = FIRST_SESSION_ID
        self._nodes: dict[str, Znode] = {"/": Znode(b"", Stat(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))}
        self._nodes_are_shared = False  # with a copy, or with somebody who looks at them: whoever writes copies them first
        self._children: dict[str, set[str]] = {}  # only of parents that have any
        self._owned: set[str] = set()  # the parents whose set of names is shared with no copy
        self._data_watches: _Watches = {}
        self._child_watches: _Watches = {}
        self._events: dict[int, list[WatchEvent]] = {}  # of the open sessions, and of them alone
        self._ephemerals: dict[int, Ephemerals] = {}  # of the open sessions that ever had one
        self._lost: dict[int, bool] = {}  # the sessions whose next call loses its answer, and whether it is performed

    # ------------------------------------------------------------ the port

    def connect(self, session_timeout_ms: int = 18_000) -> MemoryClient:
        """Open a session: one zxid. Ids are counted, so they are the same in every run."""
        self._zxid += 1
        session_id = self._next_session
        self._next_session += 1
        self._events[session_id] = []
        return MemoryClient(self, session_id)

    def end(self, client: Client) -> Closed:
        """End a session: one zxid for its ephemeral znodes and itself. Raises `SessionExpired` if it has ended already."""
        session_id = client.session_id
        self._require_open(session_id)
        del self._events[session_id]
        self._lost.pop(session_id, None)
        _forget(self._data_watches, session_id)
        _forget(self._child_watches, session_id)
        self._zxid += 1
        ephemerals = self._ephemerals.pop(session_id, None)
        draft = Draft(self._nodes, self._zxid, 0, 0)
        for path in ephemerals.in_order_of_deletion(self._chroot, self._java) if ephemerals else ():
            draft.delete(Op("delete", path))
        self._perform(draft)
        return Closed(self._zxid, tuple(sorted(path for _, path, _, _ in draft.done)))

    def settle(self) -> None:
        """Nothing to wait for: an event is there as soon as the write that fired it has returned."""

    def tree(self) -> dict[str, Znode]:
        """Every znode below the root by path in sorted order."""
        nodes = self._nodes
        return {path: nodes[path] for path in sorted(nodes) if path != "/"}

    # ------------------------------------------------------------ what only the simulated world can do

    def client(self, session_id: int) -> MemoryClient:
        """The client of a session of this ZooKeeper; its calls raise `SessionExpired` if no such session is open."""
        return MemoryClient(self, session_id)

    def nodes(self) -> Mapping[str, Znode]:
        """Every znode, the root too, by path; this mapping never changes, and writes make another."""
        self._nodes_are_shared = True
        return self._nodes

    @property
    def zxid(self) -> int:
        """The last one that was taken."""
        return self._zxid

    def take_events(self) -> list[tuple[int, WatchEvent]]:
        """All events that no session has taken, with the sessions' ids, each session's in ZooKeeper's order."""
        taken = [(session, event) for session, events in self._events.items() for event in events]
        self._events = {session: [] for session in self._events}
        return taken

    def sessions(self) -> list[int]:
        """The ids of the open sessions, in order of opening."""
        return list(self._events)

    def lose_next(self, client: Client, *, before: bool) -> None:
        """Make the client's next round trip raise `ConnectionLoss`: `before` the server performed it, or after."""
        self._require_open(client.session_id)
        self._lost[client.session_id] = before

    def undelivered(self, client: Client) -> tuple[WatchEvent, ...]:
        """The events that the client has not taken yet, oldest first; () once the session has ended."""
        return tuple(self._events.get(client.session_id, ()))

    def watches(self) -> list[tuple[str, str, int]]:
        """Every watch that is set, sorted: (path, `children` or `data`, session id)."""
        kinds = zip(("children", "data"), self.watch_tables(), strict=True)
        return sorted((path, kind, session) for kind, table in kinds for path, sessions in table.items() for session in sessions)

    def watch_tables(self) -> tuple[Mapping[str, tuple[int, ...]], Mapping[str, tuple[int, ...]]]:
        """The watches on children and those on data, as they are now: the sessions by path."""
        return self._child_watches, self._data_watches

    def copy(self, now_ms: Callable[[], int] | None = None) -> MemoryZooKeeper:
        """An independent twin: znodes, sessions, watches, events and pending losses, by the given clock or by the same one."""
        twin = MemoryZooKeeper.__new__(MemoryZooKeeper)
        twin._now_ms = now_ms or self._now_ms
        twin._chroot, twin._java, twin._zxid, twin._next_session = self._chroot, self._java, self._zxid, self._next_session
        self._nodes_are_shared = twin._nodes_are_shared = True
        twin._nodes = self._nodes
        twin._children = self._children.copy()
        twin._owned, self._owned = set(), set()  # from now on the sets of names are shared: whoever changes one copies it
        twin._data_watches = self._data_watches.copy()
        twin._child_watches = self._child_watches.copy()
        twin._events = {session: events.copy() for session, events in self._events.items()}
        twin._ephemerals = self._ephemerals.copy()
        twin._lost = self._lost.copy()
        return twin

    # ------------------------------------------------------------ inside

    def _require_open(self, session_id: int) -> None:
        if session_id not in self._events:
            raise SessionExpired(f"Session {session_id:#x} has ended.")

    def _begin(self, session_id: int) -> None:
        """The start of a round trip: is the session there, and does the request reach the server?"""
        if session_id not in self._events:
            self._require_open(session_id)
        if self._lost.get(session_id, False):
            self._answer(session_id)

    def _answer(self, session_id: int) -> None:
        """The end of a round trip: does the answer reach the client?"""
        if self._lost and self._lost.pop(session_id, None) is not None:
            raise ConnectionLoss

    def _write(self, session_id: int, ops: tuple[Op, ...]) -> Written:
        """One transaction: all of it, or a zxid spent and nothing else."""
        self._zxid = zxid = self._zxid + 1
        draft = Draft(self._nodes, zxid, self._now_ms(), session_id)
        for index, op in enumerate(ops):
            error = OPERATIONS[op.kind](draft, op)
            if error is not None:
                return Written(zxid, error, index, (), ())
        self._perform(draft)
        return Written(zxid, None, -1, tuple(draft.versions), tuple(draft.paths))

    def _perform(self, draft: Draft) -> None:
        """Make a draft's operations real, then fire the watches, operation by operation."""
        if self._nodes_are_shared and draft.changed:
            self._nodes, self._nodes_are_shared = dict(self._nodes), False
        nodes = self._nodes
        for path, node in draft.changed.items():
            if node is not None:
                nodes[path] = node
            else:
                nodes.pop(path, None)
        for kind, path, parent, owner in draft.done:
            if kind == "NodeDataChanged":
                continue
            self._relate(kind == "NodeCreated", path, parent, owner)
        if self._data_watches or self._child_watches:
            for kind, path, parent, _ in draft.done:
                if path in self._data_watches or path in self._child_watches or parent in self._child_watches:
                    self._fire(kind, path, parent)

    def _relate(self, created: bool, path: str, parent: str, owner: int) -> None:
        """Note that a znode came or went: in its parent's set of names, and with its session if it is ephemeral."""
        if parent not in self._owned:
            self._children[parent] = set(self._children.get(parent, ()))
            self._owned.add(parent)
        names, name = self._children[parent], path[path.rfind("/") + 1 :]
        if created:
            names.add(name)
        else:
            names.discard(name)
            if not names:
                del self._children[parent]
                self._owned.discard(parent)
        if owner and (created or owner in self._ephemerals):
            ephemerals = self._ephemerals[owner].copy() if owner in self._ephemerals else Ephemerals()  # copies share the old one
            (ephemerals.add if created else ephemerals.remove)(path)
            self._ephemerals[owner] = ephemerals

    def _fire(self, kind: Kind, path: str, parent: str) -> None:
        """Use up the watches that one operation touches and put one event per session behind its others."""
        told = self._data_watches.pop(path, ())
        if told:
            self._notify(told, WatchEvent(kind, path))
        if kind == "NodeDataChanged" or not self._child_watches:
            return
        if kind == "NodeDeleted":
            also = self._child_watches.pop(path, ())
            self._notify(tuple(session for session in also if session not in told), WatchEvent(kind, path))
        self._notify(self._child_watches.pop(parent, ()), WatchEvent("NodeChildrenChanged", parent))

    def _notify(self, sessions: tuple[int, ...], event: WatchEvent) -> None:
        for session in sessions:
            self._events[session].append(event)


class MemoryClient:
    """One session of a `MemoryZooKeeper`: just its id and whose it is, so any number of them may stand for one session."""

    __slots__ = ("_zookeeper", "session_id")

    def __init__(self, zookeeper: MemoryZooKeeper, session_id: int) -> None:
        self._zookeeper = zookeeper
        self.session_id = session_id

    def exists(self, paths: Sequence[str], watch: bool) -> list[Stat | None]:
        """One Stat per path, None where there is no znode. A watch is left in either case."""
        found = self._look(paths)
        if watch:
            self._watch(self._zookeeper._data_watches, paths)
        self._zookeeper._answer(self.session_id)
        return [node and node.stat for node in found]

    def read(self, paths: Sequence[str], watch: bool) -> list[Znode | None]:
        """One znode per path. A missing one leaves no watch."""
        found = self._look(paths)
        if watch:
            self._watch(self._zookeeper._data_watches, [path for path, node in zip(paths, found, strict=True) if node])
        self._zookeeper._answer(self.session_id)
        return found

    def children(self, paths: Sequence[str], watch: bool) -> list[tuple[str, ...] | None]:
        """The sorted child names of each path, None where the parent is missing, which leaves no watch."""
        zookeeper = self._zookeeper
        found = self._look(paths)
        if watch:
            self._watch(zookeeper._child_watches, [path for path, node in zip(paths, found, strict=True) if node])
        zookeeper._answer(self.session_id)
        return [node and tuple(sorted(zookeeper._children.get(path, ()))) for path, node in zip(paths, found, strict=True)]

    def write(self, transactions: Sequence[tuple[Op, ...]]) -> list[Written]:
        """Independent transactions in order, each all or nothing: one result each."""
        zookeeper = self._zookeeper
        zookeeper._begin(self.session_id)
        for ops in transactions:
            for op in ops:
                require_op(op)
        written = [zookeeper._write(self.session_id, ops) for ops in transactions]
        zookeeper._answer(self.session_id)
        return written

    def events(self) -> list[WatchEvent]:
        """Take the watch events of this session since the last call, in ZooKeeper's order."""
        zookeeper = self._zookeeper
        zookeeper._require_open(self.session_id)
        taken = zookeeper._events[self.session_id]
        zookeeper._events[self.session_id] = []
        return taken

    def has_expired(self) -> bool:
        """Return whether the session has ended."""
        return self.session_id not in self._zookeeper._events

    def _look(self, paths: Sequence[str]) -> list[Znode | None]:
        self._zookeeper._begin(self.session_id)
        nodes = self._zookeeper._nodes
        found = [nodes.get(path) for path in paths]
        if None in found:
            for path in paths:
                require_path(path)
        return found

    def _watch(self, table: _Watches, paths: Sequence[str]) -> None:
        for path in paths:
            sessions = table.get(path, ())
            if self.session_id not in sessions:
                table[path] = (*sessions, self.session_id)


def _forget(table: _Watches, session_id: int) -> None:
    """Drop every watch of a session."""
    for path in [path for path, sessions in table.items() if session_id in sessions]:
        left = tuple(session for session in table[path] if session != session_id)
        if left:
            table[path] = left
        else:
            del table[path]
