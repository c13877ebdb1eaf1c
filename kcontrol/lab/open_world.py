"""Opens the World of a lab, a cluster on a simulated or real ZooKeeper.

The end of the lab closes the servers and sessions that this module has opened.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.core.errors import UserError
from kcontrol.lab.support import arguments
from kcontrol.lab.support.output import say
from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper

if TYPE_CHECKING:
    from kcontrol.zookeeper.kazoo import KazooZooKeeper

Real = TypeVar("Real")
WORLDS = ("simulated", "zookeeper")


class OpenWorld(NamedTuple):
    """A world, the stack that closes its servers and sessions, and its ZooKeeper's address, None for a ZooKeeper in memory."""

    world: World
    closing: ExitStack
    address: str | None


class _SharedServer:
    """One ZooKeeper server for all labs of this Python process: it starts with the first of these labs and ends with the last."""

    def __init__(self) -> None:
        self._users, self._server = 0, EmbeddedZooKeeper()
        self._roots: Counter[int] = Counter()

    @contextmanager
    def root(self, seed: int) -> Iterator[tuple[str, str]]:
        """Yield the address of the server, started if it does not run, and a chroot for one lab.

        The chroot has the lab's `seed`: "/kcontrol-7", or "/kcontrol-7-2" for a second lab with seed 7.
        """
        from kcontrol.zookeeper.kazoo.root_protection import mark_server

        if not self._users or not self._server.is_serving:
            # The server is stopped at the end of the last `with` block.
            self._server.stop()
            self._server.start()
            mark_server(self._server.hosts, seed)
        self._users += 1
        self._roots[seed] += 1
        try:
            # The second lab with seed 7 gets "/kcontrol-7-2".
            yield self._server.hosts, f"/kcontrol-{seed}" + (f"-{self._roots[seed]}" if self._roots[seed] > 1 else "")
        finally:
            self._users -= 1
            if not self._users:
                self._server.stop()
                self._roots.clear()


_own = _SharedServer()


def open_world(settings: Settings, world: str, zookeeper: str | None, otherwise: str | None) -> OpenWorld:
    """Open a lab's cluster on a ZooKeeper in memory (`world` is "simulated") or on a real ZooKeeper ("zookeeper").

    `zookeeper` is a running server's address, None to start a server. If this fails, open a ZooKeeper in memory if `otherwise`
    is "simulated", else raise UserError.
    """
    if zookeeper is not None:
        arguments.words(zookeeper, "A ZooKeeper's address", "localhost:2181/chroot")
    for name in (world, *([] if otherwise is None else [otherwise])):
        arguments.one_of(name, WORLDS, "world")
    real = real_if_there(lambda: _on_real_zookeeper(settings, zookeeper), otherwise) if world == "zookeeper" else None
    return real or OpenWorld(World(settings), ExitStack(), None)


def real_if_there(open_it: Callable[[], Real], otherwise: str | None) -> Real | None:
    """What `open_it` opens on a real ZooKeeper. Where it cannot, and `otherwise` is "simulated": print why, and return None."""
    try:
        return open_it()
    except UserError as problem:
        if otherwise != "simulated":
            raise
        say(f"{problem} Until then these cells run in the simulated world.")
        return None


def _on_real_zookeeper(settings: Settings, address: str | None) -> OpenWorld:
    with ExitStack() as closing:
        found = ensemble(settings.seed, address, closing)
        world = World(settings, zookeeper=found, clock=lambda: time.time_ns() // 1_000_000)
        return OpenWorld(world, closing.pop_all(), f"{found.hosts}{found.chroot}")


def ensemble(seed: int, address: str | None, closing: ExitStack) -> KazooZooKeeper:
    from kcontrol.zookeeper.kazoo import KazooZooKeeper

    if address is None:
        return closing.enter_context(KazooZooKeeper(*closing.enter_context(_own.root(seed))))
    from kcontrol.zookeeper.kazoo.root_protection import make_empty, open_zookeeper

    ensemble = closing.enter_context(open_zookeeper(address, seed))
    make_empty(ensemble, seed)
    return ensemble
