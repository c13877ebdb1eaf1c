"""Finds the brokers whose responses a controller awaits before it closes channels, from 0.10.2 to 2.1.0.

A controller that resigns, or that removes a dead broker, closes channels. If the rule `awaits_in_flight_requests` is set, the
thread of a channel ends only after the response to its request, and the controller's thread waits for that end. Source:
ControllerChannelManager.removeExistingBroker and ShutdownableThread.shutdown (0.10.2.2, 1.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcontrol.core.effects import AwaitInFlightRequests

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
