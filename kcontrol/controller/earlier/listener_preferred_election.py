"""Elects preferred leaders from 0.8.0 to 0.10.2: by request, at a failover, and by a scheduler.

The controller stores the partitions of an election, because a topic in an election is not deleted.

Source: PreferredReplicaElectionListener, KafkaController.initializePreferredReplicaElection,
onPreferredReplicaElection, removePartitionsFromPreferredReplicaElection and
checkAndTriggerPartitionRebalance (0.8.1.1, 0.8.2.2); KafkaScheduler.scala.
"""

from collections.abc import Collection

from kcontrol.controller import partition_machine, requested_elections
from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.reassignment import IllegalStateException
from kcontrol.core import effects
from kcontrol.core.effects import Handler
from kcontrol.core.events import AutoPreferredReplicaLeaderElection, ReplicaLeaderElection
from kcontrol.core.model import PartitionState, TopicPartition
from kcontrol.core.znodes import PREFERRED_REPLICA_ELECTION, decode_partition_list


def initialize_preferred_elections(ctx: ControllerContext) -> Handler:
    """Store in the context the requested partitions whose leader is not the preferred replica.

    The request is `/admin/preferred_replica_election`; a later failover step elects leaders.
    Raises KeyError for a partition that has never had a leader.

    Source: KafkaController.initializePreferredReplicaElection (0.8.1).
    """
    (znode,) = yield effects.Read((PREFERRED_REPLICA_ELECTION,), watch=True)
    named = decode_partition_list(znode.data) if znode else ()
    known = {tp: replicas[0] for tp in named if (replicas := ctx.replicas(tp))}
    wanted = [tp for tp, preferred in known.items() if ctx.leadership[tp].leader != preferred]
    if wanted:
        yield effects.UpdateContext("preferred_elections", wanted)


def trigger_preferred_elections(ctx: ControllerContext) -> Handler:
    """Elect the preferred leaders of the partitions in `preferred_elections` of the context.

    Then delete `/admin/preferred_replica_election`, even if there was no such partition.

    Source: KafkaController.maybeTriggerPreferredReplicaElection (0.8.1).
    """
    yield from on_preferred_replica_election(
        ctx, tuple(sorted(ctx.preferred_elections)), delete=True
    )


def initialize_and_trigger_preferred_elections(ctx: ControllerContext) -> Handler:
    """Elect the preferred leaders of the partitions in `/admin/preferred_replica_election`.

    At the end delete the znode. Raises KeyError for a partition that does not exist.

    Source: KafkaController.initializeAndMaybeTriggerPreferredReplicaElection (0.8.0).
    """
    (znode,) = yield effects.Read((PREFERRED_REPLICA_ELECTION,), watch=True)
    named = decode_partition_list(znode.data) if znode else ()
    wanted = [tp for tp in named if ctx.leadership[tp].leader != ctx.assignments[tp].replicas[0]]
    pending = tuple(sorted({*ctx.preferred_elections, *wanted}))
    yield from on_preferred_replica_election(ctx, pending, delete=True)


def replica_leader_election(ctx: ControllerContext, event: ReplicaLeaderElection) -> Handler:
    """Elect preferred leaders of the requested partitions that are not in an election already.

    Raises MalformedZnode if `/admin/preferred_replica_election` is no list of partitions; the znode
    then stays.

    Source: PreferredReplicaElectionListener.handleDataChange (0.8.1, 0.8.2).
    """
    yield effects.Exists((PREFERRED_REPLICA_ELECTION,), watch=True)
    (znode,) = yield effects.Read((PREFERRED_REPLICA_ELECTION,), watch=True)
    if znode is None:
        return
    requested = tuple(
        tp for tp in decode_partition_list(znode.data) if tp not in ctx.preferred_elections
    )
    # Partitions of topics that are being deleted are left out; in 0.8.1 one such partition stops
    # the whole election, and the request stays.
    staying = tuple(tp for tp in requested if not ctx.is_queued_for_deletion(tp.topic))
    if staying == requested or ctx.rules.deleting_topic_election == "left out":
        yield from on_preferred_replica_election(ctx, staying, delete=True)


