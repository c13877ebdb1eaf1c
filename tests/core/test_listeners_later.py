"""What listeners do otherwise since 0.8.2, 0.9 and 0.10.2 than in 0.8.1, beyond what recordings and conformance cases hold."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.cluster import actions
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.controller.context import apply_update
from kcontrol.core import znodes as zk
from kcontrol.core.effects import UpdateContext
from kcontrol.core.events import ControlledShutdown
from tests.core.support import T0, U0, alone, cluster, of_kind, settle, stored

EVENTS = "zk-events"


def at_rest(release: str = "0.8.2", topics: Any = None, **config: Any) -> World:
    """A quiet cluster of an old release, whose settings may differ from the release's."""
    settings = BrokerConfig.of(release)
    for name, value in config.items():
        settings = settings.with_setting(name, value)
    return cluster(*(() if topics is None else (topics,)), release=release, config=settings)


def failures(world: World, since: int = 0) -> list[tuple[int, str]]:
    return [(r.id.node, r.fields["error"]) for r in of_kind(world, "handler_error", since)]


def test_a_larger_epoch_from_outside_is_read_at_the_next_failover() -> None:
    """The epoch has no listener: the controller goes on with its own, and the next controller takes the larger plus one."""
    # The other party: reference 20.17, measured on 0.8.2.2. Source: KAFKA-1096.
    world = at_rest()
    settle(world, ("set", zk.CONTROLLER_EPOCH, "9"))
    assert world.processes[1].driver.controller.controller_epoch == 1
    settle(world, ("delete", zk.CONTROLLER))
    assert world.zk.tree()[zk.CONTROLLER_EPOCH].data == b"10"


def test_who_resigns_listens_to_nothing_but_the_election() -> None:
    """Resignation unsubscribes every listener of a controller, and clears the controller epoch."""
    # Source: KafkaController.onControllerResignation and both machines' deregisterListeners (0.8.2.2).
    for release, keeps in (("0.8.1", True), ("0.8.2", False)):
        world = at_rest(release)
        world.step(("delete", zk.CONTROLLER))
        alone(world, 1, lambda w: not w.processes[1].driver.controller.is_active)
        alone(world, 2, lambda w: w.processes[2].driver.controller.is_active)
        world.run()
        driver = world.processes[1].driver
        assert ({path for path, _ in driver.znode_handlers} == {zk.CONTROLLER}) is not keeps
        assert (driver.controller.controller_epoch == 0) is not keeps


@pytest.mark.parametrize(
    ("release", "balances", "failed"), [("0.8.2", True, [(2, "IllegalStateException")]), ("0.8.2", False, []), ("0.9", True, [])]
)
def test_a_new_session_of_a_broker_that_never_ruled_fails(release: str, balances: bool, failed: list[Any]) -> None:
    """Its resignation stops a scheduler that was never started: an error before 0.9 where brokers rebalance, the default."""
    # Source: KafkaController.onControllerResignation and KafkaScheduler.shutdown (0.8.2.2, 0.9.0.1).
    world = at_rest(release, auto_leader_rebalance_enable=balances)
    before = len(world.journal.records)
    settle(world, ("expire_session", 2))
    assert failures(world, before) == failed
    assert "/brokers/ids/2" in world.zk.tree()


def test_who_rules_twice_without_having_resigned_gives_up() -> None:
    """The scheduler runs already: that error ends the failover, and `/controller` is deleted again."""
    # Source: KafkaScheduler.startup and ZookeeperLeaderElector.elect (0.8.2.2).
    world = at_rest()
    settle(world, ("set", zk.CONTROLLER, zk.encode_controller(2, 0).decode()))
    before = len(world.journal.records)
    world.step(("delete", zk.CONTROLLER))
    alone(world, 1, lambda w: bool(failures(w, before)))
    assert failures(world, before) == [(1, "IllegalStateException")]
    alone(world, 1, lambda w: zk.CONTROLLER not in w.zk.tree())
    alone(world, 3, lambda w: w.processes[3].driver.controller.is_active)
    world.run(limit=1_000)
    assert world.zk.tree()[zk.CONTROLLER].stat.ephemeral_owner == world.processes[3].driver.client.session_id


def test_the_scheduler_goes_on() -> None:
    """After each look at the balance the next one is due, until the controller resigns."""
    # Source: KafkaScheduler.schedule, which calls scheduleAtFixedRate (0.8.1.1, 0.8.2.2).
    for release in ("0.8.1", "0.8.2"):
        world = at_rest(release, auto_leader_rebalance_enable=True)
        for _ in range(2):
            assert "auto-leader-rebalance" in world.processes[1].driver.timers
            settle(world, ("fire_timer", 1, "auto-leader-rebalance"))
        world.step(("delete", zk.CONTROLLER))
        alone(world, 1, lambda w: not w.processes[1].driver.controller.is_active)
        assert world.processes[1].driver.timers == {}


