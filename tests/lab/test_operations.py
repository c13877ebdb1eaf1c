"""One method per fault and per operator's act; each refuses what cannot be, in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kcontrol import Lab, exercises
from kcontrol.controller.leader_election import Elected, ElectionInput
from kcontrol.core.errors import UserError
from kcontrol.core.model import PartitionState, ReplicaState
from tests.lab.support import refusal

ACTS: list[tuple[str, Callable[[Lab], Lab], tuple[Any, ...]]] = [
    ("start", lambda lab: lab.start(4), ("start", 4)),
    ("kill", lambda lab: lab.kill(3), ("kill", 3)),
    ("terminate", lambda lab: lab.terminate(3), ("terminate", 3)),
    ("freeze", lambda lab: lab.freeze(3), ("freeze", 3)),
    ("thaw", lambda lab: lab.freeze(3).thaw(3), ("thaw", 3)),
    ("expire_session", lambda lab: lab.expire_session(3), ("expire_session", 3)),
    ("shrink_isr", lambda lab: lab.shrink_isr("t-1", 3), ("shrink_isr", 1, "t-1", 3)),
    ("create_topic", lambda lab: lab.create_topic("u", [[1]]), ("create_topic", "u", [[1]])),
    ("delete_topic", lambda lab: lab.delete_topic("t"), ("delete_topic", "t")),
    ("create", lambda lab: lab.zk.create("/mine", "x"), ("create", "/mine", "x")),
    ("set", lambda lab: lab.zk.set("/controller_epoch", "5"), ("set", "/controller_epoch", "5")),
    ("delete", lambda lab: lab.zk.delete("/controller"), ("delete", "/controller")),
    ("reassign", lambda lab: lab.reassign({"t-0": (2, 3), "t-1": None}), ("reassign", 1, {"t-0": [2, 3], "t-1": None})),
]


@pytest.mark.parametrize(("act", "action"), [pytest.param(a, w, id=name) for name, a, w in ACTS])
def test_an_act_is_one_step(lab: Lab, act: Callable[[Lab], Lab], action: tuple[Any, ...]) -> None:
    """The method does the action of its name as one step, and returns the lab."""
    assert act(lab) is lab
    assert lab._world.done[-1] == action


def test_lose_and_duplicate(lab: Lab) -> None:
    """A request on its way can be dropped, after which it waits again, and can be received twice."""
    lab.create_topic("u", [[1, 3]]).run(until=lambda it: "1>3" in it.state["channels"])
    assert lab.network.drop_request(1, 3).journal("drop_request").iloc[-1].receiver == 3
    assert "1>3" in lab.state["channels"]
    assert lab.network.duplicate_request(1, 3).journal("duplicate_request").iloc[-1].receiver == 3
    assert lab.run().partitions().leader["u-0"] == 1


def test_a_timer_fires(lab: Lab) -> None:
    """An armed timer can be made to fire; its event is handled."""
    timer = next(iter(lab.state["nodes"]["1"]["timers"]))
    lab.fire_timer(1, timer)
    assert lab.journal("fire_timer").timer.iloc[-1] == timer


def test_shrink_and_return(lab: Lab) -> None:
    """A follower that lags leaves the ISR, and comes back to its end when it has caught up."""
    lab.shrink_isr("t-1", 2).run(until=lambda it: it.partitions().isr["t-1"] == [1, 3])
    assert lab.run().partitions().isr["t-1"] == [1, 3, 2]


def test_a_topic_given_by_partition_number(lab: Lab) -> None:
    """An assignment may be a mapping from partition to replicas."""
    assert lab.create_topic("u", {0: [2], 3: [1, 2]}).run().partitions().leader.loc[["u-0", "u-3"]].tolist() == [2, 1]


def test_topics_and_settings_at_the_start(opened: Callable[..., Lab]) -> None:
    """Topics that are named at the start are there, and a setting under Kafka's name has its effect."""
    for allowed, leader in ((False, -1), (True, 3)):
        lab = opened(topics={"t": [[2, 3]]}, config={"unclean.leader.election.enable": allowed})
        lab.kill(3).run().kill(2).run().start(3).run()
        assert lab.partitions().leader["t-0"] == leader


