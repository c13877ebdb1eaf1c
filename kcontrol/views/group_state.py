"""Functions that find the consumer groups, their members and their partitions in a state that `journal.fold` returns.

The states of groups have the names that they have in the run's release.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kcontrol.core.rule_fields import LAST_RELEASE
from kcontrol.core.transitions import TransitionTable
from kcontrol.group.group_rules import group_rules
from kcontrol.group.offsets_topic_records import decode
from kcontrol.views import folded_state

State = Mapping[str, Any]


class Member(NamedTuple):
    """One member of a group, as the coordinator has it in its cache; `leads` is True for the leader of the group."""

    member_id: str
    # The client id.
    client: str
    leads: bool
    # The member's parked request: "join", "sync" or "".
    waits_for: str
    # The assigned partitions, such as "t-0".
    partitions: list[str]

    @property
    def words(self) -> str:
        """Return the member in words, such as "anna-1, leader, waits for the answer to JoinGroup: t-0, t-1"."""
        leads = ", leader" if self.leads else ""
        waits = f", waits for the answer to {WAITS[self.waits_for]}" if self.waits_for else ""
        return f"{self.member_id}{leads}{waits}: {', '.join(self.partitions) or 'no partition'}"


WAITS = {"join": "JoinGroup", "sync": "SyncGroup"}


class Group(NamedTuple):
    """One group in the memory of a coordinator, with the name of its state in the run's release."""

    # The group id.
    group: str
    # The id of the coordinator's broker.
    coordinator: int
    state: str
    generation: int
    members: list[Member]
    # All fields of the group as the journal has them.
    held: Mapping[str, Any]

    @property
    def words(self) -> str:
        """Return the group in words, such as "group billing: Stable, generation 2, coordinator 1"."""
        return f"group {self.group}: {self.state}, generation {self.generation}, coordinator {self.coordinator}"


def state_name(state: str, release: str) -> str:
    """Return the name of a group's state in a release, such as AwaitingSync for CompletingRebalance in 0.9."""
    if state != group_rules(LAST_RELEASE).completing_rebalance_name:
        return state
    try:
        return group_rules(release).completing_rebalance_name
    except ValueError:
        return state


def state_names(table: TransitionTable, release: str) -> dict[str, str]:
    """From kcontrol's names to Kafka's in `release`: {"CompletingRebalance": "AwaitingSync"} before 1.1."""
    found = {str(state) for row in table for state in row[:2]}
    return {str(state): state_name(str(state), release) for state in table.states if str(state) in found}


def cached(state: State, field: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """(broker, group id, value), sorted; `field` is "groups" or "offsets"."""
    for broker, node in folded_state.nodes(state):
        for group, held in sorted(node.get("group", {}).get(field, {}).items()):
            yield broker, group, held


def groups(state: State, release: str) -> list[Group]:
    """Return the groups in the memory of running coordinators, sorted by broker and group id; states have the release's names."""
    return [
        Group(group, broker, state_name(held["state"], release), held["generation"], list(_members(held)), held)
        for broker, group, held in cached(state, "groups")
    ]


def _members(held: Mapping[str, Any]) -> Iterator[Member]:
    for id, member in held["members"].items():
        waits_for = "join" if member["awaiting_join"] else "sync" if member["awaiting_sync"] else ""
        yield Member(id, member["client_id"], id == held["leader"], waits_for, partitions(member["assignment"]))


def partitions(assignment: str) -> list[str]:
    """`assignment` is hexadecimal text; [] for text that is no assignment."""
    try:
        fields = decode("assignment", bytes.fromhex(assignment))[1]
    except ValueError:
        return []
    return [f"{entry['topic']}-{number}" for entry in fields["partitions"] for number in entry["partitions"]]
