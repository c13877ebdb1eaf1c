"""What questions of chapters 3 and 5 to 11, and forms of 12 and 14, say will happen does happen; each chapter asks its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from kcontrol import Lab
from kcontrol.lab.exercises import answers, exercises, predictions
from tests.parts import ROOT

CHAPTERS = {int(path.name[:2]): path for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]-*.ipynb"))}
ZOMBIE = {"t": [[3, 2, 1], [2, 3, 1]]}
Opened = Callable[..., Lab]


def code(path: Path) -> str:
    return "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code")


def played(chapter: int, last: str, **chosen: Any) -> dict[str, Any]:
    """Run the code cells of a chapter up to the cell `last`, with these values of its widgets; return the names that they set."""
    room: dict[str, Any] = {"display": lambda shown: None}
    for cell in nbformat.read(CHAPTERS[chapter], as_version=4).cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, cell.id, "exec"), room)
        for name in chosen.keys() & room.keys():
            room[name].value = chosen[name]
        if cell.id == last:
            break
    return room


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_asks_its_own_questions_and_exercises(chapter: int) -> None:
    """What the registries have for a chapter is what its page asks; from chapter 1 on three exercises of two verbs at least."""
    text = code(CHAPTERS[chapter])
    questions = {id for id, entry in predictions.predictions().items() if entry["chapter"] == chapter}
    tasks = {id: entry for id, entry in exercises.registry().items() if entry["chapter"] == chapter}
    assert set(re.findall(r'\.predict\("([^"]+)", ', text)) == questions != set()
    assert set(re.findall(r'exercises\.check\("([^"]+)"', text)) == set(tasks)
    assert chapter == 0 or (len(tasks) >= 3 and len({entry["verb"] for entry in tasks.values()}) >= 2)


@pytest.mark.parametrize(("release", "leader"), [("0.8.1", 3), ("2.8", 2)])
def test_the_order_that_decides(opened: Opened, release: str, leader: int) -> None:
    """Chapter 5: with assignment [1, 2, 3] and ISR [1, 3, 2] it depends on the release who leads after broker 1."""
    lab = opened([4, 1, 2, 3], release=release, topics={"t": [[1, 2, 3]]})
    lab.kill(2).run().start(2).run()
    assert lab.partitions().isr["t-0"] == [1, 3, 2]
    lab.kill(1).run()
    assert lab.partitions().leader["t-0"] == leader


def test_leaders_pile_up_after_a_rolling_restart(opened: Opened) -> None:
    """Chapter 5: under 0.8.1 one broker leads everything after goodbyes in order, under 2.8 the leaders stay spread."""
    found = {}
    for release in ("0.8.1", "2.8"):
        lab = opened([4, 1, 2, 3], release=release, topics={"t": [[1, 2, 3], [2, 3, 1], [3, 1, 2]]})
        for broker in (1, 2, 3):
            lab.terminate(broker).run().start(broker).run()
        found[release] = lab.partitions().leader.nunique()
    assert found == {"0.8.1": 1, "2.8": 2}


def test_an_unclean_election_loses_what_one_that_waits_keeps(opened: Opened) -> None:
    """Chapter 5: where it is allowed c and d are lost for good; where it is not the partition waits, and nothing is lost."""
    lost: dict[bool, Any] = {}
    for allowed in (True, False):
        lab = opened([3, 1, 2], data=True, topics={"t": [[1, 2]]}, config={"unclean.leader.election.enable": allowed})
        lab.produce("t-0", "a").run().kill(2).run()
        lab.produce("t-0", "c").produce("t-0", "d").run().kill(1).run().start(2).run()
        assert (lab.partitions().leader["t-0"] == 2) == allowed
        lab.start(1).run()
        lost[allowed] = [record.fields["value"] for record in lab.records if record.kind == "record_lost"]
    assert lost == {True: ["c", "d"], False: []}


def test_the_controller_knows_by_the_session(opened: Opened) -> None:
    """Chapter 8: after a kill the controller begins with BrokerChange only once the session has ended."""
    lab = opened([4, 1, 2, 3], topics={"t": [[1, 2, 3]]})
    begun = len(lab.records)
    lab.kill(2).run(until="BrokerChange")
    kinds = [record.kind for record in lab.records[begun:]]
    assert kinds.index("stop") < kinds.index("close") < kinds.index("begin")


def test_a_returned_broker_gets_its_requests_before_it_is_elected(opened: Opened) -> None:
    """Chapter 8: a returned broker gets UpdateMetadata, then LeaderAndIsr, and then leads the partitions that were Offline."""
    lab = opened([4, 1, 2, 3], topics={"t": [[1, 2, 3]], "u": [[2]]})
    lab.kill(2).run().start(2).run()
    what = list(lab.tables.handler_steps("BrokerChange", 4).what)
    metadata, hosts, elected = (
        next(at for at, said in enumerate(what) if part in said)
        for part in ("sends UpdateMetadata to 2 about", "sends LeaderAndIsr to 2", "moves u-0 from Offline to Online")
    )
    assert metadata < hosts < elected


def test_a_bounced_broker_fails_and_starts_in_one_event(opened: Opened) -> None:
    """Chapter 8: its replicas go Offline and then Online, although the ids are the same."""
    lab = opened([4, 1, 2, 3], topics={"t": [[1, 2, 3]]})
    lab.freeze(4).kill(2).expire_session(2).start(2).run().thaw(4).run()
    moves = [said for said in lab.tables.handler_steps("BrokerChange", 4).what if "t-0 on broker 2" in said]
    assert ["to Offline" in move for move in moves] == [True, False] and "to Online" in moves[1]


def test_the_first_write_of_a_controller(opened: Opened) -> None:
    """Chapter 9: under 2.8 the znode and the epoch are one transaction, under 0.8.1 they are two writes."""
    first = []
    for release, event in (("2.8", "Reelect"), ("0.8.1", "LeaderChange")):
        steps = opened(3, release=release).kill(1).run().tables.handler_steps(event, 2)
        first.append(steps[steps.kind == "write"].what.iloc[0])
    assert first == ["Broker 2 creates /controller and rewrites /controller_epoch.", "Broker 2 creates /controller."]


def test_a_deleted_controller_znode_refreshes_metadata_everywhere(opened: Opened) -> None:
    """Chapter 9: every broker gets UpdateMetadata twice, without partitions and then with all of them; no leader changes."""
    lab = opened(3, topics=ZOMBIE)
    before, leaders = len(lab.tables.requests()), lab.partitions().leader
    lab.zk.delete("/controller").run()
    sent = lab.tables.requests()[before:].query("api == 'UpdateMetadata'")
    assert list(sent.receiver) == [1, 2, 3, 1, 2, 3]
    assert list(map(len, sent.partitions)) == [0, 0, 0, 2, 2, 2] and set(sent.state) == {"answered"}
    assert lab.partitions().leader.equals(leaders)


def test_a_zombie_whose_session_is_over_resigns(opened: Opened) -> None:
    """Chapter 9: Expire is what it handles first, and it writes nothing before that."""
    lab = opened(3, topics=ZOMBIE)
    lab.freeze(1).expire_session(1).run()
    assert lab.brokers().believes_so.tolist() == [True, True, False]
    thawed = len(lab.records)
    lab.thaw(1).run()
    mine = [record for record in lab.records[thawed:] if record.id.node == 1 and record.kind in ("begin", "write")]
    assert mine[0].kind == "begin" and mine[0].to_json().fields["event"] == "Expire"
    assert lab.brokers().believes_so.tolist() == [False, True, False]


@pytest.mark.parametrize(("release", "epochs"), [("2.8", [2, 2]), ("0.8.1", [2, 1])])
def test_the_fence_and_its_absence(opened: Opened, release: str, epochs: list[int]) -> None:
    """Chapter 9: under 2.8 a replaced controller writes nothing any more; under 0.8.1 its writes of unchanged znodes succeed."""
    lab = opened(3, release=release, topics=ZOMBIE).kill(3).run(until="BrokerChange")
    lab.step().step().step().freeze(1).zk.delete("/controller").run().thaw(1).run()
    assert lab.partitions().controller_epoch.tolist() == epochs
    assert any(record.kind == "exception" for record in lab.records) is (release == "2.8")


def test_a_request_of_a_replaced_controller_is_refused(opened: Opened) -> None:
    """Chapter 9: brokers refuse what bears a controller epoch smaller than the largest they have seen."""
    lab = opened(3, topics=ZOMBIE).kill(3).run(until="BrokerChange").step().step().step().step()
    lab.freeze(1).zk.delete("/controller").run().thaw(1).step(("deliver_request", 1, 2))
    refused = lab.tables.requests().query("sender == 1 and error == 'STALE_CONTROLLER_EPOCH'")
    assert list(refused.receiver) == [2]


# ---------------------------------------------------------------- chapter 3

NAMED = '{"version":1,"brokerid":3,"timestamp":"0"}'
HEARING = {"t": [[2, 3, 1], [1, 2, 3]]}


def three_wait(opened: Opened, release: str = "2.8") -> Lab:
    """A death, a client's move and a deletion wait in the queue of controller 1."""
    lab = (
        opened(3, release=release, topics=HEARING)
        .kill(3)
        .expire_session(3)
        .step(("deliver_notification", 1))
        .step(("deliver_notification", 1))
    )
    return lab.reassign({"t-0": [2, 1]}).zk.delete("/controller").step(("deliver_notification", 1))


