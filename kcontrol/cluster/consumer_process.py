"""Faults of a consumer's process: the process is frozen and thaws with its member id, or it stops polling and starts again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcontrol.broker.broker_configs import LARGEST_INT
from kcontrol.cluster.consumer_clients import is_consumer, is_number, note
from kcontrol.cluster.consumer_state import CLOSED, FROZEN, POLLING, STUCK

if TYPE_CHECKING:
    from kcontrol.cluster.world import World


def can_freeze(world: World, name: str, for_ms: object = None) -> bool:
    """`for_ms` None: a freeze without a given end."""
    is_legal = for_ms is None or is_number(for_ms, 1, LARGEST_INT)
    return is_legal and is_consumer(world, name) and world.consumers[name].condition != FROZEN


def freeze(world: World, name: str, for_ms: int | None = None) -> None:
    """As SIGSTOP: no heartbeat either. After `for_ms`, `consumer_life.next_action` proposes the end of the freeze."""
    ends = None if for_ms is None else world.clock() + for_ms
    words = [] if for_ms is None else [for_ms]
    cause = world.log("act", None, action=["freeze_consumer", name, *words])
    note(world, name, world.consumers[name]._replace(condition=FROZEN, thaws_at_ms=ends), cause)


def can_thaw(world: World, name: str) -> bool:
    return is_consumer(world, name) and world.consumers[name].condition == FROZEN


def thaw(world: World, name: str) -> None:
    """Let a frozen consumer continue, as SIGCONT does, with the member id and the generation in its state."""
    cause = world.log("act", None, action=["thaw_consumer", name])
    note(world, name, world.consumers[name]._replace(condition=POLLING, thaws_at_ms=None), cause)


def can_start_polling(world: World, name: str) -> bool:
    """Whether a consumer has stopped polling, or has left its group by LeaveGroup (closed)."""
    return is_consumer(world, name) and world.consumers[name].condition in (STUCK, CLOSED)


def start_polling(world: World, name: str) -> None:
    """Let a consumer poll again. A closed one has no member id any more: it joins as a new member."""
    cause = world.log("act", None, action=["start_polling", name])
    note(world, name, world.consumers[name]._replace(condition=POLLING), cause)


def can_stop_polling(world: World, name: str) -> bool:
    """Return whether there is this consumer and it polls now: it is not frozen or closed, and has not stopped polling."""
    return is_consumer(world, name) and world.consumers[name].condition == POLLING


def stop_polling(world: World, name: str) -> None:
    """Let a consumer stop calling poll: its heartbeats go on, and it takes part in no rebalance."""
    # Before 0.10.1 (KIP-62) poll sends the heartbeats of Kafka's consumer; there it stands for another client with a heartbeat
    # thread.
    cause = world.log("act", None, action=["stop_polling", name])
    note(world, name, world.consumers[name]._replace(condition=STUCK, polled_at_ms=world.clock()), cause)
