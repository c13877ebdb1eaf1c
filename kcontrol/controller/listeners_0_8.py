"""What listeners do about brokers, topics and requests where they share one lock.

ZkClient sets the watch of a path anew and reads it before it calls the listener, so each of these begins with that.
Source: ReplicaStateMachine.BrokerChangeListener, PartitionStateMachine.TopicChangeListener and AddPartitionsListener,
KafkaController.onBrokerStartup, onBrokerFailure, shutdownBroker (0.8.1.1); ZkClient.fireChildChangedEvents and
fireDataChangedEvents (ZkClient 0.3).
"""

from __future__ import annotations

from collections.abc import Iterable

from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.failover_steps import bring_online, delete_all, read_registrations
from kcontrol.controller.isr_changes import take_note
from kcontrol.controller.reassignment import require_channels
from kcontrol.controller.reassignment_0_8 import resume_on
from kcontrol.controller.requests import RequestBatch, update_metadata
from kcontrol.controller.resignation_steps import await_requests
from kcontrol.controller.stories import afterwards
from kcontrol.controller.topic_changes import meet_topics, on_new_partition_creation
from kcontrol.effects import Children, Exists, Handler, Learn, Read, Release, Respond
from kcontrol.events import (
    BrokerChange,
    ControlledShutdown,
    IsrChangeNotification,
    PartitionModifications,
    TopicChange,
)
from kcontrol.model import PartitionReplica, PartitionState, ReplicaState, TopicPartition
from kcontrol.znodes import BROKER_IDS, ISR_CHANGE_NOTIFICATION, TOPICS, decode_topic, topic_path

Brokers = tuple[int, ...]


def children_of(path: str) -> Handler:
    """Watch `path` again and return its children."""
    yield Exists((path,), watch=True)
    (names,) = yield Children((path,), watch=True)
    return names or ()


def data_of(path: str) -> Handler:
    """Watch `path` again and return its znode, or None if it is gone."""
    yield Exists((path,), watch=True)
    (znode,) = yield Read((path,), watch=True)
    return znode


# ---------------------------------------------------------------- brokers


def broker_change(ctx: ControllerContext, event: BrokerChange) -> Handler:
    """Compare the ids that are registered with those that are known; who came back in between is not noticed."""
    ids = sorted(int(name) for name in (yield from children_of(BROKER_IDS)))
    if not ctx.machines_started:
        return
    new = tuple(b for b in ids if b not in ctx.live_broker_epochs)
    dead = tuple(b for b in sorted(ctx.live_broker_epochs) if b not in ids)
    yield from read_registrations(ctx, new)
    brokers, epochs = yield from read_registrations(ctx, ids)
    yield Learn("live_brokers", brokers, clear=True)
    yield from await_requests(ctx, dead)
    yield Learn("live_broker_epochs", epochs, clear=True)
    if new:
        yield from on_broker_startup(ctx, new)
    if dead:
        yield from on_broker_failure(ctx, dead)


def on_broker_startup(ctx: ControllerContext, brokers: Brokers) -> Handler:
    """They learn everything, since 0.9 the others too; whatever waited for them is tried again."""
    everybody = ctx.rules.told_of_newcomer == "everybody"
    yield from update_metadata(ctx, ctx.live_or_shutting_down_broker_ids if everybody else brokers)
    replicas = yield from _replicas_on(ctx, brokers)
    yield from replica_machine.move(ctx, replicas, ReplicaState.ONLINE)
    yield from bring_online(ctx)
    yield from resume_on(ctx, brokers)
    yield from deletion.resume(ctx, (r.topic for r in replicas))


def on_broker_failure(ctx: ControllerContext, brokers: Brokers) -> Handler:
    """The partitions that they led look for a leader; then their replicas leave the ISRs, or have failed to be deleted.

    Since 0.9 everybody hears of it in any case.
    """
    if any(b in ctx.shutting_down_broker_ids for b in brokers):
        yield Learn("shutting_down_broker_ids", remove=brokers)
    led = (tp for tp, value in ctx.leadership.items() if value.leader in brokers)
    leaderless = tuple(tp for tp in led if not ctx.is_queued_for_deletion(tp.topic))
    yield from partition_machine.move(ctx, leaderless, PartitionState.OFFLINE)
    yield from bring_online(ctx)
    replicas = yield from _replicas_on(ctx, brokers)
    staying = [r for r in replicas if not ctx.is_queued_for_deletion(r.topic)]
    yield from replica_machine.move(ctx, staying, ReplicaState.OFFLINE)
    yield from deletion.fail_replica_deletion(ctx, replicas)
    if ctx.rules.told_of_any_death and not leaderless:
        yield from update_metadata(ctx, ctx.live_or_shutting_down_broker_ids)


