"""Makes tables of consumer groups (members, committed offsets, states) from a run's state after a journal record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kcontrol.lab.support.late import frames, pd
from kcontrol.views import group_state

if TYPE_CHECKING:
    from kcontrol.lab.run import Run

State = Mapping[str, Any]
MEMBERS = ("group_id", "coordinator", "state", "generation", "member_id", "client_id", "leads", "waits_for", "partitions")
OFFSETS = ("group_id", "coordinator", "partition", "offset", "metadata")


def members(run: Run) -> pd.DataFrame:
    """Each member of each consumer group, from the memory of the group's coordinator.

    `waits_for` is the member's parked request, "join" or "sync"; "" without a parked request.
    """
    rows = [(*group[:4], *member) for group in group_state.groups(run.state, run._played) for member in group.members]
    return frames.Frame(rows, columns=list(MEMBERS)).set_index("group_id")


def offsets(run: Run) -> pd.DataFrame:
    """Each committed offset of each consumer group, from the memory of the group's coordinator."""
    rows = [
        (group, broker, partition, stored["value"]["offset"], stored["value"]["metadata"])
        for broker, group, held in group_state.cached(run.state, "offsets")
        for partition, stored in sorted(held["committed"].items())
    ]
    return frames.Frame(rows, columns=list(OFFSETS)).set_index("group_id")


def states(state: State) -> dict[str, str]:
    """Return the state of each group in a coordinator's cache, under its name in 2.8, by group id."""
    return {group: str(held["state"]) for _, group, held in group_state.cached(state, "groups")}
