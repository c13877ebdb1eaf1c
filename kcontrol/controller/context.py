"""The memory of one broker's controller: the values that it has read, computed or received.

Handlers only read this memory. Each change passes through `apply_update` or `apply_state_change`
and is one journal record, so the journal can rebuild the memory.

Source: ControllerContext.scala (2.8).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.core.controller_rules import Rules
from kcontrol.core.effects import Context, StateChange, UpdateContext
from kcontrol.core.model import (
    LeaderAndIsr,
    PartitionReplica,
    PartitionState,
    ReplicaAssignment,
    ReplicaState,
    TopicPartition,
)
from kcontrol.core.transitions import NO_CHANGES, Changes
from kcontrol.core.znodes import BrokerEndpoint

if TYPE_CHECKING:
    from kcontrol.controller.design import Design


Brokers = tuple[int, ...]


class ReplicaStates(Mapping[PartitionReplica, ReplicaState]):
    """The states of replicas as a mapping from replica to state, sorted by broker id.

    `by_broker` maps a broker id to a dict from partition to the state of that broker's replica.
    """

    __slots__ = ("by_broker",)

    def __init__(
        self, by_broker: dict[int, dict[TopicPartition, ReplicaState]] | None = None
    ) -> None:
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
class ControllerContext(Context):
    """The memory of one broker's controller; most fields are empty until the broker is elected."""

    broker_id: int
    # What the Kafka release of this broker does where releases differ.
    rules: Rules
    # The tables of this release's controller, such as the handler of each event.
    design: Design
    config: BrokerConfig = field(default_factory=BrokerConfig)
    # The functions with which a user has replaced Kafka's functions.
    changes: Changes = NO_CHANGES

    # Before an election the fields below are empty, except `active_controller_id` (-1 while
    # `/controller` is missing) and, up to 0.8.1, `controller_epoch`.
    active_controller_id: int = -1
    controller_epoch: int = 0
    # The data version of `/controller_epoch`, which fenced writes check.
    controller_epoch_zk_version: int = 0
    # By broker id: the endpoints of the registered brokers, also of brokers that shut down.
    live_brokers: Mapping[int, BrokerEndpoint] = field(default_factory=dict)
    # By broker id: the broker epochs of the registered brokers, -1 before 2.2.
    live_broker_epochs: Mapping[int, int] = field(default_factory=dict)
    # Brokers whose ControlledShutdown the controller has accepted, until they fail.
    shutting_down_broker_ids: AbstractSet[int] = field(default_factory=set)
    # By broker id: the partitions whose log directory on this broker has failed.
    offline_dirs: Mapping[int, frozenset[TopicPartition]] = field(default_factory=dict)
    # The topics in `/brokers/topics`.
    all_topics: AbstractSet[str] = field(default_factory=set)
    # Topic ids by the names of topics (2.8 on).
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    # The assignments in the topic znodes.
    assignments: Mapping[TopicPartition, ReplicaAssignment] = field(default_factory=dict)
    # The leadership in the state znodes.
    leadership: Mapping[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    # A NonExistent partition or replica has no entry.
    partition_states: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    replica_states: ReplicaStates = field(default_factory=ReplicaStates)
    # The topics whose deletion is queued or has started.
    topics_to_be_deleted: AbstractSet[str] = field(default_factory=set)
    # The topics whose deletion has started (2.1 on).
    topics_with_deletion_started: AbstractSet[str] = field(default_factory=set)
    # The topics whose deletion must wait, for example until a dead broker runs again.
    topics_ineligible_for_deletion: AbstractSet[str] = field(default_factory=set)
    # Up to 0.10.2: the state of the delete-topics thread, "waiting" or "signalled"; "" if the
    # thread does not run.
    topic_deletion_thread: str = ""
    # The target replicas of each partition that is being reassigned.
    partitions_being_reassigned: Mapping[TopicPartition, Brokers] = field(default_factory=dict)
    # Up to 0.10.2: whether the scheduler of the automatic leader rebalance runs.
    scheduler_is_running: bool = False
    # Up to 0.10.2: whether channels to the brokers are open. A broker with channels is controller,
    # whatever `/controller` says.
    has_channels: bool = False
    # Up to 0.10.2: whether the partition and replica state machines accept transitions.
    machines_started: bool = False
    # Up to 0.10.2: the partitions whose preferred election is in progress.
    preferred_elections: AbstractSet[TopicPartition] = field(default_factory=set)
    # How many partitions are Offline; `apply_update` and `apply_state_change` update this number
    # and the next one.
    offline_partition_count: int = 0
    # How many partitions are led by another replica than the preferred replica (`is_imbalanced`).
    preferred_replica_imbalance_count: int = 0

    # ---- brokers

    @property
    def is_active(self) -> bool:
        if self.design.active_by_channels:
            return self.has_channels
        return self.active_controller_id == self.broker_id

    @property
    def live_broker_ids(self) -> tuple[int, ...]:
        return tuple(
            b for b in sorted(self.live_broker_epochs) if b not in self.shutting_down_broker_ids
        )

    @property
    def live_or_shutting_down_broker_ids(self) -> tuple[int, ...]:
        return tuple(sorted(self.live_broker_epochs))

    def is_replica_online(
        self, broker_id: int, tp: TopicPartition, *, include_shutting_down: bool = False
    ) -> bool:
        """Return whether the broker is live, and has no failed log directory for `tp`.

        A broker in a controlled shutdown is online only if `include_shutting_down` is true.

        Source: ControllerContext.isReplicaOnline (2.8).
        """
        if broker_id not in self.live_broker_epochs:
            return False
        if broker_id in self.shutting_down_broker_ids and not include_shutting_down:
            return False
        return not self.offline_dirs or tp not in self.offline_dirs.get(broker_id, ())

    # ---- partitions and replicas

    def partition_state(self, tp: TopicPartition) -> PartitionState:
        return self.partition_states.get(tp, PartitionState.NON_EXISTENT)

    def replica_state(self, replica: PartitionReplica) -> ReplicaState:
        states = self.replica_states.by_broker.get(replica[1], {})
        return states.get(replica[0], ReplicaState.NON_EXISTENT)

    def replicas(self, tp: TopicPartition) -> tuple[int, ...]:
        found = self.assignments.get(tp)
        return found.replicas if found else ()

    def target_replicas(self, tp: TopicPartition) -> tuple[int, ...]:
        """Return the target replicas if the partition is being reassigned, else its replicas."""
        return self.partitions_being_reassigned.get(tp) or self.assignments[tp].target

    def online_replicas(
        self, tp: TopicPartition, *, include_shutting_down: bool = False
    ) -> tuple[int, ...]:
        """In the order of the assignment."""
        return tuple(
            b
            for b in self.replicas(tp)
            if self.is_replica_online(b, tp, include_shutting_down=include_shutting_down)
        )

    def partitions_in(self, *states: PartitionState) -> tuple[TopicPartition, ...]:
        return tuple(tp for tp, state in self.partition_states.items() if state in states)

    def partitions_with_offline_leader(self) -> tuple[TopicPartition, ...]:
        """Return the partitions without an online leader whose topic is not being deleted.

        Source: ControllerContext.partitionsWithOfflineLeader (2.8).
        """
        leaders = ((tp, value.leader) for tp, value in self.leadership.items())
        offline = (tp for tp, leader in leaders if not self.is_replica_online(leader, tp))
        return tuple(tp for tp in offline if not self.is_queued_for_deletion(tp.topic))

    def replicas_on(self, broker_ids: Iterable[int]) -> tuple[PartitionReplica, ...]:
        wanted = frozenset(broker_ids)
        every = ((tp, b) for tp, a in self.assignments.items() for b in a.replicas)
        return tuple(PartitionReplica(tp, b) for tp, b in every if b in wanted)

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> tuple[PartitionReplica, ...]:
        return tuple(PartitionReplica(tp, b) for tp in partitions for b in self.replicas(tp))

    @property
    def deletes_topics(self) -> bool:
        """Return `delete.topic.enable`: the configured value, else the release's default."""
        configured = self.config.delete_topic_enable
        return self.rules.deletes_topics if configured is None else configured

    def is_deletion_in_progress(self, tp: TopicPartition, broker_id: int) -> bool:
        """Return whether a StopReplica response of `broker_id` for `tp` is due to a topic deletion.

        If not, the request had another reason, such as a reassignment that removed the replica.

        Source: ControllerBrokerRequestBatch.sendStopReplicaRequests, responseCallback (2.8).
        """
        # Before 2.1: the topic is queued for deletion, and the replica is still assigned. A replica
        # that a reassignment has removed is not assigned any more.
        if self.rules.deleted_partitions_end == "last":
            return tp.topic in self.topics_to_be_deleted and broker_id in self.replicas(tp)
        return tp.topic in self.topics_with_deletion_started

    def is_queued_for_deletion(self, topic: str) -> bool:
        return topic in self.topics_to_be_deleted and self.deletes_topics

    def is_imbalanced(self, tp: TopicPartition) -> bool:
        """Return whether another replica than the preferred replica leads the partition.

        Return False without leadership or replicas, and for a topic that is being deleted.

        Source: ControllerContext.hasPreferredLeader (2.8).
        """
        assignment, value = self.assignments.get(tp), self.leadership.get(tp)
        if not (assignment and value and assignment.replicas):
            return False
        if tp.topic in self.topics_to_be_deleted:
            return False
        preferred = assignment.replicas[0]
        # While a reassignment adds the preferred replica, Kafka asks whether that replica is in the
        # ISR.
        is_added = preferred in assignment.adding
        return preferred in value.isr if is_added else value.leader != preferred


def apply_update(context: Any, update: UpdateContext) -> None:
    """Change the field `update.field` of the memory of a controller, broker or coordinator.

    For a mapping or set: first empty it if `update.clear`, remove `update.remove`, then add
    `update.put`. Any other field gets the value `update.put`.
    """
    counted = _counted(context, update) if update.field in COUNTED else ()
    before = _count(context, counted) if counted else (0, 0)
    held = getattr(context, update.field)
    if isinstance(held, ReplicaStates):
        _update_replica_states(held, update)
    elif isinstance(held, dict | set):
        if update.clear:
            held.clear()
        for key in update.remove:
            held.pop(key, None) if isinstance(held, dict) else held.discard(key)
        held.update(update.put or ())
    else:
        object.__setattr__(context, update.field, update.put)
    if counted:
        _adjust(context, before, _count(context, counted))


def _update_replica_states(replica_states: ReplicaStates, update: UpdateContext) -> None:
    by_broker: Any = replica_states.by_broker
    if update.clear:
        by_broker.clear()
    for replica in update.remove:
        by_broker.get(replica.broker_id, {}).pop(replica.topic_partition, None)
    for replica, state in (update.put or {}).items():
        by_broker.setdefault(replica.broker_id, {})[replica.topic_partition] = state


def apply_state_change(ctx: ControllerContext, change: StateChange) -> None:
    """Store the new state of the partition or replica `change.subject`, and its leadership.

    A `change.leadership` of None leaves the stored leadership unchanged.
    """
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
            was_offline = states.get(tp) is PartitionState.OFFLINE
            _adjust(ctx, (was_offline, 0), (state is PartitionState.OFFLINE, 0))
    # A NonExistent partition or replica has no entry in the states.
    if state is ReplicaState.NON_EXISTENT or state is PartitionState.NON_EXISTENT:
        states.pop(tp, None)
    else:
        states[tp] = state
    if value is not None:
        before, lists = ctx.leadership.get(tp), ctx.assignments.get(tp)
        # While a reassignment adds the preferred replica, the ISR counts too.
        counts = not before or before.leader != value.leader or bool(lists and lists.adding)
        was_imbalanced = counts and ctx.is_imbalanced(tp)
        ctx.leadership[tp] = value  # type: ignore[index]
        if counts:
            _adjust(ctx, (0, was_imbalanced), (0, ctx.is_imbalanced(tp)))


# ---------------------------------------------------------------- the two counts

OF_TOPICS = ("topics_to_be_deleted", "topics_with_deletion_started")
COUNTED = ("assignments", "leadership", "partition_states", *OF_TOPICS)

Counts = tuple[int, int]


def _counted(ctx: ControllerContext, update: UpdateContext) -> Collection[TopicPartition]:
    """The partitions whose Offline state or imbalance `update` may change."""
    held = getattr(ctx, update.field)
    named = dict.fromkeys((*(held if update.clear else ()), *update.remove, *(update.put or ())))
    # The update names topics: the result has all their partitions.
    if update.field in OF_TOPICS:
        return [
            tp for tp in ctx.assignments.keys() | ctx.partition_states.keys() if tp.topic in named
        ]
    return named


def _count(ctx: ControllerContext, partitions: Collection[TopicPartition]) -> Counts:
    """Return how many of the partitions are Offline, and how many are imbalanced (`is_imbalanced`).

    A partition of a topic whose deletion has started does not count as Offline.

    Source: ControllerContext.updatePartitionStateMetrics (2.8).
    """
    states, going = ctx.partition_states, ctx.topics_with_deletion_started
    offline = sum(
        states.get(tp) is PartitionState.OFFLINE and tp.topic not in going for tp in partitions
    )
    return offline, sum(map(ctx.is_imbalanced, partitions))


def _adjust(ctx: ControllerContext, before: Counts, after: Counts) -> None:
    if before != after:
        offline = ctx.offline_partition_count + after[0] - before[0]
        object.__setattr__(ctx, "offline_partition_count", offline)
        imbalance = ctx.preferred_replica_imbalance_count + after[1] - before[1]
        object.__setattr__(ctx, "preferred_replica_imbalance_count", imbalance)
