"""Deletion of topics in both releases: what goes, in which order, what holds it up, and what remains if it may not go.

The other parties: golden topic-deleted and topic-deleted-broker-dead of 2.8.2 and 0.8.1.1, the cases pub-del and pub-081 of the
conformance file, and where a test says so a class of Kafka's.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.cluster import actions
from kcontrol.cluster.network import QueuedRequest, response_event
from kcontrol.cluster.world import World
from kcontrol.controller import replica_machine
from kcontrol.controller.context import ControllerContext, apply_update
from kcontrol.controller.earlier.listener_preferred_election import on_preferred_replica_election
from kcontrol.controller.handlers import design_of
from kcontrol.controller.request_batch import RequestBatch
from kcontrol.controller.topic_deletion import (
    mark_topics_ineligible_for_deletion,
    resume_deletion_for_topics,
    stop_replica_response_received,
)
from kcontrol.core.controller_rules import rules
from kcontrol.core.effects import Commit, FailedStateChange, FencedTransactions, UpdateContext
from kcontrol.core.events import AutoPreferredReplicaLeaderElection, DeletionsResumed, TopicDeletionStopReplicaResponseReceived
from kcontrol.core.model import LeaderAndIsr, PartitionReplica, ReplicaAssignment, ReplicaState, TopicPartition
from kcontrol.core.releases import PLAYABLE_RELEASES
from kcontrol.core.znodes import DELETE_TOPICS, PREFERRED_REPLICA_ELECTION, encode_partition_list, topic_path
from kcontrol.journal.fold import fold
from tests.core.snapshots import without_defaults
from tests.core.support import (
    RULES_2_8,
    T0,
    T1,
    TOPICS,
    U0,
    alone,
    choose,
    cluster,
    differences,
    full_counts,
    of_kind,
    settle,
    until,
    waits_for,
)
from tests.tiers import DESIGNS, slow_but

REQUEST = f"{DELETE_TOPICS}/t"
BOTH = pytest.mark.parametrize("release", slow_but(PLAYABLE_RELEASES[1:], *DESIGNS))  # 0.8.0 deletes no topics
TWO = {"t": ((2, 3), (3, 2)), "u": ((3, 2),)}
FAULTS = ("kill", "start", "expire_session", "terminate", "freeze", "thaw", "create_topic", "delete_topic")


def deleting(release: str, topics: Any = TWO, **settings: Any) -> World:
    """A quiet cluster in which topics may be deleted; broker 1 is controller and has no replica."""
    config = (
        BrokerConfig.of(release).with_setting("delete.topic.enable", True).with_setting("auto.leader.rebalance.enable", False)
    )
    return cluster(topics, release=release, config=config, **settings)


def controller(world: World, broker: int = 1) -> ControllerContext:
    return world.processes[broker].driver.controller


def context_of(release: str, *given: Any, **fields: Any) -> ControllerContext:
    """The context of broker 1 of this release, with these fields."""
    chosen = rules(release)
    return ControllerContext(1, chosen, design_of(chosen), *given, **fields)


def delete(world: World, *topics: str) -> None:
    """Ask for it, and let everything come to rest."""
    for topic in topics:
        world.step(("delete_topic", topic))
    world.run()


def die(world: World, broker: int) -> None:
    world.step(("kill", broker))
    world.step(("expire_session", broker))


def paths(world: World, kind: str) -> list[str]:
    written = (r for r in of_kind(world, "write") if r.fields["error"] is None and r.id.broker is not None)
    return [op[1] for r in written for op in r.fields["ops"] if op[0] == kind]


def sends(world: World, since: int = 0) -> list[Any]:
    return [r.fields["requests"] for r in of_kind(world, "send", since)]


# ---------------------------------------------------------------- all the way


@BOTH
def test_nothing_is_left_of_a_deleted_topic(release: str) -> None:
    """Znodes, the controller's memory, and what brokers host, know and keep on disk are free of it; the other topic stands."""
    world = deleting(release, data=True)
    settle(world, ("produce", 2, "t-0", "gone", "all"), ("produce", 3, "u-0", "kept", "all"))
    delete(world, "t")
    assert [path for path in world.zk.tree() if path.split("/")[-1] == "t" or "/t/" in path] == []
    assert topic_path("u") in world.zk.tree()
    ctx = controller(world)
    known = (ctx.assignments, ctx.leadership, ctx.partition_states, {r.topic_partition for r in ctx.replica_states})
    assert [{tp.topic for tp in found} for found in known] == [{"u"}] * 4
    assert (ctx.all_topics, ctx.topics_to_be_deleted, ctx.topics_with_deletion_started) == ({"u"}, set(), set())
    for p in world.processes.values():
        broker = p.driver.broker
        assert {tp.topic for held in (broker.hosted, broker.metadata, broker.logs) for tp in held} <= {"u"}
    assert [promise.value for found in world.acknowledged.values() for promise in found] == ["kept"]
    assert [r.fields["value"] for r in of_kind(world, "record_deleted")] == ["gone"]
    assert of_kind(world, "record_lost") == []