def test_controlled_shutdown_skips_a_partition_without_another_replica() -> None:
    """0.8.1 tries to elect another leader for it, in vain. Source: KafkaController.shutdownBroker (0.8.1.1, 0.8.2.2)."""
    for release, refused in (("0.8.1", ["t-0"]), ("0.8.2", [])):
        world = at_rest(release, {"t": ((3,),)})
        before = len(world.journal.records)
        settle(world, ("terminate", 3))
        tried = [
            str(r.fields["subject"])
            for r in of_kind(world, "failed_change", before)
            if "controlled_shutdown" in r.fields["reason"]
        ]
        assert tried[:1] == refused


def test_a_topic_in_deletion_does_not_keep_others_from_being_elected() -> None:
    """A preferred election skips topics that are being deleted, elects the other partitions, and deletes the request."""
    # Source: PreferredReplicaElectionListener.handleDataChange (0.8.1.1, 0.8.2.2).
    for release, leaders in (("0.8.1", (2, 2)), ("0.8.2", (3, 2))):
        world = at_rest(release, {"t": ((3, 2),), "u": ((3, 2),)}, auto_leader_rebalance_enable=False, delete_topic_enable=True)
        for act in (("kill", 3), ("start", 3)):
            world.step(act)
            world.run()
        ctx = world.processes[1].driver.controller
        apply_update(ctx, UpdateContext("topics_to_be_deleted", ("u",)))
        settle(world, ("create", zk.PREFERRED_REPLICA_ELECTION, zk.encode_partition_list((T0, U0)).decode()))
        assert (ctx.leadership[T0].leader, ctx.leadership[U0].leader) == leaders
        assert (zk.PREFERRED_REPLICA_ELECTION in world.zk.tree()) is (release == "0.8.1")


@pytest.mark.parametrize(
    ("release", "topic", "isr"), [("0.8.1", "false", ()), ("0.8.2", "", ()), ("0.8.2", "false", (3,)), ("1.1", "true", (3,))]
)
def test_a_last_member_stays_where_no_unclean_election_is_allowed(release: str, topic: str, isr: tuple[int, ...]) -> None:
    """From 0.8.2 to 1.0 the topic's setting or the broker's default decides; before 0.8.2 no replica stays, after 1.0 all do."""
    # Source: KafkaController.removeReplicaFromIsr (0.8.2.2). The other parties: its goldens unclean-allowed and
    # unclean-forbidden.
    world = at_rest(release, {"t": ((3,),)})
    if topic:
        config = f'{{"version":1,"config":{{"unclean.leader.election.enable":"{topic}"}}}}'
        world.step(("set", zk.topic_config_path("t"), config))
    settle(world, ("kill", 3))
    assert stored(world)["t-0"] == (-1, isr)


# ---------------------------------------------------------------- 0.9 and 0.10.2


def test_a_registration_of_this_very_session_is_kept() -> None:
    """A session that ends twice in a short time no longer makes the broker wait for itself for ever (KAFKA-1387)."""
    # Source: ZKCheckedEphemeral.GetDataCallback (0.9.0.1).
    world = at_rest("0.9")
    for _ in range(2):
        world.step(("expire_session", 2))
        world.step(("renew", 2))
    before = len(world.journal.records)
    world.run()
    assert failures(world, before) == []
    assert world.zk.tree()["/brokers/ids/2"].stat.ephemeral_owner == world.processes[2].driver.client.session_id
    assert not [name for name in world.processes[2].driver.timers if name.startswith("sleep-")]


@pytest.mark.parametrize(("release", "given_up"), [("0.9", [1]), ("0.10.2", [])])
def test_a_failed_send_after_a_resignation_deletes_the_successors_controller_znode(release: str, given_up: list[int]) -> None:
    """In 0.9 a failed send makes a broker delete any `/controller`; in 0.10.2 the send does not fail."""
    # Source: KafkaController.sendUpdateMetadataRequest and ZookeeperLeaderElector.resign (0.9.0); ControllerZkListener (0.10.2).
    world = at_rest(release, {"t": ((2, 3),)})
    world.step(("delete", zk.CONTROLLER))
    world.step(("create", f"{zk.ISR_CHANGE_NOTIFICATION}/isr_change_7", zk.encode_partition_list((T0,)).decode()))
    while world.processes[1].notifications:
        world.step(("deliver_notification", 1))
    alone(world, 1, lambda w: not w.processes[1].driver.controller.is_active)
    alone(world, 2, lambda w: w.processes[2].driver.controller.is_active)
    before, thread = len(world.journal.records), world.processes[1].driver.threads[EVENTS]
    alone(world, 1, lambda w: not thread.queue.waiting and thread.handler is None)
    gone = [r.id.node for r in of_kind(world, "write", before) if tuple(r.fields["ops"][0][:2]) == ("delete", zk.CONTROLLER)]
    assert gone == given_up
    assert (f"{zk.ISR_CHANGE_NOTIFICATION}/isr_change_7" in world.zk.tree()) is (not given_up)


