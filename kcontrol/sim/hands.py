"""What outside hands do: the topic tool and whoever has a shell write into ZooKeeper, admin clients ask brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kcontrol import setting_values, znodes
from kcontrol.effects import Op
from kcontrol.events import ApiPartitionReassignment, ListPartitionReassignments, TopicConfigChange
from kcontrol.model import ReplicaAssignment, TopicPartition
from kcontrol.sim import exchange, topic_ids

if TYPE_CHECKING:
    from kcontrol.sim.world import World


def lacks_topic(world: World, topic: str) -> bool:
    """Whether the topic could be created: some broker has made the place for it, and it is not there."""
    path, config = znodes.topic_path(topic), znodes.topic_config_path(topic)
    if not world.settings.rules().topic_configs:
        return world.have(znodes.BROKER_IDS, path) == [True, False]
    return world.have(znodes.parent(path), znodes.parent(config), path) == [True, True, False]


def can_create_topic(world: World, topic: str, assignment: Any, config: Mapping[str, Any] | None = None) -> bool:
    """The same, after a look at the form of the rest. Raises ValueError or TypeError if it has another.

    Any text without a slash is a name here, since brokers take whatever is below `/brokers/topics`; `Lab` refuses what the tool
    refuses.
    """
    topic_settings(world.settings.release, config or {})
    if not topic or "/" in topic or not _numbered(assignment):
        raise ValueError
    return lacks_topic(world, topic)


def _numbered(assignment: Any) -> dict[int, ReplicaAssignment]:
    numbered = assignment.items() if isinstance(assignment, Mapping) else enumerate(assignment)
    return {int(p): ReplicaAssignment(tuple(int(b) for b in replicas)) for p, replicas in numbered}


def topic_settings(release: str, config: Mapping[str, Any]) -> dict[str, str]:
    """Return settings as the topic tool stores them: text in Kafka's spelling. Raises ValueError, listing what is legal."""
    return {name: str(setting_values.read("topic", name, value, release)).lower() for name, value in config.items()}


def create_topic(world: World, topic: str, assignment: Any, config: Mapping[str, Any] | None = None) -> None:
    """What the topic tool writes: the configuration, if there are any, then the topic with its replicas, with an id since 2.8."""
    rules = world.settings.rules()
    topic_id = topic_ids.of(topic) if rules.topic_ids else None
    data = znodes.encode_topic(znodes.TopicZnode(_numbered(assignment), topic_id), rules.topic_znode)
    chosen = topic_settings(world.settings.release, config or {})
    path, overrides = znodes.topic_config_path(topic), znodes.encode_topic_config(chosen)
    left_behind, has_place = world.have(path, znodes.TOPICS)
    first = Op("set" if left_behind else "create", path, overrides) if rules.topic_configs else Op("create", znodes.TOPICS)
    ops = [*([first] if rules.topic_configs or not has_place else []), Op("create", znodes.topic_path(topic), data)]
    world.write([(op,) for op in ops], ["create_topic", topic, assignment, *([chosen] if chosen else [])])


def can_alter_topic(world: World, topic: str, config: Mapping[str, Any]) -> bool:
    """Whether a topic is there that has settings. Raises ValueError or AttributeError for settings of another form."""
    topic_settings(world.settings.release, config)
    if not topic or "/" in topic:
        raise ValueError
    return world.have(znodes.topic_path(topic), znodes.topic_config_path(topic), znodes.CONFIG_CHANGES) == [True, True, True]


def alter_topic(world: World, topic: str, config: Mapping[str, Any]) -> None:
    """What the topic tool writes: all settings of the topic, and a notification for the brokers, which read the settings then.

    Source: AdminUtils.changeTopicConfig (0.8.1), AdminZkClient.changeTopicConfig (2.8).
    """
    chosen = topic_settings(world.settings.release, config)
    notice = znodes.encode_config_change(topic, world.settings.rules().config_change)
    ops = [
        Op("set", znodes.topic_config_path(topic), znodes.encode_topic_config(chosen)),
        Op("create", f"{znodes.CONFIG_CHANGES}/config_change_", notice, sequential=True),
    ]
    cause = world.write([(op,) for op in ops], ["alter_topic", topic, chosen])
    for n, p in sorted(world.processes.items()) if world.settings.data else ():
        p.driver.enqueue(TopicConfigChange(topic), cause, "requests")
        exchange.begin_if_idle(world, n)