@BOTH
def test_the_journal_is_enough_and_forks_agree_all_the_way(release: str) -> None:
    """After every step of a deletion that is held up and resumed the fold is the snapshot, and a fork has the same future."""
    world = deleting(release, data=True)
    die(world, 3)
    world.run()
    world.step(("delete_topic", "t"))
    for returns in (False, True):
        if returns:
            world.step(("start", 3))
        while (following := next(actions.routine_actions(world), None)) is not None:
            world.step(following)
            left, right = without_defaults(fold(world.journal.records)), without_defaults(world.snapshot())
            assert left == right, "\n".join(differences(left, right))
            assert world.fork().fingerprint() == world.fingerprint()
    assert REQUEST not in world.zk.tree()


@BOTH
@pytest.mark.parametrize("seed", range(4))
def test_topics_go_in_the_middle_of_anything(release: str, seed: int) -> None:
    """Topics deleted and created at random among deaths, freezes and lost sessions leave a right journal; in 2.8 no request."""
    world, rng = deleting(release, TOPICS, faults=FAULTS), random.Random(f"deletion/{seed}")
    for number in range(300):
        wanted = [a for a in world.actions() if a[0] in ("delete_topic", "create_topic")]
        world.step(rng.choice(wanted) if wanted and rng.random() < 0.04 else choose(world, rng, faulty=0.01))
        if number % 20 == 0:
            assert without_defaults(fold(world.journal.records)) == without_defaults(world.snapshot())
            for p in world.processes.values():
                ctx = p.driver.controller
                assert full_counts(ctx) == (ctx.offline_partition_count, ctx.preferred_replica_imbalance_count)
    assert any(action[0] == "delete_topic" for action in world.done)
    if release == "2.8":
        bring_back(world)
        assert world.tool.children([DELETE_TOPICS], False) == [()]


def bring_back(world: World) -> None:
    """Every broker goes on, or starts again."""
    for broker, p in sorted(world.processes.items()):
        if p.frozen:
            world.step(("thaw", broker))
    world.run()
    for broker in world.settings.brokers:
        if broker not in world.processes:
            settle(world, ("start", broker))


@BOTH
def test_a_topic_of_the_same_name_begins_anew(release: str) -> None:
    """Created again it has leader epoch 0, and its logs begin at offset 0."""
    world = deleting(release, data=True)
    settle(world, ("produce", 2, "t-0", "old", "all"))
    delete(world, "t")
    settle(world, ("create_topic", "t", ((3, 2),)))
    settle(world, ("produce", 3, "t-0", "new", "all"))
    assert controller(world).leadership[T0].leader_epoch == 0
    assert [(p.offset, p.value) for p in world.acknowledged[T0]] == [(0, "new")]


@BOTH
def test_znodes_go_from_the_bottom_up_and_the_request_last(release: str) -> None:
    """No znode is deleted before those below it, the configuration goes after the topic, the request after both."""
    world = deleting(release)
    delete(world, "t")
    deleted = [path for path in paths(world, "delete") if path != PREFERRED_REPLICA_ELECTION]
    assert deleted[-3:] == ["/brokers/topics/t", "/config/topics/t", REQUEST]
    assert all(not later.startswith(f"{path}/") for i, path in enumerate(deleted) for later in deleted[i:])


