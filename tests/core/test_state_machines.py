"""The two state machines by themselves, on a context of the test's own: refusals, recipients, assignments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller.context import apply_update
from kcontrol.controller.earlier.machine_decisions import DECISIONS
from kcontrol.controller.request_batch import Requests
from kcontrol.core.effects import Handler, Op, UpdateContext
from kcontrol.core.model import LeaderAndIsr, PartitionReplica, PartitionState, ReplicaAssignment, ReplicaState
from kcontrol.core.znodes import decode_state, encode_state, partitions_path, state_path
from tests.core.support import T0, T1, Bench

P, R = PartitionState, ReplicaState


class Machines(Bench):
    """Controller 1 under epoch 1 with brokers 1 to 3 live; t-0 and t-1 are assigned to 1, 2 and 3, and nothing else is known."""

    def __init__(self, *lessons: UpdateContext, **rule_changes: Any) -> None:
        super().__init__(**rule_changes)
        self.learn(
            UpdateContext("active_controller_id", 1),
            UpdateContext("controller_epoch", 1),
            UpdateContext("live_broker_epochs", {1: 11, 2: 12, 3: 13}),
            UpdateContext("assignments", {tp: ReplicaAssignment((1, 2, 3)) for tp in (T0, T1)}),
            *lessons,
        )
        self.outside(*(Op("create", path) for path in ("/controller_epoch", "/brokers", "/brokers/topics", "/brokers/topics/t")))

    def learn(self, *lessons: UpdateContext) -> None:
        """What the controller knows besides."""
        for lesson in lessons:
            apply_update(self.driver.controller, lesson)

    def stored(self, tp: Any, value: LeaderAndIsr) -> None:
        there = self.zookeeper.tree()
        for path in (partitions_path(tp.topic), f"{partitions_path(tp.topic)}/{tp.partition}", state_path(tp)):
            if path not in there:
                self.outside(Op("create", path))
        self.outside(Op("set", state_path(tp), encode_state(value)))

    def state(self, tp: Any) -> LeaderAndIsr:
        znode = self.zookeeper.tree()[state_path(tp)]
        return decode_state(znode.data, znode.stat.version)

    def move(self, machine: Any, subjects: Any, target: Any, *rest: Any) -> list[Requests]:
        """Move the subjects and return the batches that were sent."""

        def moves(ctx: Any) -> Handler:
            yield from machine.handle_state_changes(ctx, subjects, target, *rest)

        self.enqueue(moves)
        self.go()
        assert self.records("handler_error") == []
        return [sent[1] for sent in self.post.sent if sent[0] == "send"]


def refused(machines: Machines) -> list[tuple[str, str, str, bool]]:
    """Subject, source, target and whether the move was illegal, of every refusal."""
    fields = [record.fields for record in machines.records("failed_change")]
    return [(str(f["subject"]), str(f["source"]), str(f["target"]), f["illegal"]) for f in fields]


# ---------------------------------------------------------------- partitions


def test_an_illegal_move_is_refused_and_the_rest_goes_on() -> None:
    """Of two partitions only the one whose move is legal moves; the other one stays and the refusal is journalled as illegal."""
    # Source: ZkPartitionStateMachine.doHandleStateChanges and logInvalidTransition (2.8).
    machines = Machines(UpdateContext("partition_states", {T0: P.ONLINE}))
    machines.move(partition_machine, (T0, T1), P.NEW)
    assert refused(machines) == [("t-0", "OnlinePartition", "NewPartition", True)]
    assert machines.driver.controller.partition_states == {T0: P.ONLINE, T1: P.NEW}


def test_moving_nothing_does_nothing() -> None:
    """Without subjects no batch is sent and no round trip is made."""
    machines = Machines()
    assert machines.move(partition_machine, (), P.ONLINE) == []
    assert machines.move(replica_machine, (), R.ONLINE) == []
    assert machines.calls == []


def test_a_first_leader_is_sent_to_its_isr_only() -> None:
    """A replica on a broker that shuts down is not in the first ISR, and gets no LeaderAndIsr."""
    # Source: ZkPartitionStateMachine.initializeLeaderAndIsrForPartitions (2.8).
    machines = Machines(UpdateContext("partition_states", {T0: P.NEW}), UpdateContext("shutting_down_broker_ids", (1,)))
    [requests] = machines.move(partition_machine, (T0,), P.ONLINE)
    assert machines.state(T0)[:2] == (2, (2, 3))
    assert sorted(requests.leader_and_isr) == [2, 3]
    assert all(entries[T0].is_new for entries in requests.leader_and_isr.values())
    assert requests.update_metadata_to == (1, 2, 3)


def test_a_partition_without_a_live_replica_stays_new() -> None:
    """Without a live replica the partition stays New and is refused with the reason; nothing is written or sent."""
    machines = Machines(UpdateContext("partition_states", {T0: P.NEW}), UpdateContext("live_broker_epochs", clear=True))
    assert machines.move(partition_machine, (T0,), P.ONLINE) == []
    assert refused(machines) == [("t-0", "NewPartition", "OnlinePartition", False)]
    assert machines.driver.controller.partition_state(T0) is P.NEW
    assert machines.calls == []


@pytest.mark.parametrize(
    ("strategy", "recipients"),
    [("offline", [2, 3]), ("reassign", [1, 2]), ("preferred", [1, 2, 3]), ("controlled_shutdown", [2, 3])],
)
def test_each_election_has_its_recipients(strategy: str, recipients: list[int]) -> None:
    """The recipients of an election depend on its strategy, and dead brokers get no request."""
    # Source: the LeaderAndIsr recipients in PartitionLeaderElectionAlgorithms and Election.scala (2.8).
    alive = {2: 12, 3: 13} if strategy in ("offline", "controlled_shutdown") else {1: 11, 2: 12, 3: 13}
    machines = Machines(
        UpdateContext("partition_states", {T0: P.ONLINE}),
        UpdateContext("assignments", {T0: ReplicaAssignment((1, 2, 3), removing=(3,))}),
        UpdateContext("live_broker_epochs", alive, clear=True),
        UpdateContext("shutting_down_broker_ids", (3,) if strategy == "controlled_shutdown" else ()),
    )
    machines.stored(T0, LeaderAndIsr(3, (3, 2, 1), 4, -1, 1))
    [requests] = machines.move(partition_machine, (T0,), P.ONLINE, strategy)
    assert sorted(requests.leader_and_isr) == recipients
    assert machines.state(T0).leader_epoch == 5


def test_a_failed_election_leaves_an_online_partition_online() -> None:
    """Where the preferred replica is not in sync the partition keeps its leader and its state."""
    machines = Machines(UpdateContext("partition_states", {T0: P.ONLINE}))
    machines.stored(T0, LeaderAndIsr(2, (2, 3), 4, -1, 1))
    machines.move(partition_machine, (T0,), P.ONLINE, "preferred")
    assert refused(machines) == [("t-0", "OnlinePartition", "OnlinePartition", False)]
    assert (machines.driver.controller.partition_state(T0), machines.state(T0)[:3]) == (P.ONLINE, (2, (2, 3), 4))


def test_an_election_without_a_state_znode_fails() -> None:
    """A partition that was led and whose state znode is gone cannot be elected; the reason says so."""
    machines = Machines(UpdateContext("partition_states", {T0: P.OFFLINE}))
    machines.move(partition_machine, (T0,), P.ONLINE)
    [refusal] = machines.records("failed_change")
    assert refusal.fields["reason"] == "it has no state znode"


def test_unclean_is_read_only_if_no_isr_member_is_online() -> None:
    """With a live member of the ISR the topic's settings are not read; without, they decide."""
    # Source: ZkPartitionStateMachine.collectUncleanLeaderElectionState (2.8).
    for isr, read, leader in (((2, 1), False, 1), ((4,), True, 1)):
        machines = Machines(UpdateContext("partition_states", {T0: P.OFFLINE}))
        machines.outside(*(Op("create", path) for path in ("/config", "/config/topics")))
        machines.outside(Op("create", "/config/topics/t", b'{"version":1,"config":{"unclean.leader.election.enable":"true"}}'))
        machines.stored(T0, LeaderAndIsr(4, isr, 4, -1, 1))
        machines.move(partition_machine, (T0,), P.ONLINE)
        assert (("read", ("/config/topics/t",), False) in machines.calls) == read
        assert machines.state(T0)[:2] == (leader, isr if not read else (1,))


