"""One session on a real ZooKeeper."""

from __future__ import annotations

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
from kazoo.protocol.serialization import (
    CheckVersion,
    CloseInstance,
    Create,
    Delete,
    Exists,
    GetACL,
    GetChildren,
    GetData,
    SetData,
    Sync,
    Transaction,
)
from kazoo.protocol.states import Callback, KazooState
from kazoo.retry import KazooRetry
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id, Permissions

from kcontrol.effects import Op, SessionExpired, Stat, WatchEvent, Znode
from kcontrol.errors import UserError
from kcontrol.runtime.zk_kazoo.wire import Reply, SetWatches, close_session, error_name, to_stat
from kcontrol.runtime.zookeeper import ConnectionLoss, Written, require_op, require_path

RECONNECT_DELAY_S = 0.02
BREAK_OFF_AGAIN_S = 0.05

_LOG = logging.getLogger("kcontrol.kazoo")
_LOG.setLevel(logging.ERROR)  # kazoo warns once per refused connection, which would end up in a notebook's cell

_EVENTS: dict[str, Literal["NodeCreated", "NodeDeleted", "NodeDataChanged", "NodeChildrenChanged"]] = {
    "CREATED": "NodeCreated",
    "DELETED": "NodeDeleted",
    "CHANGED": "NodeDataChanged",
    "CHILD": "NodeChildrenChanged",
}
_LOST = (exceptions.ConnectionLoss, exceptions.ConnectionClosedError, exceptions.OperationTimeoutError, KazooTimeoutError)


