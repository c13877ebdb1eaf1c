"""The context is mutable, deciders see it read-only, and only the driver writes it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcontrol.cluster.snapshot import CONSTANT, context
from kcontrol.controller.context import ControllerContext, apply_state_change, apply_update
from kcontrol.controller.failover_steps import CLEARED_AT_RESIGNATION
from kcontrol.controller.handlers import design_of
from kcontrol.core.effects import StateChange, UpdateContext
from kcontrol.core.model import LeaderAndIsr, PartitionReplica, PartitionState, ReplicaAssignment, ReplicaState, TopicPartition
from tests.core.support import ALL_FAULTS, RULES_2_8, T0, T1, Bench, cluster, walk
from tests.parts import ROOT

SNIPPET = """
from kcontrol.controller.context import ControllerContext
from kcontrol.core.model import LeaderAndIsr, PartitionState, ReplicaState, TopicPartition
from kcontrol.broker.context import BrokerContext

def decide(ctx: ControllerContext, broker: BrokerContext, tp: TopicPartition) -> int:
    {line}
    return ctx.controller_epoch
"""
WRITES = [
    "ctx.controller_epoch = 3", "ctx.leadership[tp] = LeaderAndIsr(1, (1,))", "ctx.live_brokers.clear()",
    "ctx.all_topics.add('t')", "ctx.partition_states.update({tp: PartitionState.ONLINE})", "ctx.replica_states.by_broker = {}",
    "ctx.replica_states.by_broker[1] = {}", "ctx.replica_states.by_broker[1][tp] = ReplicaState.ONLINE",
    "broker.controller_id = 2", "broker.hosted.pop(tp)", "broker.live_brokers.discard(1)",
]  # fmt: skip


def typed(folder: Path, lines: dict[str, str]) -> dict[str, str]:
    """What mypy says of each line in a decider, by the name of its file; empty where it has nothing to say."""
    for name, line in lines.items():
        (folder / f"{name}.py").write_text(SNIPPET.format(line=line))
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *(str(folder / f"{name}.py") for name in lines)]
    found = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"MYPYPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert found.returncode in (0, 1), found.stderr
    said = found.stdout.splitlines()
    return {name: " ".join(line for line in said if f"{name}.py" in line and " error: " in line) for name in lines}


@pytest.mark.slow
def test_mypy_refuses_a_decider_that_writes_the_context(tmp_path: Path) -> None:
    """Each way of changing a context from a decider is an error of mypy's, and a decider that only reads is none."""
    lines = {f"writes_{number}": line for number, line in enumerate(WRITES)} | {"reads": "print(ctx.leadership[tp])"}
    said = typed(tmp_path, lines)
    assert [line for name, line in lines.items() if not said[name]] == ["print(ctx.leadership[tp])"]


RIGHT = 'print(ctx.rules.last_isr_member == "stays if clean")'
MISSPELT = [
    'print(ctx.rules.last_isr_member == "stays if claen")',
    'print(ctx.rules.design != "one event thraed")',
    'rule: Literal["isr", "ar"] = since(("0.8.0", "isr"), ("0.8.2", "rr"), doc="Whose order decides.")',
    'ElectionInput((1,), (1,), {1}, order="assignment")',
]


def test_mypy_refuses_a_misspelt_value_of_a_rule(tmp_path: Path) -> None:
    """A value that the type of a rule does not name is an error of mypy's, in a comparison, in a row and as an argument."""
    imports = "from typing import Literal; from kcontrol.core.rule_fields import since; "
    imports += "from kcontrol.controller.leader_election import ElectionInput; "
    said = typed(tmp_path, {f"rule_{number}": imports + line for number, line in enumerate((*MISSPELT, RIGHT))})
    assert [bool(error) for error in said.values()] == [True] * len(MISSPELT) + [False]


def test_python_refuses_an_assignment() -> None:
    """Assigning a field of a context raises at run time too."""
    ctx = ControllerContext(1, RULES_2_8, design_of(RULES_2_8))
    with pytest.raises(FrozenInstanceError):
        ctx.controller_epoch = 3  # type: ignore[misc]


# ---------------------------------------------------------------- Learn


