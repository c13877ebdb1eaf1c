"""Observes a real cluster read-only through its ZooKeeper.

Each observation is converted into journal records, so all tables and pictures of a run work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from kcontrol.core.effects import SessionExpired, Stat, Znode
from kcontrol.core.errors import UserError
from kcontrol.core.znodes import BROKER_IDS, parent
from kcontrol.journal.journal import JOURNAL_VERSION, OUTSIDE, Journal
from kcontrol.lab.namespaces import Namespace
from kcontrol.lab.run import Run
from kcontrol.lab.support.output import Shown
from kcontrol.views import text, zkcli
from kcontrol.zookeeper.port import ConnectionLoss

if TYPE_CHECKING:
    from kcontrol.zookeeper.kazoo.observe import Observer

Tree = Mapping[str, Znode]
_T = TypeVar("_T")


COMMANDS = ("step", "run", "run_event", "actions", "network", "disks", "group")


class NotHere(UserError, AttributeError):
    """The error for a command of labs that an observed cluster does not have, because such a cluster is only read."""


class ObservedZk(Namespace[Any], owner="observed.zk"):
    """Znodes of an observed cluster, read from ZooKeeper at the moment of the call.

    observed.zk.get(path)  a znode's data and its Stat
    """

    def get(self, path: str) -> Shown:
        """Return a znode with the eleven lines of its Stat, read now. Raises UserError if there is no such znode."""
        found: Shown = self._lab._get(path)
        return found


class Observed(Run, owner="observed"):
    """A cluster that is only read: `look` reads ZooKeeper again, `close` or the end of a `with` block ends the session.

    The state has what ZooKeeper stores, and no memory of brokers.
    """

    # Between two observations a znode may have changed several times: the journal has the difference only, in the order of
    # zxids.
    def __init__(self, observer: Observer, name: str, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._observer, self._now_ms, self._journal = observer, now_ms, Journal()
        super().__init__(self._journal, name)
        self._seen: dict[str, Znode] = {}
        self._incarnations: dict[int, int] = {}
        self._begin(self._tree())

    def look(self) -> Self:
        """Read ZooKeeper again, add a journal record for each difference, and return this cluster.

        Raises UserError if ZooKeeper does not respond.
        """
        self._take_in(self._tree())
        return self

    @property
    def zk(self) -> ObservedZk:
        """Znodes, read from ZooKeeper at the moment of the call."""
        return ObservedZk(self)

    def _get(self, path: str) -> Shown:
        (znode,) = self._asked(lambda: self._observer.read([path]))
        if znode is None:
            raise UserError(f"There is no znode {path!r}; tables.znodes() lists the znodes of the last look.")
        return Shown(zkcli.format_stat(znode.data, znode.stat))

    def close(self) -> None:
        """End the session with ZooKeeper. Records, tables and pictures of the cluster remain."""
        self._observer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    if not TYPE_CHECKING:  # with it mypy would accept every name as an attribute

        def __getattr__(self, name: str) -> Any:
            from kcontrol.lab.operations import Operations

            if name in COMMANDS or name in vars(Operations):
                raise NotHere(
                    f"An observed cluster is only read, so it has no {name}: open a lab of your own to change a cluster."
                )
            return super().__getattr__(name)

    # ---------------------------------------------------------------- records from observations

    def _tree(self) -> Tree:
        return self._asked(self._observer.tree)

    def _asked(self, ask: Callable[[], _T]) -> _T:
        try:
            return ask()
        except (ConnectionLoss, SessionExpired):
            raise UserError("The observed ZooKeeper does not respond any more: call Lab.observe again.") from None

    def _begin(self, tree: Tree) -> None:
        """With the registered brokers, and the records of the first observation."""
        settings = {"release": "unknown", "seed": 0, "brokers": sorted(_owners(tree).values()), "world": "observed"}
        self._log(OUTSIDE, 0, "run", {"journal_version": JOURNAL_VERSION, **settings})
        self._take_in(tree)

    def _take_in(self, tree: Tree) -> None:
        owners, before = _owners(tree), _owners(self._seen)
        for session in [session for session in before if session not in owners]:
            self._end(before[session], session)
        for session, broker in owners.items():
            if session not in before:
                self._incarnations[broker] = self._incarnations.get(broker, 0) + 1
                self._log(OUTSIDE, 0, "start", {"broker": broker, "incarnation": self._incarnations[broker]})
                self._log(broker, self._incarnations[broker], "open", {"session": session})
        for path in sorted(self._seen, reverse=True):
            if path not in tree or tree[path].stat.czxid != self._seen[path].stat.czxid:
                self._write(OUTSIDE, [["delete", path, "", None, False]], 0)
                del self._seen[path]
        changed = [path for path, node in tree.items() if path not in self._seen or _differs(node, self._seen[path])]
        for path in sorted(changed, key=lambda path: (self._zxid(path, tree[path].stat), path)):
            self._put(path, tree[path], owners)
        self._seen = dict(tree)

    def _zxid(self, path: str, stat: Stat) -> int:
        """Orders the writes of one observation: of a new znode the zxid of its creation, else that of its last change."""
        # The caller orders equal zxids by path.
        return stat.mzxid if path in self._seen else stat.czxid

    def _end(self, broker: int, session: int) -> None:
        """A registration is gone: the end of its process, and of its session with its ephemeral znodes."""
        gone = [path for path, node in self._seen.items() if node.stat.ephemeral_owner == session]
        self._log(OUTSIDE, 0, "stop", {"broker": broker, "exit_code": 0})
        self._log(OUTSIDE, 0, "close", {"broker": broker, "session": session, "deleted": gone, "zxid": 0})
        for path in gone:
            del self._seen[path]

    def _put(self, path: str, node: Znode, owners: Mapping[int, int]) -> None:
        """Add a `write` record for the znode `path`, which is new or changed since the last observation."""
        # A znode that such a session owns was written by this broker, any other by a client that is no broker.
        owner, data = owners.get(node.stat.ephemeral_owner, OUTSIDE), node.data.decode("utf-8", "backslashreplace")
        new = path not in self._seen
        ops: list[list[Any]] = [["create", path, data, 0, bool(node.stat.ephemeral_owner)]] if new else []
        # A new znode whose zk version shows later changes has a create and a set.
        if not new or node.stat.version:
            ops.append(["set", path, data, node.stat.version, False])
        self._write(owner, ops, node.stat.mzxid)

    def _write(self, node: int, ops: list[list[Any]], zxid: int) -> None:
        fields = {"ops": ops, "zxid": zxid, "error": None, "epoch_zk_version": -1}
        self._log(node, self._incarnations.get(node, 0), "write", fields)

    def _log(self, node: int, incarnation: int, kind: str, fields: dict[str, Any]) -> None:
        self._journal.add(node, incarnation, kind, None, self._now_ms(), fields)


def observe(where: str) -> Observed:
    """Return the cluster behind the ZooKeeper at `where` (`host:port[/chroot]`), as a run that is only read.

    Raises UserError if there is no cluster.
    """
    from kcontrol.zookeeper.kazoo import observe

    return Observed(observe.observe(where), where)


def report(where: str, *, any_cluster: bool) -> Iterator[str]:
    """Yield a summary of the cluster at ZooKeeper's address `where`, then one line per znode.

    Raises UserError if there is no cluster and, if `any_cluster` is False, for a cluster that no lab has started.
    """
    from kcontrol.zookeeper.kazoo import observe, root_protection

    with observe.observe(where) as observer:
        # A lab writes the znode `/.kcontrol` when it starts a cluster.
        if not any_cluster and not root_protection.is_ours(observer, "/"):
            raise UserError(f"No lab wrote the znodes at {where}: add --observe to read another cluster; nothing is written.")
        seen = Observed(observer, where)
    yield seen.summary()
    for path, (data, version, owner) in sorted(seen.state["znodes"].items()):
        whose = f"  (ephemeral, broker {owner})" if owner is not None else ""
        yield text.clean(f"{path}  version {version}{whose}  {data}")


def _owners(tree: Tree) -> dict[int, int]:
    """Return the broker of each session that owns a znode below `/brokers/ids`, by session id; `tree` has every znode by path."""
    return {
        node.stat.ephemeral_owner: int(name)
        for path, node in tree.items()
        if parent(path) == BROKER_IDS and (name := path.rpartition("/")[2]).isdecimal() and node.stat.ephemeral_owner
    }


def _differs(one: Znode, other: Znode) -> bool:
    return (one.stat.mzxid, one.data) != (other.stat.mzxid, other.data)
