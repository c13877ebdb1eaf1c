"""What waits for a frozen broker for `controller.socket.timeout.ms` at most: a closing of channels, and a leader's AlterIsr.

What a controller sent before it closed the channel lies in the socket of the frozen broker, which handles it after its thaw.
Source: RequestSendThread.doWork in ControllerChannelManager.scala (0.10.2.2, 2.8).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from kcontrol.runtime.driver import Driver
from kcontrol.runtime.journal import RecordId
from kcontrol.sim import closing_2_1, questions
from kcontrol.sim.exchange import hears

if TYPE_CHECKING:
    from kcontrol.sim.world import World


def close(world: World, driver: Driver, receivers: Collection[int], cause: RecordId) -> None:
    """Close a controller's channels; what lies in a frozen broker's socket stays there, where the release reads it."""
    frozen = [b for b in receivers if b in world.processes and world.processes[b].frozen]
    unread = world.network.unread(driver.node, frozen) if world.settings.rules().reads_from_the_dead else []
    closed = world.network.close(driver.node, receivers, unread)
    kept = [receiver for receiver in unread if receiver in closed]
    if closed:
        driver.log("close_channels", cause, to=closed, **({"unread": kept} if kept else {}))


def offers(world: World, n: int) -> Iterator[int]:
    """Return the frozen brokers that this broker waits for and may stop waiting for."""
    for thread in world.processes[n].driver.threads:
        yield from (b for b in closing_2_1.awaited(world, n, thread) if world.processes[b].frozen)
    if (controller := questions.waits_for(world, n)) is not None:
        yield controller


def can_time_out(world: World, n: int, receiver: int) -> bool:
    """Return whether a broker waits for this frozen broker."""
    return hears(world, n) and receiver in offers(world, n)


def time_out(world: World, n: int, receiver: int) -> None:
    """End a broker's connection to a frozen broker, which has not answered for `controller.socket.timeout.ms`."""
    driver = world.processes[n].driver
    closing = [thread for name, thread in driver.threads.items() if receiver in closing_2_1.awaited(world, n, name)]
    cause = closing[0].begun if closing else questions.record_of(world, n)
    if world.is_simulated:
        world.now_ms += world.settings.config.controller_socket_timeout_ms
    timed_out = driver.log("time_out", cause, to=receiver)
    if closing:
        close(world, driver, (receiver,), timed_out)
    else:
        questions.give_up(world, n, receiver)