@pytest.mark.parametrize(("release", "batches"), [("2.8", [{"t", "u"}]), ("0.8.1", [{"t", "u"}, {"t", "u"}])])
def test_topics_of_one_request_go_together_or_one_by_one(release: str, batches: list[set[str]]) -> None:
    """2.8 starts all deletions with one batch; older releases send a batch for each topic, with all queued topics each time."""
    # Source: TopicDeletionManager.resumeDeletions (2.5 on), ControllerBrokerRequestBatch (0.8.1).
    world = deleting(release)
    world.step(("delete_topic", "t"))
    world.step(("delete_topic", "u"))
    before = len(world.journal.records)
    world.run()
    sent = [{tp.topic for tp in r.update_metadata} for r in sends(world, before) if not (r.leader_and_isr or r.stop_replica)]
    assert sent == batches
    assert [path for path in world.zk.tree() if path.startswith((topic_path("t"), topic_path("u")))] == []


# ---------------------------------------------------------------- what is asked for, and whether it may be


@BOTH
def test_a_request_for_no_topic_is_dropped(release: str) -> None:
    """The request is deleted and queues no topic, and a request for another topic is handled."""
    world = deleting(release)
    world.step(("create", f"{DELETE_TOPICS}/missing", ""))
    delete(world, "t")
    assert {"t", "missing"} & set(world.tool.children([DELETE_TOPICS], False)[0] or ()) == set()
    assert topic_path("u") in world.zk.tree() and topic_path("t") not in world.zk.tree()


def test_the_default_is_that_of_the_release() -> None:
    """Before 1.0 no topic may be deleted unless the configuration says so. Source: KafkaConfig.deleteTopicEnable."""
    assert [context_of(r).deletes_topics for r in ("0.8.1", "0.11.0", "1.0", "2.8")] == [False, False, True, True]
    mine = BrokerConfig().with_setting("delete.topic.enable", False)
    assert not ControllerContext(1, RULES_2_8, design_of(RULES_2_8), mine).deletes_topics
    assert ControllerContext(
        1, rules("0.8.1"), design_of(rules("0.8.1")), mine.with_setting("delete.topic.enable", True)
    ).deletes_topics


def test_where_no_topic_may_go_a_failover_deletes_the_requests() -> None:
    """2.8's next controller deletes the requests. Source: TopicDeletionManager.init (2.8)."""
    world = cluster(TWO, config=BrokerConfig().with_setting("delete.topic.enable", False))
    die(world, 1)
    settle(world, ("create", REQUEST, ""))
    assert REQUEST not in world.zk.tree() and topic_path("t") in world.zk.tree()
    assert controller(world, 2).topics_to_be_deleted == set()


def test_an_old_broker_that_has_resigned_drops_requests_for_topics_that_it_never_knew() -> None:
    """0.8.1's listener does not check that its broker is controller; the topic stays, and no controller deletes it."""
    # Source: PartitionStateMachine.DeleteTopicsListener.handleChildChange (0.8.1.1).
    world = succeeded(deleting("0.8.1"))
    settle(world, ("create_topic", "v", ((2,),)))
    world.step(("delete_topic", "v"))
    alone(world, 1, lambda w: f"{DELETE_TOPICS}/v" in paths(w, "delete"))
    world.run()
    assert topic_path("v") in world.zk.tree() and f"{DELETE_TOPICS}/v" not in world.zk.tree()


def succeeded(world: World) -> World:
    """`/controller` goes; broker 1 gives up, and broker 2 is faster to take over."""
    world.step(("delete", "/controller"))
    alone(world, 1, lambda w: not controller(w, 1).is_active)
    alone(world, 2, lambda w: controller(w, 2).is_active)
    world.run()
    assert [n for n in world.processes if controller(world, n).is_active] == [2]
    return world


# ---------------------------------------------------------------- what holds it up


