"""Partitions that move to other replicas: Kafka's steps in order, what is refused, what is taken up again."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.cluster.world import World
from kcontrol.controller.earlier.scala_hash_order import in_set_order
from kcontrol.core import znodes as zk
from kcontrol.core.effects import FencedTransactions
from kcontrol.core.model import PartitionReplica, ReplicaAssignment, TopicPartition
from kcontrol.core.releases import PLAYABLE_RELEASES
from kcontrol.journal.fold import fold
from tests.core.snapshots import without_defaults
from tests.core.support import T0, T1, cluster, of_kind, settle, states, stored, until, waits_for
from tests.tiers import DESIGNS, slow_but

BROKERS = (1, 2, 3, 4)
MOVED = {"t": ((1, 2), (2, 1))}
WATCHED: dict[str, Any] = {"rule_changes": {"alter_isr": False}}
"""2.8 with an inter-broker protocol before 2.7: leaders write their ISRs themselves, and the controller watches state znodes."""


def four(release: str = "2.8", **settings: Any) -> World:
    """A quiet cluster of four brokers; t-0 is on 1 and 2, t-1 on 2 and 1, broker 1 is controller."""
    return cluster(MOVED, brokers=BROKERS, release=release, **settings)


def moving(targets: dict[TopicPartition, tuple[int, ...]], release: str = "2.8", **settings: Any) -> World:
    """`four`, when the request is taken up; what moves to broker 4, which is frozen, has not moved yet."""
    world = four(release, **settings)
    world.step(("freeze", 4))
    write_request(world, targets)
    world.run()
    return world


def ask(world: World, targets: dict[str, Any], broker: int = 1) -> Any:
    """Ask a broker as an admin client does and let it finish that event; returns the body of the answer, or None."""
    before = len(world.journal.records)
    world.step(("reassign", broker, targets))
    world.run_event(broker)
    return next((r.fields["body"] for r in of_kind(world, "respond", before) if r.id.node == broker), None)


def write_request(world: World, targets: dict[TopicPartition, tuple[int, ...]]) -> None:
    world.step(("create", zk.REASSIGN_PARTITIONS, zk.encode_reassignment(targets).decode()))


def assigned(world: World, tp: TopicPartition) -> ReplicaAssignment:
    (znode,) = world.tool.read([zk.topic_path(tp.topic)], False)
    assert znode is not None
    return zk.decode_topic(znode.data).partitions[tp.partition]


def request(world: World) -> Any:
    (znode,) = world.tool.read([zk.REASSIGN_PARTITIONS], False)
    return zk.decode_reassignment(znode.data) if znode else None


def epoch(world: World, tp: TopicPartition) -> int:
    return dict(states(world))[tp].leader_epoch


def memory(world: World, broker: int = 1) -> Any:
    return world.processes[broker].driver.controller


def deposed(world: World) -> int:
    """Broker 1 is away until its session has ended, and comes back; returns who rules then."""
    settle(world, ("freeze", 1), ("expire_session", 1))
    settle(world, ("thaw", 1))
    [ruler] = [n for n, p in world.processes.items() if p.driver.controller.is_active and not p.frozen]
    assert ruler != 1
    return ruler


def what_happened(world: World, since: int, broker: int = 1) -> list[str]:
    """What one controller has moved, written and sent of t-0, in order; of requests LeaderAndIsr and StopReplica alone."""
    said = []
    for r in world.journal.records[since:]:
        f = r.fields
        if r.id.node != broker:
            continue
        if r.kind == "change":
            is_replica = isinstance(f["subject"], PartitionReplica)
            said.append(f"{f['subject']} {f['target']}" if is_replica else f"elect {f['leadership'].leader}")
        elif r.kind == "write":
            said += [f"{kind} {path.rpartition('/')[2]}" for kind, path, *_ in f["ops"] if kind != "check"]
        elif r.kind == "send":
            q = f["requests"]
            brokers = sorted(q.leader_and_isr) if q.leader_and_isr else ""
            said += [f"LeaderAndIsr {brokers}"] if brokers else []
            said += [f"StopReplica {b}{' delete' if e.delete else ''}" for b, s in q.stop_replica.items() for e in s.values()]
            said += [] if brokers or q.stop_replica else ["UpdateMetadata"]
    return said


# ---------------------------------------------------------------- 2.8: the phases


def test_phase_a_writes_bumps_and_starts() -> None:
    """U1 writes the triple, A1 raises the leader epoch and sends it to old and new replicas, A2 makes each new replica New."""
    # Source: KafkaController.onPartitionReassignment (2.8); the other party is golden reassign-123-456 of 2.8.2.
    world = four()
    before = len(world.journal.records)
    assert ask(world, {"t-0": [3, 4]}) == {"error": "NONE", "partitions": {T0: "NONE"}}
    assert what_happened(world, before) == [
        "set t", "set state", "LeaderAndIsr [1, 2, 3, 4]",
        "t-0@3 NewReplica", "LeaderAndIsr [3]", "t-0@4 NewReplica", "LeaderAndIsr [4]",
    ]  # fmt: skip
    assert assigned(world, T0) == memory(world).assignments[T0] == ReplicaAssignment((3, 4, 1, 2), (3, 4), (1, 2))
    assert (epoch(world, T0), dict(memory(world).partitions_being_reassigned)) == (1, {T0: (3, 4)})


def test_an_added_replica_gets_is_new() -> None:
    """A1's LeaderAndIsr says of the replica that it is new to those that are added, and to the others that it is not."""
    world = four()
    before = len(world.journal.records)
    ask(world, {"t-0": [1, 2, 3]})
    first = of_kind(world, "send", before)[0].fields["requests"].leader_and_isr
    assert {broker: entries[T0].is_new for broker, entries in first.items()} == {1: False, 2: False, 3: True}