REFUSED: list[tuple[Callable[[Lab], object], str]] = [
    (lambda lab: lab.kill(9), "1, 2 and 3"),
    (lambda lab: lab.kill("1"), "1, 2 and 3"),
    (lambda lab: lab.kill(True), "1, 2 and 3"),
    (lambda lab: lab.start(2), "running already"),
    (lambda lab: lab.start(-1), "from 0 on"),
    (lambda lab: lab.start("x"), "from 0 on"),
    (lambda lab: lab.thaw(2), "is not frozen"),
    (lambda lab: lab.freeze(2).freeze(2), "thaw"),
    (lambda lab: lab.expire_session(9), "brokers with an open session: 1, 2 and 3"),
    (lambda lab: lab.fire_timer(1, "boo"), "auto-leader-rebalance"),
    (lambda lab: lab.shrink_isr("x-0", 1), "t-0 and t-1"),
    (lambda lab: lab.shrink_isr("t-0", 2), "leader 2 can remove these brokers: 3"),
    (lambda lab: lab.network.drop_request(1, 2), "none"),
    (lambda lab: lab.network.duplicate_request(1, 2), "none"),
    (lambda lab: lab.create_topic("t", [[1]]), "already"),
    (lambda lab: lab.create_topic("", [[1]]), "name"),
    (lambda lab: lab.create_topic("a/b", [[1]]), "'/'"),
    (lambda lab: lab.create_topic("u", []), "[[1, 2, 3], [2, 3, 1]]"),
    (lambda lab: lab.create_topic("u", [[]]), "[[1, 2, 3], [2, 3, 1]]"),
    (lambda lab: lab.create_topic("u", [[1, 1]]), "[[1, 2, 3], [2, 3, 1]]"),
    (lambda lab: lab.create_topic("u", 3), "[[1, 2, 3], [2, 3, 1]]"),
    (lambda lab: lab.reassign({}), '{"t-0": [2, 3]}'),
    (lambda lab: lab.reassign("t-0"), '{"t-0": [2, 3]}'),
    (lambda lab: lab.reassign({"t-0": "23"}), '{"t-0": [2, 3]}'),
    (lambda lab: lab.reassign({"x-0": [1]}), "t-0 and t-1"),
    (lambda lab: lab.reassign({"t-0": None}, znode=True), "t-0"),
    (lambda lab: lab.reassign({"t-0": [1]}, znode=True).reassign({"t-1": [1]}, znode=True), "lab.run()"),
    (lambda lab: lab.zk.create("/a/b"), "parent"),
    (lambda lab: lab.zk.create("/brokers"), "already"),
    (lambda lab: lab.zk.set("/nope", ""), "/controller"),
    (lambda lab: lab.zk.delete("/nope"), "/controller"),
    (lambda lab: lab.zk.delete("/brokers"), "/brokers/ids"),
    (lambda lab: lab.zk.get("/nope"), "/controller"),
    (lambda lab: lab.step(("boo", 1)), "lab.actions() has those"),
    (lambda lab: lab.step(("kill",)), "('kill', broker)"),
    (lambda lab: lab.step(()), "lab.actions() has those"),
    (lambda lab: lab.step("kill"), "lab.actions()"),
    (lambda lab: lab.step(3), "lab.actions()"),
    (lambda lab: lab.run_event(1), "possible actions"),
    (lambda lab: lab.run_event(9), "1, 2 and 3"),
    (lambda lab: lab.why("boo"), '"leader of t-0"'),
    (lambda lab: lab.why("leader of u-0"), '"leader of t-0"'),
    (lambda lab: lab.why(None), "id"),
    (lambda lab: lab.why("/nope"), '"leader of t-0"'),
    (lambda lab: lab.diagram("boo"), "'partition', 'replica'"),
    (lambda lab: exercises.predict("boo", lab), "writes-to-t-0"),
    (lambda lab: exercises.check("boo", print), "who-leads-next"),
    (lambda lab: exercises.hint("boo"), "who-leads-next"),
    (lambda lab: exercises.predict([], lab), "writes-to-t-0"),  # type: ignore[arg-type]
    (lambda lab: exercises.outcome([]), "writes-to-t-0"),  # type: ignore[arg-type]
    (lambda lab: exercises.check([], print), "who-leads-next"),  # type: ignore[arg-type]
    (lambda lab: exercises.hint([]), "who-leads-next"),  # type: ignore[arg-type]
    (lambda lab: exercises.incident([]), "who-leads-next"),  # type: ignore[arg-type]
    (lambda lab: lab.save(None), "run.jsonl"),  # type: ignore[arg-type]
    (lambda lab: lab.save("/x\ud800"), "surrogate"),
    (lambda lab: lab.open(3), "run.jsonl"),  # type: ignore[arg-type]
    (lambda lab: lab.open("a" * 300), "cannot be read"),
    (lambda lab: lab.open("biling"), "no recording 'biling'"),
    (lambda lab: lab.zk.get([]), "'/controller'"),  # type: ignore[arg-type]
    (lambda lab: lab.zk.set([], ""), "'/controller'"),  # type: ignore[arg-type]
    (lambda lab: lab.zk.create(5), "text"),  # type: ignore[arg-type]
    (lambda lab: lab.zk.create("/\ud800"), "surrogate"),
    (lambda lab: lab.zk.set("/controller", "\ud800"), "surrogate"),
    (lambda lab: lab.step(("set", "/controller", "\udcff")), "surrogate"),
    (lambda lab: lab.journal([]), "start"),  # type: ignore[arg-type]
    (lambda lab: lab.diagram([]), "'partition'"),  # type: ignore[arg-type]
    (lambda lab: lab.tables.legal_transitions([]), "'partition'"),  # type: ignore[arg-type]
    (lambda lab: lab.disks.fail_log_dir(1, []), "'t-0'"),  # type: ignore[arg-type]
    (lambda lab: lab.tables.invariant_checks("x"), "function of the world"),  # type: ignore[arg-type]
    (lambda lab: lab.tables.invariant_checks(5), "function of the world"),  # type: ignore[arg-type]
    (lambda lab: lab.branch("\ud800"), "surrogate"),
    (lambda lab: lab.branch(5), "what if"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("act", "legal"), REFUSED)
def test_what_cannot_be_is_refused(lab: Lab, act: Callable[[Lab], object], legal: str) -> None:
    """A refusal is one sentence that says what is possible; afterwards the lab goes on as if nothing had been asked."""
    with pytest.raises(UserError) as problem:
        act(lab)
    assert legal in refusal(problem)
    lab.run().branch("sound").kill(1).run()


MADE_OF: list[tuple[dict[str, Any], str]] = [
    ({"brokers": 0}, "[3, 2, 1]"),
    ({"brokers": True}, "[3, 2, 1]"),
    ({"brokers": []}, "[3, 2, 1]"),
    ({"brokers": [1, 1]}, "[3, 2, 1]"),
    ({"brokers": "three"}, "[3, 2, 1]"),
    ({"brokers": [-1]}, "[3, 2, 1]"),
    ({"release": "4.0"}, "3.9"),
    ({"release": "0.7"}, "0.8.0"),
    ({"release": "boo"}, "2.8"),
    ({"world": "boo"}, "'simulated' and 'zookeeper'"),
    ({"otherwise": "boo"}, "'simulated' and 'zookeeper'"),
    ({"config": {"boo": 1}}, "unclean.leader.election.enable"),
    ({"strategies": {"boo": print}}, "'offline', 'reassign', 'preferred', 'controlled_shutdown'"),
    ({"strategies": {"offline": 3}}, "function"),
    ({"strategies": 5}, '{"offline": mine}'),
    ({"rows": {"boo": print}}, "replica.(OfflineReplica, ReplicaDeletionStarted)"),
    ({"rows": {(PartitionState.NEW, PartitionState.NEW): print}}, "partition.(NewPartition, OnlinePartition)"),
    ({"rows": {(ReplicaState.OFFLINE, ReplicaState.DELETION_INELIGIBLE): print}, "release": "1.1"}, "no row (OfflineReplica, "),
    ({"rows": {(PartitionState.NEW, PartitionState.ONLINE): 3}}, "function"),
    ({"rows": 5}, "partition.(OfflinePartition, OnlinePartition)"),
    ({"rules": {"boo": True}}, "fenced_writes"),
    ({"rules": {"fenced_writes": 0}}, "False or True"),
    ({"rules": {"last_isr_member": "stay"}}, "'leaves' or 'stays if clean' or 'stays'"),
    ({"rules": 5}, '{"fenced_writes": False}'),
    ({"rules": {"design": "listeners and one lock"}}, "where it is 'one event thread'"),
    ({"rules": {"design": "one event thread"}, "release": "0.8.2"}, "where it is 'listeners and one lock'"),
    ({"topics": {"t": []}}, "[[1, 2, 3], [2, 3, 1]]"),
    ({"topics": ["t"]}, '{"t": [[1, 2, 3]]}'),
    ({"topics": 5}, '{"t": [[1, 2, 3]]}'),
    ({"topics": {"\ud800": [[1]]}}, "a to z"),
    ({"release": 2.8}, "'2.8'"),
    ({"release": None}, "'2.8'"),
    ({"consumers": ["a"]}, '{"a": "g"}'),
    ({"consumers": {"a": 5}}, "not 5"),
    ({"consumers": {5: "g"}}, "not 5"),
    ({"consumers": {"a": "\ud800"}}, "surrogate"),
    ({"consumers": {"\udfff": "g"}}, "surrogate"),
    ({"config": 5}, "unclean.leader.election.enable"),
    ({"config": []}, "unclean.leader.election.enable"),
    ({"runs": 5}, "'runs'"),
    ({"seed": "x"}, "whole number"),
    ({"seed": None}, "whole number"),
    ({"world": None}, "'simulated' and 'zookeeper'"),
    ({"otherwise": ""}, "'simulated' and 'zookeeper'"),
    ({"zookeeper": 5}, "localhost:2181"),
]


@pytest.mark.parametrize(("settings", "legal"), MADE_OF)
def test_a_lab_that_cannot_be_made(opened: Callable[..., Lab], settings: dict[str, Any], legal: str) -> None:
    """What a lab cannot be made of is refused in one sentence that lists what is legal."""
    with pytest.raises(UserError) as problem:
        opened(**settings)
    assert legal in refusal(problem)


def test_a_closed_lab_can_be_looked_at(lab: Lab) -> None:
    """After close nothing can be done, and everything that was done can be seen; closing again does nothing."""
    lab.close()
    lab.close()
    for act in (lambda: lab.kill(1), lab.run, lab.step):
        with pytest.raises(UserError) as problem:
            act()
        assert "closed" in refusal(problem)
    assert lab.partitions().leader.tolist() == [2, 1] and lab.brokers().alive.all()
    assert lab.branch("afterwards").kill(1).run().brokers().controller[2]


def test_a_lab_is_a_context_manager(folder: object) -> None:
    """At the end of the block the lab is closed."""
    with Lab() as lab:
        lab.kill(1)
    with pytest.raises(UserError, match="closed"):
        lab.run()


# ---------------------------------------------------------------- partitions that move


@pytest.mark.parametrize("znode", [True, False])
def test_what_moves_is_in_a_table(lab: Lab, znode: bool) -> None:
    """While a new replica is frozen the table has the target and the missing replicas; after the move the table is empty."""
    lab.freeze(1).thaw(1).freeze(3).reassign({"t-0": [1, 2]}, znode=znode).run()
    assert lab.tables.ongoing_reassignments().empty and lab.partitions().replicas["t-0"] == [1, 2]
    lab.reassign({"t-0": [3, 2]}, znode=znode).run()
    row = lab.tables.ongoing_reassignments().loc["t-0"]
    assert (row.target, row.adding_replicas, row.removing_replicas, row.missing, row.in_znode) == ([3, 2], [3], [1], [3], znode)
    assert lab.thaw(3).run().tables.ongoing_reassignments().empty
    assert lab.partitions().replicas["t-0"] == [3, 2]


def test_the_answer_is_in_the_journal(lab: Lab) -> None:
    """What the controller answers about each partition that it refuses, and what it lists, can be read."""
    lab.freeze(3).reassign({"t-0": [9], "t-1": [3, 1]}).run().step(("list_reassignments", 1)).run()
    said = lab.journal().what[lab.journal().kind == "respond"].tolist()
    assert "Broker 1 responds: NONE (t-0 INVALID_REPLICA_ASSIGNMENT)." in said
    assert "Broker 1 responds: NONE." in said


def test_of_old_there_is_the_znode_alone(opened: Callable[..., Lab]) -> None:
    """In 0.8.1 `reassign` writes the znode, and there is no request for a list."""
    lab = opened(release="0.8.1", topics={"t": [[2, 3]]}).reassign({"t-0": [1, 2]})
    assert lab._world.done[-1][:2] == ("create", "/admin/reassign_partitions")
    assert lab.run().partitions().replicas["t-0"] == [1, 2]
    with pytest.raises(UserError):
        lab.step(("list_reassignments", 1))


def test_a_dead_controller_cannot_be_asked(lab: Lab) -> None:
    """While `/controller` names a dead broker, a reassignment is refused in a sentence that says what to do."""
    lab.kill(1)
    with pytest.raises(UserError) as problem:
        lab.reassign({"t-0": [2]})
    assert "lab.run()" in refusal(problem)


# ---------------------------------------------------------------- a rule of one's own


def test_a_replaced_rule_runs_the_real_machine(opened: Callable[..., Lab]) -> None:
    """The learner's function decides in this lab, and in its branches, and in no other lab."""
    mine = opened(topics={"t": [[1, 2, 3]]}, strategies={"offline": lambda assignment, isr, live: 3})
    assert mine.branch("too").kill(1).run().partitions().leader["t-0"] == 3
    assert opened(topics={"t": [[1, 2, 3]]}).kill(1).run().partitions().leader["t-0"] == 2


def test_a_changed_rule_holds_in_this_lab_alone(opened: Callable[..., Lab]) -> None:
    """A controller of 2.8 that does not fence its writes names no version of the epoch in them."""

    def fences(lab: Lab) -> set[bool]:
        writes = [r.fields for r in lab.records if r.kind == "write"]
        return {fields["epoch_zk_version"] >= 0 for fields in writes if "/brokers/topics/t/partitions" in str(fields["ops"])}

    assert fences(opened(topics={"t": [[1, 2, 3]]}, rules={"fenced_writes": False})) == {False}
    assert fences(opened(topics={"t": [[1, 2, 3]]})) == {True}


def test_a_row_of_the_group_machine_can_be_swapped(opened: Callable[..., Lab]) -> None:
    """A learner's action for the end of a join phase, which adds five generations, decides in this lab."""
    consumers = {"brokers": 1, "topics": {"__consumer_offsets": [[1]]}, "consumers": {"a": "g"}}
    row = "group.(PreparingRebalance, CompletingRebalance)"

    def generation(**changed: Any) -> int:
        lab = opened(**consumers, **changed).group.join("a").run().group.join("a").run()
        lab.step(("fire_timer", 1, "join g")).run()
        return int(lab.tables.members().generation["g"])

    assert generation() == 1
    one_more = {row: lambda group: replace(group, generation=group.generation + 5, protocol="range")}
    assert generation(rows=one_more) == 5


def test_a_leader_from_outside_the_isr_stands_alone(opened: Callable[..., Lab]) -> None:
    """If the learner's rule elects a replica that was not in sync, the ISR is that replica."""
    mine = opened(topics={"t": [[2, 3]]}, strategies={"offline": lambda assignment, isr, live: live[0] if live else None})
    found = mine.kill(3).run().kill(2).run().start(3).run().partitions().loc["t-0"]
    assert (found.leader, found.isr) == (3, [3])


@pytest.mark.parametrize("answer", ["2", 2.0, True, [2]])
def test_an_answer_that_is_no_broker_stops_the_run(opened: Callable[..., Lab], answer: object) -> None:
    """A rule that returns something else fails its event; the lab says which rule and why, and can be looked at and branched."""
    lab = opened(topics={"t": [[1, 2, 3]]}, strategies={"offline": lambda assignment, isr, live: answer})
    with pytest.raises(UserError) as problem:
        lab.kill(1).run()
    assert "the election offline" in refusal(problem)
    assert lab.journal("handler_error").error.tolist() == ["RuleFailed"]


def answers_by_id(c: ElectionInput) -> int:
    return 2


def elects_outside(c: ElectionInput) -> Elected:
    return Elected(9, (9,))


def spread(*given: Any) -> int:
    return 9


RETURN_ELECTED = "which is an int; a function of one parameter returns Elected(leader, isr), or None"
RETURN_ASSIGNED = "which is not in the assignment [1, 2, 3]; return the id of one of these brokers, or None"


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (answers_by_id, f"it returned 2, {RETURN_ELECTED}"),
        (elects_outside, f"it returned 9, {RETURN_ASSIGNED}"),
        (spread, f"it returned 9, {RETURN_ASSIGNED}"),
    ],
)
def test_a_leader_outside_the_assignment_stops_the_run(opened: Callable[..., Lab], rule: Callable[..., Any], reason: str) -> None:
    """A rule that elects no assigned broker stops the lab at once, with one sentence that says what to return."""
    lab = opened(topics={"t": [[1, 2, 3]]}, strategies={"offline": rule})
    with pytest.raises(UserError) as problem:
        lab.kill(1).run()
    assert str(problem.value) == f"The lab has stopped: your function for the election offline failed: {reason}."