@BOTH
def test_a_broker_that_dies_meanwhile_holds_it_up_until_it_is_back(release: str) -> None:
    """Its replicas have failed, and the topic is ineligible: no leader is elected, and after the restart it is deleted."""
    world = deleting(release)
    world.step(("delete_topic", "t"))
    until(world, lambda w: ReplicaState.DELETION_STARTED in controller(w).replica_states.values())
    die(world, 3)
    world.run()
    ctx = controller(world)
    assert ctx.topics_ineligible_for_deletion == {"t"}
    assert {str(r): s for r, s in ctx.replica_states.items() if r.topic == "t"} == {
        "t-0@2": ReplicaState.DELETION_SUCCESSFUL, "t-1@2": ReplicaState.DELETION_SUCCESSFUL, "t-0@3": ReplicaState.OFFLINE,
        "t-1@3": ReplicaState.OFFLINE,
    }  # fmt: skip
    assert {ctx.leadership[tp].leader for tp in (T0, T1)} == {-1}
    assert REQUEST in world.zk.tree()
    settle(world, ("start", 3))
    assert topic_path("t") not in world.zk.tree() and REQUEST not in world.zk.tree()


@BOTH
def test_only_topics_with_a_replica_on_the_broker_are_resumed(release: str) -> None:
    """A starting broker without replicas resumes no deletion; neither does a topic without a deletion request."""
    world = deleting(release)
    die(world, 3)
    die(world, 1)
    world.run()
    delete(world, "t")
    settle(world, ("start", 1))
    assert controller(world, 2).topics_ineligible_for_deletion == {"t"}
    assert list(resume_deletion_for_topics(controller(world, 2), ["u", "missing"])) == []


@BOTH
def test_what_is_not_queued_cannot_be_held_up(release: str) -> None:
    """Halting names only queued topics, and each once. Source: TopicDeletionManager.markTopicIneligibleForDeletion."""
    config = BrokerConfig().with_setting("delete.topic.enable", True)
    ctx = ControllerContext(
        1, rules(release), design_of(rules(release)), config, topics_to_be_deleted={"b", "a", "c"},
        topics_ineligible_for_deletion={"c"},
    )  # fmt: skip
    assert list(mark_topics_ineligible_for_deletion(ctx, {"a", "c", "x"})) == [
        UpdateContext("topics_ineligible_for_deletion", ("a",))
    ]
    assert list(mark_topics_ineligible_for_deletion(ctx, {"c", "x"})) == []


@BOTH
def test_a_disk_that_fails_holds_it_up(release: str) -> None:
    """An answer with an error makes the replica ineligible, and the topic; before 1.0 the broker ends instead."""
    world = deleting(release)
    world.step(("delete_topic", "t"))
    until(world, lambda w: any(entries[T0].delete for r in sends(w) for entries in r.stop_replica.values() if T0 in entries))
    settle(world, ("fail_log_dir", 3, "t-0"))
    assert controller(world).topics_ineligible_for_deletion == {"t"}
    errors = [event.fields["body"]["errors"] for event in of_kind(world, "respond") if event.id.node == 3]
    assert ({T0: "KAFKA_STORAGE_ERROR"} in errors) is controller(world).rules.outlives_log_dir
    assert REQUEST in world.zk.tree()


def test_an_old_preferred_election_halts_a_deletion_and_resumes_it() -> None:
    """While partitions are in such an election their topics are ineligible. Source: onPreferredReplicaElection (0.8.1.1)."""
    world = deleting("0.8.1")
    before = len(world.journal.records)
    apply_update(controller(world), UpdateContext("preferred_elections", (T0,)))
    delete(world, "t")
    assert controller(world).topics_ineligible_for_deletion == {"t"}
    apply_update(controller(world), UpdateContext("preferred_elections", remove=(T0,)))
    apply_update(controller(world), UpdateContext("topics_to_be_deleted", remove=("t",)))
    asked = encode_partition_list((U0, T0)).decode()
    world.step(("create", PREFERRED_REPLICA_ELECTION, asked))
    until(world, lambda w: controller(w).preferred_elections == {T0, U0})
    apply_update(controller(world), UpdateContext("topics_to_be_deleted", ("t",)))
    world.run()
    assert topic_path("t") not in world.zk.tree()
    assert len(of_kind(world, "handler_error", before)) == 0


