"""Handlers of a broker: responses to controllers, and requests of a leader for another ISR.

HANDLERS has the handler of each event. After each handler the logs follow the leadership
(`apply_leadership_to_logs`). Only functions of `replication.py` change a log: `stop_replica` and
`follower_fetch` of this file call them.

A request has errors on two levels. A request with an older broker epoch or controller epoch is
refused as a whole. In an accepted request each partition has an error of its own, and the other
partitions are applied.

The leader decides the ISR of its partitions. It has one change in flight for each partition:
`pending_isr` is set until the response, or until a newer LeaderAndIsr. Up to 2.6 the leader writes
the state znode (`_write_isr`); since 2.7 it sends AlterIsr, and the controller writes.

HANDLERS does not say when a follower counts as caught up or as lagging: if brokers store records,
`replication.py` computes this from the offsets of fetches, else it is an action of the simulated
cluster (`cluster/delivery.py`). Read next: `replication.py`, then `log.py`.

Source: ReplicaManager.scala, KafkaApis.scala, Partition.scala and AlterIsrManager.scala (2.8).
"""

from collections.abc import Callable
from typing import Any

from kcontrol.broker import events, replication
from kcontrol.broker.context import BrokerContext, HostedPartition
from kcontrol.broker.shutdown import controlled_shutdown_response, shut_down
from kcontrol.broker.startup import startup
from kcontrol.core import effects
from kcontrol.core import znodes as zk
from kcontrol.core.effects import Handler
from kcontrol.core.events import Event
from kcontrol.core.model import (
    EPOCH_DURING_DELETE,
    LEADER_DURING_DELETE,
    NO_EPOCH,
    LeaderAndIsr,
    TopicPartition,
)

PROPAGATION_TIMER = "isr-change-propagation"
BLACKOUT_MS = 5_000


def _request_error(ctx: BrokerContext, event: Any) -> str:
    """Return the error with which the broker refuses the whole request `event`, else "NONE".

    A request is refused if its broker epoch or controller epoch is older than the broker's.

    Source: KafkaApis.isBrokerEpochStale, ReplicaManager (2.8).
    """
    # -1 means that the request has no broker epoch.
    if 0 <= event.broker_epoch < ctx.broker_epoch:
        return "STALE_BROKER_EPOCH"
    return "STALE_CONTROLLER_EPOCH" if event.controller_epoch < ctx.controller_epoch else "NONE"


def _update_controller(ctx: BrokerContext, event: Any) -> Handler:
    """A new epoch may accept the ISR members that the controller has refused before."""
    if ctx.controller_id != event.controller_id:
        yield effects.UpdateContext("controller_id", event.controller_id, context="broker")
    if ctx.controller_epoch != event.controller_epoch:
        yield effects.UpdateContext("controller_epoch", event.controller_epoch, context="broker")
        yield from _clear_refused(ctx)


def _clear_refused(ctx: BrokerContext) -> Handler:
    """The controller may accept now the followers that it refused before as ISR members."""
    if ctx.ineligible_replicas:
        yield effects.UpdateContext("ineligible_replicas", clear=True, context="broker")


def leader_and_isr(ctx: BrokerContext, event: events.LeaderAndIsrRequest) -> Handler:
    """Become leader or follower of each partition of the request, then respond.

    The response has an error for each partition that is refused. A request with an old broker epoch
    or controller epoch changes nothing.

    Source: ReplicaManager.makeFollowers (2.8; since 0.8.1).
    """
    error = _request_error(ctx, event)
    errors: dict[TopicPartition, str] = {}
    if error == "NONE":
        yield from _update_controller(ctx, event)
        found = {tp: _partition_error(ctx, tp, entry) for tp, entry in event.partitions.items()}
        errors = {tp: error for tp, error in found.items() if error is not None}
        if len(errors) < len(event.partitions):
            taken = tuple(tp for tp in event.partitions if tp not in errors)
            yield effects.ApplyRequest("hosted", taken if errors else None)
            # Since 0.8.1 a broker in a controlled shutdown does not fetch the partitions of the
            # request.
            if ctx.shutdown_attempts and not ctx.rules.fetches_during_shutdown:
                yield effects.UpdateContext("unfetched_partitions", taken, context="broker")
            yield from _clear_refused(ctx)
    named = {tp: error for tp, error in errors.items() if error}
    yield effects.Respond(event.correlation_id, {"error": error, "errors": named})


