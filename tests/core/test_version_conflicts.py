"""Lost races are decided again, failures are final, and whatever an event throws ends that event and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.cluster.snapshot import context
from kcontrol.cluster.world import World
from kcontrol.core import effects as fx
from kcontrol.core.model import LeaderAndIsr, TopicPartition
from kcontrol.core.znodes import CONTROLLER, CONTROLLER_EPOCH, encode_state, state_path
from kcontrol.driver.fenced_writes import FenceCheckFailed
from kcontrol.journal.journal import OUTSIDE
from kcontrol.search.invariants import stored as states
from kcontrol.zookeeper.memory import MemoryZooKeeper
from kcontrol.zookeeper.port import ConnectionLoss
from tests.core.support import T0, Bench, alone, cluster, of_kind, settle, stored, until, waits_for

TWO_LED_BY_1 = {"t": ((1, 2, 3), (1, 3, 2))}


def rewrite(world: World, tp: TopicPartition = T0, **fields: Any) -> None:
    value = dict(states(world))[tp]
    world.step(("set", state_path(tp), encode_state(value._replace(**fields)).decode()))


def before_the_write(world: World, broker: int) -> None:
    """Goes on until this controller is about to write what it has decided."""
    until(world, lambda w: waits_for(w, broker, fx.Commit))


def lost(world: World) -> list[str]:
    return [str(record.fields["subject"]) for record in of_kind(world, "conflict")]


def failing(topics: Any = TWO_LED_BY_1) -> World:
    """Broker 2 rules and is about to elect new leaders for what broker 1 led."""
    world = cluster(topics, brokers=(2, 1, 3), followers=False)
    world.step(("kill", 1))
    before_the_write(world, 2)
    return world


# ---------------------------------------------------------------- races


def test_a_lost_race_is_read_again_and_decided_again() -> None:
    """An ISR write between the controller's read and its write makes it decide again, from what is stored now."""
    world = failing()
    rewrite(world, isr=(1, 3))
    world.run()
    assert lost(world) == ["t-0"]
    assert stored(world) == {"t-0": (3, (3,)), "t-1": (3, (3, 2))}


def test_only_the_lost_ones_are_decided_again() -> None:
    """After a lost race the next read and the next commit are about the partition that lost it alone."""
    world = failing()
    rewrite(world, isr=(1, 3))
    world.step(("advance", 2, "controller"))
    reads = [record.fields["paths"] for record in world.last_step if record.kind == "read"]
    assert (reads, [str(r.fields["subject"]) for r in world.last_step if r.kind == "change"]) == ([], ["t-1"])
    world.step(("advance", 2, "controller"))
    assert [r.fields["paths"] for r in world.last_step if r.kind == "read"] == [(state_path(T0),)]
    world.step(("advance", 2, "controller"))
    assert [str(r.fields["subject"]) for r in world.last_step if r.kind == "change"] == ["t-0"]


def test_a_race_may_be_lost_without_bound() -> None:
    """Fifty outside writes cost the controller fifty more rounds, and then it has its way."""
    world = failing()
    for _ in range(50):
        rewrite(world)
        world.step(("advance", 2, "controller"))
        before_the_write(world, 2)
    world.run()
    assert lost(world) == ["t-0"] * 50
    assert stored(world)["t-0"] == (2, (2, 3))


def test_leaving_the_isr_is_a_race_too() -> None:
    """A controller that removes a dead follower from the ISR reads and decides again after a foreign write."""
    world = cluster({"t": ((2, 1, 3),)}, brokers=(2, 1, 3), followers=False)
    world.step(("kill", 1))
    before_the_write(world, 2)
    rewrite(world, isr=(2, 1))
    world.run()
    assert (lost(world), stored(world)) == (["t-0@1"], {"t-0": (2, (2,))})


def test_a_state_znode_that_is_there_already_is_a_failure_and_no_race() -> None:
    """NodeExists is final: the partition stays New, the reason is journalled, and nothing is read or written again."""
    # Source: ZkPartitionStateMachine.initializeLeaderAndIsrForPartitions (2.8).
    world = cluster(topics={})
    world.step(("create_topic", "t", ((1, 2, 3),)))
    before_the_write(world, 1)
    settle(world, ("create", state_path(T0), encode_state(LeaderAndIsr(3, (3,))).decode()))
    assert [(str(r.fields["subject"]), r.fields["reason"], r.fields["illegal"]) for r in of_kind(world, "failed_change")] == [
        ("t-0", "NodeExists", False)
    ]
    assert stored(world) == {"t-0": (3, (3,))}
    assert str(world.processes[1].driver.controller.partition_state(T0)) == "NewPartition"
    assert lost(world) == []


