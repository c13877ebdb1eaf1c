"""Handles changes of the ISR that a leader requests or has written.

Since 2.7 a leader sends AlterIsr, and the controller writes the state znode (KIP-497). Before, the
leader writes the state znode and a notification in `/isr_change_notification`.

Source: KafkaController.processAlterIsr and processIsrChangeNotification (2.8).
"""

from kcontrol.controller.context import ControllerContext
from kcontrol.controller.failover_steps import delete_all, try_finally, update_leader_and_isr_cache
from kcontrol.controller.reassignment import maybe_complete_reassignments
from kcontrol.controller.request_batch import send_update_metadata_request
from kcontrol.core import effects
from kcontrol.core import znodes as zk
from kcontrol.core.effects import Handler
from kcontrol.core.events import AlterIsrReceived, IsrChangeNotification
from kcontrol.core.model import LeaderAndIsr, TopicPartition

Responses = dict[TopicPartition, LeaderAndIsr | str]


def alter_isr_received(ctx: ControllerContext, event: AlterIsrReceived) -> Handler:
    """Write the requested ISRs, send UpdateMetadata, and respond with a result for each partition.

    If this fails, respond with one error for the whole request. Otherwise also complete each
    reassignment whose target replicas are now in the ISR.

    Source: KafkaController.processAlterIsr (2.8).
    """
    if ctx.live_broker_epochs.get(event.broker_id) != event.broker_epoch:
        yield effects.Respond(
            event.correlation_id, {"error": "STALE_BROKER_EPOCH", "partitions": {}}
        )
        return
    try:
        responses: Responses = yield from _alter_isr(ctx, event)
        yield effects.Respond(event.correlation_id, {"error": "NONE", "partitions": responses})
    # Kafka responds to every exception. ControllerMoved ends here too, so a broker that is no
    # longer controller does not resign at this point.
    except Exception:
        yield effects.Respond(
            event.correlation_id, {"error": "UNKNOWN_SERVER_ERROR", "partitions": {}}
        )
    else:
        yield from maybe_complete_reassignments(
            ctx, (tp for tp, response in responses.items() if isinstance(response, LeaderAndIsr))
        )


def _alter_isr(ctx: ControllerContext, event: AlterIsrReceived) -> Handler:
    """Write each requested ISR, unless it is refused or already stored; then send UpdateMetadata.

    Return the response by partition: its leadership after the request, or the name of the error
    that refuses the new ISR.
    """
    responses: Responses = {}
    changes: dict[TopicPartition, LeaderAndIsr] = {}
    since_3_3 = ctx.rules.isr_requires_live_broker
    response_to = _response_without_write_since_3_3 if since_3_3 else _response_without_write
    for tp, value in event.partitions:
        response = response_to(ctx, ctx.leadership.get(tp), value)
        if response is None:
            changes[tp] = value
        else:
            responses[tp] = response
    if changes:
        yield from _write(ctx, event.broker_id, changes, responses)
    yield from send_update_metadata_request(
        ctx, ctx.live_or_shutting_down_broker_ids, [tp for tp, _ in event.partitions]
    )
    return responses


def _response_without_write(
    ctx: ControllerContext, cached: LeaderAndIsr | None, value: LeaderAndIsr
) -> LeaderAndIsr | str | None:
    """Return the response for a partition, before 3.3; None if its state znode must be written.

    `value` is the requested leadership, `cached` that in the context. The response is `cached` if
    both have equal leaders, ISRs and leader epochs, otherwise an error.

    Source: KafkaController.processAlterIsr (2.8).
    """
    if cached is None:
        return "UNKNOWN_TOPIC_OR_PARTITION"
    if value.leader_epoch < cached.leader_epoch:
        return "FENCED_LEADER_EPOCH"
    is_in_force = (value.leader, value.isr) == (cached.leader, cached.isr)
    return cached if is_in_force and value.leader_epoch == cached.leader_epoch else None


