"""Elects leaders on request, in the automatic rebalance, and after unclean elections are allowed.

A request asks for preferred or unclean leaders. The automatic rebalance elects preferred leaders
every `leader.imbalance.check.interval.seconds` (300). When `unclean.leader.election.enable` becomes
true, the controller tries to elect leaders of offline partitions.

Source: KafkaController.scala (2.8): processReplicaLeaderElection, onReplicaElection,
checkAndTriggerAutoLeaderRebalance, processUncleanLeaderElectionEnable,
processTopicUncleanLeaderElectionEnable.
"""

from collections.abc import Collection

from kcontrol.controller import partition_machine
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.failover_steps import trigger_online_partition_state_change, try_finally
from kcontrol.core import effects, events
from kcontrol.core.effects import Handler
from kcontrol.core.model import NO_LEADER, PartitionState, TopicPartition
from kcontrol.core.znodes import PREFERRED_REPLICA_ELECTION, MalformedZnode, decode_partition_list

FIRST_REBALANCE_MS = 5_000

Partitions = tuple[TopicPartition, ...]

NOT_AVAILABLE = {
    "PREFERRED": "PREFERRED_LEADER_NOT_AVAILABLE", "UNCLEAN": "ELIGIBLE_LEADERS_NOT_AVAILABLE",
}  # fmt: skip


def replica_leader_election(ctx: ControllerContext, event: events.ReplicaLeaderElection) -> Handler:
    """Elect leaders of the requested partitions.

    Then respond to the admin client or, if the request came through ZooKeeper, delete
    `/admin/preferred_replica_election`. Raises KeyError, and keeps the znode, for a partition that
    has never had a leader.

    Source: KafkaController.processReplicaLeaderElection (2.2 to 3.9).
    """
    partitions = event.partitions
    if event.trigger == "ZkTriggered":
        (stat,) = yield effects.Exists((PREFERRED_REPLICA_ELECTION,), watch=True)
        if stat is None:
            return
        (znode,) = yield effects.Read((PREFERRED_REPLICA_ELECTION,), watch=True)
        partitions = partitions_in_znode(znode)
    named = tuple(ctx.assignments) if partitions is None else partitions
    # Since 2.2 the KeyError comes here, before any election; in 1.1 to 2.1 after the elections of
    # the other partitions.
    errors = {tp: why for tp in named if (why := _election_error(ctx, tp, event.election_type))}
    electable = tuple(tp for tp in named if tp not in errors)
    moved = yield from on_replica_election(ctx, electable, event.election_type, event.trigger)
    if event.correlation_id:
        error = NOT_AVAILABLE[event.election_type]
        leaders = {tp: value.leader for tp, value in moved.elected.items()}
        results = {tp: errors.get(tp) or leaders.get(tp, error) for tp in named}
        yield effects.Respond(event.correlation_id, {"error": "NONE", "partitions": results})


def partitions_in_znode(znode: object) -> Partitions:
    """() for a missing znode, and for data that are no list of partitions."""
    try:
        return decode_partition_list(znode.data) if znode else ()  # type: ignore[attr-defined]
    except MalformedZnode:
        return ()


def _election_error(ctx: ControllerContext, tp: TopicPartition, election_type: str) -> str | None:
    """Return the error of a partition for which no election is held, None if an election is held.

    `election_type` is PREFERRED or UNCLEAN. Since 2.2 an election that is not needed is an error.

    Source: KafkaController.processReplicaLeaderElection (2.2, KIP-183).
    """
    if tp not in ctx.assignments:
        return "UNKNOWN_TOPIC_OR_PARTITION"
    if ctx.is_queued_for_deletion(tp.topic):
        return "INVALID_TOPIC_EXCEPTION"
    if ctx.rules.preferred_already_leads != "skipped":
        return None
    leader = ctx.leadership[tp].leader
    if election_type == "PREFERRED":
        settled = leader == ctx.replicas(tp)[0]
    else:
        settled = leader != NO_LEADER and leader in ctx.live_broker_ids
    return "ELECTION_NOT_NEEDED" if settled else None


def on_replica_election(
    ctx: ControllerContext, partitions: Collection[TopicPartition], election_type: str, trigger: str
) -> Handler:
    """Elect leaders of the partitions; return the new leadership (a TransitionResult).

    `election_type` is PREFERRED or UNCLEAN. Raises KeyError for a partition without leadership,
    unless `trigger` is AdminClientTriggered.

    Source: KafkaController.onReplicaElection (2.8).
    """
    # ZkTriggered: the request znode, which is deleted at the end. AutoTriggered: the automatic
    # rebalance.
    unclean = election_type == "UNCLEAN" and trigger == "AdminClientTriggered"
    strategy = "preferred" if election_type == "PREFERRED" else "offline"
    elected = partition_machine.handle_state_changes(
        ctx, partitions, PartitionState.ONLINE, strategy, allow_unclean=unclean
    )
    # After a KeyError the request znode stays.
    ending = _remove_partitions_from_election(ctx, partitions, trigger)
    return (yield from try_finally(elected, ending))


