"""The replica state machine. Read REPLICA_TRANSITIONS first.

Source: ReplicaStateMachine.scala (2.8).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable
from typing import Any

from kcontrol.controller.broker_order import BROKER_ORDERS
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.partition_machine import unclean_allowed
from kcontrol.controller.requests import RequestBatch
from kcontrol.effects import Commit, Committed, Effect, Learn, Read, Refusal, StateChange, Znode
from kcontrol.generations import LISTENERS, Rules
from kcontrol.model import NO_LEADER, LeaderAndIsr, PartitionReplica, ReplicaAssignment, ReplicaState, TopicPartition
from kcontrol.transitions import TransitionTable
from kcontrol.znodes import decode_state, state_path

NEW, ONLINE, OFFLINE, STARTED, SUCCESSFUL, INELIGIBLE, NON_EXISTENT = ReplicaState

NOBODY_LEADS = "nobody leads it"  # a replica comes Online all the same; before 1.1 Kafka does not log that

Steps = Generator[Effect, Any, None]
Replicas = list[PartitionReplica]


# ---------------------------------------------------------------- the actions: each is about the replicas of one broker


def _commit(ctx: ControllerContext, replicas: Replicas, target: ReplicaState) -> Commit:
    return Commit(tuple([StateChange(r, source, target) for r, source in zip(replicas, _sources(ctx, replicas), strict=True)]))


def _sources(ctx: ControllerContext, replicas: Replicas) -> list[ReplicaState]:
    """The states of replicas that are all on one broker."""
    states = ctx.replica_states.by_broker.get(replicas[0].broker_id, {})
    return [states.get(r[0], NON_EXISTENT) for r in replicas]


def mark(ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState) -> Steps:
    """Memory only."""
    yield _commit(ctx, replicas, target)


def introduce(ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState) -> Steps:
    """A new replica of a partition that is led already is told so; the leader itself cannot be new."""
    plan: list[StateChange | Refusal] = []
    known = ctx.leadership if ctx.rules.new_replica_reads == "cache" else (yield from _stored(replicas))
    for replica in replicas:
        tp, source = replica.topic_partition, ctx.replica_state(replica)
        value = known.get(tp)
        if value and value.leader == replica.broker_id:
            plan.append(Refusal(replica, source, target, "it is the leader of the partition already"))
            continue
        if value:
            batch.add_leader_and_isr(ctx, (replica.broker_id,), tp, value, ctx.assignments[tp], is_new=True)
        plan.append(StateChange(replica, source, target))
    yield Commit(tuple(plan))


def _stored(replicas: Replicas) -> Generator[Effect, Any, dict[TopicPartition, LeaderAndIsr]]:
    """Who leads the partitions of these replicas, as the state znodes say."""
    partitions = tuple(r.topic_partition for r in replicas)
    znodes: tuple[Znode | None, ...] = yield Read(tuple(map(state_path, partitions)))
    return {tp: decode_state(z.data, z.stat.version) for tp, z in zip(partitions, znodes, strict=True) if z}


def settle(ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState) -> Steps:
    """A new replica is in use; if the assignment does not name it yet, it is appended."""
    for replica in replicas:
        assignment = ctx.assignments.get(replica.topic_partition, ReplicaAssignment(()))
        if replica.broker_id not in assignment.replicas:
            longer = assignment._replace(replicas=(*assignment.replicas, replica.broker_id))
            yield Learn("assignments", {replica.topic_partition: longer})
    yield _commit(ctx, replicas, target)


def resume(ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState) -> Steps:
    """A replica is online: its broker is told who leads, if anybody does."""
    for replica in replicas:
        tp = replica.topic_partition
        if value := ctx.leadership.get(tp):
            batch.add_leader_and_isr(ctx, (replica.broker_id,), tp, value, ctx.assignments[tp], is_new=False)
    rules = {r: "" if r.topic_partition in ctx.leadership else NOBODY_LEADS for r in replicas}
    yield Commit(tuple(StateChange(r, ctx.replica_state(r), target, rule=rule) for r, rule in rules.items()))


def retire(ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState) -> Steps:
    """A replica is offline: it is stopped, leaves the ISR, and the others are told.

    Source: doHandleStateChanges, OfflineReplica (2.8).
    """
    for replica in replicas:
        batch.add_stop_replica(ctx, (replica.broker_id,), replica.topic_partition, delete=False)
    led = [r for r in replicas if r.topic_partition in ctx.leadership]
    yield from _leave_isr(ctx, batch, led, target)
    unled = [r for r in replicas if r.topic_partition not in ctx.leadership]
    if unled and ctx.rules.unled_replica == "stays":
        told = [r for r in unled if not _is_passed_over(ctx, r)]
        if told:
            yield Commit(tuple(Refusal(r, ctx.replica_state(r), target, "nobody has led its partition yet") for r in told))
        return
    for replica in unled:
        batch.add_update_metadata(ctx, ctx.live_or_shutting_down_broker_ids, (replica.topic_partition,))
    if unled:
        yield _commit(ctx, unled, target)


def delete(ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState) -> Steps:
    """The broker is told to delete the replica."""
    yield _commit(ctx, replicas, target)
    for replica in replicas:
        batch.add_stop_replica(ctx, (replica.broker_id,), replica.topic_partition, delete=True)


def forget(ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState) -> Steps:
    """The replica is gone: the assignment no longer names it."""
    for replica in replicas:
        lists = ctx.assignments.get(replica.topic_partition, ReplicaAssignment(()))
        without = ReplicaAssignment(*(tuple(b for b in ids if b != replica.broker_id) for ids in lists))
        yield Learn("assignments", {replica.topic_partition: without})
    yield _commit(ctx, replicas, target)


def leave(ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState) -> Steps:
    """A replica is offline: it leaves the ISR, if it is known to be there, and the leader is told. Source: 0.8.0."""
    unled = [r for r in replicas if r.topic_partition not in ctx.leadership]
    if unled:
        yield Commit(tuple(Refusal(r, ctx.replica_state(r), target, "nobody has led its partition yet") for r in unled))
    led = [r for r in replicas if r not in unled]
    members = [r for r in led if r.broker_id in ctx.leadership[r.topic_partition].isr]
    yield from _leave_isr(ctx, batch, members, target)
    if others := [r for r in led if r not in members]:
        yield _commit(ctx, others, target)


def discard(ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState) -> Steps:
    """The broker is told to delete the replica, and the assignment no longer names it. Source: NonExistentReplica (0.8.0)."""
    for replica in replicas:
        batch.add_stop_replica(ctx, (replica.broker_id,), replica.topic_partition, delete=True)
    yield from forget(ctx, batch, replicas, target)


# fmt: off
REPLICA_TRANSITIONS = TransitionTable("replica", ReplicaState, "ReplicaStateMachine.scala (2.8)", [
    # source       target        phase     action     what it means
    (NON_EXISTENT, NEW,          "broker", introduce, "assigned; told about the leader if there is one"),
    (NEW,          ONLINE,       "broker", settle,    "in use"),
    (ONLINE,       ONLINE,       "broker", resume,    "told again who leads"),
    (OFFLINE,      ONLINE,       "broker", resume,    "its broker is back"),
    (INELIGIBLE,   ONLINE,       "broker", resume,    "its broker is back before the topic could be deleted"),
    (NEW,          OFFLINE,      "broker", retire,    "its broker died before it was in use"),
    (ONLINE,       OFFLINE,      "broker", retire,    "it is no longer in use: it leaves the ISR"),
    (OFFLINE,      OFFLINE,      "broker", retire,    "gone already; the ISR is looked at again"),
    (INELIGIBLE,   OFFLINE,      "broker", retire,    "its deletion is tried again"),
    (OFFLINE,      STARTED,      "broker", delete,    "its broker is told to delete it"),
    (STARTED,      SUCCESSFUL,   "broker", mark,      "its broker has deleted it"),
    (STARTED,      INELIGIBLE,   "broker", mark,      "its broker could not delete it"),
    (OFFLINE,      INELIGIBLE,   "broker", mark,      "its broker is dead: it cannot be deleted now; illegal before 2.3"),
    (SUCCESSFUL,   NON_EXISTENT, "broker", forget,    "nothing is left of it"),
])
REPLICA_TRANSITIONS_0_8_0 = TransitionTable("replica", ReplicaState, "ReplicaStateMachine.scala (0.8.0)", [
    # source       target        phase     action     what it means
    (NON_EXISTENT, NEW,          "broker", introduce, "assigned; told about the leader if there is one"),
    (NEW,          ONLINE,       "broker", settle,    "in use"),
    (ONLINE,       ONLINE,       "broker", resume,    "told again who leads"),
    (OFFLINE,      ONLINE,       "broker", resume,    "its broker is back"),
    (NEW,          OFFLINE,      "broker", leave,     "its broker died before it was in use"),
    (ONLINE,       OFFLINE,      "broker", leave,     "it is no longer in use: it leaves the ISR"),
    (OFFLINE,      NON_EXISTENT, "broker", discard,   "its broker is told to delete it, and nobody waits"),
])
TABLES = {"0.8.0": REPLICA_TRANSITIONS_0_8_0, "0.8.1": REPLICA_TRANSITIONS}
# fmt: on


# ---------------------------------------------------------------- the machine


def move(ctx: ControllerContext, subjects: Iterable[PartitionReplica], target: ReplicaState, walked: Iterable[int] = ()) -> Steps:
    """Bring every subject to `target`, broker by broker, then tell the brokers in one batch.

    `walked` is the order of brokers in the set that Kafka's caller passes, ascending where it is empty; only releases up to
    1.0 walk that set (broker_order.py). Illegal moves are refused and the rest goes on.
    Source: ZkReplicaStateMachine.handleStateChanges (2.8).
    """
    by_broker: dict[int, Replicas] = {}
    for replica in subjects:
        by_broker.setdefault(replica.broker_id, []).append(replica)
    if not by_broker:
        return
    if ctx.rules.design == LISTENERS and not ctx.machines_started:
        return
    batch = RequestBatch()
    brokers = [broker_id for broker_id in walked if broker_id in by_broker] or sorted(by_broker)
    groups = [by_broker[broker_id] for broker_id in BROKER_ORDERS[ctx.rules.broker_order](brokers)]
    for together in groups if ctx.rules.pipelined else [[r] for replicas in groups for r in replicas]:
        for action, group in _by_action(ctx, together, target).items():
            if action is not None:
                yield from action(ctx, batch, group, target)
            else:
                yield Commit(tuple(Refusal(r, ctx.replica_state(r), target, "no such transition", True) for r in group))
    yield from batch.send(ctx)


def is_legal(rules: Rules, source: ReplicaState, target: ReplicaState) -> bool:
    """Whether the table has the move, and the release has it too."""
    is_known = TABLES[rules.replica_table].find(source, target) is not None
    return is_known and (rules.dead_replica_fails or (source, target) != (OFFLINE, INELIGIBLE))


def _by_action(ctx: ControllerContext, replicas: Replicas, target: ReplicaState) -> dict[Callable[..., Steps] | None, Replicas]:
    actions: dict[ReplicaState, Callable[..., Steps] | None] = {}
    for source in ReplicaState:
        row = TABLES[ctx.rules.replica_table].find(source, target) if is_legal(ctx.rules, source, target) else None
        actions[source] = ctx.replace.get(f"replica.({source}, {target})", row.action) if row else None
    groups: dict[Callable[..., Steps] | None, Replicas] = {}
    for replica, source in zip(replicas, _sources(ctx, replicas), strict=True):
        groups.setdefault(actions[source], []).append(replica)
    return groups


def _leave_isr(ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState) -> Steps:
    """Take the replicas of one broker out of the ISRs, deciding again for those that lost a race, and tell the others.

    Source: removeReplicasFromIsr and doRemoveReplicasFromIsr (2.8).
    """
    todo = replicas
    while todo:
        znodes: tuple[Znode | None, ...] = yield Read(tuple(state_path(r.topic_partition) for r in todo))
        losing = yield from _may_lose_isr(ctx, todo, znodes)
        plan = [_without(ctx, r, target, znode, r.topic in losing) for r, znode in zip(todo, znodes, strict=True)]
        answer: Committed = yield Commit(tuple(p for p in plan if p))
        for change in answer.done:
            replica, value = change.subject, change.value
            assert isinstance(replica, PartitionReplica) and value is not None
            tp = replica.topic_partition
            if ctx.rules.doomed_isr_is_told or not ctx.is_queued_for_deletion(tp.topic):
                others = tuple(b for b in ctx.replicas(tp) if b != replica.broker_id)
                told = (value.leader,) if ctx.rules.told_of_smaller_isr == "leader" else others
                batch.add_leader_and_isr(ctx, told, tp, value, ctx.assignments[tp], is_new=False)
        todo = [r for r in answer.lost if isinstance(r, PartitionReplica)]


def _is_passed_over(ctx: ControllerContext, replica: PartitionReplica) -> bool:
    """Whether nothing is said of a replica that stays what it is because there is no leadership to take it out of."""
    return ctx.rules.unled_doomed_replica != "fails" and ctx.is_queued_for_deletion(replica.topic)


def _may_lose_isr(
    ctx: ControllerContext, replicas: Replicas, znodes: tuple[Znode | None, ...]
) -> Generator[Effect, Any, Collection[str]]:
    """The topics whose last ISR member may go: before 0.8.2 all, then those with unclean elections, since 1.1 none.

    Source: KafkaController.removeReplicaFromIsr (0.8.2), removeReplicasFromIsr (1.1).
    """
    if ctx.rules.last_isr_member != "stays if clean":
        return () if ctx.rules.last_isr_member == "stays" else {r.topic for r in replicas}
    stored = {r: decode_state(z.data, z.stat.version) for r, z in zip(replicas, znodes, strict=True) if z}
    ours = {r: value for r, value in stored.items() if value.controller_epoch <= ctx.controller_epoch}
    last = [r.topic for r, value in ours.items() if value.isr == (r.broker_id,)]
    allowed = (yield from unclean_allowed(ctx, last)) if last else {}
    return frozenset(topic for topic, is_allowed in allowed.items() if is_allowed)


def _without(
    ctx: ControllerContext, replica: PartitionReplica, target: ReplicaState, znode: Znode | None, may_lose_isr: bool
) -> StateChange | Refusal | None:
    """The partition's ISR without this replica; a leader that goes leaves -1 behind, and a last member may have to stay."""
    source = ctx.replica_state(replica)
    if znode is None:
        return None if _is_passed_over(ctx, replica) else Refusal(replica, source, target, "the partition has no state znode")
    stored = decode_state(znode.data, znode.stat.version)
    if stored.controller_epoch > ctx.controller_epoch:
        return Refusal(replica, source, target, f"controller epoch {stored.controller_epoch} has written the state znode")
    value: LeaderAndIsr = stored._replace(controller_epoch=ctx.controller_epoch)
    if replica.broker_id not in stored.isr:
        return StateChange(replica, source, target, value, None, "not in the ISR")
    leader = NO_LEADER if stored.leader == replica.broker_id else stored.leader
    stays = len(stored.isr) == 1 and not may_lose_isr
    isr = stored.isr if stays else tuple(b for b in stored.isr if b != replica.broker_id)
    return StateChange(replica, source, target, value.decided(leader, isr), "set", "leaves the ISR")
