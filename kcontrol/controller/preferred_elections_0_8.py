"""Preferred elections where listeners share one lock: what is asked for through the znode, or by the rebalance.

Source: PreferredReplicaElectionListener, KafkaController.initializePreferredReplicaElection, onPreferredReplicaElection,
removePartitionsFromPreferredReplicaElection and checkAndTriggerPartitionRebalance (0.8.1.1, 0.8.2.2); KafkaScheduler.scala.
"""

from __future__ import annotations

from collections.abc import Collection

from kcontrol.controller import partition_machine
from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.elections_on_request import arm_rebalance, misplaced_by_broker, start_rebalancing
from kcontrol.controller.reassignment import IllegalStateException
from kcontrol.effects import Cancel, Exists, Handler, Learn, Op, Read, Release, Transaction
from kcontrol.events import AutoPreferredReplicaLeaderElection, ReplicaLeaderElection
from kcontrol.model import PartitionState, TopicPartition
from kcontrol.znodes import PREFERRED_REPLICA_ELECTION, decode_partition_list


def learn_pending_elections(ctx: ControllerContext) -> Handler:
    """At failover, before the machines start: what is asked for and not led so already.

    Raises KeyError for a partition that nobody has ever led: the failover fails, at every broker that tries.
    """
    (znode,) = yield Read((PREFERRED_REPLICA_ELECTION,), watch=True)
    named = decode_partition_list(znode.data) if znode else ()
    wanted = [tp for tp in named if (replicas := ctx.replicas(tp)) and ctx.leadership[tp].leader != replicas[0]]
    if wanted:
        yield Learn("preferred_elections", wanted)


def elect_pending(ctx: ControllerContext) -> Handler:
    """Elect those, and delete the request, whether there was one or not."""
    yield from on_preferred_replica_election(ctx, tuple(sorted(ctx.preferred_elections)), delete=True)


def elect_all_pending(ctx: ControllerContext) -> Handler:
    """Both at once, where the request is looked at after the machines have started; so did 0.8.0.

    Raises KeyError for a partition that is not there.
    """
    (znode,) = yield Read((PREFERRED_REPLICA_ELECTION,), watch=True)
    named = decode_partition_list(znode.data) if znode else ()
    wanted = [tp for tp in named if ctx.leadership[tp].leader != ctx.assignments[tp].replicas[0]]
    pending = tuple(sorted({*ctx.preferred_elections, *wanted}))
    yield from on_preferred_replica_election(ctx, pending, delete=True)


def replica_leader_election(ctx: ControllerContext, event: ReplicaLeaderElection) -> Handler:
    """Elect what the znode names, but for what is under way already, even on a broker that has resigned and can only delete.

    What is of a topic that is being deleted is left out; in 0.8.1 nothing happens at all then, and the request stays.

    Raises MalformedZnode for what is no list of partitions; the znode stays.
    """
    yield Exists((PREFERRED_REPLICA_ELECTION,), watch=True)
    (znode,) = yield Read((PREFERRED_REPLICA_ELECTION,), watch=True)
    if znode is None:
        return
    asked = tuple(tp for tp in decode_partition_list(znode.data) if tp not in ctx.preferred_elections)
    staying = tuple(tp for tp in asked if not ctx.is_queued_for_deletion(tp.topic))
    if staying == asked or ctx.rules.doomed_election == "left out":
        yield from on_preferred_replica_election(ctx, staying, delete=True)


def on_preferred_replica_election(ctx: ControllerContext, partitions: Collection[TopicPartition], *, delete: bool) -> Handler:
    """Mark, elect, look at each, delete the request if there was one, unmark. Meanwhile the topics are not deleted.

    Raises KeyError for a partition without leadership or replicas: then the request and the marks stay.
    """
    if partitions:
        yield Learn("preferred_elections", partitions)
        yield from deletion.halt(ctx, {tp.topic for tp in partitions})
    yield from partition_machine.move(ctx, partitions, PartitionState.ONLINE, "preferred")
    for tp in partitions:
        _ = ctx.leadership[tp], ctx.assignments[tp]
    if delete:
        yield Transaction((Op("delete", PREFERRED_REPLICA_ELECTION),))
    if partitions:
        yield Learn("preferred_elections", remove=tuple(partitions))
        yield from deletion.resume(ctx, (tp.topic for tp in partitions))


def auto_preferred_replica_leader_election(ctx: ControllerContext, event: AutoPreferredReplicaLeaderElection) -> Handler:
    """What the scheduler does again and again, until it is stopped."""
    if ctx.is_active:
        yield from _rebalance(ctx)
    if ctx.scheduler_runs:
        yield from arm_rebalance(ctx, ctx.config.leader_imbalance_check_interval_seconds * 1_000)


def _rebalance(ctx: ControllerContext) -> Handler:
    """For every broker that leads too few of the partitions that prefer it: elect one by one, letting go of the lock."""
    for broker_id, misplaced in misplaced_by_broker(ctx).items():
        for tp in misplaced:
            yield Release()
            busy = ctx.preferred_elections or ctx.partitions_being_reassigned or ctx.is_queued_for_deletion(tp.topic)
            if broker_id in ctx.live_broker_ids and tp.topic in ctx.all_topics and not busy:
                yield from on_preferred_replica_election(ctx, (tp,), delete=False)


def start_scheduler(ctx: ControllerContext) -> Handler:
    """At failover, if the broker is configured to rebalance. Raises IllegalStateException for a scheduler that runs already."""
    if not ctx.config.auto_leader_rebalance_enable:
        return
    if ctx.scheduler_runs:
        raise IllegalStateException("the scheduler has been started already")
    yield Learn("scheduler_runs", True)
    yield from start_rebalancing(ctx)


def stop_scheduler(ctx: ControllerContext) -> Handler:
    """At a resignation. Before 0.9 it raises IllegalStateException on a broker that has not ruled: the resignation ends there."""
    if ctx.scheduler_runs:
        yield Learn("scheduler_runs", False)
        yield Cancel("auto-leader-rebalance")
    elif ctx.config.auto_leader_rebalance_enable and ctx.rules.idle_scheduler == "fails":
        raise IllegalStateException("the scheduler has not been started")