def test_an_old_preferred_election_makes_queued_topics_ineligible() -> None:
    """A topic that is queued when its election begins waits for the election to end, and then is deleted."""
    # Source: KafkaController.onPreferredReplicaElection, markTopicIneligibleForDeletion (0.8.1.1).
    world = deleting("0.8.1")
    ctx = controller(world)
    apply_update(ctx, UpdateContext("topics_to_be_deleted", ("t",)))
    election = on_preferred_replica_election(ctx, (T0, U0), delete=False)
    seen = [(effect.field, effect.put) for effect in (next(election), next(election)) if isinstance(effect, UpdateContext)]
    assert seen == [("preferred_elections", (T0, U0)), ("topics_ineligible_for_deletion", ("t",))]


def test_what_is_queued_since_the_balance_was_looked_at_is_not_elected() -> None:
    """The rebalance of 0.8.1 checks again under the lock. Source: KafkaController.checkAndTriggerPartitionRebalance (0.8.1.1)."""
    world = deleting("0.8.1", {"t": ((3, 2),), "u": ((3, 2),)})
    die(world, 3)
    world.run()
    settle(world, ("start", 3))
    ctx = controller(world)
    assert {ctx.leadership[tp].leader for tp in (T0, U0)} == {2}
    world.processes[1].driver.enqueue(AutoPreferredReplicaLeaderElection(), None)
    world.step(("begin", 1, "scheduler"))
    apply_update(ctx, UpdateContext("topics_to_be_deleted", ("u",)))
    world.run()
    assert [ctx.leadership[tp].leader for tp in (T0, U0)] == [3, 2]


@BOTH
def test_what_is_queued_does_not_count_for_the_balance(release: str) -> None:
    """Of a broker's two preferred partitions one has another leader and one is in deletion: the ratio is 1, not one half."""
    # Source: KafkaController.checkAndTriggerAutoLeaderRebalance (2.8), checkAndTriggerPartitionRebalance (0.8.1.1).
    for in_deletion, leader in (((), 2), (("u",), 3)):
        world = deleting(release, {"t": ((3, 2),)})
        die(world, 3)
        world.run()
        settle(world, ("start", 3))
        settle(world, ("create_topic", "u", ((3, 2),)))
        ctx = controller(world)
        object.__setattr__(ctx, "config", ctx.config.with_setting("leader.imbalance.per.broker.percentage", 60))
        apply_update(ctx, UpdateContext("topics_to_be_deleted", in_deletion))
        world.processes[1].driver.enqueue(AutoPreferredReplicaLeaderElection(), None)
        world.run()
        assert ctx.leadership[T0].leader == leader


@pytest.mark.parametrize(("late", "answer"), [(False, "FENCED_LEADER_EPOCH"), (True, "UNKNOWN_TOPIC_OR_PARTITION")])
def test_a_leader_that_asks_for_an_isr_meanwhile_is_refused(late: bool, answer: str) -> None:
    """The deletion raises the leader epoch, and in the end the partition is unknown. Source: processAlterIsr (2.8)."""
    world = deleting("2.8")
    world.step(("shrink_isr", 2, "t-0", 3))
    world.step(("delete_topic", "t"))
    if late:
        while others := [action for action in actions.routine_actions(world) if action[0] != "send_to_controller"]:
            world.step(others[0])
        assert topic_path("t") not in world.zk.tree()
    else:
        alone(world, 1, lambda w: ReplicaState.DELETION_STARTED in controller(w).replica_states.values())
    settle(world, ("send_to_controller", 2))
    bodies = [r.fields["body"] for r in of_kind(world, "respond") if r.id.node == 1]
    assert [body["partitions"][T0] for body in bodies if T0 in body.get("partitions", ())] == [answer]


# ---------------------------------------------------------------- the deletion thread of 0.8.1 to 0.10


