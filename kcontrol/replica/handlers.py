"""How a broker answers controllers, and when a leader asks for another ISR: one table, five short stories.

Source: ReplicaManager.scala, KafkaApis.scala, Partition.scala and AlterIsrManager.scala (2.8).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kcontrol import events
from kcontrol.effects import Adopt, Ask, Handler, Learn, Op, Respond, Result, Transaction
from kcontrol.model import EPOCH_DURING_DELETE, LEADER_DURING_DELETE, NO_EPOCH, LeaderAndIsr, TopicPartition
from kcontrol.replica import data
from kcontrol.replica.context import BrokerContext, HostedPartition
from kcontrol.replica.isr_announcements_2_6 import propagate_isr_changes, record_isr_change
from kcontrol.replica.log_dirs import log_dir_failure
from kcontrol.replica.shutdown import controlled_shutdown_response, shut_down
from kcontrol.replica.startup import startup
from kcontrol.znodes import encode_state, state_path


def _refused(ctx: BrokerContext, event: Any) -> str:
    """Why a request as a whole is refused, or NONE. Source: KafkaApis.isBrokerEpochStale, ReplicaManager (2.8)."""
    if 0 <= event.broker_epoch < ctx.broker_epoch:
        return "STALE_BROKER_EPOCH"
    return "STALE_CONTROLLER_EPOCH" if event.controller_epoch < ctx.controller_epoch else "NONE"


def _obey(ctx: BrokerContext, event: Any) -> Handler:
    """Remember who has spoken with which epoch."""
    if ctx.controller_id != event.controller_id:
        yield Learn("controller_id", event.controller_id, context="broker")
    if ctx.controller_epoch != event.controller_epoch:
        yield Learn("controller_epoch", event.controller_epoch, context="broker")
        yield from _forget_refusals(ctx)


def _forget_refusals(ctx: BrokerContext) -> Handler:
    """What was refused may be granted now."""
    if ctx.refused:
        yield Learn("refused", clear=True, context="broker")


def leader_and_isr(ctx: BrokerContext, event: events.LeaderAndIsrRequest) -> Handler:
    """Become leader or follower of the partitions whose leader epoch is new; who is stopping fetches none of them.

    Source: ReplicaManager.makeFollowers (2.8; since 0.8.1).
    """
    error = _refused(ctx, event)
    errors: dict[TopicPartition, str] = {}
    if error == "NONE":
        yield from _obey(ctx, event)
        errors = {tp: why for tp, told in event.partitions.items() if (why := _rejects(ctx, tp, told)) is not None}
        if len(errors) < len(event.partitions):
            taken = tuple(tp for tp in event.partitions if tp not in errors)
            yield Adopt("hosted", taken if errors else None)
            if ctx.shutdown_attempts and not ctx.rules.fetches_to_the_end:
                yield Learn("unfetched", taken, context="broker")
            yield from _forget_refusals(ctx)
    yield Respond(event.correlation_id, {"error": error, "errors": {tp: why for tp, why in errors.items() if why}})


def _rejects(ctx: BrokerContext, tp: TopicPartition, told: Any) -> str | None:
    """The error with which a partition is not taken over, empty where there is none; None if it is taken over."""
    if tp in ctx.offline_partitions:
        return "KAFKA_STORAGE_ERROR"
    held = ctx.hosted.get(tp)
    if held is not None and told.leader_epoch <= held.value.leader_epoch:
        return ctx.rules.old_leader_epoch
    return None if ctx.broker_id in told.replicas or ctx.rules.strangers_obey else "UNKNOWN_TOPIC_OR_PARTITION"


def update_metadata(ctx: BrokerContext, event: events.UpdateMetadataRequest) -> Handler:
    """Replace what is known of who lives, and of the partitions that are named."""
    error = _refused(ctx, event)
    if error == "NONE":
        yield from _obey(ctx, event)
        if ctx.live_brokers != set(event.live_brokers):
            yield Learn("live_brokers", event.live_brokers, clear=True, context="broker")
            yield from _forget_refusals(ctx)
        gone = tuple(tp for tp, told in event.partitions.items() if told.leader == LEADER_DURING_DELETE)
        if gone:
            yield Learn("metadata", remove=gone, context="broker")
        if len(gone) < len(event.partitions):
            yield Adopt("metadata", tuple(tp for tp in event.partitions if tp not in gone) if gone else None)
    yield Respond(event.correlation_id, {"error": error, "errors": {}})


def stop_replica(ctx: BrokerContext, event: events.StopReplicaRequest) -> Handler:
    """Stop serving replicas, and delete the logs of those that are to be deleted; what is not hosted is stopped already."""
    error = _refused(ctx, event)
    errors: dict[TopicPartition, str] = {}
    if error == "NONE":
        yield from _obey(ctx, event)
        errors = {tp: why for tp, told in event.partitions.items() if (why := _keeps(ctx, tp, told.leader_epoch))}
        stopped = tuple(tp for tp in event.partitions if tp not in errors and tp in ctx.hosted)
        if stopped:
            yield Learn("hosted", remove=stopped, context="broker")
        for tp, told in event.partitions.items():
            if told.delete and tp in ctx.logs and tp not in errors and ctx.rules.deletes_logs:
                yield from data.delete(ctx, tp)
    yield Respond(event.correlation_id, {"error": error, "errors": errors})


def _keeps(ctx: BrokerContext, tp: TopicPartition, leader_epoch: int) -> str | None:
    if tp in ctx.offline_partitions:
        return "KAFKA_STORAGE_ERROR"
    held = ctx.hosted.get(tp)
    if held is None or not ctx.rules.stop_replica_by_partition:
        return None
    may_stop = leader_epoch in (EPOCH_DURING_DELETE, NO_EPOCH) or leader_epoch > held.value.leader_epoch
    return None if may_stop else "FENCED_LEADER_EPOCH"


# ---------------------------------------------------------------- the leader's side of the ISR


def replica_caught_up(ctx: BrokerContext, event: events.ReplicaCaughtUp) -> Handler:
    """A leader asks for the larger ISR, unless it waits for an answer already."""
    held = ctx.hosted.get(event.partition)
    if (
        held
        and ctx.leads(event.partition)
        and event.replica_id not in held.value.isr
        and ctx.takes_in(event.partition, event.replica_id)
    ):
        yield from _ask_for(ctx, event.partition, held, (*held.value.isr, event.replica_id))


def follower_fetch(ctx: BrokerContext, event: events.FollowerFetch) -> Handler:
    """A leader that keeps a log notes how far its follower is, which may now be far enough for the ISR."""
    yield from data.note_fetch(ctx, event)
    if ctx.leads(event.partition) and data.may_join(ctx, event.partition, event.replica_id, event.offset):
        yield from replica_caught_up(ctx, events.ReplicaCaughtUp(event.partition, event.replica_id))


def replica_lags(ctx: BrokerContext, event: events.ReplicaLags) -> Handler:
    """A leader asks for the smaller ISR; it never leaves itself out."""
    held = ctx.hosted.get(event.partition)
    if held and ctx.leads(event.partition) and event.replica_id in held.value.isr and event.replica_id != ctx.broker_id:
        yield from _ask_for(ctx, event.partition, held, tuple(b for b in held.value.isr if b != event.replica_id))


def _ask_for(ctx: BrokerContext, tp: TopicPartition, held: HostedPartition, isr: tuple[int, ...]) -> Handler:
    if held.pending_isr:
        return
    yield Learn("hosted", {tp: held._replace(pending_isr=isr)}, context="broker")
    if ctx.rules.alter_isr:
        yield Ask("AlterIsr", {tp: held.value._replace(isr=isr)})
    else:
        yield from _write_isr(ctx, tp, held.value._replace(isr=isr))


def _write_isr(ctx: BrokerContext, tp: TopicPartition, value: LeaderAndIsr) -> Handler:
    """Write the ISR over the version last seen; a lost race leaves the old one standing until a newer LeaderAndIsr.

    Kafka tries again with every fetch, over the same version, and fails again. Source: Partition.updateIsr (0.8.1).
    """
    result: Result = yield Transaction((Op("set", state_path(tp), encode_state(value), value.zk_version),))
    held = ctx.hosted.get(tp)
    if result.is_ok and held is not None and held.value.leader_epoch == value.leader_epoch:
        written = value._replace(zk_version=result.versions[0] or 0)
        yield Learn("hosted", {tp: held._replace(value=written, pending_isr=())}, context="broker")
    if result.is_ok:
        yield from record_isr_change(ctx, tp)


def alter_isr_response(ctx: BrokerContext, event: events.AlterIsrResponse) -> Handler:
    """Take over what the controller has written; after a refusal the old ISR stands until a newer LeaderAndIsr.

    After UNKNOWN_SERVER_ERROR the leader asks again. Up to 3.2.0 `submit` refuses the new question, because the old question is
    removed only after its callback: up to 3.0 the wish stays pending, from 3.1.0 on the leader gives the wish up, and the next
    fetch renews it. Since 3.3 a leader asks again after NOT_CONTROLLER, and gives the wish up after INELIGIBLE_REPLICA.
    Source: Partition.handleAlterIsrResponse and AlterIsrManager.submit (2.8, 3.1), Partition.handleAlterPartitionError (3.9).
    """
    refused = {
        tp: _refused_with(ctx, tp) for tp, answer in event.partitions if answer == "INELIGIBLE_REPLICA" and tp in ctx.hosted
    }
    if refused:
        yield Learn("refused", refused, context="broker")
    settled = {tp: after for tp, answer in event.partitions if (after := _settle(ctx, tp, answer))}
    if settled:
        yield Learn("hosted", settled, context="broker")
    for tp, answer in event.partitions:
        held = ctx.hosted.get(tp)
        if ASKS_AGAIN.get(answer) in ("always", ctx.rules.failed_alter_isr) and held and held.pending_isr:
            yield Ask("AlterIsr", {tp: held.value._replace(isr=held.pending_isr)})


ASKS_AGAIN = {"NOT_CONTROLLER": "always", "UNKNOWN_SERVER_ERROR": "is asked again"}
"""The answers after which a leader asks again: always, or where the rule `failed_alter_isr` says so."""


def _refused_with(ctx: BrokerContext, tp: TopicPartition) -> tuple[int, ...]:
    """The followers of a partition that have been refused, with those of the wish that is refused now."""
    held = ctx.hosted[tp]
    return tuple(sorted({*ctx.refused.get(tp, ()), *held.pending_isr} - set(held.value.isr)))


def _settle(ctx: BrokerContext, tp: TopicPartition, answer: Any) -> HostedPartition | None:
    held = ctx.hosted.get(tp)
    if held is None or not held.pending_isr:
        return None
    if isinstance(answer, LeaderAndIsr) and answer.leader_epoch == held.value.leader_epoch:
        return held._replace(value=answer, pending_isr=())
    gives_up = answer == "UNKNOWN_SERVER_ERROR" and ctx.rules.failed_alter_isr == "is given up"
    return held._replace(pending_isr=()) if gives_up or answer == "INELIGIBLE_REPLICA" else None


# fmt: off
HANDLERS: dict[type[events.Event], Callable[[BrokerContext, Any], Handler]] = {
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
    events.Produce:                data.produce,
    events.TopicConfigChange:      data.topic_config_change,
    events.FollowerFetch:          follower_fetch,
    events.FetchResponse:          data.fetch_response,
}
# fmt: on


def handle(ctx: BrokerContext, event: events.Event) -> Handler:
    """The story of one event on a broker; where it keeps logs, they follow."""
    yield from HANDLERS[type(event)](ctx, event)
    if ctx.keeps_logs:
        yield from data.keep_up(ctx)
