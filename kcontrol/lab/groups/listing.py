"""Tables of consumer groups as Kafka's tool prints them: members with partitions, committed offsets, lags; and their votes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kcontrol.core.errors import UserError
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.group.model import Group, GroupProtocol, GroupState, Member, Members
from kcontrol.lab.run import Run
from kcontrol.lab.support import arguments
from kcontrol.lab.support.late import frames, pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views import folded_state, group_state, text

State = Mapping[str, Any]
DESCRIBED = {"partition": "string", "current_offset": "Int64", "log_end_offset": "Int64", "lag": "Int64", "member_id": "string",
             "client_id": "string", "host": "string", "state": "string"}  # fmt: skip


def assignment(run: Run) -> pd.DataFrame:
    """Members x partitions: whether the partition is assigned to the member.

    The columns are the partitions of all existing topics but `__consumer_offsets`, and of all assignments.
    """
    state = run.state
    members = [(group, member) for group in group_state.groups(state, run._played) for member in group.members]
    known = (p for p in folded_state.partitions(dict(state)) if p.topic != OFFSETS_TOPIC)
    names = {p.name: None for p in known} | {name: None for _, member in members for name in member.partitions}
    index, columns = ["group_id", "client_id", "member_id"], "partition"
    rows = [
        (group.group, member.client, member.member_id, name, name in member.partitions)
        for group, member in members
        for name in names
    ]
    found = pd.DataFrame(rows, columns=[*index, columns, "has"])
    return frames.Frame(found.pivot(index=index, columns=columns, values="has"))


def consumer_groups(run: Run, group: str | None = None) -> pd.DataFrame:
    """Offsets and lag of a group, by default of all, as `kafka-consumer-groups --describe` prints them.

    The lag is missing if no leader runs, or if the brokers store no records. Raises UserError, listing the groups, for a group
    that no coordinator has.

    Source: collectGroupsOffsets of ConsumerGroupCommand.scala (2.8).
    """
    state = run.state
    # The tool shows assignments only of a Stable group. A group of which a coordinator has only offsets is Dead.
    offsets = {name: held["committed"] for _, name, held in group_state.cached(state, "offsets")}
    groups = {found.group: found for found in group_state.groups(state, run._played)}
    names = sorted({*groups, *offsets})
    if group is not None and group not in names:
        raise UserError(f"No coordinator has a group {arguments.shown(group)}; there are {text.listed(names, 30) or 'none'}.")
    chosen = names if group is None else [group]
    rows = [row for name in chosen for row in _described(name, groups.get(name), offsets.get(name, {}), state)]
    return journal_tables.table(rows, DESCRIBED, "group_id")


def _described(
    name: str, group: group_state.Group | None, committed: Mapping[str, Any], state: State
) -> Iterator[dict[str, Any]]:
    """Yield the rows of `kafka-consumer-groups --describe` about the group `name`, one per partition.

    Partitions of members come first, then those with only a committed offset. `group` is None if a coordinator has only its
    offsets; `committed` has the offsets by partition.
    """
    shown, seen = group.state if group else "Dead", set[str]()
    members = group.members if group and group.state == "Stable" else []
    # Members with more partitions come first; a member without partitions has no row.
    for member in sorted(members, key=lambda member: -len(member.partitions)):
        held = group.held["members"][member.member_id] if group else {}
        who = {"member_id": member.member_id, "client_id": member.client, "host": held.get("client_host")}
        yield from (_offset(name, shown, tp, committed, state) | who for tp in member.partitions)
        seen |= set(member.partitions)
    yield from (_offset(name, shown, tp, committed, state) for tp in sorted(committed) if tp not in seen)


def _offset(name: str, shown: str, tp: str, committed: Mapping[str, Any], state: State) -> dict[str, Any]:
    end, current = _log_end(state, tp), committed[tp]["value"]["offset"] if tp in committed else None
    lag = None if end is None or current is None else end - current
    return {"group_id": name, "state": shown, "partition": tp, "current_offset": current, "log_end_offset": end, "lag": lag}


def _log_end(state: State, partition: str) -> int | None:
    """The leader's high watermark, which ListOffsets gives to a consumer; None without a running leader or logs."""
    found = folded_state.find(dict(state), partition)
    leader = str(found.leader) if found else ""
    log = state.get("logs", {}).get(leader, {}).get(partition) if leader in state["nodes"] else None
    return None if log is None else int(log["high_watermark"])


# ---------------------------------------------------------------- the vote on a group's protocol


def ballots(run: Run, group: str | None = None) -> pd.DataFrame:
    """The vote on a group's assignor: one row per member, and a last row with the winner.

    `group` is by default the only group with members. Raises UserError for a group without members, and for None if several
    groups have members.
    """
    # Candidates are the protocols that all members offer; each member votes for the first candidate of its own list. Source:
    # selectProtocol, candidateProtocols of GroupMetadata.scala, vote of MemberMetadata.scala (0.9, 2.8).
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
    rows.append(("all members", counted, sorted(candidates), voting.select_protocol()))
    return frames.Frame(rows, columns=["member", "protocols", "candidates", "vote"]).set_index("member")


def _member(id: str, held: Mapping[str, Any]) -> Member:
    offered = tuple(GroupProtocol(name) for name in held["protocols"])
    return Member(id, held["client_id"], "", 0, 0, offered)
