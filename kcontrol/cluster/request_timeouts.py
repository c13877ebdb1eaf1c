"""Ends a broker's wait for the response of a frozen broker, after `controller.socket.timeout.ms`.

Source: RequestSendThread.doWork in ControllerChannelManager.scala (0.10.2.2, 2.8).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from kcontrol.cluster import broker_to_controller, channel_closing
from kcontrol.cluster.delivery import is_reachable
from kcontrol.driver.driver import Driver
from kcontrol.journal.journal import RecordId

if TYPE_CHECKING:
    from kcontrol.cluster.world import World


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
        yield from (b for b in channel_closing.awaited_brokers(world, n, thread) if world.processes[b].frozen)
    if (receiver := broker_to_controller.frozen_receiver(world, n)) is not None:
        yield receiver


def can_time_out(world: World, n: int, receiver: int) -> bool:
    """Whether `n` waits for a response of the frozen broker `receiver`."""
    return is_reachable(world, n) and receiver in brokers_to_time_out(world, n)


def time_out_request(world: World, n: int, receiver: int) -> None:
    """End the connection of broker `n` to the frozen broker `receiver`, after `controller.socket.timeout.ms`."""
    driver = world.processes[n].driver
    closing = [thread for name, thread in driver.threads.items() if receiver in channel_closing.awaited_brokers(world, n, name)]
    cause = closing[0].begin_record if closing else broker_to_controller.first_alter_isr_record(world, n)
    if world.is_simulated:
        world.now_ms += world.settings.config.controller_socket_timeout_ms
    timed_out = driver.log("time_out_request", cause, to=receiver)
    # A controller closes its channel; the AlterIsr of a leader becomes pending again.
    if closing:
        close(world, driver, (receiver,), timed_out)
    else:
        broker_to_controller.abandon_connection(world, n, receiver)
