"""OPERATIONS: Kafka's delayed operation behind each timer of a group, and the steps that it takes.

A purgatory keeps operations that wait for a condition or for their timeout. Kafka's rules:

* tryCompleteElseWatch takes a new operation in three steps. (1) tryComplete: an operation whose
  condition holds is complete, and nothing else happens. (2) The operation is put on the watch list
  of its key. (3) tryComplete again; an operation that is still not complete gets a timer.
* checkAndComplete calls tryComplete for each operation on the watch list of a key.
* forceComplete completes an operation once: in one of these tries, or when its timer fires. It
  cancels the timer.

The table does not say when an operation is complete: the handlers do (`is_complete` of `SetTimer`
and `CancelTimer`, `rebalance.py`). One thread runs all handlers of a coordinator here, so both
tries of tryCompleteElseWatch have one result; in Kafka another thread may fulfil the condition
between them.

The driver writes the steps to the journal if the context says so (`logs_operations`). They change
no state: the other records of a run and their order are equal with and without these steps.

Read next: `timing_wheel.py`, and `views/delayed_operations.py`, which reads the records.

Source: DelayedOperation.scala, DelayedHeartbeat.scala, DelayedJoin.scala (0.9, 2.8),
DelayedSync.scala (2.8.2).
"""

from collections.abc import Iterator
from typing import Any

from kcontrol.core.effects import CancelTimer, SetTimer
from kcontrol.core.releases import is_since
from kcontrol.group import events as e
from kcontrol.group.context import GroupContext

# fmt: off
OPERATIONS: dict[type, tuple[str, str, str]] = {
    # event                    operation             purgatory    key
    e.SessionTimedOut:        ("DelayedHeartbeat",   "Heartbeat", "MemberKey"),
    e.PendingMemberTimedOut:  ("DelayedHeartbeat",   "Heartbeat", "MemberKey"),
    e.JoinTimedOut:           ("DelayedJoin",        "Rebalance", "GroupJoinKey"),
    e.InitialJoinTimedOut:    ("InitialDelayedJoin", "Rebalance", "GroupJoinKey"),
    e.SyncTimedOut:           ("DelayedSync",        "Rebalance", "GroupSyncKey"),
}
# fmt: on


def steps(
    ctx: GroupContext | None, effect: SetTimer | CancelTimer, timer: Any
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the kind and the fields of each journal record about a timer's delayed operation.

    `effect` sets or cancels the timer; `timer` is the timer of this name before the effect, or
    None. Without a group coordinator (`ctx` None) or without `ctx.logs_operations` yield nothing.

    Source: tryCompleteElseWatch, checkAndComplete (0.9, 2.8).
    """
    # A timer that belongs to no delayed operation has no steps either (`_named` returns {}).
    if ctx is None or not ctx.logs_operations:
        return
    # First the checkAndComplete of the operation whose timer was set.
    if named := _named(ctx, effect.timer, timer and timer.event):
        is_complete = isinstance(effect, SetTimer) or effect.is_complete
        yield "check_and_complete", named | {"is_complete": is_complete}
    if isinstance(effect, SetTimer) and (named := _named(ctx, effect.timer, effect.event)):
        # The steps of tryCompleteElseWatch.
        yield "try_complete", named | {"attempt": 1, "is_complete": effect.is_complete}
        if not effect.is_complete:
            yield "watch_operation", named
            yield "try_complete", named | {"attempt": 2, "is_complete": False}


def _named(ctx: GroupContext, timer: str, event: Any) -> dict[str, Any]:
    """Return the fields that identify the delayed operation of a timer in journal records.

    The fields are `operation`, `purgatory`, `key`, such as "MemberKey(my-group,member-1)", and
    `timer`. Return {} if `event`, which the timer queues, belongs to no delayed operation.

    Source: DelayedOperationKey.scala (0.9, 2.8.2).
    """
    if (row := OPERATIONS.get(type(event))) is None:
        return {}
    operation, purgatory, kind = row
    if kind == "GroupJoinKey" and not is_since("2.8.0", ctx.rules.release):
        kind = "GroupKey"
    key = f"{event.group_id},{event.member_id}" if kind == "MemberKey" else event.group_id
    key = f"{kind}({key})"
    return {"operation": operation, "purgatory": purgatory, "key": key, "timer": timer}
