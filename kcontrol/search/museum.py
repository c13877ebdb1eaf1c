"""MUSEUM: published bugs of Kafka. One rule per bug brings the bug back into 2.8, and a search finds the bug.

A rule is a difference between releases; its table (`core/controller_rules.py`, `group/group_rules.py`) has the releases with
the bug and the release of the fix.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kcontrol.cluster.consumer_clients import REQUESTED
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import Action, World
from kcontrol.core.controller_rules import Rules
from kcontrol.core.rule_fields import Rule, declared
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.group.group_rules import GroupRules
from kcontrol.search.promises import Promise, always
from kcontrol.search.search import Budget, SearchResult, search_within

RELEASE = "2.8"
DECLARED: Mapping[str, Rule] = {**declared(Rules), **declared(GroupRules)}


class Exhibit(NamedTuple):
    """One published bug of Kafka, which breaks the invariant `invariant`.

    Releases in which the rule named `rule` has the value `restored` have the bug.
    """

    # Such as "KAFKA-6082".
    ticket: str
    # Such as "fenced_writes".
    rule: str
    # The value of the rule in a release with the bug, such as False.
    restored: Any
    # Such as "a deposed controller writes nothing".
    invariant: str
    # The bug, as one sentence.
    bug: str
    # Takes the rules that differ from 2.8, such as {"fenced_writes": False}, and returns the world in which the search begins.
    begin: Callable[[Mapping[str, Any]], World]
    # The bounds of the search that finds the bug.
    budget: Budget
    # The method of Kafka with the fix, and its release.
    source: str

    @property
    def releases(self) -> tuple[str, str]:
        """The first release of Kafka that has this bug, and the first later release without it, such as ("0.8.0", "2.2.0")."""
        rows = DECLARED[self.rule].rows
        at = next(n for n, (_, value) in enumerate(rows) if value == self.restored)
        return rows[at][0], rows[at + 1][0]

    @property
    def promise(self) -> Promise:
        return always(self.invariant)

    def world(self, *, restored: bool = True) -> World:
        """Where the search begins: 2.8 with this bug, or as it is."""
        return self.begin({self.rule: self.restored} if restored else {})

    def search(self, *, restored: bool = True) -> SearchResult:
        return search_within(self.world(restored=restored), self.budget, (self.promise,))


def _quiet(rule_changes: Mapping[str, Any], faults: tuple[str, ...], brokers: tuple[int, ...] = (1, 2), **settings: Any) -> World:
    """2.8 at rest; each request arrives in the step that sends it."""
    world = World(
        Settings(RELEASE, brokers, faults=faults, instant_requests=True, followers=False, rule_changes=rule_changes, **settings)
    )
    return _after(world, *(("start", broker) for broker in brokers))


def _after(world: World, *actions: Action) -> World:
    """Perform the actions in `world`, and run the cluster after each action until it has nothing to do; return `world`."""
    for action in actions:
        world.step(action)
        world.run()
    return world


def _creation(fault: str) -> Callable[[Mapping[str, Any]], World]:
    """The controller has not handled a new topic yet; `fault` is the kind that the search tries."""

    def begin(rule_changes: Mapping[str, Any]) -> World:
        world = _quiet(rule_changes, (fault,))
        world.step(("create_topic", "t", ((1, 2),)))
        return world

    return begin


def _restart(rule_changes: Mapping[str, Any]) -> World:
    """Broker 2 of two, the leader of t-0, was killed, and will soon register again."""
    world = _after(_quiet(rule_changes, ("expire_session",)), ("create_topic", "t", ((2, 1),)))
    for action in (("kill", 2), ("start", 2), ("begin", 2, "main"), *[("advance", 2, "main")] * 13):
        world.step(action)
    return world


def _stable_group(rule_changes: Mapping[str, Any]) -> World:
    """One broker, and a group with the members a and b, in generation 2 and Stable."""
    members = {"consumers": {"a": "g", "b": "g"}, "group_config": {"initial_delay_ms": 0}}
    topics: list[Action] = [("create_topic", topic, ((1,),)) for topic in ("t", OFFSETS_TOPIC)]
    world = _after(_quiet(rule_changes, REQUESTED, (1,), **members), *topics)
    a_alone = (*[("join", "a")] * 2, ("fire_timer", 1, "join g"), ("sync", "a"))
    both = (*[("join", "b")] * 2, ("join", "a"), ("sync", "a"), ("sync", "b"))
    return _after(world, *a_alone, *both)


# fmt: off
MUSEUM: tuple[Exhibit, ...] = (
    Exhibit("KAFKA-6082", "fenced_writes", False, "a deposed controller writes nothing",
            "A controller writes a decision after the next controller has registered.",
            _creation("delete_controller"), Budget(20, 1, 100_000, 60),
            "KafkaZkClient.retryRequestsUntilConnected with an expected epoch version (2.1)"),
    Exhibit("KAFKA-3083", "handlers_outlive_session", True, "only the named controller writes",
            "A handler goes on in the session that replaces an expired one, and writes although its broker has lost /controller.",
            _creation("expire_session"), Budget(20, 1, 100_000, 60),
            "KafkaController.startup: beforeInitializingSession waits until Expire is handled (1.1, KAFKA-5642)"),
    Exhibit("KAFKA-7235", "broker_epochs", False, "leaders know",
            "A broker restarts between two reads of /brokers/ids; the controller does not notice, and sends it no LeaderAndIsr.",
            _restart, Budget(16, 1, 100_000, 60),
            "KafkaController.processBrokerChange, bouncedBrokerIds (2.2), KIP-380"),
    Exhibit("KAFKA-7196", "ends_removed_sessions", False, "a removed member has no deadline",
            "The deadline of a member that a rebalance has removed begins one more rebalance.",
            _stable_group, Budget(10, 3, 100_000, 300),
            "GroupCoordinator.onCompleteJoin, removeHeartbeatForLeavingMember (2.0.1)"),
)
# fmt: on
BY_RULE: Mapping[str, Exhibit] = {row.rule: row for row in MUSEUM}
