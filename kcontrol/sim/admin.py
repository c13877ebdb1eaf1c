"""What an admin client asks a broker for: reassignments, and what is being reassigned. The answer is in the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kcontrol.events import ApiPartitionReassignment, Event, ListPartitionReassignments
from kcontrol.model import TopicPartition
from kcontrol.sim import exchange

if TYPE_CHECKING:
    from kcontrol.sim.world import World

Targets = Mapping[str, Sequence[int] | None]


def can_list(world: World, broker: int) -> bool:
    """Whether a broker can be spoken to and knows such requests."""
    return exchange.hears(world, broker) and world.settings.rules().reassigns_on_request


def can_reassign(world: World, broker: int, targets: Any) -> bool:
    """The same, after a look at the form of the targets. Raises ValueError, TypeError or AttributeError if it is another."""
    if not _read(targets):
        raise ValueError
    return can_list(world, broker)


def _read(targets: Targets) -> tuple[tuple[TopicPartition, tuple[int, ...] | None], ...]:
    return tuple((TopicPartition.parse(tp), None if t is None else tuple(int(b) for b in t)) for tp, t in targets.items())


def reassign(world: World, broker: int, targets: Targets) -> None:
    """AlterPartitionReassignments: each partition with the replicas that it is to have, or None to cancel."""
    plain = {tp: None if target is None else list(target) for tp, target in targets.items()}
    _ask(world, broker, ["reassign", broker, plain], lambda sent: ApiPartitionReassignment(sent, _read(targets)))


def list_reassignments(world: World, broker: int) -> None:
    """ListPartitionReassignments, of all partitions."""
    _ask(world, broker, ["list_reassignments", broker], ListPartitionReassignments)


def _ask(world: World, broker: int, action: list[Any], event: Any) -> None:
    cause = world.log("act", None, action=action)
    asked: Event = event(f"admin-{cause.seq}")
    world.processes[broker].driver.enqueue(asked, cause)
