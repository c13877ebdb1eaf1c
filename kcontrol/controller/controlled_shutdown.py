"""Handles the request of a broker that wants to stop.

The controller first elects other leaders for the broker's partitions. Then it stops the broker's
other replicas and takes them out of the ISRs.

Source: KafkaController.processControlledShutdown and doControlledShutdown (2.8).
"""

from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.request_batch import RequestBatch
from kcontrol.core.effects import Handler, Respond, UpdateContext
from kcontrol.core.events import ControlledShutdown
from kcontrol.core.model import PartitionReplica, PartitionState, ReplicaState, TopicPartition

Partitions = tuple[TopicPartition, ...]


def controlled_shutdown(ctx: ControllerContext, event: ControlledShutdown) -> Handler:
    """Elect other leaders for the partitions that the stopping broker leads, then respond.

    The response has the partitions that the broker still leads and that have another replica. A
    request of an unregistered broker, or with an old broker epoch, is refused.

    Source: KafkaController.doControlledShutdown (2.8).
    """
    broker_id = event.broker_id
    if error := _refused(ctx, event):
        yield Respond(event.correlation_id, {"error": error, "partitions": {}})
        return
    yield UpdateContext("shutting_down_broker_ids", (broker_id,))
    concerned = _replicated_on(ctx, broker_id)
    led = tuple(tp for tp in concerned if ctx.leadership[tp].leader == broker_id)
    followed = tuple(tp for tp in concerned if ctx.leadership[tp].leader != broker_id)
    yield from partition_machine.handle_state_changes(
        ctx, led, PartitionState.ONLINE, "controlled_shutdown"
    )
    batch = RequestBatch()
    for tp in followed:
        batch.add_stop_replica(ctx, (broker_id,), tp, delete=False)
    yield from batch.send_requests_to_brokers(ctx)
    yield from replica_machine.handle_state_changes(
        ctx, [PartitionReplica(tp, broker_id) for tp in followed], ReplicaState.OFFLINE
    )
    # The broker may stop if the response has no partition and no error.
    remaining = tuple(
        tp for tp in _replicated_on(ctx, broker_id) if ctx.leadership[tp].leader == broker_id
    )
    left = dict.fromkeys(remaining, "NONE")
    yield Respond(event.correlation_id, {"error": "NONE", "partitions": left})


def _refused(ctx: ControllerContext, event: ControlledShutdown) -> str | None:
    """Return the error of a controlled shutdown request, None if the request is accepted.

    There is an error if the broker is not registered, or has registered with a later broker epoch
    than the request's.

    Source: KafkaController.doControlledShutdown (2.2, 2.8), which calls liveBrokerIdAndEpochs(id).
    """
    known = ctx.live_broker_epochs.get(event.broker_id)
    if event.broker_epoch == -1:  # a request of a version without a broker epoch
        return "BrokerNotAvailableException" if known is None else None
    if known is None:
        return "NoSuchElementException"  # Kafka looks the broker's epoch up in a map without it
    return "StaleBrokerEpochException" if event.broker_epoch < known else None


def _replicated_on(ctx: ControllerContext, broker_id: int) -> Partitions:
    """Return the partitions with replicas on `broker_id` and on other brokers.

    Partitions without leadership (leader and ISR) in the controller's context are left out, since
    2.1 also those of topics that are being deleted.

    Source: KafkaController.doControlledShutdown (2.0, 2.1).
    """
    skips_deleted = ctx.rules.shutdown_skips_deleted
    return tuple(
        tp
        for tp, assignment in ctx.assignments.items()
        if broker_id in assignment.replicas
        and len(assignment.replicas) > 1
        and tp in ctx.leadership
        and not (skips_deleted and ctx.is_queued_for_deletion(tp.topic))
    )
