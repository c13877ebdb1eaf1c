"""ZooKeeper in this process: the responses of a real server of 3.9, virtual time, no threads, cheap copies.

The rules below were observed on a real server; `tests/zookeeper/` compares both:

* Every write request takes a zxid, and so do a failed transaction and the opening and the end of a session. Reads take none.
* The `cversion` in a Stat counts the creations and the deletions of children. The number in a sequential name counts the
  creations alone, so deletions leave no gap in the names.
* Errors are checked in this order. Create: BadArguments (a null character), NoNode (parent), BadArguments (name), NodeExists,
  NoChildrenForEphemerals. Delete: BadArguments (the root, a null character), NoNode, BadVersion, NotEmpty.
  Set and check: BadArguments (name), NoNode, BadVersion.
* The responses are those of a server without a chroot: the parent of `//` is the root (see `KazooSession._record`).
* A transaction checks each operation against the result of the operations before it. Watches fire after all operations.
* `exists` and `read` set a data watch, `children` sets a child watch. A deletion fires both watches on the znode, but a session
  with both gets one event only; after it come the events of the child watches on the parent.
* The end of a session deletes its ephemeral znodes in the order of a Java hash set of their full paths, chroot included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kcontrol.core.effects import Op, SessionExpired, Stat, WatchEvent, Znode
from kcontrol.zookeeper.port import Client, ClosedSession, ConnectionLoss, WriteResult, require_op, require_path
from kcontrol.zookeeper.transaction_rules import OPERATIONS, Draft, Ephemerals, Kind

FIRST_SESSION_ID = 0x100001

_Watches = dict[str, tuple[int, ...]]


class MemoryZooKeeper:
    """An ensemble of one server in memory. Only its callers change it, so equal calls give equal states.

    Args:
        now_ms: the clock for `ctime` and `mtime`.
        chroot: the path that a real client would put in front of every path. It only decides the order in which the
            ephemeral znodes of an ended session are deleted.
        java: the release of Java whose hash sets decide that order, for a session with three or more ephemeral znodes.
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
        self._nodes_are_shared = False  # with a copy or a caller of `nodes`: a write copies the mapping first
        self._children: dict[str, set[str]] = {}  # only of znodes with children
        self._owned: set[str] = set()  # the parents whose set of names no copy shares
        self._data_watches: _Watches = {}
        self._child_watches: _Watches = {}
        self._events: dict[int, list[WatchEvent]] = {}  # by open session
        self._ephemerals: dict[int, Ephemerals] = {}  # by open session that ever had an ephemeral znode
        self._lost: dict[int, bool] = {}  # the sessions whose next call raises ConnectionLoss: True before it is performed

    # ------------------------------------------------------------ the port

    def connect(self, session_timeout_ms: int = 18_000) -> MemoryClient:
        """Takes one zxid. Ids are counted, so they are equal in every run; a session lasts until `end`."""
        self._zxid += 1
        session_id = self._next_session
        self._next_session += 1
        self._events[session_id] = []
        return MemoryClient(self, session_id)

    def end(self, client: Client) -> ClosedSession:
        """End a session: delete all its ephemeral znodes with one zxid; return this zxid and the paths of these znodes.

        Raises SessionExpired if the session has ended before.
        """
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
        return ClosedSession(self._zxid, tuple(sorted(path for _, path, _, _ in draft.done)))

    def settle(self) -> None:
        """Do nothing: a watch event can be taken as soon as the write that fired it has returned."""

    def tree(self) -> dict[str, Znode]:
        """Return every znode below the root by path in sorted order."""
        nodes = self._nodes
        return {path: nodes[path] for path in sorted(nodes) if path != "/"}

    # ------------------------------------------------------------ for the simulated world

    def client(self, session_id: int) -> MemoryClient:
        """Return a new client of this session; its calls raise SessionExpired if no session with this id is open."""
        return MemoryClient(self, session_id)

    def nodes(self) -> Mapping[str, Znode]:
        """Return every znode by path, the root included; the mapping never changes, since later writes copy it."""
        self._nodes_are_shared = True
        return self._nodes

    @property
    def zxid(self) -> int:
        """The zxid of the latest transaction."""
        return self._zxid

    @property
    def has_events(self) -> bool:
        """Whether an open session has a watch event that its client has not taken."""
        return any(self._events.values())

    def take_events(self) -> list[tuple[int, WatchEvent]]:
        """Take all undelivered watch events, as (session id, event); the events of a session are in ZooKeeper's order."""
        taken = [(session, event) for session, events in self._events.items() for event in events]
        self._events = {session: [] for session in self._events}
        return taken

    def sessions(self) -> list[int]:
        """Return the ids of the open sessions, in order of opening."""
        return list(self._events)

    def lose_next(self, client: Client, *, before: bool) -> None:
        """Make the client's next round trip raise ConnectionLoss.

        If `before`, the request is lost and not performed, else only the response is lost. Raises SessionExpired if the session
        has ended.
        """
        self._require_open(client.session_id)
        self._lost[client.session_id] = before

    def watches(self) -> list[tuple[str, str, int]]:
        """Return every watch that is set, sorted: (path, `children` or `data`, session id)."""
        kinds = zip(("children", "data"), self.watch_tables(), strict=True)
        return sorted((path, kind, session) for kind, table in kinds for path, sessions in table.items() for session in sessions)

    def watch_tables(self) -> tuple[Mapping[str, tuple[int, ...]], Mapping[str, tuple[int, ...]]]:
        """Return (child watches, data watches), both as session ids by path; later changes show in the mappings."""
        return self._child_watches, self._data_watches

    def copy(self, now_ms: Callable[[], int] | None = None) -> MemoryZooKeeper:
        """Return an independent copy: znodes, sessions, watches, events, and losses of connections that are still to come.

        Its clock is `now_ms` if that is given, else the clock of this ZooKeeper.
        """
        copied = MemoryZooKeeper.__new__(MemoryZooKeeper)
        copied._now_ms = now_ms or self._now_ms
        copied._chroot, copied._java = self._chroot, self._java
        copied._zxid, copied._next_session = self._zxid, self._next_session
        self._nodes_are_shared = copied._nodes_are_shared = True
        copied._nodes = self._nodes
        copied._children = self._children.copy()
        copied._owned, self._owned = set(), set()  # from now on the sets of names are shared: a change copies the set first
        copied._data_watches = self._data_watches.copy()
        copied._child_watches = self._child_watches.copy()
        copied._events = {session: events.copy() for session, events in self._events.items()}
        copied._ephemerals = self._ephemerals.copy()
        copied._lost = self._lost.copy()
        return copied

    # ------------------------------------------------------------ internals

    def _require_open(self, session_id: int) -> None:
        if session_id not in self._events:
            raise SessionExpired(f"Session {session_id:#x} has ended.")

    def _begin(self, session_id: int) -> None:
        """Begin a round trip.

        Raises SessionExpired if the session has ended, and ConnectionLoss after `lose_next(before=True)`: the request is lost.
        """
        if session_id not in self._events:
            self._require_open(session_id)
        if self._lost.get(session_id, False):
            self._answer(session_id)

    def _answer(self, session_id: int) -> None:
        """End a round trip. Raises ConnectionLoss after `lose_next(before=False)`: the response is lost."""
        if self._lost and self._lost.pop(session_id, None) is not None:
            raise ConnectionLoss

    def _write(self, session_id: int, ops: tuple[Op, ...]) -> WriteResult:
        """Perform one transaction and return its result; a failed transaction takes a zxid and changes nothing else."""
        self._zxid = zxid = self._zxid + 1
        draft = Draft(self._nodes, zxid, self._now_ms(), session_id)
        for index, op in enumerate(ops):
            error = OPERATIONS[op.kind](draft, op)
            if error is not None:
                return WriteResult(zxid, error, index, (), ())
        self._perform(draft)
        versions, paths, stats = zip(*draft.results, strict=True) if ops else ((), (), ())
        return WriteResult(zxid, None, -1, versions, paths, stats)

    def _perform(self, draft: Draft) -> None:
        """Apply the changes of a transaction to the tree, then fire the watches in the order of its operations."""
        if self._nodes_are_shared and draft.changed:
            self._nodes, self._nodes_are_shared = dict(self._nodes), False
        nodes = self._nodes
        for path, node in draft.changed.items():
            if node is not None:
                nodes[path] = node
            else:
                nodes.pop(path, None)
        for kind, path, parent, owner in draft.done:
            if kind != "NodeDataChanged":
                self._relate(kind == "NodeCreated", path, parent, owner)
        if self._data_watches or self._child_watches:
            for kind, path, parent, _ in draft.done:
                if path in self._data_watches or path in self._child_watches or parent in self._child_watches:
                    self._fire(kind, path, parent)

    def _relate(self, is_created: bool, path: str, parent: str, owner: int) -> None:
        """Add a znode, if `is_created`, to its parent's child names and its session's ephemeral znodes; else remove it from both.

        `owner` is the session id of an ephemeral znode, else 0.
        """
        if parent not in self._owned:
            self._children[parent] = set(self._children.get(parent, ()))
            self._owned.add(parent)
        names, name = self._children[parent], path[path.rfind("/") + 1 :]
        if is_created:
            names.add(name)
        else:
            names.discard(name)
            if not names:
                del self._children[parent]
                self._owned.discard(parent)
        if owner and (is_created or owner in self._ephemerals):
            # Copies share the old value.
            ephemerals = self._ephemerals[owner].copy() if owner in self._ephemerals else Ephemerals()
            (ephemerals.add if is_created else ephemerals.remove)(path)
            self._ephemerals[owner] = ephemerals

    def _fire(self, kind: Kind, path: str, parent: str) -> None:
        """Remove the watches that the operation `kind` on `path` fires; queue their events, one per session.

        `parent` is the parent's path: a creation or a deletion also fires the parent's child watches.
        """
        notified = self._data_watches.pop(path, ())
        if notified:
            self._notify(notified, WatchEvent(kind, path))
        if kind == "NodeDataChanged" or not self._child_watches:
            return
        if kind == "NodeDeleted":
            watching = self._child_watches.pop(path, ())
            self._notify(tuple(session for session in watching if session not in notified), WatchEvent(kind, path))
        self._notify(self._child_watches.pop(parent, ()), WatchEvent("NodeChildrenChanged", parent))

    def _notify(self, sessions: tuple[int, ...], event: WatchEvent) -> None:
        for session in sessions:
            self._events[session].append(event)


