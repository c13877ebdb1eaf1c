"""What a broker does once it has become controller, step by step; `orders` says in which order.

Source: KafkaController.onControllerFailover and initializeControllerContext (2.8); ReplicaStateMachine.startup and
PartitionStateMachine.startup (2.8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.requests import update_metadata
from kcontrol.effects import Children, Exists, Handler, Learn, Op, Read, Transaction, Watch, Writes
from kcontrol.generations import EVENT_THREAD, LISTENERS
from kcontrol.model import PartitionState, ReplicaState, TopicPartition
from kcontrol.znodes import (
    BROKER_IDS,
    DELETE_TOPICS,
    FEATURE,
    ISR_CHANGE_NOTIFICATION,
    LOG_DIR_EVENT_NOTIFICATION,
    PREFERRED_REPLICA_ELECTION,
    REASSIGN_PARTITIONS,
    TOPICS,
    broker_path,
    decode_broker,
    decode_state,
    decode_topic,
    encode_feature,
    state_path,
    topic_path,
)

UNKNOWN_BROKER_EPOCH = -1


def listen(ctx: ControllerContext) -> Handler:
    """Register what the controller alone listens to; the two requests through znodes are looked for at once."""
    for path in (BROKER_IDS, TOPICS, DELETE_TOPICS, LOG_DIR_EVENT_NOTIFICATION, ISR_CHANGE_NOTIFICATION):
        yield Watch(path, children=True)
    yield from listen_to_requests(ctx)


def listen_to_requests(ctx: ControllerContext) -> Handler:
    """Reassignments and preferred elections are asked for through znodes."""
    paths = (REASSIGN_PARTITIONS, PREFERRED_REPLICA_ELECTION)
    for path in paths if ctx.rules.design == LISTENERS else reversed(paths):
        yield from listen_to_data(path)(ctx)


def listen_to_data(path: str) -> Callable[[ControllerContext], Handler]:
    """A step that subscribes to the data of `path`. Source: ZkClient.subscribeDataChanges (0.3, 0.10)."""

    def step(ctx: ControllerContext) -> Handler:
        yield Watch(path)
        yield Exists((path,), watch=True)

    return step


def delete_notifications(ctx: ControllerContext) -> Handler:
    """What brokers have announced is deleted unread: everything is read afresh anyway."""
    for path in (LOG_DIR_EVENT_NOTIFICATION, ISR_CHANGE_NOTIFICATION):
        yield from delete_children(path)


def tell_brokers(ctx: ControllerContext) -> Handler:
    """UpdateMetadata to everybody: without partitions, or with all of them, as the release has it."""
    yield from update_metadata(ctx, ctx.live_or_shutting_down_broker_ids)


def listen_to_children(path: str) -> Callable[[ControllerContext], Handler]:
    """A step that subscribes to the children of `path`. Source: ZkClient.subscribeChildChanges (0.3)."""

    def step(ctx: ControllerContext) -> Handler:
        yield Watch(path, children=True)
        yield Exists((path,), watch=True)
        yield Children((path,), watch=True)

    return step


def delete_log_dir_events(ctx: ControllerContext) -> Handler:
    """What brokers have announced of lost directories is deleted unread. Source: LogDirUtils.deleteLogDirEvents (1.0)."""
    if ctx.rules.outlives_log_dir:
        yield from delete_children(LOG_DIR_EVENT_NOTIFICATION)


def listen_to_log_dirs(ctx: ControllerContext) -> Handler:
    if ctx.rules.outlives_log_dir:
        yield from listen_to_children(LOG_DIR_EVENT_NOTIFICATION)(ctx)


def delete_children(path: str) -> Handler:
    """Delete what has been announced below `path`, unread, and listen for more."""
    (names,) = yield Children((path,), watch=True)
    if names:
        yield from delete_all(tuple(f"{path}/{name}" for name in names))


def delete_all(paths: tuple[str, ...]) -> Handler:
    """Delete these znodes, each for itself."""
    yield Writes(tuple((Op("delete", path),) for path in paths))


def enable_features(ctx: ControllerContext) -> Handler:
    """Create `/feature` if nobody has. Source: KafkaController.enableFeatureVersioning (2.8)."""
    if not ctx.rules.features:
        return
    (znode,) = yield Read((FEATURE,))
    if znode is None:
        yield Transaction((Op("create", FEATURE, encode_feature(1, ctx.rules.feature_znode)),))
        yield Read((FEATURE,))


def initialize_context(ctx: ControllerContext) -> Handler:
    """Brokers, topics, assignments, leadership: everything from ZooKeeper, nothing from before."""
    yield from learn_brokers(ctx)
    (names,) = yield Children((TOPICS,), watch=True)
    yield Learn("all_topics", names or (), clear=True)
    yield Learn("assignments", clear=True)
    yield from learn_topics(ctx, names or ())
    moving = {tp: assignment.target for tp, assignment in ctx.assignments.items() if assignment.is_being_reassigned}
    if moving:
        yield Learn("partitions_being_reassigned", moving)
    yield Learn("leadership", clear=True)
    yield Learn("shutting_down_broker_ids", clear=True)
    if ctx.rules.design == EVENT_THREAD:
        yield from listen_to_modifications(ctx.live_or_shutting_down_broker_ids)
    yield from refresh_leadership(ctx, ctx.assignments)
    if ctx.rules.design == LISTENERS:
        yield Learn("has_channels", True)


def listen_to_modifications(brokers: Iterable[int]) -> Handler:
    """A broker whose registration is rewritten listens somewhere else."""
    for broker_id in brokers:
        yield Watch(broker_path(broker_id))
        yield Exists((broker_path(broker_id),), watch=True)


def learn_brokers(ctx: ControllerContext) -> Handler:
    """Replace what is known of brokers by what is registered now."""
    brokers, epochs = yield from read_brokers(ctx)
    yield Learn("live_brokers", brokers, clear=True)
    yield Learn("live_broker_epochs", epochs, clear=True)


def read_brokers(ctx: ControllerContext) -> Handler:
    """Return endpoints and epochs by broker id: what is registered now."""
    (names,) = yield Children((BROKER_IDS,), watch=True)
    return (yield from read_registrations(ctx, sorted(int(name) for name in names or ())))


def read_registrations(ctx: ControllerContext, ids: Sequence[int]) -> Handler:
    """Return the same of these brokers. A broker's epoch is the czxid of its registration, since there are broker epochs."""
    znodes = (yield Read(tuple(map(broker_path, ids)))) if ids else ()
    found = {broker: znode for broker, znode in zip(ids, znodes, strict=True) if znode}
    epochs = {b: z.stat.czxid if ctx.rules.broker_epochs else UNKNOWN_BROKER_EPOCH for b, z in found.items()}
    return {b: decode_broker(z.data) for b, z in found.items()}, epochs


