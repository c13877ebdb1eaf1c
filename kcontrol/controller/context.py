"""What the controller believes. Deciders read it; only the driver writes it, through `apply_learn` and `apply_change`.

The fields are declared read-only, so that mypy refuses an assignment anywhere else.
Source: ControllerContext.scala (2.8).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final

from kcontrol.config import BrokerConfig
from kcontrol.effects import Learn, StateChange
from kcontrol.generations import LISTENERS, Rules
from kcontrol.model import (
    LeaderAndIsr,
    PartitionReplica,
    PartitionState,
    ReplicaAssignment,
    ReplicaState,
    TopicPartition,
)
from kcontrol.znodes import BrokerEndpoint


class ReplicaStates(Mapping[PartitionReplica, ReplicaState]):
    """The state of every replica that has one, kept by broker so that a replica costs one dictionary entry."""

    __slots__ = ("by_broker",)

    def __init__(self, by_broker: dict[int, dict[TopicPartition, ReplicaState]] | None = None) -> None:
        self.by_broker: Final[Mapping[int, Mapping[TopicPartition, ReplicaState]]] = by_broker or {}

    def __getitem__(self, replica: PartitionReplica) -> ReplicaState:
        return self.by_broker[replica[1]][replica[0]]

    def __iter__(self) -> Iterator[PartitionReplica]:
        for broker_id, states in sorted(self.by_broker.items()):
            for tp in states:
                yield PartitionReplica(tp, broker_id)

    def __len__(self) -> int:
        return sum(map(len, self.by_broker.values()))

    def copy(self) -> ReplicaStates:
        return ReplicaStates({broker: dict(states) for broker, states in self.by_broker.items()})


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """One broker's controller module: everything below is empty until it has been elected."""

    broker_id: int
    rules: Rules
    config: BrokerConfig = field(default_factory=BrokerConfig)
    replace: Mapping[str, Any] = field(default_factory=dict)  # a learner's own functions, by name

    active_controller_id: int = -1
    controller_epoch: int = 0
    controller_epoch_zk_version: int = 0
    live_brokers: Mapping[int, BrokerEndpoint] = field(default_factory=dict)
    live_broker_epochs: Mapping[int, int] = field(default_factory=dict)
    shutting_down_broker_ids: AbstractSet[int] = field(default_factory=set)
    offline_dirs: Mapping[int, frozenset[TopicPartition]] = field(default_factory=dict)
    all_topics: AbstractSet[str] = field(default_factory=set)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    assignments: Mapping[TopicPartition, ReplicaAssignment] = field(default_factory=dict)
    leadership: Mapping[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    partition_states: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    replica_states: ReplicaStates = field(default_factory=ReplicaStates)
    topics_to_be_deleted: AbstractSet[str] = field(default_factory=set)
    topics_with_deletion_started: AbstractSet[str] = field(default_factory=set)
    topics_ineligible_for_deletion: AbstractSet[str] = field(default_factory=set)
    deletion_thread: str = ""  # "waiting" or "signalled" where topics are deleted on a thread of their own and it runs
    partitions_being_reassigned: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)  # and where they move to
    scheduler_runs: bool = False  # of the automatic rebalance, where listeners share one lock
    has_channels: bool = False  # where listeners share one lock, whoever has a channel manager is active
    machines_started: bool = False
    preferred_elections: AbstractSet[TopicPartition] = field(default_factory=set)  # under way, where listeners share one lock
    offline_partition_count: int = 0  # kept by `apply_learn` and `apply_change`, as the next one is
    preferred_replica_imbalance_count: int = 0

    # ---- who is there

    @property
    def is_active(self) -> bool:
        return self.has_channels if self.rules.design == LISTENERS else self.active_controller_id == self.broker_id

    @property
    def live_broker_ids(self) -> tuple[int, ...]:
        return tuple(b for b in sorted(self.live_broker_epochs) if b not in self.shutting_down_broker_ids)

    @property
    def live_or_shutting_down_broker_ids(self) -> tuple[int, ...]:
        return tuple(sorted(self.live_broker_epochs))

    def is_replica_online(self, broker_id: int, tp: TopicPartition, *, include_shutting_down: bool = False) -> bool:
        """Whether the broker is registered, is not on its way out, and has not lost the partition's log directory."""
        if broker_id not in self.live_broker_epochs:
            return False
        if broker_id in self.shutting_down_broker_ids and not include_shutting_down:
            return False
        return not self.offline_dirs or tp not in self.offline_dirs.get(broker_id, ())

    # ---- partitions and replicas

    def partition_state(self, tp: TopicPartition) -> PartitionState:
        return self.partition_states.get(tp, PartitionState.NON_EXISTENT)

    def replica_state(self, replica: PartitionReplica) -> ReplicaState:
        states = self.replica_states.by_broker.get(replica[1])
        return states.get(replica[0], ReplicaState.NON_EXISTENT) if states else ReplicaState.NON_EXISTENT

    def replicas(self, tp: TopicPartition) -> tuple[int, ...]:
        found = self.assignments.get(tp)
        return found.replicas if found else ()

    def target(self, tp: TopicPartition) -> tuple[int, ...]:
        """Where a partition moves to; the replicas of one that is not being reassigned."""
        return self.partitions_being_reassigned.get(tp) or self.assignments[tp].target

    def online_replicas(self, tp: TopicPartition, *, include_shutting_down: bool = False) -> tuple[int, ...]:
        """The assigned replicas that are online, in the order of the assignment."""
        return tuple(b for b in self.replicas(tp) if self.is_replica_online(b, tp, include_shutting_down=include_shutting_down))

    def partitions_in(self, *states: PartitionState) -> tuple[TopicPartition, ...]:
        return tuple(tp for tp, state in self.partition_states.items() if state in states)

    def partitions_with_offline_leader(self) -> tuple[TopicPartition, ...]:
        """Partitions, of topics that are not being deleted, whose leader is none or not online."""
        return tuple(
            tp
            for tp, value in self.leadership.items()
            if not self.is_replica_online(value.leader, tp) and not self.is_queued_for_deletion(tp.topic)
        )

    def replicas_on(self, broker_ids: Iterable[int]) -> tuple[PartitionReplica, ...]:
        wanted = frozenset(broker_ids)
        return tuple(PartitionReplica(tp, b) for tp, a in self.assignments.items() for b in a.replicas if b in wanted)

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> tuple[PartitionReplica, ...]:
        return tuple(PartitionReplica(tp, b) for tp in partitions for b in self.replicas(tp))

    @property
    def deletes_topics(self) -> bool:
        """Whether `delete.topic.enable` allows it, by what is configured or by the release's default."""
        configured = self.config.delete_topic_enable
        return self.rules.deletes_topics if configured is None else configured

    def awaits_deletion(self, tp: TopicPartition, broker_id: int) -> bool:
        """Whether a broker's answer that it has deleted this replica says something of its topic's deletion.

        Of old a request of a reassignment, whose replica is assigned no more, has no callback.
        """
        if self.rules.doomed_partitions_go == "last":
            return tp.topic in self.topics_to_be_deleted and broker_id in self.replicas(tp)
        return tp.topic in self.topics_with_deletion_started

    def is_queued_for_deletion(self, topic: str) -> bool:
        return topic in self.topics_to_be_deleted and self.deletes_topics

    def is_imbalanced(self, tp: TopicPartition) -> bool:
        """Whether another replica leads than the first one; while the first is still being added, whether it is in sync already.

        Source: ControllerContext.hasPreferredLeader (2.8).
        """
        assignment, value = self.assignments.get(tp), self.leadership.get(tp)
        if assignment is None or value is None or not assignment.replicas or tp.topic in self.topics_to_be_deleted:
            return False
        preferred = assignment.replicas[0]
        return preferred in value.isr if preferred in assignment.adding else value.leader != preferred

    def copy(self) -> ControllerContext:
        """An independent twin; the values inside are shared, since they are immutable."""
        twin = object.__new__(ControllerContext)
        for name in ControllerContext.__slots__:
            value = getattr(self, name)
            object.__setattr__(twin, name, value.copy() if isinstance(value, dict | set | ReplicaStates) else value)
        return twin


