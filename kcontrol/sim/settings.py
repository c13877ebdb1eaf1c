"""What a run is made of besides its actions: equal settings and equal actions give an equal journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kcontrol.config import BrokerConfig
from kcontrol.errors import UserError
from kcontrol.generations import Rules, rules

PLAYED = ("0.8.0", "0.8.1", "0.8.2", "0.9", "0.10.2", "0.11.0", "1.0", "1.1", "2.4", "2.8", "3.9")
"""The release lines whose handlers are here whole; of others there are single rules, for `rule_changes`."""

FAULTS = ("kill", "start", "expire", "term", "freeze", "thaw", "shrink", "lose", "duplicate", "delete_controller", "produce",
          "delete_topic")  # fmt: skip

UNSAID = BrokerConfig()
"""Stands for the defaults of the release, whichever it is."""


@dataclass(frozen=True, slots=True)
class Settings:
    """`faults` are those that `actions()` offers by itself; every fault can be asked for at any time.

    `instant_requests` delivers requests in the step in which they are sent; without `followers` no replica ever catches up.
    With `data` every replica has a log: there is `produce`, and the ISR follows from what followers have fetched.
    `consumers` are names with their groups: only with some are there coordinators, with `group_config` for their settings.
    `rule_changes` are rules that differ from the release's, `replace` a learner's own functions by name.
    """

    release: str = "2.8"
    brokers: tuple[int, ...] = (1, 2, 3)
    seed: int = 0
    config: BrokerConfig = UNSAID
    topics: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    instant_requests: bool = False
    followers: bool = True
    data: bool = False
    consumers: Mapping[str, str] = field(default_factory=dict)
    group_config: Mapping[str, int] = field(default_factory=dict)
    rule_changes: Mapping[str, Any] = field(default_factory=dict)
    replace: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    _rules: Rules | None = field(default=None, init=False, repr=False, compare=False)  # asked for at every step of a search

    def __post_init__(self) -> None:
        if self.config is UNSAID:
            object.__setattr__(self, "config", BrokerConfig.of(self.release))

    def rules(self) -> Rules:
        """The rules of the release with this run's changes. Raises UserError for a release that is not played here."""
        if self._rules is None:
            object.__setattr__(self, "_rules", self._chosen())
        assert self._rules is not None
        return self._rules

    def _chosen(self) -> Rules:
        chosen = rules(self.release)
        if not any(self.release == line or self.release.startswith(f"{line}.") for line in PLAYED):
            raise UserError(f"Kafka {self.release} is not played here yet; there is {', '.join(PLAYED)}.")
        return chosen.but(**self.rule_changes)