# ---------------------------------------------------------------- replicas


def replica(broker_id: int, tp: Any = T0) -> PartitionReplica:
    return PartitionReplica(tp, broker_id)


LED = UpdateContext("leadership", {T0: LeaderAndIsr(1, (1, 2, 3), 4, 0, 1)})


def test_an_illegal_move_of_a_replica_is_refused_and_the_rest_goes_on() -> None:
    """Of two replicas only the one whose move is legal moves. Source: ZkReplicaStateMachine.doHandleStateChanges (2.8)."""
    machines = Machines(UpdateContext("replica_states", {replica(2): R.ONLINE, replica(3): R.OFFLINE}))
    machines.move(replica_machine, (replica(2), replica(3)), R.DELETION_STARTED)
    assert refused(machines) == [("t-0@2", "OnlineReplica", "ReplicaDeletionStarted", True)]
    assert dict(machines.driver.controller.replica_states) == {replica(2): R.ONLINE, replica(3): R.DELETION_STARTED}


def test_the_leader_cannot_be_a_new_replica() -> None:
    """New replicas of a partition with a leader get `is_new`; the transition of the leader itself is refused."""
    machines = Machines(LED)
    [requests] = machines.move(replica_machine, (replica(1), replica(2)), R.NEW)
    assert refused(machines) == [("t-0@1", "NonExistentReplica", "NewReplica", False)]
    assert {broker: entries[T0].is_new for broker, entries in requests.leader_and_isr.items()} == {2: True}