def test_phase_b_lets_go_of_the_old_replicas() -> None:
    """Once the target is in sync: B1 Online, B3 another leader, B4 and B5 the old ones out, B6 the znode, B8 metadata."""
    world = four()
    ask(world, {"t-0": [3, 4]})
    until(world, lambda w: any(set(v.isr) == {1, 2, 3, 4} for tp, v in states(w) if tp == T0))
    before = len(world.journal.records)
    world.run()
    assert what_happened(world, before) == [
        "t-0@3 OnlineReplica", "t-0@4 OnlineReplica", "elect 3", "LeaderAndIsr [3, 4]",
        "t-0@1 OfflineReplica", "t-0@2 OfflineReplica", "LeaderAndIsr [3, 4]", "StopReplica 1", "StopReplica 2",
        "t-0@1 ReplicaDeletionStarted", "t-0@2 ReplicaDeletionStarted", "StopReplica 1 delete", "StopReplica 2 delete",
        "t-0@1 ReplicaDeletionSuccessful", "t-0@2 ReplicaDeletionSuccessful",
        "t-0@1 NonExistentReplica", "t-0@2 NonExistentReplica",
        "set t", "UpdateMetadata",
    ]  # fmt: skip
    assert assigned(world, T0) == ReplicaAssignment((3, 4))
    assert (stored(world)["t-0"], memory(world).partitions_being_reassigned) == ((3, (3, 4)), {})
    assert [b for b, p in world.processes.items() if T0 in p.driver.broker.hosted] == [3, 4]


def test_another_order_costs_one_epoch_and_no_leader() -> None:
    """A target of the same brokers is complete at once: the leader stays and leads under the next epoch."""
    # The other party: golden reassign-reorder of 2.8.2.
    world = four()
    ask(world, {"t-0": [2, 1]})
    assert (assigned(world, T0), epoch(world, T0), stored(world)["t-0"]) == (ReplicaAssignment((2, 1)), 1, (1, (1, 2)))


def test_a_failed_election_stops_nothing() -> None:
    """If no target replica can lead, B3 is refused, and the steps after it are performed nevertheless."""
    # The leader is on its way out here: it is one of the target, and not online. Source: moveReassignedPartitionLeaderIfRequired
    # (2.8), which elects then, and handleStateChanges, which only logs what fails.
    world = four(followers=False)
    settle(world, ("shrink_isr", 2, "t-1", 1))
    world.step(("terminate", 2))
    until(world, lambda w: 2 in memory(w).shutting_down_broker_ids and w.is_quiet)
    before = len(world.journal.records)
    world.step(("reassign", 1, {"t-1": [2]}))
    until(world, lambda w: assigned(w, T1) == ReplicaAssignment((2,)))
    refused = [(r.fields["subject"], r.fields["reason"]) for r in of_kind(world, "failed_change", before)]
    assert refused == [(T1, "no leader can be elected by strategy reassign")]
    assert dict(states(world))[T1].leader == 2


# ---------------------------------------------------------------- 2.8: what admin clients ask for


@pytest.mark.parametrize(("target", "answer"), [
    ([], "INVALID_REPLICA_ASSIGNMENT"),
    ([1, 1], "INVALID_REPLICA_ASSIGNMENT"),
    ([1, -1], "INVALID_REPLICA_ASSIGNMENT"),
    ([1, 9], "INVALID_REPLICA_ASSIGNMENT"),
    (None, "NO_REASSIGNMENT_IN_PROGRESS"),
    ([2, 3], "NONE"),
])  # fmt: skip
def test_each_partition_is_judged_by_itself(target: Any, answer: str) -> None:
    """Targets without brokers, with repeated, negative or dead ones, and a cancellation of nothing are refused; t-1 moves."""
    # Source: KafkaController.validateReplicas and maybeBuildReassignment (2.8).
    world = four()
    partitions = ask(world, {"t-0": target, "t-1": [1]})["partitions"]
    assert partitions == {T0: answer, T1: "NONE"}
    assert assigned(world, T1) == ReplicaAssignment((1,))
    assert (assigned(world, T0) == ReplicaAssignment((1, 2))) == (answer != "NONE")