def test_two_deaths_are_one_event(opened: Opened) -> None:
    """Chapter 3: the second end of a session sends no notification, and the controller's one event finds both deaths."""
    lab = opened(5, topics={"t": [[4, 5, 1], [5, 4, 2]]})
    before = len(lab.tables.watch_events(1))
    lab.kill(4).expire_session(4).kill(5).expire_session(5).run()
    assert (lab.tables.watch_events(1)[before:].event == "BrokerChange").sum() == 1
    assert lab.partitions().leader.tolist() == [1, 2]


def test_the_notification_about_the_own_controller_znode_comes_after_the_takeover(opened: Opened) -> None:
    """Chapter 3: the elected broker handles the event about its own `/controller` after its takeover, and writes nothing."""
    lab = opened(2, start=False).start(1).run()
    assert lab.tables.watch_events(1).event.tolist()[:3] == ["Startup", "ReplicaLeaderElection", "ControllerChange"]
    assert set(lab.tables.handler_steps("ControllerChange", 1).kind) == {"read"}


@pytest.mark.parametrize(("release", "active", "leader"), [("0.8.1", 1, 3), ("0.10.2", None, 2), ("1.0", 3, 2), ("2.8", 3, 2)])
def test_a_forged_name(opened: Opened, release: str, active: int | None, leader: int) -> None:
    """Chapter 3: with a forged name the old controller stays active under 0.8.1, none under 0.10.2, and broker 3 from 1.0 on."""
    lab = opened(3, release=release, topics=HEARING).zk.set("/controller", NAMED).run().kill(2).run()
    counts = lab.tables.metrics().xs("Value", level="attribute")[[1, 3]].loc["ActiveControllerCount"]
    assert counts.to_dict() == {1: float(active == 1), 3: float(active == 3)}
    assert lab.partitions().leader["t-0"] == leader


