"""The runs of the chapters about groups: what chapter 12 says of them is so, and a wrong name lists the right ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.group.group_strategies import GROUP_STRATEGIES, JoiningMember
from kcontrol.lab.groups.plays import PLAYS
from tests.lab.group_runs import ask, opened
from tests.lab.support import refusal

Played = Callable[..., Lab]


@pytest.fixture
def played(folder: object) -> Iterator[Played]:
    """Plays a run, and closes it at the end."""
    labs: list[Lab] = []

    def play(name: str, release: str | None = None, **arguments: Any) -> Lab:
        labs.append(Lab.play(name, release, runs=None, **arguments))
        return labs[-1]

    yield play
    for lab in labs:
        lab.close()


def group(lab: Lab) -> tuple[str, int, dict[str, list[str]]]:
    """The state and the generation of group billing, and the partitions of each client."""
    members = lab.tables.members().loc[["billing"]]
    parts = dict(zip(members.client_id, members.partitions, strict=True))
    return members.state.iloc[0], int(members.generation.iloc[0]), parts


@pytest.mark.parametrize(("release", "generation"), [("2.8", 1), ("0.9", 2)])
def test_three_members(played: Played, release: str, generation: int) -> None:
    """Three members share one generation at once under 2.8, whose first rebalance waits; under 0.9 the first is alone in it."""
    # Source: InitialDelayedJoin of DelayedJoin.scala (2.8); doJoinGroup of GroupCoordinator.scala (0.9.0).
    lab = played("billing", release, until="three members")
    first = lab.tables.rebalances().iloc[0]
    assert bool(first.end_ms - first.begin_ms >= 3_000) is (release == "2.8")
    assert group(lab) == ("Stable", generation, {"anna": ["t-0", "t-1"], "bert": ["t-2", "t-3"], "cleo": ["t-4", "t-5"]})


def test_the_alarm(played: Played) -> None:
    """A minute after dora was started three JoinGroups wait for cleo, whose session is alive; then all four agree."""
    lab = played("billing", until="cleo is late")
    parked = lab.tables.parked()
    assert parked.client_id.tolist() == ["dora", "anna", "bert"] and parked.waited_ms.min() > 50_000
    assert set(parked.completed_by) == {'JoinGroup of cleo, or the timer "join billing"'}
    assert group(lab)[:2] == ("PreparingRebalance", 1)
    assert [*group(played("billing"))[2].values()] == [["t-0", "t-1"], ["t-2", "t-3"], ["t-4"], ["t-5"]]


def test_a_heartbeat_does_not_help_in_0_9(played: Played) -> None:
    """Under 0.9 cleo has been removed by then: its session of 30 s has ended, although it sent heartbeats."""
    # Source: doHeartbeat of GroupCoordinator.scala (0.9.0) restarts no session during a rebalance; reference timeline B.
    assert group(played("billing", "0.9", until="cleo is late"))[2].keys() == {"anna", "bert", "dora"}


def test_the_leader_dies(played: Played) -> None:
    """Timeline A: 10 s into generation 2 anna's session ends, bert's SyncGroup gets 27, and bert is alone in generation 3."""
    # With: conformance PUB-SYNC-05.
    lab = played("leader dies", until="anna is removed")
    begun, ended = (r.at_ms for r in lab.records if r.kind == "group" and r.to_json().fields["group_metadata"]["generation"] == 2)
    assert (ended - begun) // 1000 == 10
    assert lab.state["consumers"]["bert"]["error"] == "REBALANCE_IN_PROGRESS"
    assert group(played("leader dies")) == ("Stable", 3, {"bert": [f"t-{n}" for n in range(6)]})


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_the_late_acknowledgement(played: Played, release: str) -> None:
    """Timeline C: the log has the assignment of generation 2, and its acknowledgement leaves the group in PreparingRebalance."""
    # Source: the callback of the store in doSyncGroup of GroupCoordinator.scala (0.9.0, 2.8).
    lab = played("late store", release, until="dora joins")
    before = deepcopy(lab.state["nodes"]["2"]["group"]["groups"])  # the state of a lab changes as the lab goes on
    waiting = [r for r in lab.records if r.kind == "append"]
    seen = len(lab.records)
    lab.run()
    assert "AssignmentStored" in [r.fields["event"] for r in lab.records[seen:] if r.kind == "begin"]
    assert lab.state["nodes"]["2"]["group"]["groups"] == before
    assert before["billing"]["state"] == "PreparingRebalance" and len(waiting) >= 2


def test_a_static_member_restarts(played: Played) -> None:
    """A static member gets another member id, and keeps its partitions in the same generation."""
    # Source: KIP-345; golden 2.8.2 static-member-restarts.
    before, after = (played("static restart", until=step) for step in PLAYS["static restart"].steps)
    assert group(before) == group(after)
    ids = [lab.tables.members().query("client_id == 'bert'").member_id.iloc[0] for lab in (before, after)]
    assert ids[0] != ids[1]


def test_generations_grow(played: Played) -> None:
    """In the run of the diagnosis each of the generations 1 to 4 ends by itself, and a follower's JoinGroup ends none."""
    found = played("running generation").tables.rebalances()
    assert found.to_generation.tolist() == [1, 2, 3, 4, 5] and found.reason.iloc[3] == "the leader joins again"


