"""The counts of a group's members equal what a scan over all members finds."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from kcontrol.group import group_strategies as strategies
from kcontrol.group.context import GroupConfig, GroupContext
from kcontrol.group.group_rules import group_rules
from kcontrol.group.model import Group, GroupProtocol, GroupState, Member, Members, without_id

OFFERED = ("range", "roundrobin", "sticky")


def change(group: Group, chance: random.Random) -> Group:
    """Return the group after a random change: a member joins, rejoins, parks a request or leaves, or all get their responses."""
    name, names = f"m{chance.randrange(3)}", chance.sample(OFFERED, chance.randint(1, 3))
    offers = tuple(GroupProtocol(protocol) for protocol in (*names, *names[:1]))
    parked = chance.choice((None, "r1"))
    match chance.randrange(6):
        case 0 if name in group.members:
            return group.without(name)
        case 1:
            return group.with_each_member(awaiting_join=None)
        case 2 if name in group.members:
            return group.with_member(replace(group.members[name], awaiting_join=parked))
        case 3:
            return group.with_changes(pending_members=(*without_id(group.pending_members, name), name))
        case 4:
            return group.with_changes(pending_members=without_id(group.pending_members, name))
    return group.with_member(Member(name, "c", "/h", 9_000, 9_000, offers, awaiting_join=parked))


@pytest.mark.parametrize("seed", range(5))
def test_the_counts_of_members_are_those_of_a_scan(seed: int) -> None:
    """After each of 400 random changes: parked JoinGroups, common protocols, and whether the join phase may end."""
    chance, group = random.Random(seed), Group("g", GroupState.PREPARING)
    context, ends = GroupContext(group_rules("2.8"), GroupConfig.of("2.8")), set[bool]()
    for _ in range(400):
        before, counted = group, group.members.awaiting_join
        group = change(group, chance)
        assert before.members.awaiting_join == counted
        members = group.members.values()
        assert group.members.awaiting_join == sum(member.awaiting_join is not None for member in members)
        common = {name for name in OFFERED if members and all(name in member.protocol_names for member in members)}
        assert group.candidates == common
        scanned = [
            strategies.JoiningMember(id, False, strategies.JOIN_GROUP if member.awaiting_join else None)
            for id, member in group.members.items()
        ] + [strategies.JoiningMember(id, False, None, is_pending=True) for id in group.pending_members]
        assert strategies.may_complete_join(context, group) == strategies.try_complete_join(scanned)
        ends.add(strategies.may_complete_join(context, group))
    assert ends == {True, False}


@pytest.mark.parametrize("seed", range(5))
def test_members_with_a_change_are_a_changed_copy_of_a_dict(seed: int) -> None:
    """400 random members join or change: order, values and length, of the new value and of the one before."""
    chance, members, plain = random.Random(seed), Members(), dict[str, Member]()
    for number in range(400):
        member = Member(f"m{chance.randrange(90)}", f"c{number}", "/h", 9_000, 9_000, ())
        before, members = members, members.with_member(member)
        assert [*before.items()] == [*plain.items()]
        plain[member.member_id] = member
        assert [*members.items()] == [*plain.items()]
        assert len(members) == len(plain)
