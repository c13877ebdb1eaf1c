"""How a broker says goodbye: its leaders move first, then its followers leave the ISRs, then it may go.

Source: KafkaController.processControlledShutdown and doControlledShutdown (2.8).
"""

from __future__ import annotations

from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.requests import RequestBatch
from kcontrol.effects import Handler, Learn, Respond
from kcontrol.events import ControlledShutdown
from kcontrol.model import PartitionReplica, PartitionState, ReplicaState, TopicPartition

Partitions = tuple[TopicPartition, ...]


def controlled_shutdown(ctx: ControllerContext, event: ControlledShutdown) -> Handler:
    """Answer with the partitions that the broker still leads; with none it may stop."""
    broker_id = event.broker_id
    if error := _refused(ctx, event):
        yield Respond(event.correlation_id, {"error": error, "partitions": {}})
        return
    yield Learn("shutting_down_broker_ids", (broker_id,))
    concerned = _replicated_on(ctx, broker_id)
    led = tuple(tp for tp in concerned if ctx.leadership[tp].leader == broker_id)
    followed = tuple(tp for tp in concerned if ctx.leadership[tp].leader != broker_id)
    yield from partition_machine.move(ctx, led, PartitionState.ONLINE, "controlled_shutdown")
    batch = RequestBatch()
    for tp in followed:
        batch.add_stop_replica(ctx, (broker_id,), tp, delete=False)
    yield from batch.send(ctx)
    yield from replica_machine.move(ctx, [PartitionReplica(tp, broker_id) for tp in followed], ReplicaState.OFFLINE)
    remaining = tuple(tp for tp in _replicated_on(ctx, broker_id) if ctx.leadership[tp].leader == broker_id)
    yield Respond(event.correlation_id, {"error": "NONE", "partitions": dict.fromkeys(remaining, "NONE")})


def _refused(ctx: ControllerContext, event: ControlledShutdown) -> str | None:
    """Why the request is refused. A broker that is not registered fails by a lookup error if it names its epoch."""
    known = ctx.live_broker_epochs.get(event.broker_id)
    if event.broker_epoch != -1 and known is None:
        return "NoSuchElementException"
    if event.broker_epoch != -1 and known is not None and event.broker_epoch < known:
        return "StaleBrokerEpochException"
    return "BrokerNotAvailableException" if known is None else None


def _replicated_on(ctx: ControllerContext, broker_id: int) -> Partitions:
    """Return the partitions with a replica on the broker and others elsewhere whose leadership is known.

    Since 2.1 partitions of topics that are being deleted are left out. Source: KafkaController.doControlledShutdown (2.0, 2.1).
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