def learn_topics(ctx: ControllerContext, topics: Iterable[str]) -> Handler:
    """Add assignments and ids of these topics to what is known, and return the partitions.

    The event thread listens to each topic from now on; where there are listeners, they are subscribed later.
    """
    topics = tuple(topics)
    listens = ctx.rules.design == EVENT_THREAD
    for topic in topics if listens else ():
        yield Watch(topic_path(topic))
    if not topics:
        return ()
    znodes = yield Read(tuple(map(topic_path, topics)), watch=listens)
    found = {topic: decode_topic(znode.data) for topic, znode in zip(topics, znodes, strict=True) if znode}
    assignments = {TopicPartition(t, p): a for t, value in found.items() for p, a in sorted(value.partitions.items())}
    if any(value.topic_id for value in found.values()) or listens:
        yield Learn("topic_ids", {topic: value.topic_id for topic, value in found.items() if value.topic_id})
    yield Learn("assignments", assignments)
    return tuple(assignments)


def listen_to_topics(ctx: ControllerContext, topics: Iterable[str] | None = None) -> Handler:
    """Subscribe to the data of these topics, or of all that are known."""
    for topic in sorted(ctx.all_topics) if topics is None else topics:
        yield Watch(topic_path(topic))
        yield Exists((topic_path(topic),), watch=True)


def refresh_leadership(ctx: ControllerContext, partitions: Iterable[TopicPartition]) -> Handler:
    """Cache what the state znodes say. Source: KafkaController.updateLeaderAndIsrCache (2.8)."""
    partitions = tuple(partitions)
    if not partitions:
        return
    znodes = yield Read(tuple(map(state_path, partitions)))
    values = {tp: decode_state(z.data, z.stat.version) for tp, z in zip(partitions, znodes, strict=True) if z}
    yield Learn("leadership", values)


def start_replica_machine(ctx: ControllerContext) -> Handler:
    """First states without side effects; then the online replicas are told who leads and, since 2.3, the dead leave the ISR."""
    everything = ctx.replicas_of(ctx.assignments)
    online = [r for r in everything if ctx.is_replica_online(r.broker_id, r.topic_partition)]
    offline = [r for r in everything if not ctx.is_replica_online(r.broker_id, r.topic_partition)]
    states = dict.fromkeys(online, ReplicaState.ONLINE) | dict.fromkeys(offline, ReplicaState[ctx.rules.dead_at_startup])
    if states:
        yield Learn("replica_states", states)
    if ctx.rules.design == LISTENERS:
        yield Learn("machines_started", True)
    yield from replica_machine.move(ctx, online, ReplicaState.ONLINE)
    if ctx.rules.offline_at_startup:
        yield from replica_machine.move(ctx, offline, ReplicaState.OFFLINE)


def start_partition_machine(ctx: ControllerContext) -> Handler:
    """New without leadership, Online with a live leader, Offline otherwise; then whoever is not Online is tried."""
    if ctx.assignments:
        yield Learn("partition_states", {tp: _first_state(ctx, tp) for tp in ctx.assignments})
    yield from bring_online(ctx)


def _first_state(ctx: ControllerContext, tp: TopicPartition) -> PartitionState:
    value = ctx.leadership.get(tp)
    if value is None:
        return PartitionState.NEW
    return PartitionState.ONLINE if ctx.is_replica_online(value.leader, tp) else PartitionState.OFFLINE


def bring_online(ctx: ControllerContext, topic: str | None = None) -> Handler:
    """Try every partition, or every one of a topic, that has no leader, unless its topic is being deleted. Return who leads now.

    Source: PartitionStateMachine.triggerOnlinePartitionStateChange (2.8).
    """
    waiting = ctx.partitions_in(PartitionState.OFFLINE, PartitionState.NEW)
    alive = [tp for tp in waiting if topic in (None, tp.topic) and not ctx.is_queued_for_deletion(tp.topic)]
    moved = yield from partition_machine.move(ctx, alive, PartitionState.ONLINE, "offline")
    return moved.elected