def test_signals_are_not_counted() -> None:
    """However often the thread is signalled before it runs, it goes through the queue once. Source: deleteTopicStateChanged."""
    world = deleting("0.8.1")
    queue = world.processes[1].driver.threads["delete-topics"].queue
    ctx = controller(world)
    apply_update(ctx, UpdateContext("topics_to_be_deleted", ("t",)))
    for _ in range(3):
        for effect in resume_deletion_for_topics(ctx, ["t"]):
            if isinstance(effect, UpdateContext):
                apply_update(ctx, effect)
            else:
                world.processes[1].driver.enqueue(effect.event, None)  # type: ignore[union-attr]
    assert [item.event for item in queue.waiting] == [DeletionsResumed()]


def test_the_deletion_thread_ends_with_an_exception_until_the_next_failover() -> None:
    """A delete that ZooKeeper refuses ends it: no deletion goes on before another broker takes over."""
    # Source: ShutdownableThread.run and DeleteTopicsThread.doWork (0.8.1.1).
    world = deleting("0.8.1")
    world.step(("delete_topic", "t"))
    until(world, lambda w: waits_for(w, 1, FencedTransactions, "delete-topics"))
    settle(world, ("create", "/brokers/topics/t/partitions/0/state/mine", ""))
    assert [r.fields["error"] for r in of_kind(world, "handler_error")] == ["WriteFailed"]
    assert controller(world).topic_deletion_thread == ""
    delete(world, "u")
    assert topic_path("u") in world.zk.tree()
    die(world, 1)
    world.run()
    assert topic_path("u") not in world.zk.tree() and topic_path("t") not in world.zk.tree()


def test_a_refused_delete_of_an_event_thread_ends_that_event_alone() -> None:
    """In 2.8 the topic stays queued and the next look at the queue takes it up. Source: KafkaZkClient.deleteRecursive (2.8)."""
    world = deleting("2.8")
    world.step(("delete_topic", "t"))
    until(world, lambda w: waits_for(w, 1, FencedTransactions) and gone(w))
    settle(world, ("create", "/brokers/topics/t/partitions/0/state/mine", ""))
    assert [r.fields["error"] for r in of_kind(world, "handler_error")] == ["WriteFailed"]
    assert controller(world).topics_to_be_deleted == {"t"}
    delete(world, "u")
    assert topic_path("t") not in world.zk.tree() and topic_path("u") not in world.zk.tree()


def gone(world: World) -> bool:
    return not any(r.topic == "t" for r in controller(world).replica_states)


def test_an_old_resignation_drops_deletions() -> None:
    """The thread has ended and the queue is empty. Source: TopicDeletionManager.shutdown (0.8.1.1)."""
    world = deleting("0.8.1")
    die(world, 3)
    world.run()
    delete(world, "t")
    assert controller(world).topics_ineligible_for_deletion == {"t"}
    old = controller(succeeded(world), 1)
    assert (old.topic_deletion_thread, old.topics_to_be_deleted, old.topics_ineligible_for_deletion) == ("", set(), set())
    assert controller(world, 2).topics_ineligible_for_deletion == {"t"}


# ---------------------------------------------------------------- expansion


def test_partitions_added_to_a_topic_in_deletion_are_removed_again() -> None:
    """Those that have no znode of their own go from the topic znode; before 2.0 it is left alone."""
    # Source: KafkaController.processPartitionModifications (2.8), AddPartitionsListener (0.8.1).
    grown = (
        '{"version":3,"topic_id":"AAAA","partitions":{"0":[2,3],"1":[3,2],"2":[1]},"adding_replicas":{},"removing_replicas":{}}'
    )
    for changes, numbers in (({}, {"0", "1"}), ({"reverts_expansion": False}, {"0", "1", "2"})):
        world = deleting("2.8", rule_changes=changes)
        die(world, 3)
        world.run()
        delete(world, "t")
        settle(world, ("set", topic_path("t"), grown))
        text = world.zk.tree()[topic_path("t")].data.decode()
        assert {number for number in "012" if f'"{number}":' in text} == numbers
        assert TopicPartition("t", 2) not in controller(world).assignments


# ---------------------------------------------------------------- single rules