def topics(world: World) -> tuple[str, ...]:
    """The topics that there are."""
    (names,) = world.tool.children([znodes.TOPICS], False)
    return names or ()


def can_delete_topic(world: World, topic: str) -> bool:
    """Whether the deletion of this topic can be asked for: it is there, and nobody has asked for it."""
    if not topic or "/" in topic:
        raise ValueError
    asked = znodes.delete_topic_path(topic)
    return world.have(znodes.topic_path(topic), znodes.parent(asked), asked) == [True, True, False]


def delete_topic(world: World, topic: str) -> None:
    """What the topic tool writes: a request, which the controller acts on."""
    world.write([(Op("create", znodes.delete_topic_path(topic)),)], ["delete_topic", topic])


def can_write(world: World, path: str, text: str = "") -> bool:
    """Whether a path and a text have the right form; what ZooKeeper makes of them, it says itself. Raises ValueError if not."""
    text.encode()
    if not path.startswith("/"):
        raise ValueError
    return True


def delete(world: World, path: str) -> None:
    """An outside hand deletes a znode. Raises UserError if ZooKeeper refuses, as do the next two."""
    world.write([(Op("delete", path),)], ["delete", path])


def set_data(world: World, path: str, text: str) -> None:
    """An outside hand rewrites a znode."""
    world.write([(Op("set", path, text.encode()),)], ["set", path, text])


def create(world: World, path: str, text: str) -> None:
    """An outside hand creates a persistent znode; for a request also `/admin`, which no broker of 0.8.0 creates."""
    above = znodes.parent(path)
    missing = above == znodes.parent(znodes.REASSIGN_PARTITIONS) and world.have(above) == [False]
    ops = [*([Op("create", above)] if missing else []), Op("create", path, text.encode())]
    world.write([(op,) for op in ops], ["create", path, text])


def is_step(world: World, number: Any, do: Any) -> bool:
    """Whether this is the number and the text of a scenario's step."""
    return isinstance(number, int) and isinstance(do, Mapping)


def note_step(world: World, number: int, do: Any) -> None:
    """A step of a scenario begins; nothing happens by that itself."""
    world.log("scenario", None, step=number, do=do)


# ---------------------------------------------------------------- what an admin client asks a broker


def can_list(world: World, broker: int) -> bool:
    """Whether a broker can be spoken to and knows such requests."""
    return exchange.hears(world, broker) and world.settings.rules().reassigns_on_request


def can_reassign(world: World, broker: int, targets: Any) -> bool:
    """The same, after a look at the form of the targets. Raises ValueError, TypeError or AttributeError if it is another."""
    if not _read(targets):
        raise ValueError
    return can_list(world, broker)


def _read(targets: Mapping[str, Any]) -> tuple[tuple[TopicPartition, tuple[int, ...] | None], ...]:
    return tuple((TopicPartition.parse(tp), None if t is None else tuple(int(b) for b in t)) for tp, t in targets.items())


def reassign(world: World, broker: int, targets: Mapping[str, Any]) -> None:
    """AlterPartitionReassignments: each partition with the replicas that it is to have, or None to cancel."""
    _ask(world, ["reassign", broker, dict(targets)], lambda sent: ApiPartitionReassignment(sent, _read(targets)))


def list_reassignments(world: World, broker: int) -> None:
    """ListPartitionReassignments, of all partitions."""
    _ask(world, ["list_reassignments", broker], ListPartitionReassignments)


def _ask(world: World, action: list[Any], event: Any) -> None:
    cause = world.log("act", None, action=action)
    world.processes[action[1]].driver.enqueue(event(f"admin-{cause.seq}"), cause)
