"""Opens an empty ZooKeeper for experiments, and clients that a learner calls: kazoo's, or their equivalents in this process."""

import atexit
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Self

from kcontrol.core.effects import Znode
from kcontrol.core.errors import UserError
from kcontrol.lab import open_world
from kcontrol.lab.support import arguments
from kcontrol.views.diagrams import Arrow, Box, Diagram, graph
from kcontrol.views.text import clean
from kcontrol.zookeeper.memory import MemoryZooKeeper

LONGEST = 24


class Playground:
    """An empty tree of znodes, in memory (`world` is "simulated") or at a real server ("zookeeper").

    `kazoo` opens clients. Raises UserError for an unknown world, and if no server can be opened.
    """

    # If the server cannot be opened and `otherwise` is "simulated", the tree is in memory. `cut`, `mend` and `time_out` break
    # and restore connections and end sessions; `tree`, `owner` and `diagram` show the znodes.
    def __init__(self, world: str = "simulated", otherwise: str | None = None, seed: int = 1) -> None:
        for name in filter(None, (world, otherwise)):
            arguments.one_of(name, open_world.WORLDS, "world")
        self._closing, self._clients = ExitStack(), dict[str, Any]()
        opened = lambda: open_world.ensemble(seed, None, self._closing)  # noqa: E731
        real = open_world.real_if_there(opened, otherwise) if world == "zookeeper" else None
        self._zookeeper: Any = real or MemoryZooKeeper(lambda: 0)
        self.world = "zookeeper" if real else "simulated"
        atexit.register(self.close)

    def kazoo(self, name: str) -> Any:
        """Return a started client with its own session: kazoo's KazooClient, or its equivalent in the simulated world.

        Raises UserError if a client has the name already.
        """
        from kcontrol.zookeeper.kazoo.playground_client import KazooPlaygroundClient, MemoryPlaygroundClient

        if name in self._clients:
            raise UserError(f"Client {name!r} exists already: choose another name than {', '.join(self._clients)}.")
        memory, zookeeper = self.world == "simulated", self._zookeeper
        client: Any = MemoryPlaygroundClient(zookeeper) if memory else KazooPlaygroundClient(zookeeper.hosts, zookeeper.chroot)
        self._clients[name] = client
        return client.kazoo

    # ---------------------------------------------------------------- what happens to clients

    def settle(self) -> Self:
        """Wait until every connected client has received its notifications, then return `self`.

        Notifications that are caused by watch functions of the clients count too. A client whose connection is cut is skipped.
        """
        for _ in range(3):  # a watch function may write, which makes ZooKeeper notify other clients
            for client in self._clients.values():
                client.drain()
        return self

    def cut(self, name: str) -> Self:
        """Cut the connection between the client `name` and ZooKeeper, and return `self`.

        Raises UserError, which lists the clients, for an unknown name.
        """
        self._client(name).cut()
        return self

    def mend(self, name: str) -> Self:
        """Restore the connection of a client, which continues its session or, after its expiry, opens a new session.

        Return `self`. Raises UserError, which lists the clients, for an unknown name.
        """
        self._client(name).mend()
        return self.settle()

    def time_out(self, name: str) -> Self:
        """Let the session timeout pass for a client whose connection is cut: ZooKeeper ends the session.

        Return `self`. Raises UserError if the connection is not cut, and for an unknown name.
        """
        client = self._client(name)
        if client.kazoo.state != "SUSPENDED":
            raise UserError(f'The connection of {name} is not cut, so its session cannot expire: call cut("{name}") first.')
        client.expire()
        return self.settle()

    def _client(self, name: str) -> Any:
        return self._clients[arguments.one_of(name, self._clients, "client")]

    def close(self) -> None:
        """End every session, and stop the server. A second call does nothing."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        self._closing.close()

    # ---------------------------------------------------------------- looking

    def tree(self) -> Mapping[str, Znode]:
        """Return every znode, by path."""
        found: Mapping[str, Znode] = self._zookeeper.tree()
        return found

    def owner(self, path: str) -> str | None:
        """Return the name of the client whose session owns a znode, None for a persistent znode.

        Raises UserError, which lists the znodes, for an unknown path.
        """
        znode = self.tree().get(path)
        if znode is None:
            raise UserError(f"There is no znode {path}; the znodes are: {', '.join(self.tree()) or 'none yet'}.")
        return self._owner(znode)

    def _owner(self, znode: Znode) -> str | None:
        sessions = {client.session_id: name for name, client in self._clients.items()}
        return sessions.get(znode.stat.ephemeral_owner)

    def diagram(self) -> Diagram:
        """Draw the clients with their states, the znodes with data and version, and the owner and the watches of each znode."""
        tree = self.tree()
        boxes = [Box(f"client {n}", (n, str(c.kazoo.state)), "current" if c.watched else "") for n, c in self._clients.items()]
        boxes += [Box(path, _displayed(path, znode), "full" if self._owner(znode) else "") for path, znode in tree.items()]
        arrows = [Arrow(f"client {self._owner(z)}", path, "owns") for path, z in tree.items() if self._owner(z)]
        for name, client in self._clients.items():
            for kind, path in sorted(client.watched):
                if path not in tree and path not in {box.key for box in boxes}:
                    boxes.append(Box(path, (path, "is missing")))
                arrows.append(Arrow(f"client {name}", path, f"watches its {kind}"))
        return graph("playground", boxes or [Box("empty", ("nothing yet",))], arrows)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        return self.diagram()._repr_mimebundle_(**kwargs)

    def __repr__(self) -> str:
        return self.diagram().outline()


def _displayed(path: str, znode: Znode) -> tuple[str, ...]:
    data = clean(znode.data.decode(errors="replace"), LONGEST)
    return (path, *([data] if data else []), f"version {znode.stat.version}")