def test_a_dead_broker_may_stay() -> None:
    """Only those that are added have to live. The other party: conformance pub-del-07."""
    world = four()
    settle(world, ("kill", 2))
    assert ask(world, {"t-0": [1, 2, 3]})["partitions"] == {T0: "NONE"}


def test_an_unknown_partition_and_a_topic_in_deletion_are_refused() -> None:
    """A partition without replicas, and one whose topic is queued for deletion, are unknown to an admin client."""
    # Source: KafkaController.maybeTriggerPartitionReassignment (2.8).
    world = four()
    world.processes[1].driver.controller.topics_to_be_deleted.add("t")  # type: ignore[attr-defined]
    assert ask(world, {"t-0": [3], "gone-0": [3]})["partitions"] == {
        T0: "UNKNOWN_TOPIC_OR_PARTITION",
        TopicPartition("gone", 0): "UNKNOWN_TOPIC_OR_PARTITION",
    }
    assert memory(world).partitions_being_reassigned == {}


def test_only_the_controller_answers_otherwise() -> None:
    """A broker that is no controller answers NOT_CONTROLLER to a reassignment and to a list of reassignments."""
    world = four()
    assert ask(world, {"t-0": [3]}, broker=2) == {"error": "NOT_CONTROLLER", "partitions": {}}
    before = len(world.journal.records)
    settle(world, ("list_reassignments", 2))
    assert [r.fields["body"]["error"] for r in of_kind(world, "respond", before)] == ["NOT_CONTROLLER"]
    assert assigned(world, T0) == ReplicaAssignment((1, 2))


def test_the_list_names_what_is_under_way() -> None:
    """Partitions that move, with what is added and removed; nothing of those that are done."""
    world = four()
    world.step(("freeze", 4))
    ask(world, {"t-0": [1, 4], "t-1": [1]})
    before = len(world.journal.records)
    world.step(("list_reassignments", 1))
    world.run_event(1)
    [answer] = [r.fields["body"]["partitions"] for r in of_kind(world, "respond", before) if r.id.node == 1]
    assert answer == {T0: ReplicaAssignment((1, 4, 2), (4,), (2,))}


def test_cancelling_goes_back_at_the_cost_of_an_epoch() -> None:
    """U3 stops what was added, then phase B runs with the origin: one leader epoch more, and the leader stays."""
    world = four()
    world.step(("freeze", 3))
    ask(world, {"t-0": [3]})
    before, epoch_before = len(world.journal.records), epoch(world, T0)
    assert ask(world, {"t-0": None}) == {"error": "NONE", "partitions": {T0: "NONE"}}
    assert what_happened(world, before) == [
        "set t",
        "t-0@3 OfflineReplica", "LeaderAndIsr [1, 2]", "StopReplica 3",
        "t-0@3 ReplicaDeletionStarted", "StopReplica 3 delete",
        "t-0@3 ReplicaDeletionSuccessful", "t-0@3 NonExistentReplica",
        "set state", "LeaderAndIsr [1, 2]", "set t", "UpdateMetadata",
    ]  # fmt: skip
    assert assigned(world, T0) == ReplicaAssignment((1, 2))
    assert (epoch(world, T0), memory(world).partitions_being_reassigned) == (epoch_before + 1, {})


def test_another_target_supersedes_the_first() -> None:
    """What only the first target named is stopped at once, the origin is kept, and the second target is what it ends with."""
    world = four()
    world.step(("freeze", 3))
    ask(world, {"t-0": [3]})
    ask(world, {"t-0": [4]})
    assert assigned(world, T0) == ReplicaAssignment((4, 1, 2), (4,), (1, 2))
    settle(world, ("thaw", 3))
    assert (assigned(world, T0), stored(world)["t-0"]) == (ReplicaAssignment((4,)), (4, (4,)))


def test_a_replica_that_never_got_into_sync_is_left_where_it_is() -> None:
    """Its StopReplica has the leader epoch that the broker has already, and a broker stops a replica for a newer epoch alone."""
    # Source: ReplicaManager.stopReplicas (2.8), which asks for `requestLeaderEpoch > currentLeaderEpoch`.
    world = four(followers=False)
    ask(world, {"t-0": [3]})
    world.run()
    ask(world, {"t-0": None})
    world.run()
    assert assigned(world, T0) == ReplicaAssignment((1, 2))
    assert [b for b, p in world.processes.items() if T0 in p.driver.broker.hosted] == [1, 2, 3]


def test_the_latest_request_wins_over_the_znode() -> None:
    """What an admin client names leaves the znode, what he does not name stays in it."""
    world = four()
    world.step(("freeze", 4))
    write_request(world, {T0: (1, 4), T1: (2, 4)})
    until(world, lambda w: len(memory(w).partitions_being_reassigned) == 2 and w.is_quiet)
    ask(world, {"t-0": [1, 3]})
    assert request(world) == {T1: (2, 4)}
    settle(world, ("thaw", 4))
    assert (assigned(world, T0), assigned(world, T1)) == (ReplicaAssignment((1, 3)), ReplicaAssignment((2, 4)))
    assert request(world) is None


