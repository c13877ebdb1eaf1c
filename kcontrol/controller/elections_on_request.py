"""Elections that nobody's death has caused: asked for through a znode or by an admin client, or every five minutes.

Source: KafkaController.scala (2.8): processReplicaLeaderElection, onReplicaElection, checkAndTriggerAutoLeaderRebalance,
processUncleanLeaderElectionEnable, processTopicUncleanLeaderElectionEnable.
"""

from __future__ import annotations

from collections.abc import Collection

from kcontrol.controller import partition_machine
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.failover_steps import bring_online
from kcontrol.controller.partition_machine import Moved
from kcontrol.controller.stories import afterwards
from kcontrol.effects import Arm, Enqueue, Exists, Handler, Op, Read, Respond, Writes
from kcontrol.events import (
    AutoPreferredReplicaLeaderElection,
    ReplicaLeaderElection,
    TopicUncleanLeaderElectionEnable,
    UncleanLeaderElectionEnable,
)
from kcontrol.model import NO_LEADER, PartitionState, TopicPartition
from kcontrol.znodes import PREFERRED_REPLICA_ELECTION, MalformedZnode, decode_partition_list

FIRST_REBALANCE_MS = 5_000

Partitions = tuple[TopicPartition, ...]

NOT_AVAILABLE = {"PREFERRED": "PREFERRED_LEADER_NOT_AVAILABLE", "UNCLEAN": "ELIGIBLE_LEADERS_NOT_AVAILABLE"}


def replica_leader_election(ctx: ControllerContext, event: ReplicaLeaderElection) -> Handler:
    """Elect the named partitions where an election is needed, and answer the client, or delete the znode.

    Raises KeyError for a partition that has never had a leader: since 2.2 before any election, so that no partition is elected
    and no client is answered; in 1.1 to 2.1 after the others are elected. The znode stays in both cases.
    Source: KafkaController.processReplicaLeaderElection (2.2 to 3.9).
    """
    partitions = event.partitions
    if event.trigger == "ZkTriggered":
        (stat,) = yield Exists((PREFERRED_REPLICA_ELECTION,), watch=True)
        if stat is None:
            return
        (znode,) = yield Read((PREFERRED_REPLICA_ELECTION,), watch=True)
        partitions = partitions_in_znode(znode)
    named = tuple(ctx.assignments) if partitions is None else partitions
    answers = {tp: why for tp in named if (why := _pointless(ctx, tp, event.election_type))}
    electable = tuple(tp for tp in named if tp not in answers)
    moved = yield from on_replica_election(ctx, electable, event.election_type, event.trigger)
    if event.correlation_id:
        results = {tp: _result(tp, answers, moved, event.election_type) for tp in named}
        yield Respond(event.correlation_id, {"error": "NONE", "partitions": results})


def partitions_in_znode(znode: object) -> Partitions:
    """What `/admin/preferred_replica_election` asks for; nothing if it is gone or malformed."""
    try:
        return decode_partition_list(znode.data) if znode else ()  # type: ignore[attr-defined]
    except MalformedZnode:
        return ()


def _pointless(ctx: ControllerContext, tp: TopicPartition, election_type: str) -> str | None:
    """The answer for a partition that is not going to be elected."""
    if tp not in ctx.assignments:
        return "UNKNOWN_TOPIC_OR_PARTITION"
    if ctx.is_queued_for_deletion(tp.topic):
        return "INVALID_TOPIC_EXCEPTION"
    if ctx.rules.leads_already != "left alone":
        return None
    leader = ctx.leadership[tp].leader
    if election_type == "PREFERRED":
        settled = leader == ctx.replicas(tp)[0]
    else:
        settled = leader != NO_LEADER and leader in ctx.live_broker_ids
    return "ELECTION_NOT_NEEDED" if settled else None


def _result(tp: TopicPartition, answers: dict[TopicPartition, str], moved: Moved, election_type: str) -> int | str:
    if tp in answers:
        return answers[tp]
    return moved.elected[tp].leader if tp in moved.elected else NOT_AVAILABLE[election_type]


def on_replica_election(
    ctx: ControllerContext, partitions: Collection[TopicPartition], election_type: str, trigger: str
) -> Handler:
    """Elect; where the request came through the znode, delete the znode and look whether it is there again.

    Raises KeyError for a partition without a leader, unless an admin client asked: then the znode stays.
    """
    unclean = election_type == "UNCLEAN" and trigger == "AdminClientTriggered"
    strategy = "preferred" if election_type == "PREFERRED" else "offline"
    elected = partition_machine.move(ctx, partitions, PartitionState.ONLINE, strategy, allow_unclean=unclean)
    return (yield from afterwards(elected, _remove(ctx, partitions, trigger)))


