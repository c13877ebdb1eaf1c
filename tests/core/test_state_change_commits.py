"""The writes, memory and records of a commit, change by change; the time of reading the journal makes no difference."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kcontrol.cluster import actions
from kcontrol.controller.request_batch import RequestBatch
from kcontrol.core.effects import Commit, CommitResult, FailedStateChange, Handler, Op, Send, StateChange, UpdateContext
from kcontrol.core.model import LeaderAndIsr, PartitionReplica, PartitionState, ReplicaState, TopicPartition
from kcontrol.core.znodes import CONTROLLER_EPOCH, decode_state, encode_state, state_path
from kcontrol.journal.journal import Record
from tests.core.support import T0, T1, U0, Bench, cluster

NEW, ONLINE, OFFLINE = PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE
REPLICA_ONLINE, REPLICA_OFFLINE = ReplicaState.ONLINE, ReplicaState.OFFLINE
V0 = TopicPartition("v", 0)
T0_ON_1, T0_ON_3 = PartitionReplica(T0, 1), PartitionReplica(T0, 3)
BEFORE = LeaderAndIsr(1, (1, 2, 3), 0, 0, 1)
AFTER = LeaderAndIsr(2, (2, 3), 1, 0, 1)


def bench(**rules: Any) -> Bench:
    """A controller with a valid epoch; the state znode of t-0 has version 0, that of t-1 was rewritten from outside."""
    made = Bench(**rules)
    made.outside(Op("create", CONTROLLER_EPOCH, b"1"), Op("create", "/brokers"), Op("create", "/brokers/topics"))
    for topic in "tuv":
        made.outside(Op("create", f"/brokers/topics/{topic}"), Op("create", f"/brokers/topics/{topic}/partitions"))
    for tp in (T0, T1, U0):
        made.outside(Op("create", state_path(tp).removesuffix("/state")))
    for tp in (T0, T1):
        made.outside(Op("create", state_path(tp), encode_state(BEFORE)))
    made.outside(Op("set", state_path(T1), encode_state(BEFORE)))
    made.do(UpdateContext("controller_epoch_zk_version", 0))
    return made


MIXED = (
    StateChange(T0, ONLINE, ONLINE, AFTER, "set", "preferred"),
    FailedStateChange(T0_ON_3, REPLICA_ONLINE, ReplicaState.NEW, "there is no such row", illegal=True),
    StateChange(T1, OFFLINE, ONLINE, AFTER, "set", "offline"),
    StateChange(V0, OFFLINE, ONLINE, AFTER, "set", "offline"),
    StateChange(U0, NEW, ONLINE, AFTER, "create", "initialize"),
    FailedStateChange(U0, ONLINE, NEW, "no broker is live", illegal=False),
    StateChange(T0_ON_1, REPLICA_ONLINE, REPLICA_OFFLINE, AFTER, None, "mark"),
)


def moves(bench: Bench) -> list[Record]:
    return bench.records("change", "conflict", "failed_change")


def machine(change: Any, name: str) -> dict[str, Any]:
    """The fields that the record of any move has."""
    return {"machine": name, "subject": change.subject, "source": change.source, "target": change.target}


@pytest.mark.parametrize(("fenced", "fence"), [(True, 0), (False, -1)])
def test_changes_refusals_and_lost_races_come_in_the_order_of_the_commit(fenced: bool, fence: int) -> None:
    """Each has its own fields: a write its zxid and the version of the fence, a lost race and a failure ZooKeeper's code."""
    world = bench(fenced_writes=fenced)
    (answer,) = world.do(Commit(MIXED))
    zxid = {tp: world.client.read([state_path(tp)], False)[0].stat.mzxid for tp in (T0, U0)}  # type: ignore[union-attr]
    as_written = AFTER._replace(zk_version=1)
    expected = [
        ("change", {"leadership": as_written, "write": "set", "rule": "preferred", "zxid": zxid[T0], "epoch_zk_version": fence}),
        ("failed_change", {"reason": "there is no such row", "illegal": True}),
        ("conflict", {"reason": "BadVersion", "rule": "offline"}),
        ("failed_change", {"reason": "NoNode", "illegal": False, "rule": "offline"}),
        ("change", {"leadership": AFTER, "write": "create", "rule": "initialize", "zxid": zxid[U0], "epoch_zk_version": fence}),
        ("failed_change", {"reason": "no broker is live", "illegal": False}),
        ("change", {"leadership": AFTER, "write": None, "rule": "mark"}),
    ]
    names = ["replica" if isinstance(change.subject, PartitionReplica) else "partition" for change in MIXED]
    recorded = [(kind, machine(c, name) | fields) for c, name, (kind, fields) in zip(MIXED, names, expected, strict=True)]
    assert [(record.kind, record.fields) for record in moves(world)] == recorded
    numbers = [record.id.seq for record in moves(world)]
    assert numbers == list(range(numbers[0], numbers[0] + 7))
    done = (MIXED[0]._replace(leadership=as_written), MIXED[4], MIXED[6])
    assert answer == CommitResult(done, (T1,), ((V0, "NoNode"),))