def test_a_state_written_by_a_later_controller_is_left_alone() -> None:
    """An election finds a newer controller epoch in the state znode: it is refused and the controller goes on."""
    # Source: ZkPartitionStateMachine.doElectLeaderForPartitions (2.8).
    world = failing()
    rewrite(world, controller_epoch=9)
    world.run()
    [refusal, *_] = of_kind(world, "failed_change")
    assert (str(refusal.fields["subject"]), "controller epoch 9" in refusal.fields["reason"]) == ("t-0", True)
    assert stored(world)["t-0"] == (1, (1, 2, 3))
    assert stored(world)["t-1"] == (3, (3, 2))


# ---------------------------------------------------------------- the fence


def test_controller_moved_leaves_memory_as_it_was_and_looks_who_rules() -> None:
    """When the fence is gone nothing of the commit reaches memory, and the handler ends by asking who is controller."""
    world = failing()
    before = context(world.processes[2].driver.controller)
    world.step(("set", CONTROLLER_EPOCH, "5"))
    world.step(("advance", 2, "controller"))
    assert [r.fields["error"] for r in world.last_step if r.kind == "exception"] == ["ControllerMoved"]
    assert context(world.processes[2].driver.controller) == before
    assert stored(world)["t-0"] == (1, (1, 2, 3))
    done = len(world.journal.records)
    while world.processes[2].driver.threads["controller"].handler:
        world.step(("advance", 2, "controller"))
    asked = [(r.fields["how"], r.fields["paths"]) for r in of_kind(world, "read", done)]
    assert asked == [("exists", (CONTROLLER,)), ("read", (CONTROLLER,))]
    assert of_kind(world, "handler_error") == []


def test_a_deposed_controller_forgets_everything() -> None:
    """A controller whose write meets a newer epoch resigns: it is no longer active and knows no partition any more."""
    world = failing()
    world.step(("delete", CONTROLLER))
    alone(world, 3, lambda w: w.processes[3].driver.controller.is_active)
    settle(world, ("advance", 2, "controller"))
    deposed = world.processes[2].driver.controller
    assert (deposed.is_active, deposed.controller_epoch, dict(deposed.leadership), dict(deposed.assignments)) == (
        False, 0, {}, {},
    )  # fmt: skip
    assert stored(world) == {"t-0": (2, (2, 3)), "t-1": (3, (3, 2))}


def test_of_two_that_register_at_once_one_is_controller() -> None:
    """Two brokers that both found no controller both try to register: the second reads again, and finds that it has lost."""
    # Source: KafkaZkClient.registerControllerAndIncrementControllerEpoch (2.8).
    world = cluster()
    world.step(("delete", CONTROLLER))
    for broker in (2, 3):
        alone(world, broker, lambda w, n=broker: waits_for(w, n, fx.Transaction))  # type: ignore[misc]
    world.step(("advance", 2, "controller"))
    world.step(("advance", 3, "controller"))
    assert [r.fields["error"] for r in world.last_step if r.kind == "write"] == ["NodeExists"]
    world.run()
    assert {n: p.driver.controller.active_controller_id for n, p in world.processes.items()} == {1: 2, 2: 2, 3: 2}
    believed = [
        r.fields["put"] for r in of_kind(world, "update") if r.id.node == 3 and r.fields["field"] == "active_controller_id"
    ]
    assert 3 not in believed
    assert of_kind(world, "handler_error") == []


def test_writes_ahead_of_a_broken_fence_stay_done() -> None:
    """Writes before a failed check in a pipeline stay and are journalled, although the handler gets no result of them."""
    bench = Bench()
    bench.outside(fx.Op("create", CONTROLLER_EPOCH))
    raised: list[BaseException] = []

    def writes(ctx: Any) -> fx.Handler:
        try:
            yield fx.FencedTransactions(
                ((fx.Op("create", "/a"),), (fx.Op("set", CONTROLLER_EPOCH, b"9"),), (fx.Op("create", "/b"),))
            )
        except fx.ControllerMoved as moved:
            raised.append(moved)

    bench.enqueue(writes)
    bench.go()
    assert (len(raised), list(bench.zookeeper.tree())) == (1, ["/a", CONTROLLER_EPOCH])
    written = [(r.fields["ops"][0][1], r.fields["error"]) for r in bench.records("write")]
    assert written == [("/a", None), (CONTROLLER_EPOCH, None), ("/b", "BadVersion")]


def test_a_missing_fence_is_a_failure_of_the_event() -> None:
    """Where `/controller_epoch` is gone the check fails with NoNode: the event ends with FenceCheckFailed, nothing is written."""
    world = failing()
    settle(world, ("delete", CONTROLLER_EPOCH))
    [failed] = of_kind(world, "handler_error")
    assert (failed.fields["event"], failed.fields["error"]) == ("BrokerChange", FenceCheckFailed.__name__)
    assert stored(world)["t-0"] == (1, (1, 2, 3))


