"""The settings of a run: with an in-memory ZooKeeper, equal settings and equal actions give an equal journal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.core.controller_rules import Rules, rules
from kcontrol.core.errors import UserError
from kcontrol.core.releases import PLAYABLE_RELEASES
from kcontrol.core.rule_fields import declared
from kcontrol.core.transitions import NO_CHANGES, Changes
from kcontrol.group.group_rules import GroupRules, group_rules

FAULTS = ("kill", "start", "expire_session", "terminate", "freeze", "thaw", "shrink_isr", "drop_request", "duplicate_request",
          "delete_controller", "produce", "delete_topic")  # fmt: skip

UNSPECIFIED = BrokerConfig()
"""Stands for the default broker configuration of the run's release."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one simulated run: release, brokers, seed, configuration, consumers, faults, changed rules."""

    release: str = "2.8"
    brokers: tuple[int, ...] = (1, 2, 3)
    # Decides everything that Kafka draws at random, such as the replicas of a new topic.
    seed: int = 0
    # The settings of the brokers under Kafka's names; UNSPECIFIED stands for the defaults of the release.
    config: BrokerConfig = UNSPECIFIED
    # Topics that `actions()` may offer to create, with the replicas of their partitions.
    topics: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    # The kinds of faults that `actions()` lists; `step` performs every fault in any run.
    faults: tuple[str, ...] = ()
    # True: requests of a controller to brokers arrive in the step in which they are sent.
    instant_requests: bool = False
    # False: `World.run` performs no fetches, so no replica catches up.
    followers: bool = True
    # True: brokers store records, each replica has a log, and the ISR follows from the offsets of fetches.
    data: bool = False
    # Consumer's name to its group. With consumers, brokers have group coordinators, and `data` becomes True.
    consumers: Mapping[str, str] = field(default_factory=dict)
    # Consumer's name to its settings under Kafka's names.
    consumer_configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # Settings of the group coordinators that differ from the release's defaults, by field of GroupConfig: {"partitions": 3}.
    group_config: Mapping[str, int] = field(default_factory=dict)
    # True: coordinators write journal records about the delayed operations in their purgatories.
    purgatory: bool = False
    # Rules with another value than in the release, by name: {"fenced_writes": False}.
    rule_changes: Mapping[str, Any] = field(default_factory=dict)
    # Functions of a learner that replace functions of kcontrol.
    changes: Changes = NO_CHANGES
    # The result of `rules()`, None before the first call; stored, since a search needs it at every step.
    _rules: Rules | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.config is UNSPECIFIED:
            object.__setattr__(self, "config", BrokerConfig.of(self.release))
        if self.consumers:
            object.__setattr__(self, "data", True)

    def rules(self) -> Rules:
        """Raises UserError for a release that cannot be simulated, and for a change of the rule `design`."""
        if self._rules is None:
            object.__setattr__(self, "_rules", self._chosen())
        assert self._rules is not None
        return self._rules

    def _chosen(self) -> Rules:
        chosen = rules(self.release)
        if not any(self.release == line or self.release.startswith(f"{line}.") for line in PLAYABLE_RELEASES):
            raise UserError(f"Kafka {self.release} cannot be played; choose {', '.join(PLAYABLE_RELEASES)}.")
        if self.rule_changes.get("design") not in (None, chosen.design):
            raise UserError(
                f"The rule design cannot be changed in Kafka {self.release}, where it is {chosen.design!r}: other rules and "
                "the threads of a broker depend on it; name a release that has the other design."
            )
        return chosen.with_changes(**self._changes_of(Rules))

    def group_rules(self) -> GroupRules:
        """Return the rules of the release's group coordinator with this run's `rule_changes`."""
        return group_rules(self.release).with_changes(**self._changes_of(GroupRules))

    def _changes_of(self, rules_class: type[Rules | GroupRules]) -> dict[str, Any]:
        other = declared(GroupRules if rules_class is Rules else Rules)
        return {name: value for name, value in self.rule_changes.items() if name not in other}