def test_memory_and_znodes_have_what_was_done_and_nothing_else() -> None:
    """Who has lost, failed or been refused is as before; the others' leadership has the version that was written."""
    world = bench()
    world.do(Commit(MIXED[:-1]))
    ctx = world.driver.controller
    assert ctx.leadership == {T0: AFTER._replace(zk_version=1), U0: AFTER}
    assert ctx.partition_states == {T0: ONLINE, U0: ONLINE}
    stored = [decode_state(z.data, z.stat.version) for z in world.client.read(list(map(state_path, (T0, T1, U0))), False) if z]
    assert stored == [AFTER._replace(zk_version=1), BEFORE._replace(zk_version=1), AFTER]


def test_a_broken_fence_leaves_memory_alone_and_says_what_was_tried() -> None:
    """Once `/controller_epoch` was written over there is a record for each write that failed, and none of a move."""
    world = bench()
    world.outside(Op("set", CONTROLLER_EPOCH, b"2"))
    world.do(Commit((MIXED[0], MIXED[1], MIXED[4])))
    assert (world.driver.controller.leadership, moves(world)) == ({}, [])
    begun = world.records("begin")[-1].id
    tried = [[[kind, state_path(tp), encode_state(AFTER), None, False]] for kind, tp in (("set", T0), ("create", U0))]
    assert [(r.cause, r.fields["ops"]) for r in world.records("write")] == [(begun, ops) for ops in tried]
    assert [(r.fields["error"], r.fields["epoch_zk_version"]) for r in world.records("write")] == [("BadVersion", 0)] * 2
    assert [r.fields["error"] for r in world.records("exception", "handler_error")] == ["ControllerMoved"] * 2


# ---------------------------------------------------------------- causes


def mark(source: PartitionState, target: PartitionState, tp: TopicPartition = T0) -> StateChange:
    return StateChange(tp, source, target)


OFF, STAYS, ON = mark(ONLINE, OFFLINE), mark(OFFLINE, OFFLINE), mark(OFFLINE, ONLINE)
ELECTED = MIXED[0]
REFUSED = FailedStateChange(T0, OFFLINE, OFFLINE, "no broker is live")
LOST = ELECTED._replace(leadership=AFTER._replace(zk_version=7))
REPLICA = StateChange(T0_ON_1, REPLICA_ONLINE, REPLICA_OFFLINE)
OTHER = mark(ONLINE, OFFLINE, T1)

CAUSES: dict[str, tuple[tuple[Any, ...], list[int]]] = {
    # the moves of one handler, and for each the move that it was caused by, -1 for the handler's beginning
    "a move by the one before": ((OFF, ON), [-1, 0]),
    "not by another partition's": ((OFF, OTHER, ON), [-1, -1, 0]),
    "a replica's by its partition's": ((OFF, REPLICA, ON), [-1, 0, 1]),
    "a move to the same state by the last, and nothing by it": ((OFF, STAYS, ON), [-1, 0, 0]),
    "even if it is the first": ((STAYS, ON), [-1, -1]),
    "one that was written is a cause": ((OFF, ELECTED, OFF), [-1, 0, 1]),
    "so is a refusal": ((OFF, REFUSED, ON), [-1, 0, 1]),
    "and a race that was lost": ((OFF, LOST, OFF), [-1, 0, 1]),
}