def test_the_end_waits_in_line(opened: Opened) -> None:
    """Chapter 3: death, move, deletion are handled in the order in which they came."""
    lab = three_wait(opened)
    ids = lab.tables.watch_events(1).index[-3:]
    begun = [record.cause for record in lab.run().records if record.kind == "begin"]
    at = [begun.index(record.id) for record in lab.records if str(record.id) in set(ids)]
    assert at == sorted(at) and lab.tables.watch_events(1).loc[ids].event.tolist() == [
        "BrokerChange",
        "ApiPartitionReassignment",
        "Reelect",
    ]


@pytest.mark.parametrize(("release", "error"), [("2.8", "NOT_CONTROLLER"), ("2.4", None)])
def test_the_client_of_a_preempted_request_gets_a_response_under_2_8(opened: Opened, release: str, error: str | None) -> None:
    """Chapter 3: the new session preempts three events; the client gets NOT_CONTROLLER under 2.8 and no response under 2.4."""
    lab = three_wait(opened, release).expire_session(1).step(("renew", 1))
    assert lab.tables.watch_events(1).result.tolist()[-4:] == ["preempted"] * 3 + ["waits"]
    body = next(record.fields["body"] for record in reversed(lab.records) if record.kind == "respond")
    assert (body and body["error"]) == error