def test_a_replica_in_use_is_in_the_assignment() -> None:
    """A new replica outside the assignment is appended to it when it becomes Online, and nothing is sent."""
    machines = Machines(UpdateContext("replica_states", {replica(4): R.NEW}), LED)
    assert machines.move(replica_machine, (replica(4),), R.ONLINE) == []
    assert machines.driver.controller.assignments[T0].replicas == (1, 2, 3, 4)


def test_a_restarted_replica_gets_the_leader() -> None:
    """A replica that is Online again gets the leader without `is_new`; without a leader it gets no request."""
    machines = Machines(LED, UpdateContext("replica_states", {replica(2): R.OFFLINE, replica(2, T1): R.OFFLINE}))
    [requests] = machines.move(replica_machine, (replica(2), replica(2, T1)), R.ONLINE)
    assert {
        broker: {tp: entry.is_new for tp, entry in entries.items()} for broker, entries in requests.leader_and_isr.items()
    } == {2: {T0: False}}
    assert machines.driver.controller.replica_state(replica(2, T1)) is R.ONLINE


def test_a_replica_that_goes_is_stopped_and_leaves_the_isr() -> None:
    """The others get the smaller ISR under the next leader epoch; the replica itself gets StopReplica without delete."""
    machines = Machines(LED, UpdateContext("replica_states", {replica(3): R.ONLINE}))
    machines.stored(T0, LeaderAndIsr(1, (1, 2, 3), 4, -1, 1))
    [requests] = machines.move(replica_machine, (replica(3),), R.OFFLINE)
    assert machines.state(T0)[:3] == (1, (1, 2), 5)
    assert {broker: entries[T0].isr for broker, entries in requests.leader_and_isr.items()} == {1: (1, 2), 2: (1, 2)}
    assert tuple(requests.stop_replica[3][T0]) == (4, False)


def test_the_last_member_stays_in_the_isr() -> None:
    """A leader that is its ISR's only member and goes leaves leader -1 and the ISR as it was, one leader epoch on."""
    # Source: ZkReplicaStateMachine.doRemoveReplicasFromIsr (2.8).
    machines = Machines(LED, UpdateContext("replica_states", {replica(1): R.ONLINE}))
    machines.stored(T0, LeaderAndIsr(1, (1,), 4, -1, 1))
    machines.move(replica_machine, (replica(1),), R.OFFLINE)
    assert machines.state(T0)[:3] == (-1, (1,), 5)


def test_a_replica_outside_the_isr_costs_no_write() -> None:
    """The others get the partition again with the present leader epoch and this controller's epoch; nothing is written."""
    machines = Machines(LED, UpdateContext("controller_epoch", 2), UpdateContext("replica_states", {replica(3): R.ONLINE}))
    machines.stored(T0, LeaderAndIsr(1, (1, 2), 4, -1, 1))
    [requests] = machines.move(replica_machine, (replica(3),), R.OFFLINE)
    assert [call for call in machines.calls if call[0] == "write"] == []
    entry = requests.leader_and_isr[1][T0]
    assert (entry.leader_epoch, entry.controller_epoch, entry.isr) == (4, 2, (1, 2))
    assert machines.driver.controller.replica_state(replica(3)) is R.OFFLINE