def test_a_deposed_controller_gives_no_answer() -> None:
    """After ControllerMoved the controller resigns, and the admin client gets no response."""
    # Source: KafkaController.maybeTriggerPartitionReassignment, which throws it on, and process (2.8).
    world = four()
    world.step(("reassign", 1, {"t-0": [3]}))
    world.step(("set", zk.CONTROLLER_EPOCH, "7"))
    before = len(world.journal.records)
    world.run_event(1)
    assert of_kind(world, "respond", before) == []
    assert [r.fields["error"] for r in of_kind(world, "exception", before)] == ["ControllerMoved"]
    assert assigned(world, T0) == ReplicaAssignment((1, 2))


# ---------------------------------------------------------------- 2.8: the znode


def test_what_cannot_be_done_leaves_the_znode() -> None:
    """An unknown partition is taken out at once; what can be done stays until it is done, and then the znode goes."""
    world = moving({T0: (1, 4), TopicPartition("gone", 0): (1,)})
    assert request(world) == {T0: (1, 4)}
    settle(world, ("thaw", 4))
    assert (request(world), assigned(world, T0)) == (None, ReplicaAssignment((1, 4)))


def test_the_znode_does_not_ask_who_lives() -> None:
    """A target that is dead is waited for, unlike one of an admin client; when it comes up, phase A begins again."""
    # The other party: conformance pub-int-06 and pub-int-07.
    world = four()
    settle(world, ("kill", 4))
    write_request(world, {T0: (1, 4)})
    world.run()
    assert (epoch(world, T0), memory(world).partitions_being_reassigned) == (1, {T0: (1, 4)})
    settle(world, ("start", 4))
    assert (assigned(world, T0), request(world)) == (ReplicaAssignment((1, 4)), None)


def test_a_request_for_another_result_stays() -> None:
    """What the znode names is taken out by a reassignment that ends with just these replicas, and by no other."""
    world = four()
    settle(world, ("freeze", 1), ("expire_session", 1))
    ruler = next(n for n, p in world.processes.items() if p.driver.controller.is_active and not p.frozen)
    write_request(world, {T1: (2, 4), T0: (2, 3)})
    until(world, lambda w: memory(w, ruler).partitions_being_reassigned.keys() == {T0, T1})
    text = zk.encode_reassignment({T1: (2, 3), T0: (2, 3)}).decode()
    settle(world, ("set", zk.REASSIGN_PARTITIONS, text))
    assert (assigned(world, T0), assigned(world, T1)) == (ReplicaAssignment((2, 3)), ReplicaAssignment((2, 4)))
    assert request(world) == {T1: (2, 3)}


def test_a_request_can_follow_the_last() -> None:
    """After it has deleted the znode the controller looks again, so that one that was created meanwhile is seen."""
    world = four()
    write_request(world, {T0: (2, 1)})
    until(world, lambda w: request(w) is None)
    write_request(world, {T1: (1, 2)})
    world.run()
    assert (assigned(world, T1), request(world)) == (ReplicaAssignment((1, 2)), None)


def test_a_request_that_cannot_be_read_stays() -> None:
    """A reassignment znode that is no request moves no partition and stays. Source: getPartitionReassignment (2.8)."""
    world = four()
    settle(world, ("create", zk.REASSIGN_PARTITIONS, '{"partitions": 5}'))
    assert of_kind(world, "handler_error") == []
    assert world.exist(zk.REASSIGN_PARTITIONS) == [True]


# ---------------------------------------------------------------- 2.8: waiting, and being taken up again


def test_without_alter_isr_the_state_znode_is_watched() -> None:
    """With leaders that write ISRs themselves the controller listens to the state znode until the reassignment is done."""
    world = four(**WATCHED)
    world.step(("freeze", 4))
    ask(world, {"t-0": [1, 4]})
    assert (zk.state_path(T0), False) in world.processes[1].driver.znode_handlers
    settle(world, ("thaw", 4))
    assert assigned(world, T0) == ReplicaAssignment((1, 4))
    assert (zk.state_path(T0), False) not in world.processes[1].driver.znode_handlers
    assert any(r.fields["event"] == "PartitionReassignmentIsrChange" for r in of_kind(world, "begin"))


def test_with_alter_isr_it_is_not() -> None:
    """Where leaders ask the controller for ISRs, it needs no watch: its own answer is followed by a look."""
    world = four()
    ask(world, {"t-0": [1, 4]})
    assert (zk.state_path(T0), False) not in world.processes[1].driver.znode_handlers


def test_resignation_forgets_reassignments_and_their_watches() -> None:
    """A controller that resigns listens to no state znode any more and knows of no reassignment."""
    # Source: KafkaController.onControllerResignation, unregisterPartitionReassignmentIsrChangeHandlers (2.8).
    world = four(**WATCHED)
    world.step(("freeze", 4))
    ask(world, {"t-0": [1, 4]})
    ruler = deposed(world)
    resigned = world.processes[1].driver
    assert (resigned.controller.partitions_being_reassigned, (zk.state_path(T0), False) in resigned.znode_handlers) == ({}, False)
    assert memory(world, ruler).partitions_being_reassigned == {T0: (1, 4)}