@pytest.mark.parametrize(("release", "leader"), [("0.8.1", 2), ("2.8", 1)])
def test_an_expired_session_moves_leaders_in_the_old_design(opened: Opened, release: str, leader: int) -> None:
    """Chapter 3: a controller of 0.8.1 that takes over before it is registered elects other leaders for its own partitions."""
    assert opened(3, release=release, topics=HEARING).expire_session(1).run().partitions().leader["t-1"] == leader


# ---------------------------------------------------------------- chapter 10

MOVE = {"t-0": [4, 5, 6]}


def moved(opened: Opened, release: str) -> Lab:
    """Broker 9 has moved t-0 from 1, 2, 3 to 4, 5, 6."""
    lab = opened([9, 1, 2, 3, 4, 5, 6], seed=10, release=release, data=True, topics={"t": [[1, 2, 3]]})
    return lab.produce("t-0", "a").run().reassign(MOVE).run()


@pytest.mark.slow
@pytest.mark.parametrize("release", ["0.8.1", "2.8"])
def test_a_move_goes_on_after_every_crash(opened: Opened, release: str) -> None:
    """Chapter 10: whichever of its writes the controller survives, t-0 ends on 4, 5 and 6; after the last one old logs stay."""
    lab = moved(opened, release)
    logs = []
    for write in lab.tables.partition_history("t-0").set_index("record").index[2:]:
        after = lab.branch(at=write).kill(9).run()
        row = after.partitions().loc["t-0"]
        assert (row.leader, row.replicas, sorted(row.isr)) == (4, [4, 5, 6], [4, 5, 6])
        logs.append(after.tables.replica_log("t-0").index.tolist())
    assert len(logs) == 10 and all(kept == [4, 5, 6] for kept in logs[:-1]) and logs[-1] == [1, 2, 3, 4, 5, 6]


def test_an_assignment_written_too_early_forgets_the_old_replicas(opened: Opened) -> None:
    """Chapter 10: if the topic znode has the target before a replica is removed, the next 0.8.1 controller removes no replica."""
    lab = moved(opened, "0.8.1")
    writes = lab.tables.partition_history("t-0").set_index("record")
    early = lab.branch(at=writes.index[writes["isr"].str.len() == 6][0])
    early.kill(9).zk.set("/brokers/topics/t", '{"version":1,"partitions":{"0":[4,5,6]}}').run()
    row = early.partitions().loc["t-0"]
    assert (row.leader, row["isr"], row.replicas) == (1, [1, 2, 3, 4, 5, 6], [4, 5, 6])
    assert "/admin/reassign_partitions" not in early.tables.znodes().index


def test_a_move_begins_with_who_comes_and_who_goes(opened: Opened) -> None:
    """Chapter 10: the first write that 2.8 makes for a move is the topic znode: all replicas, and who is added and removed."""
    writes = moved(opened, "2.8").tables.partition_history("t-0").set_index("record")
    first = writes.iloc[2]
    assert (first.replicas, first.adding_replicas, first.removing_replicas) == ([4, 5, 6, 1, 2, 3], [4, 5, 6], [1, 2, 3])
    assert first[["leader", "isr", "leader_epoch"]].equals(writes.iloc[1][["leader", "isr", "leader_epoch"]])


