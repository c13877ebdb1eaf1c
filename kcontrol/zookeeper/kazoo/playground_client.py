"""kazoo's own client for `lab.playground`, with commands that cut its connection, end its session and await notifications."""

import contextlib
import logging
import socket
import threading
from typing import Any

from kazoo.client import KazooClient
from kazoo.hosts import collect_hosts
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from kcontrol.core.errors import UserError
from kcontrol.zookeeper.kazoo.wire import close_session

SESSION_TIMEOUT_S = 30.0
PATIENCE_S = 10.0
_LOG = logging.getLogger("kcontrol.kazoo.playground")
_LOG.addHandler(logging.NullHandler())
_LOG.propagate = False


class Relay:
    """Forwards bytes between clients and the server at the address `server`, until `cut` ends every connection.

    Clients connect to the address `hosts`. After `cut` new connections are refused until `mend`.
    """

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.hosts = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._links: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._is_cut = False
        self.has_refused = threading.Event()  # set when a connection was refused since the last cut
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def cut(self) -> None:
        """End every connection and refuse new connections until `mend`."""
        with self._lock:
            self._is_cut = True
            self.has_refused.clear()
            links, self._links = self._links, set()
        for link in links:
            _end(link)

    def mend(self) -> None:
        """Accept connections to the port again, after `cut` has ended all of them."""
        self._is_cut = False

    def close(self) -> None:
        """Refuse connections for ever and end all threads. A second call does nothing."""
        self.cut()
        _end(self._listener)
        for thread in self._threads:
            thread.join(PATIENCE_S)
        self._threads.clear()

    def _start(self, target: object, *arguments: socket.socket) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._server, PATIENCE_S)
            except OSError:
                _end(near)
                continue
            far.settimeout(None)
            with self._lock:
                refused = self._is_cut
                self._links |= set() if refused else {near, far}
            if refused:
                _end(near, far)
                self.has_refused.set()
                continue
            self._start(self._forward, near, far)
            self._start(self._forward, far, near)

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(65_536):
                sink.sendall(part)
        _end(source, sink)


def _end(*links: socket.socket) -> None:
    for link in links:
        with contextlib.suppress(OSError):
            link.shutdown(socket.SHUT_RDWR)
        link.close()


class KazooPlaygroundClient:
    """A started kazoo client, `kazoo`, of the first server in `hosts`, with paths below `chroot`; its connection can be cut.

    Raises UserError if ZooKeeper grants no session in time.
    """

    def __init__(self, hosts: str, chroot: str) -> None:
        (server, *_), _ = collect_hosts(hosts)
        self._server, self._chroot = server, chroot
        self._relay = Relay(server)
        retry = KazooRetry(max_tries=-1, delay=0.05, max_delay=0.5)  # a restored connection is found soon, even after a long cut
        address = f"{self._relay.hosts}{chroot}"
        self.kazoo: Any = KazooClient(address, timeout=SESSION_TIMEOUT_S, connection_retry=retry, logger=_LOG)
        self._states: list[str] = []
        self._changed = threading.Condition()
        self.kazoo.add_listener(self._record_state)
        try:
            self.kazoo.start(PATIENCE_S)
        except self.kazoo.handler.timeout_exception:
            self.close()
            raise UserError(f"ZooKeeper {hosts} has granted no session in {PATIENCE_S:g} s: check that it runs.") from None

    @property
    def session_id(self) -> int:
        """The id of the client's session, as a number; the server may have ended this session already."""
        return int(self.kazoo._session_id)

    @property
    def watched(self) -> set[tuple[str, str]]:
        """The kind ("data" or "children") and the path of each watch that has not fired."""
        tables = {"data": self.kazoo._data_watchers, "children": self.kazoo._child_watchers}
        every = ((kind, path, watches) for kind, table in tables.items() for path, watches in table.items())
        return {(kind, path.removeprefix(self._chroot) or "/") for kind, path, watches in every if watches}

    def cut(self) -> None:
        """Cut the connection. Return after the client has called its listeners with "SUSPENDED" and has failed to reconnect."""
        self._relay.cut()
        self._wait_for(KazooState.SUSPENDED)
        self._relay.has_refused.wait(PATIENCE_S)

    def mend(self) -> None:
        """Restore the connection. Return when the client is connected, in the old session or in a new one."""
        self._relay.mend()
        self._wait_for(KazooState.CONNECTED)

    def expire(self) -> None:
        """End the session at the server, as a passed timeout does; the client, once connected, gets the expiry."""
        close_session([self._server], PATIENCE_S, self.kazoo._session_id, self.kazoo._session_passwd)

    def drain(self) -> None:
        """Wait until this client's watches have been called for every write so far; without a connection do not wait."""
        if self.kazoo.state != KazooState.CONNECTED:
            return
        self.kazoo.sync("/")
        delivered = threading.Event()
        self.kazoo.handler.callback_queue.put(delivered.set)
        delivered.wait(PATIENCE_S)

    def close(self) -> None:
        """Close the session and end all threads."""
        self._relay.mend()
        self.kazoo.stop()
        self.kazoo.close()
        self._relay.close()

    def _record_state(self, state: str) -> None:
        with self._changed:
            self._states.append(state)
            self._changed.notify_all()

    def _wait_for(self, state: str) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._states[-1:] == [state], PATIENCE_S):
                raise UserError(f"The client is {self.kazoo.state}, not {state}, after {PATIENCE_S:g} s: run the cell again.")


class MemoryPlaygroundClient:
    """A client of the ZooKeeper in this process, with the methods of KazooPlaygroundClient."""

    def __init__(self, zookeeper: Any) -> None:
        from kcontrol.zookeeper.kazoo.memory_client import MemoryKazooClient

        self.kazoo = MemoryKazooClient(zookeeper)

    @property
    def session_id(self) -> int:
        """The id of the client's session, as a number; this session may have ended already."""
        return self.kazoo.client_id[0]

    @property
    def watched(self) -> set[tuple[str, str]]:
        """The kind ("data" or "children") and the path of each watch that has not fired."""
        return {kind_and_path for kind_and_path, watches in self.kazoo.watchers.items() if watches}

    def cut(self) -> None:
        """Cut the connection; the client calls its listeners with "SUSPENDED"."""
        self.kazoo.set_state(KazooState.SUSPENDED)

    def mend(self) -> None:
        """Restore the connection: continue the session or, if it has ended, open a new one."""
        self.kazoo.reconnect()

    def expire(self) -> None:
        """End the session in ZooKeeper; the client receives the expiry when `mend` connects it again."""
        self.kazoo.expire()

    def drain(self) -> None:
        """Call this client's watches for every write so far."""
        self.kazoo.deliver_notifications()

    def close(self) -> None:
        """Close the client's session, which deletes the client's ephemeral znodes."""
        self.kazoo.stop()
