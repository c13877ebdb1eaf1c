"""0.8.1: listeners and one lock on several threads, and the weaknesses that real brokers of 0.8.1.1 show."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.cluster import actions
from kcontrol.cluster.world import World
from kcontrol.core import znodes as zk
from kcontrol.core.effects import Commit, Sleep, Transaction
from tests.core.support import T0, U0, alone, cluster, journal_bytes, of_kind, settle, states, stored, until, waits_for

OLD: dict[str, Any] = {"release": "0.8.1"}
EVENTS = "zk-events"


def old_cluster(topics: Any = None, **settings: Any) -> World:
    return cluster(*(() if topics is None else (topics,)), **OLD, **settings)


def created(world: World) -> list[str]:
    return [op[1] for r in of_kind(world, "write") if r.fields["error"] is None for op in r.fields["ops"] if op[0] == "create"]


def test_a_broker_elects_before_it_registers() -> None:
    """The first broker becomes controller, with its epoch, before it has registered."""
    # The other party: golden start-order-321 of 0.8.1.1. Source: KafkaServer.startup (0.8.1).
    world = cluster({}, brokers=(1,), **OLD)
    paths = created(world)
    assert paths.index(zk.CONTROLLER) < paths.index(zk.CONTROLLER_EPOCH) < paths.index("/brokers/ids/1")


def test_a_controller_that_is_no_longer_named_goes_on() -> None:
    """After `/controller` was rewritten the old controller remembers the other's id and still elects leaders."""
    # The other party: golden controller-znode-overwritten of 0.8.1.1.
    world = old_cluster()
    settle(world, ("set", zk.CONTROLLER, zk.encode_controller(2, 0).decode()))
    ctx = world.processes[1].driver.controller
    assert (ctx.active_controller_id, ctx.is_active) == (2, True)
    settle(world, ("kill", 3))
    assert stored(world)["u-0"] == (1, (1,))


@pytest.mark.parametrize(("first", "active"), [(1, [1]), (2, [1, 2])])
def test_it_does_not_resign_at_the_deletion_either(first: int, active: list[int]) -> None:
    """Deleted after that, `/controller` is competed for by a broker whose machines and channels are still there."""
    # It does not resign after the deletion, nor if another broker is in `/controller` by then. The reference: golden
    # controller-znode-overwritten of 0.8.1.1.
    world = old_cluster()
    settle(world, ("set", zk.CONTROLLER, zk.encode_controller(2, 0).decode()))
    before = len(world.journal.records)
    world.step(("delete", zk.CONTROLLER))
    alone(world, first, lambda w: zk.CONTROLLER in w.zk.tree() and w.processes[first].driver.controller.is_active)
    world.run()
    learnt = [(r.fields["field"], r.fields["put"]) for r in of_kind(world, "update", before) if r.id.node == 1]
    assert ("active_controller_id", first) in learnt
    assert ("has_channels", False) not in learnt
    assert ("machines_started", False) not in learnt
    assert [n for n, p in world.processes.items() if p.driver.controller.is_active] == active


def test_a_write_under_way_goes_on_under_the_next_session() -> None:
    """ZkClient sends again under the new session what the old one could not: a deposed controller's write succeeds."""
    # Source: ZkClient.retryUntilConnected (ZkClient 0.3).
    world = old_cluster()
    world.step(("kill", 3))
    until(world, lambda w: waits_for(w, 1, Commit, EVENTS))
    world.step(("expire_session", 1))
    assert ("advance", 1, EVENTS) not in world.actions()
    alone(world, 2, lambda w: w.processes[2].driver.controller.is_active)
    before = len(world.journal.records)
    world.step(("renew", 1))
    world.step(("advance", 1, EVENTS))
    (change,) = [r for r in of_kind(world, "change", before) if r.id.node == 1]
    assert change.fields["write"] == "set"