def _replicas_on(ctx: ControllerContext, brokers: Iterable[int]) -> Handler:
    """What these brokers host of the partitions that are known; in 0.8.0 as the topic znodes say now.

    Source: ZkUtils.getAllReplicasOnBroker (0.8.0).
    """
    if ctx.rules.replicas_of_brokers == "cache":
        return ctx.replicas_on(brokers)
    topics, wanted = sorted(ctx.all_topics), frozenset(brokers)
    znodes = (yield Read(tuple(map(topic_path, topics)))) if topics else ()
    stored = {topic: decode_topic(znode.data).partitions for topic, znode in zip(topics, znodes, strict=True) if znode}
    named = {TopicPartition(topic, number): a for topic, found in stored.items() for number, a in sorted(found.items())}
    return tuple(PartitionReplica(tp, b) for tp, a in named.items() if tp in ctx.assignments for b in a.replicas if b in wanted)


# ---------------------------------------------------------------- topics


def topic_change(ctx: ControllerContext, event: TopicChange) -> Handler:
    """New topics get their first leaders; vanished ones are half forgotten."""
    now = yield from children_of(TOPICS)
    if ctx.machines_started:
        yield from meet_topics(ctx, now)


def partition_modifications(ctx: ControllerContext, event: PartitionModifications) -> Handler:
    """Partitions that the topic znode has gained are created. Before 0.9 they are known once they are New."""
    znode = yield from data_of(topic_path(event.topic))
    if znode is None:
        return
    (stored,) = yield Read((topic_path(event.topic),))
    numbered = decode_topic(stored.data).partitions if stored else {}
    named = {TopicPartition(event.topic, number): assignment for number, assignment in sorted(numbered.items())}
    added = {tp: assignment for tp, assignment in named.items() if tp not in ctx.assignments}
    if added and ctx.machines_started and not ctx.is_queued_for_deletion(event.topic):
        if not ctx.rules.rereads_assignment:
            yield Learn("assignments", added)
        yield from on_new_partition_creation(ctx, added)


def isr_change_notification(ctx: ControllerContext, event: IsrChangeNotification) -> Handler:
    """Leaders have written ISRs themselves: look at what they name, tell everybody, and delete the notes, even on an error.

    Source: IsrChangeNotificationListener.handleChildChange (0.9.0.1).
    """
    paths = tuple(f"{ISR_CHANGE_NOTIFICATION}/{name}" for name in (yield from children_of(ISR_CHANGE_NOTIFICATION)))
    if paths:
        yield from afterwards(take_note(ctx, paths), delete_all(paths))


# ---------------------------------------------------------------- controlled shutdown


def controlled_shutdown(ctx: ControllerContext, event: ControlledShutdown) -> Handler:
    """Partition by partition, each under the lock anew, so that others may come in between. Answer with what it still leads."""
    broker_id = event.broker_id
    error = "BrokerNotAvailableException" if broker_id not in ctx.live_broker_epochs else None
    error = error if ctx.is_active else "ControllerMovedException"
    if error:
        yield Respond(event.correlation_id, {"error": error, "partitions": {}})
        return
    yield Learn("shutting_down_broker_ids", (broker_id,))
    yield Release()
    hosted = yield from _replicas_on(ctx, (broker_id,))
    copies = {replica.topic_partition: len(ctx.replicas(replica.topic_partition)) for replica in hosted}
    for tp in copies:
        yield Release()
        if (cached := ctx.leadership.get(tp)) is None or not (ctx.rules.lone_replica_is_moved or copies[tp] > 1):
            continue
        if cached.leader == broker_id:
            yield from partition_machine.move(ctx, (tp,), PartitionState.ONLINE, "controlled_shutdown")
        elif not ctx.has_channels:  # it has resigned in between: the request fails on a channel manager that is null
            yield Respond(event.correlation_id, {"error": "UnknownCode", "partitions": {}})
            yield from require_channels(ctx)
        else:
            yield from stop(ctx, tp, broker_id)
    yield Release()
    led = [tp for tp, value in ctx.leadership.items() if value.leader == broker_id and len(ctx.replicas(tp)) > 1]
    yield Respond(event.correlation_id, {"error": "NONE", "partitions": dict.fromkeys(led, "NONE")})


def stop(ctx: ControllerContext, tp: TopicPartition, broker_id: int) -> Handler:
    """A follower is stopped by one request, and then leaves the ISR. Source: KafkaController.shutdownBroker (0.8.1, 1.0)."""
    batch = RequestBatch()
    batch.add_stop_replica(ctx, (broker_id,), tp, delete=False)
    yield from batch.send(ctx)
    yield from replica_machine.move(ctx, (PartitionReplica(tp, broker_id),), ReplicaState.OFFLINE)