@pytest.mark.parametrize(
    ("scenario", "until", "listed"),
    [
        ("billing", "nowhere", "'three members'"),
        ("0.8.1.1/isr-order", "three members", "'billing'"),
        ({"brokers": 1}, "x", "'late store'"),
    ],
)
def test_a_step_that_is_not_there(scenario: Any, until: str, listed: str) -> None:
    """A step that a run does not have, and a step of another scenario, get one sentence that lists what there is."""
    with pytest.raises(UserError) as problem:
        Lab.play(scenario, until=until, runs=None)
    assert listed in refusal(problem)


# ---------------------------------------------------------------- rules that a learner replaces


def test_a_rule_of_ones_own_ends_the_join_phase(played: Played) -> None:
    """With a rule that waits for the leader alone, the generation begins without those that have not joined yet."""

    def leader_alone(members: Sequence[JoiningMember]) -> bool:
        return all(member.parked for member in members if member.leads)

    lab = played("billing", until="three members", strategies={"group.try_complete_join": leader_alone})
    lab.group.heartbeat("cleo").run()
    lab.group.join("anna").run()
    assert [member for member, parts in group(lab)[2].items()] == ["anna"]
    assert lab.tables.members().generation.iloc[0] > 1


def test_pending_ids_are_asked_about(played: Played) -> None:
    """The rule gets each pending member id as an entry without a parked request, and the group leader as such."""
    asked: list[list[JoiningMember]] = []

    def noted(members: list[JoiningMember]) -> bool:
        asked.append(members)
        return bool(GROUP_STRATEGIES["group.try_complete_join"](members))

    lab = played("billing", until="three members", strategies={"group.try_complete_join": noted})
    lab.group.leave("cleo").run()
    lab.group.thaw_consumer("dora").group.join("dora").run()
    lab.group.join("anna").run()
    pending = [member for member in asked[-1] if member.is_pending]
    assert [member.member_id.split("-")[0] for member in pending] == ["dora"] and pending[0].parked is None
    assert [(m.member_id.split("-")[0], m.parked) for m in asked[-1] if m.leads] == [("anna", "JoinGroup")]


def test_an_unknown_rule_is_refused() -> None:
    """Another name gets one sentence that lists elections and rules of groups."""
    with pytest.raises(UserError) as problem:
        Lab(strategies={"group.nothing": len}, runs=None)
    assert "offline" in refusal(problem) and "group.try_complete_join" in refusal(problem)


def test_a_rule_that_raises_is_a_handler_error(opened: Played) -> None:
    """An error of a learner's rule ends the event, and the record names the rule and the error."""
    settings: dict[str, Any] = {"consumers": {"anna": "billing"}, "topics": {"__consumer_offsets": [[1]]}, "release": "0.9"}
    lab = opened(runs=None, strategies={"group.try_complete_join": lambda members: members[9]}, **settings)
    lab.group.join("anna").run()
    (failed,) = [r for r in lab.records if r.kind == "handler_error"]
    assert "the rule group.try_complete_join failed: IndexError" in failed.fields["message"]


def test_a_rule_of_ones_own_unloads_a_group(played: Played) -> None:
    """With a rule that refuses nothing, a coordinator that shuts down leaves the parked JoinGroup without a response."""
    asked: list[tuple[str, str]] = []

    def silent(state: str, parked: str) -> None:
        asked.append((state, parked))

    lab = played("billing", until="dora joins", strategies={"group.unloaded": silent})
    lab.terminate(2).run()
    assert asked == [("PreparingRebalance", "JoinGroup")]
    assert lab.state["consumers"]["dora"]["error"] == "disconnected"


def test_a_rule_of_ones_own_keeps_members(played: Played) -> None:
    """With a rule that keeps every member, no session has a timer or removes a member; times count from the last heartbeat."""
    asked: list[tuple[int, int, int, bool]] = []

    def keeps(*times: Any) -> bool:
        asked.append(times)
        return True

    lab = played("billing", until="three members", strategies={"group.keep_alive": keeps})
    lab.group.freeze_consumer("bert").run("12 s", alive=True)
    assert {(0, 10_000, 10_000, False)} <= set(asked) <= {(0, 10_000, 10_000, False), (0, 10_000, 10_000, True)}
    assert lab.tables.members().shape[0] == 3


@pytest.mark.parametrize("own", [True, False])
def test_a_rule_decides_when_a_timer_is_set(own: bool) -> None:
    """A member whose SyncGroup is parked has no session timer in 0.9, but has one with a rule that ignores parked requests."""
    # Source: tryCompleteHeartbeat of GroupCoordinator.scala (0.9), which DelayedHeartbeat.tryComplete calls.
    rule: dict[str, Any] = {"group.keep_alive": lambda latest, session, deadline, parked: latest + session > deadline}
    lab = opened("0.9", dict.fromkeys(("anna", "bert"), "billing"), strategies=rule if own else {})
    ask(ask(lab, "join", "anna", "bert", "anna"), "sync", "bert")
    assert lab.state["consumers"]["bert"]["asked"]
    timers = [action[2] for action in lab.actions() if action[0] == "fire_timer" and action[2].startswith("session billing bert")]
    assert len(timers) == own


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_a_rule_of_ones_own_expires_offsets(played: Played, release: str) -> None:
    """With a rule that lets every offset expire, the next expiry run removes the committed offset of a live group."""
    lab = played("billing", release, until="three members", strategies={"group.expired": lambda offset, group, now: True})
    lab.commit("anna", "t-0", 7).run()
    assert list(lab.tables.offsets().offset) == [7]
    lab.fire_timer(2, "delete-expired-group-metadata").run()
    assert lab.tables.offsets().empty
