"""Elects preferred leaders in 0.11 and 1.0: by request, at a failover, and by the timer.

The controller does not store the partitions of an election, so an election delays no deletion.

Source: KafkaController.scala (0.11, 1.0): PreferredReplicaLeaderElection,
fetchPendingPreferredReplicaElections, onPreferredReplicaElection,
removePartitionsFromPreferredReplicaElection, checkAndTriggerAutoLeaderRebalance.
"""

from collections.abc import Collection

from kcontrol.controller import partition_machine, requested_elections
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.failover_steps import try_finally
from kcontrol.core.effects import Handler, Op, Read, Transaction
from kcontrol.core.events import AutoPreferredReplicaLeaderElection, ReplicaLeaderElection
from kcontrol.core.model import PartitionState, TopicPartition
from kcontrol.core.znodes import PREFERRED_REPLICA_ELECTION, decode_partition_list


def replica_leader_election(ctx: ControllerContext, event: ReplicaLeaderElection) -> Handler:
    """Elect the preferred leaders of the partitions in `/admin/preferred_replica_election`.

    Then delete the znode. Partitions of topics that are being deleted are left out.

    Source: KafkaController.PreferredReplicaLeaderElection (0.11, 1.0).
    """
    requested = event.partitions or ()
    yield from _elect(
        ctx, [tp for tp in requested if not ctx.is_queued_for_deletion(tp.topic)], delete=True
    )


def trigger_preferred_elections(ctx: ControllerContext) -> Handler:
    """At a failover, elect the preferred leaders that `/admin/preferred_replica_election` requests.

    Then delete that znode. Raises KeyError for a partition that has never had a leader: the
    failover fails.

    Source: KafkaController.fetchPendingPreferredReplicaElections (0.11, 1.0).
    """
    (znode,) = yield Read((PREFERRED_REPLICA_ELECTION,), watch=True)
    named = decode_partition_list(znode.data) if znode else ()
    known = [tp for tp in named if tp in ctx.assignments]
    wanted = [tp for tp in known if ctx.leadership[tp].leader != ctx.replicas(tp)[0]]
    yield from _elect(
        ctx, [tp for tp in wanted if not ctx.is_queued_for_deletion(tp.topic)], delete=True
    )


def _elect(
    ctx: ControllerContext, partitions: Collection[TopicPartition], *, delete: bool
) -> Handler:
    """Elect the preferred leaders of `partitions`.

    If `delete`, then delete `/admin/preferred_replica_election`. Raises KeyError for a partition
    without leadership or replicas; the znode then stays.

    Source: KafkaController.onPreferredReplicaElection (0.11, 1.0).
    """
    yield from partition_machine.handle_state_changes(
        ctx, partitions, PartitionState.ONLINE, "preferred"
    )
    for tp in partitions:
        _ = ctx.leadership[tp], ctx.assignments[tp].replicas[0]
    if delete:
        yield Transaction((Op("delete", PREFERRED_REPLICA_ELECTION),))


def auto_preferred_replica_leader_election(
    ctx: ControllerContext, event: AutoPreferredReplicaLeaderElection
) -> Handler:
    """Elect preferred leaders of the partitions of imbalanced brokers, then set the timer again.

    Imbalanced: above `leader.imbalance.per.broker.percentage`. The timer, set even after an error,
    queues the next event of this type.

    Source: KafkaController.checkAndTriggerAutoLeaderRebalance (0.11, 1.0).
    """
    again = requested_elections.schedule_auto_leader_rebalance(
        ctx, ctx.config.leader_imbalance_check_interval_seconds * 1_000
    )
    yield from try_finally(_rebalance(ctx), again)


def _rebalance(ctx: ControllerContext) -> Handler:
    # Each partition has an election of its own, with requests of its own.
    for broker_id, misplaced in requested_elections.imbalanced_by_broker(ctx).items():
        for tp in misplaced:
            is_free = not ctx.partitions_being_reassigned and not ctx.is_queued_for_deletion(
                tp.topic
            )
            if is_free and tp.topic in ctx.all_topics and ctx.is_replica_online(broker_id, tp):
                yield from _elect(ctx, (tp,), delete=False)