@pytest.mark.parametrize("by_znode", [True, False], ids=["by znode", "by request"])
def test_the_next_controller_begins_each_once(by_znode: bool) -> None:
    """A new controller finds what is under way in the znode or in the topic znode, and runs phase A for each once."""
    # Source: KafkaController.initializePartitionReassignments (2.8); the other party is golden reassign-controller-killed.
    world = four()
    world.step(("freeze", 4))
    if by_znode:
        write_request(world, {T0: (2, 4)})
        world.run()
    else:
        ask(world, {"t-0": [2, 4]})
        world.run()
    settle(world, ("kill", 1), ("expire_session", 1))
    ruler = next(n for n, p in world.processes.items() if p.driver.controller.is_active and not p.frozen)
    leader = dict(states(world))[T0].leader
    bumps = [r for r in of_kind(world, "write") if r.id.node == ruler and zk.state_path(T0) in str(r.fields["ops"])]
    assert (leader, len(bumps)) == (2, 1)
    settle(world, ("thaw", 4))
    assert (assigned(world, T0), request(world)) == (ReplicaAssignment((2, 4)), None)


def test_an_epoch_that_lost_a_race_is_raised_again() -> None:
    """A leader that writes its ISR between the controller's read and write makes it read and write once more."""
    world = four(**WATCHED)
    world.step(("reassign", 1, {"t-0": [1, 2, 3]}))
    until(world, lambda w: waits_for(w, 1, FencedTransactions) and zk.state_path(T0) in _next_write(w))
    settle(world, ("set", zk.state_path(T0), zk.encode_state(dict(states(world))[T0]._replace(isr=(1,))).decode()))
    failed = [r.fields["error"] for r in of_kind(world, "write") if r.id.node == 1 and r.fields["error"]]
    assert failed.count("BadVersion") == 1
    assert assigned(world, T0) == ReplicaAssignment((1, 2, 3))


def _next_write(world: World) -> str:
    waiting = world.processes[1].driver.threads["controller"].waits_for
    return str(waiting.effect) if waiting else ""


def test_no_preferred_election_during_a_reassignment() -> None:
    """The automatic rebalance elects nothing, of any topic, as long as a partition is being reassigned."""
    world = four()
    settle(world, ("shrink_isr", 2, "t-1", 1), ("kill", 2))
    settle(world, ("start", 2))
    assert stored(world)["t-1"][0] == 1
    world.step(("freeze", 4))
    ask(world, {"t-0": [1, 4]})
    settle(world, ("fire_timer", 1, "auto-leader-rebalance"))
    assert stored(world)["t-1"][0] == 1
    ask(world, {"t-0": None})
    settle(world, ("fire_timer", 1, "auto-leader-rebalance"))
    assert stored(world)["t-1"][0] == 2


@pytest.mark.parametrize("release", ["0.8.1", "0.8.2", "0.10.2", "1.0"])
def test_a_broker_that_starts_takes_up_the_moves_to_it_alone(release: str) -> None:
    """The start of broker 4 begins the move of t-0 to [1, 4] again; the state of t-1, which moves to broker 5, is not written."""
    # Source: KafkaController.onBrokerStartup, `_._2.newReplicas.exists(newBrokersSet.contains)` (0.8.1 to 1.0).
    world = cluster({"t": ((1, 2), (2, 1))}, brokers=(1, 2, 3, 4, 5), release=release)
    world.step(("freeze", 4))
    world.step(("freeze", 5))
    write_request(world, {T0: (1, 4), T1: (2, 5)})
    world.run()
    settle(world, ("kill", 4))
    since, before = len(world.journal.records), epoch(world, T1)
    settle(world, ("start", 4))
    begun = ["t-0@4 OnlineReplica", "LeaderAndIsr [4]", "set t", "set state", "LeaderAndIsr [1, 2, 4]"]
    assert [step for step in what_happened(world, since) if step != "UpdateMetadata"][:5] == begun
    assert epoch(world, T1) == before


# ---------------------------------------------------------------- both: the journal, and unread requests


@pytest.mark.parametrize("release", slow_but(PLAYABLE_RELEASES, *DESIGNS))
def test_the_journal_has_it_all(release: str) -> None:
    """After every step of a reassignment the folded journal is the snapshot, and a fork's fingerprint is the world's."""
    world = four(release)
    write_request(world, {T0: (3, 4)})
    steps = 0
    while routine := [a for a in world.actions() if a[0] not in ("fire_timer",)]:
        world.step(routine[0])
        steps += 1
        assert without_defaults(fold(world.journal.records)) == without_defaults(world.snapshot())
        if steps % 10 == 0:
            assert world.fork().fingerprint() == world.fingerprint()
    assert assigned(world, T0).replicas == (3, 4)


