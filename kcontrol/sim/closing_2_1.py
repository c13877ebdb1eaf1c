"""A closing of channels that waits for the requests that are out, up to 2.1.0.

A controller that resigns, or removes a dead broker, closes channels. Where the rule `awaits_requests` says so, the thread of a
channel ends only after its request, and the controller's thread waits for that.
Source: ControllerChannelManager.removeExistingBroker and ShutdownableThread.shutdown (0.10.2.2, 1.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcontrol.effects import AwaitRequests

if TYPE_CHECKING:
    from kcontrol.sim.world import World


def awaited(world: World, n: int, thread: str) -> list[int]:
    """Return the brokers whose answers a thread of this broker waits for: they are frozen, or have been when it began to wait."""
    waits_for = world.processes[n].driver.threads[thread].waits_for
    if waits_for is None or not isinstance(waits_for.effect, AwaitRequests):
        return []
    brokers = [b for b in waits_for.effect.brokers if b in world.processes]
    frozen = [b for b in brokers if world.processes[b].frozen and world.network.is_out(n, b)]
    return frozen + [b for b in brokers if (n, b) in world.network.thawed]


def note_thaw(world: World, receiver: int) -> None:
    """Let each thread that waits for a broker which thaws now wait on, until that broker has answered."""
    waiting = [n for n, p in world.processes.items() if any(receiver in awaited(world, n, thread) for thread in p.driver.threads)]
    world.network.thawed |= {(n, receiver) for n in waiting}


def holds_up(world: World, n: int, thread: str) -> bool:
    """Return whether a thread that could go on waits for a request at a frozen broker."""
    return bool(awaited(world, n, thread))