def test_an_unfenced_release_checks_nothing() -> None:
    """Before 2.1 the same write goes through although `/controller_epoch` has moved on."""
    world = cluster(TWO_LED_BY_1, brokers=(2, 1, 3), rule_changes={"fenced_writes": False})
    world.step(("kill", 1))
    before_the_write(world, 2)
    settle(world, ("set", CONTROLLER_EPOCH, "5"))
    assert stored(world)["t-0"] == (2, (2, 3))


# ---------------------------------------------------------------- sessions and connections


def test_session_expired_is_thrown_into_the_handler() -> None:
    """A handler whose session has ended gets SessionExpired at its next round trip, and can do something about it."""
    bench = Bench()
    caught: list[BaseException] = []

    def reads(ctx: Any) -> fx.Handler:
        try:
            yield fx.Exists(("/a",))
        except fx.SessionExpired as expired:
            caught.append(expired)
            yield fx.UpdateContext("controller_epoch", 3)

    bench.enqueue(reads)
    bench.driver.begin("controller")
    bench.zookeeper.end(bench.driver.client.client)
    bench.driver.advance("controller")
    assert (len(caught), bench.driver.controller.controller_epoch) == (1, 3)
    assert [r.kind for r in bench.records()][-3:] == ["exception", "update", "end"]


def test_an_expired_broker_goes_on_under_a_new_session() -> None:
    """The event that meets the end of the session fails; the broker registers anew with a later broker epoch."""
    world = failing()
    broker_epoch = world.zk.tree()["/brokers/ids/2"].stat.czxid
    settle(world, ("expire_session", 2))
    assert ("BrokerChange", "SessionExpired") in [(r.fields["event"], r.fields["error"]) for r in of_kind(world, "handler_error")]
    assert world.zk.tree()["/brokers/ids/2"].stat.czxid > broker_epoch
    assert len([n for n, p in world.processes.items() if p.driver.controller.is_active]) == 1


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_what_a_lost_connection_swallowed_is_sent_again(before: bool) -> None:
    """A round trip whose response is lost is performed again by the next step; the handler gets only the second response."""
    bench = Bench(fenced_writes=False)
    answers: list[Any] = []

    def creates(ctx: Any) -> fx.Handler:
        answers.append((yield fx.Transaction((fx.Op("create", "/a"),))))

    bench.enqueue(creates)
    bench.driver.begin("controller")
    bench.zookeeper.lose_next(bench.driver.client.client, before=before)
    bench.driver.advance("controller")
    assert (answers, len(bench.records("connection_loss")), "/a" in bench.zookeeper.tree()) == ([], 1, not before)
    bench.driver.advance("controller")
    assert [answer.code for answer in answers] == ["OK" if before else "NodeExists"]
    assert len(bench.calls) == 2


@pytest.mark.parametrize("fenced", [True, False], ids=["fenced", "unfenced"])
def test_what_was_answered_before_the_connection_broke_is_not_sent_again(fenced: bool) -> None:
    """Of a pipeline that was interrupted only the rest is sent again, and the handler gets all responses in order."""
    # Source: KafkaZkClient.retryRequestsUntilConnected (2.8), which repeats the requests that met a connection loss.
    bench = Bench(fenced_writes=fenced)
    bench.outside(fx.Op("create", CONTROLLER_EPOCH))
    whole, answers = bench.driver.client.write, []

    def breaks_off(transactions: Any) -> Any:
        bench.driver.client.write = whole  # type: ignore[method-assign]
        raise ConnectionLoss(answered=whole(transactions[:2]))

    def creates(ctx: Any) -> fx.Handler:
        answers.extend((yield fx.FencedTransactions(tuple((fx.Op("create", path),) for path in ("/a", "/b", "/c")))))

    bench.driver.client.write = breaks_off  # type: ignore[method-assign]
    bench.enqueue(creates)
    assert bench.go() == 2
    assert [answer.code for answer in answers] == ["OK", "OK", "OK"]
    assert [len(call[1]) for call in bench.calls] == [2, 1]
    assert [record.fields["ops"][0][1] for record in bench.records("write")] == ["/a", "/b", "/c"]


def test_a_controller_finds_out_that_it_has_won_after_all() -> None:
    """A registration that was performed but not answered fails when sent again; the stored id and epoch say that it had won."""
    # Source: KafkaZkClient.registerControllerAndIncrementControllerEpoch (2.8).
    world = World()
    world.step(("start", 1))
    until(world, lambda w: waits_for(w, 1, fx.Transaction) and "/controller_epoch" in w.zk.tree())
    assert isinstance(world.zk, MemoryZooKeeper)
    world.zk.lose_next(world.processes[1].driver.client, before=False)
    world.run()
    controller = world.processes[1].driver.controller
    assert (len(of_kind(world, "connection_loss")), of_kind(world, "handler_error")) == (1, [])
    assert (controller.is_active, controller.controller_epoch, controller.controller_epoch_zk_version) == (True, 1, 1)