def _partition_error(ctx: BrokerContext, tp: TopicPartition, entry: Any) -> str | None:
    """Return None if the broker accepts `entry`, the entry of `tp` in LeaderAndIsr, else the error.

    The result "" means that the broker refuses `entry`, and its response has no error for `tp`
    (0.8.0, old leader epoch).
    """
    if tp in ctx.offline_partitions:
        return "KAFKA_STORAGE_ERROR"
    held = ctx.hosted.get(tp)
    if held is not None and entry.leader_epoch <= held.leadership.leader_epoch:
        return ctx.rules.old_leader_epoch
    # Since 0.8.1 the replicas of the entry must contain this broker.
    is_accepted = ctx.broker_id in entry.replicas or ctx.rules.accepts_unassigned_partitions
    return None if is_accepted else "UNKNOWN_TOPIC_OR_PARTITION"


def update_metadata(ctx: BrokerContext, event: events.UpdateMetadataRequest) -> Handler:
    """Store the live brokers and the metadata of the request's partitions, then respond.

    A request with an older broker epoch or controller epoch changes nothing and gets an error.
    """
    error = _request_error(ctx, event)
    if error == "NONE":
        yield from _update_controller(ctx, event)
        if ctx.live_brokers != set(event.live_brokers):
            yield effects.UpdateContext(
                "live_brokers", event.live_brokers, clear=True, context="broker"
            )
            yield from _clear_refused(ctx)
        rows = event.partitions
        # The leader -2 means that the topic is being deleted.
        gone = tuple(tp for tp, entry in rows.items() if entry.leader == LEADER_DURING_DELETE)
        if gone:
            yield effects.UpdateContext("metadata", remove=gone, context="broker")
        if len(gone) < len(rows):
            left = tuple(tp for tp in rows if tp not in gone) if gone else None
            yield effects.ApplyRequest("metadata", left)
    yield effects.Respond(event.correlation_id, {"error": error, "errors": {}})


def stop_replica(ctx: BrokerContext, event: events.StopReplicaRequest) -> Handler:
    """Stop hosting the replicas, and delete their logs if the request says so, then respond.

    A replica with an offline log directory or, since 2.6, an old leader epoch stays and gets an
    error.
    """
    error = _request_error(ctx, event)
    errors: dict[TopicPartition, str] = {}
    if error == "NONE":
        yield from _update_controller(ctx, event)
        rows = event.partitions.items()
        found = {tp: _stop_error(ctx, tp, entry.leader_epoch) for tp, entry in rows}
        errors = {tp: error for tp, error in found.items() if error}
        # A replica that is not hosted here gets no error.
        stopped = tuple(tp for tp in event.partitions if tp not in errors and tp in ctx.hosted)
        if stopped:
            yield effects.UpdateContext("hosted", remove=stopped, context="broker")
        for tp, entry in event.partitions.items():
            if entry.delete and tp in ctx.logs and tp not in errors and ctx.rules.deletes_logs:
                yield from replication.delete_log(ctx, tp)
    yield effects.Respond(event.correlation_id, {"error": error, "errors": errors})


def _stop_error(ctx: BrokerContext, tp: TopicPartition, leader_epoch: int) -> str | None:
    if tp in ctx.offline_partitions:
        return "KAFKA_STORAGE_ERROR"
    held = ctx.hosted.get(tp)
    if held is None or not ctx.rules.stop_replica_by_partition:
        return None
    known = held.leadership.leader_epoch
    if leader_epoch in (EPOCH_DURING_DELETE, NO_EPOCH) or leader_epoch > known:
        return None
    return "FENCED_LEADER_EPOCH"


# ---------------------------------------------------------------- the ISR, on the leader


def replica_caught_up(ctx: BrokerContext, event: events.ReplicaCaughtUp) -> Handler:
    """Request an ISR with the follower `event.replica_id`, if this follower is not in the ISR.

    Do nothing if this broker does not lead the partition, or while a change of the ISR is in
    flight.
    """
    tp, replica_id = event.partition, event.replica_id
    held = ctx.hosted.get(tp) if ctx.is_leader(tp) else None
    # Since 3.3 the follower's broker must be live, and the controller must not have refused the
    # follower.
    is_outside = held is not None and replica_id not in held.leadership.isr
    if held and is_outside and ctx.is_replica_isr_eligible(tp, replica_id):
        yield from _submit_isr_change(ctx, tp, held, (*held.leadership.isr, replica_id))


def follower_fetch(ctx: BrokerContext, event: events.FollowerFetch) -> Handler:
    """A follower that has caught up (`is_follower_in_sync`) joins the ISR by a request."""
    # The leader's response is that of `replication.read_for_fetch`.
    yield from replication.update_follower_fetch_state(ctx, event)
    tp, replica_id = event.partition, event.replica_id
    if ctx.is_leader(tp) and replication.is_follower_in_sync(ctx, tp, replica_id, event.offset):
        yield from replica_caught_up(ctx, events.ReplicaCaughtUp(tp, replica_id))


