"""Finds the brokers whose responses a controller awaits before it closes channels, from 0.10.2 to 2.1.0.

A controller that resigns, or that removes a dead broker, closes channels. If the rule `awaits_in_flight_requests` is set, the
thread of a channel ends only after the response to its request, and the controller's thread waits for that end. Source:
ControllerChannelManager.removeExistingBroker and ShutdownableThread.shutdown (0.10.2.2, 1.1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from kcontrol.cluster import broker_to_controller
from kcontrol.cluster.delivery import is_reachable
from kcontrol.core.effects import AwaitInFlightRequests
from kcontrol.driver.driver import Driver
from kcontrol.journal.journal import RecordId

if TYPE_CHECKING:
    from kcontrol.cluster.world import World


def awaited_brokers(world: World, n: int, thread: str) -> list[int]:
    """Frozen brokers whose responses the controller awaits before it closes their channels."""
    waits_for = world.processes[n].driver.threads[thread].waits_for
    if waits_for is None or not isinstance(waits_for.effect, AwaitInFlightRequests):
        return []
    brokers = [b for b in waits_for.effect.brokers if b in world.processes]
    # The response of a broker that was never frozen arrives in any case.
    frozen = [b for b in brokers if world.processes[b].frozen and world.network.awaits_response(n, b)]
    return frozen + [b for b in brokers if (n, b) in world.network.thawed]


def record_thaw(world: World, receiver: int) -> None:
    """To be called while the field `frozen` of `receiver` is still True."""
    threads = [(n, thread) for n, p in world.processes.items() for thread in p.driver.threads]
    world.network.thawed |= {(n, receiver) for n, thread in threads if receiver in awaited_brokers(world, n, thread)}


def is_blocked(world: World, n: int, thread: str) -> bool:
    """The controller waits for a frozen broker's response before it closes the channel."""
    return bool(awaited_brokers(world, n, thread))


# ---------------------------------------------------------------- a wait for a frozen broker's response ends


def close(world: World, driver: Driver, receivers: Collection[int], cause: RecordId) -> None:
    """Writes a record `close_channels`, unless there was no request."""
    frozen = [b for b in receivers if b in world.processes and world.processes[b].frozen]
    # Requests in a frozen broker's socket stay there, except from 0.9 to 0.10.1, where brokers read none from a closed
    # connection.
    unread = world.network.unread(driver.node, frozen) if world.settings.rules().reads_requests_of_dead_controllers else []
    closed = world.network.close(driver.node, receivers, unread)
    kept = [receiver for receiver in unread if receiver in closed]
    if closed:
        driver.log("close_channels", cause, to=closed, **({"unread_by": kept} if kept else {}))


def brokers_to_time_out(world: World, n: int) -> Iterator[int]:
    """For which `n` waits as a controller that closes its channel, or as a leader that has sent AlterIsr."""
    for thread in world.processes[n].driver.threads:
        yield from (b for b in awaited_brokers(world, n, thread) if world.processes[b].frozen)
    if (receiver := broker_to_controller.frozen_receiver(world, n)) is not None:
        yield receiver


def can_time_out(world: World, n: int, receiver: int) -> bool:
    """Whether `n` waits for a response of the frozen broker `receiver`."""
    return is_reachable(world, n) and receiver in brokers_to_time_out(world, n)


def time_out_request(world: World, n: int, receiver: int) -> None:
    """End the connection of broker `n` to the frozen broker `receiver`, after `controller.socket.timeout.ms`."""
    driver = world.processes[n].driver
    closing = [thread for name, thread in driver.threads.items() if receiver in awaited_brokers(world, n, name)]
    cause = closing[0].begin_record if closing else broker_to_controller.first_alter_isr_record(world, n)
    if world.is_simulated:
        world.now_ms += world.settings.config.controller_socket_timeout_ms
    timed_out = driver.log("time_out_request", cause, to=receiver)
    # A controller closes its channel; the AlterIsr of a leader becomes pending again.
    if closing:
        close(world, driver, (receiver,), timed_out)
    else:
        broker_to_controller.abandon_connection(world, n, receiver)
