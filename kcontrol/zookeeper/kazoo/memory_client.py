"""An equivalent of kazoo's client on the ZooKeeper in this process, for `lab.playground`.

It has equal calls, results and errors, and no threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kazoo import exceptions
from kazoo.protocol.states import EventType, KazooState, WatchedEvent, ZnodeStat

from kcontrol.core.effects import Op, Stat, WatchEvent
from kcontrol.zookeeper.memory import MemoryZooKeeper

EVENTS = {
    "NodeCreated": EventType.CREATED, "NodeDeleted": EventType.DELETED, "NodeDataChanged": EventType.CHANGED,
    "NodeChildrenChanged": EventType.CHILD,
}  # fmt: skip
DATA, CHILDREN = "data", "children"
Watch = Callable[[WatchedEvent], object]


class MemoryKazooClient:
    """A client with one session of a MemoryZooKeeper, and the most used methods of kazoo's KazooClient.

    It calls watches only in `deliver_notifications`; kazoo's client calls watches on a thread of its own.
    """

    def __init__(self, zookeeper: MemoryZooKeeper) -> None:
        self._zookeeper = zookeeper
        self._session = zookeeper.connect()
        self._listeners: list[Callable[[str], object]] = []
        self.watchers: dict[tuple[str, str], list[Watch]] = {}
        self.state: str = KazooState.CONNECTED

    @property
    def client_id(self) -> tuple[int, bytes]:
        """The session's number and an empty password."""
        return self._session.session_id, b""

    def add_listener(self, listener: Callable[[str], object]) -> None:
        """Register a function that is called with each later state of the connection, such as "CONNECTED" or "LOST"."""
        self._listeners.append(listener)

    def stop(self) -> None:
        """Close the session in this call; its ephemeral znodes are deleted."""
        if self._session.session_id in self._zookeeper.sessions():
            self._zookeeper.end(self._session)
        self.set_state(KazooState.LOST)

    # ---------------------------------------------------------------- reading, with one-shot watches

    def exists(self, path: str, watch: Watch | None = None) -> ZnodeStat | None:
        """Return the znode's stat, None for a missing znode; `watch`, if given, is also set on a missing znode."""
        (stat,) = self._session.exists([path], watch is not None)
        self._add_watch(DATA, path, watch)
        return stat and _stat(stat)

    def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, ZnodeStat]:
        """Raises NoNodeError, and then sets no watch."""
        (znode,) = self._session.read([path], watch is not None)
        if znode is None:
            raise exceptions.NoNodeError
        self._add_watch(DATA, path, watch)
        return znode.data, _stat(znode.stat)

    def get_children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Sorted. Raises NoNodeError, and then sets no watch."""
        (names,) = self._session.children([path], watch is not None)
        if names is None:
            raise exceptions.NoNodeError
        self._add_watch(CHILDREN, path, watch)
        return list(names)

    def _add_watch(self, kind: str, path: str, watch: Watch | None) -> None:
        if watch is not None:
            self.watchers.setdefault((kind, path), []).append(watch)

    # ---------------------------------------------------------------- writing

    def create(self, path: str, value: bytes = b"", *, ephemeral: bool = False, sequence: bool = False) -> str:
        """Returns the stored path. Raises kazoo's errors."""
        return str(self._write(Op("create", path, value, ephemeral=ephemeral, sequential=sequence)))

    def set(self, path: str, value: bytes, version: int = -1) -> ZnodeStat:
        """-1 is any data version. Raises kazoo's errors."""
        self._write(Op("set", path, value, version))
        return self.get(path)[1]

    def delete(self, path: str, version: int = -1) -> bool:
        """-1 is any data version. Raises kazoo's errors."""
        self._write(Op("delete", path, expected_version=version))
        return True

    def transaction(self) -> MemoryKazooTransaction:
        """Return a transaction: writes that `commit` performs together or not at all."""
        return MemoryKazooTransaction(self)

    def _write(self, op: Op) -> str:
        written = self._session.write([(op,)])[0]
        if written.error:
            raise error(written.error)
        return written.paths[0]

    # ---------------------------------------------------------------- watches that are set again after each event

    def DataWatch(self, path: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # noqa: N802 - kazoo's name
        """Return a decorator: the decorated function gets data and stat now, and after each change, until it returns False.

        For a missing znode the data and the stat are None.
        """

        def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
            def callback(_: WatchedEvent | None = None) -> None:
                (znode,) = self._session.read([path], watch=False)
                self.exists(path, callback)
                found = (znode.data, _stat(znode.stat)) if znode else (None, None)
                if function(*found) is False:
                    self.watchers[DATA, path].remove(callback)

            callback()
            return function

        return decorated

    def ChildrenWatch(self, path: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # noqa: N802 - kazoo's name
        """Return a decorator: the decorated function gets the names of the znode's children now, and after each change.

        Raises NoNodeError if the znode does not exist.
        """

        def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
            def callback(event: WatchedEvent | None = None) -> None:
                # The calls end when the function returns False, and when the znode is deleted.
                if event is None or event.type != EventType.DELETED:
                    names = self.get_children(path, callback)
                    if function(names) is False:
                        self.watchers[CHILDREN, path].remove(callback)

            callback()
            return function

        return decorated

    # ---------------------------------------------------------------- notifications, states and sessions

    def deliver_notifications(self) -> bool:
        """Call the watches that have fired, and return whether there were any; without a connection only return False."""
        if self.state != KazooState.CONNECTED:
            return False
        events = self._session.events()
        for event in events:
            for watch in self._callbacks(event):
                watch(WatchedEvent(EVENTS[event.type], KazooState.CONNECTED, event.path))
        return bool(events)

    def _callbacks(self, event: WatchEvent) -> list[Watch]:
        kinds = {"NodeChildrenChanged": [CHILDREN], "NodeDeleted": [DATA, CHILDREN]}.get(event.type, [DATA])
        return [watch for kind in kinds for watch in self.watchers.pop((kind, event.path), [])]

    def set_state(self, state: str) -> None:
        """Store the state of the connection, such as "LOST"; after a change call every listener with the new state."""
        if state != self.state:
            self.state = state
            for listener in self._listeners:
                listener(state)

    def expire(self) -> None:
        """End the session in ZooKeeper, as a passed timeout does; the client receives the expiry in `reconnect`."""
        self._zookeeper.end(self._session)

    def reconnect(self) -> None:
        """In the old session, or in a new one without watches: listeners then get "LOST" first."""
        if self._session.session_id not in self._zookeeper.sessions():
            self.watchers.clear()
            self.set_state(KazooState.LOST)
            self._session = self._zookeeper.connect()
        self.set_state(KazooState.CONNECTED)


class MemoryKazooTransaction:
    """Writes that `commit` performs together or not at all."""

    def __init__(self, client: MemoryKazooClient) -> None:
        self._client, self._ops = client, list[Op]()

    def create(self, path: str, value: bytes = b"", *, ephemeral: bool = False, sequence: bool = False) -> None:
        """Add the creation of a znode to the transaction."""
        self._ops.append(Op("create", path, value, ephemeral=ephemeral, sequential=sequence))

    def set_data(self, path: str, value: bytes, version: int = -1) -> None:
        """Add a write of a znode's data to the transaction; `version` is the expected data version, -1 for any."""
        self._ops.append(Op("set", path, value, version))

    def delete(self, path: str, version: int = -1) -> None:
        """Add the deletion of a znode to the transaction; `version` is the expected data version, -1 for any."""
        self._ops.append(Op("delete", path, expected_version=version))

    def check(self, path: str, version: int) -> None:
        """Add to the transaction a check that a znode exists and has the data version `version`, -1 for any."""
        self._ops.append(Op("check", path, expected_version=version))

    def commit(self) -> list[Any]:
        """Perform all writes or none; return one result for each write.

        If one write fails, the result of each write is an exception.
        """
        written = self._client._session.write([tuple(self._ops)])[0]
        if written.error:
            # Kazoo returns RolledBackError for each write before the failed one, RuntimeInconsistency for each write after it.
            before = [exceptions.RolledBackError() for _ in range(written.failed_index)]
            after = [exceptions.RuntimeInconsistency() for _ in self._ops[written.failed_index + 1 :]]
            return [*before, error(written.error), *after]
        done = zip(self._ops, written.paths, written.stats, strict=True)
        # The result of a create is its path, that of a set the Stat right after it, that of any other write True.
        return [path if op.kind == "create" else stat is None or _stat(stat) for op, path, stat in done]


def error(name: str) -> Exception:
    """The exception of kazoo for ZooKeeper's name of an error. Raises AttributeError for an unknown name."""
    found: Exception = getattr(exceptions, f"{'InvalidACL' if name == 'InvalidAcl' else name}Error")()
    return found


def _stat(stat: Stat) -> ZnodeStat:
    return ZnodeStat(
        czxid=stat.czxid, mzxid=stat.mzxid, ctime=stat.ctime, mtime=stat.mtime, version=stat.version, cversion=stat.cversion,
        aversion=stat.aversion, ephemeralOwner=stat.ephemeral_owner, dataLength=stat.data_length,
        numChildren=stat.num_children, pzxid=stat.pzxid,
    )  # fmt: skip
