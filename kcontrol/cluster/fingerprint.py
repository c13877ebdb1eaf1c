"""Fingerprints of simulated clusters: worlds with equal fingerprints have equal futures.

Times, sequence numbers, correlation ids and the journal are left out; each zxid is replaced by its rank.
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

from kcontrol.broker.log import DelayedAppend, DelayedProduce
from kcontrol.cluster import data_plane
from kcontrol.cluster.network import Network
from kcontrol.cluster.process import Process
from kcontrol.core.effects import Stat, TransactionResult, Znode
from kcontrol.driver.driver import Driver
from kcontrol.driver.threads import Thread
from kcontrol.zookeeper.memory import MemoryZooKeeper

if TYPE_CHECKING:
    from kcontrol.cluster.world import World

TIMESTAMP = re.compile(rb'"timestamp":"\d+"')
ZXID = re.compile(r"<z(-?\d+)>")
OMITTED = {
    "timestamp_ms", "session", "correlation_id", "request", "partitions_of", "rules", "design", "config", "changes", "keeps_logs",
    "logs",
}  # fmt: skip
OPTIONAL = {"isr_changes", "offline_partitions", "partitions_being_reassigned"}  # fields that are left out while empty
EPOCHS = {"broker_epoch", "broker_epochs", "live_broker_epochs"}


class Text(NamedTuple):
    """A part of the simulated cluster's state as text, with each zxid replaced by its rank among the part's zxids."""

    # The text. A search replaces the text by its hash (`memo_driver.digest_text`), which is shorter.
    words: str
    # The replaced zxids, ascending, from which `digest` computes their ranks in the whole state.
    zxids: tuple[int, ...]


def fingerprint(world: World) -> str:
    """Return a digest of the world's state; two worlds with equal digests have equal futures.

    Raises ValueError on a real ZooKeeper.
    """
    if not (world.keeps_replay_logs or world.is_quiet):
        # The state of a suspended handler is its replay log, the results that the handler has received: a copy keeps one.
        world = world.fork(keep_replay_logs=True)
    zk = world.zk
    if not isinstance(zk, MemoryZooKeeper):
        raise ValueError("fingerprint needs the in-memory ZooKeeper: the state of a real ZooKeeper cannot be read at once")
    names = session_names(zk, world.owners)
    parts = [text(znodes(zk.nodes(), names)), text(watches(zk, names))]
    for n, p in sorted(world.processes.items()):
        parts += [text(driver(p.driver)), Text(process_state(n, p), ())]
    parts += map(text, _logs(world) if world.settings.data else ())
    if world.settings.consumers:
        parts += [text(canonical({name: consumer.without_times() for name, consumer in world.consumers.items()}))]
    return digest([*parts, *orphans_and_network(world.orphaned_sessions, world.network)])


def text(state: str) -> Text:
    """The texts of two states that differ only in the gaps between zxids are equal."""
    zxids = tuple(sorted(set(map(int, ZXID.findall(state)))))
    rank_of = {str(zxid): f"<z{rank}>" for rank, zxid in enumerate(zxids)}
    return Text(ZXID.sub(lambda match: rank_of[match[1]], state), zxids)


def digest(parts: list[Text]) -> str:
    """Gaps between zxids have no effect: the hash has their ranks."""
    state = "\n".join([part.words for part in parts])
    return hashlib.blake2b(f"{state}{ranks([part.zxids for part in parts])}".encode(), digest_size=16).hexdigest()


def ranks(parts: Iterable[tuple[int, ...]]) -> list[int]:
    """[1, 0, 1] for the parts (30, 10) and (30,): the rank of each zxid among all."""
    zxids = list(chain.from_iterable(parts))
    found = {zxid: rank for rank, zxid in enumerate(sorted(set(zxids)))}
    return [found[zxid] for zxid in zxids]


# ---------------------------------------------------------------- ZooKeeper


def session_names(zk: MemoryZooKeeper, owners: Mapping[int, int]) -> dict[int, str]:
    """As in "2#1", the oldest session of broker 2."""
    seen: dict[int, int] = {}
    names = {}
    for session in zk.sessions():
        owner = owners.get(session, 0)
        seen[owner] = seen.get(owner, 0) + 1
        names[session] = f"{owner}#{seen[owner]}"
    return names


def znodes(nodes: Mapping[str, Znode], names: Mapping[int, str], text_of: Callable[[Any], str] | None = None) -> str:
    text_of = text_of or canonical
    return "\n".join([f"{path}={text_of(node)}o{names.get(node.stat.ephemeral_owner)}" for path, node in sorted(nodes.items())])


def watches(zk: MemoryZooKeeper, names: Mapping[int, str]) -> str:
    tables = zk.watch_tables()
    named = {found: str(sorted([names[session] for session in found])) for found in {*tables[0].values(), *tables[1].values()}}
    by_children, by_data = (sorted([f"{path}{named[sessions]}" for path, sessions in table.items()]) for table in tables)
    return f"{by_children}{by_data}"


# ---------------------------------------------------------------- processes and requests


def process_state(n: int, p: Process) -> str:
    """Return the fingerprint text of a broker process without its driver: id, session, frozen or not, unhandled watch events."""
    notifications = [tuple(notification.event) for notification in p.notifications] if p.notifications else ""
    return f"{n}{p.session}{p.frozen}{notifications}"


def driver(d: Driver, state: str | None = None, text_of: Callable[[Any], str] | None = None) -> str:
    """`state` is the text of the memory, if the caller has it; `text_of` converts a value into text."""
    threads = [_thread(d, thread, text_of or canonical) for thread in d.threads.values()]
    timers = sorted((name, canonical(timer.event)) for name, timer in d.timers.items())
    rest = (sorted(d.znode_handlers), timers, sorted(d.parked.items()), d.exit_code)
    return f"{threads}{rest}{state or contexts(d)}"


def contexts(d: Driver) -> str:
    return f"{canonical(d.controller)}{canonical(d.broker)}{canonical(d.group) if d.group else ''}"


def _thread(d: Driver, thread: Thread, text_of: Callable[[Any], str]) -> str:
    queue = [canonical(item.event) for item in thread.queue.waiting]
    if thread.handler is None or thread.waits_for is None or thread.replay_log is None:
        return f"{thread.name}{queue}"
    begun = thread.replay_log
    holds = thread.lock and d.locks.get(thread.lock) == thread.name
    answers = [text_of(answer) for answer in begun.results]
    partial = canonical(thread.waits_for.partial_results)
    return f"{thread.name}{queue}{canonical(thread.event)}{text_of(begun.context)}{answers}{partial}{holds}"


def orphans_and_network(orphans: Mapping[int, list[Any]], network: Network) -> list[Text]:
    """Return [one Text], the fingerprint text of the network and of the open sessions of ended processes.

    `orphans` maps a broker to these sessions. Return [] if `orphans` is empty and the network has no request, no delayed response
    and no known controller.
    """
    waiting = network.channels, network.to_controller, network.in_flight, network.delayed_responses
    if not (orphans or network.known_controllers or any(waiting)):
        return []
    sessions = [f"orphans{n}:{len(clients)}" for n, clients in sorted(orphans.items())]
    channels = [
        f"{pair}{[(p.api, p.is_orphaned, canonical(_message(p, pair[1]))) for p in waiting]}"
        for pair, waiting in sorted(network.channels.items())
    ]
    to_controller = [
        f"{n}{[(q.api, canonical(q.body), q.receiver, q.refused_by) for q in asked]}"
        for n, asked in sorted(network.to_controller.items())
        if asked
    ]
    fetching = [f"{leaders}" for _, leaders in network.fetching_from.values()]
    held = [
        f"{h.broker}{h.leaders}{network.in_flight.get(key)}{canonical(h.body)}" for key, h in network.delayed_responses.items()
    ]
    waits = [
        *sorted(fetching), *sorted(held), f"asks{sorted(network.known_controllers.items())}", f"thawed{sorted(network.thawed)}",
    ]  # fmt: skip
    return [text("\n".join([*sessions, str(sorted(network.in_flight.values())), *channels, *to_controller, *waits]))]


def _logs(world: World) -> list[str]:
    """Return a text for each replica's log, and one for each partition's acknowledged records; no text has a correlation id."""
    return [
        f"{n}{tp}{canonical(log.without_times()._replace(waiting=()))}{[_waiting(delayed) for delayed in log.waiting]}"
        for n, found in data_plane.replicas(world).items()
        for tp, log in sorted(found.items())
    ] + [f"{tp}{canonical(acknowledged)}" for tp, acknowledged in sorted(world.acknowledged.items())]


def _waiting(operation: DelayedProduce | DelayedAppend) -> int | str:
    return f"{operation.offset}{canonical(operation.event)}" if isinstance(operation, DelayedAppend) else operation.offset


def _message(queued_request: Any, receiver: int) -> Any:
    r = queued_request.requests
    match queued_request.api:
        case "LeaderAndIsr":
            partitions = r.leader_and_isr[receiver]
        case "StopReplica":
            partitions = r.stop_replica[receiver]
        case _:
            partitions = (r.update_metadata, r.live_brokers)
    return (r.controller_id, r.controller_epoch, Epoch(r.broker_epochs[receiver]), partitions)


# ---------------------------------------------------------------- values


class Epoch(int):
    """A broker epoch, which is a zxid; its text is <z17> for 17.

    `fingerprint.text` replaces the 17 by the rank of this zxid.
    """


def _data(data: bytes) -> str:
    return TIMESTAMP.sub(b'"timestamp":""', data).decode("utf-8", "backslashreplace")


def canonical(value: Any) -> str:
    """Return a value as text, without the fields that have no effect on later steps, such as times."""
    kind = type(value)
    text_of = CANONICAL.get(kind)
    if text_of is None:
        text_of = CANONICAL[kind] = _canonical_for(value)
    return text_of(value)


def _canonical_for(value: Any) -> Callable[[Any], str]:
    """Return a function that converts values of the type of `value` into text, equal values into equal texts."""
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
        case TransactionResult():
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


CANONICAL: dict[type, Callable[[Any], str]] = {}
"""The function that makes the text of a type's values, added when `canonical` meets the first value of the type."""


def _fields(cls: type) -> Callable[[Any], str]:
    names = [f.name for f in fields(cls) if f.name not in OMITTED]
    kept = [(name, _epochs if name in EPOCHS else canonical) for name in names if name not in OPTIONAL]
    optional = [name for name in names if name in OPTIONAL]

    def text_of(v: Any) -> str:
        texts = [f"{name}={field_text(getattr(v, name))}" for name, field_text in kept]
        texts += [f"{name}={canonical(getattr(v, name))}" for name in optional if getattr(v, name)]
        return f"{cls.__name__}({','.join(texts)})"

    return text_of


def _epochs(value: Any) -> str:
    return canonical({k: Epoch(v) for k, v in value.items()} if isinstance(value, Mapping) else Epoch(value))
