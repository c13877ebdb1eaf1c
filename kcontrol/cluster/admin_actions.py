"""The actions of clients outside the brokers: admin tools write into ZooKeeper, admin clients send requests to brokers."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kcontrol.broker import config_values
from kcontrol.broker.events import TopicConfigChange
from kcontrol.cluster import delivery, topic_tool
from kcontrol.cluster.sessions import SessionState
from kcontrol.core import znodes
from kcontrol.core.effects import Op
from kcontrol.core.events import ApiPartitionReassignment, ListPartitionReassignments
from kcontrol.core.model import ReplicaAssignment, TopicPartition
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.journal.journal import RecordId

if TYPE_CHECKING:
    from kcontrol.cluster.world import World


def lacks_topic(world: World, topic: str) -> bool:
    """Return whether a topic does not exist and can be created: its parent znodes, such as `/brokers/topics`, exist."""
    path, config = znodes.topic_path(topic), znodes.topic_config_path(topic)
    if not world.settings.rules().topic_configs:
        return world.exist(znodes.BROKER_IDS, path) == [True, False]
    return world.exist(znodes.parent(path), znodes.parent(config), path) == [True, True, False]


def can_create_topic(world: World, topic: str, assignment: Any, config: Mapping[str, Any] | None = None) -> bool:
    """Return whether a topic with the settings `config` can be created: it does not exist, but its parent znodes exist.

    `assignment` has the replicas of each partition: [[1, 2]] or {0: [1, 2]}.
    Raises ValueError or TypeError for a wrong name, setting or assignment.
    """
    topic_settings(world.settings.release, config or {})
    # Brokers accept every child of `/brokers/topics`; `Lab` refuses the names that Kafka's tool refuses.
    if not topic or "/" in topic or not _numbered(assignment):
        raise ValueError
    return lacks_topic(world, topic)


def _numbered(assignment: Any) -> dict[int, ReplicaAssignment]:
    numbered = assignment.items() if isinstance(assignment, Mapping) else enumerate(assignment)
    return {int(p): ReplicaAssignment(tuple(int(b) for b in replicas)) for p, replicas in numbered}


def topic_settings(release: str, config: Mapping[str, Any]) -> dict[str, str]:
    """As the topic tool stores them: {"min.insync.replicas": "2"}. Raises ValueError for an unknown setting or value."""
    return {name: str(config_values.read("topic", name, value, release)).lower() for name, value in config.items()}


def create_topic(world: World, topic: str, assignment: Any, config: Mapping[str, Any] | None = None) -> None:
    """`assignment` has the replicas of each partition: [[1, 2]] or {0: [1, 2]}."""
    chosen = topic_settings(world.settings.release, _of_brokers(world, topic) | dict(config or {}))
    ops = creation(world, topic, assignment, chosen)
    world.write([(op,) for op in ops], ["create_topic", topic, assignment, *([chosen] if chosen else [])])


def create_offsets_topic(world: World, broker: int, cause: RecordId) -> None:
    """As a broker does that handles FindCoordinator; not if the topic exists, or too few brokers are registered."""
    drawn = new_offsets_topic(world, broker)
    chosen = topic_settings(world.settings.release, _of_brokers(world, OFFSETS_TOPIC))
    for op in creation(world, OFFSETS_TOPIC, drawn, chosen) if drawn is not None else ():
        written = world.tool.write([(op,)])[0]
        ops = [[op.kind, op.path, op.data, version, op.ephemeral] for version in written.versions or (None,)]
        log = world.processes[broker].driver.log
        log("write", cause, ops=ops, zxid=written.zxid, error=written.error, epoch_zk_version=-1)


def new_offsets_topic(world: World, broker: int) -> tuple[tuple[int, ...], ...] | None:
    """Return the replicas of each partition with which `broker` would create the offsets topic now.

    Return None if the topic exists, or if too few brokers are registered.
    """
    p, topic = world.processes[broker], OFFSETS_TOPIC
    group, cached = p.driver.group, p.driver.broker
    is_known = any(tp.topic == topic for tp in cached.metadata) or not lacks_topic(world, topic)
    # The broker needs an open session, and must not find the topic in its metadata or in ZooKeeper.
    if group is None or p.session is not SessionState.OPEN or is_known:
        return None
    (names,) = world.tool.children([znodes.BROKER_IDS], False)
    registered, replicas = sorted(map(int, names or ())), group.replicas_of_new_topic(len(cached.live_brokers))
    if replicas is None or replicas > len(registered):
        return None
    return topic_tool.draw_replicas(world.settings.seed, topic, registered, group.config.partitions, replicas)


def topic_id(topic: str) -> str:
    """Made from the name, so that a run can be repeated: 22 characters of urlsafe base64. Kafka draws the id at random."""
    digest = hashlib.md5(topic.encode(), usedforsecurity=False).digest()
    # The brokers of the recordings got these ids too.
    return base64.urlsafe_b64encode(b"k" + digest[1:]).rstrip(b"=").decode()


def creation(world: World, topic: str, assignment: Any, settings: dict[str, str]) -> list[Op]:
    """The topic's settings first, then the topic."""
    rules = world.settings.rules()
    id = topic_id(topic) if rules.topic_ids else None
    data = znodes.encode_topic(znodes.TopicZnode(_numbered(assignment), id), rules.topic_znode)
    path, overrides = znodes.topic_config_path(topic), znodes.encode_topic_config(settings)
    has_config, has_parent = world.exist(path, znodes.TOPICS)
    # Before 0.8.1 topics have no settings, and the tool creates `/brokers/topics` if it is missing.
    first = Op("set" if has_config else "create", path, overrides) if rules.topic_configs else Op("create", znodes.TOPICS)
    return [*([first] if rules.topic_configs or not has_parent else []), Op("create", znodes.topic_path(topic), data)]


