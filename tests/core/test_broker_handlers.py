"""A broker's side: what it obeys, what it refuses, and when a leader asks for another ISR."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.broker.context import HostedPartition
from kcontrol.broker.events import (
    AlterIsrResponse,
    LeaderAndIsrRequest,
    LogDirFailure,
    ReplicaCaughtUp,
    ReplicaLags,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from kcontrol.broker.handlers import handle
from kcontrol.controller.context import apply_update
from kcontrol.controller.request_batch import LeaderAndIsrPartition, StopReplicaPartition, UpdateMetadataPartition
from kcontrol.core.effects import Op, UpdateContext
from kcontrol.core.events import Event
from kcontrol.core.model import LeaderAndIsr, TopicPartition
from kcontrol.journal.journal import RecordId
from kcontrol.lab.exercises import answers, exercises
from tests.core.support import T0, T1, Bench, cluster, settle, stored

LED = LeaderAndIsr(1, (1, 2), 4, 7, 2)


class Broker(Bench):
    """Broker 1 under broker epoch 50, which has seen controller epoch 2 and leads t-0 under leader epoch 4 with ISR [1, 2]."""

    def __init__(self) -> None:
        super().__init__({"requests": None})
        self.driver.threads["requests"].handle = handle
        for field, value in (("broker_epoch", 50), ("controller_epoch", 2), ("controller_id", 9)):
            apply_update(self.driver.broker, UpdateContext(field, value))
        apply_update(self.driver.broker, UpdateContext("hosted", {T0: HostedPartition(LED, (1, 2, 3))}))

    def handle(self, event: Event) -> Any:
        """Handle one event and return the last call to the outbox, if there is one."""
        self.driver.enqueue(event, None, "requests")
        self.driver.begin("requests")
        assert self.records("handler_error") == []
        return self.post.sent[-1] if self.post.sent else None

    def request(self, kind: type, partitions: dict[TopicPartition, Any], **header: Any) -> Any:
        """Handle a request of controller 3, by default with valid epochs, and return the body of the response."""
        head = {
            "correlation_id": "3.1-1", "request": RecordId(3, 1, 1), "controller_id": 3, "controller_epoch": 2,
            "broker_epoch": 50,
        }  # fmt: skip
        return self.handle(kind(**{**head, **header}, partitions=partitions))[2]

    def entry(self, leader: int, leader_epoch: int, replicas: tuple[int, ...] = (1, 2, 3)) -> LeaderAndIsrPartition:
        return LeaderAndIsrPartition(leader, leader_epoch, (leader,), 2, 8, replicas, (), (), False)


REQUESTS = [(LeaderAndIsrRequest, {}), (UpdateMetadataRequest, {"live_brokers": (1, 2)}), (StopReplicaRequest, {})]


@pytest.mark.parametrize(("kind", "more"), REQUESTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_request_of_an_older_controller_is_refused(kind: type, more: dict[str, Any]) -> None:
    """A controller epoch below the last one refuses the whole request; an equal or larger one is accepted and stored."""
    # Source: ReplicaManager.becomeLeaderOrFollower, maybeUpdateMetadataCache and stopReplicas (2.8).
    broker = Broker()
    assert broker.request(kind, {}, controller_epoch=1, **more)["error"] == "STALE_CONTROLLER_EPOCH"
    assert (broker.driver.broker.controller_epoch, broker.driver.broker.controller_id) == (2, 9)
    assert broker.request(kind, {}, controller_epoch=2, **more)["error"] == "NONE"
    assert broker.request(kind, {}, controller_epoch=5, **more)["error"] == "NONE"
    assert (broker.driver.broker.controller_epoch, broker.driver.broker.controller_id) == (5, 3)


@pytest.mark.parametrize(("kind", "more"), REQUESTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_request_for_an_earlier_life_is_refused(kind: type, more: dict[str, Any]) -> None:
    """A broker epoch below the own one is stale; a larger one, or -1 for none, is accepted."""
    # Source: KafkaApis.isBrokerEpochStale (2.8).
    broker = Broker()
    answers = [broker.request(kind, {}, broker_epoch=epoch, **more)["error"] for epoch in (49, 50, 51, -1)]
    assert answers == ["STALE_BROKER_EPOCH", "NONE", "NONE", "NONE"]


@pytest.mark.parametrize("broker_epoch", [49, 50, 51, -1])
@pytest.mark.parametrize("controller_epoch", [1, 2, 3])
@pytest.mark.parametrize("leader_epoch", [3, 4, 5])
def test_the_exercise_refuses_as_the_broker_does(broker_epoch: int, controller_epoch: int, leader_epoch: int) -> None:
    """The solution of `the-epoch-check` and the handler agree for epochs below, at and above those that the broker knows."""
    check = answers.shipped(exercises.registry()["the-epoch-check"], "solution")
    broker = Broker()
    entry = {T0: broker.entry(2, leader_epoch)}
    body = broker.request(LeaderAndIsrRequest, entry, broker_epoch=broker_epoch, controller_epoch=controller_epoch)
    whole = {
        "STALE_BROKER_EPOCH": "broker",
        "STALE_CONTROLLER_EPOCH": "controller",
        "NONE": "leader" if body["errors"] else "obey",
    }
    request = {"broker": broker_epoch, "controller": controller_epoch, "leader": leader_epoch}
    assert check(request, {"broker": 50, "controller": 2, "leader": 4}) == whole[body["error"]]


def test_a_leader_epoch_must_be_newer() -> None:
    """Of a LeaderAndIsr only partitions under a newer leader epoch are taken over; the others have their error."""
    # Source: ReplicaManager.becomeLeaderOrFollower (2.8).
    for leader_epoch, error in ((3, "STALE_CONTROLLER_EPOCH"), (4, "STALE_CONTROLLER_EPOCH"), (5, None)):
        broker = Broker()
        answer = broker.request(LeaderAndIsrRequest, {T0: broker.entry(2, leader_epoch), T1: broker.entry(3, 0)})
        assert answer == {"error": "NONE", "errors": {T0: error} if error else {}}
        hosted = broker.driver.broker.hosted
        assert (hosted[T0].leadership.leader, hosted[T1].leadership.leader) == (1 if error else 2, 3)


def test_a_broker_hosts_only_what_is_assigned_to_it() -> None:
    """A partition whose replicas do not include this broker is refused. Source: ReplicaManager.becomeLeaderOrFollower (2.8)."""
    broker = Broker()
    answer = broker.request(LeaderAndIsrRequest, {T1: broker.entry(2, 0, (2, 3))})
    assert answer["errors"] == {T1: "UNKNOWN_TOPIC_OR_PARTITION"}
    assert T1 not in broker.driver.broker.hosted


def test_metadata_replaces_what_is_named() -> None:
    """UpdateMetadata replaces the live brokers and the partitions that it names; leader -2 removes the partition."""
    broker = Broker()
    entry = UpdateMetadataPartition(2, 5, (2,), 2, 8, (1, 2), (1,))
    broker.request(UpdateMetadataRequest, {T0: entry, T1: entry}, live_brokers=(1, 2))
    assert (set(broker.driver.broker.live_brokers), dict(broker.driver.broker.metadata)) == ({1, 2}, {T0: entry, T1: entry})
    broker.request(UpdateMetadataRequest, {T0: entry._replace(leader=-2), T1: entry._replace(leader=1)}, live_brokers=(1,))
    assert (set(broker.driver.broker.live_brokers), {tp: m.leader for tp, m in broker.driver.broker.metadata.items()}) == (
        {1},
        {T1: 1},
    )


def test_a_replica_is_stopped_unless_its_leader_epoch_is_old() -> None:
    """-2, -1 and newer epochs stop it, an equal or older one is fenced, and what is not hosted is stopped already."""
    # Source: ReplicaManager.stopReplicas (2.8).
    for leader_epoch, error in ((3, "FENCED_LEADER_EPOCH"), (4, "FENCED_LEADER_EPOCH"), (5, None), (-1, None), (-2, None)):
        broker = Broker()
        entry = StopReplicaPartition(leader_epoch, False)
        answer = broker.request(StopReplicaRequest, {T0: entry, T1: entry})
        assert answer["errors"] == ({T0: error} if error else {})
        assert (T0 in broker.driver.broker.hosted) == (error is not None)


# ---------------------------------------------------------------- log directories


class WithoutDirectory(Broker):
    """The broker after the directory with t-0 has failed."""

    def __init__(self) -> None:
        super().__init__()
        self.outside(Op("create", "/log_dir_event_notification"))
        self.driver.enqueue(LogDirFailure((T0,)), None, "requests")
        self.go("requests")


def test_a_failed_directory_is_notified_through_zookeeper() -> None:
    """The broker stops serving what was there and leaves a numbered znode with its id, as `propagateLogDirEvent` does."""
    # Source: ReplicaManager.handleLogDirFailure, KafkaZkClient.propagateLogDirEvent (2.8).
    broker = WithoutDirectory()
    assert (dict(broker.driver.broker.hosted), set(broker.driver.broker.offline_partitions)) == ({}, {T0})
    path = "/log_dir_event_notification/log_dir_event_0000000000"
    assert broker.zookeeper.tree()[path].data == b'{"version":1,"broker":1,"event":1}'
    assert broker.records("write")[-1].fields["ops"] == [["create", path, b'{"version":1,"broker":1,"event":1}', 0, False]]


def test_a_directory_fails_for_a_replica_that_is_not_hosted() -> None:
    """A failed directory removes the partitions that the broker hosts in it; if the broker hosts none, it records no change."""
    # Source: ReplicaManager.handleLogDirFailure (2.8), which takes the partitions of `onlinePartitionsIterator`.
    broker = Broker()
    broker.outside(Op("create", "/log_dir_event_notification"))
    for partitions, hosted in (((T1,), {T0}), ((T0, T1), set())):
        before = len(broker.records("update"))
        broker.driver.enqueue(LogDirFailure(partitions), None, "requests")
        broker.go("requests")
        assert broker.records("handler_error") == [] and set(broker.driver.broker.hosted) == hosted
        changed = [record.fields for record in broker.records("update")[before:] if record.fields["field"] == "hosted"]
        assert [fields["remove"] for fields in changed] == ([] if hosted else [(T0,)])


def test_a_replica_without_its_directory_is_a_storage_error() -> None:
    """LeaderAndIsr and StopReplica respond KAFKA_STORAGE_ERROR for it with any epoch, and handle other partitions normally."""
    # Source: HostedPartition.Offline in ReplicaManager.becomeLeaderOrFollower and stopReplicas (2.8).
    broker = WithoutDirectory()
    for leader_epoch in (3, 9):
        body = broker.request(LeaderAndIsrRequest, {T0: broker.entry(1, leader_epoch), T1: broker.entry(1, leader_epoch)})
        assert body == {"error": "NONE", "errors": {T0: "KAFKA_STORAGE_ERROR"}}
        assert set(broker.driver.broker.hosted) == {T1}
        stop = StopReplicaPartition(leader_epoch + 1, False)
        assert broker.request(StopReplicaRequest, {T0: stop, T1: stop})["errors"] == {T0: "KAFKA_STORAGE_ERROR"}


def test_an_old_controller_is_refused_before_a_directory_is_looked_at() -> None:
    """A stale controller or broker epoch refuses the whole request, storage errors included. Source: 2.8, as above."""
    broker = WithoutDirectory()
    entry = {T0: broker.entry(1, 9)}
    stale = [{"controller_epoch": 1}, {"broker_epoch": 49}]
    assert [broker.request(LeaderAndIsrRequest, entry, **header) for header in stale] == [
        {"error": "STALE_CONTROLLER_EPOCH", "errors": {}},
        {"error": "STALE_BROKER_EPOCH", "errors": {}},
    ]


@pytest.mark.parametrize("data", [False, True])
def test_the_controller_asks_and_moves_the_leader(data: bool) -> None:
    """The controller sends LeaderAndIsr after the notification, gets a storage error, and elects another leader from the ISR."""
    # After a restart the directory is back, and the broker returns to the ISR. Source: KIP-112; reference 11.4.
    world = cluster({"t": ((1, 2, 3),)}, brokers=(3, 1, 2), data=data)
    settle(world, ("fail_log_dir", 1, "t-0"))
    assert stored(world)["t-0"] == (2, (2, 3))
    assert world.processes[3].driver.controller.offline_dirs == {1: frozenset({T0})}
    assert [path for path in world.zk.tree() if path.startswith("/log_dir_event_notification/")] == []
    settle(world, ("kill", 1))
    settle(world, ("start", 1))
    assert stored(world)["t-0"] == (2, (2, 3, 1))


def test_before_1_0_a_broker_dies_with_its_directory() -> None:
    """A storage error halts the process (`Runtime.halt` in ReplicaManager, 0.8.1); its session lives on until it expires."""
    world = cluster({"t": ((1, 2, 3),)}, brokers=(3, 1, 2), release="0.8.1")
    world.step(("fail_log_dir", 1, "t-0"))
    assert (1 in world.processes, 1 in world.orphaned_sessions) == (False, True)
    world.run()
    assert stored(world)["t-0"][0] == 2


# ---------------------------------------------------------------- the leader's side of the ISR


def asked(broker: Broker) -> list[Any]:
    return [body[T0].isr for what, _, body in broker.post.sent if what == "ask"]


def test_a_leader_asks_for_the_larger_isr_once() -> None:
    """The leader asks for an ISR with the caught-up follower at the end, and for no other ISR until the response comes."""
    # Source: Partition.expandIsr and isrState.isInflight (2.8).
    broker = Broker()
    for _ in range(2):
        broker.handle(ReplicaCaughtUp(T0, 3))
    broker.handle(ReplicaLags(T0, 2))
    assert asked(broker) == [(1, 2, 3)]
    assert broker.driver.broker.hosted[T0].pending_isr == (1, 2, 3)


def test_a_leader_asks_for_the_smaller_isr() -> None:
    """The leader requests an ISR without a lagging follower; itself, a non-member and foreign partitions change nothing."""
    broker = Broker()
    broker.handle(ReplicaLags(T0, 1))
    broker.handle(ReplicaLags(T0, 3))
    broker.handle(ReplicaLags(T1, 2))
    broker.handle(ReplicaCaughtUp(T0, 2))
    assert asked(broker) == []
    broker.handle(ReplicaLags(T0, 2))
    assert asked(broker) == [(1,)]


def test_a_follower_asks_for_nothing() -> None:
    """A broker that does not lead a partition requests no ISR for it after any event."""
    broker = Broker()
    apply_update(broker.driver.broker, UpdateContext("hosted", {T0: HostedPartition(LED._replace(leader=2), (1, 2, 3))}))
    broker.handle(ReplicaCaughtUp(T0, 3))
    broker.handle(ReplicaLags(T0, 2))
    assert asked(broker) == []


ANSWERS = {
    "written": (LED._replace(isr=(1, 2, 3), zk_version=8), (1, 2, 3), ()),
    "of another leader epoch": (LED._replace(isr=(1, 2, 3), leader_epoch=5), (1, 2), (1, 2, 3)),
    "INVALID_UPDATE_VERSION": ("INVALID_UPDATE_VERSION", (1, 2), (1, 2, 3)),
    "FENCED_LEADER_EPOCH": ("FENCED_LEADER_EPOCH", (1, 2), (1, 2, 3)),
    "UNKNOWN_SERVER_ERROR": ("UNKNOWN_SERVER_ERROR", (1, 2), (1, 2, 3)),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_leader_takes_over_what_the_controller_has_written(answer: str) -> None:
    """The answer's ISR and version are taken over; after any refusal the old ISR stands and nothing more is asked."""
    # Source: Partition.handleAlterIsrResponse (2.8).
    response, isr, pending = ANSWERS[answer]
    broker = Broker()
    broker.handle(ReplicaCaughtUp(T0, 3))
    broker.handle(AlterIsrResponse("NONE", ((T0, response),)))
    held = broker.driver.broker.hosted[T0]
    assert (held.leadership.isr, held.pending_isr) == (isr, pending)
    assert held.leadership.zk_version == (8 if answer == "written" else 7)


def test_an_unexpected_response_changes_nothing() -> None:
    """A second response, or a response for a partition that is no longer hosted, changes nothing at the broker."""
    broker = Broker()
    for tp in (T0, T1):
        broker.handle(AlterIsrResponse("NONE", ((tp, LED._replace(isr=(1,))),)))
    assert dict(broker.driver.broker.hosted) == {T0: HostedPartition(LED, (1, 2, 3))}
