"""Handles log directories that have failed on a live broker.

The broker's notification names the broker alone. The controller sends LeaderAndIsr of all replicas
of the broker, and the errors in the response name the failed replicas.

Source: KafkaController.processLogDirEventNotification, onBrokerLogDirFailure and
processLeaderAndIsrResponseReceived (2.8), KIP-112.
"""

from kcontrol.controller import replica_machine
from kcontrol.controller.broker_changes import on_replicas_become_offline
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.failover_steps import delete_all, try_finally
from kcontrol.core.effects import Children, Handler, Read, UpdateContext
from kcontrol.core.events import LeaderAndIsrResponseReceived, LogDirEventNotification
from kcontrol.core.model import PartitionReplica, ReplicaState
from kcontrol.core.znodes import LOG_DIR_EVENT_NOTIFICATION, decode_log_dir_event


def log_dir_event_notification(ctx: ControllerContext, event: LogDirEventNotification) -> Handler:
    """Read `/log_dir_event_notification` with a new watch; handle the notifications below it.

    Source: KafkaController.processLogDirEventNotification (2.8).
    """
    (names,) = yield Children((LOG_DIR_EVENT_NOTIFICATION,), watch=True)
    yield from process_log_dir_events(
        ctx, tuple(f"{LOG_DIR_EVENT_NOTIFICATION}/{name}" for name in names or ())
    )


def process_log_dir_events(ctx: ControllerContext, paths: tuple[str, ...]) -> Handler:
    """Send LeaderAndIsr to the brokers that the notifications name, then delete the notifications.

    `paths` are the znodes of the notifications. A broker's response names the failed replicas.

    Source: KafkaController.onBrokerLogDirFailure (2.8).
    """
    if paths:
        yield from try_finally(_on_broker_log_dir_failure(ctx, paths), delete_all(paths))


def _on_broker_log_dir_failure(ctx: ControllerContext, paths: tuple[str, ...]) -> Handler:
    znodes = yield Read(paths)
    brokers = dict.fromkeys(decode_log_dir_event(znode.data) for znode in znodes if znode)
    yield from replica_machine.handle_state_changes(
        ctx, ctx.replicas_on(brokers), ReplicaState.ONLINE
    )


def leader_and_isr_response_received(
    ctx: ControllerContext, event: LeaderAndIsrResponseReceived
) -> Handler:
    """Move replicas with KAFKA_STORAGE_ERROR Offline; store that replicas without error work again.

    `event` has the errors by partition. Other errors, and a response with an error for the whole
    request, change nothing.

    Source: KafkaController.processLeaderAndIsrResponseReceived (2.8).
    """
    if event.error != "NONE":
        return
    broker_id = event.broker_id
    before = ctx.offline_dirs.get(broker_id, frozenset())
    errors = dict(event.errors)
    failed = frozenset(tp for tp, error in errors.items() if error == "KAFKA_STORAGE_ERROR")
    healthy = frozenset(tp for tp in before if tp in event.partitions and tp not in errors)
    now = (before - healthy) | failed
    if now != before:
        yield UpdateContext("offline_dirs", {broker_id: now})
    if newly := sorted(now - before):
        yield from on_replicas_become_offline(
            ctx, [PartitionReplica(tp, broker_id) for tp in newly]
        )