def _of_brokers(world: World, topic: str) -> dict[str, int]:
    """Return the settings that the brokers give to a new topic: {"segment.bytes": bytes} or {}.

    Only the offsets topic has this setting, if the run's `group_config` has `segment_bytes`.

    Source: GroupCoordinator.offsetsTopicConfigs (0.9, 2.8). Its result also has the default of `segment.bytes`, and
    `cleanup.policy` and `compression.type`.
    """
    set_by_user = topic == OFFSETS_TOPIC and "segment_bytes" in world.settings.group_config
    return {"segment.bytes": world.settings.group_config["segment_bytes"]} if set_by_user else {}


def can_alter_topic(world: World, topic: str, config: Mapping[str, Any]) -> bool:
    """Raises ValueError for an illegal setting, AttributeError if `config` is no mapping."""
    # The znodes are /config/topics/<topic>, with the settings, and /config/changes, for the notification.
    topic_settings(world.settings.release, config)
    paths = znodes.topic_path(topic), znodes.topic_config_path(topic), znodes.CONFIG_CHANGES
    return bool(topic) and "/" not in topic and world.exist(*paths) == [True, True, True]


def alter_topic(world: World, topic: str, config: Mapping[str, Any]) -> None:
    """Write what the topic tool writes: all settings of the topic, and a notification, after which brokers read the settings.

    Settings that `config` does not have are removed from the topic.
    Source: AdminUtils.changeTopicConfig (0.8.1), AdminZkClient.changeTopicConfig (2.8).
    """
    chosen = topic_settings(world.settings.release, config)
    notification = znodes.encode_config_change(topic, world.settings.rules().config_change)
    ops = [
        Op("set", znodes.topic_config_path(topic), znodes.encode_topic_config(chosen)),
        Op("create", f"{znodes.CONFIG_CHANGES}/config_change_", notification, sequential=True),
    ]
    cause = world.write([(op,) for op in ops], ["alter_topic", topic, chosen])
    for n, p in sorted(world.processes.items()) if world.settings.data else ():
        p.driver.enqueue(TopicConfigChange(topic), cause, "requests")
        delivery.begin_if_idle(world, n)