def test_a_commit_whose_response_was_lost_is_decided_again() -> None:
    """A state that was written but not answered loses the race against itself, and the second decision is made from it."""
    world = failing({"t": ((1, 2, 3),)})
    assert isinstance(world.zk, MemoryZooKeeper)
    world.zk.lose_next(world.processes[2].driver.client, before=False)
    world.run()
    assert lost(world) == ["t-0"]
    assert stored(world) == {"t-0": (2, (2, 3))}
    assert dict(states(world))[T0].leader_epoch == 2


# ---------------------------------------------------------------- other errors of a handler


def breaks(ctx: Any) -> fx.Handler:
    """Updates the context, asks ZooKeeper and raises an exception."""
    yield fx.UpdateContext("controller_epoch", 4)
    yield fx.Exists(("/a",))
    raise RuntimeError("the reason is unknown")


def test_an_exception_ends_the_event_and_nothing_else() -> None:
    """What a handler raises is journalled as `handler_error` with its words; its updates stay; the next event is handled."""
    bench = Bench()
    bench.enqueue(breaks)
    bench.go()
    assert [(r.fields["event"], r.fields["error"], r.fields["message"]) for r in bench.records("handler_error")] == [
        ("RunStory", "RuntimeError", "the reason is unknown")
    ]
    assert bench.driver.controller.controller_epoch == 4
    assert len(bench.do(fx.Read(("/a",)))) == 1


@pytest.mark.parametrize(
    "effect",
    [
        fx.FencedTransactions(((fx.Op("create", "/a"),),), expected_epoch_zk_version=-2),
        fx.Exists(("no slash",)),
        fx.Transaction((fx.Op("create", "/a", "text"),)),
    ],  # type: ignore[arg-type]
    ids=["a fence below -1", "no path", "no bytes"],
)
def test_nothing_leaves_the_driver(effect: Any) -> None:
    """A round trip that cannot be performed at all is thrown into the handler, and fails the event if it is not caught."""
    bench = Bench()
    caught: list[BaseException] = []

    def asks(ctx: Any) -> fx.Handler:
        try:
            yield effect
        except Exception as error:
            caught.append(error)
            raise

    bench.enqueue(asks)
    bench.go()
    assert (len(caught), len(bench.records("handler_error")), bench.driver.threads["controller"].handler) == (1, 1, None)
    assert len(bench.do(fx.Read(("/a",)))) == 1


def test_an_effect_that_the_driver_does_not_know_fails_the_event() -> None:
    """A handler that yields something that is no effect fails its event, as does one that learns a field that is not there."""
    bench = Bench()
    bench.do("no effect")
    bench.do(fx.UpdateContext("no_such_field", 1))
    assert [r.fields["error"] for r in bench.records("handler_error")] == ["KeyError", "AttributeError"]


def test_a_broken_znode_fails_the_event_and_the_cluster_goes_on() -> None:
    """A malformed state znode fails the broker change; the next topic is created normally."""
    world = failing({"t": ((1, 2, 3),)})
    rewrite_text(world, "{}")
    world.run()
    assert [(r.fields["event"], r.fields["error"]) for r in of_kind(world, "handler_error")] == [
        ("BrokerChange", "MalformedZnode")
    ]
    rewrite_text(world, encode_state(LeaderAndIsr(1, (1, 2, 3))).decode())
    settle(world, ("create_topic", "u", ((3, 2),)))
    assert stored(world)["u-0"] == (3, (3, 2))


def rewrite_text(world: World, text: str) -> None:
    """Overwrite the state znode of t-0 from outside, before a commit that is in progress."""
    world.step(("set", state_path(T0), text))


def test_a_failed_failover_gives_the_crown_away() -> None:
    """A controller that fails during its failover resigns and deletes `/controller`, so that another broker can be elected."""
    # Source: KafkaController.elect and triggerControllerMove (2.8).
    world = cluster(followers=False)
    rewrite_text(world, "{}")
    before = len(world.journal.records)
    world.step(("delete", CONTROLLER))
    until(world, lambda w: bool(of_kind(w, "handler_error", before)))
    [failed] = of_kind(world, "handler_error", before)
    written = [
        (r.id.node, r.fields["error"], op[0])
        for r in of_kind(world, "write", before)
        for op in r.fields["ops"]
        if op[1] == CONTROLLER
    ]
    assert failed.fields["error"] == "MalformedZnode"
    assert written == [(OUTSIDE, None, "delete"), (failed.id.node, None, "create"), (failed.id.node, None, "delete")]
    assert not world.processes[failed.id.node].driver.controller.is_active
