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
    """Return the brokers whose responses broker `n`, a controller, awaits in `thread` before it closes its channels to them."""
    waits_for = world.processes[n].driver.threads[thread].waits_for
    if waits_for is None or not isinstance(waits_for.effect, AwaitInFlightRequests):
        return []
    brokers = [b for b in waits_for.effect.brokers if b in world.processes]
    # A broker that was never frozen is not awaited: its response arrives in any case.
    frozen = [b for b in brokers if world.processes[b].frozen and world.network.awaits_response(n, b)]
    return frozen + [b for b in brokers if (n, b) in world.network.thawed]


def record_thaw(world: World, receiver: int) -> None:
    """Add (broker, `receiver`) to `network.thawed` for each broker that waits to close its channel until `receiver` responds.

    Call it while `receiver`, which is thawed now, is still marked as frozen.
    """
    waiting = [
        n for n, p in world.processes.items() if any(receiver in awaited_brokers(world, n, thread) for thread in p.driver.threads)
    ]
    world.network.thawed |= {(n, receiver) for n in waiting}


def is_blocked(world: World, n: int, thread: str) -> bool:
    """Return whether this thread of broker `n` waits to close a channel until the channel's other broker has responded.

    That broker is frozen, or it has thawed and has not responded yet.
    """
    return bool(awaited_brokers(world, n, thread))