@pytest.mark.parametrize(("learn", "left"), [
    (UpdateContext("topic_ids", {"b": "3"}), {"a": "1", "b": "3"}),
    (UpdateContext("topic_ids", remove=("a", "missing")), {"b": "2"}),
    (UpdateContext("topic_ids", clear=True), {}),
    (UpdateContext("topic_ids", {"a": "9"}, remove=("a",), clear=True), {"a": "9"}),
    (UpdateContext("all_topics", ("c",), remove=("a", "missing")), {"b", "c"}),
    (UpdateContext("all_topics", ("c",), clear=True), {"c"}),
    (UpdateContext("controller_epoch", 8), 8),
])  # fmt: skip
def test_a_lesson_first_clears_then_removes_then_puts(learn: UpdateContext, left: object) -> None:
    """A `UpdateContext` changes a mapping, a set or a plain field, in this order, and removing what is not there is no error."""
    ctx = ControllerContext(1, RULES_2_8, design_of(RULES_2_8))
    apply_update(ctx, UpdateContext("topic_ids", {"a": "1", "b": "2"}))
    apply_update(ctx, UpdateContext("all_topics", ("a", "b")))
    apply_update(ctx, learn)
    assert getattr(ctx, learn.field) == left


def test_a_lesson_about_replicas_is_kept_by_broker() -> None:
    """Replica states are put, removed and cleared like any mapping from replicas to states."""
    ctx = ControllerContext(1, RULES_2_8, design_of(RULES_2_8))
    one, two = PartitionReplica(T0, 1), PartitionReplica(T0, 2)
    apply_update(ctx, UpdateContext("replica_states", {one: ReplicaState.ONLINE, two: ReplicaState.OFFLINE}))
    assert dict(ctx.replica_states) == {one: ReplicaState.ONLINE, two: ReplicaState.OFFLINE}
    apply_update(ctx, UpdateContext("replica_states", remove=(one, PartitionReplica(T1, 9))))
    assert (len(ctx.replica_states), ctx.replica_state(two), str(ctx.replica_state(one))) == (
        1,
        ReplicaState.OFFLINE,
        "NonExistentReplica",
    )
    apply_update(ctx, UpdateContext("replica_states", clear=True))
    assert len(ctx.replica_states) == 0


def test_a_subject_that_is_gone_has_no_state() -> None:
    """A move to a NonExistent state leaves nothing behind in memory, and an unknown subject is NonExistent."""
    ctx = ControllerContext(1, RULES_2_8, design_of(RULES_2_8))
    for subject, online, gone in (
        (T0, PartitionState.ONLINE, PartitionState.NON_EXISTENT),
        (PartitionReplica(T0, 2), ReplicaState.ONLINE, ReplicaState.NON_EXISTENT),
    ):
        apply_state_change(ctx, StateChange(subject, gone, online))
        apply_state_change(ctx, StateChange(subject, online, gone))
    assert (dict(ctx.partition_states), len(ctx.replica_states)) == ({}, 0)
    assert (ctx.partition_state(T0), ctx.replica_state(PartitionReplica(T0, 2))) == (
        PartitionState.NON_EXISTENT,
        ReplicaState.NON_EXISTENT,
    )


def test_the_driver_learns_into_the_context_that_is_named() -> None:
    """A `UpdateContext` names the controller's context or the broker's, and the other one stays as it was."""
    bench = Bench()
    bench.do(UpdateContext("controller_epoch", 5), UpdateContext("controller_epoch", 3, context="broker"))
    assert (bench.driver.controller.controller_epoch, bench.driver.broker.controller_epoch) == (5, 3)


# ---------------------------------------------------------------- what it answers


def known() -> ControllerContext:
    """Brokers 1 to 3 live, 3 shutting down, 2 without its directory of t-0; t-0 and t-1 on all of them."""
    ctx = ControllerContext(1, RULES_2_8, design_of(RULES_2_8))
    for learn in (
        UpdateContext("live_broker_epochs", {1: 11, 2: 12, 3: 13}),
        UpdateContext("shutting_down_broker_ids", (3,)),
        UpdateContext("offline_dirs", {2: frozenset({T0})}),
        UpdateContext("assignments", {T0: ReplicaAssignment((3, 2, 1)), T1: ReplicaAssignment((4, 2, 3))}),
        UpdateContext("leadership", {T0: LeaderAndIsr(2, (2, 1)), T1: LeaderAndIsr(3, (3,))}),
    ):
        apply_update(ctx, learn)
    return ctx