class KazooSession:
    """One session on a real server; made by `KazooZooKeeper.connect`.

    Attributes:
        session_id: the server's number for the session.
        has_ended: True once it is known that the session is no more.
        ephemerals: the paths under which this client has created ephemeral znodes, whether or not they are still there.
        knows_its_ephemerals: False once an answer was lost that may have told of another one.

    Raises:
        UserError: no session was granted within `patience_s`.
    """

    def __init__(self, hosts: str, chroot: str, session_timeout_ms: int, patience_s: float, owner: str = "") -> None:
        self._chroot = chroot
        self._ownership = Id("digest", f"kcontrol:{owner}")  # no password has this digest, so the entry grants nothing to anybody
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
        self._missing: set[str] = set()  # paths where a data watch was left when nothing was there
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
        """One Stat per path, None where there is no znode. A watch is left in either case."""
        return [None if stat is None else to_stat(stat) for stat in self._ask(Exists, paths, watch)]

    def read(self, paths: Sequence[str], watch: bool) -> list[Znode | None]:
        """One znode per path. A missing one leaves no watch."""
        return [None if node is None else Znode(node[0] or b"", to_stat(node[1])) for node in self._ask(GetData, paths, watch)]

    def children(self, paths: Sequence[str], watch: bool) -> list[tuple[str, ...] | None]:
        """The sorted child names of each path, None where the parent is missing, which leaves no watch."""
        return [None if names is None else tuple(sorted(names)) for names in self._ask(GetChildren, paths, watch)]

    def write(self, transactions: Sequence[tuple[Op, ...]]) -> list[Written]:
        """Independent transactions, pipelined in order, each all or nothing: one result each."""
        requests = [Transaction([self._record(op) for op in ops]) for ops in transactions]
        self._require_connection()
        replies = [self._send(request) for request in requests]
        written: list[Written] = []
        try:
            for ops, reply in zip(transactions, replies, strict=True):
                written.append(self._outcome(ops, self._wait(reply), reply.zxid))
        except ConnectionLoss as loss:
            self.knows_its_ephemerals &= not any(op.ephemeral for ops in transactions for op in ops)
            raise ConnectionLoss(str(loss), written) from None
        return written

    def events(self) -> list[WatchEvent]:
        """Take the watch events that have reached this session since the last call, in ZooKeeper's order."""
        self._require_open()
        return [self._events.popleft() for _ in range(len(self._events))]

    def has_expired(self) -> bool:
        """Return whether the session has ended, once a lost connection is back. Raises `ConnectionLoss` if it stays away."""
        if not self.has_ended and not self._connected.wait(self._patience_s):
            raise ConnectionLoss
        return self.has_ended

    # ------------------------------------------------------------ for KazooZooKeeper

    def sync(self) -> None:
        """Let this session's server catch up with every write so far."""
        self._require_connection()
        self._wait(self._send(Sync(self._chroot or "/")))

    def ask_for_everything(self) -> Reply:
        """A read whose answer comes behind every watch event of every write so far."""
        self._require_connection()
        self._send(Sync(self._chroot or "/"))
        return self._send(Exists(self._chroot or "/", None))

    def mark_after(self, reply: Reply) -> threading.Event:
        """Wait for a reply; the event is set once kazoo's thread has handed over every watch event that came before it."""
        self._wait(reply)
        mark = threading.Event()
        self._handler.dispatch_callback(Callback("mark", mark.set, ()))
        return mark

    def are_ours(self, paths: Sequence[str]) -> list[bool]:
        """Tell of each path whether the ACL of its znode has our owner; False where there is no znode."""
        answers = self._ask(lambda path, _: GetACL(path), paths, watch=False)
        return [answer is not None and any(acl.id == self._ownership for acl in answer[0]) for answer in answers]

    def create_outside(self, path: str) -> str | None:
        """Create a persistent, empty znode by its full path, the chroot included; the name of the error, if any."""
        self._require_connection()
        outcome = self._wait(self._send(Transaction([Create(path, b"", OPEN_ACL_UNSAFE, 0)])))[0]
        return error_name(outcome) if isinstance(outcome, Exception) else None

    def end(self) -> int:
        """Take the session over and close it; the zxid of its end. Our own connection is kept from taking it back."""
        self.has_ended = True
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
        """Ask the server to close the session if it is open, and do not wait for the answer.

        Source: kazoo's `KazooClient.stop`.
        """
        self.has_ended = True
        if not self._kazoo._stopped.is_set():
            self._kazoo._stopped.set()
            self._kazoo._queue.append((CloseInstance, None))
            self._kazoo._connection._write_sock.send(b"\0")

    def close(self, patience_s: float | None = None) -> None:
        """Close the session if it is open, and let go of the connection and of kazoo's threads.

        An exchange that is not over after `patience_s`, or else the patience of this session, is broken off.
        """
        if self._closed:
            return
        self._closed = True
        self.leave()
        has_stopped = self._kazoo._connection.connection_stopped
        if not has_stopped.wait(self._patience_s if patience_s is None else patience_s):
            self._break_off()
            while not has_stopped.wait(BREAK_OFF_AGAIN_S):  # kazoo may have been about to open another connection
                self._break_off()
        self._kazoo._safe_close()
        self._kazoo.close()

    def _break_off(self) -> None:
        """Shut kazoo's connection down, so that its thread, which waits byte by byte, reads no further."""
        with contextlib.suppress(OSError, AttributeError):  # there is no connection, or none any more
            self._kazoo._connection._socket.shutdown(socket.SHUT_RDWR)

    # ------------------------------------------------------------ requests

    def _require_open(self) -> None:
        if self.has_ended:
            raise SessionExpired(f"Session {self.session_id:#x} has ended.")

    def _require_connection(self) -> None:
        """Wait for a lost connection to come back."""
        self._require_open()
        if not self._connected.wait(self._patience_s):
            raise ConnectionLoss
        self._require_open()

    def _full(self, path: str) -> str:
        """The path as the server knows it."""
        require_path(path)
        if not self._chroot:
            return path
        return self._chroot if path == "/" else self._chroot + path

    def _record(self, op: Op) -> Any:
        """Return the wire record of one operation, whose answer is that of a server without a chroot.

        No operation reaches beyond the chroot. A broker's client keeps these answers apart from the chroot too: it checks a path
        before it adds the chroot, and adds none to a deletion of the root. Source: ZooKeeper.create and delete (Java, 3.9).
        """
        require_op(op)
        path = self._full(op.path)
        if op.path == "/" and op.sequential:
            path = self._chroot + "/"  # or else the number would be added to the chroot's own name
        if op.path == "/" and op.kind == "delete":
            path = "/"  # which the server refuses, as it does without a chroot
        if self._chroot and op.kind == "create" and op.path.rfind("/") == 1:  # `//` and `//name`, whose parent is the root
            path = f"{self._chroot}/\x01"  # which the server refuses with BadArguments, as it does without a chroot
        if op.kind == "create":
            return Create(path, op.data, self._acl, op.ephemeral + 2 * op.sequential)
        if op.kind == "set":
            return SetData(path, op.data, op.version)
        return Delete(path, op.version) if op.kind == "delete" else CheckVersion(path, op.version)

    def _send(self, request: Any, on_answer: Callable[[Any], None] | None = None) -> Reply:
        """Queue a request for kazoo's connection thread."""
        reply = Reply(self._handler, self._kazoo, on_answer)
        self._kazoo._call(request, reply)
        return reply

    def _wait(self, reply: Reply) -> Any:
        """The answer to a request; None for a znode that is not there or that no server could have."""
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

    def _ask(self, record: Callable[[str, Any], Any], paths: Sequence[str], watch: bool) -> list[Any]:
        """One pipelined question per path."""
        full = [self._full(path) for path in paths]
        self._require_connection()
        watcher = self._on_event if watch else None
        notes = watch and record is not GetChildren
        replies = [self._send(record(path, watcher), self._noting(path) if notes else None) for path in full]
        return [self._wait(reply) for reply in replies]

    def _noting(self, path: str) -> Callable[[Any], None]:
        """Note whether there was a znode when the watch was left, which SetWatches has to know."""

        def note(answer: Any) -> None:
            (self._missing.add if answer is None else self._missing.discard)(path)

        return note

    def _outcome(self, ops: tuple[Op, ...], results: list[Any], zxid: int) -> Written:
        for index, result in enumerate(results):
            if isinstance(result, Exception) and not isinstance(result, exceptions.RolledBackError):
                return Written(zxid, error_name(result), index, (), ())
        versions: list[int | None] = []
        paths: list[str] = []
        for op, result in zip(ops, results, strict=True):
            versions.append(0 if op.kind == "create" else result.version if op.kind == "set" else None)
            paths.append(result[len(self._chroot) :] if op.kind == "create" else op.path)
            if op.ephemeral:
                self.ephemerals.add(paths[-1])
        return Written(zxid, None, -1, tuple(versions), tuple(paths))

    # ------------------------------------------------------------ called by kazoo's threads

    def _on_event(self, event: Any) -> None:
        """Note a watch event. kazoo calls once per kind of watch that it has used up, with one and the same object."""
        if event is self._last_event or event.type not in _EVENTS:
            return
        self._last_event = event
        self._events.append(WatchEvent(_EVENTS[event.type], event.path[len(self._chroot) :] or "/"))

    def _on_state(self, state: str) -> None:
        """Follow the connection: on its thread, before any request or event that comes after the change."""
        kazoo = self._kazoo
        if state == KazooState.LOST:
            self.has_ended = True
            kazoo._stopped.set()  # or else it would go on with a new session
            self._connected.set()  # whoever waits learns that it has ended
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
