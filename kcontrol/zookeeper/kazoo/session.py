"""One session on a real ZooKeeper."""

import contextlib
import logging
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal

from kazoo import exceptions
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol import serialization as wire
from kazoo.protocol.states import Callback, KazooState
from kazoo.retry import KazooRetry
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id, Permissions

from kcontrol.core.effects import Op, SessionExpired, Stat, WatchEvent, Znode
from kcontrol.core.errors import UserError
from kcontrol.zookeeper.kazoo.wire import Reply, SetWatches, close_session, error_name, to_stat
from kcontrol.zookeeper.port import ConnectionLoss, WriteResult, require_op, require_path

RECONNECT_DELAY_S = 0.02
DISCONNECT_RETRY_S = 0.05

_LOG = logging.getLogger("kcontrol.kazoo")
_LOG.setLevel(logging.ERROR)  # kazoo warns once per refused connection, and a notebook's cell would show the warnings

_EVENTS: dict[str, Literal["NodeCreated", "NodeDeleted", "NodeDataChanged", "NodeChildrenChanged"]] = {
    "CREATED": "NodeCreated", "DELETED": "NodeDeleted", "CHANGED": "NodeDataChanged", "CHILD": "NodeChildrenChanged",
}  # fmt: skip
_LOST = (exceptions.ConnectionLoss, exceptions.ConnectionClosedError, exceptions.OperationTimeoutError, KazooTimeoutError)


