"""Counts watches and notifications of ZooKeeper: of one controller, of brokers that all watch, and of two election recipes.

Without a controller every broker would watch every partition. The recipes of leader election are one znode, and a queue of
sequential znodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.core.effects import Op
from kcontrol.core.errors import UserError
from kcontrol.journal.journal import Record
from kcontrol.lab.history.brokers import requests
from kcontrol.lab.history.entries import entries_of
from kcontrol.lab.support.late import pd
from kcontrol.lab.tables.journal_tables import table
from kcontrol.views import watch_counts
from kcontrol.zookeeper.memory import MemoryZooKeeper
from kcontrol.zookeeper.port import Client, ZooKeeper

# ---------------------------------------------------------------- one controller, or every broker watches

# In the design "one controller" only the controller watches the znodes of brokers and topics. In "every broker watches" each
# broker does, and each replica watches its partition's state znode. `watches` are set before a broker's death; the death makes
# ZooKeeper send `notifications`, and the controller, in the first design, send `requests`.
COSTS = {"brokers": "int64", "partitions": "int64", "design": "string", "watches": "int64", "notifications": "int64",
         "requests": "int64"}  # fmt: skip
MOST = 20_000  # brokers times partitions; counting this many takes about half a minute


def watch_costs(sizes: Iterable[tuple[int, int]], replication: int = 3) -> pd.DataFrame:
    """Return two rows per cluster size (brokers, partitions): watches, and the notifications and requests after a broker's death.

    In one row only the controller watches znodes, in the other every broker. Raises UserError for an illegal size.
    """
    return table((row for size in sizes for row in _rows(*_checked(*size), replication)), COSTS)


def _checked(brokers: int, partitions: int) -> tuple[int, int]:
    if not (brokers >= 1 and partitions >= 1 and brokers * partitions <= MOST):
        raise UserError(
            f"{brokers} brokers with {partitions} partitions cannot be counted: both are at least 1, and their product is at "
            f"most {MOST:,}."
        )
    return brokers, partitions


def _rows(brokers: int, partitions: int, replication: int) -> list[dict[str, object]]:
    # One simulated run per size is counted for both designs. A partition has at most one replica per broker.
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
    sent = sum(row["n"] > before for row in requests(entries_of(records)))
    return [size | _counted_as(name, records, before, sent) for name in watch_counts.DESIGNS]


def _counted_as(design: str, records: Sequence[Record], before: int, sent: int) -> dict[str, object]:
    rows = watch_counts.DESIGNS[design]
    standing, after = watch_counts.count(records[:before], rows), watch_counts.count(records, rows, before)
    sends = sent if any(who == watch_counts.CONTROLLER for _, _, who in rows) else 0
    return {"design": design, "watches": standing.watches, "notifications": after.notifications, "requests": sends}


# ---------------------------------------------------------------- one znode for all, or a queue

RECIPES = {"recipe": "string", "contenders": "int64", "watches": "int64", "notified_of_death": "int64", "tries_after_it": "int64"}


Counts = tuple[int, int, int]
"""The watches before the leader's death, the contenders that its death notifies, and their tries after it."""


def election_costs(contenders: int = 5, zookeeper: str | None = None) -> pd.DataFrame:
    """Return one row per recipe of leader election: watches and, after a leader's death, notified clients and tries to lead.

    `zookeeper` is a real server's host:port, None for a simulated server. Raises UserError unless `contenders` is 2 to 100.
    """
    if not 2 <= contenders <= 100:
        raise UserError(f"An election cannot have {contenders} contenders: the number is from 2 to 100.")
    rows = []
    # "one znode": every contender watches the leader's znode, as Kafka's brokers watch `/controller`. "a queue": each contender
    # watches the znode before its own, as in kazoo's Election.
    for name, recipe in (("one znode", _one_znode), ("a queue", _queue)):
        with ExitStack() as closing:
            found = recipe(_opened(zookeeper, closing), contenders)
        rows.append(dict(zip(RECIPES, (name, contenders, *found), strict=True)))
    return table(rows, RECIPES)


def _opened(zookeeper: str | None, closing: ExitStack) -> ZooKeeper:
    if zookeeper is None:
        return MemoryZooKeeper(lambda: 0)
    from kcontrol.zookeeper.kazoo.root_protection import open_zookeeper

    return closing.enter_context(open_zookeeper(f"{zookeeper}-elections", 0))


def _one_znode(zookeeper: ZooKeeper, contenders: int) -> Counts:
    """Play an election in which all contenders watch one ephemeral znode and try to create it.

    Return the number of watches and, after the leader's death, the numbers of notified clients and of new tries to lead.
    """
    path, clients = "/leader", [zookeeper.connect() for _ in range(contenders)]

    def run(client: Client) -> int:
        client.exists([path], True)
        return int(client.write([(Op("create", path, ephemeral=True),)])[0].error is None)

    return _counted(zookeeper, clients, run, watches=contenders)


def _queue(zookeeper: ZooKeeper, contenders: int) -> Counts:
    """Play an election in which each contender creates a sequential znode, and the owner of the lowest number leads.

    Return the number of watches and, after the leader's death, the numbers of notified clients and of new tries to lead.
    """
    clients = [zookeeper.connect() for _ in range(contenders)]
    clients[0].write([(Op("create", "/queue"),)])
    mine = {c.session_id: c.write([(Op("create", "/queue/n-", ephemeral=True, sequential=True),)])[0].paths[0] for c in clients}

    def run(client: Client) -> int:
        (names,) = client.children(["/queue"], False)
        paths = [f"/queue/{name}" for name in names or ()]
        place = paths.index(mine[client.session_id])
        # Each contender but the leader watches the znode with the next lower number.
        if place:
            client.exists([paths[place - 1]], True)
        return int(place == 0)

    return _counted(zookeeper, clients, run, watches=contenders - 1)


def _counted(zookeeper: ZooKeeper, clients: Sequence[Client], run: Callable[[Client], int], watches: int) -> Counts:
    """Let `clients` compete to lead, end the leader's session, and count the notified clients and their new tries.

    `run` lets a client try, and returns 1 if it leads. `watches` is copied into the result.
    """
    leader = next(client for client in [client for client in clients if run(client)])
    zookeeper.settle()
    others = [client for client in clients if client is not leader]
    for client in others:
        if client.events():
            run(client)
    zookeeper.settle()
    zookeeper.end(leader)
    zookeeper.settle()
    notified = [client for client in others if client.events()]
    assert sum(map(run, notified)) == 1, "one of the notified contenders leads now"
    for client in others:
        zookeeper.end(client)
    return watches, len(notified), len(notified)
