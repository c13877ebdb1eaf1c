"""What a person asks about consumer groups: reasons, tables, settings, metrics, and requests of an administrator."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest

from kcontrol import Lab, rules
from kcontrol.core.errors import UserError
from kcontrol.group.error_codes import ERRORS
from kcontrol.group.group_strategies import GROUP_STRATEGIES
from kcontrol.group.request_reactions import Request, has_reaction, reactions_of
from kcontrol.lab.groups import changes
from tests.lab.group_runs import GROUP, ask, opened, played, stable
from tests.lab.support import refusal


def last_of(run: Lab, what: str) -> str:
    """Return the sentence of the record that a question leads to."""
    return str(run.why(what).said[-1 - (len(run.why(what).said) // 2)])


# ---------------------------------------------------------------- reasons


@pytest.mark.parametrize(
    ("name", "what", "says"),
    [
        ("2.8 leave", "generation of billing", "from PreparingRebalance to CompletingRebalance"),
        ("0.9 leave", "generation of billing", "from PreparingRebalance to AwaitingSync"),
        ("2.8 leave", "leader of group billing", "puts billing into groups"),
        ("2.8 join", "owner of t-2 in billing", "puts billing into groups"),
        ("2.8 join", "offset of billing in t-0", "puts billing into offsets"),
    ],
)
def test_why(name: str, what: str, says: str) -> None:
    """The chain of causes ends with the record that made the answer what it is."""
    assert says in last_of(played(name), what)


def test_a_leader_has_come_by_the_leave_of_the_former_leader() -> None:
    """The chain of the new leader begins with the LeaveGroup of the old leader."""
    assert "Consumer anna sends LeaveGroup." in played("2.8 leave").why("leader of group billing").outline()
    assert "Consumer anna sends SyncGroup." in played("2.8 join").why("owner of t-2 in billing").outline()


@pytest.mark.parametrize("release", ["0.9", "2.8"])
@pytest.mark.parametrize("what", ["generation of billing", "offset of billing in t-0"])
def test_one_chain_through_both_halves(release: str, what: str) -> None:
    """After the coordinator's broker was killed, the chain leads from the kill through the election to the load of the group."""
    said = played(f"{release} coordinator_killed").why(what).outline()
    steps = ("Broker 1 is killed", "ends the session of broker 1", "from Offline to Online", "LeaderAndIsr", "PartitionElected")
    places = [said.index(words) for words in steps]
    assert places == sorted(places)


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_the_chain_names_the_transition_of_the_groups_partition(release: str) -> None:
    """The request of the controller is about several partitions; the chain has the transitions of the offsets topic's alone."""
    run = played(f"{release} coordinator_killed")
    lines = run.why("generation of billing").outline().splitlines()
    assert any("about __consumer_offsets-0 and t-0" in line or "about __consumer_offsets-0, t-" in line for line in lines)
    moved = [line.split(" moves ")[1].split()[0] for line in lines if " from Offline to Online: " in line]
    assert moved == ["__consumer_offsets-0"]


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_an_opened_run_has_the_chain_of_the_run_itself(release: str, tmp_path: Path) -> None:
    """The chain through the transition of the group's partition is equal in a run and in its saved journal."""
    run = played(f"{release} coordinator_killed")
    run.save(tmp_path / "run.jsonl")
    what = "generation of billing"
    assert Lab.open(tmp_path / "run.jsonl").why(what).outline() == run.why(what).outline()


def test_a_question_about_what_has_gone() -> None:
    """The answer about a deleted group is the record that removed it."""
    lab = ask(stable("2.8"), "leave", "anna", "bert").group.delete_groups(GROUP).run()
    assert "from Empty to Dead" in last_of(lab, "generation of billing")
    assert "takes billing out of offsets" in last_of(lab, "offset of billing in t-0")


