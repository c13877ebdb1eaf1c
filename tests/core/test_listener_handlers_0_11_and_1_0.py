"""0.11 and 1.0: listeners read for an event thread, nothing is fenced, and one partition is seen to after the other."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.cluster.world import World
from kcontrol.core import znodes as zk
from kcontrol.core.effects import Transaction
from tests.core.support import T0, U0, alone, cluster, of_kind, settle, stored, until, waits_for

QUEUE: dict[str, Any] = {"release": "1.0"}
EVENTS = "zk-events"


def take(world: World, broker: int, thread: str) -> None:
    world.run_event(broker, thread)


def deliver_all_notifications(world: World, broker: int) -> None:
    """Deliver all watch events of a broker, and let ZkClient's thread call the listeners, if the release has them."""
    while world.processes[broker].notifications:
        world.step(("deliver_notification", broker))
    listening = world.processes[broker].driver.threads.get(EVENTS)
    while listening and listening.queue:
        take(world, broker, EVENTS)


def test_the_event_thread_knows_what_the_listener_has_read() -> None:
    """A topic that comes after the listener has read is not seen by the first event, but by the next one."""
    # Source: TopicChangeListener.handleChildChange and TopicChange.process (1.0).
    world = cluster({}, **QUEUE)
    for topic in ("t", "u"):
        world.step(("create_topic", topic, ((1, 2),)))
        deliver_all_notifications(world, 1)
    controller = world.processes[1].driver.controller
    take(world, 1, "controller")
    assert controller.all_topics == {"t"}
    take(world, 1, "controller")
    assert controller.all_topics == {"t", "u"}


def test_the_registration_does_not_wait_for_the_event_thread() -> None:
    """After an expiry ZkClient's thread registers the broker while the event thread has not begun to look who rules."""
    # Source: KafkaHealthcheck.SessionExpireListener.handleNewSession (1.0).
    world = cluster(**QUEUE)
    world.step(("expire_session", 2))
    world.step(("renew", 2))
    deliver_all_notifications(world, 2)
    assert "/brokers/ids/2" in world.zk.tree()
    waiting = [item.event.name for item in world.processes[2].driver.threads["controller"].queue.waiting]
    assert waiting == ["Reelect", "ControllerChange"]


@pytest.mark.parametrize(("release", "rules", "epoch"), [("1.0", [2], 1), ("1.1", [], 0)])
def test_a_failover_whose_epoch_another_has_written_goes_on(release: str, rules: list[int], epoch: int) -> None:
    """Up to 1.0 the broker only logs that it has lost, and rules under the epoch that it had read; since 1.1 it gives up."""
    # Source: KafkaController.incrementControllerEpoch, whose catch-all takes its own ControllerMovedException (1.0).
    world = cluster(release=release)
    world.step(("kill", 1))
    world.step(("expire_session", 1))

    def is_about_to_write(w: World) -> bool:
        thread = w.processes[2].driver.threads["controller"]
        ops = thread.waits_for.effect.ops if waits_for(w, 2, Transaction) and thread.waits_for else ()
        return any((op.kind, op.path) == ("set", zk.CONTROLLER_EPOCH) for op in ops)

    alone(world, 2, is_about_to_write)
    world.step(("set", zk.CONTROLLER_EPOCH, "7"))
    alone(world, 2, lambda w: w.processes[2].driver.threads["controller"].handler is None)
    controller = world.processes[2].driver.controller
    assert [n for n, p in world.processes.items() if p.driver.controller.is_active] == rules
    assert (controller.controller_epoch, zk.CONTROLLER in world.zk.tree()) == (epoch, bool(rules))


@pytest.mark.parametrize(("release", "greeted_with"), [("1.0", (1, 3)), ("1.1", (1, 3)), ("2.8", (1, 2, 3))])
def test_a_dead_broker_is_removed_before_a_started_broker_gets_metadata(release: str, greeted_with: tuple[int, ...]) -> None:
    """One broker starts and one dies between two reads: the started one gets live brokers only; since 2.2 the dead one too."""
    # Source: BrokerChange.process, which replaces liveBrokers first (1.0, 1.1); KafkaController.processBrokerChange (2.8).
    world = cluster(release=release)
    settle(world, ("kill", 3))
    for act in (("start", 3), ("kill", 2), ("expire_session", 2)):
        alone(world, 3, lambda w: "/brokers/ids/3" in w.zk.tree()) if act[0] == "kill" else None
        world.step(act)
    before = len(world.journal.records)
    alone(world, 1, lambda w: bool(of_kind(w, "send", before)))
    sent = of_kind(world, "send", before)[0].fields["requests"]
    assert sent.live_brokers == greeted_with


@pytest.mark.parametrize(("release", "left"), [("1.0", False), ("1.1", True)])
def test_a_former_controller_deletes_log_dir_notifications_in_1_0(release: str, left: bool) -> None:
    """In 1.0 a broker that is no longer controller deletes the notification, so that the next controller does not get it."""
    # Source: LogDirEventNotification.process, which does not ask whether the broker is active (1.0).
    world = cluster(release=release)
    note = f"{zk.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_0000000000"
    world.step(("set", zk.CONTROLLER, zk.encode_controller(9, 0).decode()))
    world.step(("create", note, '{"version":1,"broker":2,"event":1}'))
    deliver_all_notifications(world, 1)
    alone(
        world, 1, lambda w: all(thread.handler is None and not thread.queue for thread in w.processes[1].driver.threads.values())
    )
    assert not world.processes[1].driver.controller.is_active
    assert (note in world.zk.tree()) is left


