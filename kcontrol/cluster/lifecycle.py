"""The actions that begin and end processes and sessions, and the recovery of a living broker whose session has expired."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from kcontrol.broker.events import BrokerStartup, LogDirFailure, Shutdown
from kcontrol.cluster import broker_to_controller, channel_closing, consumer_clients, data_plane, process, sessions
from kcontrol.cluster.delivery import begin_if_idle
from kcontrol.controller.handlers import every_event
from kcontrol.core.effects import SessionExpired
from kcontrol.core.events import Expire
from kcontrol.core.model import TopicPartition
from kcontrol.driver import log_changes
from kcontrol.driver.driver import Driver
from kcontrol.group.events import ExpireOffsets
from kcontrol.journal.fold import fold
from kcontrol.journal.journal import RecordId
from kcontrol.zookeeper.port import Client, ClosedSession

if TYPE_CHECKING:
    from kcontrol.cluster.world import World

HOST = "127.0.0.1"
FIRST_PORT = 9092


def start(world: World, n: int) -> None:
    """Start the process of broker `n` with a new session, empty memory and the logs on its disk; queue its start-up event."""
    incarnation = world.incarnations.get(n, 0) + 1
    world.incarnations = {**world.incarnations, n: incarnation}
    cause = world.log("start", None, broker=n, incarnation=incarnation)
    client = world.zk.connect(world.settings.config.zookeeper_session_timeout_ms)
    world.owners = {**world.owners, client.session_id: n}
    controller, broker = process.contexts(world.settings, n)
    data_plane.load_logs(world, n, broker)
    driver = world._driver(n, incarnation, client, controller, broker, consumer_clients.context(world.settings))
    world.processes[n] = process.Process(driver, HOST, FIRST_PORT + n)
    opened = driver.log("open", cause, session=client.session_id)
    driver.enqueue(BrokerStartup(HOST, FIRST_PORT + n, 0, _cluster_id(world)), opened, "main")
    if driver.group is not None:
        driver.enqueue(ExpireOffsets(is_scheduled=True), opened)


def _cluster_id(world: World) -> str:
    """Return the id that a starting broker would give to a new cluster; the seed and the number of starts determine it."""
    chance = random.Random(f"{world.settings.seed}/world")
    drawn = [chance.getrandbits(128) for _ in range(sum(world.incarnations.values()))]
    return f"{drawn[-1]:032x}"[:22]


def kill(world: World, n: int) -> None:
    """End the process of broker `n`, as SIGKILL does; ZooKeeper keeps its session until the session expires."""
    record = _log_stop(world, n, None, None)
    p = world.processes.pop(n)
    data_plane.store_logs(world, n, p.driver)
    if p.session is sessions.OPEN:
        world.orphaned_sessions.setdefault(n, []).append(process.OrphanedSession(p.driver.client, record))


def _log_stop(world: World, n: int, cause: RecordId | None, exit_code: int | None) -> RecordId:
    """Log the end of the process of broker `n`, drop the requests that it has sent, and return the id of the `stop` record.

    `cause` is the cause of this record, `exit_code` is None for a killed process.

    Source: Selector.close (0.9.0.1, 0.10.2.2).
    """
    frozen = [b for b, p in world.processes.items() if p.frozen and b != n]
    # Requests in the sockets of frozen brokers stay, except from 0.9 to 0.10.1, where a broker drops the requests of a closed
    # socket.
    unread = world.network.unread(n, frozen) if world.settings.rules().reads_requests_of_dead_controllers else []
    orphaned = world.network.orphaned_senders(n, {b: p.driver.incarnation for b, p in world.processes.items()})
    world.network.remove_process(n, unread, orphaned)
    dropped = {name: brokers for name, brokers in (("unread_by", unread), ("orphaned_by", orphaned)) if brokers}
    stopped = world.log("stop", cause, broker=n, exit_code=exit_code, **dropped)
    broker_to_controller.disconnect(world, n, stopped)
    return stopped


def has_replica(world: World, n: int, partition: str) -> bool:
    """Return whether broker `n` runs, is not frozen, and has a replica of a partition."""
    p = world.processes.get(n)
    return p is not None and not p.frozen and TopicPartition.parse(partition) in p.driver.broker.hosted


def fail_log_dir(world: World, n: int, partition: str) -> None:
    """Fail the log directory of broker `n` that has only this partition; before 1.0 the process then ends (KIP-112)."""
    cause = world.log("act", None, action=["fail_log_dir", n, partition])
    driver = world.processes[n].driver
    if driver.broker.rules.outlives_log_dir:
        driver.enqueue(LogDirFailure((TopicPartition.parse(partition),)), cause)
        begin_if_idle(world, n)
    else:
        kill(world, n)


def terminate(world: World, n: int) -> None:
    """Send SIGTERM to the process of broker `n`: its controlled shutdown begins."""
    world.processes[n].driver.enqueue(Shutdown(), world.log("act", None, action=["terminate", n]), "requests")


def freeze(world: World, n: int) -> None:
    """Send SIGSTOP to the process of broker `n`: its threads stop, and its session stays open until it expires."""
    world.log("freeze", None, broker=n)
    world.processes[n].frozen = True


def thaw(world: World, n: int) -> None:
    channel_closing.record_thaw(world, n)
    world.log("thaw", None, broker=n)
    world.processes[n].frozen = False


def expire_session(world: World, n: int) -> None:
    """End the oldest session left by an ended process of broker `n`.

    If there is no such session, end the session of the running process.
    """
    orphans = world.orphaned_sessions.get(n)
    if orphans:
        orphan = orphans.pop(0)
        if not orphans:
            del world.orphaned_sessions[n]
        end_session(world, n, orphan.client, orphan.record)
        return
    p = world.processes[n]
    closed = _end(world, n, p.driver.client)
    sessions.move(p, sessions.EXPIRED)
    p.session_loss_record = p.driver.log("session_lost", None)
    _log_close(world, n, p.driver.client, closed, p.session_loss_record)


def end_session(world: World, n: int, client: Client, cause: RecordId | None) -> None:
    _log_close(world, n, client, _end(world, n, client), cause)


def _end(world: World, n: int, client: Client) -> ClosedSession:
    """End the session of `client`, which broker `n` opened; return the zxid and the deleted ephemeral znodes."""
    try:
        return world.zk.end(client)
    except SessionExpired:
        held = [path for path, (_, _, owner) in fold(world.journal.records)["znodes"].items() if owner == n]
        stats = zip(held, world.tool.exists(held, False), strict=True)
        gone = [path for path, stat in stats if stat is None or world.owners.get(stat.ephemeral_owner) != n]
        # The zxid is not known: a real ZooKeeper has ended the session before.
        return ClosedSession(0, tuple(sorted(gone)))


def expire_sessions(world: World, brokers: Sequence[int]) -> None:
    """End the sessions of these brokers in one step: their heartbeats were missing for longer than the session timeout."""
    for n in brokers:
        expire_session(world, n)


def overdue(world: World) -> tuple[str, tuple[int, ...]] | None:
    """("expire_sessions", brokers) if a real ZooKeeper has ended their sessions. Raises ConnectionLoss."""
    if world.is_simulated:
        return None
    orphans = [n for n, found in sorted(world.orphaned_sessions.items()) for orphan in found if orphan.client.has_expired()]
    living = [n for n, p in sorted(world.processes.items()) if p.session is sessions.OPEN and p.driver.client.has_expired()]
    return ("expire_sessions", (*orphans, *living)) if orphans or living else None


ADMIN_CLIENTS = "tools"
REOPEN = ("reopen", ADMIN_CLIENTS)


def is_admin_clients(world: World, client: str) -> bool:
    """Return whether `client` is ADMIN_CLIENTS, the name of all clients that are no brokers, which share one session."""
    return client == ADMIN_CLIENTS


def reopen(world: World, client: str) -> None:
    """All clients that are no brokers share one session; `client` is their name in the journal."""
    with suppress(SessionExpired):
        world.zk.end(world._tool)
    world._tool = world.zk.connect()
    world.log("reopen", None, client=client, session=world._tool.session_id)


def _log_close(world: World, n: int, client: Client, closed_session: ClosedSession, cause: RecordId | None) -> None:
    world.log("close", cause, broker=n, session=client.session_id, deleted=list(closed_session.deleted), zxid=closed_session.zxid)


def exit_process(world: World, n: int) -> None:
    """End the process of broker `n` after a failed start-up or a controlled shutdown, and close its session if this is open."""
    # `World.run` performs this action only when all requests of the process that can be delivered are delivered.
    p = world.processes.pop(n)
    log_changes.checkpoint(p.driver)
    cause = _log_stop(world, n, p.driver.exit_cause, p.driver.exit_code)
    data_plane.store_logs(world, n, p.driver)
    if p.session is sessions.OPEN:
        end_session(world, n, p.driver.client, cause)


def renew_session(world: World, n: int) -> None:
    """Let the ZooKeeper client of a running broker notice that the session has expired.

    Before 1.1 the client opens a new session at once; since 1.1 Expire is queued, and `reconnect` opens the session later.
    """
    p = world.processes[n]
    p.session_loss_record = record = p.driver.log("renew", p.session_loss_record)
    design = p.driver.controller.design
    if design.on_expiry:
        sessions.move(p, sessions.EXPIRING)
        p.driver.clear("controller", record)
        # Since 1.1 Expire replaces all waiting events of the controller, and `reconnect` opens a new session in a later step.
        for event in design.on_expiry:
            p.driver.enqueue(event(), record)
    else:
        # Before 1.1 ZkClient opens a new session at once and calls every listener.
        reconnect(world, n)


def reconnect(world: World, n: int) -> None:
    """Open a new session for broker `n`, and queue the events that a new session causes in the broker's release.

    Since 1.1 this is possible only when the handler of Expire has begun (`expire_has_begun`).
    """
    p = world.processes[n]
    record = _open(world, n)
    design = p.driver.controller.design
    for event in design.on_new_session:
        p.driver.enqueue(event(p.host, p.port, p.driver.client.session_id), record)
    # Up to 1.0 ZkClient also calls the listener of each watched path.
    for called in every_event(p.driver.znode_handlers, design) if design.has_listeners else ():
        p.driver.enqueue(called, record)


def _open(world: World, n: int) -> RecordId:
    """Open a new session for broker `n`, whose process is alive; return the id of the journal record `open`."""
    p = world.processes[n]
    client = world.zk.connect(world.settings.config.zookeeper_session_timeout_ms)
    world.owners = {**world.owners, client.session_id: n}
    p.driver.client = client
    sessions.move(p, sessions.OPEN)
    return p.driver.log("open", p.session_loss_record, session=client.session_id)


def expire_has_begun(driver: Driver) -> bool:
    """Return whether a new session may be opened: the handler of Expire has begun, or the release does not wait for it."""
    return driver.controller.rules.handlers_outlive_session or not any(
        isinstance(item.event, Expire) for item in driver.threads["controller"].queue.waiting
    )