def test_a_group_that_was_deleted_after_its_coordinator_was_killed() -> None:
    """The answer is the record that removed the group, not the load before, although the first coordinator kept the group."""
    lab = ask(stable("2.8"), "leave", "anna", "bert").kill(1).run().group.delete_groups(GROUP).run()
    assert "from Empty to Dead" in last_of(lab, "generation of billing")
    assert "takes billing out of offsets" in last_of(lab, "offset of billing in t-0")


def test_a_coordinator_that_has_restarted_loads_the_group() -> None:
    """The last change is the load at the present coordinator, also if its former process had the group too."""
    lab = stable("2.8").kill(1).run().start(1).run().kill(2).run().kill(3).run()
    assert lab.tables.members().coordinator.tolist() == [1, 1]
    asked = [changes.last_change(lab.records, what) for what in ("leader of group billing", "offset of billing in t-0")]
    assert [(found.id.node, found.id.incarnation) for found in asked if found] == [(1, 2), (1, 2)]


def test_a_question_about_a_group_whose_name_has_two_lines() -> None:
    """Each form of a question finds a group whose name has a line break, as Kafka allows it."""
    forms = ("generation of {}", "leader of group {}", "owner of t-0 in {}", "offset of {} in t-0")
    ends = []
    for group in ("billing", "g\nh"):
        lab = opened("2.8", {"anna": group}).run(alive=True).commit("anna", "t-0", 7).run()
        ends.append([lab.why(form.format(group)).said[-1] for form in forms])
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    "what", ["generation of nope", "owner of t-9 in billing", "offset of billing in t-2", "owner of billing"]
)
def test_a_question_without_an_answer(what: str) -> None:
    """A group, an owner or an offset that never was, and another form, get one sentence that lists the forms."""
    with pytest.raises(UserError) as problem:
        played("2.8 join").why(what)
    assert '"owner of t-0 in billing"' in refusal(problem)


# ---------------------------------------------------------------- tables


def test_timers() -> None:
    """The next timer to fire stands first; each says when it fires, for which member, and by which event."""
    lab = stable("2.8")
    found = lab.tables.timers().query("group_id == 'billing'")
    assert found["client_id"].tolist() == ["bert", "anna"] and found["fires_ms"].is_monotonic_increasing
    assert set(found["event"]) == {"SessionTimedOut"} and (found["in_ms"] <= 10_000).all()
    first = found.iloc[0]
    lab.fire_timer(int(first["broker"]), str(first["timer"])).run()
    assert lab.tables.members()["client_id"].tolist() == ["anna"]


def test_parked_requests() -> None:
    """A parked JoinGroup waits for the JoinGroups of the others, a SyncGroup for the leader; a response ends the wait."""
    lab = played("0.9 join").branch()
    (row,) = lab.tables.parked().itertuples()
    assert (row.request, row.client_id, row.completed_by) == (
        "JoinGroup",
        "cleo",
        'JoinGroup of anna, bert, or the timer "join billing"',
    )
    ask(lab, "join", "anna", "bert")
    assert lab.tables.parked().empty
    (row,) = ask(lab, "sync", "cleo").tables.parked().itertuples()
    assert (row.request, row.client_id, row.completed_by) == ("SyncGroup", "cleo", "SyncGroup of the leader anna")
    assert ask(lab, "sync", "anna").tables.parked().empty
    first = opened("2.8", {"anna": GROUP})
    (row,) = ask(first, "join", "anna").tables.parked().itertuples()
    assert row.completed_by == 'the end of the first wait, the timer "join billing"'


def test_a_parked_commit() -> None:
    """An OffsetCommit waits for the write to the log."""
    lab = stable("2.8")
    lab.commit("bert", "t-2", 3)
    while lab.tables.parked().empty:
        lab.step()
    assert lab.tables.parked()["request"].tolist() == ["OffsetCommit"]
    assert lab.run().tables.parked().empty


def test_assignment() -> None:
    """Each member is a row and each partition a column; a column has at most one owner."""
    found = played("2.8 join").tables.assignment()
    assert found.columns.tolist() == ["t-0", "t-1", "t-2"] and found.index.get_level_values("client_id").tolist() == [
        "anna",
        "bert",
        "cleo",
    ]
    assert found.to_numpy().tolist() == [[True, True, False], [False, False, True], [False, False, False]]


