"""Responses to LeaderAndIsr that a broker delays until a fetch from a frozen leader ends or times out, up to 1.0.

A broker that follows no partition of a leader any more ends the thread that fetches from this leader. It waits for this thread
while it holds the lock of all replica changes. By then the request has taken effect: a broker can lead a partition before it
sends the response.
Source: ReplicaManager.becomeLeaderOrFollower and AbstractFetcherManager.shutdownIdleFetcherThreads (0.8.1); seen on brokers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kcontrol.cluster.network import DelayedResponse
from kcontrol.driver.driver import Driver
from kcontrol.journal.journal import RecordId

if TYPE_CHECKING:
    from kcontrol.cluster.world import World

LOCKED = ("LeaderAndIsr", "StopReplica")
"""The requests that take the lock of all replica changes (`replicaStateChangeLock`)."""


def record_fetches(world: World, driver: Driver, correlation_id: str, receive_record: RecordId) -> None:
    """The broker may have to end its fetches from frozen leaders before it responds (`delay_if_fetching`)."""
    frozen = {n for n, p in world.processes.items() if p.frozen}
    if frozen and driver.controller.rules.response_waits_for_fetch and (leaders := frozen & _followed_leaders(driver)):
        world.network.fetching_from[correlation_id] = (receive_record, tuple(sorted(leaders)))


def _followed_leaders(driver: Driver) -> set[int]:
    return {held.leadership.leader for tp, held in driver.broker.hosted.items() if driver.broker.is_fetching(tp)}


def delay_if_fetching(world: World, driver: Driver, correlation_id: str, body: Any) -> bool:
    """Whether the response must wait for the end of a fetch from a frozen leader."""
    received, fetching = world.network.fetching_from.pop(correlation_id, (None, ()))
    # Frozen leaders whose partitions the broker follows no longer.
    leaders = tuple(sorted(set(fetching) - _followed_leaders(driver))) if fetching else ()
    if received is None or not leaders:
        return False
    record = world.log("delay_response", received, broker=driver.node, leaders=leaders)
    world.network.delayed_responses[correlation_id] = DelayedResponse(driver.node, body, record, leaders)
    return True


def is_locked(world: World, broker: int, api: str) -> bool:
    """Return whether a request `api` to the broker must wait, because a delayed response of this broker holds the replica lock.

    LeaderAndIsr and StopReplica wait, and since 0.8.2 also UpdateMetadata.

    Source: ReplicaManager.maybeUpdateMetadataCache (0.8.2), KafkaApis.handleUpdateMetadataRequest (0.8.1).
    """
    locked = (*LOCKED, "UpdateMetadata") if world.settings.rules().locks_metadata else LOCKED
    return api in locked and any(delayed.broker == broker for delayed in world.network.delayed_responses.values())


def _is_frozen(world: World, n: int) -> bool:
    return n in world.processes and world.processes[n].frozen


def deliverable(world: World) -> Iterator[tuple[int, str]]:
    """(broker, correlation id); neither the broker nor a leader that it fetched from is frozen any more."""
    for correlation_id, delayed in world.network.delayed_responses.items():
        if not any(_is_frozen(world, n) for n in (*delayed.leaders, delayed.broker)):
            yield delayed.broker, correlation_id


def has_deliverable(world: World, broker: int) -> bool:
    return any(b == broker for b, _ in deliverable(world))


def send_delayed_response(world: World, broker: int) -> None:
    """Raises StopIteration if no delayed LeaderAndIsr response of this broker can be sent now."""
    _deliver(world, next(key for b, key in deliverable(world) if b == broker), timed_out=False)


def blocked(world: World) -> Iterator[tuple[int, str]]:
    """Yield (broker, correlation id) of each response that a broker, not frozen itself, delays because a leader is frozen."""
    for correlation_id, delayed in world.network.delayed_responses.items():
        if any(_is_frozen(world, n) for n in delayed.leaders) and not _is_frozen(world, delayed.broker):
            yield delayed.broker, correlation_id


def can_time_out(world: World, broker: int) -> bool:
    return any(b == broker for b, _ in blocked(world))


def time_out_fetch(world: World, broker: int) -> None:
    """Let a broker's fetch from a frozen leader time out, and send the LeaderAndIsr response that waits for the fetch."""
    # After 30 s: `replica.socket.timeout.ms`, in 0.8 twice (SimpleConsumer.sendRequest), from 0.10.0 on `request.timeout.ms`
    # (ReplicaFetcherThread.sendRequest).
    _deliver(world, next(key for b, key in blocked(world) if b == broker), timed_out=True)


def _deliver(world: World, correlation_id: str, *, timed_out: bool) -> None:
    delayed = world.network.delayed_responses.pop(correlation_id)
    record = world.log("send_delayed_response", delayed.record, broker=delayed.broker, timed_out=timed_out)
    world.answer(world.processes[delayed.broker].driver, correlation_id, delayed.body, record)