def test_an_online_replica_has_a_live_broker_that_stays_and_a_directory() -> None:
    """Dead brokers, brokers on their way out and lost log directories make a replica offline; the order is the assignment's."""
    # Source: ControllerContext.isReplicaOnline (2.8).
    ctx = known()
    assert (ctx.online_replicas(T0), ctx.online_replicas(T1)) == ((1,), (2,))
    assert ctx.online_replicas(T0, include_shutting_down=True) == (3, 1)
    assert (ctx.live_broker_ids, ctx.live_or_shutting_down_broker_ids) == ((1, 2), (1, 2, 3))


def test_a_leader_that_is_not_online_makes_a_partition_leaderless() -> None:
    """A leader without its directory or on its way out counts as offline, except for topics that are being deleted."""
    # Source: ControllerContext.partitionsWithOfflineLeader (2.8).
    ctx = known()
    assert ctx.partitions_with_offline_leader() == (T0, T1)
    apply_update(ctx, UpdateContext("topics_to_be_deleted", ("t",)))
    assert ctx.partitions_with_offline_leader() == ()


def test_the_replicas_of_brokers_and_of_partitions_follow_the_assignment() -> None:
    """Asked for brokers or for partitions, the context lists replicas partition by partition in the order of the assignment."""
    ctx = known()
    assert [str(r) for r in ctx.replicas_on((2, 4))] == ["t-0@2", "t-1@4", "t-1@2"]
    assert [str(r) for r in ctx.replicas_of((T1,))] == ["t-1@4", "t-1@2", "t-1@3"]


def test_a_resigned_controller_remembers_nothing() -> None:
    """Resignation empties every field of the context but the one that says who is controller."""
    # Source: KafkaController.onControllerResignation and ControllerContext.resetContext (2.8).
    learnt = {f.name for f in fields(ControllerContext)} - set(CONSTANT)
    numbers = {"controller_epoch", "controller_epoch_zk_version", "offline_partition_count", "preferred_replica_imbalance_count"}
    of_listeners = {"scheduler_is_running", "has_channels", "machines_started", "preferred_elections", "topic_deletion_thread"}
    assert learnt - set(CLEARED_AT_RESIGNATION) - numbers - of_listeners == {"active_controller_id"}


TPS = [TopicPartition(topic, number) for topic in "ab" for number in range(2)]
BROKERS = st.lists(st.sampled_from((1, 2, 3)), unique=True, max_size=3).map(tuple)
PARTITIONS = st.lists(st.sampled_from(TPS), unique=True, max_size=2).map(tuple)
ASSIGNED = st.builds(ReplicaAssignment, BROKERS, BROKERS)
LED = st.builds(LeaderAndIsr, st.sampled_from((-1, 1, 2, 3)), BROKERS)
LESSONS = st.one_of(
    st.builds(
        UpdateContext, st.just("assignments"), st.dictionaries(st.sampled_from(TPS), ASSIGNED, max_size=3), PARTITIONS,
        st.booleans(),
    ),
    st.builds(
        UpdateContext, st.just("leadership"), st.dictionaries(st.sampled_from(TPS), LED, max_size=3), PARTITIONS, st.booleans()
    ),
    st.builds(
        UpdateContext,
        st.just("partition_states"),
        st.dictionaries(st.sampled_from(TPS), st.sampled_from(PartitionState), max_size=3),
        PARTITIONS,
    ),
    st.builds(UpdateContext, st.just("topics_to_be_deleted"), st.just(("a",)), st.just(()), st.booleans()),
    st.builds(UpdateContext, st.just("topics_to_be_deleted"), st.none(), st.just(("a", "b"))),
    st.builds(UpdateContext, st.just("topics_with_deletion_started"), st.just(("a",)), st.just(()), st.booleans()),
    st.builds(UpdateContext, st.just("topics_with_deletion_started"), st.none(), st.just(("a", "b"))),
)  # fmt: skip
MOVES = st.builds(
    StateChange, st.sampled_from(TPS), st.just(PartitionState.NEW), st.sampled_from(PartitionState), st.none() | LED
)