def test_rebalances() -> None:
    """A rebalance has begin, end, reason, generations and members; one that begins anew ends there; one under way has no end."""
    found = played("0.9 join").tables.rebalances()
    assert found["reason"].tolist() == ["a new member"] * 3
    assert found[["from_generation", "to_generation"]].to_numpy().tolist() == [[0, 1], [1, 2], [2, 2]]
    assert found["members"].tolist()[:2] == [["anna"], ["anna", "bert"]]
    assert found["ended_in"].fillna("").tolist() == ["PreparingRebalance", "Stable", ""] and found["end_ms"].isna().tolist() == [
        False,
        False,
        True,
    ]
    assert (found["begin_ms"] <= found["end_ms"].fillna(10**9)).all()
    killed = played("0.9 join").branch().kill(1).run().tables.rebalances()
    assert killed["ended_in"].tolist()[-1] == "the coordinator has ended"
    assert played("2.8 leave").tables.rebalances()["reason"].tolist() == ["a new member", "a member leaves"]


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_reactions(release: str) -> None:
    """The table has the rows by which the coordinator answers, in their order, up to the first row without a condition."""
    found = stable(release).tables.reactions()
    states = set(found["state"])
    assert ("AwaitingSync" in states, "Empty" in states) == ((True, False) if release == "0.9" else (False, True))
    for (state, request), rows in found.groupby(["state", "request"], sort=False):
        conditions = rows["condition"].tolist()
        assert "" not in conditions[:-1], (state, request)
    (asked,) = (one for one in Request if one.title == "SyncGroup")
    ours = [
        row.reaction
        for row in reactions_of(release, next(s for s in reactions_of(release)[0].states if str(s) == "Stable"), asked)
    ]
    assert found.query("state == 'Stable' and request == 'SyncGroup'")["response"].tolist() == ours
    assert ("DeleteGroups" in set(found["request"])) == has_reaction(release, "NON_EMPTY_GROUP")


def test_reactions_to_one_request() -> None:
    """The table of one request has no other; an unknown request, and a release without a coordinator, are refused."""
    assert set(played("2.8 join").tables.reactions("Heartbeat")["request"]) == {"Heartbeat"}
    for lab, request, says in (
        (played("0.9 join"), "DeleteGroups", "OffsetCommit"),
        (Lab(1, release="0.8.2", runs=None), None, "0.9"),
    ):
        with pytest.raises(UserError) as problem:
            lab.tables.reactions(request)
        assert says in refusal(problem)


def test_offsets_and_lag() -> None:
    """The table of `kafka-consumer-groups --describe` has current offset, end of the log, lag, member and state."""
    lab = stable("2.8", data=True)
    for value in range(9):
        lab.produce("t-0", value).run()
    found = lab.tables.consumer_groups(GROUP)
    offsets = found[["partition", "current_offset", "log_end_offset", "lag"]].astype(object)
    assert offsets.where(offsets.notna(), None).to_numpy().tolist() == [
        ["t-0", 7, 9, 2], ["t-1", None, 0, None], ["t-2", None, 0, None]
    ]  # fmt: skip
    assert found["client_id"].tolist() == ["anna", "anna", "bert"] and set(found["state"]) == {"Stable"}
    lab.commit("anna", "t-0", 9).run()
    assert lab.tables.consumer_groups().iloc[0]["lag"] == 0
    with pytest.raises(UserError) as problem:
        lab.tables.consumer_groups("nope")
    assert "there are billing" in refusal(problem)


def test_offsets_outside_of_a_stable_group() -> None:
    """Outside of Stable the tool knows no assignment: committed offsets have no member."""
    found = played("2.8 join").tables.consumer_groups()
    assert (
        found["partition"].tolist() == ["t-0"]
        and found["member_id"].isna().all()
        and found["state"].tolist() == ["PreparingRebalance"]
    )