def test_what_moves_is_part_of_the_fingerprint() -> None:
    """Two worlds whose controllers have other partitions being reassigned have different fingerprints."""
    worlds = [four(), four()]
    worlds[0].processes[1].driver.controller.partitions_being_reassigned[T0] = (3, 4)
    assert worlds[0].fingerprint() != worlds[1].fingerprint()
    assert worlds[0].fork().fingerprint() == worlds[0].fingerprint()


@pytest.mark.parametrize("release", PLAYABLE_RELEASES)
def test_a_frozen_broker_reads_what_the_dead_have_sent(release: str) -> None:
    """One request of a dead controller is in a frozen broker's socket: it is read later, and its response is dropped."""
    # In 0.9 it is dropped. The other party: golden reassign-controller-killed of every release.
    world = moving({T0: (2, 4)}, release)
    assert len(world.network.channels[1, 4]) > 1
    world.step(("kill", 1))
    waits = 0 if release == "0.9" else 1
    assert [parcel.api for parcel in world.network.channels.get((1, 4), ())] == ["LeaderAndIsr"] * waits
    before = len(world.journal.records)
    settle(world, ("start", 1))
    assert ("drop_request", 1, 4) not in world.actions()
    world.step(("thaw", 4))
    assert without_defaults(fold(world.journal.records)) == without_defaults(world.snapshot())
    world.run()
    read = [(r.cause.node, r.cause.incarnation, r.fields["api"]) for r in of_kind(world, "receive", before) if r.id.node == 4]
    assert read.count((1, 1, "LeaderAndIsr")) == waits
    assert assigned(world, T0).replicas == (2, 4)


@pytest.mark.parametrize("again", [False, True], ids=["dead", "started again"])
def test_a_request_is_gone_with_both_its_ends(again: bool) -> None:
    """What lay unread with a broker that then died too is nowhere any more, also if its sender runs again as another process."""
    world = moving({T0: (2, 4)})
    world.step(("kill", 1))
    if again:
        world.step(("start", 1))
    world.step(("kill", 4))
    assert (1, 4) not in world.network.channels
    assert without_defaults(fold(world.journal.records)) == without_defaults(world.snapshot())


def test_what_a_running_broker_has_not_got_is_gone() -> None:
    """Only with brokers that are frozen does a request of the dead lie unread; to the others nothing comes any more."""
    world = four()
    write_request(world, {T0: (2, 1)})
    until(world, lambda w: (1, 2) in w.network.channels)
    world.step(("kill", 1))
    assert world.network.channels == {}


def test_a_frozen_broker_keeps_nothing_for_itself() -> None:
    """A controller that is killed while it is frozen leaves nothing in its own socket."""
    world = four()
    write_request(world, {T0: (2, 1)})
    until(world, lambda w: (1, 1) in w.network.channels)
    world.step(("freeze", 1))
    world.step(("kill", 1))
    assert (1, 1) not in world.network.channels
    assert without_defaults(fold(world.journal.records)) == without_defaults(world.snapshot())


# ---------------------------------------------------------------- both: a topic that moves and is to be deleted


def deleted_while_moving(release: str) -> World:
    """t-0 waits for broker 4, which is frozen, and the deletion of its topic is asked for."""
    world = moving({T0: (1, 4)}, release, config=BrokerConfig.of(release).with_setting("delete.topic.enable", True))
    settle(world, ("delete_topic", "t"))
    return world


@pytest.mark.parametrize("release", ["0.8.2", "2.8"])
def test_a_reassignment_does_not_halt_a_deletion(release: str) -> None:
    """Since 0.8.2 the topic is marked before it is queued, so the mark has no effect: it is deleted, and the request stays."""
    # Source: DeleteTopicsListener (0.8.2), KafkaController.processTopicDeletion and markTopicIneligibleForDeletion (2.8); that
    # the request stays was measured on 0.8.2.2 and 2.8.2.
    world = deleted_while_moving(release)
    assert memory(world).topics_to_be_deleted - memory(world).topics_ineligible_for_deletion == {"t"}
    settle(world, ("thaw", 4))
    assert (world.exist(zk.topic_path("t")), request(world)) == ([False], {T0: (1, 4)})


def test_at_failover_it_does() -> None:
    """The next controller finds the topic moving and holds its deletion up until the partition has moved."""
    # Source: KafkaController.fetchTopicDeletionsInProgress and onPartitionReassignment, which resumes deletions (2.8).
    world = cluster({"t": ((2, 3),)}, brokers=BROKERS)
    world.step(("freeze", 4))
    ask(world, {"t-0": [2, 4]})
    world.run()
    settle(world, ("kill", 1), ("delete_topic", "t"))
    ruler = next(n for n, p in world.processes.items() if p.driver.controller.is_active and not p.frozen)
    assert memory(world, ruler).topics_ineligible_for_deletion == {"t"}
    assert memory(world, ruler).topics_with_deletion_started == set()
    settle(world, ("thaw", 4))
    assert world.exist(zk.topic_path("t")) == [False]


