"""The partition state machine. Read PARTITION_TRANSITIONS first: everything else serves it.

Source: PartitionStateMachine.scala (2.8).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, NamedTuple

from kcontrol.controller.context import ControllerContext
from kcontrol.controller.election import STRATEGIES, Candidates, Elected
from kcontrol.controller.requests import RequestBatch
from kcontrol.effects import Commit, Committed, Effect, Learn, Op, Read, Refusal, StateChange, Writes, Znode
from kcontrol.generations import LISTENERS
from kcontrol.model import RECOVERING, LeaderAndIsr, PartitionState, ReplicaAssignment, TopicPartition
from kcontrol.transitions import Transition, TransitionTable
from kcontrol.znodes import (
    decode_state,
    decode_topic,
    decode_topic_config,
    partition_path,
    partitions_path,
    state_path,
    topic_config_path,
    topic_path,
)

NON_EXISTENT, NEW, ONLINE, OFFLINE = PartitionState
IN_MEMORY = ""  # the strategy of a move that elects nobody: a change that has no rule

Steps = Generator[Effect, Any, "Moved"]


class Moved(NamedTuple):
    """What became of one call: who leads the subjects that were elected. Why others were not, the journal says."""

    elected: dict[TopicPartition, LeaderAndIsr]


class Question(NamedTuple):
    """What an action may look at besides the context: the strategy, what is stored now, whether unclean is allowed."""

    strategy: str
    stored: LeaderAndIsr | None = None
    unclean: bool = False


# ---------------------------------------------------------------- the actions: leadership, or the reason why there is none


def mark(ctx: ControllerContext, tp: TopicPartition, question: Question) -> None:
    """Return no leadership: the move changes the controller's memory alone."""


def initialize(ctx: ControllerContext, tp: TopicPartition, question: Question) -> LeaderAndIsr | str:
    """First leader and ISR of a new partition: the live replicas, the first one leading."""
    live = ctx.online_replicas(tp)
    if not live:
        return f"none of its replicas {list(ctx.replicas(tp))} is alive"
    return LeaderAndIsr(live[0], live, 0, -1, ctx.controller_epoch)


def elect(ctx: ControllerContext, tp: TopicPartition, question: Question) -> LeaderAndIsr | str:
    """The next leader of a partition that had one, from what is stored now and not from what is remembered."""
    stored = question.stored
    if stored is None:
        return "it has no state znode"
    if tp not in ctx.assignments:
        return "no replicas are assigned to it"
    if stored.controller_epoch > ctx.controller_epoch:
        return f"its state znode was written by controller epoch {stored.controller_epoch}, ours is {ctx.controller_epoch}"
    chosen = _choose(ctx, tp, question, stored)
    if chosen is None:
        thrown = "" if ctx.rules.pipelined else f"{STRATEGIES[question.strategy].error}: "
        return f"{thrown}no leader can be elected by strategy {question.strategy}"
    value = stored.decided(chosen.leader, chosen.isr)._replace(controller_epoch=ctx.controller_epoch)
    recovers = ctx.rules.leader_recovery and chosen.leader not in stored.isr
    return value._replace(leader_recovery_state=RECOVERING) if recovers else value


def _choose(ctx: ControllerContext, tp: TopicPartition, question: Question, stored: LeaderAndIsr) -> Elected | None:
    rule = ctx.replace.get(f"election.{question.strategy}", STRATEGIES[question.strategy].rule)
    assignment = ctx.assignments[tp]
    chosen: Elected | None = rule(
        Candidates(
            assignment.replicas,
            stored.isr,
            live=tuple(b for b in dict.fromkeys((*assignment.replicas, *stored.isr)) if ctx.is_replica_online(b, tp)),
            leaving=tuple(sorted(ctx.shutting_down_broker_ids)),
            target=ctx.target(tp),
            unclean=question.unclean,
            order=ctx.rules.shutdown_order if question.strategy == "controlled_shutdown" else ctx.rules.offline_order,
        )
    )
    return chosen


# fmt: off
PARTITION_TRANSITIONS = TransitionTable("partition", PartitionState, "PartitionStateMachine.scala (2.8)", [
    # source       target        phase     action      what it means
    (NON_EXISTENT, NEW,          "memory", mark,       "replicas are assigned, nobody leads yet"),
    (NEW,          ONLINE,       "create", initialize, "the first live replica leads, the live ones form the ISR"),
    (ONLINE,       ONLINE,       "elect",  elect,      "another election: preferred, reassigned or shutting down"),
    (OFFLINE,      ONLINE,       "elect",  elect,      "a replica takes over"),
    (NEW,          OFFLINE,      "memory", mark,       "no live replica when it should have started"),
    (ONLINE,       OFFLINE,      "memory", mark,       "its leader is gone"),
    (OFFLINE,      OFFLINE,      "memory", mark,       "still nobody leads"),
    (OFFLINE,      NON_EXISTENT, "memory", mark,       "its topic is deleted"),
])
# fmt: on