def test_a_rule_that_raises_stops_the_run(opened: Callable[..., Lab]) -> None:
    """What the learner's function raises is named; nothing runs on in circles."""
    lab = opened(topics={"t": [[1, 2, 3]]}, strategies={"offline": lambda assignment, isr, live: 1 // 0})
    with pytest.raises(UserError) as problem:
        lab.kill(1).run()
    assert "ZeroDivisionError" in refusal(problem)


def test_a_replaced_row_is_drawn(opened: Callable[..., Lab]) -> None:
    """A row that a learner has replaced is the one that the diagram shows."""

    def my_own_action(ctx: Any, tp: Any, question: Any) -> None:
        return None

    lab = opened(rows={"partition.(OnlinePartition, OfflinePartition)": my_own_action})
    assert "my_own_action" in lab.diagram("partition").source
    assert "my_own_action" not in opened().diagram("partition").source


def test_an_id_from_a_table(lab: Lab) -> None:
    """A broker's id that comes out of a table, where numbers are NumPy's, is taken as a number is."""
    lab.kill(lab.brokers().index[2]).run().expire_session(lab.tables.tenures().broker.iloc[-1]).run()
    assert lab.brokers().alive.tolist() == [True, True, False]
    assert [type(word) for word in lab.records[-1].cause or ()] == [int, int, int]


def test_a_long_name_of_a_branch(lab: Lab) -> None:
    """A branch may have a name that is longer than a file's; its file has the beginning of the name."""
    branch = lab.branch("a" * 300)
    assert branch._file.path is not None and branch._file.path.is_file() and "a" * 80 in branch._file.path.name
