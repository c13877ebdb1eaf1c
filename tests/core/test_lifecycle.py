"""Processes and sessions: how they begin and end, and what is left of them."""

from __future__ import annotations

import json

import pytest

from kcontrol.cluster import actions
from kcontrol.cluster.world import World
from kcontrol.core.effects import Transaction
from kcontrol.core.events import AlterIsrReceived, AutoPreferredReplicaLeaderElection, BrokerChange, TopicChange
from kcontrol.core.znodes import CONTROLLER, CONTROLLER_EPOCH
from tests.core.support import T0, alone, cluster, of_kind, settle, stored, until, waits_for


def active(world: World) -> list[int]:
    return [n for n, p in world.processes.items() if p.driver.controller.is_active]


def test_each_broker_takes_the_next_thousand_producer_ids() -> None:
    """Three brokers that start one after the other write 0 to 999, 1000 to 1999 and 2000 to 2999."""
    # Source: ProducerIdManager.getNewProducerIdBlock (0.11 to 2.8).
    written = [
        r.fields["ops"][0][2] for r in of_kind(cluster({}, release="2.4"), "write") if "block_start" in str(r.fields["ops"])
    ]
    blocks = [json.loads(data) for data in written]
    found = [(block["broker"], block["block_start"], block["block_end"]) for block in blocks]
    assert found == [(1, "0", "999"), (2, "1000", "1999"), (3, "2000", "2999")]


def test_a_broker_that_comes_back_too_early_exits() -> None:
    """Started again while its last session still lives, a broker finds its registration taken and stops with exit code 1."""
    # Source: KafkaZkClient.registerBroker (2.8), whose exception ends the start-up.
    world = cluster()
    world.step(("kill", 3))
    world.step(("start", 3))
    alone(world, 3, lambda w: w.processes[3].driver.exit_code is not None)
    world.step(("exit", 3))
    assert [(r.fields["event"], r.fields["error"]) for r in of_kind(world, "handler_error")] == [("BrokerStartup", "WriteFailed")]
    assert [r.fields["exit_code"] for r in of_kind(world, "stop")] == [None, 1]
    assert "/brokers/ids/3" in world.zk.tree()
    settle(world, ("expire_session", 3), ("start", 3))
    assert stored(world)["u-0"] == (1, (1, 3))


def test_a_broker_that_exits_closes_its_session() -> None:
    """A process that gives up by itself leaves no session behind, unlike one that was killed."""
    world = cluster()
    world.step(("terminate", 3))
    until(world, lambda w: 3 not in w.processes)
    assert "/brokers/ids/3" not in world.zk.tree()
    assert world.orphaned_sessions == {}
    world.run()
    assert stored(world)["u-0"] == (1, (1,))
    assert [r.fields["exit_code"] for r in of_kind(world, "stop")] == [0]


def test_a_killed_broker_is_there_until_its_session_ends() -> None:
    """A kill sends no notification; the registration is deleted, and its watch fires, when the session expires."""
    world = cluster()
    before = len(world.journal.records)
    world.step(("kill", 2))
    assert [r.kind for r in world.journal.records[before:]] == ["stop"]
    assert "/brokers/ids/2" in world.zk.tree()
    world.step(("expire_session", 2))
    assert "/brokers/ids/2" not in world.zk.tree()
    assert [(r.fields["to"], r.fields["path"]) for r in of_kind(world, "notify", before)] == [
        (1, "/brokers/ids/2"),
        (1, "/brokers/ids"),
    ]