# ---------------------------------------------------------------- the machine


def move(
    ctx: ControllerContext,
    subjects: Iterable[TopicPartition],
    target: PartitionState,
    strategy: str = "offline",
    *,
    allow_unclean: bool = False,
) -> Steps:
    """Bring every subject to `target`, phase by phase, then tell the brokers in one batch.

    A handler says `yield from move(...)`. Illegal moves are refused and the rest goes on.
    Source: ZkPartitionStateMachine.handleStateChanges and doHandleStateChanges (2.8).
    """
    moved = Moved({})
    subjects = tuple(subjects)
    if not subjects:
        return moved
    if ctx.rules.design == LISTENERS and not ctx.machines_started:
        return moved
    batch = RequestBatch()
    for together in (subjects,) if ctx.rules.pipelined else zip(subjects):
        yield from _move(ctx, batch, together, target, Question(strategy, unclean=allow_unclean), moved)
    yield from batch.send(ctx)
    return moved


def _move(
    ctx: ControllerContext,
    batch: RequestBatch,
    subjects: tuple[TopicPartition, ...],
    target: PartitionState,
    question: Question,
    moved: Moved,
) -> Generator[Effect, Any, None]:
    phases = _by_phase(ctx, subjects, target)
    if refused := phases.get(""):
        yield Commit(tuple(Refusal(tp, ctx.partition_state(tp), target, "no such transition", True) for tp in refused))
    if marked := phases.get("memory"):
        if target is NEW and ctx.rules.rereads_assignment:
            yield from _reread(marked)
        yield Commit(tuple([_decide(ctx, tp, target, Question(IN_MEMORY), None) for tp in marked]))
    if new := phases.get("create"):
        yield from _create(ctx, batch, new, target, moved)
    if waiting := phases.get("elect"):
        yield from _elect(ctx, batch, waiting, target, question, moved)


def _reread(partitions: list[TopicPartition]) -> Generator[Effect, Any, None]:
    """Source: PartitionStateMachine.assignReplicasToPartitions (0.8.1)."""
    znodes: tuple[Znode | None, ...] = yield Read(tuple(topic_path(tp.topic) for tp in partitions))
    stored = {tp: decode_topic(znode.data).partitions for tp, znode in zip(partitions, znodes, strict=True) if znode}
    yield Learn("assignments", {tp: stored.get(tp, {}).get(tp.partition, ReplicaAssignment(())) for tp in partitions})


def _row(ctx: ControllerContext, source: PartitionState, target: PartitionState) -> Transition | None:
    row = PARTITION_TRANSITIONS.find(source, target)
    if source is target is OFFLINE and not ctx.rules.offline_again:
        return None
    mine = ctx.replace.get(f"partition.({source}, {target})") if row and ctx.replace else None
    return row._replace(action=mine) if row and mine else row


def _by_phase(
    ctx: ControllerContext, subjects: tuple[TopicPartition, ...], target: PartitionState
) -> dict[str, list[TopicPartition]]:
    rows = {source: _row(ctx, source, target) for source in PartitionState}
    phases: dict[str, list[TopicPartition]] = {}
    for tp in subjects:
        row = rows[ctx.partition_state(tp)]
        phases.setdefault(row.phase if row else "", []).append(tp)
    return phases


def _decide(
    ctx: ControllerContext, tp: TopicPartition, target: PartitionState, question: Question, write: Any
) -> StateChange | Refusal:
    source = ctx.partition_state(tp)
    not_needed = question.strategy == "preferred" and ctx.rules.leads_already == "not needed"
    if not_needed and _is_led_as_preferred(ctx, tp, question.stored):
        return StateChange(tp, source, target, rule="not needed")
    row = _row(ctx, source, target)
    assert row is not None, "the phases hold legal moves only"
    value = row.action(ctx, tp, question)
    if isinstance(value, str):
        return Refusal(tp, source, target, value)
    unclean = value is not None and question.stored is not None and value.leader not in question.stored.isr
    return StateChange(tp, source, target, value, write, "unclean" if unclean else question.strategy)


def _is_led_as_preferred(ctx: ControllerContext, tp: TopicPartition, stored: LeaderAndIsr | None) -> bool:
    """Source: PreferredReplicaPartitionLeaderSelector and LeaderElectionNotNeededException (0.8.1)."""
    if stored is None or stored.controller_epoch > ctx.controller_epoch:
        return False
    cached, replicas = ctx.leadership.get(tp), ctx.replicas(tp)
    return bool(replicas) and cached is not None and cached.leader == replicas[0]


