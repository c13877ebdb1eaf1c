"""Commits a batch of transitions: writes state znodes, changes the context, writes journal records.

Each transition succeeds or fails as a whole and independently of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from kcontrol.controller.context import apply_state_change
from kcontrol.core import effects as fx
from kcontrol.core.model import LeaderAndIsr, PartitionReplica, TopicPartition
from kcontrol.core.znodes import encode_state, state_path
from kcontrol.driver import fenced_writes
from kcontrol.journal.journal import RecordId, RecordParts

if TYPE_CHECKING:
    from kcontrol.driver.driver import Driver
    from kcontrol.driver.threads import Thread

CONFLICT = "BadVersion"

PlannedChange = fx.StateChange | fx.FailedStateChange


def expected_epoch_zk_version(driver: Driver, expected: int | None) -> int:
    """The version that a write checks; -1 before 2.1. `expected` overrides that of the controller's context."""
    if not driver.controller.rules.fenced_writes:
        return fenced_writes.UNFENCED
    return driver.controller.controller_epoch_zk_version if expected is None else expected


def latest_record(thread: Thread) -> RecordId | None:
    """The cause of a request: the handler's last transition, else its `begin`."""
    return _cause(thread.begin_record, thread.last_change_seq.get(None))


def commit(driver: Driver, thread: Thread, changes: tuple[PlannedChange, ...]) -> fx.CommitResult:
    """Write the state znodes of `changes` in one pipeline; then change the context, and write a journal record per transition.

    Raises ControllerMoved if the check of `/controller_epoch` fails with BadVersion, FenceCheckFailed for another error.
    """
    writing = [c for c in changes if isinstance(c, fx.StateChange) and c.write]
    transitions = changes
    results: list[fx.TransactionResult | None] = [None] * len(changes)
    if writing:
        answers = iter(_write(driver, thread, writing))
        results = [next(answers) if isinstance(c, fx.StateChange) and c.write else None for c in changes]
        transitions = tuple(map(_with_version, changes, results))
    outcomes = list(zip(transitions, results, strict=True))
    # The context changes for each transition whose write has succeeded or that needs no write. After a failed check the context
    # stays unchanged.
    done = tuple(m for m, r in outcomes if (r is None or r.is_ok) and isinstance(m, fx.StateChange))
    for change in done:
        apply_state_change(driver.controller, change)
    _log(driver, thread, transitions, results)
    failed = [(m.subject, r.code) for m, r in outcomes if r is not None and not r.is_ok]
    to_retry = tuple(subject for subject, code in failed if code == CONFLICT)
    return fx.CommitResult(done, to_retry, tuple((subject, code) for subject, code in failed if code != CONFLICT))


def _write(driver: Driver, thread: Thread, writing: list[fx.StateChange]) -> tuple[fx.TransactionResult, ...]:
    transactions = [(_op(change),) for change in writing]
    checked = expected_epoch_zk_version(driver, None)
    outcome = fenced_writes.write(driver.client, transactions, checked, thread.waits_for.answered if thread.waits_for else None)
    if outcome.error is not None:
        log_writes(driver, thread, transactions, outcome.results, checked)
        raise outcome.error
    return outcome.results


def _op(change: fx.StateChange) -> fx.Op:
    value = change.leadership
    assert value is not None and change.write is not None, "what is written has a value"
    version = value.zk_version if change.write == "set" else -1
    return fx.Op(change.write, state_path(_partition(change.subject)), encode_state(value), version)


def _partition(subject: fx.Subject) -> TopicPartition:
    return subject.topic_partition if isinstance(subject, PartitionReplica) else subject


def _with_version(change: PlannedChange, result: fx.TransactionResult | None) -> PlannedChange:
    if result is None or not result.is_ok or isinstance(change, fx.FailedStateChange) or change.leadership is None:
        return change
    value = LeaderAndIsr(*change.leadership[:3], result.versions[0] or 0, *change.leadership[4:])
    return fx.StateChange(*change[:3], value, *change[4:])


