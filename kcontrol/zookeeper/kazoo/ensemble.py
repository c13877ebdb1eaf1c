"""A real ZooKeeper: the class that opens and ends sessions on it, and waits until they have seen every write."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from types import TracebackType

from kazoo.hosts import collect_hosts

from kcontrol.core.effects import Op, SessionExpired, Znode
from kcontrol.core.errors import UserError
from kcontrol.zookeeper.kazoo.session import KazooSession
from kcontrol.zookeeper.kazoo.wire import close_session
from kcontrol.zookeeper.port import IN_USE, MARKER, OF_THE_SERVER, Client, ClosedSession, ConnectionLoss, retry_read

PATIENCE_S = 10.0
OWN_SESSION_TIMEOUT_MS = 18_000


class RootInUse(Exception):
    """Another client that was opened with an `owner` (see KazooZooKeeper) uses the znodes below this chroot."""


class KazooZooKeeper:
    """An ensemble reached over the network; use it as a context manager, or call `close`.

    Args:
        hosts: `host:port[,host:port...]`.
        chroot: the path in front of every path; if it is missing, it is created with its parents.
        patience_s: the longest wait for a server, a reconnection or a response.
        owner: a name in the ACL of every znode that this client creates, "" for no name. Only one client with an owner has a
            chroot open at a time.

    Raises:
        UserError: no ZooKeeper responds there, or the chroot may not be created.
        RootInUse: `owner` is not "", and another client with an owner has the chroot open.
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
        """The server may grant another timeout. Raises UserError without a session in `patience_s`."""
        for ended in [session for session in self._sessions.values() if session.has_ended]:
            self._drop(ended)
        session = self._open(session_timeout_ms)
        self._sessions[session.session_id] = session
        return session

    def end(self, client: Client) -> ClosedSession:
        """End the session of `client` at once; return the zxid of its end and the paths of its deleted ephemeral znodes.

        Raises SessionExpired if the session has ended before.
        """
        # ZooKeeper ends a session early only for a client that closes it: `KazooSession.end` takes the session over and closes
        # it.
        session = self._sessions.get(client.session_id)
        if session is None or session.has_ended:
            raise SessionExpired(f"Session {client.session_id:#x} has ended.")
        paths = sorted(session.ephemerals if session.knows_its_ephemerals else self.tree())
        stats = zip(paths, retry_read(lambda: self._synced().exists(paths, watch=False)), strict=True)
        deleted = [path for path, stat in stats if stat and stat.ephemeral_owner == session.session_id]
        try:
            return ClosedSession(session.end(), tuple(deleted))
        finally:
            self._drop(session)

    def settle(self) -> None:
        """Until each open session has the watch events of all writes so far."""
        retry_read(self._settle)

    def tree(self) -> dict[str, Znode]:
        """Every znode but `/.kcontrol` and `/zookeeper`, sorted by path; two round trips per level."""
        return retry_read(self._tree)

    def are_ours(self, paths: Sequence[str]) -> list[bool]:
        """Return for each path whether its znode's ACL has the entry that marks znodes of this lab; False for a missing znode."""
        return retry_read(lambda: self._synced().are_ours(paths))

    # ------------------------------------------------------------ open and close

    def close(self) -> None:
        """All sessions together get `patience_s` seconds. A second call does nothing."""
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
        """Return this object's own session after a sync, so that reads in this session show every write so far.

        Open a new session if the session has expired. Raises SessionExpired if this object is closed.
        """
        if self._closed:
            raise SessionExpired("This ZooKeeper client has been closed.")
        if self._own_session.has_ended:
            self._own_session.close()
            self._own_session = self._open(OWN_SESSION_TIMEOUT_MS)
            if self._owner and not self._hold_root():
                raise UserError(f"Another lab uses {self.hosts}{self.chroot} now: close this lab and open another one.")
        self._own_session.sync()
        return self._own_session

    def _settle(self) -> None:
        barriers = []
        for session in list(self._sessions.values()):
            with contextlib.suppress(SessionExpired):
                barriers.append((session, session.request_barrier()))
        marks = []
        for session, reply in barriers:
            with contextlib.suppress(SessionExpired):
                marks.append(session.mark_after(reply))
        for mark in marks:
            if not mark.wait(self._patience_s):
                raise ConnectionLoss

    def _tree(self) -> dict[str, Znode]:
        own = self._synced()
        hidden = (MARKER,) if self.chroot else (MARKER, OF_THE_SERVER)  # with all znodes below
        found: dict[str, Znode] = {}
        parents = ["/"]
        while parents:
            families = zip(parents, own.children(parents, watch=False), strict=True)
            paths = [f"{parent.rstrip('/')}/{name}" for parent, names in families for name in names or ()]
            paths = [path for path in paths if path not in hidden]
            level = {path: node for path, node in zip(paths, own.read(paths, watch=False), strict=True) if node}
            found.update(level)
            parents = [path for path, node in level.items() if node.stat.num_children]
        return dict(sorted(found.items()))

    def _hold_root(self) -> bool:
        """Reserve the chroot for this client by the ephemeral znode `/.kcontrol/in-use`; return whether it could be created."""
        return self._own_session.write([(Op("create", IN_USE, ephemeral=True),)])[0].error is None

    def _make_chroot(self) -> None:
        if not self.chroot or self._own_session.exists(["/"], watch=False)[0]:
            return
        names = self.chroot.split("/")
        for depth in range(2, len(names) + 1):
            path = "/".join(names[:depth])
            error = self._own_session.create_outside(path)
            if error not in (None, "NodeExists"):
                raise UserError(f"ZooKeeper {self.hosts} refuses to create the chroot {path} ({error}): choose another chroot.")


def _require_zookeeper(hosts: str, patience_s: float) -> None:
    """Raise UserError if no ZooKeeper can be reached within `patience_s`; kazoo would try for ever."""
    try:
        close_session(collect_hosts(hosts)[0], patience_s)
    except (TimeoutError, ConnectionResetError, ValueError) as problem:
        raise UserError(f"The server at {hosts} does not respond like a ZooKeeper ({problem}): check host and port.") from None
    except OSError as problem:
        raise UserError(
            f"No ZooKeeper can be reached at {hosts} ({problem.strerror or problem}): "
            "start one with `kcontrol zk start`, or name another one with --zookeeper host:port."
        ) from None