class KazooSession:
    """One session on a real server; `KazooZooKeeper.connect` creates it, with arguments as in KazooZooKeeper.

    Attributes:
        session_id: the server's number for the session.
        has_ended: True once the client knows that the session has ended.
        ephemerals: the paths of ephemeral znodes that this client has created, even if they have been deleted since.
        knows_its_ephemerals: False after a lost response to a write of an ephemeral znode; `ephemerals` may then lack its path.

    Raises:
        UserError: no session was granted within `patience_s`.
    """

    def __init__(self, hosts: str, chroot: str, session_timeout_ms: int, patience_s: float, owner: str = "") -> None:
        self._chroot = chroot
        self._ownership = Id("digest", f"kcontrol:{owner}")  # no password has this digest, so the entry grants no rights
        self._acl = [*OPEN_ACL_UNSAFE, *([ACL(Permissions.READ, self._ownership)] if owner else [])]
        self._patience_s = patience_s
        self._handler = SequentialThreadingHandler()
        retry = KazooRetry(max_tries=-1, delay=RECONNECT_DELAY_S, max_delay=1.0, sleep_func=self._handler.sleep_func)
        self._kazoo: Any = KazooClient(
            hosts, timeout=session_timeout_ms / 1000, handler=self._handler, connection_retry=retry, logger=_LOG
        )
        self._events: deque[WatchEvent] = deque()
        self._last_event: object = None
        self._connected = threading.Event()
        self._closed = False
        self._missing: set[str] = set()  # paths with a data watch that was set without a znode
        self._unarmed: tuple[int, set[str], set[str]] | None = None  # watches to set again: last zxid seen, data, children
        self.has_ended = False
        self.ephemerals: set[str] = set()
        self.knows_its_ephemerals = True
        self._kazoo.add_listener(self._on_state)
        self._kazoo.start_async().wait(patience_s)
        if not self._kazoo.connected:
            self._kazoo._stopped.set()
            self.close(patience_s=0)
            raise UserError(
                f"ZooKeeper {hosts} has granted no session in {patience_s:g} s: check that it runs and takes more connections."
            )
        self.session_id: int = self._kazoo._session_id
        self._password: bytes = self._kazoo._session_passwd

    # ------------------------------------------------------------ the port

    def exists(self, paths: Sequence[str], watch: bool) -> list[Stat | None]:
        return [None if stat is None else to_stat(stat) for stat in self._request_all(wire.Exists, paths, watch)]

    def read(self, paths: Sequence[str], watch: bool) -> list[Znode | None]:
        return [
            None if node is None else Znode(node[0] or b"", to_stat(node[1]))
            for node in self._request_all(wire.GetData, paths, watch)
        ]

    def children(self, paths: Sequence[str], watch: bool) -> list[tuple[str, ...] | None]:
        return [None if names is None else tuple(sorted(names)) for names in self._request_all(wire.GetChildren, paths, watch)]

    def write(self, transactions: Sequence[tuple[Op, ...]]) -> list[WriteResult]:
        """Perform each transaction completely or not at all, pipelined in order; return one result per transaction.

        A ConnectionLoss has the results that have arrived before it (`answered`).
        """
        requests = [wire.Transaction([self._record(op) for op in ops]) for ops in transactions]
        self._require_connection()
        replies = [self._send(request) for request in requests]
        written: list[WriteResult] = []
        try:
            for ops, reply in zip(transactions, replies, strict=True):
                written.append(self._outcome(ops, self._wait(reply), reply.zxid))
        except ConnectionLoss as loss:
            self.knows_its_ephemerals &= not any(op.ephemeral for ops in transactions for op in ops)
            raise ConnectionLoss(str(loss), written) from None
        return written

    def events(self) -> list[WatchEvent]:
        self._require_open()
        return [self._events.popleft() for _ in range(len(self._events))]

    def has_expired(self) -> bool:
        if not self.has_ended and not self._connected.wait(self._patience_s):
            raise ConnectionLoss
        return self.has_ended

    # ------------------------------------------------------------ for KazooZooKeeper

    def sync(self) -> None:
        """Wait until this session's server has seen every write so far."""
        self._require_connection()
        self._wait(self._send(wire.Sync(self._chroot or "/")))

    def request_barrier(self) -> Reply:
        """Its response comes after every watch event of every write so far."""
        self._require_connection()
        self._send(wire.Sync(self._chroot or "/"))
        return self._send(wire.Exists(self._chroot or "/", None))

    def mark_after(self, reply: Reply) -> threading.Event:
        """Set when the watch events that arrived before this response are stored for `events`."""
        self._wait(reply)
        mark = threading.Event()
        self._handler.dispatch_callback(Callback("mark", mark.set, ()))
        return mark

    def are_ours(self, paths: Sequence[str]) -> list[bool]:
        """Return for each path whether its znode's ACL has the entry that marks znodes of this lab; False for a missing znode."""
        answers = self._request_all(lambda path, _: wire.GetACL(path), paths, watch=False)
        return [answer is not None and any(acl.id == self._ownership for acl in answer[0]) for answer in answers]

    def create_outside(self, path: str) -> str | None:
        """By its full path, the chroot included. Returns ZooKeeper's name of the error, None after a success."""
        self._require_connection()
        outcome = self._wait(self._send(wire.Transaction([wire.Create(path, b"", OPEN_ACL_UNSAFE, 0)])))[0]
        return error_name(outcome) if isinstance(outcome, Exception) else None

    def end(self) -> int:
        """End this session at once, on a new connection without kazoo, and return the zxid of the session's end.

        Raises SessionExpired if the session had ended before, ConnectionLoss if no server responds.
        """
        self.has_ended = True
        # kazoo's own connection stops first.
        self._kazoo._stopped.set()
        try:
            zxid = close_session(self._kazoo.hosts, self._patience_s, self.session_id, self._password)
        except OSError as problem:
            raise ConnectionLoss(f"Session {self.session_id:#x} could not be ended: {problem}.") from None
        finally:
            self.close()
        if zxid is None:
            raise SessionExpired(f"Session {self.session_id:#x} has ended.")
        return zxid

    def leave(self) -> None:
        """Request the close of the session if it is open, without waiting for the response.

        Source: kazoo's `KazooClient.stop`.
        """
        self.has_ended = True
        if not self._kazoo._stopped.is_set():
            self._kazoo._stopped.set()
            self._kazoo._queue.append((wire.CloseInstance, None))
            self._kazoo._connection._write_sock.send(b"\0")

    def close(self, patience_s: float | None = None) -> None:
        """Close the session if it is open, and release the connection and kazoo's threads; a second call does nothing.

        A close that has not ended after `patience_s` is aborted; None stands for the `patience_s` of this session.
        """
        if self._closed:
            return
        self._closed = True
        self.leave()
        has_stopped = self._kazoo._connection.connection_stopped
        if not has_stopped.wait(self._patience_s if patience_s is None else patience_s):
            self._break_off()
            while not has_stopped.wait(DISCONNECT_RETRY_S):  # kazoo may have been about to open another connection
                self._break_off()
        self._kazoo._safe_close()
        self._kazoo.close()

    def _break_off(self) -> None:
        """Shut the socket of kazoo's connection down, so that its thread reads no further; without a socket do nothing."""
        with contextlib.suppress(OSError, AttributeError):  # there is no connection now
            self._kazoo._connection._socket.shutdown(socket.SHUT_RDWR)

    # ------------------------------------------------------------ requests

    def _require_open(self) -> None:
        if self.has_ended:
            raise SessionExpired(f"Session {self.session_id:#x} has ended.")

    def _require_connection(self) -> None:
        """Waits for a lost connection. Raises SessionExpired or ConnectionLoss."""
        self._require_open()
        if not self._connected.wait(self._patience_s):
            raise ConnectionLoss
        self._require_open()

    def _full(self, path: str) -> str:
        """Return the path with the chroot, as the server knows it."""
        require_path(path)
        if not self._chroot:
            return path
        return self._chroot if path == "/" else self._chroot + path

    def _record(self, op: Op) -> Any:
        """Return kazoo's request for one operation, with the chroot before the path.

        Source: ZooKeeper.create and delete (Java, 3.9).
        """
        require_op(op)
        path = self._full(op.path)
        if op.path == "/" and op.sequential:
            path = self._chroot + "/"  # otherwise the number would be added to the chroot's own name
        if op.path == "/" and op.kind == "delete":
            path = "/"  # refused by the server, as without a chroot
        if self._chroot and op.kind == "create" and op.path.rfind("/") == 1:  # `//` and `//name`, whose parent is the root
            path = f"{self._chroot}/\x01"  # refused by the server with BadArguments, as without a chroot
        if op.kind == "create":
            return wire.Create(path, op.data, self._acl, op.ephemeral + 2 * op.sequential)
        if op.kind == "set":
            return wire.SetData(path, op.data, op.expected_version)
        return wire.Delete(path, op.expected_version) if op.kind == "delete" else wire.CheckVersion(path, op.expected_version)

    def _send(self, request: Any, on_response: Callable[[Any], None] | None = None) -> Reply:
        """At once; kazoo's connection thread fills the Reply and calls `on_response`."""
        reply = Reply(self._handler, self._kazoo, on_response)
        self._kazoo._call(request, reply)
        return reply

    def _wait(self, reply: Reply) -> Any:
        """Return the response to a request, None if the znode is missing or its path is illegal.

        Raises SessionExpired, or ConnectionLoss without a response, or UserError if the server refuses the request.
        """
        try:
            return reply.get(timeout=self._patience_s)
        except (exceptions.NoNodeError, exceptions.BadArgumentsError):
            return None
        except exceptions.SessionExpiredError:
            self.has_ended = True
            raise SessionExpired(f"Session {self.session_id:#x} has ended.") from None
        except _LOST:
            self._require_open()
            raise ConnectionLoss from None
        except exceptions.ZookeeperError as refusal:
            raise UserError(f"ZooKeeper refuses a request ({error_name(refusal)}): choose a chroot with full rights.") from None

    def _request_all(self, record: Callable[[str, Any], Any], paths: Sequence[str], watch: bool) -> list[Any]:
        """Pipelined; a response is None for a missing znode."""
        full = [self._full(path) for path in paths]
        self._require_connection()
        watcher = self._on_event if watch else None
        sets_data_watch = watch and record is not wire.GetChildren
        replies = [self._send(record(path, watcher), self._record_missing(path) if sets_data_watch else None) for path in full]
        return [self._wait(reply) for reply in replies]

    def _record_missing(self, path: str) -> Callable[[Any], None]:
        """A reconnected client sends the watched paths without a znode in SetWatches."""

        def record(answer: Any) -> None:
            (self._missing.add if answer is None else self._missing.discard)(path)

        return record

    def _outcome(self, ops: tuple[Op, ...], results: list[Any], zxid: int) -> WriteResult:
        for index, result in enumerate(results):
            if isinstance(result, Exception) and not isinstance(result, exceptions.RolledBackError):
                return WriteResult(zxid, error_name(result), index, (), ())
        done = list(zip(ops, results, strict=True))
        stats = tuple(to_stat(result) if op.kind == "set" else None for op, result in done)
        versions = tuple(0 if op.kind == "create" else stat and stat.version for op, stat in zip(ops, stats, strict=True))
        paths = tuple(result[len(self._chroot) :] if op.kind == "create" else op.path for op, result in done)
        self.ephemerals.update(path for op, path in zip(ops, paths, strict=True) if op.ephemeral)
        return WriteResult(zxid, None, -1, versions, paths, stats)

    # ------------------------------------------------------------ called by kazoo's threads

    def _on_event(self, event: Any) -> None:
        """Queue a watch event, which the method `events` returns later; skip events that are no change of a znode."""
        # kazoo calls this method once for each kind of watch that has fired, with one event object; ZooKeeper has sent one
        # event.
        if event is self._last_event or event.type not in _EVENTS:
            return
        self._last_event = event
        self._events.append(WatchEvent(_EVENTS[event.type], event.path[len(self._chroot) :] or "/"))

    def _on_state(self, state: str) -> None:
        """Store a new state of the connection: "SUSPENDED" (lost), "CONNECTED" (restored) or "LOST" (the session has ended).

        kazoo calls this method on the connection's thread, before any later request or event.
        """
        kazoo = self._kazoo
        if state == KazooState.LOST:
            self.has_ended = True
            kazoo._stopped.set()  # otherwise kazoo would open a new session
            self._connected.set()  # threads that wait find that the session has ended
        elif state == KazooState.SUSPENDED:
            self._connected.clear()
            self._unarmed = (kazoo.last_zxid, set(kazoo._data_watchers), set(kazoo._child_watchers))
        else:
            self._set_watches_again()
            self._connected.set()

    def _set_watches_again(self) -> None:
        if self._unarmed is None:
            return
        zxid, data, children = self._unarmed
        self._unarmed = None
        for path in data:
            self._kazoo._data_watchers[path].add(self._on_event)
        for path in children:
            self._kazoo._child_watchers[path].add(self._on_event)
        self._send(SetWatches(zxid, data - self._missing, data & self._missing, children))