def test_a_lost_race_for_the_epoch_is_only_logged() -> None:
    """A controller that cannot write the next epoch goes on with the epoch that it had read: two controllers share it."""
    # Source: KafkaController.incrementControllerEpoch (0.8.1), whose catch-all swallows ControllerMovedException.
    world = old_cluster()
    world.step(("delete", zk.CONTROLLER))

    def about_to_count(w: World) -> bool:
        trip = w.processes[2].driver.threads[EVENTS].waits_for
        return trip is not None and isinstance(trip.effect, Transaction) and trip.effect.ops[0].path == zk.CONTROLLER_EPOCH

    alone(world, 2, about_to_count)
    world.step(("set", zk.CONTROLLER_EPOCH, "1"))
    world.step(("advance", 2, EVENTS))
    alone(world, 2, lambda w: w.processes[2].driver.controller.is_active)
    assert world.processes[2].driver.controller.controller_epoch == world.processes[1].driver.controller.controller_epoch == 1


def test_a_failover_that_fails_leaves_the_machines_running() -> None:
    """An error on the way gives `/controller` up without a resignation: the broker goes on as if it ruled."""
    # Source: ZookeeperLeaderElector.elect and resign (0.8.1).
    world = old_cluster()
    world.step(("set", zk.CONTROLLER, zk.encode_controller(2, 0).decode()))
    settle(world, ("set", zk.topic_path("t"), '{"version":1,"partitions":7}'))
    before = len(world.journal.records)
    world.step(("delete", zk.CONTROLLER))
    alone(world, 1, lambda w: any(r.id.node == 1 and "delete" in str(r.fields["ops"]) for r in of_kind(w, "write", before)))
    ctx = world.processes[1].driver.controller
    assert (ctx.active_controller_id, ctx.is_active, ctx.machines_started) == (-1, True, True)


def deposed() -> World:
    """A cluster in which broker 1 has resigned and broker 2 was elected; u-0 is not led by its preferred leader."""
    world = old_cluster()
    for kind in ("kill", "start"):
        settle(world, (kind, 3))
    world.step(("delete", zk.CONTROLLER))
    alone(world, 1, lambda w: not w.processes[1].driver.controller.is_active)
    alone(world, 2, lambda w: w.processes[2].driver.controller.is_active)
    world.run()
    return world


def test_a_controller_that_handles_the_deletion_late_does_not_resign() -> None:
    """ZkClient reads before it calls: if `/controller` exists again, the old controller gets a data change, and stays active."""
    # Source: ZkClient.fireDataChangedEvents (ZkClient 0.3) and LeaderChangeListener (0.8.1).
    world = old_cluster()
    world.step(("delete", zk.CONTROLLER))
    alone(world, 2, lambda w: w.processes[2].driver.controller.is_active)
    world.run()
    assert [n for n, p in world.processes.items() if p.driver.controller.is_active] == [1, 2]
    assert [n for n, p in deposed().processes.items() if p.driver.controller.is_active] == [2]


def test_a_controller_that_has_resigned_deletes_the_request_that_it_cannot_serve() -> None:
    """Its listener for preferred elections is still registered: it elects no leader, and the request is deleted."""
    # Source: PreferredReplicaElectionListener and onControllerResignation (0.8.1), which unsubscribes nothing.
    world = deposed()
    assert stored(world)["u-0"] == (1, (1, 3))
    world.step(("kill", 2))
    before = len(world.journal.records)
    world.step(("create", zk.PREFERRED_REPLICA_ELECTION, zk.encode_partition_list((U0,)).decode()))
    alone(world, 1, lambda w: zk.PREFERRED_REPLICA_ELECTION not in w.zk.tree())
    assert stored(world)["u-0"] == (1, (1, 3))
    assert of_kind(world, "change", before) == []


@pytest.mark.parametrize(
    "request_text", ['{"version":1,"partitions":[{"topic":"v","partition":0}]}', '{"version":1,"partitions":7}']
)
def test_a_request_that_cannot_be_read_stops_every_failover(request_text: str) -> None:
    """With a malformed preferred election, or of a partition without leadership, every elected controller fails."""
    # Source: KafkaController.initializePreferredReplicaElection (0.8.1.1), which looks its leadership up without asking.
    world = old_cluster()
    settle(world, ("kill", 3))
    settle(world, ("create_topic", "v", ((3,),)))
    settle(world, ("create", zk.PREFERRED_REPLICA_ELECTION, request_text))
    assert zk.PREFERRED_REPLICA_ELECTION in world.zk.tree()
    before = len(world.journal.records)
    world.step(("delete", zk.CONTROLLER))
    alone(world, 2, lambda w: any(r.id.node == 2 and "delete" in str(r.fields["ops"]) for r in of_kind(w, "write", before)))
    assert zk.CONTROLLER not in world.zk.tree()
    assert zk.PREFERRED_REPLICA_ELECTION in world.zk.tree()
    assert [r.fields["event"] for r in of_kind(world, "handler_error", before)] == ["LeaderChange"]


