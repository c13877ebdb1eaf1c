"""A real ZooKeeper: sessions are opened on it, ended and waited for."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from types import TracebackType

from kazoo.hosts import collect_hosts

from kcontrol.effects import Op, SessionExpired, Znode
from kcontrol.errors import UserError
from kcontrol.runtime.zk_kazoo.session import KazooSession
from kcontrol.runtime.zk_kazoo.wire import close_session
from kcontrol.runtime.zookeeper import IN_USE, MARKER, OF_THE_SERVER, Client, Closed, ConnectionLoss, ask_twice

PATIENCE_S = 10.0
OWN_SESSION_TIMEOUT_MS = 18_000


class RootInUse(Exception):
    """Another client has opened this root with an owner, and still has."""


class KazooZooKeeper:
    """An ensemble reached over the network; use it as a context manager, or call `close`.

    Args:
        hosts: `host:port[,host:port...]`.
        chroot: the path that is put in front of every path; created with its parents where it is missing.
        patience_s: how long to wait for a server, a reconnection or an answer.
        owner: the name that the ACL of every znode gets which is created here; no other client opens the root meanwhile.

    Raises:
        UserError: nothing there answers as a ZooKeeper, or the chroot may not be created.
        RootInUse: another client has the root open, with an owner as well.
    """

    def __init__(self, hosts: str, chroot: str = "", patience_s: float = PATIENCE_S, owner: str = "") -> None:
        self.hosts = hosts
        self.chroot = chroot.rstrip("/")
        self._owner = owner
        self._patience_s = patience_s
        self._sessions: dict[int, KazooSession] = {}
        self._closed = False
        _require_zookeeper(hosts, patience_s)
        self._own_session = self._open(OWN_SESSION_TIMEOUT_MS)
        try:
            self._make_chroot()
            if owner and not self._hold_root():
                raise RootInUse
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------ the port

    def connect(self, session_timeout_ms: int = 18_000) -> KazooSession:
        """Open a session. The server may grant another timeout. Raises `UserError` if none is granted in time."""
        for ended in [session for session in self._sessions.values() if session.has_ended]:
            self._drop(ended)
        session = self._open(session_timeout_ms)
        self._sessions[session.session_id] = session
        return session

    def end(self, client: Client) -> Closed:
        """End a session by taking it over and closing it: the server does what it does at expiry, but at once.

        Raises `SessionExpired` if it has ended already.
        """
        session = self._sessions.get(client.session_id)
        if session is None or session.has_ended:
            raise SessionExpired(f"Session {client.session_id:#x} has ended.")
        paths = sorted(session.ephemerals if session.knows_its_ephemerals else self.tree())
        stats = zip(paths, ask_twice(lambda: self._synced().exists(paths, watch=False)), strict=True)
        deleted = [path for path, stat in stats if stat and stat.ephemeral_owner == session.session_id]
        try:
            return Closed(session.end(), tuple(deleted))
        finally:
            self._drop(session)

    def settle(self) -> None:
        """Wait until every open session has seen every write so far and its watch events can be taken. Never sleeps.

        A session that turns out to have expired is passed over; its next call says so.
        """
        ask_twice(self._settle)

    def tree(self) -> dict[str, Znode]:
        """Return every znode below the root by path in sorted order, but neither our marker nor the server's own `/zookeeper`.

        Two pipelined rounds for each level of the tree.
        """
        return ask_twice(self._tree)

    def are_ours(self, paths: Sequence[str]) -> list[bool]:
        """Tell of each path whether the ACL of its znode has our owner; False where there is no znode."""
        return ask_twice(lambda: self._synced().are_ours(paths))

    # ------------------------------------------------------------ its own life

    def close(self) -> None:
        """Close every session as a client does that leaves in order; no thread is left. A second call does nothing.

        The patience is for all sessions together.
        """
        self._closed = True
        sessions = [*self._sessions.values(), self._own_session]
        for session in sessions:
            session.leave()
        deadline_s = time.monotonic() + self._patience_s
        for session in sessions:
            session.close(patience_s=max(0.0, deadline_s - time.monotonic()))
        self._sessions.clear()

    def __enter__(self) -> KazooZooKeeper:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _open(self, session_timeout_ms: int) -> KazooSession:
        return KazooSession(self.hosts, self.chroot, session_timeout_ms, self._patience_s, self._owner)

    def _drop(self, session: KazooSession) -> None:
        session.close()
        del self._sessions[session.session_id]

    def _synced(self) -> KazooSession:
        """A session of our own whose server has seen every write so far. After a long stop of this process it is a new one."""
        if self._closed:
            raise SessionExpired("This ZooKeeper client has been closed.")
        if self._own_session.has_ended:
            self._own_session.close()
            self._own_session = self._open(OWN_SESSION_TIMEOUT_MS)
            if self._owner and not self._hold_root():
                raise UserError(f"Another lab works on {self.hosts}{self.chroot} by now: close this lab and open another one.")
        self._own_session.sync()
        return self._own_session

    def _settle(self) -> None:
        asked = []
        for session in list(self._sessions.values()):
            with contextlib.suppress(SessionExpired):
                asked.append((session, session.ask_for_everything()))
        marks = []
        for session, reply in asked:
            with contextlib.suppress(SessionExpired):
                marks.append(session.mark_after(reply))
        for mark in marks:
            if not mark.wait(self._patience_s):
                raise ConnectionLoss

    def _tree(self) -> dict[str, Znode]:
        own = self._synced()
        left_out = (MARKER,) if self.chroot else (MARKER, OF_THE_SERVER)  # with all that is below
        found: dict[str, Znode] = {}
        parents = ["/"]
        while parents:
            families = zip(parents, own.children(parents, watch=False), strict=True)
            paths = [f"{parent.rstrip('/')}/{name}" for parent, names in families for name in names or ()]
            paths = [path for path in paths if path not in left_out]
            level = {path: node for path, node in zip(paths, own.read(paths, watch=False), strict=True) if node}
            found.update(level)
            parents = [path for path, node in level.items() if node.stat.num_children]
        return dict(sorted(found.items()))

    def _hold_root(self) -> bool:
        """Create the ephemeral znode that keeps other labs from this root; False if it exists already or may not be created."""
        return self._own_session.write([(Op("create", IN_USE, ephemeral=True),)])[0].error is None

    def _make_chroot(self) -> None:
        if not self.chroot or self._own_session.exists(["/"], watch=False)[0]:
            return
        names = self.chroot.split("/")
        for depth in range(2, len(names) + 1):
            path = "/".join(names[:depth])
            error = self._own_session.create_outside(path)
            if error not in (None, "NodeExists"):
                raise UserError(f"ZooKeeper {self.hosts} lets nobody create the chroot {path} ({error}): choose another chroot.")


def _require_zookeeper(hosts: str, patience_s: float) -> None:
    """Raise `UserError` at once where nothing is to be reached; kazoo would go on trying."""
    try:
        close_session(collect_hosts(hosts)[0], patience_s)
    except (TimeoutError, ConnectionResetError, ValueError) as problem:
        raise UserError(
            f"What listens at {hosts} does not answer as a ZooKeeper does ({problem}): check host and port."
        ) from None
    except OSError as problem:
        raise UserError(
            f"No ZooKeeper can be reached at {hosts} ({problem.strerror or problem}): "
            "start one with `kcontrol zk start`, or name another one with --zookeeper host:port."
        ) from None
