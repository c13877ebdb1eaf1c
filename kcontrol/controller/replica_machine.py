"""The replica state machine: its table, the actions of the rows, and the machine that runs them.

Rules of the file:

* Every transition of a replica goes through REPLICA_TRANSITIONS; only a failover sets first states
  (`failover_steps.initialize_replica_states`).
* An action gets replicas of one broker that share a row. It is a generator: it adds entries to the
  batch, and yields one Commit for its replicas. Kafka groups replicas by broker too.
* A pair of states without a row is refused with one record in the journal; the other replicas
  continue.
* The batch is sent once, after the last action. So a broker receives one request of each kind for
  all its replicas, and no LeaderAndIsr names a change that ZooKeeper has refused.

Theory. A replica is one broker's copy of a partition. Its state is in the controller's memory
alone: no znode stores the state. New: the replica is assigned, and its broker has been sent
LeaderAndIsr if the partition has a leader. Online: the replica is in use. Offline: its broker is
down or has stopped it. ReplicaDeletionStarted, Successful and Ineligible: the topic is deleted, or
a reassignment removes the replica. These three states are entered from Offline or from each other
only, so a replica always leaves the ISR before its log is deleted.

Why the table looks as it does. The rows to Offline are the only rows that write to ZooKeeper: the
replica leaves the ISR in the state znode, and where it was the leader the znode names -1. Offline
to Offline has a row because the ISR may contain the replica again: Kafka reads the state znode each
time. Online to Online has a row because a broker may need LeaderAndIsr again, for example after a
log directory has failed. Ineligible leads to Offline, from where the deletion starts again, and to
Online, because the broker of a waiting replica may come back. Rows with `until="0.8.1"` are those
of 0.8.0, which deletes no topics.

What the table does not say:

* The leader after -1: only the partition machine elects.
* That the last ISR member stays in the ISR (since 1.1 always): `_isr_without`.
* That a leader is never a new replica: `start_new_replica` refuses it.
* In which order brokers are visited. The order shows in the state znode, since each replica leaves
  the ISR by a write of its own: `replica_machine_order.py`.
* When a deletion starts or is tried again: `topic_deletion.py`. A broker's response moves Started
  to Successful or Ineligible.
* What differs before 1.1: the decisions in `Design.machines`.

Read next: `request_batch.py` (what the actions add), `topic_deletion.py`, `reassignment.py`.

Source: ReplicaStateMachine.scala (2.8), with validPreviousStates of ReplicaState at its end.
"""

from collections.abc import Callable, Generator, Iterable
from typing import Any

from kcontrol.controller.context import ControllerContext
from kcontrol.controller.replica_machine_order import champ_order
from kcontrol.controller.request_batch import RequestBatch
from kcontrol.core import effects
from kcontrol.core.model import (
    NO_LEADER,
    LeaderAndIsr,
    PartitionReplica,
    ReplicaAssignment,
    ReplicaState,
)
from kcontrol.core.transitions import Transition, TransitionTable
from kcontrol.core.znodes import decode_state, state_path

NEW, ONLINE, OFFLINE, STARTED, SUCCESSFUL, INELIGIBLE, NON_EXISTENT = ReplicaState

# The rule of a replica that comes Online without leadership. Before 1.1 Kafka does not log it.
NO_LEADERSHIP = "it has no leadership"

Steps = Generator[effects.Effect, Any, None]
Replicas = list[PartitionReplica]


# ---------------------------------------------------------------- the actions


def _commit(ctx: ControllerContext, replicas: Replicas, target: ReplicaState) -> effects.Commit:
    pairs = zip(replicas, _sources(ctx, replicas), strict=True)
    return effects.Commit(tuple([effects.StateChange(r, source, target) for r, source in pairs]))


def refuse(
    ctx: ControllerContext, replicas: Replicas, target: ReplicaState, reason: str, *, illegal: bool
) -> effects.Commit:
    """Return the Commit that records why these replicas did not move to the state `target`.

    `reason` is for the journal; `illegal` says that the table of legal replica transitions has no
    row for the transition.
    """
    return effects.Commit(
        tuple(
            effects.FailedStateChange(r, ctx.replica_state(r), target, reason, illegal)
            for r in replicas
        )
    )