# ---------------------------------------------------------------- requests of an administrator


def responses(lab: Lab) -> list[tuple[str, str, str, int]]:
    found = lab.tables.group_responses()
    return list(found[["request", "about", "error", "code"]].itertuples(index=False, name=None))


def test_requests_about_a_group_with_members(capsys: pytest.CaptureFixture[str]) -> None:
    """A group with members is not deleted, nor offsets of its topics; each response is there, and each error is printed."""
    # Source: handleDeleteGroups, handleDeleteOffsets of GroupCoordinator.scala, handleOffsetDeleteRequest of KafkaApis (2.8).
    lab = stable("2.8")
    before = deepcopy(lab.state["nodes"]["1"]["group"])
    lab.group.delete_groups(GROUP, "nope").group.delete_offsets(GROUP, "t-0", "x-1").group.delete_offsets("nope", "t-0").run()
    lab.group.describe_group(GROUP, broker=2).run()
    assert responses(lab) == [
        ("DeleteGroups", GROUP, "NON_EMPTY_GROUP", 68),
        ("DeleteGroups", "nope", "GROUP_ID_NOT_FOUND", 69),
        ("OffsetDelete", "t-0", "GROUP_SUBSCRIBED_TO_TOPIC", 86),
        ("OffsetDelete", "x-1", "UNKNOWN_TOPIC_OR_PARTITION", 3),
        ("OffsetDelete", "nope", "GROUP_ID_NOT_FOUND", 69),
        ("DescribeGroups", GROUP, "NOT_COORDINATOR", 16),
    ]
    assert lab.state["nodes"]["1"]["group"] == before
    assert "Broker 1 refuses DeleteGroups of billing: NON_EMPTY_GROUP (68).\n" in capsys.readouterr().out
    assert all(ERRORS[error] == code for _, _, error, code in responses(lab))


def test_an_empty_group_is_deleted() -> None:
    """OffsetDelete deletes offsets of an Empty group, and with the last offset the group; DeleteGroups deletes both."""
    lab = ask(stable("2.8"), "leave", "anna", "bert")
    other = lab.branch()
    lab.group.delete_offsets(GROUP, "x-1").run()
    assert lab.tables.offsets()["offset"].tolist() == [7] and "Empty 1" in lab.diagram("group").outline()
    lab.group.delete_offsets(GROUP, "t-0").run()
    other.group.delete_groups(GROUP).run()
    for emptied in (lab, other):
        assert emptied.tables.offsets().empty and "Empty 1" not in emptied.diagram("group").outline()
        assert "2 tombstones" in "\n".join(emptied.journal()["what"])
        emptied.group.describe_group(GROUP).run()
        assert emptied.tables.group_responses()["response"].tolist()[-1] == "Dead, no member"


def test_an_empty_group_without_offsets_stays() -> None:
    """OffsetDelete without a partition to delete leaves an Empty group: cleanupGroupMetadata is not called (2.8)."""
    lab = ask(opened("2.8", {"anna": GROUP}), "join", "anna")
    while lab.state["consumers"]["anna"]["asked"]:
        lab.fire_timer(1, "join billing").run()
    ask(lab, "leave", "anna").group.delete_offsets(GROUP, "x-1").run()
    assert lab.tables.offsets().empty and "Empty 1" in lab.diagram("group").outline()


def test_groups_are_listed_and_described() -> None:
    """Each broker lists its own groups, since 2.6 by states; DescribeGroups shows assignments of a Stable group alone."""
    lab = stable("2.8").group.list_groups().group.list_groups("Empty", broker=1).group.describe_group(GROUP).run()
    assert lab.tables.group_responses()["response"].tolist()[:4] == [
        "billing (consumer, Stable)",
        "no group",
        "no group",
        "no group",
    ]
    assert lab.tables.group_responses()["response"].tolist()[4].startswith("Stable, protocol range, anna-")
    old = played("0.9 leave").branch().group.list_groups(broker=1).group.describe_group(GROUP).run()
    assert old.tables.group_responses()["response"].str.contains("AwaitingSync").all()