def replica_lags(ctx: BrokerContext, event: events.ReplicaLags) -> Handler:
    """Ignored while a change of the ISR is in flight."""
    tp, replica_id = event.partition, event.replica_id
    held = ctx.hosted.get(tp) if ctx.is_leader(tp) else None
    # The leader never removes itself.
    if held and replica_id in held.leadership.isr and replica_id != ctx.broker_id:
        left = tuple(b for b in held.leadership.isr if b != replica_id)
        yield from _submit_isr_change(ctx, tp, held, left)


def _submit_isr_change(
    ctx: BrokerContext, tp: TopicPartition, held: HostedPartition, isr: tuple[int, ...]
) -> Handler:
    if held.pending_isr:
        return
    yield effects.UpdateContext("hosted", {tp: held._replace(pending_isr=isr)}, context="broker")
    if ctx.rules.alter_isr:
        yield effects.Submit("AlterIsr", {tp: held.leadership._replace(isr=isr)})
    else:
        yield from _write_isr(ctx, tp, held.leadership._replace(isr=isr))


def _write_isr(ctx: BrokerContext, tp: TopicPartition, value: LeaderAndIsr) -> Handler:
    """Write `value` (with the new ISR) if the state znode has the version `value.zk_version`.

    After a version conflict the leader keeps the old ISR as its ISR.

    Source: Partition.updateIsr (0.8.1).
    """
    write = effects.Op("set", zk.state_path(tp), zk.encode_state(value), value.zk_version)
    # After a conflict Kafka tries again with every fetch, over the old version, and fails; kcontrol
    # does not try again. A newer LeaderAndIsr ends this.
    result: effects.TransactionResult = yield effects.Transaction((write,))
    held = ctx.hosted.get(tp)
    # If the leader epoch has changed meanwhile, the leadership of the newer LeaderAndIsr stays.
    if result.is_ok and held is not None and held.leadership.leader_epoch == value.leader_epoch:
        written = value._replace(zk_version=result.versions[0] or 0)
        after = held._replace(leadership=written, pending_isr=())
        yield effects.UpdateContext("hosted", {tp: after}, context="broker")
    if result.is_ok:
        yield from record_isr_change(ctx, tp)


def record_isr_change(ctx: BrokerContext, tp: TopicPartition) -> Handler:
    """From 0.9 to 2.6 a leader batches its changes: a later one restarts the timer.

    Source: ReplicaManager.recordIsrChange (2.4).
    """
    if ctx.rules.isr_notifications:
        yield effects.UpdateContext("isr_changes", (tp,), context="broker")
        yield effects.SetTimer(PROPAGATION_TIMER, BLACKOUT_MS, events.PropagateIsrChanges())


def propagate_isr_changes(ctx: BrokerContext, event: events.PropagateIsrChanges) -> Handler:
    """A sequential znode with the batch notifies the controller.

    Source: ReplicaManager.maybePropagateIsrChanges, KafkaZkClient.propagateIsrChanges (2.4).
    """
    if ctx.isr_changes:
        data = zk.encode_partition_list(tuple(sorted(ctx.isr_changes)))
        path = f"{zk.ISR_CHANGE_NOTIFICATION}/isr_change_"
        yield effects.Transaction((effects.Op("create", path, data, sequential=True),))
        yield effects.UpdateContext("isr_changes", clear=True, context="broker")


