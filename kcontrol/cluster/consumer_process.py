"""Faults of a consumer's process: the process is frozen, resumes with its member id, or does not poll any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcontrol.broker.broker_configs import LARGEST_INT
from kcontrol.cluster.consumer_clients import is_consumer, is_number, note
from kcontrol.cluster.consumer_state import FROZEN, POLLING, STUCK

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
    note(world, name, world.consumers[name]._replace(condition=FROZEN, resumes_at_ms=ends), cause)


def can_resume(world: World, name: str) -> bool:
    """Return whether a consumer's process is frozen, has been closed (it has left its group), or does not poll."""
    return is_consumer(world, name) and world.consumers[name].condition != POLLING


def resume(world: World, name: str) -> None:
    """With its old member id and generation; a closed consumer joins as a new member."""
    cause = world.log("act", None, action=["resume_consumer", name])
    note(world, name, world.consumers[name]._replace(condition=POLLING, resumes_at_ms=None), cause)


def can_stop_polling(world: World, name: str) -> bool:
    """Return whether there is this consumer and it polls now: it is not frozen or closed, and has not stopped polling."""
    return is_consumer(world, name) and world.consumers[name].condition == POLLING


def stop_polling(world: World, name: str) -> None:
    """Let a consumer stop calling poll: its heartbeats go on, and it takes part in no rebalance."""
    # Before 0.10.1 (KIP-62) poll sends the heartbeats of Kafka's consumer; there it stands for another client with a heartbeat
    # thread.
    cause = world.log("act", None, action=["stop_polling", name])
    note(world, name, world.consumers[name]._replace(condition=STUCK, polled_at_ms=world.clock()), cause)
