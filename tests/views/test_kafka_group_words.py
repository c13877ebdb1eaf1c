"""The lines of group coordinators are those that Kafka's release writes, with the values of the journal."""

from __future__ import annotations

import re

import pytest

from kcontrol import Lab
from tests.lab.group_runs import GROUP, RUNS, played
from tests.recordings.test_groups import NAMES
from tests.views.test_kafka_words import understood

BEFORE = "Preparing to rebalance group {} in state PreparingRebalance with old generation"
KINDS = {
    "PreparingRebalance": "rebalance_prepared",
    "CompletingRebalance": "rebalance_stabilized",
    "AwaitingSync": "rebalance_stabilized",
    "Empty": "group_empty",
}


def lines(run: Lab) -> list[tuple[str, str]]:
    """Return the coordinators' lines of a run as level and message."""
    found = re.compile(r"^\[\d+ ms\] (?P<level>[A-Z]+) (?P<message>\[Group.*) \(kafka\.coordinator\.(group\.)?Group\w+\)$")
    logged = (line for cell in run.journal(words="kafka")["log"] for line in cell.splitlines())
    return [(match["level"], match["message"]) for line in logged if (match := found.match(line))]


def messages(name: str) -> list[str]:
    return [message.removeprefix("[GroupCoordinator 1]: ") for _, message in lines(Lab.open(name))]


def test_a_group_of_0_9() -> None:
    """0.9 restabilizes groups, and reports a member that leaves as failed. Source: GroupCoordinator.scala (0.9.0.1)."""
    assert messages("0.9.0.1/group/leader-leaves")[6:] == [
        "Member M1 in group grp-3 has failed",
        "Preparing to restabilize group grp-3 with old generation 2",
        "Stabilized group grp-3 generation 3",
        "Assignment received from leader for group grp-3 for generation 3",
        "Member M2 in group grp-3 has failed",
        "Preparing to restabilize group grp-3 with old generation 3",
        "Group grp-3 generation 3 is dead and removed",
    ]


def test_a_group_of_2_8() -> None:
    """2.8 names the state, the reason and the number of members. Source: GroupCoordinator.scala (2.8.2)."""
    before = BEFORE.format("grp-2")
    assert messages("2.8.2/group/leader-leaves") == [
        f"{before} 0 (__consumer_offsets-0) (reason: Adding new member M1 with group instance id None)",
        "Stabilized group grp-2 generation 1 (__consumer_offsets-0) with 2 members",
        "Assignment received from leader for group grp-2 for generation 1. The group has 2 members, 0 of which are static.",
        "Member[group.instance.id None, member.id M1] in group grp-2 has left, removing it from the group",
        f"{before} 1 (__consumer_offsets-0) (reason: removing member M1 on LeaveGroup)",
        "Stabilized group grp-2 generation 2 (__consumer_offsets-0) with 1 members",
        "Assignment received from leader for group grp-2 for generation 2. The group has 1 members, 0 of which are static.",
        "Member[group.instance.id None, member.id M2] in group grp-2 has left, removing it from the group",
        f"{before} 2 (__consumer_offsets-0) (reason: removing member M2 on LeaveGroup)",
        "Group grp-2 with generation 3 is now empty (__consumer_offsets-0)",
    ]


def test_a_coordinator_that_loads_and_a_member_with_other_protocols() -> None:
    """After a restart the group is loaded, and a JoinGroup with other protocols is the reason for the rebalance."""
    assert messages("2.8.2/group/coordinator-restart")[3:5] == [
        "Loading group metadata for grp-4 with generation 1",
        f"{BEFORE.format('grp-4')} 1 (__consumer_offsets-0) (reason: Updating metadata for member M2 during Stable)",
    ]


@pytest.mark.parametrize("release", ["0.9", "0.10.2", "0.11.0", "1.1", "2.4", "2.8"])
def test_every_release_has_its_own_words(release: str) -> None:
    """The same requests in each release: every line is one of Kafka's, and each transition to a state has its line."""
    run = Lab.play("0.9.0.1/group/third-member-joins", release, runs=None)
    found = [understood(message) for _, message in lines(run)]
    assert found and "nothing" not in {kind for kind, _ in found}
    moves = [KINDS[r.fields["to"]] for r in run.records if r.kind == "group" and r.fields["to"] in KINDS]
    said = [kind for kind, _ in found if kind in KINDS.values()]
    assert said == moves
    assert {facts["group"] for _, facts in found} == {"grp-2"}


@pytest.mark.parametrize("name", [*NAMES, *RUNS])
def test_every_line_is_one_of_kafkas(name: str) -> None:
    """Each line of each run of a group matches the pattern of its kind, with the group of the run."""
    run = played(name) if name in RUNS else Lab.open(name)
    group = GROUP if name in RUNS else run.records[0].fields["group"]
    found = [understood(message) for _, message in lines(run)]
    assert found and {facts["group"] for _, facts in found} == {group}
    assert "rebalance_prepared" in {kind for kind, _ in found}