def _response_without_write_since_3_3(
    ctx: ControllerContext, cached: LeaderAndIsr | None, value: LeaderAndIsr
) -> LeaderAndIsr | str | None:
    """Return the response for a partition, since 3.3; None if its state znode must be written.

    `value` is the requested leadership, `cached` that in the context. The response is `cached` if
    `value` changes nothing, otherwise an error, such as INELIGIBLE_REPLICA.

    Source: KafkaController.tryProcessAlterPartition (3.9).
    """
    if cached is None:
        return "UNKNOWN_TOPIC_OR_PARTITION"
    # A value newer than the context shows that another broker is controller.
    if value.zk_version > cached.zk_version or value.leader_epoch > cached.leader_epoch:
        return "NOT_CONTROLLER"
    if value.leader_epoch < cached.leader_epoch:
        return "FENCED_LEADER_EPOCH"
    epoch = cached.controller_epoch
    if value._replace(zk_version=cached.zk_version, controller_epoch=epoch) == cached:
        return cached
    # An older znode version is an error only if leader or ISR differ from `cached`.
    if value.zk_version < cached.zk_version:
        return "INVALID_UPDATE_VERSION"
    return None if set(value.isr) <= set(ctx.live_broker_ids) else "INELIGIBLE_REPLICA"


def _write(
    ctx: ControllerContext,
    leader: int,
    changes: dict[TopicPartition, LeaderAndIsr],
    responses: Responses,
) -> Handler:
    values = {
        tp: v._replace(leader=leader, controller_epoch=ctx.controller_epoch)
        for tp, v in changes.items()
    }
    ops = [
        effects.Op("set", zk.state_path(tp), zk.encode_state(v), v.zk_version)
        for tp, v in values.items()
    ]
    results: tuple[effects.TransactionResult, ...]
    try:
        results = yield effects.fenced(*ops)
    except effects.SessionExpired:
        # Each write fails alone. Source: KafkaZkClient.updateLeaderAndIsr (2.8).
        responses.update(dict.fromkeys(values, "UNKNOWN_SERVER_ERROR"))
        return
    written = {}
    for (tp, value), result in zip(values.items(), results, strict=True):
        is_stale = result.code == "BadVersion"
        responses[tp] = "INVALID_UPDATE_VERSION" if is_stale else "UNKNOWN_SERVER_ERROR"
        if result.is_ok:
            responses[tp] = written[tp] = value._replace(zk_version=result.versions[0] or 0)
    if written:
        yield effects.UpdateContext("leadership", written)


def isr_change_notification(ctx: ControllerContext, event: IsrChangeNotification) -> Handler:
    """Read the notifications of leaders that have written an ISR, and send UpdateMetadata.

    Source: KafkaController.processIsrChangeNotification (2.8).
    """
    (names,) = yield effects.Children((zk.ISR_CHANGE_NOTIFICATION,), watch=True)
    yield from process_isr_notifications(
        ctx, tuple(f"{zk.ISR_CHANGE_NOTIFICATION}/{name}" for name in names or ())
    )


def process_isr_notifications(ctx: ControllerContext, paths: tuple[str, ...]) -> Handler:
    """Send UpdateMetadata for the partitions in the notifications; then delete the notifications.

    `paths` are the znodes of the notifications, which are deleted even after an error.

    Source: KafkaController.processIsrChangeNotification (2.8), whose finally deletes the
    notifications.
    """
    if paths:
        yield from try_finally(process_isr_changes(ctx, paths), delete_all(paths))


def process_isr_changes(ctx: ControllerContext, paths: tuple[str, ...]) -> Handler:
    """Read the notification znodes `paths` and their partitions' state znodes; send UpdateMetadata.

    All brokers receive UpdateMetadata, unless the notifications name no partition. Source:
    KafkaController.processIsrChangeNotification (1.0, 2.8).
    """
    znodes = yield effects.Read(paths)
    named = dict.fromkeys(tp for znode in znodes if znode for tp in _partitions_named(znode.data))
    if named:
        yield from update_leader_and_isr_cache(ctx, named)
        if require := ctx.design.require_channels:
            yield from require(ctx)
        yield from send_update_metadata_request(ctx, ctx.live_or_shutting_down_broker_ids, named)
        if ctx.rules.isr_notification_completes_reassignment:
            yield from maybe_complete_reassignments(ctx, named)


def _partitions_named(data: bytes) -> tuple[TopicPartition, ...]:
    try:
        return zk.decode_partition_list(data)
    except zk.MalformedZnode:
        return ()