def _sources(ctx: ControllerContext, replicas: Replicas) -> list[ReplicaState]:
    """Return the state of each of `replicas`, in their order; all must be on one broker."""
    states = ctx.replica_states.by_broker.get(replicas[0].broker_id, {})
    return [states.get(r[0], NON_EXISTENT) for r in replicas]


def memory_only(
    ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState
) -> Steps:
    """Move the replicas to `target` in memory; add nothing to `batch`."""
    yield _commit(ctx, replicas, target)


def start_new_replica(
    ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState
) -> Steps:
    """Move replicas to `target` (New); add LeaderAndIsr for their broker to `batch`.

    Partitions without leadership get no LeaderAndIsr. The transition of a replica that leads its
    partition is refused.

    Source: ZkReplicaStateMachine.doHandleStateChanges, NewReplica (2.8).
    """
    plan: list[effects.StateChange | effects.FailedStateChange] = []
    read = ctx.design.machines.leadership_for_new
    known = (yield from read(ctx, replicas)) if read else ctx.leadership
    for replica in replicas:
        tp, source = replica.topic_partition, ctx.replica_state(replica)
        value = known.get(tp)
        if value and value.leader == replica.broker_id:
            reason = "it is the leader of the partition already"
            plan.append(effects.FailedStateChange(replica, source, target, reason))
            continue
        if value:
            batch.add_leader_and_isr(ctx, (replica.broker_id,), tp, value, is_new=True)
        plan.append(effects.StateChange(replica, source, target))
    yield effects.Commit(tuple(plan))


def add_to_assignment(
    ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState
) -> Steps:
    """Move new replicas to `target` (Online); append each to its assignment if it is missing there.

    The assignment changes in the context alone; nothing is added to `batch`.

    Source: ZkReplicaStateMachine.doHandleStateChanges, OnlineReplica from NewReplica (2.8).
    """
    for replica in replicas:
        assignment = ctx.assignments.get(replica.topic_partition, ReplicaAssignment(()))
        if replica.broker_id not in assignment.replicas:
            longer = assignment._replace(replicas=(*assignment.replicas, replica.broker_id))
            yield effects.UpdateContext("assignments", {replica.topic_partition: longer})
    yield _commit(ctx, replicas, target)


def send_leader_and_isr(
    ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState
) -> Steps:
    """Move replicas to `target` (Online); add LeaderAndIsr for their broker to `batch`.

    Partitions without leadership get no LeaderAndIsr.

    Source: ZkReplicaStateMachine.doHandleStateChanges, OnlineReplica (2.8).
    """
    plan: list[effects.StateChange] = []
    for replica in replicas:
        tp, source = replica.topic_partition, ctx.replica_state(replica)
        value = ctx.leadership.get(tp)
        if value:
            batch.add_leader_and_isr(ctx, (replica.broker_id,), tp, value)
        rule = "" if value else NO_LEADERSHIP
        plan.append(effects.StateChange(replica, source, target, rule=rule))
    yield effects.Commit(tuple(plan))


def stop_and_leave_isr(
    ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState
) -> Steps:
    """Move replicas to `target` (Offline), and take them out of the ISRs in their state znodes.

    Add StopReplica for their broker, and LeaderAndIsr for the other replicas, to `batch`.

    Source: ZkReplicaStateMachine.doHandleStateChanges, OfflineReplica (2.8).
    """
    for replica in replicas:
        batch.add_stop_replica(ctx, (replica.broker_id,), replica.topic_partition, delete=False)
    led = [r for r in replicas if r.topic_partition in ctx.leadership]
    yield from _remove_replicas_from_isr(ctx, batch, led, target)
    without = [r for r in replicas if r.topic_partition not in ctx.leadership]
    if without:
        yield from ctx.design.machines.move_without_leadership(ctx, batch, without, target)