@pytest.mark.parametrize(
    ("name", "act", "says"),
    [
        ("0.9 join", lambda lab: lab.group.delete_groups(GROUP), "came in 1.1"),
        ("0.9 join", lambda lab: lab.group.delete_offsets(GROUP, "t-0"), "came in 2.4"),
        ("0.9 join", lambda lab: lab.group.list_groups("Stable"), "since 2.6"),
        ("2.8 join", lambda lab: lab.group.list_groups("Boo"), "PreparingRebalance"),
        ("2.8 join", lambda lab: lab.group.delete_groups(), "Name the groups"),
        ("2.8 join", lambda lab: lab.group.delete_offsets(GROUP), "Name the partitions"),
        ("2.8 join", lambda lab: lab.group.delete_offsets(GROUP, "t"), "'t-0'"),
        ("2.8 join", lambda lab: lab.group.describe_group(7), "must be text"),
        ("2.8 join", lambda lab: lab.group.describe_group(GROUP, broker=9), "1, 2 and 3"),
        ("2.8 join", lambda lab: lab.kill(1).group.describe_group(GROUP), "Group billing has no coordinator"),
        ("2.8 join", lambda lab: lab.kill(1).kill(2).kill(3).group.list_groups(), "No broker can be reached"),
        ("2.8 join", lambda lab: lab.group.join(7), "anna, bert and cleo"),
        ("2.8 join", lambda lab: lab.group.heartbeat("anna", "1"), "running brokers: 1, 2 and 3"),
        ("2.8 join", lambda lab: lab.group.find_coordinator("anna", True), "running brokers: 1, 2 and 3"),
        ("2.8 join", lambda lab: lab.group.freeze_consumer("anna", for_ms=0), "from 1 on"),
        ("2.8 join", lambda lab: lab.commit("anna", "t-0", "7"), "whole number"),
        ("2.8 join", lambda lab: lab.commit("anna", "t-0", -1), "from 0 to 9223372036854775807"),
        ("2.8 join", lambda lab: lab.commit("anna", "t-0", 2**63), "from 0 to 9223372036854775807"),
        ("2.8 join", lambda lab: lab.commit("anna", "t", 7), "'t-0'"),
        ("2.8 join", lambda lab: lab.commit("anna", "t-0", 7, 8), "must be text"),
        ("2.8 join", lambda lab: lab.run(alive=5), "True or False"),
        ("2.8 join", lambda lab: lab.group_strip(beside=5), "must be a dict"),
        ("2.8 join", lambda lab: lab.group_matrix(beside={"0.9": "leader-leaves"}), "is not a run"),
        ("2.8 join", lambda lab: lab.tables.legal_transitions("consumer"), "'partition', 'replica' and 'group'"),
        ("2.8 join", lambda lab: lab.tables.consumer_records("t-0", 9), "running brokers that do: 1"),
    ],
)
def test_requests_that_are_not_possible(name: str, act: Callable[[Lab], Lab], says: str) -> None:
    """What cannot be asked gets one sentence with what is possible, and no record of a request."""
    lab = played(name).branch()
    with pytest.raises(UserError) as problem:
        act(lab)
    assert says in refusal(problem)
    assert lab.tables.group_responses().empty and not any("DescribeGroup" in what for what in lab.journal()["what"])


