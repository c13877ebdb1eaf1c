"""A ZooKeeper to play with, and clients of it in the learner's own hands: kazoo's, or the like of them in this process."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from kcontrol.effects import Znode
from kcontrol.errors import UserError
from kcontrol.lab import stage
from kcontrol.lab.saying import say
from kcontrol.runtime.zk_memory import MemoryZooKeeper
from kcontrol.views.diagrams import Diagram
from kcontrol.views.graphs import Arrow, Box, graph
from kcontrol.views.text import clean

LONGEST = 24


class Playground:
    """An empty tree of znodes, in the world "simulated" or "zookeeper"; if it cannot be had, in the one named by `otherwise`.

    Raises UserError for a world that does not exist, or that cannot be had.
    """

    def __init__(self, world: str = "simulated", otherwise: str | None = None, seed: int = 1) -> None:
        for name in filter(None, (world, otherwise)):
            if name not in stage.WORLDS:
                raise UserError(f"There is no world {name!r}; there are {' and '.join(map(repr, stage.WORLDS))}.")
        self._closing, self._hands, self.world = ExitStack(), dict[str, Any](), world
        if world == "zookeeper":
            try:
                self._zookeeper: Any = stage.ensemble(seed, None, self._closing)
                atexit.register(self.close)
                return
            except UserError as problem:
                if otherwise != "simulated":
                    raise
                say(f"{problem} Until then these cells run in the simulated world.")
        self._zookeeper, self.world = MemoryZooKeeper(lambda: 0), "simulated"

    def kazoo(self, name: str) -> Any:
        """A client with a session of its own, started: kazoo's KazooClient, or its like in this process.

        Raises UserError for a name that is taken.
        """
        from kcontrol.runtime.zk_kazoo.hands import Hand, TwinHand

        if name in self._hands:
            raise UserError(f"There is a client {name!r} already; the names are {', '.join(self._hands)}.")
        real = self.world == "zookeeper"
        self._hands[name] = Hand(self._zookeeper.hosts, self._zookeeper.chroot) if real else TwinHand(self._zookeeper)
        return self._hands[name].kazoo

    # ---------------------------------------------------------------- what happens to clients

    def settle(self) -> Playground:
        """Return when everybody has heard everything: until then one knows what has been written, not who has been told."""
        for _ in range(3):  # news may make a watch write, which is news to others
            for hand in self._hands.values():
                hand.drain()
        return self

    def cut(self, name: str) -> Playground:
        """Cut the line between a client and ZooKeeper."""
        self._hand(name).cut()
        return self

    def mend(self, name: str) -> Playground:
        """Mend it: the client goes on in its session, or learns that it has ended and opens another."""
        self._hand(name).mend()
        return self.settle()

    def time_out(self, name: str) -> Playground:
        """Let the session's timeout pass for a client whose line is cut: ZooKeeper ends the session.

        Raises UserError where the line is not cut.
        """
        hand = self._hand(name)
        if hand.kazoo.state != "SUSPENDED":
            raise UserError(f'The line of {name} is not cut, so its session goes on: ground.cut("{name}") first.')
        hand.expire()
        return self.settle()

    def _hand(self, name: str) -> Any:
        if name not in self._hands:
            raise UserError(f"There is no client {name!r}; there are {', '.join(self._hands) or 'none yet'}.")
        return self._hands[name]

    def close(self) -> None:
        """End every session, and the server. A second call does nothing."""
        for hand in self._hands.values():
            hand.close()
        self._hands.clear()
        self._closing.close()

    # ---------------------------------------------------------------- looking

    def tree(self) -> Mapping[str, Znode]:
        """Every znode, by path."""
        found: Mapping[str, Znode] = self._zookeeper.tree()
        return found

    def owner(self, path: str) -> str | None:
        """The client whose session a znode belongs to, None where it belongs to nobody. Raises UserError where there is none."""
        znode = self.tree().get(path)
        if znode is None:
            raise UserError(f"There is no {path}; there are {', '.join(self.tree()) or 'no znodes'}.")
        return self._owner(znode)

    def _owner(self, znode: Znode) -> str | None:
        sessions = {hand.session_id: name for name, hand in self._hands.items()}
        return sessions.get(znode.stat.ephemeral_owner)

    def diagram(self) -> Diagram:
        """Clients and their state, znodes with data and version, who owns what and who watches what."""
        tree = self.tree()
        boxes = [Box(f"client {n}", (n, str(h.kazoo.state)), "current" if h.watched else "") for n, h in self._hands.items()]
        boxes += [Box(path, _told(path, znode), "full" if self._owner(znode) else "") for path, znode in tree.items()]
        arrows = [Arrow(f"client {self._owner(z)}", path, "owns") for path, z in tree.items() if self._owner(z)]
        for name, hand in self._hands.items():
            for kind, path in sorted(hand.watched):
                if path not in tree and path not in {box.key for box in boxes}:
                    boxes.append(Box(path, (path, "is missing")))
                arrows.append(Arrow(f"client {name}", path, f"watches its {kind}"))
        return graph("playground", boxes or [Box("empty", ("nothing yet",))], arrows)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        return self.diagram()._repr_mimebundle_(**kwargs)

    def __repr__(self) -> str:
        return self.diagram().outline()


def _told(path: str, znode: Znode) -> tuple[str, ...]:
    data = clean(znode.data.decode(errors="replace"), LONGEST)
    return (path, *([data] if data else []), f"version {znode.stat.version}")
