"""A handler is a generator that yields what it needs and gets the answer as the value of `yield`."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.core import effects as fx
from kcontrol.core.model import LeaderAndIsr, PartitionState, TopicPartition
from kcontrol.core.znodes import ISR_CHANGE_NOTIFICATION, partitions_path, state_path
from tests.core.support import T0, T1, Bench, RunStory, alone, cluster, of_kind, settle, stored, until, waits_for

NEW, ONLINE, OFFLINE = PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE


def change(tp: TopicPartition, write: Any = "set", zk_version: int = 0) -> fx.StateChange:
    """A move of a partition whose state znode is written over this version."""
    return fx.StateChange(tp, OFFLINE, ONLINE, LeaderAndIsr(1, (1,), 1, zk_version, 1), write, "test")


def parents(*partitions: TopicPartition) -> list[fx.Op]:
    """What must be there before state znodes can be."""
    paths = dict.fromkeys(
        p for tp in partitions for p in ("/brokers", "/brokers/topics", f"/brokers/topics/{tp.topic}", partitions_path(tp.topic))
    )
    return [fx.Op("create", path) for path in [*paths, *(f"{partitions_path(tp.topic)}/{tp.partition}" for tp in partitions)]]


def test_the_order_of_round_trips_is_the_handlers_text() -> None:
    """Reads, watches and writes reach ZooKeeper one after the other in the order in which the handler yields them."""
    bench = Bench(fenced_writes=False)
    bench.do(
        fx.Exists(("/a",), watch=True), fx.Transaction((fx.Op("create", "/a"), fx.Op("create", "/a/b"))),
        fx.Children(("/a",), watch=True), fx.FencedTransactions(((fx.Op("delete", "/a/b"),),)), fx.Read(("/a",)),
    )  # fmt: skip
    assert bench.calls == [
        ("exists", ("/a",), True), ("write", ((("create", "/a"), ("create", "/a/b")),)), ("children", ("/a",), True),
        ("write", ((("delete", "/a/b"),),)), ("read", ("/a",), False),
    ]  # fmt: skip


def test_instant_effects_happen_between_the_round_trips_around_them() -> None:
    """What a handler learns after one round trip is in memory before the next is performed, and not before the one ahead."""
    bench = Bench()
    seen: list[int] = []

    def learns(ctx: Any) -> fx.Handler:
        yield fx.Exists(("/a",))
        yield fx.UpdateContext("controller_epoch", 7)
        yield fx.Exists(("/b",))
        yield fx.UpdateContext("controller_epoch", 8)

    bench.enqueue(learns)
    bench.driver.begin("controller")
    while bench.driver.threads["controller"].handler is not None:
        seen.append(bench.driver.controller.controller_epoch)
        bench.driver.advance("controller")
    assert (seen, bench.driver.controller.controller_epoch) == ([0, 7], 8)


def test_answers_come_back_as_the_value_of_the_yield() -> None:
    """Each kind of round trip answers in its own shape: stats, znodes, sorted names, one result, one result per transaction."""
    bench = Bench(fenced_writes=False)
    made, exists, read, children, written = bench.do(
        fx.Transaction((fx.Op("create", "/a", b"x"), fx.Op("create", "/a/z"), fx.Op("create", "/a/b"))),
        fx.Exists(("/a", "/none")),
        fx.Read(("/none", "/a")),
        fx.Children(("/a", "/none")),
        fx.FencedTransactions(((fx.Op("set", "/a", b"y"),), (fx.Op("set", "/none", b""),))),
    )
    assert (made.code, made.versions) == ("OK", (0, 0, 0))
    assert (exists[0].num_children, exists[1]) == (2, None)
    assert (read[0], read[1].data) == (None, b"x")
    assert children == (("b", "z"), None)
    assert [(result.code, result.versions) for result in written] == [("OK", (1,)), ("NoNode", ())]


def test_a_transaction_is_all_or_nothing() -> None:
    """Where one operation of a transaction fails, the answer names its error and its place, and no other has happened."""
    bench = Bench()
    (result,) = bench.do(fx.Transaction((fx.Op("create", "/a"), fx.Op("create", "/none/b"))))
    assert (result.code, result.failed_index, list(bench.zookeeper.tree())) == ("NoNode", 1, [])


@pytest.mark.parametrize("path", ["/missing", "/there"])
def test_only_exists_leaves_a_watch_at_a_missing_znode(path: str) -> None:
    """Asked for with a watch, a znode that is there is watched by all three questions, a missing one by Exists alone."""
    bench = Bench()
    bench.outside(fx.Op("create", "/there"))
    left = {}
    for effect in (fx.Exists, fx.Read, fx.Children):
        bench.do(effect((path,), watch=True))
        left[effect] = [watched for watched, _, _ in bench.zookeeper.watches()]
        bench.zookeeper._data_watches.clear()
        bench.zookeeper._child_watches.clear()
    assert left == {
        fx.Exists: [path],
        fx.Read: [path] if path == "/there" else [],
        fx.Children: [path] if path == "/there" else [],
    }


def test_handlers_of_paths_are_registered_and_forgotten() -> None:
    """`RegisterZNodeHandler` is for data or for children of a path, and `UnregisterZNodeHandler` removes that handler alone."""
    bench = Bench()
    bench.do(
        fx.RegisterZNodeHandler("/a"), fx.RegisterZNodeHandler("/b", children=True), fx.RegisterZNodeHandler("/c"),
        fx.UnregisterZNodeHandler("/c"), fx.UnregisterZNodeHandler("/b"),
    )  # fmt: skip
    assert bench.driver.znode_handlers == {("/a", False), ("/b", True)}


def test_a_watch_event_of_a_path_without_a_handler_is_dropped() -> None:
    """A controller that has resigned still has watches at ZooKeeper: their watch events are dropped."""
    # Source: the handlers that KafkaZkClient.unregisterZNodeChildChangeHandler takes away (2.8).
    world = cluster()
    world.step(("delete", "/controller"))
    alone(world, 2, lambda w: w.processes[2].driver.controller.is_active)
    world.run()
    before = len(world.journal.records)
    world.step(("kill", 3))
    world.step(("expire_session", 3))
    while world.processes[1].notifications:
        world.step(("deliver_notification", 1))
    mine = [(r.kind, r.fields["path"]) for r in world.journal.records[before:] if r.id.node == 1]
    assert mine == [("drop_notification", "/brokers/ids/3"), ("drop_notification", "/brokers/ids")]
    assert world.processes[1].driver.is_quiet


# ---------------------------------------------------------------- before 1.1

MANY = [
    (fx.Exists(("/a", "/b", "/c")), 3),
    (fx.Read(("/a", "/b", "/c")), 3),
    (fx.Children(("/a", "/b", "/c")), 3),
    (fx.Transaction((fx.Op("create", "/x"), fx.Op("create", "/y"))), 1),
    (fx.FencedTransactions(((fx.Op("create", "/x"),), (fx.Op("create", "/y"), fx.Op("create", "/y/z")))), 2),
]


@pytest.mark.parametrize(("effect", "parts"), MANY, ids=lambda value: type(value).__name__)
def test_before_1_1_each_path_and_each_transaction_is_a_round_trip(effect: Any, parts: int) -> None:
    """Without a pipelined client one path, or one transaction, goes per round trip, and the answer is the pipelined one's."""
    answers, trips = [], []
    for pipelined in (True, False):
        bench = Bench(fenced_writes=False, pipelined=pipelined)
        bench.outside(fx.Op("create", "/a"), fx.Op("create", "/b"))
        answer: list[Any] = []

        def asks(ctx: Any, answer: list[Any] = answer) -> fx.Handler:
            answer.append((yield effect))

        bench.enqueue(asks)
        trips.append(bench.go())
        assert len(bench.calls) == trips[-1]
        answers.append(answer)
    assert trips == [1, parts]
    assert answers[0] == answers[1]