def _log(
    driver: Driver, thread: Thread, transitions: Sequence[PlannedChange], results: Sequence[fx.TransactionResult | None]
) -> None:
    """Write one journal record per transition.

    `results` has the result of each transition's write, None for a transition without a write.
    """
    changed, causes, first = thread.last_change_seq, list[int | None](), driver.next_seq
    for seq, (transition, result) in enumerate(zip(transitions, results, strict=True), first):
        subject = transition[0]
        tp = subject[0] if isinstance(subject, PartitionReplica) else subject
        # The cause is the last transition of the partition in this handler; without one, the journal record `begin`.
        causes.append(changed.get(tp))
        # A transition to its own state that writes nothing is no cause.
        if transition[1] is not transition[2] or result is not None or isinstance(transition, fx.FailedStateChange):
            changed[tp] = seq
    if transitions:
        changed[None] = first + len(transitions) - 1
    at = 0
    for kind, run in groupby(transitions, type):
        # The journal keeps columns, one value per field and transition, because many small objects would slow down garbage
        # collection.
        columns = tuple(zip(*run, strict=True))
        until = at + len(columns[0])
        factory = partial(RECORD_PARTS[kind], thread.begin_record, expected_epoch_zk_version(driver, None))
        driver.log_batch(factory, causes[at:until], results[at:until], *columns)
        at = until


def _cause(begin: RecordId | None, seq: int | None) -> RecordId | None:
    return begin if seq is None or begin is None else begin._replace(seq=seq)


def _parts_of_change(
    begin: RecordId | None,
    checked: int,
    seq: int | None,
    result: fx.TransactionResult | None,
    subject: fx.Subject,
    source: fx.State,
    target: fx.State,
    value: LeaderAndIsr | None,
    write: str | None,
    rule: str,
) -> RecordParts:
    """Return the kind (`change`, `conflict` or `failed_change`), the cause and the fields of a transition's journal record.

    The cause is this broker's record number `seq` or, if `seq` is None, `begin`: the record with which the handler began.
    """
    # `checked` is the version of `/controller_epoch` that the write checked, -1 without a check; `result` is the write's result,
    # None without a write. The parameters from `subject` on are the fields of the StateChange; `value` is its `leadership`.
    fields = _fields(subject, source, target)
    if result is None or result.is_ok:
        written = {} if result is None else {"zxid": result.zxid, "epoch_zk_version": checked}
        return RecordParts("change", _cause(begin, seq), fields | {"leadership": value, "write": write, "rule": rule, **written})
    if result.code == CONFLICT:
        return RecordParts("conflict", _cause(begin, seq), fields | {"reason": result.code, "rule": rule})
    return RecordParts("failed_change", _cause(begin, seq), fields | {"reason": result.code, "illegal": False, "rule": rule})


def _parts_of_failed_change(
    begin: RecordId | None,
    checked: int,
    seq: int | None,
    result: None,
    subject: fx.Subject,
    source: fx.State,
    target: fx.State,
    reason: str,
    illegal: bool,
) -> RecordParts:
    fields = _fields(subject, source, target) | {"reason": reason, "illegal": illegal}
    return RecordParts("failed_change", _cause(begin, seq), fields)


RECORD_PARTS: dict[type, Callable[..., RecordParts]] = {
    fx.StateChange: _parts_of_change, fx.FailedStateChange: _parts_of_failed_change,
}  # fmt: skip


def _fields(subject: fx.Subject, source: fx.State, target: fx.State) -> dict[str, Any]:
    machine = "replica" if isinstance(subject, PartitionReplica) else "partition"
    return {"machine": machine, "subject": subject, "source": source, "target": target}


def log_writes(
    driver: Driver,
    thread: Thread,
    transactions: Sequence[tuple[fx.Op, ...]],
    results: Sequence[fx.TransactionResult],
    checked: int,
) -> None:
    """One journal record per transaction; `checked` is the version of `/controller_epoch`, -1 without a check."""
    driver.log_batch(partial(_parts_of_write, thread.begin_record, checked), transactions, results)


def _parts_of_write(begin: RecordId | None, checked: int, ops: tuple[fx.Op, ...], result: fx.TransactionResult) -> RecordParts:
    versions = result.versions or (None,) * len(ops)
    paths = result.paths or tuple(op.path for op in ops)
    written = [[op.kind, at, op.data, version, op.ephemeral] for op, at, version in zip(ops, paths, versions, strict=True)]
    error = None if result.is_ok else result.code
    return RecordParts("write", begin, {"ops": written, "zxid": result.zxid, "error": error, "epoch_zk_version": checked})
