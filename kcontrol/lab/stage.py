"""Where a lab plays: the world that its brokers live in, and what has to be closed behind it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from kcontrol.errors import UserError
from kcontrol.lab import arguments
from kcontrol.lab.saying import say
from kcontrol.sim.settings import Settings
from kcontrol.sim.world import World

if TYPE_CHECKING:
    from kcontrol.runtime.zk_kazoo import KazooZooKeeper

WORLDS = ("simulated", "zookeeper")


class Stage(NamedTuple):
    """A world, what closes the servers and sessions below it, and where its ZooKeeper is, None for the one in memory."""

    world: World
    closing: ExitStack
    address: str | None


class _OwnServer:
    """One ZooKeeper for all labs of this process: started for the first that needs it, ended with the last."""

    def __init__(self) -> None:
        self._users, self._server = 0, ExitStack()
        self._hosts, self._port = "", 0
        self._roots: Counter[int] = Counter()

    @contextmanager
    def root(self, seed: int) -> Iterator[tuple[str, str]]:
        """Where the server is, and a root of its own for one lab."""
        from kcontrol.runtime.embedded import EmbeddedZooKeeper, is_serving
        from kcontrol.runtime.zk_safety import mark_server

        if not self._users or not is_serving(self._port):
            self._server.close()
            server = self._server.enter_context(EmbeddedZooKeeper())
            self._hosts, self._port = server.hosts, server.port
            mark_server(self._hosts, seed)
        self._users += 1
        self._roots[seed] += 1
        try:
            yield self._hosts, f"/kcontrol-{seed}" + (f"-{self._roots[seed]}" if self._roots[seed] > 1 else "")
        finally:
            self._users -= 1
            if not self._users:
                self._server.close()
                self._roots.clear()


_own = _OwnServer()


def open_stage(settings: Settings, world: str, zookeeper: str | None, otherwise: str | None) -> Stage:
    """Open a world of this kind, `zookeeper` being the address of a ZooKeeper that is not ours to start.

    Raises:
        UserError: there is no such world, or it cannot be had and `otherwise` names no other one.
    """
    if zookeeper is not None:
        arguments.words(zookeeper, "A ZooKeeper's address", "localhost:2181/chroot")
    for name in (world, *([] if otherwise is None else [otherwise])):
        if name not in WORLDS:
            raise UserError(f"There is no world {name!r}; there are {' and '.join(map(repr, WORLDS))}.")
    if world == "simulated":
        return Stage(World(settings), ExitStack(), None)
    try:
        return _on_real_zookeeper(settings, zookeeper)
    except UserError as problem:
        if otherwise != "simulated":
            raise
        say(f"{problem} Until then these cells run in the simulated world.")
        return Stage(World(settings), ExitStack(), None)


def _on_real_zookeeper(settings: Settings, address: str | None) -> Stage:
    with ExitStack() as closing:
        found = ensemble(settings.seed, address, closing)
        world = World(settings, zookeeper=found, clock=lambda: time.time_ns() // 1_000_000)
        return Stage(world, closing.pop_all(), f"{found.hosts}{found.chroot}")


def ensemble(seed: int, address: str | None, closing: ExitStack) -> KazooZooKeeper:
    from kcontrol.runtime.zk_kazoo import KazooZooKeeper

    if address is None:
        return closing.enter_context(KazooZooKeeper(*closing.enter_context(_own.root(seed))))
    from kcontrol.runtime.zk_safety import make_empty, open_zookeeper

    ensemble = closing.enter_context(open_zookeeper(address, seed))
    make_empty(ensemble, seed)
    return ensemble
