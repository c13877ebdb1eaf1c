"""Equal fingerprints mean equal futures: everything that can still matter, and nothing of the way that led here.

Times, sequence numbers, correlation ids and the journal are left out; zxids, and the broker epochs that are made of them,
count by rank alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from kcontrol.effects import Result, Stat, Znode
from kcontrol.runtime.driver import Driver, Thread
from kcontrol.runtime.zk_memory import MemoryZooKeeper
from kcontrol.sim import data
from kcontrol.sim.process import Process

if TYPE_CHECKING:
    from kcontrol.sim.world import World

TIMESTAMP = re.compile(rb'"timestamp":"\d+"')
ZXID = re.compile(r"<z(-?\d+)>")
UNTOLD = {
    "timestamp_ms",
    "session",
    "correlation_id",
    "request",
    "partitions_of",
    "rules",
    "config",
    "replace",
    "keeps_logs",
    "logs",
}
IF_ANY = {"offline_partitions"}  # an empty one goes unsaid
EPOCHS = {"broker_epoch", "broker_epochs", "live_broker_epochs"}


def fingerprint(world: World) -> str:
    """A digest of the world. One whose handlers are suspended is played again with their answers kept.

    Raises ValueError on a real ZooKeeper.
    """
    if not (world.exact or world.is_quiet):
        world = world.fork(exact=True)
    text = _text(world)
    ranks = {zxid: str(rank) for rank, zxid in enumerate(sorted(set(ZXID.findall(text)), key=int))}
    ranked = ZXID.sub(lambda match: ranks[match.group(1)], text)
    return hashlib.blake2b(ranked.encode(), digest_size=16).hexdigest()


def _text(world: World) -> str:
    zk = world.zk
    if not isinstance(zk, MemoryZooKeeper):
        raise ValueError("only a simulated world has a fingerprint")
    sessions = _sessions(world, zk)
    parts = [
        f"{path}={_data(n.data)}v{n.stat.version}o{sessions.get(n.stat.ephemeral_owner)}<z{n.stat.czxid}>"
        for path, n in zk.tree().items()
    ]
    parts += [f"{path}:{kind}:{sessions.get(session)}" for path, kind, session in zk.watches()]
    parts += [f"{n}:{_process(p)}" for n, p in sorted(world.processes.items())]
    parts += [f"ghosts{n}:{len(clients)}" for n, clients in sorted(world.ghosts.items())]
    parts += _network(world)
    parts += _logs(world) if world.settings.data else []
    return "\n".join(parts)


def _sessions(world: World, zk: MemoryZooKeeper) -> dict[int, str]:
    """Open sessions by broker and by age among those of the same broker."""
    seen: dict[int, int] = {}
    names = {}
    for session in zk.sessions():
        owner = world.owners.get(session, 0)
        seen[owner] = seen.get(owner, 0) + 1
        names[session] = f"{owner}#{seen[owner]}"
    return names


def _network(world: World) -> list[str]:
    network = world.network
    busy = sorted(network.in_flight.values())
    channels = [
        f"{pair}{[(p.api, canonical(_told(p, pair[1]))) for p in parcels]}" for pair, parcels in sorted(network.channels.items())
    ]
    questions = [
        f"{n}{[(q.api, canonical(q.body), q.asked, q.refused_by) for q in asked]}"
        for n, asked in sorted(network.questions.items())
        if asked
    ]
    return [str(busy), *channels, *questions]


def _logs(world: World) -> list[str]:
    """Every log, and what producers rely on; who waits for an answer counts by the offset that he waits for."""
    return [
        f"{n}{tp}{canonical(log._replace(waiting=()))}{[waiting.offset for waiting in log.waiting]}"
        for n, found in data.replicas(world).items()
        for tp, log in sorted(found.items())
    ] + [f"{tp}{canonical(promised)}" for tp, promised in sorted(world.acknowledged.items())]


def _told(parcel: Any, receiver: int) -> Any:
    r = parcel.requests
    match parcel.api:
        case "LeaderAndIsr":
            partitions = r.leader_and_isr[receiver]
        case "StopReplica":
            partitions = r.stop_replica[receiver]
        case _:
            partitions = (r.update_metadata, r.live_brokers)
    return (r.controller_id, r.controller_epoch, Epoch(r.broker_epochs[receiver]), partitions)


def _process(p: Process) -> str:
    driver = p.driver
    threads = [_thread(driver, thread) for thread in driver.threads.values()]
    timers = sorted((name, canonical(timer.event)) for name, timer in driver.timers.items())
    rest = (
        p.session,
        p.frozen,
        [tuple(n.event) for n in p.notices],
        sorted(driver.watched),
        timers,
        sorted(driver.parked.items()),
    )
    return f"{threads}{rest}{canonical(driver.controller)}{canonical(driver.broker)}"


def _thread(driver: Driver, thread: Thread) -> str:
    queue = [canonical(item.event) for item in thread.queue.waiting]
    if thread.handler is None or thread.waits_for is None or thread.begun_with is None:
        return f"{thread.name}{queue}"
    begun = thread.begun_with
    holds = thread.lock and driver.locks.get(thread.lock) == thread.name
    suspended = (
        canonical(thread.event),
        canonical(begun.context),
        canonical(begun.answers),
        canonical(thread.waits_for.so_far),
        holds,
    )
    return f"{thread.name}{queue}{suspended}"


class Epoch(int):
    """A number that is a zxid, and so counts by rank."""


def _data(data: bytes) -> str:
    return TIMESTAMP.sub(b'"timestamp":""', data).decode("utf-8", "backslashreplace")


def canonical(value: Any) -> str:
    """A text that is equal for values that nobody can tell apart."""
    match value:
        case Epoch():
            return f"<z{int(value)}>"
        case None | bool() | int() | str():
            return repr(value)
        case Enum():
            return str(value.value)
        case bytes():
            return _data(value)
        case Stat():
            return f"v{value.version}<z{value.czxid}>"
        case Znode():
            return f"{_data(value.data)}v{value.stat.version}<z{value.stat.czxid}>"
        case Result():
            return f"{value.code}{value.versions}"
        case Mapping():
            return "{" + ",".join(f"{canonical(k)}:{canonical(v)}" for k, v in value.items()) + "}"
        case AbstractSet():
            return "{" + ",".join(sorted(map(canonical, value))) + "}"
        case Exception():
            return type(value).__name__
    if is_dataclass(value):
        told = ((f.name, getattr(value, f.name)) for f in fields(value) if f.name not in UNTOLD)
        kept = ((name, v) for name, v in told if v or name not in IF_ANY)
        return (
            type(value).__name__
            + "("
            + ",".join(f"{name}={_epochs(v) if name in EPOCHS else canonical(v)}" for name, v in kept)
            + ")"
        )
    return "(" + ",".join(map(canonical, value)) + ")"


def _epochs(value: Any) -> str:
    return canonical({k: Epoch(v) for k, v in value.items()} if isinstance(value, Mapping) else Epoch(value))
