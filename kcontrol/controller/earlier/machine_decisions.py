"""The functions of the partition and replica state machines that differ before 1.1.

There is one function for each field of `MachineDecisions` (`../design.py`).

Source: PartitionStateMachine.scala, ReplicaStateMachine.scala and KafkaController.scala (0.8.0 to
1.0); each function names its method.
"""

from collections.abc import Collection, Generator, Iterable, Sequence
from typing import Any

from kcontrol.controller.context import ControllerContext
from kcontrol.controller.design import MachineDecisions
from kcontrol.controller.replica_machine import refuse
from kcontrol.controller.unclean_elections import unclean_allowed
from kcontrol.core.effects import Effect, Read, UpdateContext, Znode
from kcontrol.core.model import (
    LeaderAndIsr,
    PartitionReplica,
    ReplicaAssignment,
    ReplicaState,
    TopicPartition,
)
from kcontrol.core.znodes import TopicZnode, decode_states, decode_topics, state_path, topic_path

Replicas = Sequence[PartitionReplica]
Znodes = Sequence[Znode | None]


def reread(
    ctx: ControllerContext, partitions: Sequence[TopicPartition]
) -> Generator[Effect, Any, None]:
    """Before 0.9 read the assignments of new partitions into the context a second time.

    Since 0.9 do nothing.

    Source: PartitionStateMachine.assignReplicasToPartitions (0.8.1).
    """
    if not ctx.rules.rereads_assignment:
        return
    znodes: Znodes = yield Read(tuple(topic_path(tp.topic) for tp in partitions))
    stored, none = decode_topics(partitions, znodes), TopicZnode({})
    read = {tp: stored.get(tp, none).partitions.get(tp.partition) for tp in partitions}
    yield UpdateContext("assignments", {tp: a or ReplicaAssignment(()) for tp, a in read.items()})


def is_election_needless(
    ctx: ControllerContext, tp: TopicPartition, stored: LeaderAndIsr | None
) -> bool:
    """Return whether the preferred replica leads in the context already: no election is needed.

    Return False if the state znode is missing (`stored` is None), and if a later controller has
    written it.

    Source: PreferredReplicaPartitionLeaderSelector and LeaderElectionNotNeededException (0.8.1).
    """
    if stored is None or stored.controller_epoch > ctx.controller_epoch:
        return False
    cached, replicas = ctx.leadership.get(tp), ctx.replicas(tp)
    return bool(replicas) and cached is not None and cached.leader == replicas[0]


def allowed_always(
    ctx: ControllerContext, topics: Iterable[str]
) -> Generator[Effect, Any, dict[str, bool]]:
    """Return for each topic whether it allows unclean elections; before 0.8.2 every topic does.

    Source: OfflinePartitionLeaderSelector.selectLeader (0.8.1, 0.8.2).
    """
    if ctx.rules.unclean == "always":
        return dict.fromkeys(topics, True)
    return (yield from unclean_allowed(ctx, topics))


def stored_leadership(
    ctx: ControllerContext, replicas: Replicas
) -> Generator[Effect, Any, dict[TopicPartition, LeaderAndIsr]]:
    """Read the state znodes of new replicas' partitions; return the leadership by partition.

    A partition without a state znode is left out.

    Source: ReplicaStateMachine.handleStateChange, NewReplica (0.8.1).
    """
    partitions = tuple(r.topic_partition for r in replicas)
    znodes: Znodes = yield Read(tuple(map(state_path, partitions)))
    return decode_states(partitions, znodes)


def refuse_without_leadership(
    ctx: ControllerContext, batch: Any, replicas: Replicas, target: ReplicaState
) -> Generator[Effect, Any, None]:
    """Refuse to move `replicas`, whose partitions have never had a leader, to `target`.

    Write a journal record for each refusal; `batch` stays unchanged. Since 0.9 a replica of a topic
    in deletion gets no record.

    Source: ReplicaStateMachine.handleStateChange, OfflineReplica (0.8.1, 0.9.0).
    """
    refused = [r for r in replicas if not ignores_missing_state_znode(ctx, r)]
    if refused:
        yield refuse(ctx, refused, target, "its partition has never had a leader", illegal=False)


def ignores_missing_state_znode(ctx: ControllerContext, replica: PartitionReplica) -> bool:
    """Return whether the failed transition of a replica is ignored: it gets no journal record.

    The replica's partition has no leadership. Before 0.9 return False; since 0.9 return whether the
    topic is being deleted.

    Source: ReplicaStateMachine.handleStateChange, OfflineReplica (0.9.0).
    """
    return ctx.rules.leaderless_replica_of_deleting_topic != "fails" and ctx.is_queued_for_deletion(
        replica.topic
    )


def topics_allowing_empty_isr(
    ctx: ControllerContext, replicas: Replicas, znodes: Znodes
) -> Generator[Effect, Any, Collection[str]]:
    """Return the topics of `replicas` whose partitions may have an empty ISR.

    Before 0.8.2 these are all topics, since 0.8.2 those that allow unclean elections. `znodes` has
    the state znode of each replica's partition.

    Source: KafkaController.removeReplicaFromIsr (0.8.2).
    """
    if ctx.rules.last_isr_member == "leaves":
        return {r.topic for r in replicas}
    read, mine = decode_states(replicas, znodes), ctx.controller_epoch
    ours = {r: value for r, value in read.items() if value.controller_epoch <= mine}
    last = [r.topic for r, value in ours.items() if value.isr == (r.broker_id,)]
    allowed = (yield from unclean_allowed(ctx, last)) if last else {}
    return frozenset(topic for topic, is_allowed in allowed.items() if is_allowed)


def receivers_of_smaller_isr(
    ctx: ControllerContext, replica: PartitionReplica, value: LeaderAndIsr
) -> tuple[int, ...] | None:
    """Return the brokers that receive LeaderAndIsr after `replica` has left the ISR.

    `value` is the new leadership. Return None, for no request, if the topic is being deleted (since
    0.8.2).

    Source: ReplicaStateMachine.handleStateChange, OfflineReplica (0.8.1, 0.8.2).
    """
    if not ctx.rules.deleting_topic_isr_is_sent and ctx.is_queued_for_deletion(replica.topic):
        return None
    # Before 0.8.2 only the leader receives LeaderAndIsr, from 0.8.2 on all other replicas.
    others = tuple(b for b in ctx.replicas(replica.topic_partition) if b != replica.broker_id)
    return (value.leader,) if ctx.rules.smaller_isr_recipients == "leader" else others


def led_by_the_dead(ctx: ControllerContext, dead: Collection[int]) -> tuple[TopicPartition, ...]:
    """Return the partitions without an online leader; before 1.0 only those that `dead` led.

    `dead` are the ids of the failed brokers. Topics that are being deleted are left out.

    Source: KafkaController.onBrokerFailure (0.11, 1.0).
    """
    found = ctx.partitions_with_offline_leader()
    if ctx.rules.leaderless == "dead leader":
        return tuple(tp for tp in found if ctx.leadership[tp].leader in dead)
    return found


DECISIONS = MachineDecisions(
    before_new=reread,
    is_election_needless=is_election_needless,
    unclean_allowed=allowed_always,
    leadership_for_new=stored_leadership,
    move_without_leadership=refuse_without_leadership,
    ignores_missing_state_znode=ignores_missing_state_znode,
    topics_allowing_empty_isr=topics_allowing_empty_isr,
    receivers_of_smaller_isr=receivers_of_smaller_isr,
    leaderless=led_by_the_dead,
)
