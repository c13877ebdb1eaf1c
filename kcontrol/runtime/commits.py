"""How a batch of moves becomes writes, memory and records: together or not at all, subject by subject."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from kcontrol import effects as fx
from kcontrol.controller.context import apply_change
from kcontrol.model import LeaderAndIsr, PartitionReplica, TopicPartition
from kcontrol.runtime import fencing
from kcontrol.runtime.journal import RecordId, Spelled
from kcontrol.znodes import encode_state, state_path

if TYPE_CHECKING:
    from kcontrol.runtime.driver import Driver, Thread

LOST = "BadVersion"

Move = fx.StateChange | fx.Refusal


def fence(driver: Driver, expected: int | None) -> int:
    """The version of `/controller_epoch` that writes check: what the handler says, or what the context holds, or none at all."""
    if not driver.controller.rules.fenced_writes:
        return fencing.UNFENCED
    return driver.controller.controller_epoch_zk_version if expected is None else expected


def latest(thread: Thread) -> RecordId | None:
    """The last record of the handler's machines, or the record of its beginning."""
    return _cause(thread.begun, thread.changed.get(None))


def perform(driver: Driver, thread: Thread, changes: tuple[Move, ...]) -> fx.Committed:
    """Write what is to be written in one pipeline; then, in order, memory and one record for each change."""
    writing = [c for c in changes if isinstance(c, fx.StateChange) and c.write]
    moves = changes
    results: list[fx.Result | None] = [None] * len(changes)
    if writing:
        answers = iter(_write(driver, thread, writing))
        results = [next(answers) if isinstance(c, fx.StateChange) and c.write else None for c in changes]
        moves = tuple(map(_with_version, changes, results))
    outcomes = list(zip(moves, results, strict=True))
    done = tuple(m for m, r in outcomes if (r is None or r.is_ok) and isinstance(m, fx.StateChange))
    for change in done:
        apply_change(driver.controller, change)
    _log(driver, thread, moves, results)
    missed = [(m.subject, r.code) for m, r in outcomes if r is not None and not r.is_ok]
    lost = tuple(subject for subject, code in missed if code == LOST)
    return fx.Committed(done, lost, tuple((subject, code) for subject, code in missed if code != LOST))


def _write(driver: Driver, thread: Thread, writing: list[fx.StateChange]) -> tuple[fx.Result, ...]:
    transactions = [(_op(change),) for change in writing]
    checked = fence(driver, None)
    outcome = fencing.write(driver.client, transactions, checked, thread.waits_for.answered if thread.waits_for else None)
    if outcome.error is not None:
        log_writes(driver, thread, transactions, outcome.results, checked)
        raise outcome.error
    return outcome.results


def _op(change: fx.StateChange) -> fx.Op:
    value = change.value
    assert value is not None and change.write is not None, "what is written has a value"
    version = value.zk_version if change.write == "set" else -1
    return fx.Op(change.write, state_path(_partition(change.subject)), encode_state(value), version)


def _partition(subject: fx.Subject) -> TopicPartition:
    return subject.topic_partition if isinstance(subject, PartitionReplica) else subject


def _with_version(change: Move, result: fx.Result | None) -> Move:
    if result is None or not result.is_ok or isinstance(change, fx.Refusal) or change.value is None:
        return change
    subject, source, target, value, write, rule = change
    return fx.StateChange(subject, source, target, value and value._replace(zk_version=result.versions[0] or 0), write, rule)


def _log(driver: Driver, thread: Thread, moves: Sequence[Move], results: Sequence[fx.Result | None]) -> None:
    """A move is caused by the last move of the same partition within the handler, or else by the handler's beginning.

    A change from a state to the same one, with nothing written, is no cause of anything. The journal keeps columns: a value
    per field and move, and nothing that has to be looked through for garbage.
    """
    changed, causes, first = thread.changed, list[int | None](), driver.next_seq
    for seq, (move, result) in enumerate(zip(moves, results, strict=True), first):
        subject = move[0]
        tp = subject[0] if isinstance(subject, PartitionReplica) else subject
        causes.append(changed.get(tp))
        if move[1] is not move[2] or result is not None or isinstance(move, fx.Refusal):
            changed[tp] = seq
    if moves:
        changed[None] = first + len(moves) - 1
    at = 0
    for kind, run in groupby(moves, type):
        columns = tuple(zip(*run, strict=True))
        until = at + len(columns[0])
        spell = partial(SPELL[kind], thread.begun, fence(driver, None))
        driver.log_batch(spell, causes[at:until], results[at:until], *columns)
        at = until


def _cause(begun: RecordId | None, seq: int | None) -> RecordId | None:
    return begun if seq is None or begun is None else begun._replace(seq=seq)


def _spell_change(
    begun: RecordId | None,
    checked: int,
    after: int | None,
    result: fx.Result | None,
    subject: fx.Subject,
    source: fx.State,
    target: fx.State,
    value: LeaderAndIsr | None,
    write: str | None,
    rule: str,
) -> Spelled:
    """The record of a change, or of what became of it instead; its cause is named by its number."""
    fields = _fields(subject, source, target)
    if result is None or result.is_ok:
        written = {} if result is None else {"zxid": result.zxid, "fence": checked}
        return Spelled("change", _cause(begun, after), fields | {"value": value, "write": write, "rule": rule, **written})
    if result.code == LOST:
        return Spelled("lost", _cause(begun, after), fields | {"reason": result.code, "rule": rule})
    return Spelled("refuse", _cause(begun, after), fields | {"reason": result.code, "illegal": False, "rule": rule})


def _spell_refusal(
    begun: RecordId | None,
    checked: int,
    after: int | None,
    result: None,
    subject: fx.Subject,
    source: fx.State,
    target: fx.State,
    reason: str,
    illegal: bool,
) -> Spelled:
    return Spelled("refuse", _cause(begun, after), _fields(subject, source, target) | {"reason": reason, "illegal": illegal})


SPELL: dict[type, Callable[..., Spelled]] = {fx.StateChange: _spell_change, fx.Refusal: _spell_refusal}


def _fields(subject: fx.Subject, source: fx.State, target: fx.State) -> dict[str, Any]:
    machine = "replica" if isinstance(subject, PartitionReplica) else "partition"
    return {"machine": machine, "subject": subject, "source": source, "target": target}


def log_writes(
    driver: Driver, thread: Thread, transactions: Sequence[tuple[fx.Op, ...]], results: Sequence[fx.Result], checked: int
) -> None:
    """One record per transaction: what was written, with the versions that came of it, or why nothing was, and the fence."""
    driver.log_batch(partial(_spell_write, thread.begun, checked), transactions, results)


def _spell_write(begun: RecordId | None, checked: int, ops: tuple[fx.Op, ...], result: fx.Result) -> Spelled:
    versions = result.versions or (None,) * len(ops)
    paths = result.paths or tuple(op.path for op in ops)
    written = [[op.kind, at, op.data, version, op.ephemeral] for op, at, version in zip(ops, paths, versions, strict=True)]
    return Spelled(
        "write", begun, {"ops": written, "zxid": result.zxid, "error": None if result.is_ok else result.code, "fence": checked}
    )