def move_without_leadership(
    ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState
) -> Steps:
    """Move replicas of partitions without leadership to `target`.

    Add UpdateMetadata of these partitions for all brokers to `batch`.

    Source: ZkReplicaStateMachine.doHandleStateChanges, replicasWithoutLeadershipInfo (2.8).
    """
    for replica in replicas:
        batch.add_update_metadata(
            ctx, ctx.live_or_shutting_down_broker_ids, (replica.topic_partition,)
        )
    yield _commit(ctx, replicas, target)


def stop_and_delete(
    ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState
) -> Steps:
    """Move replicas to `target` (ReplicaDeletionStarted).

    Add to `batch`, for each replica, a StopReplica to its broker that deletes the replica.

    Source: ZkReplicaStateMachine.doHandleStateChanges, ReplicaDeletionStarted (2.8).
    """
    yield _commit(ctx, replicas, target)
    for replica in replicas:
        batch.add_stop_replica(ctx, (replica.broker_id,), replica.topic_partition, delete=True)


def unassign(
    ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState
) -> Steps:
    """Move deleted replicas to `target` (NonExistentReplica), and remove them from the assignments.

    The assignments change in the context alone; nothing is added to `batch`.

    Source: ZkReplicaStateMachine.doHandleStateChanges, NonExistentReplica (2.8).
    """
    for replica in replicas:
        lists = ctx.assignments.get(replica.topic_partition, ReplicaAssignment(()))
        left = (tuple(b for b in ids if b != replica.broker_id) for ids in lists)
        without = {replica.topic_partition: ReplicaAssignment(*left)}
        yield effects.UpdateContext("assignments", without)
    yield _commit(ctx, replicas, target)


def leave_isr(
    ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState
) -> Steps:
    """Move replicas to `target` (Offline), and take them out of the ISRs in their state znodes.

    Add LeaderAndIsr for the leaders to `batch`. The transition of a replica is refused if the
    replica's partition has never had a leader.

    Source: ReplicaStateMachine.handleStateChange, OfflineReplica (0.8.0).
    """
    unled = [r for r in replicas if r.topic_partition not in ctx.leadership]
    if unled:
        yield refuse(ctx, unled, target, "its partition has never had a leader", illegal=False)
    led = [r for r in replicas if r not in unled]
    members = [r for r in led if r.broker_id in ctx.leadership[r.topic_partition].isr]
    yield from _remove_replicas_from_isr(ctx, batch, members, target)
    if others := [r for r in led if r not in members]:
        yield _commit(ctx, others, target)


def delete_and_unassign(
    ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState
) -> Steps:
    """Move replicas to `target` (NonExistentReplica), and remove them from the assignments.

    Add a StopReplica that deletes the replicas, for their broker, to `batch`.

    Source: ReplicaStateMachine.handleStateChange, NonExistentReplica (0.8.0).
    """
    for replica in replicas:
        batch.add_stop_replica(ctx, (replica.broker_id,), replica.topic_partition, delete=True)
    yield from unassign(ctx, batch, replicas, target)


Row = Transition