def test_a_broker_change_fails_on_a_topic_that_was_removed_from_outside() -> None:
    """Its leadership is still in memory and its replicas are not: the next broker that starts gets no request."""
    # Source: ControllerBrokerRequestBatch.addUpdateMetadataRequestForBrokers (0.8.1.1).
    world = old_cluster({"t": ((1,),), "u": ((1,),)})
    for path in sorted((p for p in world.zk.tree() if p.startswith(zk.topic_path("t"))), reverse=True):
        settle(world, ("delete", path))
    settle(world, ("kill", 3))
    before = len(world.journal.records)
    settle(world, ("start", 3))
    assert [(r.fields["event"], r.fields["error"]) for r in of_kind(world, "handler_error", before)] == [
        ("BrokerChange", "KeyError")
    ]
    assert [r for r in of_kind(world, "receive", before) if r.id.node == 3] == []


def test_the_controller_follows_an_epoch_that_is_written_from_outside() -> None:
    """A larger number in `/controller_epoch` becomes the controller's own, and stands in what it writes next."""
    # The other party: our recording epoch-set of 0.8.1.1. Source: ControllerEpochListener (0.8.1).
    world = old_cluster()
    settle(world, ("set", zk.CONTROLLER_EPOCH, "7"))
    settle(world, ("kill", 3))
    assert {value.controller_epoch for _, value in states(world)} == {7}


def test_a_broker_that_comes_back_too_early_waits() -> None:
    """It sleeps until its old registration is gone, holding the lock, and then registers; 2.8 exits instead."""
    # The other party: reference 1.2, measured on 0.8.1.1. Source: ZkUtils.createEphemeralPathExpectConflictHandleZKBug (0.8.1).
    world = old_cluster()
    world.step(("kill", 3))
    world.step(("start", 3))
    until(world, lambda w: waits_for(w, 3, Sleep, "main"))
    assert world.processes[3].driver.locks == {"controllerLock": "main"}
    assert ("advance", 3, "main") not in world.actions()
    world.run()
    assert [r for r in of_kind(world, "stop") if r.fields["exit_code"] is not None] == []
    assert world.owners[world.zk.tree()["/brokers/ids/3"].stat.ephemeral_owner] == 3


def test_others_come_in_between_the_partitions_of_a_controlled_shutdown() -> None:
    """After each partition the lock is free: a listener may have it before the next one is moved."""
    # Source: KafkaController.shutdownBroker (0.8.1).
    world = old_cluster({"t": ((3, 1), (3, 2))})
    world.step(("terminate", 3))
    until(world, lambda w: stored(w)["t-0"][0] == 1 and not w.processes[1].driver.locks)
    assert stored(world)["t-1"][0] == 3
    world.step(("set", zk.CONTROLLER_EPOCH, "1"))
    world.step(("deliver_notification", 1))
    world.step(("begin", 1, EVENTS))
    assert ("advance", 1, "controlled-shutdown") not in world.actions()
    world.run()
    assert stored(world) == {"t-0": (1, (1,)), "t-1": (2, (2,))}
    assert 3 not in world.processes


def test_a_leader_writes_its_isr_itself() -> None:
    """The leader writes a smaller and again a larger ISR over the version that it knows; the controller is not notified."""
    # Source: Partition.updateIsr (0.8.1).
    world = old_cluster({"t": ((2, 3),)}, faults=("shrink_isr",))
    before = len(world.journal.records)
    world.step(("shrink_isr", 2, "t-0", 3))
    until(world, lambda w: stored(w)["t-0"] == (2, (2,)))
    world.run()
    assert stored(world)["t-0"] == (2, (2, 3))
    assert {r.id.node for r in of_kind(world, "write", before)} == {2}
    assert world.processes[1].driver.controller.leadership[T0].zk_version == 0