def on_preferred_replica_election(
    ctx: ControllerContext, partitions: Collection[TopicPartition], *, delete: bool
) -> Handler:
    """Elect the preferred leaders of `partitions`.

    If `delete`, then delete `/admin/preferred_replica_election`. Raises KeyError for a partition
    without leadership or replicas; the znode then stays.

    Source: KafkaController.onPreferredReplicaElection (0.8.1).
    """
    if partitions:
        # While a partition is in this field, its topic is not deleted.
        yield effects.UpdateContext("preferred_elections", partitions)
        yield from deletion.mark_topics_ineligible_for_deletion(
            ctx, {tp.topic for tp in partitions}
        )
    yield from partition_machine.handle_state_changes(
        ctx, partitions, PartitionState.ONLINE, "preferred"
    )
    for tp in partitions:
        _ = ctx.leadership[tp], ctx.assignments[tp]
    if delete:
        yield effects.Transaction((effects.Op("delete", PREFERRED_REPLICA_ELECTION),))
    if partitions:
        yield effects.UpdateContext("preferred_elections", remove=tuple(partitions))
        yield from deletion.resume_deletion_for_topics(ctx, (tp.topic for tp in partitions))


def auto_preferred_replica_leader_election(
    ctx: ControllerContext, event: AutoPreferredReplicaLeaderElection
) -> Handler:
    """Elect preferred leaders of imbalanced brokers' partitions, if this broker is controller.

    Then set the timer of the next check, unless the scheduler has stopped.
    Source: KafkaController.checkAndTriggerPartitionRebalance, KafkaScheduler.schedule (0.8.1).
    """
    if ctx.is_active:
        yield from _rebalance(ctx)
    # The scheduler runs on a broker that is not active too.
    if ctx.scheduler_is_running:
        yield from requested_elections.schedule_auto_leader_rebalance(
            ctx, ctx.config.leader_imbalance_check_interval_seconds * 1_000
        )


def _rebalance(ctx: ControllerContext) -> Handler:
    """Elect preferred leaders for brokers above `leader.imbalance.per.broker.percentage`.

    The elections come one after the other. A partition is left out if its topic is being deleted;
    all are left out while another preferred election or a reassignment is in progress.

    Source: KafkaController.checkAndTriggerPartitionRebalance (0.8.1).
    """
    for broker_id, misplaced in requested_elections.imbalanced_by_broker(ctx).items():
        for tp in misplaced:
            yield effects.YieldLock()
            busy = ctx.preferred_elections or ctx.partitions_being_reassigned
            if busy or ctx.is_queued_for_deletion(tp.topic):
                continue
            if broker_id in ctx.live_broker_ids and tp.topic in ctx.all_topics:
                yield from on_preferred_replica_election(ctx, (tp,), delete=False)


def start_scheduler(ctx: ControllerContext) -> Handler:
    """Start the scheduler of preferred elections if `auto.leader.rebalance.enable` is true.

    If the setting is false, do nothing. Raises IllegalStateException if the scheduler runs already.

    Source: KafkaScheduler.startup (0.8.1).
    """
    if not ctx.config.auto_leader_rebalance_enable:
        return
    if ctx.scheduler_is_running:
        raise IllegalStateException("the scheduler has been started already")
    yield effects.UpdateContext("scheduler_is_running", True)
    yield from requested_elections.schedule_first_rebalance(ctx)


def stop_scheduler(ctx: ControllerContext) -> Handler:
    """Stop the scheduler of the automatic leader rebalance.

    Before 0.9, if the rebalance is enabled and the scheduler does not run, raise
    IllegalStateException, which ends the resignation.

    Source: KafkaScheduler.shutdown (0.8.1, 0.9.0).
    """
    if ctx.scheduler_is_running:
        yield effects.UpdateContext("scheduler_is_running", False)
        yield effects.CancelTimer("auto-leader-rebalance")
    elif ctx.config.auto_leader_rebalance_enable and ctx.rules.unstarted_scheduler == "fails":
        raise IllegalStateException("the scheduler has not been started")
