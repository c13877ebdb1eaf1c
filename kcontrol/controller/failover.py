"""What a broker does once it has become controller, in Kafka's order.

Source: KafkaController.onControllerFailover and initializeControllerContext (2.8); ReplicaStateMachine.startup and
PartitionStateMachine.startup (2.8).
"""

from __future__ import annotations

from collections.abc import Iterable

from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.requests import update_metadata
from kcontrol.effects import Children, Exists, Handler, Learn, Op, Read, Transaction, Watch, Writes
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


def failover(ctx: ControllerContext) -> Handler:
    """Listen, clean up, read everything, tell the brokers, start both machines. Elections that were asked for come last."""
    yield from _enable_features(ctx)
    for path in (BROKER_IDS, TOPICS, DELETE_TOPICS, LOG_DIR_EVENT_NOTIFICATION, ISR_CHANGE_NOTIFICATION):
        yield Watch(path, children=True)
    for path in (PREFERRED_REPLICA_ELECTION, REASSIGN_PARTITIONS):
        yield Watch(path)
        yield Exists((path,), watch=True)
    for path in (LOG_DIR_EVENT_NOTIFICATION, ISR_CHANGE_NOTIFICATION):
        yield from delete_children(path)
    yield from _initialize_context(ctx)
    yield Children((DELETE_TOPICS,), watch=True)
    yield from update_metadata(ctx, ctx.live_or_shutting_down_broker_ids)
    yield from _start_replica_machine(ctx)
    yield from _start_partition_machine(ctx)
    yield Exists((REASSIGN_PARTITIONS,), watch=True)


def delete_children(path: str) -> Handler:
    """Delete what has been announced below `path`, unread, and listen for more."""
    (names,) = yield Children((path,), watch=True)
    if names:
        yield from delete_all(tuple(f"{path}/{name}" for name in names))


def delete_all(paths: tuple[str, ...]) -> Handler:
    """Delete these znodes, each for itself."""
    yield Writes(tuple((Op("delete", path),) for path in paths))


def _enable_features(ctx: ControllerContext) -> Handler:
    """Create `/feature` if nobody has. Source: KafkaController.enableFeatureVersioning (2.8)."""
    if not ctx.rules.features:
        return
    (znode,) = yield Read((FEATURE,))
    if znode is None:
        yield Transaction((Op("create", FEATURE, encode_feature(status=1)),))
        yield Read((FEATURE,))


def _initialize_context(ctx: ControllerContext) -> Handler:
    """Brokers, topics, assignments, leadership: everything from ZooKeeper, nothing from before."""
    yield from learn_brokers(ctx)
    (names,) = yield Children((TOPICS,), watch=True)
    yield Learn("all_topics", names or (), clear=True)
    yield Learn("assignments", clear=True)
    yield from learn_topics(ctx, names or ())
    yield Learn("leadership", clear=True)
    yield Learn("shutting_down_broker_ids", clear=True)
    for broker_id in ctx.live_or_shutting_down_broker_ids:
        yield Watch(broker_path(broker_id))
        yield Exists((broker_path(broker_id),), watch=True)
    yield from refresh_leadership(ctx, ctx.assignments)


def learn_brokers(ctx: ControllerContext) -> Handler:
    """Replace what is known of brokers by what is registered now."""
    brokers, epochs = yield from read_brokers()
    yield Learn("live_brokers", brokers, clear=True)
    yield Learn("live_broker_epochs", epochs, clear=True)


def read_brokers() -> Handler:
    """Return endpoints and epochs by broker id. A broker's epoch is the czxid of its registration."""
    (names,) = yield Children((BROKER_IDS,), watch=True)
    ids = sorted(int(name) for name in names or ())
    znodes = (yield Read(tuple(map(broker_path, ids)))) if ids else ()
    found = {broker: znode for broker, znode in zip(ids, znodes, strict=True) if znode}
    return {b: decode_broker(z.data) for b, z in found.items()}, {b: z.stat.czxid for b, z in found.items()}


def learn_topics(ctx: ControllerContext, topics: Iterable[str]) -> Handler:
    """Listen to these topics and add their assignments and ids to what is known; return the partitions."""
    topics = tuple(topics)
    for topic in topics:
        yield Watch(topic_path(topic))
    if not topics:
        return ()
    znodes = yield Read(tuple(map(topic_path, topics)), watch=True)
    found = {topic: decode_topic(znode.data) for topic, znode in zip(topics, znodes, strict=True) if znode}
    assignments = {TopicPartition(t, p): a for t, value in found.items() for p, a in sorted(value.partitions.items())}
    yield Learn("topic_ids", {topic: value.topic_id for topic, value in found.items() if value.topic_id})
    yield Learn("assignments", assignments)
    return tuple(assignments)


def refresh_leadership(ctx: ControllerContext, partitions: Iterable[TopicPartition]) -> Handler:
    """Cache what the state znodes say. Source: KafkaController.updateLeaderAndIsrCache (2.8)."""
    partitions = tuple(partitions)
    if not partitions:
        return
    znodes = yield Read(tuple(map(state_path, partitions)))
    values = {tp: decode_state(z.data, z.stat.version) for tp, z in zip(partitions, znodes, strict=True) if z}
    yield Learn("leadership", values)


def _start_replica_machine(ctx: ControllerContext) -> Handler:
    """First states without side effects; then the online replicas are told who leads and, since 2.3, the dead leave the ISR."""
    everything = ctx.replicas_of(ctx.assignments)
    online = [r for r in everything if ctx.is_replica_online(r.broker_id, r.topic_partition)]
    offline = [r for r in everything if not ctx.is_replica_online(r.broker_id, r.topic_partition)]
    states = dict.fromkeys(online, ReplicaState.ONLINE) | dict.fromkeys(offline, ReplicaState.DELETION_INELIGIBLE)
    if states:
        yield Learn("replica_states", states)
    yield from replica_machine.move(ctx, online, ReplicaState.ONLINE)
    if ctx.rules.offline_at_startup:
        yield from replica_machine.move(ctx, offline, ReplicaState.OFFLINE)


def _start_partition_machine(ctx: ControllerContext) -> Handler:
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
    """Try every partition, or every one of a topic, that has no leader, unless its topic is being deleted.

    Source: PartitionStateMachine.triggerOnlinePartitionStateChange (2.8).
    """
    waiting = ctx.partitions_in(PartitionState.OFFLINE, PartitionState.NEW)
    alive = [tp for tp in waiting if topic in (None, tp.topic) and not ctx.is_queued_for_deletion(tp.topic)]
    yield from partition_machine.move(ctx, alive, PartitionState.ONLINE, "offline")
