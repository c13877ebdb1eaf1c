"""kazoo's own client in a learner's hands: what is around it lets one cut its line, end its session, and wait for its news."""

from __future__ import annotations

import logging
import threading
from typing import Any

from kazoo.client import KazooClient
from kazoo.hosts import collect_hosts
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from kcontrol.errors import UserError
from kcontrol.runtime.zk_kazoo.relay import PATIENCE_S, Relay
from kcontrol.runtime.zk_kazoo.wire import close_session

SESSION_TIMEOUT_S = 30.0
_LOG = logging.getLogger("kcontrol.kazoo.hands")
_LOG.addHandler(logging.NullHandler())
_LOG.propagate = False


class Hand:
    """A client of a real ZooKeeper, on a line of its own.

    `kazoo` is kazoo's client, started. Raises UserError where no session is granted in time.
    """

    def __init__(self, hosts: str, chroot: str) -> None:
        (server, *_), _ = collect_hosts(hosts)
        self._server, self._chroot = server, chroot
        self._relay = Relay(server)
        again = KazooRetry(max_tries=-1, delay=0.05, max_delay=0.5)  # however long the line was cut, not much longer after that
        where = f"{self._relay.hosts}{chroot}"
        self.kazoo: Any = KazooClient(where, timeout=SESSION_TIMEOUT_S, connection_retry=again, logger=_LOG)
        self._states: list[str] = []
        self._changed = threading.Condition()
        self.kazoo.add_listener(self._note)
        try:
            self.kazoo.start(PATIENCE_S)
        except self.kazoo.handler.timeout_exception:
            self.close()
            raise UserError(f"ZooKeeper {hosts} has granted no session in {PATIENCE_S:g} s: check that it runs.") from None

    @property
    def session_id(self) -> int:
        """The session that it works in, or takes itself to work in."""
        return int(self.kazoo._session_id)

    @property
    def watched(self) -> set[tuple[str, str]]:
        """Kind and path of each watch that waits for news."""
        tables = {"data": self.kazoo._data_watchers, "children": self.kazoo._child_watchers}
        return {
            (kind, path.removeprefix(self._chroot) or "/")
            for kind, table in tables.items()
            for path, watches in table.items()
            if watches
        }

    def cut(self) -> None:
        """End the line; returns when the client has told its listeners so, and has been turned away at its next try."""
        self._relay.cut()
        self._wait_for(KazooState.SUSPENDED)
        self._relay.turned_away.wait(PATIENCE_S)

    def mend(self) -> None:
        """Mend the line; returns when the client is connected, by the old session or by another."""
        self._relay.mend()
        self._wait_for(KazooState.CONNECTED)

    def expire(self) -> None:
        """The server ends the session, as it does when the timeout has passed; the client does not know yet."""
        close_session([self._server], PATIENCE_S, self.kazoo._session_id, self.kazoo._session_passwd)

    def drain(self) -> None:
        """Returns when all news of every write so far has been told to those who watch here."""
        if self.kazoo.state != KazooState.CONNECTED:
            return
        self.kazoo.sync("/")
        told = threading.Event()
        self.kazoo.handler.callback_queue.put(told.set)
        told.wait(PATIENCE_S)

    def close(self) -> None:
        """Leave in order, if there is still a line; no thread is left."""
        self._relay.mend()
        self.kazoo.stop()
        self.kazoo.close()
        self._relay.close()

    def _note(self, state: str) -> None:
        with self._changed:
            self._states.append(state)
            self._changed.notify_all()

    def _wait_for(self, state: str) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._states[-1:] == [state], PATIENCE_S):
                raise UserError(f"The client has not come to be {state} in {PATIENCE_S:g} s; it is {self.kazoo.state}.")


class TwinHand:
    """The same around a client of the ZooKeeper in this process."""

    def __init__(self, zookeeper: Any) -> None:
        from kcontrol.runtime.zk_kazoo.twin import KazooTwin

        self.kazoo = KazooTwin(zookeeper)

    @property
    def session_id(self) -> int:
        """The session that it works in, or takes itself to work in."""
        return self.kazoo.client_id[0]

    @property
    def watched(self) -> set[tuple[str, str]]:
        """Kind and path of each watch that waits for news."""
        return {place for place, watches in self.kazoo.watchers.items() if watches}

    def cut(self) -> None:
        """End the line."""
        self.kazoo.become(KazooState.SUSPENDED)

    def mend(self) -> None:
        """Mend it: go on in the session, or learn that it has ended."""
        self.kazoo.reconnect()

    def expire(self) -> None:
        """End the session; the client does not know yet."""
        self.kazoo.expire()

    def drain(self) -> None:
        """Tell all news to those who watch here."""
        self.kazoo.hear()

    def close(self) -> None:
        """Leave in order."""
        self.kazoo.stop()