def test_before_1_1_each_change_is_a_round_trip() -> None:
    """Without a pipelined client a commit of three takes three round trips; what is done, lost and failed adds up the same."""
    answers = []
    for pipelined, trips in ((True, 1), (False, 3)):
        bench = Bench(fenced_writes=False, pipelined=pipelined)
        third = TopicPartition("t", 2)
        bench.outside(*parents(T0, T1, third), fx.Op("create", state_path(T0)), fx.Op("create", state_path(T1)))
        results: list[fx.CommitResult] = []

        def commits(ctx: Any, results: list[fx.CommitResult] = results, third: TopicPartition = third) -> fx.Handler:
            results.append((yield fx.Commit((change(T0), change(T1, zk_version=9), change(third)))))

        bench.enqueue(commits)
        assert bench.go() == trips
        answers.append(results[0])
    assert answers[0] == answers[1]
    assert ([c.subject for c in answers[0].finished], answers[0].to_retry, answers[0].failed) == (
        [T0],
        (T1,),
        ((TopicPartition("t", 2), "NoNode"),),
    )


def test_before_1_1_a_write_can_slip_in_between_two_paths() -> None:
    """Without a pipelined client the second path of one question shows what was written after the first was answered."""
    bench = Bench(pipelined=False)
    answer: list[Any] = []

    def reads(ctx: Any) -> fx.Handler:
        answer.extend((yield fx.Exists(("/a", "/b"))))

    bench.enqueue(reads)
    bench.driver.begin("controller")
    bench.driver.advance("controller")
    bench.outside(fx.Op("create", "/a"), fx.Op("create", "/b"))
    bench.driver.advance("controller")
    assert [stat is not None for stat in answer] == [False, True]


