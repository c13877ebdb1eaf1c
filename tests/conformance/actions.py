"""Every action of a scenario: ACTIONS at the end is the list. The requests of brokers and admin clients are in `callers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kcontrol.cluster import admin_actions
from kcontrol.cluster.process import Process
from kcontrol.core import events, znodes
from kcontrol.core.controller_rules import EVENT_THREAD, LISTENERS
from kcontrol.core.effects import Op
from kcontrol.core.model import LeaderAndIsr, ReplicaAssignment, TopicPartition
from kcontrol.core.znodes import BrokerEndpoint, TopicZnode
from tests.conformance import callers
from tests.conformance.callers import make_event
from tests.conformance.stage import THREAD, Stage, Trap
from tests.conformance.values import CannotPlay, assignment, look_up, only_item, partition, partitions

# ---------------------------------------------------------------- the schedule


def hold_events(stage: Stage, _: Any) -> None:
    stage.held = True


def release_events(stage: Stage, _: Any) -> None:
    stage.held = False


def clear_requests(stage: Stage, _: Any) -> None:
    stage.requests_from = len(stage.world.journal.records)


def inject(stage: Stage, given: Any) -> None:
    name, value = only_item(given["do"], "do")
    act = look_up(INJECTED, "action to inject", name)
    stage.traps.append(Trap(given["before_write"], given.get("nth", 1), lambda: act(stage, value)))


# ---------------------------------------------------------------- brokers and sessions


def broker_down(stage: Stage, broker: int) -> None:
    """The process dies and its session ends."""
    stage.driver(broker)
    stage.step(("kill", broker))
    if broker in stage.world.orphaned_sessions:
        stage.step(("expire_session", broker))
    stage.cut_off.discard(broker)
    stage.unstarted.discard(broker)


def broker_up(stage: Stage, broker: int) -> None:
    """A fresh process registers and starts its controller module."""
    stage.register(broker)
    stage.unstarted.discard(broker)


def start(stage: Stage, broker: int) -> None:
    stage.driver(broker)
    stage.unstarted.discard(broker)


def broker_bounce(stage: Stage, broker: int) -> None:
    """The znode goes and comes at once, by the same living process."""
    path, data = znodes.broker_path(broker), _registration(stage, broker)
    stage.write_as(broker, (Op("delete", path),))
    if stage.rules.design == LISTENERS:
        stage.write_as(broker, (Op("create", path, data, ephemeral=True),))
    else:
        stage.write_as(broker, (Op("create", path, ephemeral=True), Op("set", path, data, expected_version=0)))


def change_broker_endpoint(stage: Stage, broker: int) -> None:
    """The same registration with another port."""
    stage.world.processes[broker].port += 1_000
    stage.write_as(broker, (Op("set", znodes.broker_path(broker), _registration(stage, broker)),))


def _registration(stage: Stage, broker: int) -> bytes:
    p: Process = stage.world.processes[broker]
    return znodes.encode_broker(BrokerEndpoint(p.host, p.port), stage.world.clock(), stage.rules.broker_znode)


def session_expired(stage: Stage, broker: int) -> None:
    """The session ends; until its callbacks the broker receives no notification and handles no event."""
    stage.driver(broker)
    stage.step(("expire_session", broker))
    stage.cut_off.add(broker)


def session_callbacks(stage: Stage, broker: int) -> None:
    """The client library runs its hooks, with a new session if the old one has ended."""
    driver = stage.driver(broker)
    if broker in stage.cut_off:
        stage.cut_off.discard(broker)
        stage.step(("renew", broker))
    elif stage.rules.design != EVENT_THREAD:
        driver.enqueue(events.NewSession(), None)
    else:
        driver.clear(THREAD, None)
        driver.enqueue(events.Expire(), None)
        stage.surplus_callbacks.add(broker)


# ---------------------------------------------------------------- /controller and its epoch


def delete_controller_znode(stage: Stage, _: Any) -> None:
    """Delete `/controller` in the session of a client that is no broker."""
    stage.delete(znodes.CONTROLLER)


def rewrite_controller_znode(stage: Stage, broker: int) -> None:
    """Write the id of another broker into `/controller` in the session of a client that is no broker."""
    stage.set(znodes.CONTROLLER, znodes.encode_controller(broker, stage.world.clock()))


def other_controller_elected(stage: Stage, given: Any) -> None:
    """`/controller` is another's and the epoch one higher, as after an election, but no failover runs."""
    stage.loses_watch_events = not given.get("notify", True)
    if stage.read(znodes.CONTROLLER) is not None:
        stage.delete(znodes.CONTROLLER)
    stage.create(znodes.CONTROLLER, znodes.encode_controller(given["broker"], stage.world.clock()))
    stored = stage.read(znodes.CONTROLLER_EPOCH)
    epoch = znodes.decode_controller_epoch(stored.data) if stored else 0
    stage.put(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(epoch + 1))
    stage.loses_watch_events = False