def test_a_reassignment_delays_every_deletion_in_0_8_1() -> None:
    """In 0.8.1 nothing is deleted until the partition has moved; then the topic goes, and so has the request."""
    # Source: DeleteTopicsListener (0.8.1.1), which queues before it marks.
    world = deleted_while_moving("0.8.1")
    assert memory(world).topics_ineligible_for_deletion == {"t"}
    assert assigned(world, T0).replicas == (1, 4, 2)
    settle(world, ("thaw", 4))
    assert (world.exist(zk.topic_path("t")), request(world)) == ([False], None)


# ---------------------------------------------------------------- 0.8.1


def old_request(world: World, targets: dict[TopicPartition, tuple[int, ...]]) -> None:
    """Let broker 1 handle the tool's request, and nothing else."""
    write_request(world, targets)
    world.step(("deliver_notification", 1))
    world.run_event(1, "zk-events")


def test_the_twelve_steps() -> None:
    """Step 1 writes the union, 2 raises the epoch, 3 starts the new ones; once they are in sync 5 to 12 follow in their order."""
    # Source: KafkaController.onPartitionReassignment (0.8.1.1); the other party is golden reassign-123-456 of 0.8.1.1.
    world = four("0.8.1")
    before = len(world.journal.records)
    old_request(world, {T0: (3, 4)})
    assert what_happened(world, before) == [
        "set t", "set state", "LeaderAndIsr [1, 2, 3, 4]",
        "t-0@3 NewReplica", "LeaderAndIsr [3]", "t-0@4 NewReplica", "LeaderAndIsr [4]",
    ]  # fmt: skip
    assert assigned(world, T0).replicas == (3, 4, 1, 2)
    before = len(world.journal.records)
    world.run()
    happened = [said for said in what_happened(world, before) if said != "set state"]
    assert happened == [
        "t-0@3 OnlineReplica", "t-0@4 OnlineReplica", "elect 3", "LeaderAndIsr [3, 4]",
        "t-0@1 OfflineReplica", "t-0@2 OfflineReplica", "LeaderAndIsr [3]", "StopReplica 1", "StopReplica 2",
        "t-0@1 ReplicaDeletionStarted", "t-0@2 ReplicaDeletionStarted", "StopReplica 1 delete", "StopReplica 2 delete",
        "t-0@1 ReplicaDeletionSuccessful", "t-0@2 ReplicaDeletionSuccessful",
        "t-0@1 NonExistentReplica", "t-0@2 NonExistentReplica",
        "set t", "delete reassign_partitions", "UpdateMetadata",
    ]  # fmt: skip
    assert (assigned(world, T0).replicas, request(world), stored(world)["t-0"]) == ((3, 4), None, (3, (3, 4)))


def test_a_removed_replica_gets_leader_and_isr_first() -> None:
    """A leader that stays gets fewer replicas in LeaderAndIsr, and so does the removed replica."""
    # Source: KafkaController.updateLeaderEpochAndSendRequest (0.8.1.1).
    world = four("0.8.1")
    before = len(world.journal.records)
    old_request(world, {T0: (1,)})
    assert what_happened(world, before)[:4] == ["t-0@1 OnlineReplica", "LeaderAndIsr [1]", "set state", "LeaderAndIsr [1, 2]"]


def test_a_later_controllers_state_is_not_overwritten() -> None:
    """A state znode of a later controller epoch stops a reassignment. The other party: conformance pub-cas-02."""
    for release in PLAYABLE_RELEASES[1:]:  # 0.8.0 leaves the state znode alone
        world = four(release)
        value = dict(states(world))[T0]
        world.step(("set", zk.state_path(T0), zk.encode_state(value._replace(controller_epoch=5)).decode()))
        write_request(world, {T0: (1, 2, 3)})
        world.run()
        assert [r.fields["error"] for r in of_kind(world, "handler_error")] == ["StateChangeFailedException"]
        assert (epoch(world, T0), request(world)) == (0, None)


def test_the_raised_epoch_is_not_remembered() -> None:
    """Step 2 sends brokers a leader epoch that the controller's own memory does not have."""
    # Source: KafkaController.updateLeaderEpoch (0.8.1.1), which leaves `partitionLeadershipInfo` alone.
    world = four("0.8.1")
    old_request(world, {T0: (3, 4)})
    assert (epoch(world, T0), memory(world).leadership[T0].leader_epoch) == (1, 0)


