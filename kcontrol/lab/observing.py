"""Somebody's cluster, looked at through its ZooKeeper: each look becomes records, so that every table and picture shows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from kcontrol.effects import SessionExpired, Stat, Znode
from kcontrol.errors import UserError
from kcontrol.lab.moment import Moment
from kcontrol.lab.saying import Shown
from kcontrol.runtime.journal import JOURNAL_VERSION, OUTSIDE, Journal
from kcontrol.runtime.zookeeper import ConnectionLoss
from kcontrol.views import text, zkcli
from kcontrol.znodes import BROKER_IDS, parent

if TYPE_CHECKING:
    from kcontrol.runtime.zk_observe import Observer

Tree = Mapping[str, Znode]
_T = TypeVar("_T")


class Observed(Moment):
    """A cluster that is looked at and never touched. `look` reads everything again; use it as a context manager, or `close` it.

    What is seen is what ZooKeeper says: znodes, who is registered, who rules, who leads. What the brokers believe is not there.
    Between two looks things may have happened that nobody saw: the journal has what differs, in the order of its zxids.
    """

    def __init__(self, observer: Observer, name: str, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._observer, self._now_ms, self._journal = observer, now_ms, Journal()
        super().__init__(self._journal, name)
        self._seen: dict[str, Znode] = {}
        self._incarnations: dict[int, int] = {}
        self._begin(self._tree())

    def look(self) -> Self:
        """Read everything again, and take in what differs. Raises UserError where ZooKeeper has stopped answering."""
        self._take_in(self._tree())
        return self

    def get(self, path: str) -> Shown:
        """A znode with the eleven lines of its Stat, read this moment. Raises UserError where there is none."""
        (znode,) = self._asked(lambda: self._observer.read([path]))
        if znode is None:
            raise UserError(f"There is no znode {path!r}; lab.znodes() lists those that were there at the last look.")
        return Shown(zkcli.format_stat(znode.data, znode.stat))

    def close(self) -> None:
        """End the session. What has been seen can still be looked at."""
        self._observer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        from kcontrol.lab.acting import Acts

        if name in vars(Acts) or name in ("step", "run", "actions"):
            raise UserError(
                f"This cluster is only looked at, so there is no {name} here: open a lab of your own to change things."
            )
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    # ---------------------------------------------------------------- records from looks

    def _tree(self) -> Tree:
        return self._asked(self._observer.tree)

    def _asked(self, ask: Callable[[], _T]) -> _T:
        try:
            return ask()
        except (ConnectionLoss, SessionExpired):
            raise UserError("The ZooKeeper that is looked at does not answer any more: open it again.") from None

    def _begin(self, tree: Tree) -> None:
        """The head of the journal, which names the brokers that are registered at the first look."""
        settings = {"release": "unknown", "seed": 0, "brokers": sorted(_owners(tree).values()), "world": "observed"}
        self._log(OUTSIDE, 0, "run", {"journal_version": JOURNAL_VERSION, **settings})
        self._take_in(tree)

    def _take_in(self, tree: Tree) -> None:
        owners, before = _owners(tree), _owners(self._seen)
        for session in [session for session in before if session not in owners]:
            self._end(before[session], session, tree)
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
        """When what is taken in about this path began: with its creation if that is new, or else with its last change."""
        return stat.mzxid if path in self._seen else stat.czxid

    def _end(self, broker: int, session: int, tree: Tree) -> None:
        """A session that owned a registration is gone, and what else it owned with it."""
        gone = [path for path, node in self._seen.items() if node.stat.ephemeral_owner == session]
        self._log(OUTSIDE, 0, "stop", {"broker": broker, "exit_code": 0})
        self._log(OUTSIDE, 0, "close", {"broker": broker, "session": session, "deleted": gone, "zxid": 0})
        for path in gone:
            del self._seen[path]

    def _put(self, path: str, node: Znode, owners: Mapping[int, int]) -> None:
        """A znode as it is now: created if it was not there, and rewritten up to its version."""
        owner, data = owners.get(node.stat.ephemeral_owner, OUTSIDE), node.data.decode("utf-8", "backslashreplace")
        new = path not in self._seen
        ops: list[list[Any]] = [["create", path, data, 0, bool(node.stat.ephemeral_owner)]] if new else []
        if not new or node.stat.version:
            ops.append(["set", path, data, node.stat.version, False])
        self._write(owner, ops, node.stat.mzxid)

    def _write(self, node: int, ops: list[list[Any]], zxid: int) -> None:
        fields = {"ops": ops, "zxid": zxid, "error": None, "fence": -1}
        self._log(node, self._incarnations.get(node, 0), "write", fields)

    def _log(self, node: int, incarnation: int, kind: str, fields: dict[str, Any]) -> None:
        self._journal.add(node, incarnation, kind, None, self._now_ms(), fields)


def observe(where: str) -> Observed:
    """Look at the cluster behind a ZooKeeper, `host:port[/chroot]`. Raises UserError where there is none to look at."""
    from kcontrol.runtime import zk_observe

    return Observed(zk_observe.observe(where), where)


def report(where: str, *, anybodys: bool) -> Iterator[str]:
    """What is there, line by line, outside text made harmless; `anybodys` also for a cluster that is not a lab's.

    Raises UserError where there is nothing to look at, or something that is not ours and may not be looked at.
    """
    from kcontrol.runtime import zk_observe, zk_safety

    with zk_observe.observe(where) as observer:
        if not anybodys and not zk_safety.is_ours(observer, "/"):
            raise UserError(f"What is at {where} does not bear our marker: look at it with --observe; nothing is written.")
        seen = Observed(observer, where)
    yield seen.summary()
    for path, (data, version, owner) in sorted(seen.state["znodes"].items()):
        whose = f"  (ephemeral, broker {owner})" if owner is not None else ""
        yield text.clean(f"{path}  version {version}{whose}  {data}")


def _owners(tree: Tree) -> dict[int, int]:
    """The broker behind each session that owns a registration, by session."""
    return {
        node.stat.ephemeral_owner: int(name)
        for path, node in tree.items()
        if parent(path) == BROKER_IDS and (name := path.rpartition("/")[2]).isdecimal() and node.stat.ephemeral_owner
    }


def _differs(one: Znode, other: Znode) -> bool:
    return (one.stat.mzxid, one.data) != (other.stat.mzxid, other.data)
