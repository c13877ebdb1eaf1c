"""What a lab shows of consumer groups, from a folded state: members, offsets, and the states of groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from kcontrol.generations import group_rules
from kcontrol.group.group_machine import GROUP_TRANSITIONS, transitions
from kcontrol.group.records import decode
from kcontrol.lab.frames import Frame
from kcontrol.transitions import TransitionTable

State = Mapping[str, Any]
MEMBERS = ("group", "coordinator", "state", "generation", "member", "client", "leads", "waits_for", "partitions")
OFFSETS = ("group", "coordinator", "partition", "offset", "metadata")


def cached(state: State, field: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """What coordinators hold: broker, group, and what it has of it."""
    for broker, node in sorted(state["nodes"].items()):
        for group, held in sorted(node.get("group", {}).get(field, {}).items()):
            yield int(broker), group, held


def members(state: State) -> pd.DataFrame:
    """One row per member of each group, as its coordinator believes."""
    rows = [
        (
            group,
            broker,
            held["state"],
            held["generation"],
            id,
            m["client_id"],
            id == held["leader"],
            _waits_for(m),
            _partitions(m),
        )
        for broker, group, held in cached(state, "groups")
        for id, m in held["members"].items()
    ]
    return Frame(rows, columns=list(MEMBERS)).set_index("group")


def _waits_for(member: Mapping[str, Any]) -> str:
    return "join" if member["awaiting_join"] else "sync" if member["awaiting_sync"] else ""


def _partitions(member: Mapping[str, Any]) -> list[str]:
    """What a member was assigned by the consumer protocol; nothing for an assignment of another form."""
    try:
        fields = decode("assignment", bytes.fromhex(member["assignment"]))[1]
    except ValueError:
        return []
    return [f"{entry['topic']}-{number}" for entry in fields["partitions"] for number in entry["partitions"]]


def offsets(state: State) -> pd.DataFrame:
    """One row per committed offset of each group."""
    rows = [
        (group, broker, partition, stored["value"]["offset"], stored["value"]["metadata"])
        for broker, group, held in cached(state, "offsets")
        for partition, stored in sorted(held["committed"].items())
    ]
    return Frame(rows, columns=list(OFFSETS)).set_index("group")


def table(release: str) -> TransitionTable:
    """The machine of a release's groups; where it has none, that of later ones."""
    try:
        return transitions(group_rules(release))
    except ValueError:
        return GROUP_TRANSITIONS


def states(state: State) -> dict[str, str]:
    """The state of every group that a coordinator has in its cache."""
    return {group: str(held["state"]) for _, group, held in cached(state, "groups")}