def test_a_request_for_elections_stays_without_leadership() -> None:
    """The other partitions are elected, and then the check of a partition without leadership fails: the znode stays."""
    # Source: KafkaController.removePartitionsFromPreferredReplicaElection (1.0).
    world = cluster({"t": ((1, 2),), "u": ((9,),)}, **QUEUE)
    settle(world, ("create", zk.PREFERRED_REPLICA_ELECTION, zk.encode_partition_list((T0, U0)).decode()))
    assert of_kind(world, "handler_error")[-1].fields["error"] == "KeyError"
    assert zk.PREFERRED_REPLICA_ELECTION in world.zk.tree()


def test_partitions_move_to_brokers_that_are_down() -> None:
    """Since 0.10.1 the controller does not check that the new replicas live: the reassignment begins, and waits."""
    # Source: KafkaController.initiateReassignReplicasForTopicPartition (1.0).
    world = cluster({"t": ((1, 2),)}, **QUEUE)
    settle(world, ("create", zk.REASSIGN_PARTITIONS, zk.encode_reassignment({T0: (2, 9)}).decode()))
    controller = world.processes[1].driver.controller
    assert (controller.replicas(T0), dict(controller.partitions_being_reassigned)) == ((2, 9, 1), {T0: (2, 9)})
    assert zk.REASSIGN_PARTITIONS in world.zk.tree()


def test_who_leads_as_preferred_is_not_elected_again() -> None:
    """A requested election of the partition leaves its leader epoch; 1.1 and 2.1 raise it."""
    # Source: PreferredReplicaPartitionLeaderSelector, LeaderElectionNotNeededException (1.0).
    epochs = {}
    for release in ("1.0", "1.1"):
        world = cluster({"t": ((1, 2),)}, release=release)
        settle(world, ("create", zk.PREFERRED_REPLICA_ELECTION, zk.encode_partition_list((T0,)).decode()))
        epochs[release] = world.processes[1].driver.controller.leadership[T0].leader_epoch
    assert epochs == {"1.0": 0, "1.1": 1}


@pytest.mark.parametrize(("unclean", "isr"), [(True, ()), (False, (3,))])
def test_the_last_member_stays_unless_another_may_lead(unclean: bool, isr: tuple[int, ...]) -> None:
    """The ISR of a partition whose last member dies keeps it, so that it can lead again, unless unclean elections are allowed."""
    # Source: KafkaController.removeReplicaFromIsr (1.0).
    world = cluster({"t": ((3,),)}, **QUEUE)
    world.step(
        ("set", "/config/topics/t", f'{{"version":1,"config":{{"unclean.leader.election.enable":"{str(unclean).lower()}"}}}}')
    )
    settle(world, ("kill", 3))
    assert stored(world)["t-0"] == (-1, isr)


def test_a_broker_back_too_early_competes_all_the_same() -> None:
    """Its election is under way before its registration fails; it rules until its process ends."""
    # The other party: golden start-order-321 of 1.0.2 for the order. Source: KafkaServer.startup (1.0).
    world = cluster({}, brokers=(1,), **QUEUE)
    world.step(("kill", 1))
    world.step(("start", 1))
    until(world, lambda w: 1 not in w.processes)
    assert [r.fields["event"] for r in of_kind(world, "handler_error")] == ["BrokerStartup"]
    assert [r.fields["exit_code"] for r in of_kind(world, "stop")] == [None, 1]


@pytest.mark.parametrize(("release", "live"), [("0.11.0", {1}), ("1.0", {1, 2}), ("2.8", {1, 2}), ("3.9", {1})])
def test_no_metadata_about_a_death_with_a_leaderless_partition(release: str, live: set[int]) -> None:
    """From 1.0 to 3.0 a leaderless partition keeps metadata about a death back; in 0.11 and since 3.1 it is sent."""
    # In 0.11 partitions of the dead count; since 3.1 it is sent if no other request was, even if a partition had to be decided.
    # Source: KafkaController.onBrokerFailure (0.11), onReplicasBecomeOffline (1.0 to 3.0, 3.9, KAFKA-13225).
    world = cluster({"t": ((3,),)}, release=release)
    for broker in (3, 2):
        settle(world, ("kill", broker))
    assert world.processes[1].driver.broker.live_brokers == live


@pytest.mark.parametrize(("release", "is_handled"), [("0.11.0", False), ("1.0", True)])
def test_the_controller_handles_leader_and_isr_responses_since_1_0(release: str, is_handled: bool) -> None:
    """Before KIP-112, when a log directory could not fail alone, the controller ignored the responses to LeaderAndIsr."""
    # Source: ControllerBrokerRequestBatch.sendRequestsToBrokers (0.11, 1.0).
    world = cluster({"t": ((1, 2),)}, release=release)
    assert ("LeaderAndIsrResponseReceived" in {r.fields["event"] for r in of_kind(world, "begin")}) is is_handled


@pytest.mark.parametrize("release", ["0.11.0", "1.0"])
def test_a_topic_in_deletion_is_not_elected_at_failover(release: str) -> None:
    """The next controller skips a requested preferred election of a topic that is being deleted."""
    # Source: KafkaController.fetchPendingPreferredReplicaElections and onPreferredReplicaElection (0.11, 1.0).
    config = BrokerConfig.of(release).with_setting("delete.topic.enable", True)
    world = cluster({"t": ((2, 3, 9),)}, release=release, config=config)
    for act in (("kill", 2), ("start", 2), ("delete_topic", "t")):
        world.step(act)
        world.run()
    world.step(("create", zk.PREFERRED_REPLICA_ELECTION, zk.encode_partition_list((T0,)).decode()))
    before = len(world.journal.records)
    settle(world, ("kill", 1))
    tried = [r for r in of_kind(world, "change", before) + of_kind(world, "failed_change", before) if r.fields["subject"] == T0]
    assert (tried, zk.PREFERRED_REPLICA_ELECTION in world.zk.tree()) == ([], False)