def counted(ctx: ControllerContext) -> tuple[int, int]:
    """How many partitions are Offline, and how many are not led by their first replica, counted one by one."""
    offline = [
        tp
        for tp, state in ctx.partition_states.items()
        if state is PartitionState.OFFLINE and tp.topic not in ctx.topics_with_deletion_started
    ]
    led = [tp for tp in ctx.assignments if tp in ctx.leadership and ctx.replicas(tp) and tp.topic not in ctx.topics_to_be_deleted]
    first = {tp: ctx.replicas(tp)[0] for tp in led}
    joining = [tp for tp in led if first[tp] in ctx.assignments[tp].adding]
    elsewhere = [tp for tp in led if tp not in joining and ctx.leadership[tp].leader != first[tp]]
    return len(offline), len(elsewhere) + len([tp for tp in joining if first[tp] in ctx.leadership[tp].isr])


@given(st.lists(LESSONS | MOVES, max_size=12))
@pytest.mark.slow
def test_the_counts_are_what_a_full_count_finds(steps: list[UpdateContext | StateChange]) -> None:
    """After every change of any kind the two counts that the one apply keeps are those of a full count."""
    ctx = ControllerContext(1, RULES_2_8, design_of(RULES_2_8))
    for step in steps:
        if isinstance(step, UpdateContext):
            apply_update(ctx, step)
        else:
            apply_state_change(ctx, step)
        assert (ctx.offline_partition_count, ctx.preferred_replica_imbalance_count) == counted(ctx)


def test_the_imbalance_follows_the_isr_while_the_preferred_replica_is_added() -> None:
    """The leader stays, and the added preferred replica enters the ISR: the count of imbalanced partitions changes."""
    ctx = ControllerContext(1, RULES_2_8, design_of(RULES_2_8))
    apply_update(ctx, UpdateContext("assignments", {TPS[0]: ReplicaAssignment((1, 2), (1,))}))
    for isr in ((2,), (2, 1), (2,)):
        apply_state_change(ctx, StateChange(TPS[0], PartitionState.NEW, PartitionState.ONLINE, LeaderAndIsr(2, isr)))
        assert ctx.preferred_replica_imbalance_count == counted(ctx)[1] == len(isr) - 1


def test_the_counts_of_a_controller_are_right_all_the_way() -> None:
    """After every step of random runs the counts of every context are those of a full count, and sometimes above zero."""
    seen = set()
    for seed in range(5):
        world = cluster(faults=ALL_FAULTS)
        for _ in walk(world, seed, 60):
            for process in world.processes.values():
                ctx = process.driver.controller
                seen.add(counts := (ctx.offline_partition_count, ctx.preferred_replica_imbalance_count))
                assert counts == counted(ctx)
    assert {offline > 0 for offline, _ in seen} == {imbalance > 0 for _, imbalance in seen} == {True, False}


def test_a_broker_that_is_not_controller_has_an_empty_context() -> None:
    """In random runs only an active controller, or a broker with a suspended handler, has a controller context with values."""
    for seed in range(10):
        world = cluster()
        for action in walk(world, seed, 60):
            for process in world.processes.values():
                ctx, thread = process.driver.controller, process.driver.threads["controller"]
                if not ctx.is_active and thread.handler is None:
                    held = {name: value for name, value in context(ctx).items() if value and name != "active_controller_id"}
                    assert held == {}, (seed, action)


def test_a_copy_of_a_context_is_independent() -> None:
    """What a copy learns, the original does not, and the other way round."""
    ctx = known()
    apply_update(ctx, UpdateContext("replica_states", {PartitionReplica(T0, 1): ReplicaState.ONLINE}))
    before = context(ctx)
    twin = ctx.copy()
    for learn in (
        UpdateContext("leadership", clear=True),
        UpdateContext("all_topics", ("x",)),
        UpdateContext("replica_states", clear=True),
        UpdateContext("controller_epoch", 9),
    ):
        apply_update(twin, learn)
    assert context(ctx) == before
    assert context(twin) != before
