"""The leader of the group's partition moves, and the coordinator with it: both halves in one run.

References: becomeLeaderOrFollower of ReplicaManager.scala and onLeadershipChange and handleStopReplicaRequest of KafkaApis.scala;
loadGroupsForPartition, removeGroupsForPartition (0.9.0.1) and loadGroupsAndOffsets, removeGroupsAndOffsets (2.8.2) of
GroupMetadataManager.scala; onGroupUnloaded of GroupCoordinator.scala; KAFKA-4362 (0.11.0).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from kcontrol import Lab
from kcontrol.group.error_codes import ERRORS
from kcontrol.lab.groups.coordinators import OWN_GROUP

TP, SCHEDULER = "__consumer_offsets-0", "group-metadata-manager"


@cache
def played(release: str, until: str) -> Lab:
    return Lab.play("billing", release, until=until, runs=None)


def three_members(release: str) -> Lab:
    """Group billing is Stable with three members; broker 2 coordinates."""
    return played(release, "three members").branch()


def dora_joins(release: str) -> Lab:
    """A fourth member has joined; its JoinGroup is parked."""
    return played(release, "dora joins").branch()


def error(lab: Lab, name: str) -> str:
    found: str = lab.state["consumers"][name]["error"]
    return found


def row(lab: Lab, broker: int) -> dict[str, object]:
    """The row of a broker in the table of coordinators."""
    table = lab.tables.coordinators()
    found: dict[str, object] = table[table.broker == broker].to_dict("records")[0]
    return found


def owners(lab: Lab) -> dict[int, list[str]]:
    """The brokers that own the partition, with the groups in their caches."""
    table = lab.tables.coordinators()
    return dict(table[table.owned][["broker", "groups"]].itertuples(index=False, name=None))


def outcomes(lab: Lab, broker: int) -> list[str]:
    table = lab.tables.loads()
    return list(table[table.broker == broker].outcome)


def while_loading(lab: Lab, broker: int = 3) -> Lab:
    """Go on until the broker has marked the partition as loading, and has not read its log yet."""
    return lab.run(lambda lab: bool(row(lab, broker)["loading"]))


def go_on_without_the_load(lab: Lab, broker: int, until: Callable[[Lab], bool]) -> Lab:
    """Perform the routine actions but those of the thread that loads."""
    while not until(lab):
        lab.step(next(action for action in lab.actions() if action[1:] != (broker, SCHEDULER)))
    return lab


@pytest.mark.parametrize("release", ["0.9", "1.1", "2.8"])
def test_the_table_says_what_requests_get(release: str) -> None:
    """While broker 3 loads, each broker answers JoinGroup, SyncGroup and Heartbeat as the table of coordinators says."""
    lab = while_loading(three_members(release).kill(2))
    for broker in (1, 3):
        said = row(lab, broker)
        for name, request in (("anna", "JoinGroup"), ("bert", "SyncGroup"), ("cleo", "Heartbeat")):
            word = {"JoinGroup": "join", "SyncGroup": "sync", "Heartbeat": "heartbeat"}[request]
            ask = getattr(lab.branch().group, word)(name, broker)
            ask.run(lambda ask, name=name: ask.state["consumers"][name]["asked"] is None)
            got = error(ask, name)
            assert said[request] in (OWN_GROUP, f"{got} ({ERRORS[got]})"), (broker, request)
    assert row(lab, 3)["loading"] and not row(lab, 3)["owned"]


@pytest.mark.parametrize(("release", "codes"), [("0.9", [16, 16, 16]), ("2.8", [14, 27, 0])])
def test_codes_of_a_first_load(release: str, codes: list[int]) -> None:
    """A first load answers 14, 27 and 0 under 2.8, and 16 to all three requests under 0.9, where the partition is not owned."""
    said = row(while_loading(three_members(release).kill(2)), 3)
    assert [said[request] for request in ("JoinGroup", "SyncGroup", "Heartbeat")] == [
        f"{name} ({code})" for code in codes for name, number in ERRORS.items() if number == code
    ]


@pytest.mark.parametrize("release", ["0.9", "2.8"])
@pytest.mark.parametrize("act", ["kill", "terminate", "freeze", "reassign"])
def test_the_group_goes_with_the_leader(release: str, act: str) -> None:
    """However the leader moves to broker 3, that broker owns the group afterwards, in its generation and with all members."""
    lab = three_members(release)
    before = lab.tables.members()
    if act == "reassign":
        lab.reassign({TP: [3, 1]})
    else:
        getattr(lab, act)(2)
    if act == "freeze":
        lab.expire_session(2)
    lab.run()
    now = lab.tables.members().query("coordinator == 3")
    assert lab.partitions().leader[TP] == 3 and owners(lab)[3] == ["billing"]
    same = ["state", "generation", "member_id", "client_id", "leads", "partitions"]
    assert now[same].values.tolist() == before[same].values.tolist()


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_why_goes_through_both_halves(release: str) -> None:
    """The causes of the group at its new coordinator go from the load over LeaderAndIsr and the election back to the kill."""
    lab = three_members(release).kill(2).run()
    chain = lab.why("generation of billing").outline()
    for part in ("kill", "LeaderAndIsr", "PartitionElected"):
        assert part in chain


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_a_term_refuses_parked_requests_at_once(release: str) -> None:
    """A coordinator that shuts down in order refuses the parked JoinGroup with NOT_COORDINATOR before its process ends."""
    lab = dora_joins(release)
    assert list(lab.tables.parked().client_id) == ["dora"]
    lab.terminate(2).run(lambda lab: lab.state["consumers"]["dora"]["asked"] is None)
    assert error(lab, "dora") == "NOT_COORDINATOR" and lab.brokers().alive[2]


def test_a_frozen_coordinator_refuses_after_the_thaw() -> None:
    """A coordinator that was frozen during the election of its successor keeps the group until it reads LeaderAndIsr."""
    lab = dora_joins("2.8")
    lab.freeze(2).expire_session(2).run()
    assert owners(lab) == {2: ["billing"], 3: ["billing"]}
    lab.thaw(2).run()
    assert error(lab, "dora") == "NOT_COORDINATOR" and owners(lab) == {3: ["billing"]}


@pytest.mark.parametrize(("release", "left"), [("0.9", {2, 3}), ("0.10.2", {2, 3}), ("0.11.0", {3}), ("1.0", {3}), ("2.8", {3})])
def test_a_deleted_replica_resigns_since_0_11(release: str, left: set[int]) -> None:
    """After a reassignment the old coordinator, which gets StopReplica alone, owns the partition up to 0.10.2 (KAFKA-4362)."""
    lab = three_members(release).reassign({TP: [3, 1]}).run()
    assert set(owners(lab)) == left
    lab.group.heartbeat("anna").run()
    assert error(lab, "anna") == ("NONE" if 2 in left else "NOT_COORDINATOR")


def test_a_second_load_answers_14_and_keeps_the_cache() -> None:
    """0.9: a broker that loads a partition which it owns already answers 14, and the group in its cache stays as it is."""
    lab = three_members("0.9").reassign({TP: [3, 1]}).run()
    lab.group.leave("anna", 3).run().run("40 s", alive=True)
    lab.reassign({TP: [2, 3, 1]}).run()
    cached = lab.state["nodes"]["2"]["group"]["groups"]["billing"]
    while_loading(lab.kill(3), 2)
    assert row(lab, 2)["owned"] and row(lab, 2)["JoinGroup"] == "COORDINATOR_LOAD_IN_PROGRESS (14)"
    lab.run()
    assert lab.state["nodes"]["2"]["group"]["groups"]["billing"]["generation"] == cached["generation"]
    assert outcomes(lab, 2)[-1] == "owned" and lab.tables.loads().groups.iloc[-1] == []


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_a_load_that_is_cut_off(release: str) -> None:
    """If the leader moves on before the log is read, the load ends without a group, and the next leader loads the group."""
    lab = while_loading(three_members(release).kill(2))
    lab.terminate(3)
    go_on_without_the_load(lab, 3, lambda lab: lab.partitions().leader[TP] == 1 and not row(lab, 3)["leads"])
    lab.run()
    assert outcomes(lab, 3) == ["cut off: the broker leads no longer", "the partition is given up"]
    assert owners(lab) == {1: ["billing"]}


@pytest.mark.parametrize(("release", "offsets"), [("0.9", ["t-0"]), ("2.8", [])])
def test_a_record_that_cannot_be_read(release: str, offsets: list[str]) -> None:
    """A record without a key ends the load: the partition is owned without its group; 0.9 keeps the offsets before the record."""
    lab = three_members(release).commit("anna", "t-0", 7).run()
    lab.produce(TP, "no key").run().commit("bert", "t-2", 8).run()
    lab.kill(2).run()
    assert owners(lab) == {3: []}
    assert outcomes(lab, 3) == ["owned without the groups of the log: a record of the offsets topic has no key"]
    assert list(lab.tables.offsets().partition) == offsets
    lab.group.heartbeat("anna").run()
    assert error(lab, "anna") == "UNKNOWN_MEMBER_ID"


def test_a_failed_log_directory_does_not_resign() -> None:
    """A coordinator whose log directory fails keeps the partition, and answers commits with NOT_COORDINATOR."""
    lab = three_members("2.8")
    lab.disks.fail_log_dir(2, TP).run()
    assert set(owners(lab)) == {2, 3}
    lab.commit("anna", "t-0", 7).run()
    assert error(lab, "anna") == "NOT_COORDINATOR"
