"""Equal fingerprints mean equal futures: everything that can still matter, and nothing of the way that led here.

Times, sequence numbers, correlation ids and the journal are left out; zxids, and the broker epochs that are made of them,
count by rank alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from kcontrol.effects import Result, Stat, Znode
from kcontrol.runtime.driver import Driver, Thread
from kcontrol.runtime.zk_memory import MemoryZooKeeper
from kcontrol.sim import data
from kcontrol.sim.network import Network
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
IF_ANY = {"isr_changes", "offline_partitions", "partitions_being_reassigned"}  # an empty one goes unsaid
EPOCHS = {"broker_epoch", "broker_epochs", "live_broker_epochs"}


class Text(NamedTuple):
    """What a part of the world says, with the rank of a zxid within the part in its place, and the zxids by their ranks."""

    words: str
    zxids: tuple[int, ...]


def fingerprint(world: World) -> str:
    """A digest of the world. One whose handlers are suspended is played again with their answers kept.

    Raises ValueError on a real ZooKeeper.
    """
    if not (world.exact or world.is_quiet):
        world = world.fork(exact=True)
    zk = world.zk
    if not isinstance(zk, MemoryZooKeeper):
        raise ValueError("only a simulated world has a fingerprint")
    names = session_names(zk, world.owners)
    parts = [text(znodes(zk.nodes(), names)), text(watches(zk, names))]
    for n, p in sorted(world.processes.items()):
        parts += [text(driver(p.driver)), Text(surroundings(n, p), ())]
    parts += map(text, _logs(world) if world.settings.data else ())
    parts += [text(canonical((world.consumers, world.offsets_logs)))] if world.settings.consumers else []
    return digest([*parts, *left_and_on_the_way(world.ghosts, world.network)])


def text(said: str) -> Text:
    zxids = tuple(sorted(set(map(int, ZXID.findall(said)))))
    gaps = {str(zxid): f"<z{rank}>" for rank, zxid in enumerate(zxids)}
    return Text(ZXID.sub(lambda match: gaps[match[1]], said), zxids)


def digest(parts: list[Text]) -> str:
    """One digest of all parts, in which a zxid is its rank among all of them."""
    said = "\n".join([part.words for part in parts])
    return hashlib.blake2b(f"{said}{ranks([part.zxids for part in parts])}".encode(), digest_size=16).hexdigest()


def ranks(parts: Iterable[tuple[int, ...]]) -> list[int]:
    """The rank of each of these zxids among all of them."""
    zxids = list(chain.from_iterable(parts))
    found = {zxid: rank for rank, zxid in enumerate(sorted(set(zxids)))}
    return [found[zxid] for zxid in zxids]


# ---------------------------------------------------------------- ZooKeeper


def session_names(zk: MemoryZooKeeper, owners: Mapping[int, int]) -> dict[int, str]:
    """Open sessions by broker and by age among those of the same broker."""
    seen: dict[int, int] = {}
    names = {}
    for session in zk.sessions():
        owner = owners.get(session, 0)
        seen[owner] = seen.get(owner, 0) + 1
        names[session] = f"{owner}#{seen[owner]}"
    return names


def znodes(nodes: Mapping[str, Znode], names: Mapping[int, str], told: Callable[[Any], str] | None = None) -> str:
    tell = told or canonical
    return "\n".join([f"{path}={tell(node)}o{names.get(node.stat.ephemeral_owner)}" for path, node in sorted(nodes.items())])


def watches(zk: MemoryZooKeeper, names: Mapping[int, str]) -> str:
    tables = zk.watch_tables()
    named = {told: str(sorted([names[session] for session in told])) for told in {*tables[0].values(), *tables[1].values()}}
    by_children, by_data = (sorted([f"{path}{named[told]}" for path, told in table.items()]) for table in tables)
    return f"{by_children}{by_data}"


# ---------------------------------------------------------------- processes and what travels


def surroundings(n: int, p: Process) -> str:
    """What a process has around its driver."""
    notices = [tuple(notice.event) for notice in p.notices] if p.notices else ""
    return f"{n}{p.session}{p.frozen}{notices}"


def driver(d: Driver, said: str | None = None, told: Callable[[Any], str] | None = None) -> str:
    """What a driver holds: `said` of its contexts, if that is known. `told` may know texts of what never changes, as answers."""
    threads = [_thread(d, thread, told or canonical) for thread in d.threads.values()]
    timers = sorted((name, canonical(timer.event)) for name, timer in d.timers.items())
    rest = (sorted(d.watched), timers, sorted(d.parked.items()), d.exit_code)
    return f"{threads}{rest}{said or contexts(d)}"


def contexts(d: Driver) -> str:
    return f"{canonical(d.controller)}{canonical(d.broker)}{canonical(d.group) if d.group else ''}"


def _thread(d: Driver, thread: Thread, told: Callable[[Any], str]) -> str:
    queue = [canonical(item.event) for item in thread.queue.waiting]
    if thread.handler is None or thread.waits_for is None or thread.begun_with is None:
        return f"{thread.name}{queue}"
    begun = thread.begun_with
    holds = thread.lock and d.locks.get(thread.lock) == thread.name
    answers = [told(answer) for answer in begun.answers]
    return (
        f"{thread.name}{queue}{canonical(thread.event)}{told(begun.context)}{answers}{canonical(thread.waits_for.so_far)}{holds}"
    )


def left_and_on_the_way(ghosts: Mapping[int, list[Any]], network: Network) -> list[Text]:
    """Sessions left behind, requests and questions, if there are any."""
    if not (ghosts or network.channels or network.questions or network.in_flight or network.held or network.controllers):
        return []
    left = [f"ghosts{n}:{len(clients)}" for n, clients in sorted(ghosts.items())]
    channels = [
        f"{pair}{[(p.api, p.is_left, canonical(_told(p, pair[1]))) for p in parcels]}"
        for pair, parcels in sorted(network.channels.items())
    ]
    questions = [
        f"{n}{[(q.api, canonical(q.body), q.asked, q.refused_by) for q in asked]}"
        for n, asked in sorted(network.questions.items())
        if asked
    ]
    fetching = [f"{leaders}" for _, leaders in network.fetching.values()]
    held = [f"{h.broker}{h.leaders}{network.in_flight.get(key)}{canonical(h.body)}" for key, h in network.held.items()]
    waits = [*sorted(fetching), *sorted(held), f"asks{sorted(network.controllers.items())}", f"thawed{sorted(network.thawed)}"]
    return [text("\n".join([*left, str(sorted(network.in_flight.values())), *channels, *questions, *waits]))]


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


# ---------------------------------------------------------------- values


class Epoch(int):
    """A number that is a zxid, and so counts by rank."""


def _data(data: bytes) -> str:
    return TIMESTAMP.sub(b'"timestamp":""', data).decode("utf-8", "backslashreplace")


def canonical(value: Any) -> str:
    """A text that is equal for values that nobody can tell apart."""
    kind = type(value)
    say = SAID.get(kind)
    if say is None:
        say = SAID[kind] = _how(value)
    return say(value)


def _how(value: Any) -> Callable[[Any], str]:
    """How values of this one's type are told."""
    match value:
        case Epoch():
            return lambda v: f"<z{int(v)}>"
        case None | bool() | int() | str():
            return repr
        case Enum():
            return lambda v: str(v.value)
        case bytes():
            return _data
        case Stat():
            return lambda v: f"v{v.version}<z{v.czxid}>"
        case Znode():
            return lambda v: f"{_data(v.data)}v{v.stat.version}<z{v.stat.czxid}>"
        case Result():
            return lambda v: f"{v.code}{v.versions}"
        case Mapping():
            return lambda v: "{" + ",".join([f"{canonical(k)}:{canonical(item)}" for k, item in v.items()]) + "}"
        case AbstractSet():
            return lambda v: "{" + ",".join(sorted(map(canonical, v))) + "}"
        case Exception():
            return lambda v: type(v).__name__
    if is_dataclass(value):
        return _fields(type(value))
    return lambda v: "(" + ",".join(map(canonical, v)) + ")"


SAID: dict[type, Callable[[Any], str]] = {}
"""How values of a type are told, found out when the first of them comes."""


def _fields(cls: type) -> Callable[[Any], str]:
    names = [f.name for f in fields(cls) if f.name not in UNTOLD]
    kept = [(name, _epochs if name in EPOCHS else canonical) for name in names if name not in IF_ANY]
    rare = [name for name in names if name in IF_ANY]

    def say(v: Any) -> str:
        said = [f"{name}={tell(getattr(v, name))}" for name, tell in kept]
        said += [f"{name}={canonical(getattr(v, name))}" for name in rare if getattr(v, name)]
        return f"{cls.__name__}({','.join(said)})"

    return say


def _epochs(value: Any) -> str:
    return canonical({k: Epoch(v) for k, v in value.items()} if isinstance(value, Mapping) else Epoch(value))