def test_without_an_offsets_topic_the_error_names_it() -> None:
    """A JoinGroup, DescribeGroups and a look at the log before the offsets topic exists get a sentence about this topic."""
    lab = Lab(1, consumers={"anna": GROUP}, runs=None)
    before = len(lab.records)
    acts: tuple[Callable[[], object], ...] = (
        lambda: lab.group.join("anna"), lambda: lab.group.describe_group(GROUP), lab.tables.offsets_topic,
    )  # fmt: skip
    for act in acts:
        with pytest.raises(UserError) as problem:
            act()
        assert "__consumer_offsets" in refusal(problem) and len(lab.records) == before


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_required_acks_are_at_most_the_replicas(release: str) -> None:
    """A broker with more offsets.commit.required.acks than offsets.topic.replication.factor does not start."""
    # Source: validateValues of KafkaConfig.scala (0.9, 2.8).
    acks = {"offsets.commit.required.acks": 4}
    with pytest.raises(UserError) as problem:
        Lab(1, release=release, config=acks, runs=None)
    assert "from -1 to 3" in refusal(problem)
    assert Lab(1, release=release, config=acks | {"offsets.topic.replication.factor": 4}, runs=None).records
    with pytest.raises(UserError) as problem:
        Lab(1, release=release, config={"offsets.topic.replication.factor": 32_768}, runs=None)
    assert "from 1 to 32767" in refusal(problem)


def test_requests_in_a_run_without_consumers(lab: Lab) -> None:
    """Without consumers no broker coordinates groups, and the sentence says how to get coordinators."""
    with pytest.raises(UserError) as problem:
        lab.group.list_groups()
    assert "Lab(consumers=" in refusal(problem)


# ---------------------------------------------------------------- settings, metrics and text


NAMES = (
    "offset.metadata.max.bytes", "offsets.load.buffer.size", "offsets.retention.minutes", "offsets.retention.check.interval.ms",
    "offsets.topic.num.partitions", "offsets.topic.replication.factor", "offsets.commit.timeout.ms",
    "offsets.commit.required.acks", "group.min.session.timeout.ms", "group.max.session.timeout.ms",
)  # fmt: skip
"""The ten settings that a walk through the coordinator of 0.9 names."""


@pytest.mark.parametrize(
    ("release", "defaults"),
    [
        ("0.9", [4_096, 5_242_880, 1_440, 600_000, 50, 3, 5_000, -1, 6_000, 30_000]),
        ("2.8", [4_096, 5_242_880, 10_080, 600_000, 50, 3, 5_000, -1, 6_000, 1_800_000]),
    ],
)
def test_settings(release: str, defaults: list[int]) -> None:
    """The ten settings of the coordinator have the defaults of KafkaConfig.scala, those of later releases none before."""
    found = Lab(1, release=release, runs=None).tables.config()
    assert found["default"].loc[list(NAMES)].tolist() == defaults
    later = found["default"].loc[["group.initial.rebalance.delay.ms", "group.max.size"]].tolist()
    assert later == ([None, None] if release == "0.9" else [3_000, 2**31 - 1])
    assert found["defaults"]["group.max.session.timeout.ms"] == "0.9.0: 30000; 0.10.0: 300000; 2.3.0: 1800000"


def test_a_setting_is_in_force() -> None:
    """A coordinator works by the settings of its lab: a group of one takes no second member, and offsets expire."""
    settings = {"group.max.size": 1, "offsets.retention.minutes": 1, "group_initial_rebalance_delay_ms": 0}
    lab = opened("2.8", {"anna": GROUP, "bert": GROUP}, config=settings)
    assert lab.tables.config()["value"].loc[list(settings)[:2]].tolist() == [1, 1]
    ask(lab, "join", "anna", "bert")
    assert lab.state["consumers"]["bert"]["error"] == "GROUP_MAX_SIZE_REACHED"
    old = opened("0.9", {"anna": GROUP}, config={"offsets.retention.minutes": 1})
    ask(ask(old, "join", "anna"), "sync", "anna").commit("anna", "t-0", 7).run()
    value = old.state["nodes"]["1"]["group"]["offsets"][GROUP]["committed"]["t-0"]["value"]
    assert value["expire_timestamp"] - value["commit_timestamp"] == 60_000