def test_a_replica_without_a_state_znode_stays_where_it_is() -> None:
    """If the partition has leadership in memory and no znode, the replica is stopped but its state does not change."""
    machines = Machines(LED, UpdateContext("replica_states", {replica(3): R.ONLINE}))
    [requests] = machines.move(replica_machine, (replica(3),), R.OFFLINE)
    assert refused(machines) == [("t-0@3", "OnlineReplica", "OfflineReplica", False)]
    assert machines.driver.controller.replica_state(replica(3)) is R.ONLINE
    assert 3 in requests.stop_replica


def test_a_replica_without_leadership_becomes_offline_without_a_write() -> None:
    """Without leadership there is no ISR to change: all brokers get the partition's metadata, and the replica is Offline."""
    machines = Machines(UpdateContext("replica_states", {replica(3): R.ONLINE}))
    [requests] = machines.move(replica_machine, (replica(3),), R.OFFLINE)
    assert (requests.leader_and_isr, requests.update_metadata_to, sorted(requests.stop_replica)) == ({}, (1, 2, 3), [3])
    assert machines.driver.controller.replica_state(replica(3)) is R.OFFLINE


def decide_as_before_1_1(machines: Machines) -> None:
    """Give the bench's controller the decisions that the designs before 1.1 have."""
    context = machines.driver.controller
    object.__setattr__(context, "design", replace(context.design, machines=DECISIONS))


@pytest.mark.parametrize(("rule", "is_refused"), [("fails", True), ("stays without record", False)])
def test_a_replica_in_deletion_without_leadership_is_skipped(rule: str, is_refused: bool) -> None:
    """From 0.9 to 1.0 a replica of a topic in deletion, without leadership, keeps its state without an error."""
    # Source: ReplicaStateMachine.handleStateChange, OfflineReplica, leaderAndIsrIsEmpty (0.8.2, 0.9.0, 1.0).
    online, queued = UpdateContext("replica_states", {replica(3): R.ONLINE}), UpdateContext("topics_to_be_deleted", ("t",))
    machines = Machines(online, queued, leaderless_replica_of_deleting_topic=rule)
    decide_as_before_1_1(machines)
    machines.move(replica_machine, (replica(3),), R.OFFLINE)
    assert refused(machines) == ([("t-0@3", "OnlineReplica", "OfflineReplica", False)] if is_refused else [])
    assert machines.driver.controller.replica_state(replica(3)) is R.ONLINE


@pytest.mark.parametrize(("isr", "is_read"), [((1, 3), False), ((3,), True)])
def test_unclean_is_asked_before_the_last_member_leaves(isr: tuple[int, ...], is_read: bool) -> None:
    """From 0.8.2 to 1.0 the topic's settings are read only where the replica that goes is the last one in the ISR."""
    # Source: KafkaController.removeReplicaFromIsr, newIsr.isEmpty before fetchEntityConfig (0.8.2, 1.0).
    machines = Machines(LED, UpdateContext("replica_states", {replica(3): R.ONLINE}), last_isr_member="stays if clean")
    decide_as_before_1_1(machines)
    machines.stored(T0, LeaderAndIsr(isr[0], isr, 4, -1, 1))
    machines.move(replica_machine, (replica(3),), R.OFFLINE)
    assert (("read", ("/config/topics/t",), False) in machines.calls) is is_read


def test_a_deleted_replica_is_forgotten() -> None:
    """Deletion goes from Offline over DeletionStarted, with a StopReplica that deletes, to nothing in state and assignment."""
    machines = Machines(LED, UpdateContext("replica_states", {replica(3): R.OFFLINE}))
    [requests] = machines.move(replica_machine, (replica(3),), R.DELETION_STARTED)
    assert tuple(requests.stop_replica[3][T0]) == (4, True)
    for target in (R.DELETION_SUCCESSFUL, R.NON_EXISTENT):
        machines.move(replica_machine, (replica(3),), target)
    assert replica(3) not in machines.driver.controller.replica_states
    assert machines.driver.controller.assignments[T0].replicas == (1, 2)