def alter_isr_response(ctx: BrokerContext, event: events.AlterIsrResponse) -> Handler:
    """Store the leadership that the response to AlterIsr has for each partition.

    If a partition has an error, the error and the release decide: drop the ISR change, send
    AlterIsr again, or leave the change pending.

    Source: Partition.handleAlterIsrResponse and AlterIsrManager.submit (2.8, 3.1),
    Partition.handleAlterPartitionError (3.9).
    """
    # An error of the whole request does not reach this handler: the request is sent again.
    # INELIGIBLE_REPLICA (3.3 on) drops the change; NOT_CONTROLLER (3.3 on: the controller's context
    # is out of date) sends the request again; other errors leave the change pending until a newer
    # LeaderAndIsr.
    ineligible = [tp for tp, response in event.partitions if response == "INELIGIBLE_REPLICA"]
    if refused := {tp: _refused_replicas(ctx, tp) for tp in ineligible if tp in ctx.hosted}:
        yield effects.UpdateContext("ineligible_replicas", refused, context="broker")
    found = {tp: _after_response(ctx, tp, response) for tp, response in event.partitions}
    if settled := {tp: after for tp, after in found.items() if after}:
        yield effects.UpdateContext("hosted", settled, context="broker")
    for tp, response in event.partitions:
        held = ctx.hosted.get(tp)
        # UNKNOWN_SERVER_ERROR: up to 3.0 the change stays pending; in 3.1.0 to 3.2.0 it is dropped,
        # and the next fetch requests it anew (AlterIsrManager.submit refuses Kafka's second try,
        # since the old request is removed only after its callback); since 3.2.1 the request is sent
        # again.
        is_retried = RETRIED_ERRORS.get(response) in ("always", ctx.rules.failed_alter_isr)
        if is_retried and held and held.pending_isr:
            yield effects.Submit("AlterIsr", {tp: held.leadership._replace(isr=held.pending_isr)})


RETRIED_ERRORS = {"NOT_CONTROLLER": "always", "UNKNOWN_SERVER_ERROR": "is retried"}
"""The errors after which a leader sends AlterIsr again: always, or with this `failed_alter_isr`."""


def _refused_replicas(ctx: BrokerContext, tp: TopicPartition) -> tuple[int, ...]:
    """Return the followers that the controller has refused as ISR members, sorted by broker id.

    They are outside the ISR, and are in `ineligible_replicas` or in the pending ISR, which has just
    been refused.
    """
    held = ctx.hosted[tp]
    return tuple(
        sorted({*ctx.ineligible_replicas.get(tp, ()), *held.pending_isr} - set(held.leadership.isr))
    )


def _after_response(
    ctx: BrokerContext, tp: TopicPartition, response: Any
) -> HostedPartition | None:
    held = ctx.hosted.get(tp)
    if held is None or not held.pending_isr:
        return None
    if isinstance(response, LeaderAndIsr) and response.leader_epoch == held.leadership.leader_epoch:
        return held._replace(leadership=response, pending_isr=())
    gives_up = response == "UNKNOWN_SERVER_ERROR" and ctx.rules.failed_alter_isr == "is dropped"
    return held._replace(pending_isr=()) if gives_up or response == "INELIGIBLE_REPLICA" else None


# ---------------------------------------------------------------- a failed log directory


def log_dir_failure(ctx: BrokerContext, event: events.LogDirFailure) -> Handler:
    """Stop the replicas; a znode below `/log_dir_event_notification` notifies the controller.

    The controller then sends LeaderAndIsr to this broker, to find out which replicas are offline.
    After the next start of the broker the directory has its former contents.

    Source: ReplicaManager.handleLogDirFailure, KafkaZkClient.propagateLogDirEvent (2.8; since 1.0,
    KIP-112).
    """
    yield effects.UpdateContext("offline_partitions", event.partitions, context="broker")
    gone = tuple(tp for tp in event.partitions if tp in ctx.hosted)
    if gone:
        yield effects.UpdateContext("hosted", remove=gone, context="broker")
    path = f"{zk.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_"
    yield effects.Transaction(
        (effects.Op("create", path, zk.encode_log_dir_event(ctx.broker_id), sequential=True),)
    )


# fmt: off
HANDLERS: dict[type[Event], Callable[[BrokerContext, Any], Handler]] = {
    # event                        handler
    events.BrokerStartup:          startup,
    events.LeaderAndIsrRequest:    leader_and_isr,
    events.UpdateMetadataRequest:  update_metadata,
    events.StopReplicaRequest:     stop_replica,
    events.ReplicaCaughtUp:        replica_caught_up,
    events.ReplicaLags:            replica_lags,
    events.AlterIsrResponse:       alter_isr_response,
    events.PropagateIsrChanges:    propagate_isr_changes,
    events.Shutdown:               shut_down,
    events.ControlledShutdownResponse: controlled_shutdown_response,
    events.LogDirFailure:          log_dir_failure,
    events.Produce:                replication.produce,
    events.AppendTimedOut:         replication.append_timed_out,
    events.TopicConfigChange:      replication.topic_config_change,
    events.FollowerFetch:          follower_fetch,
    events.FetchResponse:          replication.fetch_response,
}
# fmt: on


def handle(ctx: BrokerContext, event: Event) -> Handler:
    """Run the handler of an event; new leaders and leader epochs then reach the logs."""
    yield from HANDLERS[type(event)](ctx, event)
    if ctx.keeps_logs:
        yield from replication.apply_leadership_to_logs(ctx)