def test_a_cancellation_shrinks_the_assignment_first(opened: Opened) -> None:
    """Chapter 10: a controller that dies between two writes of a cancellation leaves a broker in sync that is not assigned."""
    lab = opened([9, 1, 2, 5, 6], seed=10, topics={"t": [[1, 2]]})
    lab.freeze(6).reassign({"t-0": [5, 6]}).run().reassign({"t-0": None}).run()
    assert lab.partitions().loc["t-0", ["isr", "replicas"]].tolist() == [[1, 2], [1, 2]]
    left = [
        lab.branch(at=write).kill(9).run().partitions()["isr"]["t-0"]
        for write in lab.tables.partition_history("t-0").set_index("record").index[5:]
    ]
    assert left == [[1, 2, 5], [1, 2], [1, 2]]


def test_a_new_order_keeps_the_leader(opened: Opened) -> None:
    """Chapter 10: the same brokers in another order cost a leader epoch; the leader goes only where it is no target."""
    lab = opened(3, topics={"t": [[2, 3, 1]]}).reassign({"t-0": [3, 2, 1]}).run()
    row = lab.partitions().loc["t-0"]
    assert (row.replicas, row.leader, row.leader_epoch) == ([3, 2, 1], 2, 1)
    assert lab.reassign({"t-0": [3, 1]}).run().partitions().leader["t-0"] == 3


DELETED = {"t": [[2, 3], [3, 2]]}


def test_the_request_goes_last(opened: Opened) -> None:
    """Chapter 11: the partitions end before a replica is deleted, the znodes after all of them, and the request last."""
    lab = opened(3, topics=DELETED).delete_topic("t").run()
    moves = list(lab.journal("change")[["machine", "target"]].itertuples(index=False, name=None))
    ended = moves.index(("partition", "NonExistentPartition"))
    assert ended < moves.index(("replica", "ReplicaDeletionStarted")) < moves.index(("replica", "NonExistentReplica"))
    deleted = [op[1] for r in lab.records if r.kind == "write" for op in r.fields["ops"] if op[0] == "delete"]
    assert deleted[-3:] == ["/brokers/topics/t", "/config/topics/t", "/admin/delete_topics/t"]


def test_a_half_dead_topic(opened: Opened) -> None:
    """Chapter 11: dead replicas are ineligible for a moment and Offline from then on; a start of their broker ends it all."""
    lab = opened(3, topics=DELETED).kill(3).run().delete_topic("t").run()
    moves = lab.journal("change").query("subject == 't-0@3'").target.tolist()
    assert moves[-2:] == ["ReplicaDeletionIneligible", "OfflineReplica"]
    assert "/brokers/topics/t" in lab.start(2 + 2).run().tables.znodes().index  # the start of another broker changes nothing
    assert "/brokers/topics/t" not in lab.start(3).run().tables.znodes().index


def test_silence_has_no_deadline(opened: Opened) -> None:
    """Chapter 11: a replica without a response stays in DeletionStarted until the session of its broker ends."""
    lab = opened(3, topics=DELETED).freeze(3).delete_topic("t").run()
    lab.kill(2).run().start(2).run()
    assert lab.tables.ongoing_deletions().state.filter(like="@3").unique().tolist() == ["ReplicaDeletionStarted"]
    lab.kill(3).run()
    moved = lab.journal("change").query("subject == 't-0@3'").target.tolist()
    assert moved[-3:] == ["ReplicaDeletionStarted", "ReplicaDeletionIneligible", "OfflineReplica"]


@pytest.mark.parametrize(("release", "requested"), [("0.8.1", True), ("2.8", False)])
def test_a_request_where_deletion_is_off(opened: Opened, release: str, requested: bool) -> None:
    """Chapter 11: a controller of 0.8.1 leaves the request, one of 2.8 deletes it; the topic stays Online in both."""
    lab = opened(3, release=release, config={"delete.topic.enable": False}, topics=DELETED).delete_topic("t").run()
    assert ("/admin/delete_topics/t" in lab.tables.znodes().index) == requested
    assert set(lab.partitions().state) == {"OnlinePartition"}


