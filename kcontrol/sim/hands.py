"""What outside hands write into ZooKeeper: the topic tool, and whoever has a shell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcontrol import znodes
from kcontrol.effects import Op
from kcontrol.errors import UserError
from kcontrol.model import ReplicaAssignment
from kcontrol.sim import topic_ids

if TYPE_CHECKING:
    from kcontrol.sim.world import World


def create_topic(world: World, topic: str, assignment: Any) -> None:
    """What the topic tool writes: the configuration, then the topic with its replicas, with an id since 2.8."""
    cause = world.log("act", None, action=["create_topic", topic, assignment])
    numbered = assignment.items() if isinstance(assignment, dict) else enumerate(assignment)
    partitions = {int(p): ReplicaAssignment(tuple(replicas)) for p, replicas in numbered}
    topic_id = topic_ids.of(topic) if world.settings.rules().topic_ids else None
    data = znodes.encode_topic(znodes.TopicZnode(partitions, topic_id))
    world.write((Op("create", znodes.topic_config_path(topic), znodes.encode_topic_config({})),), cause)
    world.write((Op("create", znodes.topic_path(topic), data),), cause)


def delete(world: World, path: str) -> None:
    """An outside hand deletes a znode."""
    cause = world.log("act", None, action=["delete", path])
    _insist(path, world.write((Op("delete", path),), cause))


def set_data(world: World, path: str, text: str) -> None:
    """An outside hand rewrites a znode."""
    cause = world.log("act", None, action=["set", path, text])
    _insist(path, world.write((Op("set", path, text.encode()),), cause))


def create(world: World, path: str, text: str) -> None:
    """An outside hand creates a persistent znode."""
    cause = world.log("act", None, action=["create", path, text])
    _insist(path, world.write((Op("create", path, text.encode()),), cause))


def _insist(path: str, error: str | None) -> None:
    if error:
        raise UserError(f"ZooKeeper refuses that write to {path}: {error}.")