def _create(
    ctx: ControllerContext, batch: RequestBatch, new: list[TopicPartition], target: PartitionState, moved: Moved
) -> Generator[Effect, Any, None]:
    """Parents first, then the state znodes; what was there already stays New.

    Source: initializeLeaderAndIsrForPartitions (2.8).
    """
    plan = [_decide(ctx, tp, target, Question("initialize"), "create") for tp in new]
    ready = [change.subject for change in plan if isinstance(change, StateChange)]
    if ready:
        topics = dict.fromkeys(tp.topic for tp in ready)
        yield Writes(tuple((Op("create", partitions_path(topic)),) for topic in topics))
        yield Writes(tuple((Op("create", partition_path(tp)),) for tp in ready if isinstance(tp, TopicPartition)))
    answer: Committed = yield Commit(tuple(plan))
    for change in answer.done:
        tp, value = change.subject, change.value
        assert isinstance(tp, TopicPartition) and value is not None
        moved.elected[tp] = value
        batch.add_leader_and_isr(ctx, value.isr, tp, value, ctx.assignments[tp], is_new=True)


def _elect(
    ctx: ControllerContext,
    batch: RequestBatch,
    waiting: list[TopicPartition],
    target: PartitionState,
    question: Question,
    moved: Moved,
) -> Generator[Effect, Any, None]:
    """Read, decide, write; those that lost a race once more, without limit. Source: doElectLeaderForPartitions (2.8)."""
    todo = tuple(waiting)
    while todo:
        znodes: tuple[Znode | None, ...] = yield Read(tuple(map(state_path, todo)))
        stored = {tp: decode_state(z.data, z.stat.version) for tp, z in zip(todo, znodes, strict=True) if z}
        unclean = yield from _unclean(ctx, stored, question)
        plan = [_decide(ctx, tp, target, question._replace(stored=stored.get(tp), unclean=tp in unclean), "set") for tp in todo]
        answer: Committed = yield Commit(tuple(plan))
        for change in answer.done:
            _announce(ctx, batch, change, question.strategy, moved)
        todo = tuple(tp for tp in answer.lost if isinstance(tp, TopicPartition))


def _announce(ctx: ControllerContext, batch: RequestBatch, change: StateChange, strategy: str, moved: Moved) -> None:
    tp, value = change.subject, change.value
    assert isinstance(tp, TopicPartition)
    if value is None:  # a learner's own action may move without deciding
        return
    moved.elected[tp] = value
    batch.add_leader_and_isr(ctx, recipients(ctx, tp, strategy), tp, value, ctx.assignments[tp], is_new=False)


def recipients(ctx: ControllerContext, tp: TopicPartition, strategy: str) -> tuple[int, ...]:
    """Who is sent LeaderAndIsr after an election, in the order of the assignment; some of them may be dead."""
    assignment = ctx.assignments[tp]
    return {
        "online replicas": lambda: ctx.online_replicas(tp),
        "target replicas": lambda: ctx.target(tp),
        "all replicas": lambda: assignment.replicas,
        "online or leaving replicas": lambda: ctx.online_replicas(tp, include_shutting_down=True),
    }[STRATEGIES[strategy].recipients]()


def _unclean(
    ctx: ControllerContext, stored: dict[TopicPartition, LeaderAndIsr], question: Question
) -> Generator[Effect, Any, frozenset[TopicPartition]]:
    """Those partitions that may elect outside the ISR: none of it is online, and the topic or the broker's default allows it.

    Source: collectUncleanLeaderElectionState (2.8).
    """
    if question.strategy != "offline":
        return frozenset()
    hopeless = [tp for tp, value in stored.items() if not any(ctx.is_replica_online(b, tp) for b in value.isr)]
    if not hopeless or question.unclean or ctx.rules.unclean == "always":
        return frozenset(hopeless)
    allowed = yield from unclean_allowed(ctx, (tp.topic for tp in hopeless))
    return frozenset(tp for tp in hopeless if allowed[tp.topic])


def unclean_allowed(ctx: ControllerContext, topics: Iterable[str]) -> Generator[Effect, Any, dict[str, bool]]:
    """Whether each of these topics, or the broker's default, allows unclean elections, as ZooKeeper says now."""
    topics = tuple(dict.fromkeys(topics))
    znodes: tuple[Znode | None, ...] = yield Read(tuple(map(topic_config_path, topics)))
    return {topic: _allows_unclean(ctx, znode) for topic, znode in zip(topics, znodes, strict=True)}


def _allows_unclean(ctx: ControllerContext, znode: Znode | None) -> bool:
    overrides = decode_topic_config(znode.data) if znode else {}
    if "unclean.leader.election.enable" in overrides:
        return overrides["unclean.leader.election.enable"].strip().lower() == "true"
    default = ctx.config.unclean_leader_election_enable
    return ctx.rules.unclean_default if default is None else default
