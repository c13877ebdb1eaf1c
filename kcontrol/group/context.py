"""What a coordinator believes: its partitions, groups and offsets, and the settings it works by. Only the driver writes it.

Source: GroupMetadataManager.scala (0.9, 2.8); the defaults: KafkaConfig.scala and OffsetConfig.scala.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from kcontrol.config import LARGEST_INT
from kcontrol.effects import Learn, MoveGroup
from kcontrol.generations import GroupRules
from kcontrol.group.model import Group, GroupState, Offsets
from kcontrol.group.placement import OFFSETS_TOPIC, partition_for
from kcontrol.model import TopicPartition
from kcontrol.releases import pick

MINUTE_MS = 60_000
# fmt: off
CONFIGS: dict[str, tuple[str, tuple[tuple[str, int], ...]]] = {
    # field                     Kafka's name                          since, default
    "min_session_timeout_ms":  ("group.min.session.timeout.ms",      (("0.9.0", 6_000),)),
    "max_session_timeout_ms":  ("group.max.session.timeout.ms",      (("0.9.0", 30_000), ("0.10.0", 300_000),
                                                                      ("2.3.0", 1_800_000))),
    "initial_delay_ms":        ("group.initial.rebalance.delay.ms",  (("0.9.0", 0), ("0.11.0", 3_000))),
    "max_size":                ("group.max.size",                    (("0.9.0", LARGEST_INT),)),
    "metadata_max":            ("offset.metadata.max.bytes",         (("0.9.0", 4_096),)),
    "retention_ms":            ("offsets.retention.minutes",         (("0.9.0", 1_440 * MINUTE_MS),
                                                                      ("2.0.0", 10_080 * MINUTE_MS))),
    "check_interval_ms":       ("offsets.retention.check.interval.ms", (("0.9.0", 600_000),)),
    "partitions":              ("offsets.topic.num.partitions",      (("0.9.0", 50),)),
}
# fmt: on


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """The settings of one coordinator; `metadata_max` counts characters, as Kafka does in spite of the setting's name."""

    min_session_timeout_ms: int
    max_session_timeout_ms: int
    initial_delay_ms: int
    max_size: int
    metadata_max: int
    retention_ms: int
    check_interval_ms: int
    partitions: int

    @classmethod
    def of(cls, release: str, **changes: int) -> GroupConfig:
        """The defaults of a release, some of them changed. Raises TypeError for a setting that does not exist."""
        return cls(**{name: pick(defaults, release) for name, (_, defaults) in CONFIGS.items()} | changes)


@dataclass(frozen=True, slots=True)
class GroupContext:
    """One broker as coordinator. Partitions are numbers of the offsets topic."""

    rules: GroupRules
    config: GroupConfig

    owned: AbstractSet[int] = field(default_factory=set)
    loading: AbstractSet[int] = field(default_factory=set)
    coordinator_epochs: Mapping[int, int] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    offsets: Mapping[str, Offsets] = field(default_factory=dict)
    ended: Mapping[str, int] = field(default_factory=dict)  # how many groups of each name have left the cache
    unloaded: Mapping[str, Group] = field(
        default_factory=dict
    )  # those that have, while a static member's record is being written

    def partition_of(self, group_id: str) -> int:
        return partition_for(group_id, self.config.partitions)

    def topic_partition(self, group_id: str) -> TopicPartition:
        return TopicPartition(OFFSETS_TOPIC, self.partition_of(group_id))

    def offsets_of(self, group_id: str) -> Offsets:
        return self.offsets.get(group_id, Offsets())

    def incarnation_of(self, group_id: str) -> int:
        """Return the number of the group that has this name now, or will have it next; a write of an earlier one is not its."""
        return self.ended.get(group_id, 0)

    def name_of(self, state: GroupState) -> str:
        """The state as this release calls it."""
        return self.rules.awaiting_name if state is GroupState.COMPLETING else str(state)

    def rebalance_timeout_ms(self, group: Group) -> int:
        return group.rebalance_timeout_ms(is_session=not self.rules.rebalance_timeouts)

    def refusal(self, group_id: str, *, needs_name: bool = True) -> str | None:
        """Why nothing can be said about a group here. Source: each handler's beginning (0.9), validateGroupStatus (2.8)."""
        partition = self.partition_of(group_id)
        if needs_name and not group_id and self.rules.loading_first:
            return "INVALID_GROUP_ID"
        checks = [("NOT_COORDINATOR", partition not in self.owned), ("COORDINATOR_LOAD_IN_PROGRESS", partition in self.loading)]
        if self.rules.loading_first:
            checks.reverse()
        return next((error for error, holds in checks if holds), None)

    def copy(self) -> GroupContext:
        """An independent twin; the values inside are shared, since they are immutable."""
        twin = object.__new__(GroupContext)
        for name in GroupContext.__slots__:
            value: Any = getattr(self, name)
            object.__setattr__(twin, name, value.copy() if isinstance(value, dict | set) else value)
        return twin


def keep(group: Group) -> Learn:
    """The effect that puts a group into the cache, as it is now."""
    return Learn("groups", {group.group_id: group}, context="group")


def unloaded_name(group_id: str, incarnation: int) -> str:
    """Return the key of an unloaded group: its id and the number of its incarnation."""
    return f"{group_id} {incarnation}"


def keep_offsets(group_id: str, offsets: Offsets) -> Learn:
    """The effect that remembers the offsets of a group; none are no entry."""
    if offsets:
        return Learn("offsets", {group_id: offsets}, context="group")
    return Learn("offsets", remove=(group_id,), context="group")


def apply_move(context: GroupContext, move: MoveGroup) -> None:
    """What a move does to memory: the group as it is afterwards, or out of the cache."""
    groups: dict[str, Group] = context.groups  # type: ignore[assignment]
    if move.value is None:
        groups.pop(move.group_id, None)
    else:
        groups[move.group_id] = move.value
