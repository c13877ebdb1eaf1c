"""How a batch of moves becomes writes, memory and records: together or not at all, subject by subject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcontrol import effects as fx
from kcontrol.controller.context import apply_change
from kcontrol.model import PartitionReplica, TopicPartition
from kcontrol.runtime import fencing
from kcontrol.runtime.journal import RecordId
from kcontrol.znodes import encode_state, state_path

if TYPE_CHECKING:
    from kcontrol.runtime.driver import Driver, Thread

LOST = "BadVersion"


def fence(driver: Driver, expected: int | None) -> int:
    """The version of `/controller_epoch` that writes check: what the handler says, or what the context holds, or none at all."""
    if not driver.controller.rules.fenced_writes:
        return fencing.UNFENCED
    return driver.controller.controller_epoch_zk_version if expected is None else expected


def latest(thread: Thread) -> RecordId | None:
    """The last record of the handler's machines, or the record of its beginning."""
    return thread.changed.get(None, thread.begun)


def perform(driver: Driver, thread: Thread, changes: tuple[fx.StateChange | fx.Refusal, ...]) -> fx.Committed:
    """Write what is to be written in one pipeline; then, for each change in order, memory and its record."""
    writing = [c for c in changes if isinstance(c, fx.StateChange) and c.write]
    results = iter(_write(driver, thread, writing)) if writing else iter(())
    done: list[fx.StateChange] = []
    lost: list[fx.Subject] = []
    failed: list[tuple[fx.Subject, str]] = []
    for change in changes:
        if isinstance(change, fx.Refusal):
            _log_refusal(driver, thread, change)
            continue
        result = next(results) if change.write else None
        if result is None or result.is_ok:
            done.append(_carry_out(driver, thread, change, result))
        elif result.code == LOST:
            lost.append(change.subject)
            _log_move(driver, thread, "lost", change, reason=result.code, rule=change.rule)
        else:
            failed.append((change.subject, result.code))
            _log_move(driver, thread, "refuse", change, reason=result.code, illegal=False, rule=change.rule)
    return fx.Committed(tuple(done), tuple(lost), tuple(failed))


def _write(driver: Driver, thread: Thread, writing: list[fx.StateChange]) -> tuple[fx.Result, ...]:
    transactions = [(_op(change),) for change in writing]
    checked = fence(driver, None)
    outcome = fencing.write(driver.client, transactions, checked, thread.waits_for.answered if thread.waits_for else None)
    if outcome.error is not None:
        for ops, result in zip(transactions, outcome.results, strict=True):
            log_write(driver, thread, ops, result, checked)
        raise outcome.error
    return outcome.results


def _op(change: fx.StateChange) -> fx.Op:
    value = change.value
    assert value is not None and change.write is not None, "what is written has a value"
    version = value.zk_version if change.write == "set" else -1
    return fx.Op(change.write, state_path(_partition(change.subject)), encode_state(value), version)


def _partition(subject: fx.Subject) -> TopicPartition:
    return subject.topic_partition if isinstance(subject, PartitionReplica) else subject


def _carry_out(driver: Driver, thread: Thread, change: fx.StateChange, result: fx.Result | None) -> fx.StateChange:
    if result is not None and change.value is not None:
        change = change._replace(value=change.value._replace(zk_version=result.versions[0] or 0))
    apply_change(driver.controller, change)
    written = {"zxid": result.zxid, "fence": fence(driver, None)} if result else {}
    _log_move(driver, thread, "change", change, value=change.value, write=change.write, rule=change.rule, **written)
    return change


def _log_refusal(driver: Driver, thread: Thread, refusal: fx.Refusal) -> None:
    _log_move(driver, thread, "refuse", refusal, reason=refusal.reason, illegal=refusal.illegal)


def _log_move(driver: Driver, thread: Thread, kind: str, move: Any, **fields: Any) -> None:
    """A move is caused by the last move of the same partition within the handler, or else by the handler's beginning.

    A change from a state to the same one, with nothing written, is no cause of anything.
    """
    subject = move.subject
    tp = _partition(subject)
    machine = "partition" if tp is subject else "replica"
    cause = thread.changed.get(tp, thread.begun)
    record = driver.log(kind, cause, machine=machine, subject=subject, source=move.source, target=move.target, **fields)
    if kind != "change" or move.source is not move.target or move.write:
        thread.changed[tp] = record
    thread.changed[None] = record


def log_write(driver: Driver, thread: Thread, ops: tuple[fx.Op, ...], result: fx.Result, checked: int) -> RecordId:
    """One record per transaction: what was written, with the versions that came of it, or why nothing was, and the fence."""
    versions = result.versions or (None,) * len(ops)
    paths = result.paths or tuple(op.path for op in ops)
    written = [[op.kind, at, op.data, version, op.ephemeral] for op, at, version in zip(ops, paths, versions, strict=True)]
    fields = {"ops": written, "zxid": result.zxid, "error": None if result.is_ok else result.code, "fence": checked}
    return driver.log("write", thread.begun, **fields)