def set_controller_epoch(stage: Stage, epoch: int) -> None:
    """Overwrite `/controller_epoch` in the session of a client that is no broker."""
    stage.set(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(epoch))


# ---------------------------------------------------------------- topics


def topic_znode(stage: Stage, topic: str, assigned: dict[int, ReplicaAssignment]) -> bytes:
    """The text of a topic znode, with the topic's id where the release has them."""
    return znodes.encode_topic(
        TopicZnode(assigned, admin_actions.topic_id(topic) if stage.rules.topic_ids else None), stage.rules.topic_znode
    )


def _assigned(given: Any) -> dict[int, ReplicaAssignment]:
    return {int(number): assignment(replicas) for number, replicas in given.items()}


def create_topic(stage: Stage, given: Any) -> None:
    stage.create(znodes.topic_path(given["topic"]), topic_znode(stage, given["topic"], _assigned(given["assignment"])))


def set_assignment(stage: Stage, given: Any) -> None:
    stage.set(znodes.topic_path(given["topic"]), topic_znode(stage, given["topic"], _assigned(given["assignment"])))


def remove_topic_znode(stage: Stage, topic: str) -> None:
    """Delete the topic znode and every znode below it in the session of a client that is no broker."""
    stage.delete(znodes.topic_path(topic))


def delete_topics(stage: Stage, topics: list[str]) -> None:
    """One request per topic, one after the other."""
    for topic in topics:
        stage.create(f"{znodes.DELETE_TOPICS}/{topic}")


def overrides(config: Mapping[str, Any]) -> dict[str, str]:
    """A topic's settings as they are stored, which is as text."""
    return {key: str(value).lower() for key, value in config.items()}


def store_topic_config(stage: Stage, topic: str, config: Mapping[str, Any]) -> None:
    stage.put(znodes.topic_config_path(topic), znodes.encode_topic_config(overrides(config)))


def set_topic_config(stage: Stage, given: Any) -> None:
    """Write `/config/topics/<t>`; if it allows unclean elections, the active controller gets the event about the topic."""
    store_topic_config(stage, given["topic"], given["config"])
    if given["config"].get("unclean.leader.election.enable"):
        for broker in stage.active():
            stage.driver(broker).enqueue(make_event("TopicUncleanLeaderElectionEnable", topic=given["topic"]), None)


def enable_default_unclean(stage: Stage, _: Any) -> None:
    """The default of every broker changes, and the active controller gets the event about it."""
    event = make_event("UncleanLeaderElectionEnable")
    config = stage.world.settings.config.with_setting("unclean.leader.election.enable", True)
    stage.world.settings = replace(stage.world.settings, config=config)
    for p in stage.world.processes.values():
        object.__setattr__(p.driver.controller, "config", config)
    for broker in stage.active():
        stage.driver(broker).enqueue(event, None)