def topics(world: World) -> tuple[str, ...]:
    """Return the names of the existing topics, the children of `/brokers/topics`; () without this znode."""
    (names,) = world.tool.children([znodes.TOPICS], False)
    return names or ()


def can_delete_topic(world: World, topic: str) -> bool:
    """Return whether the topic exists and its deletion has not been requested."""
    asked = znodes.delete_topic_path(topic)
    paths = znodes.topic_path(topic), znodes.parent(asked), asked
    return bool(topic) and "/" not in topic and world.exist(*paths) == [True, True, False]


def delete_topic(world: World, topic: str) -> None:
    """Create the znode of a deletion request in `/admin/delete_topics`, as the topic tool does; the controller handles it."""
    world.write([(Op("create", znodes.delete_topic_path(topic)),)], ["delete_topic", topic])


def can_delete(world: World, path: str) -> bool:
    return can_write(world, path, "")


def can_write(world: World, path: str, text: str) -> bool:
    """Raises ValueError for a path without a leading slash, or a text that UTF-8 cannot encode."""
    # ZooKeeper checks everything else, such as whether the znode exists, when the write is performed.
    text.encode()
    if not path.startswith("/"):
        raise ValueError
    return True


def delete(world: World, path: str) -> None:
    """Delete a znode as a client that is no broker. Raises UserError if ZooKeeper refuses."""
    world.write([(Op("delete", path),)], ["delete", path])


def set_data(world: World, path: str, text: str) -> None:
    """Write `text` as the data of an existing znode, as a client that is no broker. Raises UserError if ZooKeeper refuses."""
    world.write([(Op("set", path, text.encode()),)], ["set", path, text])


def create(world: World, path: str, text: str) -> None:
    """As a client that is no broker. `/admin` is created too, which no broker of 0.8.0 creates. Raises UserError."""
    above = znodes.parent(path)
    missing = above == znodes.parent(znodes.REASSIGN_PARTITIONS) and world.exist(above) == [False]
    ops = [*([Op("create", above)] if missing else []), Op("create", path, text.encode())]
    world.write([(op,) for op in ops], ["create", path, text])


def is_step(world: World, number: Any, step_actions: Any) -> bool:
    """The action marks the beginning of a scenario's step in the journal."""
    return isinstance(number, int) and isinstance(step_actions, Mapping)


def note_step(world: World, number: int, step_actions: Any) -> None:
    """Nothing changes in the cluster; `step_actions` describes the step, such as {"kill": 1}."""
    world.log("scenario", None, step=number, do=step_actions)


# ---------------------------------------------------------------- requests of an admin client to a broker


def can_list(world: World, broker: int) -> bool:
    """Return whether the broker runs and is not frozen, and the release has ListPartitionReassignments (2.4 on)."""
    return delivery.is_reachable(world, broker) and world.settings.rules().reassigns_on_request


def can_reassign(world: World, broker: int, targets: Any) -> bool:
    """AlterPartitionReassignments is there since 2.4 (KIP-455). Raises an error for targets unlike {"t-0": [1, 2]}."""
    if not _read(targets):
        raise ValueError
    return can_list(world, broker)


def _read(targets: Mapping[str, Any]) -> tuple[tuple[TopicPartition, tuple[int, ...] | None], ...]:
    return tuple((TopicPartition.parse(tp), None if t is None else tuple(int(b) for b in t)) for tp, t in targets.items())


def reassign(world: World, broker: int, targets: Mapping[str, Any]) -> None:
    """A target None cancels the partition's reassignment."""
    parsed = _read(targets)
    _ask(world, ["reassign", broker, dict(targets)], lambda correlation_id: ApiPartitionReassignment(correlation_id, parsed))


def list_reassignments(world: World, broker: int) -> None:
    """Send ListPartitionReassignments for all partitions to a broker."""
    _ask(world, ["list_reassignments", broker], ListPartitionReassignments)


def _ask(world: World, action: list[Any], event: Any) -> None:
    cause = world.log("act", None, action=action)
    world.processes[action[1]].driver.enqueue(event(f"admin-{cause.seq}"), cause)