def test_a_leader_that_has_lost_the_race_keeps_its_isr() -> None:
    """Over a version that is no longer there nothing is written, until a newer LeaderAndIsr brings the version."""
    world = old_cluster({"t": ((2, 3),)}, faults=("shrink_isr",))
    value = dict(states(world))[T0]
    world.step(("set", zk.state_path(T0), zk.encode_state(value).decode()))
    world.step(("freeze", 3))
    before = len(world.journal.records)
    settle(world, ("shrink_isr", 2, "t-0", 3))
    assert [r.fields["error"] for r in of_kind(world, "write", before)] == ["BadVersion"]
    assert of_kind(world, "handler_error", before) == []
    assert stored(world)["t-0"] == (2, (2, 3))
    assert world.processes[2].driver.broker.hosted[T0].leadership.isr == (2, 3)
    settle(world, ("kill", 3))
    assert stored(world)["t-0"] == (2, (2,))
    settle(world, ("start", 3))
    assert stored(world)["t-0"] == (2, (2, 3))


def test_who_leaves_a_frozen_leader_does_so_and_answers_late() -> None:
    """LeaderAndIsr is obeyed; its answer, and all behind it, waits for the fetch that the frozen leader owes, until it thaws."""
    # The other party: goldens session-expired and zombie-controller, recording two-zombies, all of 0.8.1.1.
    world = old_cluster({"t": ((3, 2),)})
    settle(world, ("freeze", 3), ("expire_session", 3))
    assert world.processes[2].driver.broker.hosted[T0].leadership.leader == 2
    assert ([held.broker for held in world.network.delayed_responses.values()], (1, 2) in world.network.channels) == ([2], True)
    settle(world, ("thaw", 3))
    assert (world.network.delayed_responses, world.network.channels) == ({}, {})


@pytest.mark.parametrize("others", [(), ((3, 2),)], ids=["nothing else", "another partition"])
def test_a_thread_that_fetches_something_else_is_not_waited_for(others: tuple[tuple[int, ...], ...]) -> None:
    """The answer is held back where nothing is left to fetch from the frozen leader, and only there."""
    # Source: AbstractFetcherManager.shutdownIdleFetcherThreads (0.8.1).
    world = old_cluster({"t": ((2, 3), *others)})
    for kind in ("kill", "start"):
        settle(world, (kind, 2))
    settle(world, ("freeze", 3), ("create", zk.PREFERRED_REPLICA_ELECTION, zk.encode_partition_list([T0]).decode()))
    assert world.processes[2].driver.broker.hosted[T0].leadership.leader == 2
    assert [held.leaders for held in world.network.delayed_responses.values()] == ([] if others else [(3,)])


def test_a_broker_that_ends_takes_its_answer_along() -> None:
    """An answer that is held back is gone with its broker, and goes out when the leader dies."""
    world = old_cluster({"t": ((3, 2),)})
    for kind in ("freeze", "expire_session"):
        world.step((kind, 3))
    world.run()
    other = world.fork()
    world.step(("kill", 2))
    assert not world.network.delayed_responses
    other.step(("kill", 3))
    assert ("send_delayed_response", 2) in other.actions()
    other.run()
    assert not other.network.delayed_responses


@pytest.mark.slow
@pytest.mark.parametrize("happens", [("delete", zk.CONTROLLER), ("kill", 1), ("kill", 3), ("expire_session", 1)])
def test_a_fork_in_the_middle_of_a_listener(happens: tuple[Any, ...]) -> None:
    """A handler that holds the lock is copied as any other: the fork does what the original does, and not with it."""
    world = old_cluster().fork(keep_replay_logs=True)
    world.step(happens)
    forks = []
    while following := next(actions.routine_actions(world), None):
        world.step(following)
        forks.append((world.fork(), world.fingerprint(), world.actions()))
    for branch, fingerprint, possible in forks:
        assert (branch.fingerprint(), branch.actions()) == (fingerprint, possible)
        branch.run()
        assert journal_bytes(branch.journal.records) == journal_bytes(world.journal.records)