@pytest.mark.parametrize("together", [True, False], ids=["one commit", "one each"])
@pytest.mark.parametrize("name", CAUSES)
def test_what_causes_a_move(name: str, together: bool) -> None:
    """The last move of that partition in this handler that changed, wrote or refused something, or the handler's beginning."""
    changes, causes = CAUSES[name]
    world = bench()
    for _ in range(2):  # what an earlier handler did is no cause
        world.outside(Op("set", state_path(T0), encode_state(BEFORE)))
        version = world.client.read([state_path(T0)], False)[0].stat.version  # type: ignore[union-attr]
        now = tuple(c._replace(leadership=AFTER._replace(zk_version=version)) if c is ELECTED else c for c in changes)
        world.do(*([Commit(now)] if together else [Commit((change,)) for change in now]))
        begun = world.records("begin")[-1].id
        ids = [*(record.id for record in moves(world)[-len(changes) :]), begun]
        assert [record.cause for record in moves(world)[-len(changes) :]] == [ids[cause] for cause in causes]


REQUESTS: list[tuple[list[Any], str]] = [
    ([], "begin"), ([()], "begin"), ([(OFF, REFUSED), ()], "failed_change"), ([(OFF, OTHER)], "change"),
    ([(OFF,), (STAYS,)], "change"), ([(OFF, REFUSED)], "failed_change"),
]  # fmt: skip


@pytest.mark.parametrize(("commits", "last"), REQUESTS)
def test_what_causes_a_request(commits: list[Any], last: str) -> None:
    """The last record of the handler's machines, of whatever kind, or its beginning if they have done nothing."""
    world = bench()
    world.do(
        UpdateContext("controller_epoch", 1),
        *(Commit(changes) for changes in commits),
        Send(RequestBatch().fold(world.driver.controller)),
    )
    before = world.records("begin", "change", "failed_change")[-1]
    assert (before.kind, world.records("send")[-1].cause) == (last, before.id)


# ---------------------------------------------------------------- when it is read


def story(looks: Callable[[Bench], Any]) -> Bench:
    """Two handlers with commits between which time goes on and the fence and the machines' memory change."""
    world = bench()

    def several(ctx: Any) -> Handler:
        yield Commit((OFF, OTHER))
        looks(world)
        world.now_ms = 5
        yield Commit(MIXED)
        looks(world)
        world.now_ms = 7
        yield UpdateContext("controller_epoch_zk_version", 9)
        looks(world)
        yield Commit((REPLICA, OFF))

    world.enqueue(several)
    world.go()
    world.now_ms = 9
    looks(world)
    world.do(Commit((OTHER, ON)))
    return world


def test_it_makes_no_difference_when_a_commit_is_read() -> None:
    """Causes, times, fences and numbers are those of the commit, if the journal is read at once or at the end."""
    at_once, later = story(lambda world: world.journal.records), story(lambda world: None)
    from_here = story(lambda world: world.journal.since(len(world.journal) - 1))
    assert later.journal.records == at_once.journal.records == from_here.journal.records
    fences = [(r.at_ms, r.fields["epoch_zk_version"]) for r in moves(later) if r.fields.get("write")]
    assert fences == [(5, 0), (5, 0)]
    assert [r.at_ms for r in moves(later)] == [0] * 2 + [5] * 7 + [7] * 2 + [9] * 2


# ---------------------------------------------------------------- the collector


@pytest.fixture
def collector() -> Iterator[None]:
    """Puts the collector back as it was."""
    was_on = gc.isenabled()
    yield
    (gc.enable if was_on else gc.disable)()


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("is_on", [False, True])
def test_a_step_leaves_the_collector_as_it_was(
    is_on: bool, fails: bool, monkeypatch: pytest.MonkeyPatch, collector: None
) -> None:
    """It is off within a step and afterwards as before, also when the step ends in an error."""
    world, seen = cluster(), list[bool]()

    def perform(world: Any, n: int) -> None:
        seen.append(gc.isenabled())
        if fails:
            raise ZeroDivisionError

    monkeypatch.setitem(actions.ACTIONS, "freeze", actions.ACTIONS["freeze"]._replace(perform=perform))
    (gc.enable if is_on else gc.disable)()
    try:
        world.step(("freeze", 1))
    except ZeroDivisionError:
        assert fails
    assert (seen, gc.isenabled()) == ([False], is_on)