@pytest.mark.parametrize(("release", "halts"), [("0.8.1", True), ("2.8", False)])
def test_a_reassignment_halts_in_0_8_1_alone(opened: Opened, release: str, halts: bool) -> None:
    """Chapter 11: under 0.8.1 the topic is ineligible and untouched; under 2.8 all replicas but those of the frozen broker go."""
    lab = opened(4, release=release, config={"delete.topic.enable": True}, topics=DELETED).freeze(4)
    found = lab.reassign({"t-0": [2, 4]}).run().delete_topic("t").run().tables.ongoing_deletions()
    assert found.ineligible.all() == halts
    assert ("ReplicaDeletionSuccessful" in set(found.state)) != halts
    assert len(lab.thaw(4).run().tables.ongoing_deletions()) == 0


def test_a_replica_that_was_dead_during_a_deletion_comes_back(opened: Opened) -> None:
    """Chapter 11: a broker that was dead brings its copy back, and a topic of the same name has the old record in it."""
    lab = opened(3, release="0.8.1", config={"delete.topic.enable": True}, data=True, topics={"t": [[2, 3]]})
    lab.produce("t-0", "old").run().kill(3).run().delete_topic("t").run()
    for path in sorted(lab.tables.znodes().filter(regex="topics/t(/|$)", axis=0).index, reverse=True):
        lab.zk.delete(path)
    lab.zk.delete("/controller").run().start(3).run().create_topic("t", [[3, 2]]).run()
    assert list(lab.tables.consumer_records("t-0").value) == ["old"]


def test_a_deletion_with_all_replicas_dead_is_not_tried_again(opened: Opened) -> None:
    """Chapter 11: with no answer to come, the replicas stay in DeletionIneligible."""
    lab = opened(3, topics=DELETED).kill(2).run().kill(3).run().delete_topic("t").run()
    assert set(lab.tables.ongoing_deletions().state) == {"ReplicaDeletionIneligible"}


@pytest.mark.parametrize("halt", [("kill", 3), ("fail_log_dir", 3, "t-0"), ("freeze", 3)])
def test_the_rule_of_the_exercise_is_that_of_the_controller(opened: Opened, halt: tuple[Any, ...]) -> None:
    """Chapter 11: where a halted deletion has come to rest, nothing is due by the solution of `resume-or-wait`."""
    due = answers.shipped(exercises.registry()["resume-or-wait"], "solution")
    lab = opened(3, topics={"t": [[2, 3]]}).step(halt)
    found = (lab if halt[0] == "freeze" else lab.run()).delete_topic("t").run().tables.ongoing_deletions()
    states = found.state.str.removeprefix("ReplicaDeletion").str.removesuffix("Replica").tolist()
    assert len(states) == 2 and due(states, bool(found.ineligible.all())) == []


@pytest.mark.parametrize(
    ("topic", "before", "gone"),
    [
        ([1, 2, 3], (), ("kill", 3)),
        ([1, 2, 3], (("kill", 2),), ("kill", 3)),
        ([3, 2], (("kill", 2),), ("kill", 3)),
        ([3], (), ("kill", 3)),
        ([1, 2, 3], (("kill", 3), ("start", 3)), ("terminate", 3)),
    ],
)
def test_the_exercise_retires_as_the_controller_does(
    opened: Opened, topic: list[int], before: tuple[tuple[Any, ...], ...], gone: tuple[Any, ...]
) -> None:
    """Chapter 7: leader, ISR and receivers after a move to Offline are those of the solution of `off-the-isr`."""
    retire = answers.shipped(exercises.registry()["off-the-isr"], "solution")
    lab = opened([5, 1, 2, 3], topics={"t": [topic]})
    for act in before:
        lab.step(act).run()
    stored, sent, made = lab.partitions().loc["t-0"], len(lab.tables.requests()), len(lab.journal("change"))
    lab.step(gone).run()
    moves = lab.journal("change").iloc[made:].query("subject == 't-0@3' and target == 'OfflineReplica'")
    leader, isr, receivers = retire(3, topic, stored.leader, stored.isr)
    leadership = moves.leadership.iloc[0]
    assert (leadership["leader"], list(leadership["isr"])) == (leader, isr)
    orders = lab.tables.requests().iloc[sent:].query("api == 'LeaderAndIsr'")
    assert set(orders.receiver) == set(lab.brokers().query("alive").index) & set(receivers)