# fmt: off
REPLICA_TRANSITIONS = TransitionTable("replica", ReplicaState, "ReplicaStateMachine.scala (2.8)", [
    #   source        target        action     what it means
    Row(NON_EXISTENT, NEW,          start_new_replica, "it is assigned to a broker"),
    Row(NEW,          ONLINE,       add_to_assignment, "it is in use"),
    Row(ONLINE,       ONLINE,       send_leader_and_isr, "its broker receives LeaderAndIsr again"),
    Row(OFFLINE,      ONLINE,       send_leader_and_isr, "its broker has started"),
    Row(INELIGIBLE,   ONLINE,       send_leader_and_isr,
        "its broker has started before its topic was deleted", since="0.8.1"),
    Row(NEW,          OFFLINE,      leave_isr,
        "its broker died before it was in use", until="0.8.1"),
    Row(ONLINE,       OFFLINE,      leave_isr, "it leaves the ISR", until="0.8.1"),
    Row(NEW,          OFFLINE,      stop_and_leave_isr,
        "its broker died before it was in use", since="0.8.1"),
    Row(ONLINE,       OFFLINE,      stop_and_leave_isr, "it leaves the ISR", since="0.8.1"),
    Row(OFFLINE,      OFFLINE,      stop_and_leave_isr, "the ISR is read again", since="0.8.1"),
    Row(INELIGIBLE,   OFFLINE,      stop_and_leave_isr,
        "its deletion is tried again", since="0.8.1"),
    Row(OFFLINE,      STARTED,      stop_and_delete,
        "its broker receives a StopReplica that deletes", since="0.8.1"),
    Row(STARTED,      SUCCESSFUL,   memory_only, "its broker has deleted it", since="0.8.1"),
    Row(STARTED,      INELIGIBLE,   memory_only, "its broker could not delete it", since="0.8.1"),
    Row(OFFLINE,      INELIGIBLE,   memory_only,
        "its broker is dead, so it cannot be deleted now", since="2.3.0"),
    Row(SUCCESSFUL,   NON_EXISTENT, unassign, "it is no longer assigned", since="0.8.1"),
    Row(OFFLINE,      NON_EXISTENT, delete_and_unassign,
        "its broker receives a StopReplica that deletes", until="0.8.1"),
])
# fmt: on


# ---------------------------------------------------------------- the machine


def handle_state_changes(
    ctx: ControllerContext,
    replicas: Iterable[PartitionReplica],
    target: ReplicaState,
    broker_order: Iterable[int] = (),
    set_size: int = 0,
) -> Steps:
    """Move replicas to `target` in Kafka's order; send one batch of requests.

    Up to 2.5 the order follows from a Scala Set that contains `replicas`: `broker_order` has the
    broker ids of this Set (empty: ascending), `set_size` its size (0: that of `replicas`).

    Source: ZkReplicaStateMachine.handleStateChanges (2.8).
    """
    by_broker: dict[int, Replicas] = {}
    for replica in replicas:
        by_broker.setdefault(replica.broker_id, []).append(replica)
    if not by_broker:
        return
    if ctx.design.starts_machines and not ctx.machines_started:
        return
    batch = RequestBatch()
    # Up to 1.0 Kafka's caller may pass a part of a larger Set, whose size determines the order of
    # the replicas; 0 means the whole Set.
    divide = ctx.design.in_groups
    groups = divide(by_broker, broker_order, set_size) if divide else champ_order(by_broker)
    for together in groups if ctx.rules.pipelined else ([r] for group in groups for r in group):
        for action, group in _by_action(ctx, together, target).items():
            if action is not None:
                yield from action(ctx, batch, group, target)
            else:
                # The other replicas continue.
                yield refuse(ctx, group, target, "no such transition", illegal=True)
    yield from batch.send_requests_to_brokers(ctx)


def _by_action(
    ctx: ControllerContext, replicas: Replicas, target: ReplicaState
) -> dict[Callable[..., Steps] | None, Replicas]:
    """Return the replicas of one broker, grouped by the action that moves each of them to `target`.

    The key None has the replicas whose transition to `target` is illegal: REPLICA_TRANSITIONS has
    no such row.
    """
    table = REPLICA_TRANSITIONS.for_(ctx.rules.release, ctx.changes)
    rows = {source: table.find(source, target) for source in ReplicaState}
    groups: dict[Callable[..., Steps] | None, Replicas] = {}
    for replica, source in zip(replicas, _sources(ctx, replicas), strict=True):
        groups.setdefault((row := rows[source]) and row.action, []).append(replica)
    return groups


