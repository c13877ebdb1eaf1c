"""The lines of group coordinators are those that Kafka's release writes, with the values of the journal."""

from __future__ import annotations

import re

import pytest

from kcontrol import Lab
from tests.lab.group_runs import GROUP, RUNS, ask, fire, opened, played, stable
from tests.recordings.test_groups import NAMES
from tests.views.test_kafka_words import understood

BEFORE = "Preparing to rebalance group {} in state PreparingRebalance with old generation"
CREATED = (
    "Dynamic member with unknown member id joins group {} in {} state. Created a new member id {} and request the member to "
    "rejoin with this id."
)
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
        CREATED.format("grp-2", "Empty", "M1"),
        f"{before} 0 (__consumer_offsets-0) (reason: Adding new member M1 with group instance id None)",
        CREATED.format("grp-2", "PreparingRebalance", "M2"),
        "Stabilized group grp-2 generation 1 (__consumer_offsets-0) with 2 members",
        "Assignment received from leader for group grp-2 for generation 1. The group has 2 members, 0 of which are static.",
        "Member[group.instance.id None, member.id M1] in group grp-2 has left, removing it from the group",
        f"{before} 1 (__consumer_offsets-0) (reason: removing member M1 on LeaveGroup)",
        "Stabilized group grp-2 generation 2 (__consumer_offsets-0) with 1 members",
        "Assignment received from leader for group grp-2 for generation 2. The group has 1 members, 0 of which are static.",
        "Member[group.instance.id None, member.id M2] in group grp-2 has left, removing it from the group",
        f"{before} 2 (__consumer_offsets-0) (reason: removing member M2 on LeaveGroup)",
        "Group grp-2 with generation 3 is now empty (__consumer_offsets-0)",
        "The following groups were deleted: grp-2. A total of 1 offsets were removed.",
    ]


def test_a_coordinator_that_loads_and_a_member_with_other_protocols() -> None:
    """After a restart the group is loaded, and a JoinGroup with other protocols is the reason for the rebalance."""
    assert messages("2.8.2/group/coordinator-restart")[5:7] == [
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
    assert found and {facts.get("group", facts.get("groups")) for _, facts in found} == {group}
    assert "rebalance_prepared" in {kind for kind, _ in found}


def named(run: Lab) -> list[str]:
    """Return the messages of a run without their prefix; member ids have the name of their consumer alone."""
    return [re.sub(r"(anna|bert|cleo|b)-[0-9a-f]{32}", r"\1", said.partition("]: ")[2]) for _, said in lines(run)]


def members_of(release: str) -> list[str]:
    """Return the lines of a group with a pending member id that leaves, one that expires, and a static member that restarts."""
    lab = opened(release, {"anna": GROUP, "bert": {"group.id": GROUP, "group.instance.id": "b"}})
    lab.group.join("anna").run().group.leave("anna").run().group.join("anna").run()
    fire(lab, "session billing anna")
    ask(lab, "join", "bert")
    fire(lab, "join billing")
    ask(lab, "sync", "bert").commit("bert", "t-0", 3).run()
    lab.group.restart("bert").group.join("bert").run()
    fire(lab, "session billing")
    return named(lab.group.delete_groups(GROUP).run())


NEW = "with unknown member id {}joins group billing in Empty state. Created a new member id"
THIS, REQUEST = "for this member and add to the group.", "and request the member to rejoin with this id."
EXPIRED = "Pending member anna in group billing has been removed after session timeout expiration."
DELETED = "The following groups were deleted: billing. A total of 1 offsets were removed."
BACK = "Static member Some(b) of group billing with unknown member id rejoins, assigning new member id b, while old member id b"
MEMBERS = {
    "2.4": [
        f"Dynamic member {NEW.format('re')} anna {REQUEST}", "Pending member anna is leaving group billing.",
        f"Dynamic member {NEW.format('re')} anna {REQUEST}", EXPIRED, f"Dynamic member {NEW.format('re')} b {THIS}",
        "Static member Some(b) with unknown member id rejoins, assigning new member id b, while old member b will be removed.",
        DELETED,
    ],
    "2.8": [
        f"Dynamic member {NEW.format('')} anna {REQUEST}", "Pending member anna is leaving group billing.",
        f"Dynamic member {NEW.format('')} anna {REQUEST}", EXPIRED, f"Static Member {NEW.format('')} b {THIS}",
        f"{BACK} will be removed.",
        DELETED,
    ],
    "3.9": [
        f"Dynamic member {NEW.format('')} anna {REQUEST}",
        "Pending member with memberId=anna has left group billing through explicit `LeaveGroup` request",
        f"Dynamic member {NEW.format('')} anna {REQUEST}", EXPIRED,
        f"Static member with groupInstanceId=b and {NEW.format('').removeprefix('with ')} b {THIS}",
        ("Static member with groupInstanceId=b and unknown member id joins group billing in Stable state. Replacing previously "
        "mapped member b with this groupInstanceId."),
        DELETED,
    ],
}  # fmt: skip


@pytest.mark.parametrize("release", MEMBERS)
def test_pending_and_static_members_and_deleted_groups(release: str) -> None:
    """Member ids that are created, leave and expire, static members, and deleted groups have the lines of the release."""
    # Source: doUnknownJoinGroup, handleLeaveGroup, onExpireHeartbeat, handleDeleteGroups (2.4.1, 2.8.2), doNewMemberJoinGroup
    # (3.8.0).
    rest = ("Preparing", "Stabilized", "Assignment", "Member", "Group")
    assert [said for said in members_of(release) if not said.startswith(rest)] == MEMBERS[release]


def reasons(run: Lab) -> list[str]:
    return [said.partition("(reason: ")[2].removesuffix(")") for said in named(run) if said.startswith("Preparing")]


def test_reasons_without_a_reason_of_the_client() -> None:
    """Since 3.2 a reason ends with that of the client, "not provided" without one. Source: GroupCoordinator.scala (3.2.3)."""
    lab = stable("3.9")
    ask(lab, "join", "anna", "bert")
    ask(lab, "sync", "anna", "bert")
    ask(lab, "leave", "bert")
    client = "; client reason: not provided"
    assert reasons(lab) == [
        f"Adding new member anna with group instance id None{client}",
        f"Leader anna re-joining group during Stable{client}",
        f"Removing member bert on LeaveGroup{client}",
    ]


@pytest.mark.parametrize(
    ("release", "says"),
    [
        ("2.8", "Updating metadata for static member b with instance id Some(b)"),
        ("3.9", "Updating metadata for static member b with instance id b; client reason: not provided"),
    ],
)
def test_a_static_member_that_restarts_before_its_sync(release: str, says: str) -> None:
    """In CompletingRebalance a static member that restarts begins another rebalance. Source: updateStaticMemberAndRebalance."""
    lab = opened(release, {"bert": {"group.id": GROUP, "group.instance.id": "b"}})
    ask(lab, "join", "bert")
    fire(lab, "join billing")
    lab.group.restart("bert").group.join("bert").run()
    assert reasons(lab)[1:] == [says]


def test_an_instance_id_that_a_tool_removes() -> None:
    """Up to 2.8 the reason has the member id of the request, "" here. Source: handleLeaveGroup (2.8.2)."""
    assert any("(reason: removing member  on LeaveGroup)" in said for said in messages("2.8.2/group/static-member-restarts"))
