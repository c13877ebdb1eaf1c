"""What the controller does when brokers come, go, come back unseen, or lose a log directory.

Source: KafkaController.scala (2.8): processBrokerChange, onBrokerStartup, onBrokerFailure, onReplicasBecomeOffline,
processBrokerModification, processLeaderAndIsrResponseReceived.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.failover_steps import bring_online, delete_all, listen_to_modifications, read_brokers
from kcontrol.controller.requests import update_metadata
from kcontrol.controller.resignation_steps import await_requests
from kcontrol.controller.stories import afterwards
from kcontrol.controller.ways_to_reassign import resume_on
from kcontrol.effects import Children, Handler, Learn, Read, Unwatch
from kcontrol.events import (
    BrokerChange,
    BrokerModifications,
    LeaderAndIsrResponseReceived,
    LogDirEventNotification,
    UpdateMetadataResponseReceived,
)
from kcontrol.generations import EVENT_THREAD
from kcontrol.model import PartitionReplica, PartitionState, ReplicaState
from kcontrol.znodes import LOG_DIR_EVENT_NOTIFICATION, BrokerEndpoint, broker_path, decode_broker, decode_log_dir_event

Brokers = tuple[int, ...]


def broker_change(ctx: ControllerContext, event: BrokerChange) -> Handler:
    """Compare who is registered with who is known: the new first, then the bounced, then the dead.

    Before brokers had epochs nobody was seen to have bounced, and all that is known was replaced before anything else.
    """
    registered, epochs = yield from read_brokers(ctx)
    known = ctx.live_broker_epochs
    new = tuple(b for b in epochs if b not in known)
    bounced = tuple(b for b in epochs if b in known and epochs[b] > known[b])
    dead = tuple(b for b in sorted(known) if b not in epochs)
    at_once = not ctx.rules.broker_epochs
    if at_once and (new or dead or registered != ctx.live_brokers):
        yield Learn("live_brokers", registered, clear=True)
        yield from await_requests(ctx, dead)
        yield Learn("live_broker_epochs", epochs, clear=True)
    if new:
        if not at_once:
            yield from _add(registered, epochs, new)
        yield from on_broker_startup(ctx, new)
    if bounced:
        yield from _remove(bounced)
        yield from on_broker_failure(ctx, bounced)
        yield from _add(registered, epochs, bounced)
        yield from on_broker_startup(ctx, bounced)
    if dead:
        if not at_once:
            yield from _remove(dead)
        yield from on_broker_failure(ctx, dead)


def _add(registered: dict[int, BrokerEndpoint], epochs: dict[int, int], brokers: Brokers) -> Handler:
    yield Learn("live_brokers", {b: registered[b] for b in brokers})
    yield Learn("live_broker_epochs", {b: epochs[b] for b in brokers})


def _remove(brokers: Brokers) -> Handler:
    yield Learn("live_brokers", remove=brokers)
    yield Learn("live_broker_epochs", remove=brokers)


def on_broker_startup(ctx: ControllerContext, brokers: Brokers) -> Handler:
    """Everybody learns that they live, they learn everything, and whatever waited for them is tried again."""
    if ctx.offline_dirs:
        yield Learn("offline_dirs", remove=brokers)
    others = tuple(b for b in ctx.live_or_shutting_down_broker_ids if b not in brokers)
    yield from update_metadata(ctx, others)
    hears_of_all = ctx.rules.newcomer_hears_of_doomed
    led = tuple(tp for tp in ctx.leadership if hears_of_all or not ctx.is_queued_for_deletion(tp.topic))
    yield from update_metadata(ctx, brokers, led)
    replicas = ctx.replicas_on(brokers)
    yield from replica_machine.move(ctx, replicas, ReplicaState.ONLINE)
    yield from bring_online(ctx)
    yield from resume_on(ctx, brokers)
    yield from deletion.resume(ctx, (r.topic for r in replicas))
    if ctx.rules.design == EVENT_THREAD:
        yield from listen_to_modifications(brokers)


def on_broker_failure(ctx: ControllerContext, brokers: Brokers) -> Handler:
    """Forget what was known of them, then see to their replicas."""
    if ctx.offline_dirs:
        yield Learn("offline_dirs", remove=brokers)
    if ctx.shutting_down_broker_ids:
        yield Learn("shutting_down_broker_ids", remove=brokers)
    yield from on_replicas_become_offline(ctx, ctx.replicas_on(brokers), brokers)
    for broker_id in brokers:
        yield Unwatch(broker_path(broker_id))


def on_replicas_become_offline(ctx: ControllerContext, replicas: Iterable[PartitionReplica], dead: Brokers = ()) -> Handler:
    """Leaderless partitions first go Offline and then look for a leader; after that the replicas leave their ISRs.

    Those of topics that are being deleted have failed to be. Before 1.0 only what one of the `dead` led counts as leaderless.
    Brokers hear of it at last if they have not before; up to 3.0 that is taken for granted wherever a partition was leaderless.
    """
    replicas = tuple(replicas)
    leaderless = ctx.partitions_with_offline_leader()
    if ctx.rules.leaderless == "led by the dead":
        leaderless = tuple(tp for tp in leaderless if ctx.leadership[tp].leader in dead)
    yield from partition_machine.move(ctx, leaderless, PartitionState.OFFLINE)
    elected = yield from bring_online(ctx)
    staying = [r for r in replicas if not ctx.is_queued_for_deletion(r.topic)]
    yield from replica_machine.move(ctx, staying, ReplicaState.OFFLINE)
    yield from deletion.fail_replica_deletion(ctx, replicas)
    is_said = leaderless if ctx.rules.untold_death == "nothing was leaderless" else staying or elected
    if not is_said:
        yield from update_metadata(ctx, ctx.live_or_shutting_down_broker_ids)


def broker_modifications(ctx: ControllerContext, event: BrokerModifications) -> Handler:
    """A broker listens somewhere else: everybody is told."""
    (znode,) = yield Read((broker_path(event.broker_id),), watch=True)
    known = ctx.live_brokers.get(event.broker_id)
    if znode is None or known is None:
        return
    endpoint = decode_broker(znode.data)
    if endpoint != known:
        yield Learn("live_brokers", {event.broker_id: endpoint})
        yield from update_metadata(ctx, ctx.live_or_shutting_down_broker_ids)


def leader_and_isr_response_received(ctx: ControllerContext, event: LeaderAndIsrResponseReceived) -> Handler:
    """A storage error takes a replica offline, success brings its directory back; other errors change nothing."""
    if event.error != "NONE":
        return
    broker_id = event.broker_id
    before = ctx.offline_dirs.get(broker_id, frozenset())
    errors = dict(event.errors)
    failed = frozenset(tp for tp, error in errors.items() if error == "KAFKA_STORAGE_ERROR")
    healthy = frozenset(tp for tp in before if tp in event.partitions and tp not in errors)
    now = (before - healthy) | failed
    if now != before:
        yield Learn("offline_dirs", {broker_id: now})
    if newly := sorted(now - before):
        yield from on_replicas_become_offline(ctx, [PartitionReplica(tp, broker_id) for tp in newly])


def log_dir_event_notification(ctx: ControllerContext, event: LogDirEventNotification) -> Handler:
    """A broker has lost a log directory, and left a note of it.

    Source: KafkaController.processLogDirEventNotification (2.8).
    """
    (names,) = yield Children((LOG_DIR_EVENT_NOTIFICATION,), watch=True)
    yield from ask_again(ctx, tuple(f"{LOG_DIR_EVENT_NOTIFICATION}/{name}" for name in names or ()))


def ask_again(ctx: ControllerContext, paths: tuple[str, ...]) -> Handler:
    """Who has left these notes is told again who leads: its answer says which replicas are gone. The notes are deleted."""
    if paths:
        yield from afterwards(_ask_again(ctx, paths), delete_all(paths))


def _ask_again(ctx: ControllerContext, paths: tuple[str, ...]) -> Handler:
    znodes = yield Read(paths)
    brokers = dict.fromkeys(decode_log_dir_event(znode.data) for znode in znodes if znode)
    yield from replica_machine.move(ctx, ctx.replicas_on(brokers), ReplicaState.ONLINE)


def update_metadata_response_received(ctx: ControllerContext, event: UpdateMetadataResponseReceived) -> Handler:
    """Kafka only logs an error here."""
    yield from ()
