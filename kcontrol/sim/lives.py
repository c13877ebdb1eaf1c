"""Processes and sessions: how they begin, how they end, and how a living broker gets over the end of its session."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from kcontrol.controller.handlers import every_event
from kcontrol.effects import SessionExpired
from kcontrol.events import BrokerStartup, Expire, LogDirFailure, NewSession, RegisterBroker, RegisterBrokerAndReelect, Shutdown
from kcontrol.generations import EVENT_THREAD
from kcontrol.model import TopicPartition
from kcontrol.runtime import logs
from kcontrol.runtime.driver import Driver
from kcontrol.runtime.fold import fold
from kcontrol.runtime.journal import RecordId
from kcontrol.runtime.zookeeper import Client, Closed
from kcontrol.sim import closing_2_1, data, groups, process
from kcontrol.sim.exchange import begin_if_idle

if TYPE_CHECKING:
    from kcontrol.sim.world import World

HOST = "127.0.0.1"
FIRST_PORT = 9092


def start(world: World, n: int) -> None:
    """A broker process starts: a new session, and its start-up handler waiting to run."""
    incarnation = world.incarnations.get(n, 0) + 1
    world.incarnations = {**world.incarnations, n: incarnation}
    cause = world.log("start", None, broker=n, incarnation=incarnation)
    client = world.zk.connect(world.settings.config.zookeeper_session_timeout_ms)
    world.owners = {**world.owners, client.session_id: n}
    controller, broker = process.contexts(world.settings, n)
    data.load(world, n, broker)
    driver = world._driver(n, incarnation, client, controller, broker, groups.context(world.settings))
    world.processes[n] = process.Process(driver, HOST, FIRST_PORT + n)
    opened = driver.log("open", cause, session=client.session_id)
    driver.enqueue(BrokerStartup(HOST, FIRST_PORT + n, 0, _cluster_id(world)), opened, "main")


def _cluster_id(world: World) -> str:
    """What the broker that has just started would call a new cluster: the world's seed draws one name for every start."""
    chance = random.Random(f"{world.settings.seed}/world")
    drawn = [chance.getrandbits(128) for _ in range(sum(world.incarnations.values()))]
    return f"{drawn[-1]:032x}"[:22]


def kill(world: World, n: int) -> None:
    """The process dies at once; ZooKeeper does not know yet, and keeps its session until it expires."""
    record = _stop(world, n, None, None)
    p = world.processes.pop(n)
    data.keep(world, n, p.driver)
    if p.session == "open":
        world.ghosts.setdefault(n, []).append(process.Ghost(p.driver.client, record))


def _stop(world: World, n: int, cause: RecordId | None, exit_code: int | None) -> RecordId:
    """The record of a process's end. What it has sent to a frozen broker lies there in a socket, and will be read.

    From 0.9 to 0.10.1 a broker drops what comes through a socket that is closed. Source: Selector.close (0.9.0.1, 0.10.2.2).
    """
    frozen = [b for b, p in world.processes.items() if p.frozen and b != n]
    unread = world.network.unread(n, frozen) if world.settings.rules().reads_from_the_dead else []
    left = world.network.left_by_dead(n, {b: p.driver.incarnation for b, p in world.processes.items()})
    world.network.forget(n, unread, left)
    said = {name: brokers for name, brokers in (("unread", unread), ("left", left)) if brokers}
    return world.log("stop", cause, broker=n, exit_code=exit_code, **said)


def holds(world: World, n: int, partition: str) -> bool:
    """Whether a broker that can be spoken to has a replica of a partition."""
    p = world.processes.get(n)
    return p is not None and not p.frozen and TopicPartition.parse(partition) in p.driver.broker.hosted


def fail_log_dir(world: World, n: int, partition: str) -> None:
    """The directory with this partition's log fails, the broker's others do not; before 1.0 that ends the process (KIP-112)."""
    cause = world.log("act", None, action=["fail_log_dir", n, partition])
    driver = world.processes[n].driver
    if driver.broker.rules.outlives_log_dir:
        driver.enqueue(LogDirFailure((TopicPartition.parse(partition),)), cause)
        begin_if_idle(world, n)
    else:
        kill(world, n)


def term(world: World, n: int) -> None:
    """The process is asked to stop, as by SIGTERM: it says goodbye to the controller first."""
    driver = world.processes[n].driver
    driver.enqueue(Shutdown(), world.log("act", None, action=["term", n]), "requests")


def freeze(world: World, n: int) -> None:
    """The process is stopped as by SIGSTOP: it does nothing, and its session goes on until it expires."""
    world.log("freeze", None, broker=n)
    world.processes[n].frozen = True


def thaw(world: World, n: int) -> None:
    closing_2_1.note_thaw(world, n)
    world.log("thaw", None, broker=n)
    world.processes[n].frozen = False


