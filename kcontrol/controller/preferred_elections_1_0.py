"""Preferred elections on an event thread that is fed by listeners: they are not remembered, and stop no deletion.

Source: KafkaController.scala (0.11, 1.0): PreferredReplicaLeaderElection, fetchPendingPreferredReplicaElections,
onPreferredReplicaElection, removePartitionsFromPreferredReplicaElection, checkAndTriggerAutoLeaderRebalance.
"""

from __future__ import annotations

from collections.abc import Collection

from kcontrol.controller import partition_machine
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.elections_on_request import arm_rebalance, misplaced_by_broker
from kcontrol.controller.stories import afterwards
from kcontrol.effects import Handler, Op, Read, Transaction
from kcontrol.events import AutoPreferredReplicaLeaderElection, ReplicaLeaderElection
from kcontrol.model import PartitionState, TopicPartition
from kcontrol.znodes import PREFERRED_REPLICA_ELECTION, decode_partition_list


def replica_leader_election(ctx: ControllerContext, event: ReplicaLeaderElection) -> Handler:
    """Elect what the listener has read, but for what is being deleted."""
    asked = event.partitions or ()
    yield from _elect(ctx, [tp for tp in asked if not ctx.is_queued_for_deletion(tp.topic)], delete=True)


def elect_pending(ctx: ControllerContext) -> Handler:
    """At failover: what is asked for, is known, and is led by another; the request is deleted, whether there was one or not.

    Raises KeyError for a partition that nobody has ever led: the failover fails, at every broker that tries.
    """
    (znode,) = yield Read((PREFERRED_REPLICA_ELECTION,), watch=True)
    named = decode_partition_list(znode.data) if znode else ()
    wanted = [tp for tp in named if tp in ctx.assignments and ctx.leadership[tp].leader != ctx.replicas(tp)[0]]
    yield from _elect(ctx, [tp for tp in wanted if not ctx.is_queued_for_deletion(tp.topic)], delete=True)


def _elect(ctx: ControllerContext, partitions: Collection[TopicPartition], *, delete: bool) -> Handler:
    """Elect, look at each, and delete the request.

    Raises KeyError for a partition without leadership or replicas: then the request stays.
    """
    yield from partition_machine.move(ctx, partitions, PartitionState.ONLINE, "preferred")
    for tp in partitions:
        _ = ctx.leadership[tp], ctx.assignments[tp].replicas[0]
    if delete:
        yield Transaction((Op("delete", PREFERRED_REPLICA_ELECTION),))


def auto_preferred_replica_leader_election(ctx: ControllerContext, event: AutoPreferredReplicaLeaderElection) -> Handler:
    """For every broker that leads too few of the partitions that prefer it: elect one after the other, and come again."""
    again = arm_rebalance(ctx, ctx.config.leader_imbalance_check_interval_seconds * 1_000)
    yield from afterwards(_rebalance(ctx), again)


def _rebalance(ctx: ControllerContext) -> Handler:
    for broker_id, misplaced in misplaced_by_broker(ctx).items():
        for tp in misplaced:
            is_free = not ctx.partitions_being_reassigned and not ctx.is_queued_for_deletion(tp.topic)
            if is_free and tp.topic in ctx.all_topics and ctx.is_replica_online(broker_id, tp):
                yield from _elect(ctx, (tp,), delete=False)