def test_expire_comes_first_in_the_queue_of_a_controller() -> None:
    """When the client reports the session's end, queued events are preempted, Expire comes first, then the registration."""
    # Source: KafkaController.beforeInitializingSession and afterInitializingSession (2.8).
    world = cluster()
    world.step(("kill", 3))
    world.step(("expire_session", 3))
    while world.processes[1].notifications:
        world.step(("deliver_notification", 1))
    world.step(("expire_session", 1))
    world.step(("renew", 1))
    waiting = [item.event.name for item in world.processes[1].driver.threads["controller"].queue.waiting]
    assert ([r.fields["event"].name for r in of_kind(world, "preempt")], waiting) == (["BrokerChange"], ["Expire"])
    assert ("reconnect", 1) not in world.actions()
    world.step(("begin", 1, "controller"))
    assert ("reconnect", 1) in world.actions()
    world.run()
    assert len(active(world)) == 1
    assert stored(world)["u-0"][0] == 1


def test_a_leader_under_a_new_session_may_ask_for_an_isr() -> None:
    """A broker knows the epoch of its latest registration, so the controller accepts its AlterIsr."""
    # Source: KafkaController.processRegisterBrokerAndReelect (2.8); recording absent-creation of 2.8.2.
    world = cluster({"t": ((3, 2),)})
    settle(world, ("expire_session", 3))
    for kind in ("kill", "start"):
        settle(world, (kind, 2))
    assert stored(world)["t-0"] == (3, (3, 2))


@pytest.mark.parametrize("release", ["0.8.1", "2.8"])
def test_who_stops_follows_no_new_leader(release: str) -> None:
    """A broker that gave its leadership up and has to ask once more does not get into the ISR again meanwhile."""
    # Source: ReplicaManager.makeFollowers (0.8.1 and 2.8); recording all-terms of 2.8.2.
    world = cluster({"t": ((2, 3), (2, 4))}, brokers=(1, 2, 3, 4), release=release)
    settle(world, ("kill", 4))
    world.step(("terminate", 2))
    while not world.processes[2].driver.timers.get("controlled-shutdown-retry"):
        world.step(next(actions.routine_actions(world)))
    while following := next((act for act in actions.routine_actions(world) if act[0] != "fire_timer"), None):
        world.step(following)
    assert world.processes[2].driver.broker.shutdown_attempts == 1
    assert stored(world)["t-0"] == (3, (3,))


def test_a_broker_under_a_new_session_has_a_later_epoch() -> None:
    """After an expiry a broker registers again: the controller finds a bounced broker and sends it all partitions again."""
    world = cluster()
    before = len(world.journal.records)
    settle(world, ("expire_session", 3))
    epochs = world.processes[1].driver.controller.live_broker_epochs
    assert epochs[3] == world.zk.tree()["/brokers/ids/3"].stat.czxid
    received = [r.fields["api"] for r in of_kind(world, "receive", before) if r.id.node == 3]
    assert "LeaderAndIsr" in received
    assert "UpdateMetadata" in received


def test_a_frozen_controller_comes_back_deposed() -> None:
    """Stopped until its session has ended and another one rules, a controller resigns when it goes on."""
    world = cluster()
    settle(world, ("freeze", 1), ("expire_session", 1))
    [winner] = [n for n in active(world) if n != 1]
    assert sorted(active(world)) == sorted([1, winner])
    settle(world, ("thaw", 1))
    assert active(world) == [winner]
    assert world.processes[1].driver.broker.controller_id == winner


def test_a_broken_controller_epoch_fails_the_election_and_no_more() -> None:
    """With text in `/controller_epoch` that is no number each candidate's event fails; repaired, the next election works."""
    world = cluster()
    settle(world, ("set", CONTROLLER_EPOCH, "broken"), ("delete", CONTROLLER))
    assert {(r.fields["event"], r.fields["error"]) for r in of_kind(world, "handler_error")} == {("Reelect", "MalformedZnode")}
    assert active(world) == []
    settle(world, ("set", CONTROLLER_EPOCH, "7"), ("kill", 1))
    settle(world, ("start", 1))
    assert active(world) == [1]
    assert world.processes[1].driver.controller.controller_epoch == 8
    assert stored(world)["t-0"][0] in (1, 2, 3)