def expire(world: World, n: int) -> None:
    """The oldest session that this broker left behind ends, or, if it left none, the one that it works under."""
    ghosts = world.ghosts.get(n)
    if ghosts:
        ghost = ghosts.pop(0)
        if not ghosts:
            del world.ghosts[n]
        end_session(world, n, ghost.client, ghost.record)
        return
    p = world.processes[n]
    closed = _end(world, n, p.driver.client)
    p.session, p.driver.is_cut_off, p.was_asked = "expired", True, False
    p.notices.clear()
    p.lost = p.driver.log("session_lost", None)
    _log_close(world, n, p.driver.client, closed, p.lost)


def end_session(world: World, n: int, client: Client, cause: RecordId | None) -> None:
    _log_close(world, n, client, _end(world, n, client), cause)


def _end(world: World, n: int, client: Client) -> Closed:
    """End a session of a broker.

    Where a real ZooKeeper has ended it before, return what went with it; the zxid is then unknown and given as 0.
    """
    try:
        return world.zk.end(client)
    except SessionExpired:
        held = [path for path, (_, _, owner) in fold(world.journal.records)["znodes"].items() if owner == n]
        stats = zip(held, world.tool.exists(held, False), strict=True)
        gone = [path for path, stat in stats if stat is None or world.owners.get(stat.ephemeral_owner) != n]
        return Closed(0, tuple(sorted(gone)))


def outage(world: World, brokers: Sequence[int]) -> None:
    """ZooKeeper has not heard from these brokers for longer than their session timeouts: their sessions end in one step."""
    for n in brokers:
        expire(world, n)


def overdue(world: World) -> tuple[str, tuple[int, ...]] | None:
    """Return the outage that a real ZooKeeper has ended sessions in and that is not in the journal yet, None where there is none.

    Raises `ConnectionLoss` where no server answers.
    """
    if world.is_simulated:
        return None
    ghosts = [n for n, left in sorted(world.ghosts.items()) for ghost in left if ghost.client.has_expired()]
    living = [n for n, p in sorted(world.processes.items()) if p.session == "open" and p.driver.client.has_expired()]
    return ("outage", (*ghosts, *living)) if ghosts or living else None


TOOLS = "tools"
REOPEN = ("reopen", TOOLS)


def is_tools(world: World, client: str) -> bool:
    """Return whether this is the word for the clients outside the brokers, which share one session."""
    return client == TOOLS


def reopen(world: World, client: str) -> None:
    """End the session of the clients outside the brokers, if a real ZooKeeper has not ended it, and open another one."""
    with suppress(SessionExpired):
        world.zk.end(world._tool)
    world._tool = world.zk.connect()
    world.log("reopen", None, client=client, session=world._tool.session_id)


def _log_close(world: World, n: int, client: Client, closed: Closed, cause: RecordId | None) -> None:
    world.log("close", cause, broker=n, session=client.session_id, deleted=list(closed.deleted), zxid=closed.zxid)


def leave(world: World, n: int) -> None:
    """The process ends by itself, its start-up having failed or its goodbye been said, and closes its session on the way.

    What it had sent before has been given the time to arrive.
    """
    p = world.processes.pop(n)
    logs.checkpoint(p.driver)
    cause = _stop(world, n, p.driver.exit_cause, p.driver.exit_code)
    data.keep(world, n, p.driver)
    if p.session == "open":
        end_session(world, n, p.driver.client, cause)


def renew(world: World, n: int) -> None:
    """The client library of a living broker learns that its session is gone.

    Where there is an event thread alone it hears of that before anything else. ZkClient says nothing, opens another session at
    once, and then calls every listener there is.
    """
    p = world.processes[n]
    p.lost = record = p.driver.log("renew", p.lost)
    design = p.driver.controller.rules.design
    if design != EVENT_THREAD:
        record = _open(world, n)
        session = p.driver.client.session_id if p.driver.controller.rules.own_znode == "fails" else 0
        p.driver.enqueue(NewSession(), record)
        p.driver.enqueue(RegisterBroker(p.host, p.port, session=session), record)
        for event in every_event(p.driver.watched, design):
            p.driver.enqueue(event, record)
        return
    p.session = "expiring"
    p.driver.clear("controller", record)
    p.driver.enqueue(Expire(), record)


def reconnect(world: World, n: int) -> None:
    """Once Expire has begun, the library opens another session; registering under it queues behind Expire."""
    p = world.processes[n]
    record = _open(world, n)
    p.driver.enqueue(RegisterBrokerAndReelect(p.host, p.port, p.driver.client.session_id), record)


def _open(world: World, n: int) -> RecordId:
    """Another session for a living process."""
    p = world.processes[n]
    client = world.zk.connect(world.settings.config.zookeeper_session_timeout_ms)
    world.owners = {**world.owners, client.session_id: n}
    p.driver.client, p.session, p.driver.is_cut_off = client, "open", False
    return p.driver.log("open", p.lost, session=client.session_id)


def expire_has_begun(driver: Driver) -> bool:
    return not any(isinstance(item.event, Expire) for item in driver.threads["controller"].queue.waiting)