class MemoryClient:
    """One session of a MemoryZooKeeper. An object has only the session's id, so several objects may share a session."""

    __slots__ = ("_zookeeper", "session_id")

    def __init__(self, zookeeper: MemoryZooKeeper, session_id: int) -> None:
        self._zookeeper = zookeeper
        self.session_id = session_id

    def exists(self, paths: Sequence[str], watch: bool) -> list[Stat | None]:
        found = self._find(paths)
        if watch:
            self._watch(self._zookeeper._data_watches, paths)
        self._zookeeper._answer(self.session_id)
        return [node and node.stat for node in found]

    def read(self, paths: Sequence[str], watch: bool) -> list[Znode | None]:
        found = self._find(paths)
        if watch:
            self._watch(self._zookeeper._data_watches, [path for path, node in zip(paths, found, strict=True) if node])
        self._zookeeper._answer(self.session_id)
        return found

    def children(self, paths: Sequence[str], watch: bool) -> list[tuple[str, ...] | None]:
        zookeeper = self._zookeeper
        found = self._find(paths)
        if watch:
            self._watch(zookeeper._child_watches, [path for path, node in zip(paths, found, strict=True) if node])
        zookeeper._answer(self.session_id)
        return [node and tuple(sorted(zookeeper._children.get(path, ()))) for path, node in zip(paths, found, strict=True)]

    def write(self, transactions: Sequence[tuple[Op, ...]]) -> list[WriteResult]:
        """Perform each transaction completely or not at all, in order; return one result per transaction."""
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
        """Return whether the session has ended, because it has expired or because the client has closed it."""
        return self.session_id not in self._zookeeper._events

    def _find(self, paths: Sequence[str]) -> list[Znode | None]:
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
    """Remove every watch of a session from `table`, which has the session ids by path."""
    for path in [path for path, sessions in table.items() if session_id in sessions]:
        others = tuple(session for session in table[path] if session != session_id)
        if others:
            table[path] = others
        else:
            del table[path]