def _remove_replicas_from_isr(
    ctx: ControllerContext, batch: RequestBatch, replicas: Replicas, target: ReplicaState
) -> Steps:
    """Move one broker's replicas to `target`, and remove them from the ISRs in the state znodes.

    Add LeaderAndIsr for the other replicas to `batch`, unless the topic is being deleted.

    Source: ZkReplicaStateMachine.removeReplicasFromIsr and doRemoveReplicasFromIsr (2.8).
    """
    todo = replicas
    while todo:
        znodes: tuple[effects.Znode | None, ...] = yield effects.Read(
            tuple(state_path(r.topic_partition) for r in todo)
        )
        ask = ctx.design.machines.topics_allowing_empty_isr
        allowing = (yield from ask(ctx, todo, znodes)) if ask else ()
        read = zip(todo, znodes, strict=True)
        plan = [_isr_without(ctx, r, target, znode, r.topic in allowing) for r, znode in read]
        answer: effects.CommitResult = yield effects.Commit(tuple(p for p in plan if p))
        for change in answer.finished:
            replica, value = change.subject, change.leadership
            assert isinstance(replica, PartitionReplica) and value is not None
            tp = replica.topic_partition
            receivers = ctx.design.machines.receivers_of_smaller_isr(ctx, replica, value)
            if receivers is not None:
                batch.add_leader_and_isr(ctx, receivers, tp, value)
        # After a version conflict only the partitions in conflict are read and decided again,
        # without limit.
        todo = [r for r in answer.to_retry if isinstance(r, PartitionReplica)]


def receivers_of_smaller_isr(
    ctx: ControllerContext, replica: PartitionReplica, value: LeaderAndIsr
) -> tuple[int, ...] | None:
    """Return the brokers that receive LeaderAndIsr `value` after this replica has left the ISR.

    They are the other assigned replicas. Return None, for no request, if the replica's topic is
    being deleted.

    Source: ZkReplicaStateMachine.doHandleStateChanges, OfflineReplica (2.8).
    """
    if ctx.is_queued_for_deletion(replica.topic):
        return None
    return tuple(b for b in ctx.replicas(replica.topic_partition) if b != replica.broker_id)


def ignores_missing_state_znode(ctx: ControllerContext, replica: PartitionReplica) -> bool:
    """Return whether the replica's topic is being deleted.

    The caller has found no state znode of the replica's partition. If the result is True, the
    replica keeps its state without an error.

    Source: ZkReplicaStateMachine.doRemoveReplicasFromIsr (2.8).
    """
    return ctx.is_queued_for_deletion(replica.topic)


def _isr_without(
    ctx: ControllerContext,
    replica: PartitionReplica,
    target: ReplicaState,
    znode: effects.Znode | None,
    may_be_empty: bool,
) -> effects.StateChange | effects.FailedStateChange | None:
    """Return a replica's transition to `target`, in which the replica leaves the ISR in `znode`.

    The last ISR member stays unless the ISR `may_be_empty`. If the state znode is missing (None),
    return a failed transition or, while the topic is being deleted, None.

    Source: ZkReplicaStateMachine.doRemoveReplicasFromIsr (2.8).
    """
    source = ctx.replica_state(replica)
    if znode is None:
        # Without a state znode the transition fails, but since 0.9 there is no transition for a
        # replica of a topic that is being deleted.
        if ctx.design.machines.ignores_missing_state_znode(ctx, replica):
            return None
        reason = "the partition has no state znode"
        return effects.FailedStateChange(replica, source, target, reason)
    stored = decode_state(znode.data, znode.stat.version)
    if stored.controller_epoch > ctx.controller_epoch:
        reason = f"controller epoch {stored.controller_epoch} has written the state znode"
        return effects.FailedStateChange(replica, source, target, reason)
    if replica.broker_id not in stored.isr:
        value: LeaderAndIsr = stored._replace(controller_epoch=ctx.controller_epoch)
        return effects.StateChange(replica, source, target, value, None, "not in the ISR")
    leader = NO_LEADER if stored.leader == replica.broker_id else stored.leader
    stays = len(stored.isr) == 1 and not may_be_empty
    isr = stored.isr if stays else tuple(b for b in stored.isr if b != replica.broker_id)
    value = stored.new_leader_and_isr(leader, isr, ctx.controller_epoch)
    return effects.StateChange(replica, source, target, value, "set", "leaves the ISR")