@pytest.mark.parametrize(
    ("release", "config", "says"),
    [
        ("0.9", {"group.max.size": 2}, "group.min.session.timeout.ms"),
        ("2.8", {"group.max.size": 0}, "whole numbers from 1"),
        ("2.8", {"group.max.size": "x"}, "whole numbers from 1"),
        ("2.8", {"offsets.topic.compression.codec": 2}, "whole numbers from 0 to 1"),
        ("2.8", {"offsets_topic_compression_codec": 4}, "but a lab does not compress with these codecs"),
        ("2.8", {"offsets.topic.compression.codec": "gzip"}, "Kafka also takes 2 (snappy), 3 (lz4) and, since 2.1, 4 (zstd)"),
        ("2.8", {"offsets.topic.replication.factor": 0}, "whole numbers from 1"),
        ("0.8.2", {"group.max.size": 2}, "none"),
    ],
)
def test_settings_that_are_not_possible(release: str, config: dict[str, object], says: str) -> None:
    """A setting of a later release, an illegal value, and a codec without a library get one sentence that lists what is legal."""
    with pytest.raises(UserError) as problem:
        Lab(1, release=release, config=config, runs=None)
    assert says in refusal(problem)


def test_metrics() -> None:
    """The coordinator's metrics follow its groups; 0.9 has two of them, and another package."""
    new, old = (played(f"{release} leave").tables.metrics() for release in ("2.8", "0.9"))
    values = {
        name: int(new.loc[(name, "Value"), 1])
        for name in new.index.get_level_values(0)
        if name.startswith(("Num", "offset-", "group-"))
    }
    assert {name: value for name, value in values.items() if value} == {
        "NumOffsets": 1, "NumGroups": 1, "NumGroupsCompletingRebalance": 1, "offset-commit-count": 1,
        "group-completed-rebalance-count": 1,
    }  # fmt: skip
    assert len(values) == 9 and int(new.loc[("NumGroups", "Value"), 2]) == 0
    assert new.loc[("NumGroups", "Value"), "mbean"] == "kafka.coordinator.group:type=GroupMetadataManager,name=NumGroups"
    assert old.loc[("NumGroups", "Value"), "mbean"] == "kafka.coordinator:type=GroupMetadataManager,name=NumGroups"
    assert "NumGroupsStable" not in old.index.get_level_values(0)
    assert (
        'kafka_coordinator_group_GroupMetadataManager_NumGroups{broker="1",run="simulated"} 1'
        in played("2.8 leave").tables.prometheus()
    )
    assert "NumGroups" not in Lab(1, runs=None).tables.metrics().index.get_level_values(0)


def committed(lab: Lab) -> int:
    return int(lab.tables.metrics().loc[("offset-commit-count", "Value"), 1])


def test_a_commit_counts_at_the_end_of_its_write() -> None:
    """A commit in two brokers' logs does not count while the write waits for the follower, and then counts, even if it fails."""
    # Source: putCacheCallback of storeOffsets, GroupMetadataManager.scala (2.8), which records before it reads the error.
    lab = stable("2.8", config={"offsets.commit.timeout.ms": 500}).freeze(2).freeze(3).commit("anna", "t-1", 8)
    while lab.state["consumers"]["anna"]["asked"]:
        assert committed(lab) == 1
        lab.run(alive=True) if not any(a.routine for a in lab.actions()) else lab.step()
    assert lab.state["consumers"]["anna"]["error"] == "REQUEST_TIMED_OUT" and committed(lab) == 2


@pytest.mark.parametrize("name", GROUP_STRATEGIES)
def test_the_text_of_a_rule_of_the_coordinator(name: str) -> None:
    """`rules.source` finds each rule of the coordinator that a learner can replace, by the name that replaces it."""
    assert rules.source(name).startswith(f"def {name.removeprefix('group.')}(")


def test_the_text_of_the_coordinator() -> None:
    """`rules.source` finds functions of the group coordinator; for others it lists what there is."""
    assert rules.source("group.rebalance.on_complete_join").startswith("def on_complete_join(")
    for name, says in (
        ("group.boo.x", "request_reactions"),
        ("group.rebalance.boo", "on_complete_join"),
        ("group.sticky", "add the name of a function"),
    ):
        with pytest.raises(UserError) as problem:
            rules.source(name)
        assert says in refusal(problem)