def _remove_partitions_from_election(
    ctx: ControllerContext, partitions: Collection[TopicPartition], trigger: str
) -> Handler:
    """After an election that a znode requested, delete `/admin/preferred_replica_election`.

    If `trigger` is not ZkTriggered, keep the znode. Raises KeyError, and keeps the znode, for a
    partition without leadership, unless `trigger` is AdminClientTriggered.

    Source: KafkaController.removePartitionsFromPreferredReplicaElection (1.1 to 3.9).
    """
    if trigger == "AdminClientTriggered":
        return
    for tp in partitions:
        _ = ctx.leadership[tp]
    if trigger != "ZkTriggered":
        return
    yield effects.fenced(effects.Op("delete", PREFERRED_REPLICA_ELECTION))
    yield effects.Enqueue(events.ReplicaLeaderElection())


def pending_preferred_elections(ctx: ControllerContext) -> Handler:
    """At a failover, elect the preferred leaders that `/admin/preferred_replica_election` requests.

    Then delete that znode. Raises KeyError for a partition that has never had a leader: the
    failover fails.

    Source: KafkaController.fetchPendingPreferredReplicaElections (1.1 to 3.9).
    """
    (znode,) = yield effects.Read((PREFERRED_REPLICA_ELECTION,), watch=True)
    # The failover fails at every broker until a replica of the partition lives.
    pending = [tp for tp in partitions_in_znode(znode) if _is_imbalanced(ctx, tp)]
    yield from on_replica_election(ctx, pending, "PREFERRED", "ZkTriggered")


def _is_imbalanced(ctx: ControllerContext, tp: TopicPartition) -> bool:
    replicas = ctx.replicas(tp)
    if not replicas or ctx.is_queued_for_deletion(tp.topic):
        return False
    return ctx.leadership[tp].leader != replicas[0]


# ---------------------------------------------------------------- the automatic rebalance


def schedule_first_rebalance(ctx: ControllerContext) -> Handler:
    """At a failover, set the timer of the first automatic leader rebalance, after 5 seconds.

    Do nothing if `auto.leader.rebalance.enable` is false. Source:
    KafkaController.onControllerFailover, scheduleAutoLeaderRebalanceTask (2.8).
    """
    yield from schedule_auto_leader_rebalance(ctx, FIRST_REBALANCE_MS)


def schedule_auto_leader_rebalance(ctx: ControllerContext, delay_ms: int) -> Handler:
    """Set the timer of the next automatic leader rebalance, which comes after `delay_ms`.

    Do nothing if `auto.leader.rebalance.enable` is false.

    Source: KafkaController.scheduleAutoLeaderRebalanceTask (2.8).
    """
    if ctx.config.auto_leader_rebalance_enable:
        event = events.AutoPreferredReplicaLeaderElection()
        yield effects.SetTimer("auto-leader-rebalance", delay_ms, event, periodic=True)


def auto_preferred_replica_leader_election(
    ctx: ControllerContext, event: events.AutoPreferredReplicaLeaderElection
) -> Handler:
    """Elect preferred leaders of the partitions of imbalanced brokers, then set the timer again.

    `imbalanced_by_broker` returns these brokers. The timer is set even after an error, and queues
    the next event of this type.

    Source: KafkaController.processAutoPreferredReplicaLeaderElection (2.8).
    """
    interval_ms = ctx.config.leader_imbalance_check_interval_seconds * 1_000
    yield from try_finally(_rebalance(ctx), schedule_auto_leader_rebalance(ctx, interval_ms))


def _rebalance(ctx: ControllerContext) -> Handler:
    for broker_id, misplaced in imbalanced_by_broker(ctx).items():
        ready = [tp for tp in misplaced if _can_lead(ctx, tp, broker_id)]
        yield from on_replica_election(ctx, ready, "PREFERRED", "AutoTriggered")


def imbalanced_by_broker(ctx: ControllerContext) -> dict[int, list[TopicPartition]]:
    """Return, by preferred leader, the partitions that another broker leads.

    A preferred leader is left out unless these partitions are more than
    `leader.imbalance.per.broker.percentage` of the partitions that this broker should lead.

    Source: KafkaController.checkAndTriggerAutoLeaderRebalance (2.8).
    """
    found, led = {}, ctx.leadership
    allowed_share = ctx.config.leader_imbalance_per_broker_percentage / 100
    for broker_id, preferred in sorted(_by_preferred_leader(ctx).items()):
        misplaced = [tp for tp in preferred if tp in led and led[tp].leader != broker_id]
        if len(misplaced) / len(preferred) > allowed_share:
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
    return broker_id in ctx.leadership[tp].isr or not ctx.rules.rebalance_requires_isr


# ---------------------------------------------------------------- settings that change at run time


def unclean_leader_election_enable(
    ctx: ControllerContext, event: events.UncleanLeaderElectionEnable
) -> Handler:
    """Try to elect leaders of all Offline and New partitions, after a setting has changed.

    `unclean.leader.election.enable` of this broker, the default of all topics, is now true.

    Source: KafkaController.processUncleanLeaderElectionEnable (2.8).
    """
    yield from trigger_online_partition_state_change(ctx)


def topic_unclean_leader_election_enable(
    ctx: ControllerContext, event: events.TopicUncleanLeaderElectionEnable
) -> Handler:
    """Try to elect leaders of the Offline and New partitions of the event's topic.

    The topic now allows unclean elections (`unclean.leader.election.enable`).

    Source: KafkaController.processTopicUncleanLeaderElectionEnable (2.8).
    """
    yield from trigger_online_partition_state_change(ctx, event.topic)