def test_a_deleted_replica_gets_leader_and_isr_after_a_failover(opened: Opened) -> None:
    """Chapter 7: a broker that has deleted its replica receives LeaderAndIsr and StopReplica from the next controller."""
    lab = opened([5, 1, 2, 3], topics={"t": [[1, 2, 3]]}).freeze(3).delete_topic("t").run()
    assert lab.tables.replicas().state["t-0@2"] == "ReplicaDeletionSuccessful"
    lab.kill(5).run()
    received = lab.tables.requests().query("receiver == 2 and sender == 1")
    assert received.api.tolist() == ["UpdateMetadata", "LeaderAndIsr", *["UpdateMetadata"] * 2, *["StopReplica"] * 2]
    assert lab.tables.replicas().state["t-0@2"] == "ReplicaDeletionSuccessful"


def test_online_is_not_alive(opened: Opened) -> None:
    """Chapter 7: the replica of a topic that is created while its broker is dead is Online, without a leader of its partition."""
    lab = opened(3).kill(3).run().create_topic("u", [[3]]).run()
    assert lab.tables.replicas().loc["u-0@3", ["state", "alive"]].tolist() == ["OnlineReplica", False]
    lab.start(3).run()
    assert lab.journal("change").query("subject == 'u-0@3'").rule.tolist()[-1] == "it has no leadership"


def test_a_broker_that_leaves_refuses_to_stop(opened: Opened) -> None:
    """Chapter 7: in 2.8 both orders carry the leader epoch that the broker has. Source: ReplicaManager.stopReplicas (2.8)."""
    found = opened([5, 1, 2, 3], topics={"t": [[1, 2, 3]]}).terminate(3).run().tables.requests().query("api == 'StopReplica'")
    assert found.error.tolist() == ["FENCED_LEADER_EPOCH"] * 2


TWO = {"t": [[1, 2, 3], [2, 3, 1]]}
ORDER = "LeaderAndIsrRequest"


def answers_of_3(lab: Lab) -> list[str]:
    """What broker 3 has answered to the two requests of the first batch after the death of broker 2."""
    found: list[str] = lab.tables.requests().query("sender == 4 and receiver == 3").error.fillna("NONE").tolist()[-4:-2]
    return found


def test_the_next_controller_sends_a_decision_that_was_written_and_not_sent(opened: Opened) -> None:
    """Chapter 6: a controller dies between write and send; the next one sends what is written, and elects nothing again."""
    lab = opened([4, 1, 2, 3], topics=TWO).kill(2).run(until=lambda lab: lab.partitions().leader["t-1"] == 3).kill(4)
    assert lab.tables.leadership_views("t-1").leader.to_dict() == {
        "ZooKeeper": 3,
        "1 hosts": 2,
        "1 metadata": 2,
        "3 hosts": 2,
        "3 metadata": 2,
    }
    found = lab.run().tables.leadership_views("t-1")
    assert set(found.leader) == {3} and set(found.leader_epoch) == {1} and found.controller_epoch["ZooKeeper"] == 1


def test_a_request_that_is_received_twice(opened: Opened) -> None:
    """Chapter 6: the second request has no newer leader epoch and gets STALE_CONTROLLER_EPOCH; the first is applied."""
    lab = opened([4, 1, 2, 3], topics=TWO).kill(2).run(until=ORDER).network.duplicate_request(4, 3).run()
    assert answers_of_3(lab) == ["STALE_CONTROLLER_EPOCH", "NONE"]
    assert lab.tables.leadership_views("t-1").leader["3 hosts"] == 3


