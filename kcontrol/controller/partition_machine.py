"""The partition state machine: its table, the actions of the rows, and the machine that runs them.

Rules of the file:

* Every transition of a partition goes through PARTITION_TRANSITIONS. A handler names partitions and
  a target state, and never sets a state; only a failover sets first states
  (`failover_steps.start_partition_machine`).
* An action is a pure function. It returns a LeaderAndIsr, or a text that says why no leader can be
  elected, or None where the row changes memory alone. It writes nothing and sends nothing.
* The machine turns the result of an action into a StateChange, which the driver commits
  (`driver/driver.py`): it writes the state znode, then changes memory, then appends one record to
  the journal of the run. So memory never holds leadership that ZooKeeper has refused.
* An election reads the state znode first, and its write names the version that it has read. After a
  version conflict the machine reads, decides and writes again, without limit, for the partitions in
  conflict alone.
* A pair of states without a row is refused with one record; the other partitions continue.

Theory. A partition is NonExistent, New, Online or Offline. No znode stores this state. The state
znode stores only the leadership: leader, ISR, leader epoch and controller epoch. Each new
controller therefore computes the states again: New without leadership, Online with a live leader,
Offline with a dead leader.

Why the table looks as it does. Only the rows to Online write a znode. New to Online creates the
state znode, since no leader has ever been elected; the other rows to Online set the znode, and
count the leader epoch up, so that a broker can ignore requests about an older leader. Online to
Online has a row, since a preferred election, a reassignment and a controlled shutdown replace a
leader that is alive. Offline is not a failure of the machine: it is the state of a partition that
waits for an election, and each event that can help tries again. A deleted partition goes through
Offline to NonExistent, so a New and an Offline partition need a row to Offline too.

What the table does not say:

* Which replica becomes leader: STRATEGIES in `leader_election.py`.
* That an election succeeds: if the action returns a reason, the partition stays in its state.
* When a transition happens: the handlers, such as `broker_changes.on_replicas_become_offline`.
* Other changes of the ISR: AlterIsr (`isr_changes.py`), replicas that go Offline.
* What brokers receive: `recipients` below, and `request_batch.py`.
* What another design decides: the rule `pipelined` (`controller_rules.py`), and `Design.machines`.

Read next: `leader_election.py`, `replica_machine.py`, then `broker_changes.py`, which calls both.
Source: PartitionStateMachine.scala (2.8), with validPreviousStates of PartitionState at its end.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kcontrol.controller.context import ControllerContext
from kcontrol.controller.leader_election import STRATEGIES, Elected, ElectionInput
from kcontrol.controller.request_batch import RequestBatch
from kcontrol.controller.unclean_elections import partitions_for_unclean_election
from kcontrol.core import effects
from kcontrol.core import znodes as zk
from kcontrol.core.effects import Commit, FailedStateChange, Handler, Op, Read, StateChange
from kcontrol.core.model import RECOVERING, LeaderAndIsr, PartitionState, TopicPartition
from kcontrol.core.transitions import Transition, TransitionTable

NON_EXISTENT, NEW, ONLINE, OFFLINE = PartitionState
IN_MEMORY = ""  # the strategy of a transition without an election

Partitions = tuple[TopicPartition, ...]


class TransitionResult(NamedTuple):
    """The result of `handle_state_changes`: the new leadership of each elected partition."""

    elected: dict[TopicPartition, LeaderAndIsr]


class TransitionInput(NamedTuple):
    """The input of a partition's transition: election strategy and state znode.

    `stored` is the leadership in the znode, None if the znode is missing or not read. `unclean`
    allows a leader outside the ISR.
    """

    # Such as "offline"; "initialize" for a new state znode, "" for a transition in memory.
    strategy: str
    stored: LeaderAndIsr | None = None
    unclean: bool = False


class Call(NamedTuple):
    """The values of one call of `handle_state_changes`, such as its target state and batch."""

    target: PartitionState
    # The legal transitions to `target` (rows of PARTITION_TRANSITIONS), by source state.
    rows: dict[PartitionState, Transition]
    # The election strategy and `unclean`, which hold for all partitions; `stored` is None.
    question: TransitionInput
    # The requests that are sent after the transitions.
    batch: RequestBatch
    # The new leadership of each partition that is elected so far.
    moved: TransitionResult


# ---------------------------------------------------------------- the actions


def memory_only(ctx: ControllerContext, tp: TopicPartition, question: TransitionInput) -> None:
    """The transition writes nothing to ZooKeeper."""


def first_leader(
    ctx: ControllerContext, tp: TopicPartition, question: TransitionInput
) -> LeaderAndIsr | str:
    """Return a leadership: the leader is the first online replica, the ISR all online replicas.

    If no replica is online, return a text with the reason.

    Source: ZkPartitionStateMachine.initializeLeaderAndIsrForPartitions (2.8).
    """
    live = ctx.online_replicas(tp)
    if not live:
        return f"none of its replicas {list(ctx.replicas(tp))} is alive"
    return LeaderAndIsr(live[0], live, 0, -1, ctx.controller_epoch)


def elect_leader(
    ctx: ControllerContext, tp: TopicPartition, question: TransitionInput
) -> LeaderAndIsr | str:
    """Return the next leadership of a partition, elected from its state znode `question.stored`.

    If no leader can be elected, return a text with the reason.

    Source: ZkPartitionStateMachine.doElectLeaderForPartitions (2.8); LeaderRecoveryState, KIP-704
    (3.2).
    """
    stored = question.stored
    if stored is None:
        return "it has no state znode"
    if tp not in ctx.assignments:
        return "no replicas are assigned to it"
    if stored.controller_epoch > ctx.controller_epoch:
        theirs, ours = stored.controller_epoch, ctx.controller_epoch
        return f"its state znode was written by controller epoch {theirs}, ours is {ours}"
    chosen = _choose(ctx, tp, question, stored)
    if chosen is None:
        thrown = "" if ctx.rules.pipelined else f"{STRATEGIES[question.strategy].error}: "
        return f"{thrown}no leader can be elected by strategy {question.strategy}"
    value = stored.new_leader_and_isr(chosen.leader, chosen.isr, ctx.controller_epoch)
    recovers = ctx.rules.leader_recovery and chosen.leader not in stored.isr
    return value._replace(leader_recovery_state=RECOVERING) if recovers else value


def _choose(
    ctx: ControllerContext, tp: TopicPartition, question: TransitionInput, stored: LeaderAndIsr
) -> Elected | None:
    rule = ctx.changes.strategies.get(question.strategy, STRATEGIES[question.strategy].rule)
    assignment = ctx.assignments[tp]
    known = dict.fromkeys((*assignment.replicas, *stored.isr))
    chosen: Elected | None = rule(
        ElectionInput(
            assignment.replicas,
            stored.isr,
            live_replicas=tuple(b for b in known if ctx.is_replica_online(b, tp)),
            shutting_down_brokers=tuple(sorted(ctx.shutting_down_broker_ids)),
            target_replicas=ctx.target_replicas(tp),
            unclean_allowed=question.unclean,
            order=ctx.rules.shutdown_order
            if question.strategy == "controlled_shutdown"
            else ctx.rules.offline_order,
        )
    )
    return chosen


Row = Transition

# fmt: off
SOURCE = "PartitionStateMachine.scala (2.8)"
PARTITION_TRANSITIONS = TransitionTable("partition", PartitionState, SOURCE, [
    #   source        target        action      what it means
    Row(NON_EXISTENT, NEW,          memory_only, "replicas are assigned, no leader is elected yet"),
    Row(NEW,          ONLINE,       first_leader, "the live replicas form the ISR", write="create"),
    Row(ONLINE,       ONLINE,       elect_leader, "a live leader is replaced", write="set"),
    Row(OFFLINE,      ONLINE,       elect_leader, "a new leader is elected", write="set"),
    Row(NEW,          OFFLINE,      memory_only, "its topic is deleted before it had a leader"),
    Row(ONLINE,       OFFLINE,      memory_only, "its leader is dead, or its topic is deleted"),
    Row(OFFLINE,      OFFLINE,      memory_only, "it still has no leader", since="0.8.1"),
    Row(OFFLINE,      NON_EXISTENT, memory_only, "its topic is deleted"),
])
# fmt: on


# ---------------------------------------------------------------- the machine


def handle_state_changes(
    ctx: ControllerContext,
    subjects: Iterable[TopicPartition],
    target: PartitionState,
    strategy: str = "offline",
    *,
    allow_unclean: bool = False,
) -> Handler:
    """Move the partitions `subjects` to `target`, send the requests, return a `TransitionResult`.

    `strategy` is a name in STRATEGIES; with `allow_unclean` "offline" may elect a leader outside
    the ISR.

    Source: ZkPartitionStateMachine.handleStateChanges and doHandleStateChanges (2.8).
    """
    moved = TransitionResult({})
    subjects = tuple(subjects)
    is_stopped = ctx.design.starts_machines and not ctx.machines_started
    if is_stopped or not subjects:
        return moved
    # Transitions in memory come first, then new state znodes, then elections.
    question = TransitionInput(strategy, unclean=allow_unclean)
    call = Call(target, _rows(ctx, target), question, RequestBatch(), moved)
    # An illegal transition does not stop the other transitions.
    for together in (subjects,) if ctx.rules.pipelined else zip(subjects):
        yield from _do_handle_state_changes(ctx, call, together)
    yield from call.batch.send_requests_to_brokers(ctx)
    return moved


def _do_handle_state_changes(ctx: ControllerContext, call: Call, subjects: Partitions) -> Handler:
    refused, by_write = _by_write(ctx, call, subjects)
    if refused:
        yield Commit(tuple(_refused(ctx, call, tp) for tp in refused))
    if marked := by_write.get(None):
        if call.target is NEW and (reread := ctx.design.machines.before_new):
            yield from reread(ctx, marked)
        yield Commit(tuple([_decide(ctx, call, tp, TransitionInput(IN_MEMORY)) for tp in marked]))
    if new := by_write.get("create"):
        yield from _create(ctx, call, new)
    if waiting := by_write.get("set"):
        yield from _elect(ctx, call, tuple(waiting))


def _refused(ctx: ControllerContext, call: Call, tp: TopicPartition) -> FailedStateChange:
    return FailedStateChange(tp, ctx.partition_state(tp), call.target, "no such transition", True)


def _rows(ctx: ControllerContext, target: PartitionState) -> dict[PartitionState, Transition]:
    table = PARTITION_TRANSITIONS.for_(ctx.rules.release, ctx.changes)
    return {source: row for source in PartitionState if (row := table.find(source, target))}


def _by_write(
    ctx: ControllerContext, call: Call, subjects: Partitions
) -> tuple[list[TopicPartition], dict[str | None, list[TopicPartition]]]:
    """Return the partitions without a legal transition, and the others by their kind of write.

    The kind is "create" or "set" for a transition that writes the state znode, None for a
    transition in memory.
    """
    refused: list[TopicPartition] = []
    by_write: dict[str | None, list[TopicPartition]] = {}
    for tp in subjects:
        row = call.rows.get(ctx.partition_state(tp))
        (by_write.setdefault(row.write, []) if row else refused).append(tp)
    return refused, by_write


def _decide(
    ctx: ControllerContext, call: Call, tp: TopicPartition, question: TransitionInput
) -> StateChange | FailedStateChange:
    source, target = ctx.partition_state(tp), call.target
    rule, stored = question.strategy, question.stored
    is_needless = ctx.design.machines.is_election_needless
    if rule == "preferred" and is_needless and is_needless(ctx, tp, stored):
        return StateChange(tp, source, target, rule="not needed")
    row = call.rows[source]
    value = row.action(ctx, tp, question)
    if isinstance(value, str):
        return FailedStateChange(tp, source, target, value)
    if value is not None and stored is not None and value.leader not in stored.isr:
        rule = "unclean"
    return StateChange(tp, source, target, value, row.write, rule)


def _create(ctx: ControllerContext, call: Call, new: list[TopicPartition]) -> Handler:
    """Create the parents of the state znodes, then the state znodes with the decided leadership.

    A partition whose state znode exists already stays New; the others become Online.
    Source: ZkPartitionStateMachine.initializeLeaderAndIsrForPartitions (2.8).
    """
    plan = [_decide(ctx, call, tp, TransitionInput("initialize")) for tp in new]
    ready = [change.subject for change in plan if isinstance(change, StateChange)]
    if ready:
        topics = [zk.partitions_path(topic) for topic in dict.fromkeys(tp.topic for tp in ready)]
        partitions = [zk.partition_path(tp) for tp in ready if isinstance(tp, TopicPartition)]
        for paths in (topics, partitions):
            yield effects.fenced(*(Op("create", path) for path in paths))
    answer: effects.CommitResult = yield Commit(tuple(plan))
    for change in answer.finished:
        tp, value = change.subject, change.leadership
        assert isinstance(tp, TopicPartition) and value is not None
        call.moved.elected[tp] = value
        call.batch.add_leader_and_isr(ctx, value.isr, tp, value, is_new=True)


def _elect(ctx: ControllerContext, call: Call, todo: Partitions) -> Handler:
    """Elect leaders of `todo`: read the state znodes, decide, write.

    Repeat this, without limit, for each partition whose state znode has changed since it was read.

    Source: ZkPartitionStateMachine.doElectLeaderForPartitions (2.8), which repeats without limit.
    """
    strategy, always = call.question.strategy, call.question.unclean
    while todo:
        znodes: tuple[effects.Znode | None, ...] = yield Read(tuple(map(zk.state_path, todo)))
        stored = zk.decode_states(todo, znodes)
        unclean: frozenset[TopicPartition] = frozenset()
        if strategy == "offline":
            unclean = yield from partitions_for_unclean_election(ctx, stored, is_requested=always)
        questions = {tp: TransitionInput(strategy, stored.get(tp), tp in unclean) for tp in todo}
        plan = tuple([_decide(ctx, call, tp, questions[tp]) for tp in todo])
        answer: effects.CommitResult = yield Commit(plan)
        for change in answer.finished:
            _apply_and_notify(ctx, call, change)
        todo = tuple(tp for tp in answer.to_retry if isinstance(tp, TopicPartition))


def _apply_and_notify(ctx: ControllerContext, call: Call, change: StateChange) -> None:
    tp, value = change.subject, change.leadership
    assert isinstance(tp, TopicPartition)
    if value is None:  # the action of a learner's own row may return None
        return
    call.moved.elected[tp] = value
    brokers = recipients(ctx, tp, call.question.strategy)
    call.batch.add_leader_and_isr(ctx, brokers, tp, value)


def recipients(ctx: ControllerContext, tp: TopicPartition, strategy: str) -> tuple[int, ...]:
    """Return the brokers to which an election sends LeaderAndIsr, in assignment order.

    `strategy` is a name in STRATEGIES.
    """
    # Dead brokers among these brokers get no request.
    assignment = ctx.assignments[tp]
    # STRATEGIES has the kind of recipients of each strategy.
    return {
        "online replicas": lambda: ctx.online_replicas(tp),
        "target replicas": lambda: ctx.target_replicas(tp),
        "all replicas": lambda: assignment.replicas,
        "online or leaving replicas": lambda: ctx.online_replicas(tp, include_shutting_down=True),
    }[STRATEGIES[strategy].recipients]()
