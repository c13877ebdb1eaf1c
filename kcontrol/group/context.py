"""The memory of one coordinator: its partitions, groups and offsets, and its settings.

Handlers read the memory; only the driver changes it. All values are immutable, so a copy of the
memory shares them.

Source: GroupMetadataManager.scala (0.9, 2.8); the defaults: KafkaConfig.scala and
OffsetConfig.scala.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kcontrol.broker.broker_configs import LARGEST_INT
from kcontrol.core.effects import Context, TransitionGroup, UpdateContext
from kcontrol.core.model import TopicPartition
from kcontrol.core.releases import value_in_force
from kcontrol.core.transitions import NO_CHANGES, Changes
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC, partition_for
from kcontrol.group.group_rules import GroupRules
from kcontrol.group.model import Group, GroupState, Offsets

MINUTE_MS = 60_000
# fmt: off
CONFIGS: dict[str, tuple[str, tuple[tuple[str, int], ...]]] = {
    # field                     Kafka's name                          since, default
    "min_session_timeout_ms":  ("group.min.session.timeout.ms",      (("0.9.0", 6_000),)),
    "max_session_timeout_ms":  ("group.max.session.timeout.ms",
                                (("0.9.0", 30_000), ("0.10.0", 300_000), ("2.3.0", 1_800_000))),
    "initial_delay_ms":        ("group.initial.rebalance.delay.ms",
                                (("0.9.0", 0), ("0.11.0", 3_000))),
    "max_size":                ("group.max.size",                    (("0.9.0", LARGEST_INT),)),
    "metadata_max":            ("offset.metadata.max.bytes",         (("0.9.0", 4_096),)),
    "retention_ms":            ("offsets.retention.minutes",
                                (("0.9.0", 1_440 * MINUTE_MS), ("2.0.0", 10_080 * MINUTE_MS))),
    "check_interval_ms":       ("offsets.retention.check.interval.ms", (("0.9.0", 600_000),)),
    "partitions":              ("offsets.topic.num.partitions",      (("0.9.0", 50),)),
    "replication_factor":      ("offsets.topic.replication.factor",  (("0.9.0", 3),)),
    "commit_timeout_ms":       ("offsets.commit.timeout.ms",         (("0.9.0", 5_000),)),
    "required_acks":           ("offsets.commit.required.acks",      (("0.9.0", -1),)),
    "load_buffer_size":        ("offsets.load.buffer.size",          (("0.9.0", 5_242_880),)),
    "segment_bytes":           ("offsets.topic.segment.bytes",       (("0.9.0", 104_857_600),)),
    "compression_codec":       ("offsets.topic.compression.codec",   (("0.9.0", 0),)),
}
# fmt: on


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """The settings of a group coordinator; all times are in ms.

    `metadata_max` counts characters, as Kafka does although offset.metadata.max.bytes says bytes.
    """

    # group.min.session.timeout.ms and group.max.session.timeout.ms.
    min_session_timeout_ms: int
    max_session_timeout_ms: int
    # group.initial.rebalance.delay.ms, group.max.size and offset.metadata.max.bytes.
    initial_delay_ms: int
    max_size: int
    metadata_max: int
    # offsets.retention.minutes, in ms, and offsets.retention.check.interval.ms.
    retention_ms: int
    check_interval_ms: int
    # Of the offsets topic: offsets.topic.num.partitions and offsets.topic.replication.factor.
    partitions: int
    replication_factor: int
    # offsets.commit.timeout.ms, and offsets.commit.required.acks: -1 (all), 0 or 1.
    commit_timeout_ms: int
    required_acks: int
    # In bytes: offsets.load.buffer.size and offsets.topic.segment.bytes.
    load_buffer_size: int
    segment_bytes: int
    # offsets.topic.compression.codec: 0 (none), 1 (gzip), 2 (snappy), 3 (lz4) or 4 (zstd).
    compression_codec: int

    @classmethod
    def of(cls, release: str, **changes: int) -> GroupConfig:
        """Raises TypeError for an unknown field."""
        rows = CONFIGS.items()
        return cls(**{name: value_in_force(row, release) for name, (_, row) in rows} | changes)


@dataclass(frozen=True, slots=True)
class GroupContext(Context):
    """The memory of one broker as coordinator; partitions are numbers of the offsets topic."""

    # The rules (differences between releases) of this broker's release, and the broker's settings.
    rules: GroupRules
    config: GroupConfig

    # The partitions that this broker coordinates.
    owned: AbstractSet[int] = field(default_factory=set)
    # The partitions whose log this broker reads now.
    loading: AbstractSet[int] = field(default_factory=set)
    # The last known leader epoch by partition (2.8 on).
    coordinator_epochs: Mapping[int, int] = field(default_factory=dict)
    # The cache of groups and offsets, by group id.
    groups: Mapping[str, Group] = field(default_factory=dict)
    offsets: Mapping[str, Offsets] = field(default_factory=dict)
    # By group id: how many groups with this id have left the cache.
    ended: Mapping[str, int] = field(default_factory=dict)
    # Groups that left the cache while the record of a static member's new id was being written to
    # the log; a key is a group's `unloaded_name`, such as "my-group 0".
    unloaded: Mapping[str, Group] = field(default_factory=dict)
    # The functions of a user of the lab that replace functions of Kafka; a key is the name of a
    # function, or a transition.
    changes: Changes = NO_CHANGES
    # Whether the driver writes the steps of delayed operations to the journal.
    logs_operations: bool = False

    def partition_of(self, group_id: str) -> int:
        return partition_for(group_id, self.config.partitions)

    def topic_partition(self, group_id: str) -> TopicPartition:
        return TopicPartition(OFFSETS_TOPIC, self.partition_of(group_id))

    def replicas_of_new_topic(self, live_brokers: int) -> int | None:
        """Return the replication factor of a new offsets topic.

        With fewer live brokers than the configured factor return None: no topic may be created. Up
        to 0.10.2 return `live_brokers` instead of None.

        Source: getTopicMetadata (0.9.0.1), createGroupMetadataTopic (0.10.2.2) and
        createInternalTopic (0.11.0, 2.7.2) of KafkaApis.scala, ZkAdminManager.createTopics (2.8.2).
        """
        # `live_brokers` is the number of live brokers in the broker's metadata.
        factor = self.config.replication_factor
        if self.rules.needs_offsets_replicas:
            return factor if factor <= live_brokers else None
        return min(factor, live_brokers or factor)

    def offsets_of(self, group_id: str) -> Offsets:
        """Return the offsets of a group; an empty `Offsets` if the cache has none for the group."""
        return self.offsets.get(group_id, Offsets())

    def incarnation_of(self, group_id: str) -> int:
        """Return the group's number: how many groups with this id have left the cache before."""
        # The event at the end of a write has the number of the group that wrote, so a later group
        # with this id ignores the event.
        return self.ended.get(group_id, 0)

    def name_of(self, state: object) -> str:
        """COMPLETING is "AwaitingSync" before 1.1, then "CompletingRebalance"."""
        completing = self.rules.completing_rebalance_name
        return completing if state is GroupState.COMPLETING else str(state)

    def rebalance_timeout_ms(self, group: Group) -> int:
        """The longest join phase: before 0.10.1 by session timeouts. 0 without members."""
        return group.rebalance_timeout_ms(is_session=not self.rules.rebalance_timeouts)

    def validate_group_status(self, group_id: str, *, needs_name: bool = True) -> str | None:
        """Return None if this broker coordinates the group and has loaded it, else the error.

        The error is NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS; since 2.0 an empty group id
        gets INVALID_GROUP_ID, unless `needs_name` is False.

        Source: the beginning of each handler (0.9), validateGroupStatus (2.8) of
        GroupCoordinator.scala.
        """
        partition = self.partition_of(group_id)
        if needs_name and not group_id and self.rules.loading_first:
            return "INVALID_GROUP_ID"
        missing = "NOT_COORDINATOR" if partition not in self.owned else None
        loading = "COORDINATOR_LOAD_IN_PROGRESS" if partition in self.loading else None
        return loading or missing if self.rules.loading_first else missing or loading


def cache_group(group: Group) -> UpdateContext:
    """Return the effect that puts a group into the cache."""
    return UpdateContext("groups", {group.group_id: group}, context="group")


def unloaded_name(group_id: str, incarnation: int) -> str:
    """Such as "my-group 0": the id, and how many groups with this id have left the cache before."""
    return f"{group_id} {incarnation}"


def cache_offsets(group_id: str, offsets: Offsets) -> UpdateContext:
    """Without offsets the group has no entry in the cache."""
    if offsets:
        return UpdateContext("offsets", {group_id: offsets}, context="group")
    return UpdateContext("offsets", remove=(group_id,), context="group")


def apply_transition(ctx: GroupContext, effect: TransitionGroup) -> None:
    """`effect.group` None: the group leaves the cache with this transition."""
    groups: dict[str, Group] = ctx.groups  # type: ignore[assignment]
    if effect.group is None:
        groups.pop(effect.group_id, None)
    else:
        groups[effect.group_id] = effect.group