def _remove(ctx: ControllerContext, partitions: Collection[TopicPartition], trigger: str) -> Handler:
    """Look up the leader of each partition, then delete a request that came through the znode.

    Source: KafkaController.removePartitionsFromPreferredReplicaElection (1.1 to 3.9).
    """
    if trigger == "AdminClientTriggered":
        return
    for tp in partitions:
        _ = ctx.leadership[tp]
    if trigger != "ZkTriggered":
        return
    yield Writes(((Op("delete", PREFERRED_REPLICA_ELECTION),),))
    yield Enqueue(ReplicaLeaderElection())


def pending_preferred_elections(ctx: ControllerContext) -> Handler:
    """Elect at failover the partitions in the znode that their preferred replica does not lead.

    Raises KeyError for a partition that has never had a leader: the failover fails, at every broker that tries it, until a
    replica of the partition lives. Source: KafkaController.fetchPendingPreferredReplicaElections (1.1 to 3.9).
    """
    (znode,) = yield Read((PREFERRED_REPLICA_ELECTION,), watch=True)
    pending = [tp for tp in partitions_in_znode(znode) if _is_misplaced(ctx, tp)]
    yield from on_replica_election(ctx, pending, "PREFERRED", "ZkTriggered")


def _is_misplaced(ctx: ControllerContext, tp: TopicPartition) -> bool:
    replicas = ctx.replicas(tp)
    return bool(replicas) and ctx.leadership[tp].leader != replicas[0] and not ctx.is_queued_for_deletion(tp.topic)


# ---------------------------------------------------------------- the automatic kind


def start_rebalancing(ctx: ControllerContext) -> Handler:
    """At failover: the first look comes soon."""
    yield from arm_rebalance(ctx, FIRST_REBALANCE_MS)


def arm_rebalance(ctx: ControllerContext, delay_ms: int) -> Handler:
    """Look again after this time, if the broker is configured to."""
    if ctx.config.auto_leader_rebalance_enable:
        yield Arm("auto-leader-rebalance", delay_ms, AutoPreferredReplicaLeaderElection(), periodic=True)


def auto_preferred_replica_leader_election(ctx: ControllerContext, event: AutoPreferredReplicaLeaderElection) -> Handler:
    """For every broker that leads too few of the partitions that prefer it: elect the preferred leaders that can lead."""
    again = arm_rebalance(ctx, ctx.config.leader_imbalance_check_interval_seconds * 1_000)
    yield from afterwards(_rebalance(ctx), again)


def _rebalance(ctx: ControllerContext) -> Handler:
    for broker_id, misplaced in misplaced_by_broker(ctx).items():
        ready = [tp for tp in misplaced if _can_lead(ctx, tp, broker_id)]
        yield from on_replica_election(ctx, ready, "PREFERRED", "AutoTriggered")


def misplaced_by_broker(ctx: ControllerContext) -> dict[int, list[TopicPartition]]:
    """What each broker should lead and does not, if it is more than the configured share of what prefers it."""
    found = {}
    for broker_id, preferred in sorted(_by_preferred_leader(ctx).items()):
        misplaced = [tp for tp in preferred if tp in ctx.leadership and ctx.leadership[tp].leader != broker_id]
        if len(misplaced) / len(preferred) > ctx.config.leader_imbalance_per_broker_percentage / 100:
            found[broker_id] = misplaced
    return found


def _by_preferred_leader(ctx: ControllerContext) -> dict[int, list[TopicPartition]]:
    found: dict[int, list[TopicPartition]] = {}
    for tp, assignment in ctx.assignments.items():
        if assignment.replicas and not ctx.is_queued_for_deletion(tp.topic):
            found.setdefault(assignment.replicas[0], []).append(tp)
    return found


def _can_lead(ctx: ControllerContext, tp: TopicPartition, broker_id: int) -> bool:
    if ctx.partitions_being_reassigned or not ctx.is_replica_online(broker_id, tp):
        return False
    return broker_id in ctx.leadership[tp].isr or not ctx.rules.rebalances_in_sync_alone


# ---------------------------------------------------------------- settings that change at run time


def unclean_leader_election_enable(ctx: ControllerContext, event: UncleanLeaderElectionEnable) -> Handler:
    """The broker's default now allows unclean elections: whoever waits is tried again."""
    yield from bring_online(ctx)


def topic_unclean_leader_election_enable(ctx: ControllerContext, event: TopicUncleanLeaderElectionEnable) -> Handler:
    """A topic now allows unclean elections: its partitions that wait are tried again."""
    yield from bring_online(ctx, event.topic)
