"""Named properties of a cluster, each with the release since which Kafka promises it. `ALWAYS` holds after every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kcontrol.model import LeaderAndIsr, TopicPartition
from kcontrol.znodes import CONTROLLER_EPOCH, decode_controller_epoch, decode_state, parse_state_path

if TYPE_CHECKING:
    from kcontrol.sim.world import World

Property = Callable[["World"], str | None]


def stored(world: World) -> Iterator[tuple[TopicPartition, LeaderAndIsr]]:
    """Every partition's leadership as its state znode has it."""
    for path, znode in world.zk.tree().items():
        if tp := parse_state_path(path):
            yield tp, decode_state(znode.data, znode.stat.version)


def leader_in_isr(world: World) -> str | None:
    """Whoever leads is in sync. Since 0.8.0."""
    if not any(record.kind in ("change", "write") for record in world.last_step):
        return None
    for tp, value in stored(world):
        if value.leader >= 0 and value.leader not in value.isr:
            return f"{tp}: leader {value.leader} is not in ISR {list(value.isr)}"
    return None


def no_write_by_a_deposed_controller(world: World) -> str | None:
    """Once a newer controller has registered, no state znode is written under an older epoch. Since 2.1 (KAFKA-6082)."""
    written = [r for r in world.last_step if r.kind == "change" and r.fields["write"]]
    if not written:
        return None
    (znode,) = world.tool.read([CONTROLLER_EPOCH], False)
    newest = decode_controller_epoch(znode.data) if znode else 0
    for record in written:
        controller_epoch = record.fields["value"].controller_epoch
        if controller_epoch < newest:
            subject = record.fields["subject"]
            return f"{subject}: broker {record.id.node} has written under epoch {controller_epoch} when {newest} ruled"
    return None


ALWAYS: tuple[Property, ...] = (leader_in_isr, no_write_by_a_deposed_controller)


def violation(world: World, properties: tuple[Property, ...] = ALWAYS) -> str | None:
    """What the first broken property says, or None."""
    return next((found for holds in properties if (found := holds(world))), None)