@pytest.mark.parametrize(("release", "legal"), [("0.8.1", False), ("2.2", False), ("2.3", True), ("2.8", True)])
def test_when_a_dead_replica_may_become_ineligible(release: str, legal: bool) -> None:
    """Straight from Offline since 2.3, and only once its deletion had been started before. Source: ReplicaStateMachine (2.3)."""
    replica = PartitionReplica(T0, 3)
    ctx = ControllerContext(
        1, rules(release), design_of(rules(release)), assignments={T0: ReplicaAssignment((3,))}, machines_started=True
    )
    apply_update(ctx, UpdateContext("replica_states", {replica: ReplicaState.OFFLINE}))
    (effect,) = [
        e for e in replica_machine.handle_state_changes(ctx, [replica], ReplicaState.DELETION_INELIGIBLE) if isinstance(e, Commit)
    ]
    assert [isinstance(change, FailedStateChange) for change in effect.changes] == [not legal]


@pytest.mark.parametrize(("release", "partitions"), [("0.8.1", {T0, T1}), ("1.1", {T0, T1}), ("2.0", {T0}), ("2.8", {T0})])
def test_partitions_in_deletion_are_sent_when_named_or_every_time(release: str, partitions: set[TopicPartition]) -> None:
    """Before 2.0 every UpdateMetadata also has the partitions of all queued topics, with leader -2."""
    ctx = ControllerContext(
        1, rules(release), design_of(rules(release)), BrokerConfig().with_setting("delete.topic.enable", True),
        live_broker_epochs={2: 1},
    )  # fmt: skip
    for tp in (T0, T1):
        apply_update(ctx, UpdateContext("assignments", {tp: ReplicaAssignment((2,))}))
        apply_update(ctx, UpdateContext("leadership", {tp: LeaderAndIsr(2, (2,), 4, 7, 1)}))
    apply_update(ctx, UpdateContext("topics_to_be_deleted", ("t",)))
    batch = RequestBatch()
    batch.add_update_metadata(ctx, (2,), (T0,))
    assert set(batch.update_metadata) == partitions
    assert {(entry.leader, entry.leader_epoch, entry.zk_version) for entry in batch.update_metadata.values()} == {(-2, 0, 0)}


def test_a_stop_replica_response_counts_for_deletions_only() -> None:
    """Of a StopReplica answer, partitions that were only stopped, or whose topic is not being deleted, are no event."""
    # Source: sendStopReplicaRequests in ControllerChannelManager.scala (2.8). An error of the whole request names no partition.
    ctx = ControllerContext(1, RULES_2_8, design_of(RULES_2_8), live_broker_epochs={2: 1}, topics_with_deletion_started={"t"})
    batch = RequestBatch()
    for tp, deletes in ((T0, True), (T1, False), (U0, True)):
        batch.add_stop_replica(ctx, (2,), tp, delete=deletes)
    (send,) = batch.send_requests_to_brokers(ctx)
    parcel = QueuedRequest("StopReplica", send.requests, None)  # type: ignore[union-attr,arg-type]
    answers = [{"error": "NONE", "errors": errors} for errors in ({}, {T0: "KAFKA_STORAGE_ERROR", U0: "KAFKA_STORAGE_ERROR"})]
    events = [response_event(parcel, 2, body, ctx) for body in answers]
    storage = ((T0, "KAFKA_STORAGE_ERROR"),)
    assert events == [TopicDeletionStopReplicaResponseReceived(2, "NONE", errors, (T0,)) for errors in ((), storage)]
    assert response_event(parcel, 2, {"error": "STALE_CONTROLLER_EPOCH", "errors": {}}, ctx) is None