def test_an_order_of_a_controller_that_was_replaced(opened: Opened) -> None:
    """Chapter 6: the receiver refuses the whole request once it has received a later controller epoch."""
    lab = opened([4, 1, 2, 3], topics=TWO).kill(2).run(until=ORDER).freeze(4).expire_session(4).run().thaw(4).run()
    assert answers_of_3(lab) == ["STALE_CONTROLLER_EPOCH", "STALE_CONTROLLER_EPOCH"]


@pytest.mark.parametrize(("release", "answer"), [("1.1", "NONE"), ("2.8", "STALE_BROKER_EPOCH")])
def test_an_order_for_an_earlier_life(opened: Opened, release: str, answer: str) -> None:
    """Chapter 6: since 2.2 a request names the registration that it is meant for. Source: KafkaApis.isBrokerEpochStale (2.8)."""
    lab = opened([4, 1, 2, 3], topics=TWO, release=release).kill(2).run(until=ORDER).kill(3).expire_session(3).start(3)
    while own := [a for a in lab.actions() if a[0] in ("advance", "begin", "deliver_notification") and a[1] == 3]:
        lab.step(own[0])
    assert answers_of_3(lab.step(("deliver_request", 4, 3)))[0] == answer


def test_a_new_broker_gets_an_outdated_isr_and_no_election_uses_it(opened: Opened) -> None:
    """Chapter 6: in 0.8.1 the controller's cache and the metadata that it sends have an old ISR; the election reads the znode."""
    lab = opened([4, 1, 2, 3], topics=TWO, release="0.8.1").freeze(3).shrink_isr("t-0", 3).run().start(5).run()
    assert lab.tables.leadership_views("t-0").isr[["ZooKeeper", "4 controls", "5 metadata"]].tolist() == [
        [1, 2],
        [1, 2, 3],
        [1, 2, 3],
    ]
    assert lab.kill(1).run().tables.leadership_views("t-0").isr[["ZooKeeper", "4 controls", "5 metadata"]].tolist() == [[2]] * 3


# ---------------------------------------------------------------- chapters 12 and 14


@pytest.mark.parametrize("who", ["anna", "bert", "cleo"])
@pytest.mark.parametrize(
    ("how", "reason"), [("it sends LeaveGroup", "a member leaves"), ("it only stops sending", "session timeout")]
)
def test_a_stopped_consumer_leaves_two_members_that_live(who: str, how: str, reason: str) -> None:
    """Chapter 12: with each choice of the form, the other two have deadlines in the future, and end alone in generation 2."""
    stopped = played(12, "stop", who=who, how=how)["lab"]
    assert stopped.group_strip().title == "Group billing: PreparingRebalance, generation 1, coordinator broker 2."
    found = {lane.split()[1]: lane for lane in stopped.group_strip().lines()[1:4]}
    assert found[f"{who}:"].endswith("not in the group") and len(found) == 3
    others = [lane for name, lane in found.items() if name != f"{who}:"]
    assert all(re.search(r"in generation 1; .*; SessionTimedOut in (9|10) s$", lane) for lane in others)
    agreed = played(12, "agree-again", who=who, how=how)["lab"]
    lines = agreed.group_strip().lines()
    assert lines[0] == "Group billing: Stable, generation 2, coordinator broker 2." and len(lines) == 4
    assert sum("in generation 2; " in lane for lane in lines) == 2 and [who] == [
        lane.split()[1][:-1] for lane in lines if lane.endswith("not in the group")
    ]
    assert agreed.tables.rebalances().reason.tolist() == ["a new member", reason]


@pytest.mark.parametrize(("seconds", "gone"), [(0.0, False), (9.0, False), (9.5, False), (12.0, True)])
def test_a_silence_ends_at_the_deadline(seconds: float, gone: bool) -> None:
    """Chapter 14: bert is removed if its silence is longer than its session timeout, and else no rebalance begins."""
    lab = played(14, "silent", silence=seconds)["lab"]
    assert ("bert: not in the group" in repr(lab.group_strip())) is gone
    assert lab.tables.rebalances().to_generation.max() == (3 if gone else 2)
    assert all(0 < ms <= 10_000 for ms in lab.tables.timers().query("event == 'SessionTimedOut'").in_ms)
