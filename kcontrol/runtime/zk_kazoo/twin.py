"""What a learner needs of kazoo's client, on a ZooKeeper in this process: the same calls, answers and errors, no threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kazoo import exceptions
from kazoo.protocol.states import EventType, KazooState, WatchedEvent, ZnodeStat

from kcontrol.effects import Op, Stat, WatchEvent
from kcontrol.runtime.zk_memory import MemoryZooKeeper

EVENTS = {
    "NodeCreated": EventType.CREATED,
    "NodeDeleted": EventType.DELETED,
    "NodeDataChanged": EventType.CHANGED,
    "NodeChildrenChanged": EventType.CHILD,
}
DATA, CHILDREN = "data", "children"
Watch = Callable[[WatchedEvent], object]


class KazooTwin:
    """One client. News reaches it in `hear`, and nowhere else; a real one hears by itself, at some moment."""

    def __init__(self, zookeeper: MemoryZooKeeper) -> None:
        self._zookeeper = zookeeper
        self._session = zookeeper.connect()
        self._listeners: list[Callable[[str], object]] = []
        self.watchers: dict[tuple[str, str], list[Watch]] = {}
        self.state: str = KazooState.CONNECTED

    @property
    def client_id(self) -> tuple[int, bytes]:
        """The session's number, and no password."""
        return self._session.session_id, b""

    def add_listener(self, listener: Callable[[str], object]) -> None:
        """From now on it is called with each new state."""
        self._listeners.append(listener)

    def stop(self) -> None:
        """Leave in order: the session ends at once."""
        if self._session.session_id in self._zookeeper.sessions():
            self._zookeeper.end(self._session)
        self.become(KazooState.LOST)

    # ---------------------------------------------------------------- reading, with watches that tell once

    def exists(self, path: str, watch: Watch | None = None) -> ZnodeStat | None:
        """The znode's stat, None where there is none; a watch is left in either case."""
        (stat,) = self._session.exists([path], watch is not None)
        self._keep(DATA, path, watch)
        return stat and _stat(stat)

    def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, ZnodeStat]:
        """Data and stat. Raises NoNodeError, and then leaves no watch."""
        (znode,) = self._session.read([path], watch is not None)
        if znode is None:
            raise exceptions.NoNodeError
        self._keep(DATA, path, watch)
        return znode.data, _stat(znode.stat)

    def get_children(self, path: str, watch: Watch | None = None) -> list[str]:
        """The names below. Raises NoNodeError, and then leaves no watch."""
        (names,) = self._session.children([path], watch is not None)
        if names is None:
            raise exceptions.NoNodeError
        self._keep(CHILDREN, path, watch)
        return list(names)

    def _keep(self, kind: str, path: str, watch: Watch | None) -> None:
        if watch is not None:
            self.watchers.setdefault((kind, path), []).append(watch)

    # ---------------------------------------------------------------- writing

    def create(self, path: str, value: bytes = b"", *, ephemeral: bool = False, sequence: bool = False) -> str:
        """The path as it was stored, with its number if it is sequential. Raises NodeExistsError and the like."""
        return str(self._write(Op("create", path, value, ephemeral=ephemeral, sequential=sequence)))

    def set(self, path: str, value: bytes, version: int = -1) -> ZnodeStat:
        """The new stat. Raises BadVersionError where the version is another one, NoNodeError and the like."""
        self._write(Op("set", path, value, version))
        return self.get(path)[1]

    def delete(self, path: str, version: int = -1) -> bool:
        """Raises NotEmptyError, BadVersionError, NoNodeError and the like."""
        self._write(Op("delete", path, version=version))
        return True

    def transaction(self) -> TwinTransaction:
        """Several writes, all or nothing, to be committed."""
        return TwinTransaction(self)

    def _write(self, op: Op) -> str:
        written = self._session.write([(op,)])[0]
        if written.error:
            raise error(written.error)
        return written.paths[0]

    # ---------------------------------------------------------------- watches that are set again

    def DataWatch(self, path: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # noqa: N802 - kazoo's name
        """A decorator: the function is called with data and stat now, and after each change, until it returns False."""

        def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
            def look(_: WatchedEvent | None = None) -> None:
                (znode,) = self._session.read([path], watch=False)
                self.exists(path, look)
                found = (znode.data, _stat(znode.stat)) if znode else (None, None)
                if function(*found) is False:
                    self.watchers[DATA, path].remove(look)

            look()
            return function

        return decorated

    def ChildrenWatch(self, path: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # noqa: N802 - kazoo's name
        """The same for the names below a path that is there."""

        def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
            def look(event: WatchedEvent | None = None) -> None:
                if event is None or event.type != EventType.DELETED:
                    names = self.get_children(path, look)
                    if function(names) is False:
                        self.watchers[CHILDREN, path].remove(look)

            look()
            return function

        return decorated

    # ---------------------------------------------------------------- what happens to it

    def hear(self) -> bool:
        """Call whoever watches what has changed; whether there was anything."""
        if self.state != KazooState.CONNECTED:
            return False
        events = self._session.events()
        for event in events:
            for watch in self._watching(event):
                watch(WatchedEvent(EVENTS[event.type], KazooState.CONNECTED, event.path))
        return bool(events)

    def _watching(self, event: WatchEvent) -> list[Watch]:
        kinds = {"NodeChildrenChanged": [CHILDREN], "NodeDeleted": [DATA, CHILDREN]}.get(event.type, [DATA])
        return [watch for kind in kinds for watch in self.watchers.pop((kind, event.path), [])]

    def become(self, state: str) -> None:
        """Tell every listener of a new state, once."""
        if state != self.state:
            self.state = state
            for listener in self._listeners:
                listener(state)

    def expire(self) -> None:
        """Its session ends; it does not know yet."""
        self._zookeeper.end(self._session)

    def reconnect(self) -> None:
        """The line is there again: go on in the session, or learn that it has ended and open another."""
        if self._session.session_id not in self._zookeeper.sessions():
            self.watchers.clear()
            self.become(KazooState.LOST)
            self._session = self._zookeeper.connect()
        self.become(KazooState.CONNECTED)


class TwinTransaction:
    """Writes that are performed together in `commit`."""

    def __init__(self, client: KazooTwin) -> None:
        self._client, self._ops = client, list[Op]()

    def create(self, path: str, value: bytes = b"", *, ephemeral: bool = False, sequence: bool = False) -> None:
        """Create a znode."""
        self._ops.append(Op("create", path, value, ephemeral=ephemeral, sequential=sequence))

    def set_data(self, path: str, value: bytes, version: int = -1) -> None:
        """Change a znode's data, if it has this version."""
        self._ops.append(Op("set", path, value, version))

    def delete(self, path: str, version: int = -1) -> None:
        """Delete a znode, if it has this version."""
        self._ops.append(Op("delete", path, version=version))

    def check(self, path: str, version: int) -> None:
        """Go on only if a znode has this version."""
        self._ops.append(Op("check", path, version=version))

    def commit(self) -> list[Any]:
        """One result for each write: a path, a stat or True; if one fails, one error for each."""
        client = self._client
        written = client._session.write([tuple(self._ops)])[0]
        if written.error:
            before = [exceptions.RolledBackError() for _ in range(written.failed)]
            after = [exceptions.RuntimeInconsistency() for _ in self._ops[written.failed + 1 :]]
            return [*before, error(written.error), *after]
        done: dict[str, Callable[[str], Any]] = {"create": str, "set": lambda path: client.get(path)[1]}
        return [done.get(op.kind, lambda _: True)(path) for op, path in zip(self._ops, written.paths, strict=True)]  # type: ignore[no-untyped-call]


def error(name: str) -> Exception:
    """The exception that kazoo has for ZooKeeper's name of an error."""
    found: Exception = getattr(exceptions, f"{name}Error")()
    return found


def _stat(stat: Stat) -> ZnodeStat:
    return ZnodeStat(
        czxid=stat.czxid, mzxid=stat.mzxid, ctime=stat.ctime, mtime=stat.mtime, version=stat.version, cversion=stat.cversion,
        aversion=stat.aversion, ephemeralOwner=stat.ephemeral_owner, dataLength=stat.data_length,
        numChildren=stat.num_children, pzxid=stat.pzxid,
    )  # fmt: skip