@BOTH
@pytest.mark.parametrize(("error", "target"), [("NONE", "DELETION_SUCCESSFUL"), ("UNKNOWN_SERVER_ERROR", "DELETION_INELIGIBLE")])
def test_an_error_at_the_top_of_a_stop_replica_answer_fails_every_partition(release: str, error: str, target: str) -> None:
    """Every partition that the answer names fails, even without an error of its own, in all releases that delete topics."""
    # Since 1.1 a broker whose handler throws an exception answers so, with all partitions; an answer about a stale epoch has
    # none. Source: TopicDeletionManager.deleteTopicStopReplicaCallback (0.8.1), TopicDeletionStopReplicaResponseReceived (1.0),
    # and KafkaController.processTopicDeletionStopReplicaResponseReceived (2.3); StopReplicaRequest.getErrorResponse (1.1).
    config = BrokerConfig().with_setting("delete.topic.enable", True)
    ctx = ControllerContext(
        1, rules(release), design_of(rules(release)), config, machines_started=True, topics_to_be_deleted={"t"}
    )
    replicas = [PartitionReplica(tp, 2) for tp in (T0, T1)]
    apply_update(ctx, UpdateContext("replica_states", dict.fromkeys(replicas, ReplicaState.DELETION_STARTED)))
    event = TopicDeletionStopReplicaResponseReceived(2, error, (), (T0, T1))
    moves = (change for e in stop_replica_response_received(ctx, event) if isinstance(e, Commit) for change in e.changes)
    assert [(move.subject, move.target) for move in itertools.islice(moves, 2)] == [(r, ReplicaState[target]) for r in replicas]


def test_old_releases_ignore_the_response_of_a_reassignment() -> None:
    """StopReplica for a replica that was moved away has no callback, even if its topic is being deleted."""
    # Source: KafkaController.stopOldReplicasOfReassignedPartition (0.8.1).
    ctx = ControllerContext(
        1, rules("0.8.1"), design_of(rules("0.8.1")), live_broker_epochs={2: -1, 3: -1}, topics_to_be_deleted={"t"}
    )
    apply_update(ctx, UpdateContext("assignments", {T0: ReplicaAssignment((3,))}))
    batch = RequestBatch()
    batch.add_stop_replica(ctx, (2, 3), T0, delete=True)
    parcels = {
        b: QueuedRequest("StopReplica", send.requests, None)
        for send in batch.send_requests_to_brokers(ctx)
        for b in send.requests.stop_replica
    }  # type: ignore[union-attr,arg-type]
    events = {b: response_event(parcel, b, {"error": "NONE", "errors": {}}, ctx) for b, parcel in parcels.items()}
    assert events == {2: None, 3: TopicDeletionStopReplicaResponseReceived(3, "NONE", (), (T0,))}


@BOTH
def test_a_stopped_replica_keeps_its_log_and_a_deleted_one_does_not(release: str) -> None:
    """Between the two StopReplica requests the log exists; a waiting producer has its response by then."""
    # Source: ReplicaManager.stopReplicas (0.8.1, 2.8).
    world = deleting(release, data=True, followers=False)
    # The leader's replica is the first of its partition to leave the ISR: in 0.8.1 in the order of the replicas' hashes.
    leader, partition = (3, TopicPartition("t", 1)) if release == "0.8.1" else (2, T0)
    world.step(("produce", leader, str(partition), "waits", "all"))
    world.step(("delete_topic", "t"))
    held = world.processes[leader].driver.broker
    until(world, lambda w: partition not in held.hosted)
    assert [record.value for record in held.logs[partition].records] == ["waits"]
    refused = [r for r in of_kind(world, "respond") if r.fields["body"]["error"] == "NOT_LEADER_OR_FOLLOWER"]
    assert len(refused) == 1
    until(world, lambda w: partition not in held.logs)
    assert {r.fields["partition"] for r in of_kind(world, "log_delete") if r.id.node == leader} >= {partition}


@BOTH
def test_deletion_is_possible_once_and_of_what_there_is(release: str) -> None:
    """The act is on offer for each topic until it has been asked for, and comes back with the topic."""
    world = deleting(release, faults=("delete_topic",))
    offered = lambda: [a for a in world.actions() if a[0] == "delete_topic"]  # noqa: E731
    assert offered() == [("delete_topic", "t"), ("delete_topic", "u")]
    world.step(("delete_topic", "t"))
    assert offered() == [("delete_topic", "u")]
    world.run()
    world.step(("create_topic", "t", ((2,),)))
    assert offered() == [("delete_topic", "t"), ("delete_topic", "u")]
