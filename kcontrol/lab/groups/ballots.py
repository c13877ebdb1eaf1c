"""The vote on a group's protocol as a table of ballots: one row for each member, and a last row with the winner.

Candidates are the protocols that all members offer; each member votes for the first candidate of its own list.

Source: selectProtocol, candidateProtocols of GroupMetadata.scala, vote of MemberMetadata.scala (0.9, 2.8).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kcontrol.core.errors import UserError
from kcontrol.group.model import Group, GroupProtocol, GroupState, Member, Members
from kcontrol.lab.run import Run
from kcontrol.lab.support import arguments
from kcontrol.lab.support.late import frames, pd
from kcontrol.views import group_state, text

ALL_MEMBERS = "all members"


def ballots(run: Run, group: str | None = None) -> pd.DataFrame:
    """The vote on a group's assignor: one row per member, and a last row with the winner.

    `group` is by default the only group with members. Raises UserError for a group without members, and for None if several
    groups have members.
    """
    found = {name: held for _, name, held in group_state.cached(run.state, "groups") if held["members"]}
    name = next(iter(found)) if group is None and len(found) == 1 else group
    if name not in [*found]:
        wrong = "Name one group with members" if group is None else f"Group {arguments.shown(group)} has no members"
        raise UserError(f"{wrong}; groups with members: {text.listed(found, 30) or 'none'}.")
    voting = Group(name, GroupState.PREPARING, members=Members(_member(id, held) for id, held in found[name]["members"].items()))
    # The functions that vote are those of the coordinator (`group/model.py`). In a tie Kafka takes the first of a hash map,
    # kcontrol the protocol with the earliest vote.
    candidates = voting.candidates
    rows = []
    for member in voting.members.values():
        names = member.protocol_names
        rows.append((member.client_id, list(names), [name for name in names if name in candidates], member.vote(candidates)))
    counted = [f"{protocol}: {number}" for protocol, number in voting.votes.items()]
    rows.append((ALL_MEMBERS, counted, sorted(candidates), voting.select_protocol()))
    return frames.Frame(rows, columns=["member", "protocols", "candidates", "vote"]).set_index("member")


def _member(id: str, held: Mapping[str, Any]) -> Member:
    offered = tuple(GroupProtocol(name) for name in held["protocols"])
    return Member(id, held["client_id"], "", 0, 0, offered)
