"""Why a controller, and why no queue: what designs cost ZooKeeper, counted and not argued."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import pandas as pd

from kcontrol.effects import Op
from kcontrol.errors import UserError
from kcontrol.lab.tables import requests, table
from kcontrol.runtime.journal import Record
from kcontrol.runtime.zk_memory import MemoryZooKeeper
from kcontrol.runtime.zookeeper import Client, ZooKeeper
from kcontrol.sim.settings import Settings
from kcontrol.sim.world import World
from kcontrol.views import watching

# ---------------------------------------------------------------- one controller, or everybody

COSTS = {
    "brokers": "int64",
    "partitions": "int64",
    "design": "string",
    "watches": "int64",
    "notifications": "int64",
    "requests": "int64",
}
MOST = 20_000  # brokers times partitions: about half a minute


def watch_costs(sizes: Iterable[tuple[int, int]], replication: int = 3) -> pd.DataFrame:
    """What a cluster of so many (brokers, partitions) costs ZooKeeper in two designs: two rows for each size.

    One simulated run is counted for both designs, see `watching.DESIGNS`: brokers start, a topic is created, and the last broker
    dies. `watches` are those that stand before the death; because of it ZooKeeper sends `notifications`, and the controller
    `requests` to brokers, where there is one. Raises UserError for a size that is none, or too large.
    """
    return table((row for size in sizes for row in _rows(*_checked(*size), replication)), COSTS)


def _checked(brokers: int, partitions: int) -> tuple[int, int]:
    if not (brokers >= 1 and partitions >= 1 and brokers * partitions <= MOST):
        raise UserError(f"{brokers} brokers with {partitions} partitions cannot be counted: at most {MOST:,} of their product.")
    return brokers, partitions


def _rows(brokers: int, partitions: int, replication: int) -> list[dict[str, object]]:
    ids = range(1, brokers + 1)
    world = World(Settings(brokers=tuple(ids)))
    for broker in ids:
        world.step(("start", broker))
        world.run()
    spread = [[(p + k) % brokers + 1 for k in range(min(replication, brokers))] for p in range(partitions)]
    world.step(("create_topic", "t", spread))
    world.run()
    before = len(world.journal)
    world.step(("kill", brokers))
    world.run()
    records, size = world.journal.records, {"brokers": brokers, "partitions": partitions}
    sent = len(requests(records[before:], world.snapshot()))
    return [size | _counted_as(name, records, before, sent) for name in watching.DESIGNS]


def _counted_as(design: str, records: Sequence[Record], before: int, sent: int) -> dict[str, object]:
    rows = watching.DESIGNS[design]
    standing, told = watching.count(records[:before], rows), watching.count(records, rows, before)
    sends = sent if any(who == watching.CONTROLLER for _, _, who in rows) else 0
    return {"design": design, "watches": standing.watches, "notifications": told.notifications, "requests": sends}


# ---------------------------------------------------------------- one znode for all, or a queue

RECIPES = {"recipe": "string", "contenders": "int64", "watches": "int64", "told_of_the_death": "int64", "tries_after_it": "int64"}


class _Count(NamedTuple):
    watches: int
    told: int
    tries: int


def election_costs(contenders: int = 5, zookeeper: str | None = None) -> pd.DataFrame:
    """What the death of a leader costs in two recipes of election, one row each, counted with watches that really fire.

    "one znode": all watch what the leader has created, as Kafka's brokers do with `/controller`. "a queue": each watches whoever
    is before it, as in kazoo's Election. `zookeeper` is the address of a real one; in memory where none is given. Raises
    UserError for fewer than two contenders, or more than a hundred.
    """
    if not 2 <= contenders <= 100:
        raise UserError(f"{contenders} contenders are no election: say a number from 2 to 100.")
    rows = []
    for name, recipe in (("one znode", _one_znode), ("a queue", _queue)):
        with ExitStack() as closing:
            found = recipe(_opened(zookeeper, closing), contenders)
        rows.append(dict(zip(RECIPES, (name, contenders, *found), strict=True)))
    return table(rows, RECIPES)


def _opened(zookeeper: str | None, closing: ExitStack) -> ZooKeeper:
    if zookeeper is None:
        return MemoryZooKeeper(lambda: 0)
    from kcontrol.runtime.zk_safety import open_zookeeper

    return closing.enter_context(open_zookeeper(f"{zookeeper}-elections", 0))


def _one_znode(zookeeper: ZooKeeper, contenders: int) -> _Count:
    """Everybody tries to create one ephemeral znode, and watches it."""
    path, clients = "/leader", [zookeeper.connect() for _ in range(contenders)]

    def run(client: Client) -> int:
        client.exists([path], True)
        return int(client.write([(Op("create", path, ephemeral=True),)])[0].error is None)

    return _counted(zookeeper, clients, run, watches=contenders)


def _queue(zookeeper: ZooKeeper, contenders: int) -> _Count:
    """Everybody gets a number, whoever has the smallest leads, and everybody else watches the one before."""
    clients = [zookeeper.connect() for _ in range(contenders)]
    clients[0].write([(Op("create", "/queue"),)])
    mine = {c.session_id: c.write([(Op("create", "/queue/n-", ephemeral=True, sequential=True),)])[0].paths[0] for c in clients}

    def run(client: Client) -> int:
        (names,) = client.children(["/queue"], False)
        paths = [f"/queue/{name}" for name in names or ()]
        place = paths.index(mine[client.session_id])
        if place:
            client.exists([paths[place - 1]], True)
        return int(place == 0)

    return _counted(zookeeper, clients, run, watches=contenders - 1)


def _counted(zookeeper: ZooKeeper, clients: Sequence[Client], run: Callable[[Client], int], watches: int) -> _Count:
    """Let everybody run, take the events so far away, let the leader die, and let whoever is told run again."""
    leader = next(client for client in [client for client in clients if run(client)])
    zookeeper.settle()
    others = [client for client in clients if client is not leader]
    for client in others:
        if client.events():
            run(client)
    zookeeper.settle()
    zookeeper.end(leader)
    zookeeper.settle()
    told = [client for client in others if client.events()]
    assert sum(map(run, told)) == 1, "one of those who were told leads now"
    for client in others:
        zookeeper.end(client)
    return _Count(watches, len(told), len(told))