def apply_learn(context: Any, learn: Learn) -> None:
    """Change one field: clear, remove, put. The only way a context changes besides `apply_change`."""
    counted = _counted(context, learn) if learn.field in COUNTED else ()
    before = _count(context, counted) if counted else (0, 0)
    held = getattr(context, learn.field)
    if isinstance(held, ReplicaStates):
        _learn_replica_states(held, learn)
    elif isinstance(held, dict | set):
        if learn.clear:
            held.clear()
        for key in learn.remove:
            held.pop(key, None) if isinstance(held, dict) else held.discard(key)
        held.update(learn.put or ())
    else:
        object.__setattr__(context, learn.field, learn.put)
    if counted:
        _adjust(context, before, _count(context, counted))


def _learn_replica_states(held: ReplicaStates, learn: Learn) -> None:
    by_broker: Any = held.by_broker
    if learn.clear:
        by_broker.clear()
    for replica in learn.remove:
        by_broker.get(replica.broker_id, {}).pop(replica.topic_partition, None)
    for replica, state in (learn.put or {}).items():
        by_broker.setdefault(replica.broker_id, {})[replica.topic_partition] = state


def apply_change(ctx: ControllerContext, change: StateChange) -> None:
    """Carry out one committed move in memory: the subject's state and, where it has one, the partition's leadership."""
    subject, _, state, value, _, _ = change
    states: Any
    tp: Any = subject
    if isinstance(subject, PartitionReplica):
        by_broker: Any = ctx.replica_states.by_broker
        tp, broker_id = subject
        states = by_broker.get(broker_id)
        if states is None:
            states = by_broker[broker_id] = {}
    else:
        states = ctx.partition_states
        if subject.topic not in ctx.topics_with_deletion_started:
            _adjust(ctx, (states.get(tp) is PartitionState.OFFLINE, 0), (state is PartitionState.OFFLINE, 0))
    if state is ReplicaState.NON_EXISTENT or state is PartitionState.NON_EXISTENT:
        states.pop(tp, None)
    else:
        states[tp] = state
    if value is not None:
        before = ctx.is_imbalanced(tp)
        ctx.leadership[tp] = value  # type: ignore[index]
        _adjust(ctx, (0, before), (0, ctx.is_imbalanced(tp)))