def test_what_is_put_into_a_queue_is_known_by_its_record() -> None:
    """`enqueue` returns the id of the record of the event, to which what follows from the event can point."""
    bench = Bench()
    returned = bench.driver.enqueue(RunStory("nothing"), None)
    assert returned == bench.records("enqueue")[-1].id


# ---------------------------------------------------------------- commits


def test_a_commit_that_writes_nothing_is_instant() -> None:
    """Moves in memory and refusals are carried out within the step, without a round trip, and answered like any commit."""
    bench = Bench()
    refused = fx.FailedStateChange(T1, NEW, OFFLINE, "no way")
    (answer,) = bench.do(fx.Commit((fx.StateChange(T0, NEW, OFFLINE), refused)))
    assert (bench.calls, [c.subject for c in answer.finished]) == ([], [T0])
    assert bench.driver.controller.partition_states == {T0: OFFLINE}
    assert [(r.kind, r.fields["subject"]) for r in bench.records("change", "failed_change")] == [
        ("change", T0),
        ("failed_change", T1),
    ]


def test_a_commit_answers_with_the_version_that_the_write_produced() -> None:
    """A change that was written comes back, and is remembered, with the zk version of the znode as it is now."""
    bench = Bench(fenced_writes=False)
    bench.outside(*parents(T0, T1), fx.Op("create", state_path(T0)), fx.Op("set", state_path(T0)))
    (answer,) = bench.do(fx.Commit((change(T0, zk_version=1), change(T1, "create"))))
    assert [c.leadership.zk_version for c in answer.finished] == [2, 0]
    assert [value.zk_version for value in bench.driver.controller.leadership.values()] == [2, 0]


def test_failed_and_lost_changes_leave_memory_alone() -> None:
    """Of a commit only the changes that were written reach memory, each together with its record."""
    bench = Bench(fenced_writes=False)
    bench.outside(*parents(T0, T1), fx.Op("create", state_path(T0)), fx.Op("create", state_path(T1)))
    third = TopicPartition("t", 2)
    bench.do(fx.Commit((change(T0, zk_version=5), change(T1), change(third))))
    context = bench.driver.controller
    assert (context.partition_states, list(context.leadership)) == ({T1: ONLINE}, [T1])
    recorded = [
        (r.kind, r.fields["subject"], r.fields.get("reason")) for r in bench.records("change", "conflict", "failed_change")
    ]
    assert recorded == [("conflict", T0, "BadVersion"), ("change", T1, None), ("failed_change", third, "NoNode")]


# ---------------------------------------------------------------- the controller's own text


def test_a_new_controller_deletes_isr_notes_before_it_reads_the_states() -> None:
    """At failover the notes about ISR changes are gone before the first state znode is read."""
    # Source: KafkaController.onControllerFailover (2.8).
    world = cluster()
    world.step(("freeze", 1))
    world.step(("create", f"{ISR_CHANGE_NOTIFICATION}/isr_change_7", "{}"))
    before = len(world.journal.records)
    settle(world, ("expire_session", 1))
    order = []
    for record in world.journal.records[before:]:
        if record.kind == "write" and any(op[0] == "delete" and op[1].endswith("isr_change_7") for op in record.fields["ops"]):
            order.append("delete")
        elif record.kind == "read" and record.fields["paths"] and record.fields["paths"][0].endswith("/state"):
            order.append("read")
    assert order[:2] == ["delete", "read"]


def test_a_broker_that_dies_during_failover_is_not_missed() -> None:
    """The handler of `/brokers/ids` is registered before the brokers are read: a death right after the read fires the watch."""
    # Source: KafkaController.onControllerFailover (2.8), which registers its handlers first.
    world = cluster()
    world.step(("delete", "/controller"))
    until(world, lambda w: any(r.kind == "read" and "/brokers/ids/3" in r.fields["paths"] for r in w.last_step))
    winner = world.last_step[0].id.node
    victim = 3 if winner == 1 else 1
    world.step(("kill", victim))
    world.step(("expire_session", victim))
    while world.processes[winner].notifications:
        world.step(("deliver_notification", winner))
    world.run()
    assert victim not in {leader for leader, _ in stored(world).values()}


def test_startup_of_a_broker_is_a_handler_too() -> None:
    """A broker that starts takes a step per round trip and can die between any two of them, leaving what it has written."""
    world = cluster(topics={}, brokers=(1,))
    world.step(("start", 2))
    until(world, lambda w: waits_for(w, 2, fx.Transaction, "main") and "/brokers/ids/2" not in w.zk.tree())
    writes = len(of_kind(world, "write"))
    world.step(("advance", 2, "main"))
    assert len(of_kind(world, "write")) == writes + 1
    settle(world, ("kill", 2))
    assert "/brokers/ids/2" not in world.zk.tree()
    assert world.is_quiet