@pytest.mark.parametrize(("targets", "says"), [
    ({T0: (1, 2)}, "t-0 has the replicas [1, 2] already"),
    ({T0: (1, 9)}, "t-0 is not reassigned to [1, 9]: [9] are not alive"),
    ({TopicPartition("gone", 0): (1,)}, "gone-0 does not exist and is not reassigned"),
], ids=["identical", "dead", "unknown"])  # fmt: skip
def test_what_is_refused_leaves_the_request(targets: dict[TopicPartition, tuple[int, ...]], says: str) -> None:
    """The replicas that a partition has, a dead broker and an unknown partition are errors; the rest of the request goes on."""
    # Source: KafkaController.initiateReassignReplicasForTopicPartition (0.8.1.1).
    world = moving(targets | {T1: (2, 4)}, "0.8.1")
    assert [(r.fields["error"], r.fields["message"]) for r in of_kind(world, "handler_error")] == [("KafkaException", says)]
    assert (request(world), assigned(world, T0).replicas) == ({T1: (2, 4)}, (1, 2))
    assert memory(world).partitions_being_reassigned == {T1: (2, 4)}


def test_what_is_under_way_is_not_overridden() -> None:
    """Another target for a partition that moves is overlooked until it has moved, and then its entry is gone."""
    world = moving({T0: (1, 4)}, "0.8.1")
    settle(world, ("set", zk.REASSIGN_PARTITIONS, zk.encode_reassignment({T0: (1, 3)}).decode()))
    assert (assigned(world, T0).replicas, memory(world).partitions_being_reassigned) == ((1, 4, 2), {T0: (1, 4)})
    settle(world, ("thaw", 4))
    assert (assigned(world, T0).replicas, request(world)) == ((1, 4), None)


def test_each_partition_has_the_lock_to_itself() -> None:
    """Between two partitions of a request the listener lets go of the lock. Source: PartitionsReassignedListener (0.8.1.1)."""
    world = four("0.8.1")
    before = len(world.journal.records)
    old_request(world, {T0: (2, 1), T1: (1, 2)})
    assert len([r for r in of_kind(world, "yield_lock", before) if r.id.node == 1]) == 2


def test_a_resigned_controller_still_gets_the_notification_of_requests() -> None:
    """It keeps what it knew and its listeners: it takes up a request, writes, and fails where it wants to send."""
    # Source: KafkaController.onControllerResignation (0.8.1.1), which leaves the listeners and partitionsBeingReassigned alone.
    world = moving({T0: (2, 4)}, "0.8.1")
    deposed(world)
    assert memory(world).partitions_being_reassigned == {T0: (2, 4)}
    settle(world, ("set", zk.REASSIGN_PARTITIONS, zk.encode_reassignment({T0: (2, 4), T1: (2, 3)}).decode()))
    assert ("NullPointerException", 1) in {(r.fields["error"], r.id.node) for r in of_kind(world, "handler_error")}


def test_the_next_controller_drops_what_is_done() -> None:
    """At failover an entry whose replicas are there already, and one of no topic, leave the request; the rest is taken up."""
    world = four("0.8.1")
    world.step(("freeze", 4))
    world.step(("kill", 1))
    write_request(world, {T0: (1, 2), TopicPartition("gone", 0): (1,), T1: (2, 4)})
    settle(world, ("expire_session", 1))
    assert (request(world), of_kind(world, "handler_error")) == ({T1: (2, 4)}, [])
    settle(world, ("thaw", 4))
    assert (request(world), assigned(world, T1).replicas, assigned(world, T0).replicas) == (None, (2, 4), (1, 2))


def test_it_goes_on_when_a_target_comes_back() -> None:
    """A target that dies on the way is waited for, and its start begins the steps anew."""
    world = moving({T0: (1, 4)}, "0.8.1")
    settle(world, ("kill", 4))
    settle(world, ("start", 4))
    assert (assigned(world, T0).replicas, request(world)) == ((1, 4), None)


def test_a_topic_that_was_deleted_from_outside_is_written_again() -> None:
    """Step 1 creates the topic znode if it is gone; step 2 then fails for want of a state znode, and the entry goes."""
    # Source: ZkUtils.updatePersistentPath and KafkaController.updateLeaderEpoch (0.8.1.1).
    world = four("0.8.1")
    write_request(world, {T0: (2, 4)})
    for path in sorted((path for path in world.zk.tree() if f"{path}/".startswith(f"{zk.topic_path('t')}/")), reverse=True):
        world.step(("delete", path))
    world.step(("deliver_notification", 1))
    world.run_event(1, "zk-events")
    assert [r.fields["error"] for r in of_kind(world, "handler_error")] == ["IllegalStateException"]
    assert (assigned(world, T0).replicas, request(world)) == ((2, 4, 1), None)


@pytest.mark.parametrize(("ids", "order"), [
    ((1, 2, 3, 4), (1, 2, 3, 4)),
    ((4, 3, 2, 1), (4, 3, 2, 1)),
    (range(1, 7), (5, 1, 6, 2, 3, 4)),
    ((4, 5, 6, 1, 2, 3), (5, 1, 6, 2, 3, 4)),
])  # fmt: skip
def test_a_union_of_five_and_more_is_in_hash_order(ids: Any, order: tuple[int, ...]) -> None:
    """Up to four replicas come as they were named, more in the order of Scala's hash set."""
    # The other party: golden reassign-123-456 of 0.8.1.1, whose topic znode has [5, 1, 6, 2, 3, 4].
    assert in_set_order(ids) == order