# ---------------------------------------------------------------- the two counts

OF_TOPICS = ("topics_to_be_deleted", "topics_with_deletion_started")
COUNTED = ("assignments", "leadership", "partition_states", *OF_TOPICS)

Counts = tuple[int, int]


def _counted(ctx: ControllerContext, learn: Learn) -> Collection[TopicPartition]:
    """The partitions whose counting a change of this field can touch."""
    held = getattr(ctx, learn.field)
    named = dict.fromkeys((*(held if learn.clear else ()), *learn.remove, *(learn.put or ())))
    if learn.field in OF_TOPICS:
        return [tp for tp in ctx.assignments.keys() | ctx.partition_states.keys() if tp.topic in named]
    return named


def _count(ctx: ControllerContext, partitions: Collection[TopicPartition]) -> Counts:
    """How many of these partitions are Offline, and how many are not led by their first replica.

    Those of topics whose deletion has started are not Offline in this sense. Source: updatePartitionStateMetrics (2.8).
    """
    states, going = ctx.partition_states, ctx.topics_with_deletion_started
    offline = sum(states.get(tp) is PartitionState.OFFLINE and tp.topic not in going for tp in partitions)
    return offline, sum(map(ctx.is_imbalanced, partitions))


def _adjust(ctx: ControllerContext, before: Counts, after: Counts) -> None:
    if before != after:
        object.__setattr__(ctx, "offline_partition_count", ctx.offline_partition_count + after[0] - before[0])
        imbalance = ctx.preferred_replica_imbalance_count + after[1] - before[1]
        object.__setattr__(ctx, "preferred_replica_imbalance_count", imbalance)


def full_counts(ctx: ControllerContext) -> Counts:
    """The two counts as a scan over everything finds them."""
    return _count(ctx, ctx.assignments.keys() | ctx.partition_states.keys())