@pytest.mark.parametrize(("release", "offered"), [("0.9", False), ("0.10.2", True)])
def test_a_resignation_lets_a_controlled_shutdown_have_the_lock(release: str, offered: bool) -> None:
    """Since 0.10.2 a controlled shutdown that waits for the lock gets it before the resignation. Source: KAFKA-4360."""
    world = at_rest(release, {"t": ((2, 3),)})
    world.step(("delete", zk.CONTROLLER))
    world.step(("deliver_notification", 1))
    world.processes[1].driver.enqueue(ControlledShutdown(3, -1, "asked"), None)
    world.step(("begin", 1, EVENTS))
    seen = False
    while world.processes[1].driver.controller.is_active:
        seen = seen or ("begin", 1, "controlled-shutdown") in world.actions()
        world.step(next(action for action in actions.routine_actions(world) if action[1:] == (1, EVENTS)))
    assert seen is offered


@pytest.mark.parametrize(("release", "moving"), [("0.9", False), ("0.10.2", True)])
def test_a_dead_target_is_waited_for(release: str, moving: bool) -> None:
    """Since 0.10.1 a partition may be asked to move to a broker that is not there yet."""
    # Source: KafkaController.initiateReassignReplicasForTopicPartition (0.10.0.1, 0.10.1.0).
    world = at_rest(release, {"t": ((2, 3),)})
    settle(world, ("create", zk.REASSIGN_PARTITIONS, zk.encode_reassignment({T0: (3, 7)}).decode()))
    assert (T0 in world.processes[1].driver.controller.partitions_being_reassigned) is moving
    assert (zk.REASSIGN_PARTITIONS in world.zk.tree()) is moving


def test_what_may_not_be_deleted_is_no_longer_asked_for() -> None:
    """Since 0.10.2 the controller removes such requests, on their notification and in its failover."""
    # Source: DeleteTopicsListener and TopicDeletionManager (0.9.0.1, 0.10.2.2).
    for release, stays in (("0.9", True), ("0.10.2", False)):
        world = at_rest(release)
        settle(world, ("delete_topic", "t"))
        assert (zk.delete_topic_path("t") in world.zk.tree()) is stays
        settle(world, ("kill", 1), ("delete_topic", "u"))
        assert (zk.delete_topic_path("u") in world.zk.tree()) is stays
        assert zk.topic_path("u") in world.zk.tree()


@pytest.mark.parametrize(("release", "said"), [("0.8.2", True), ("0.9", False)])
def test_a_replica_in_deletion_without_a_state_is_skipped(release: str, said: bool) -> None:
    """The replica keeps its state; before 0.9 that is an error."""
    # Source: ReplicaStateMachine.handleStateChange (0.8.2.2, 0.9.0.1).
    world = at_rest(release, {"t": ((2, 3),)}, delete_topic_enable=True)
    world.step(("delete", zk.state_path(T0)))
    before = len(world.journal.records)
    settle(world, ("delete_topic", "t"))
    refused = [r.fields["reason"] for r in of_kind(world, "failed_change", before) if "state znode" in r.fields["reason"]]
    assert bool(refused) is said
    assert zk.topic_path("t") in world.zk.tree()


def test_an_expiry_during_the_startup_may_leave_no_controller() -> None:
    """Up to 0.10.2 a broker elected while it handles its new session resigns, reads its own id, and no controller is active."""
    # Source: SessionExpirationListener.handleNewSession (0.10.2.2), which reads before it takes the lock.
    world = World(Settings("0.10.2", (1,)))
    world.step(("start", 1))
    world.step(("expire_session", 1))
    world.step(("renew", 1))
    driver = world.processes[1].driver
    world.step(("begin", 1, EVENTS))
    world.step(("advance", 1, EVENTS))
    world.step(("begin", 1, "main"))
    while driver.threads["main"].handler is not None and not driver.controller.scheduler_is_running:
        world.step(("advance", 1, "main"))
    world.run()
    assert world.zk.tree()[zk.CONTROLLER].stat.ephemeral_owner == driver.client.session_id
    assert not driver.controller.is_active