# ---------------------------------------------------------------- state znodes, notifications and admin znodes


def leader_writes_isr(stage: Stage, given: Any) -> None:
    """The leader writes this ISR and leaves the rest as it is."""
    for tp, isr in given.items():
        path = znodes.state_path(partition(tp))
        stored = stage.read(path)
        if stored is None:
            raise CannotPlay(f"{tp} has no state znode for its leader to write")
        stage.set(path, znodes.encode_state(znodes.decode_state(stored.data)._replace(isr=tuple(isr))))


def write_state(stage: Stage, given: Any) -> None:
    """Write or delete state znodes in the session of a client that is no broker."""
    for text, value in given.items():
        path = znodes.state_path(partition(text))
        stored = stage.read(path)
        if value is None:
            stage.delete(path)
        else:
            stage.put(path, znodes.encode_state(_overwritten(text, stored, value)))


def _overwritten(text: str, stored: Any, value: Mapping[str, Any]) -> LeaderAndIsr:
    if stored is not None:
        before = znodes.decode_state(stored.data)
    elif "isr" in value or "leader" in value:
        before = LeaderAndIsr(value["isr"][0] if value.get("isr") else value["leader"], (), 0, -1, 1)
    else:
        raise CannotPlay(f"write_state creates the znode of {text} and names neither leader nor ISR")
    changed = {key: tuple(item) if key == "isr" else item for key, item in value.items()}
    return before._replace(**changed)


def isr_notification(stage: Stage, named: list[str]) -> None:
    stage.create_sequential(f"{znodes.ISR_CHANGE_NOTIFICATION}/isr_change_", znodes.encode_partition_list(partitions(named)))


def log_dir_notification(stage: Stage, broker: int) -> None:
    stage.create_sequential(f"{znodes.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_", znodes.encode_log_dir_event(broker))


def reassign_znode(stage: Stage, given: Any) -> None:
    """Create or overwrite `/admin/reassign_partitions`."""
    targets = {partition(tp): tuple(replicas) for tp, replicas in given.items()}
    stage.put(znodes.REASSIGN_PARTITIONS, znodes.encode_reassignment(targets))


def preferred_election_znode(stage: Stage, named: list[str]) -> None:
    """Create `/admin/preferred_replica_election`."""
    stage.create(znodes.PREFERRED_REPLICA_ELECTION, znodes.encode_partition_list(partitions(named)))


# ---------------------------------------------------------------- late and duplicate events


def put_event(stage: Stage, given: Any) -> None:
    """Queue an event as a late or duplicate notification would."""
    name, fields = given["event"], {}
    if name in ARGUMENTS:
        field = ARGUMENTS[name]
        fields[field] = TopicPartition.parse(given["arg"]) if field == "partition" else given["arg"]
    driver = stage.driver(given["broker"]) if "broker" in given else stage.controller()
    driver.enqueue(make_event(name, **fields), None)


ARGUMENTS = {
    "BrokerModifications": "broker_id", "PartitionModifications": "topic", "TopicUncleanLeaderElectionEnable": "topic",
    "PartitionReassignmentIsrChange": "partition",
}  # fmt: skip

# What a trap may do.
_INJECTED = (leader_writes_isr, write_state, set_controller_epoch, delete_controller_znode, rewrite_controller_znode)
_ACTIONS = (
    hold_events, release_events, clear_requests, inject, broker_down, broker_up, broker_bounce, change_broker_endpoint, start,
    session_expired, session_callbacks, other_controller_elected, create_topic, set_assignment, remove_topic_znode, delete_topics,
    set_topic_config, enable_default_unclean, isr_notification, log_dir_notification, reassign_znode, preferred_election_znode,
    put_event,
)  # fmt: skip
INJECTED: dict[str, Callable[..., Any]] = {action.__name__: action for action in _INJECTED}
ACTIONS = {action.__name__: action for action in _ACTIONS} | INJECTED | callers.ACTIONS