def test_the_first_broker_can_die_at_any_point_of_its_start() -> None:
    """Wherever a broker dies while it starts on an empty ZooKeeper, the next one finishes what it has begun."""
    points = 0
    while True:
        world = World()
        world.step(("start", 1))
        for _ in range(points):
            if not any(action[0] in ("begin", "advance") for action in world.actions()):
                break
            world.step(world.actions()[0])
        ended = not any(action[0] in ("begin", "advance") for action in world.actions())
        settle(world, ("kill", 1))
        settle(world, ("start", 2))
        assert active(world) == [2], points
        settle(world, ("create_topic", "t", ((2,),)))
        assert stored(world) == {"t-0": (2, (2,))}, points
        if ended:
            return
        points += 5


def test_a_leader_asks_again_when_its_controller_died() -> None:
    """A leader whose question about its ISR was on its way to a controller that dies puts it to the next one."""
    world = cluster({"t": ((2, 3),)}, brokers=(1, 2, 3))
    settle(world, ("kill", 3))
    world.step(("start", 3))
    until(world, lambda w: bool(w.network.pending(2)))
    settle(world, ("send_to_controller", 2), ("kill", 1))
    assert stored(world) == {"t-0": (2, (2, 3))}
    assert world.processes[2].driver.broker.hosted[T0].pending_isr == ()


def test_a_leader_is_answered_when_its_controller_was_deposed() -> None:
    """A controller that has lost its fence answers a question about an ISR with an error, and the leader asks the next one."""
    # Source: KafkaController.processAlterIsr (2.8), whose catch-all includes ControllerMovedException.
    world = cluster({"t": ((2, 3),)}, brokers=(1, 2, 3))
    settle(world, ("kill", 3))
    world.step(("start", 3))
    until(world, lambda w: bool(w.network.pending(2)))
    world.step(("send_to_controller", 2))
    world.step(("begin", 1, "controller"))
    world.step(("delete", CONTROLLER))
    alone(world, 2, lambda w: w.processes[2].driver.controller.is_active)
    world.step(("advance", 1, "controller"))
    assert [r.fields["error"] for r in world.last_step if r.kind == "request_refused"] == ["UNKNOWN_SERVER_ERROR"]
    world.run()
    assert stored(world) == {"t-0": (2, (2, 3))}


def test_the_registration_and_the_election_are_one_transaction_each() -> None:
    """A broker's registration is created and filled at once, and `/controller` comes together with its epoch."""
    # Source: KafkaZkClient.registerBroker and registerControllerAndIncrementControllerEpoch (2.8).
    world = World()
    world.step(("start", 1))
    while not waits_for(world, 1, Transaction) or CONTROLLER_EPOCH not in world.zk.tree():
        world.step(world.actions()[0])
    world.run()
    together = [
        [op[:2] for op in r.fields["ops"]]
        for r in of_kind(world, "write")
        if len(r.fields["ops"]) > 1 and r.fields["epoch_zk_version"] == -1
    ]
    assert together == [
        [["create", "/brokers/ids/1"], ["set", "/brokers/ids/1"]],
        [["create", CONTROLLER], ["set", CONTROLLER_EPOCH]],
    ]


def test_a_broker_that_is_not_controller_ignores_the_controllers_events() -> None:
    """A broker that is not controller handles none of the controller's events, and responds NOT_CONTROLLER to a request."""
    # Source: the first lines of the process methods in KafkaController.scala (2.8).
    world = cluster()
    driver = world.processes[2].driver
    for event in (
        BrokerChange(),
        TopicChange(),
        AutoPreferredReplicaLeaderElection(),
        AlterIsrReceived("2.1-9-AlterIsr", 2, 1, ()),
    ):
        driver.enqueue(event, None)
        world.step(("begin", 2, "controller"))
        responses = [(r.kind, r.fields["body"]["error"]) for r in world.last_step if r.kind == "respond"]
        assert responses == ([("respond", "NOT_CONTROLLER")] if isinstance(event, AlterIsrReceived) else [])
        assert {r.kind for r in world.last_step} <= {"begin", "respond", "end"}
    assert world.is_quiet
