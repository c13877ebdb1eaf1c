"""Answers to LeaderAndIsr that a broker holds back until a fetch from a frozen leader ends or times out, up to 1.0.

Whoever stops following a leader altogether ends the thread that fetches there, and waits for that thread under the lock of all
replica changes. What the request asks for has happened by then: a broker can lead whose answer has not come yet.
Source: ReplicaManager.becomeLeaderOrFollower and AbstractFetcherManager.shutdownIdleFetcherThreads (0.8.1); seen on brokers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kcontrol.runtime.driver import Driver
from kcontrol.runtime.journal import RecordId
from kcontrol.sim.network import Held

if TYPE_CHECKING:
    from kcontrol.sim.world import World

LOCKED = ("LeaderAndIsr", "StopReplica")
"""The requests that take the lock of all replica changes (`replicaStateChangeLock`)."""


def note_fetches(world: World, driver: Driver, correlation_id: str, received: RecordId) -> None:
    """Remember from which frozen leaders this broker fetches as it begins to handle a request."""
    frozen = {n for n, p in world.processes.items() if p.frozen}
    if frozen and driver.controller.rules.waits_for_fetch and (leaders := frozen & _followed(driver)):
        world.network.fetching[correlation_id] = (received, tuple(sorted(leaders)))


def _followed(driver: Driver) -> set[int]:
    return {held.value.leader for tp, held in driver.broker.hosted.items() if driver.broker.fetches(tp)}


def holds_back(world: World, driver: Driver, correlation_id: str, body: Any) -> bool:
    """Whether this answer has to wait; if so, it is put aside."""
    received, fetching = world.network.fetching.pop(correlation_id, (None, ()))
    leaders = tuple(sorted(set(fetching) - _followed(driver)))
    if received is None or not leaders:
        return False
    record = world.log("hold", received, broker=driver.node, leaders=leaders)
    world.network.held[correlation_id] = Held(driver.node, body, record, leaders)
    return True


def is_locked(world: World, broker: int, api: str) -> bool:
    """Whether a request has to wait for the lock that an answer held back keeps."""
    return api in LOCKED and any(held.broker == broker for held in world.network.held.values())


def _is_frozen(world: World, n: int) -> bool:
    return n in world.processes and world.processes[n].frozen


def free(world: World) -> Iterator[tuple[int, str]]:
    """Yield the answers, with their brokers, whose leaders all have thawed or died."""
    for correlation_id, held in world.network.held.items():
        if not any(_is_frozen(world, n) for n in (*held.leaders, held.broker)):
            yield held.broker, correlation_id


def is_free(world: World, broker: int) -> bool:
    return any(who == broker for who, _ in free(world))


def give(world: World, broker: int) -> None:
    """The fetch has ended, and the answer goes to the controller, if the controller still waits for it."""
    _answer(world, next(key for who, key in free(world) if who == broker), timed_out=False)


def waiting(world: World) -> Iterator[tuple[int, str]]:
    """Yield the answers, with their brokers, that wait for a fetch from a leader which is still frozen."""
    for correlation_id, held in world.network.held.items():
        if any(_is_frozen(world, n) for n in held.leaders) and not _is_frozen(world, held.broker):
            yield held.broker, correlation_id


def may_time_out(world: World, broker: int) -> bool:
    return any(who == broker for who, _ in waiting(world))


def time_out(world: World, broker: int) -> None:
    """The fetch from the frozen leader fails, and the answer goes to the controller.

    In 0.8 the fetch is sent a second time first, and each waits `replica.socket.timeout.ms` (SimpleConsumer.sendRequest); in 0.9
    the fetch waits that time once, and from 0.10.0 on `request.timeout.ms` (ReplicaFetcherThread.sendRequest). All are 30 s.
    """
    _answer(world, next(key for who, key in waiting(world) if who == broker), timed_out=True)


def _answer(world: World, correlation_id: str, *, timed_out: bool) -> None:
    held = world.network.held.pop(correlation_id)
    record = world.log("give", held.record, broker=held.broker, timed_out=timed_out)
    world.answer(world.processes[held.broker].driver, correlation_id, held.body, record)
