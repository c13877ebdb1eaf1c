"""How the controller takes part when a leader's in-sync replicas change.

Source: KafkaController.processAlterIsr and processIsrChangeNotification (2.8).
"""

from __future__ import annotations

from kcontrol.controller.context import ControllerContext
from kcontrol.controller.failover_steps import delete_all, refresh_leadership
from kcontrol.controller.reassignment import maybe_complete_those, require_channels
from kcontrol.controller.requests import update_metadata
from kcontrol.controller.stories import afterwards
from kcontrol.effects import Children, Handler, Learn, Op, Read, Respond, Result, SessionExpired, Writes
from kcontrol.events import AlterIsrReceived, IsrChangeNotification
from kcontrol.model import LeaderAndIsr, TopicPartition
from kcontrol.znodes import ISR_CHANGE_NOTIFICATION, MalformedZnode, decode_partition_list, encode_state, state_path

Answers = dict[TopicPartition, LeaderAndIsr | str]


def alter_isr_received(ctx: ControllerContext, event: AlterIsrReceived) -> Handler:
    """Write the ISRs that a leader asks for over the versions that it names, tell everybody, answer, whatever goes wrong."""
    if ctx.live_broker_epochs.get(event.broker_id) != event.broker_epoch:
        yield Respond(event.correlation_id, {"error": "STALE_BROKER_EPOCH", "partitions": {}})
        return
    try:
        answers: Answers = yield from _alter_isr(ctx, event)
        yield Respond(event.correlation_id, {"error": "NONE", "partitions": answers})
    except Exception:  # Kafka's catch-all: ControllerMoved ends here too, without a look at who rules
        yield Respond(event.correlation_id, {"error": "UNKNOWN_SERVER_ERROR", "partitions": {}})
    else:
        yield from maybe_complete_those(ctx, (tp for tp, answer in answers.items() if isinstance(answer, LeaderAndIsr)))


def _alter_isr(ctx: ControllerContext, event: AlterIsrReceived) -> Handler:
    """Return the answer for each partition."""
    answers: Answers = {}
    settled = _settled_since_3_3 if ctx.rules.isr_of_the_living else _settled
    wanted = {tp: value for tp, value in event.partitions if not settled(ctx, tp, value, answers)}
    if wanted:
        yield from _write(ctx, event.broker_id, wanted, answers)
    yield from update_metadata(ctx, ctx.live_or_shutting_down_broker_ids, [tp for tp, _ in event.partitions])
    return answers


def _settled(ctx: ControllerContext, tp: TopicPartition, value: LeaderAndIsr, answers: Answers) -> bool:
    """Whether the answer is known without a write: unknown, fenced, or already so."""
    cached = ctx.leadership.get(tp)
    if cached is None:
        answers[tp] = "UNKNOWN_TOPIC_OR_PARTITION"
    elif value.leader_epoch < cached.leader_epoch:
        answers[tp] = "FENCED_LEADER_EPOCH"
    elif (value.leader, value.leader_epoch, value.isr) == (cached.leader, cached.leader_epoch, cached.isr):
        answers[tp] = cached
    else:
        return False
    return True


def _settled_since_3_3(ctx: ControllerContext, tp: TopicPartition, value: LeaderAndIsr, answers: Answers) -> bool:
    """The same, also for whoever knows more than this controller, or less, and for an ISR with brokers that do not live.

    Source: KafkaController.tryProcessAlterPartition (3.9).
    """
    cached = ctx.leadership.get(tp)
    if cached is None:
        answers[tp] = "UNKNOWN_TOPIC_OR_PARTITION"
    elif value.zk_version > cached.zk_version or value.leader_epoch > cached.leader_epoch:
        answers[tp] = "NOT_CONTROLLER"
    elif value.leader_epoch < cached.leader_epoch:
        answers[tp] = "FENCED_LEADER_EPOCH"
    elif value._replace(zk_version=-1, controller_epoch=0) == cached._replace(zk_version=-1, controller_epoch=0):
        answers[tp] = cached
    elif value.zk_version < cached.zk_version:
        answers[tp] = "INVALID_UPDATE_VERSION"
    elif not set(value.isr) <= set(ctx.live_broker_ids):
        answers[tp] = "INELIGIBLE_REPLICA"
    else:
        return False
    return True


def _write(ctx: ControllerContext, leader: int, wanted: dict[TopicPartition, LeaderAndIsr], answers: Answers) -> Handler:
    values = {tp: v._replace(leader=leader, controller_epoch=ctx.controller_epoch) for tp, v in wanted.items()}
    transactions = tuple((Op("set", state_path(tp), encode_state(v), v.zk_version),) for tp, v in values.items())
    try:
        results: tuple[Result, ...] = yield Writes(transactions)
    except SessionExpired:  # each write has failed by itself. Source: KafkaZkClient.updateLeaderAndIsr (2.8)
        answers.update(dict.fromkeys(values, "UNKNOWN_SERVER_ERROR"))
        return
    written = {
        tp: value._replace(zk_version=result.versions[0] or 0)
        for (tp, value), result in zip(values.items(), results, strict=True)
        if result.is_ok
    }
    for tp, result in zip(values, results, strict=True):
        answers[tp] = written.get(tp) or ("INVALID_UPDATE_VERSION" if result.code == "BadVersion" else "UNKNOWN_SERVER_ERROR")
    if written:
        yield Learn("leadership", written)


def isr_change_notification(ctx: ControllerContext, event: IsrChangeNotification) -> Handler:
    """Leaders have written ISRs themselves, and left notes of it. Source: KafkaController.processIsrChangeNotification (2.8)."""
    (names,) = yield Children((ISR_CHANGE_NOTIFICATION,), watch=True)
    yield from take_notes(ctx, tuple(f"{ISR_CHANGE_NOTIFICATION}/{name}" for name in names or ()))


def take_notes(ctx: ControllerContext, paths: tuple[str, ...]) -> Handler:
    """Look at what the notes name, tell everybody, and delete the notes, even on an error."""
    if paths:
        yield from afterwards(take_note(ctx, paths), delete_all(paths))


def take_note(ctx: ControllerContext, paths: tuple[str, ...]) -> Handler:
    """Read what these name, remember what the state znodes say of it, and tell everybody."""
    znodes = yield Read(paths)
    named = dict.fromkeys(tp for znode in znodes if znode for tp in _named(znode.data))
    if named:
        yield from refresh_leadership(ctx, named)
        yield from require_channels(ctx)
        yield from update_metadata(ctx, ctx.live_or_shutting_down_broker_ids, named)
        if ctx.rules.notes_complete_moves:
            yield from maybe_complete_those(ctx, named)


def _named(data: bytes) -> tuple[TopicPartition, ...]:
    try:
        return decode_partition_list(data)
    except MalformedZnode:
        return ()
