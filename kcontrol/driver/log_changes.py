"""Changes the logs of a broker's replicas, and writes one journal record for each change.

A journal record has the partition and `now`: the new values of the log's attributes that have changed, without the log records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcontrol.broker import log as logs
from kcontrol.broker.context import BrokerContext
from kcontrol.broker.log import ReplicaLog
from kcontrol.controller.context import apply_update
from kcontrol.core import effects as fx
from kcontrol.core.model import TopicPartition
from kcontrol.journal.journal import RecordId

if TYPE_CHECKING:
    from kcontrol.driver.driver import Driver
    from kcontrol.driver.threads import Thread

IN_MEMORY_OR_SMALL = ReplicaLog._fields[1:]
WITHOUT_FIELDS: dict[type, str] = {logs.UpdateHighWatermark: "high_watermark", logs.UpdateConfig: "log_config",
                                   logs.CheckpointHighWatermark: "checkpoint"}  # fmt: skip
"""The kind of record of each change that has no fields besides its partition and `now`."""


def update_log(driver: Driver, thread: Thread, effect: fx.UpdateLog) -> None:
    apply_log_change(driver, thread.begin_record, effect.partition, effect.change)


def apply_log_change(driver: Driver, cause: RecordId | None, tp: TopicPartition, change: logs.Change) -> None:
    """Change this broker's log of a partition and write a journal record, unless the log stays equal.

    `cause` is the journal record that caused the change; None means that no journal record caused it.
    """
    was_there, before = tp in driver.broker.logs, driver.broker.logs.get(tp, ReplicaLog())
    change = change._replace(now_ms=driver.clock()) if isinstance(change, logs.AppendRecords) else change
    after = change_log(driver.broker, tp, change)
    if isinstance(change, logs.DeleteLog) and was_there:
        driver.log("log_delete", cause, partition=tp, removed=before.records)
    if isinstance(change, logs.DeleteLog) or after == before:
        return
    now = difference(before, after)
    match change:
        case logs.AppendRecords(records):
            driver.log("log_append", cause, partition=tp, records=records, now=now)
        case logs.Truncate(offset, rule):
            driver.log("log_truncate", cause, partition=tp, offset=offset, removed=before.since(offset), rule=rule, now=now)
        case logs.ReplaceSegments():
            driver.log("log_clean", cause, partition=tp, removed=before.without(after), now=now)
        case logs.BecomeLeaderOrFollower(_, _, leads):
            driver.log("log_role", cause, partition=tp, leads=leads, now=now)
        case logs.UpdateFollowerState(follower, offset):
            driver.log("follower_end", cause, partition=tp, follower=follower, offset=offset, now=now)
        case logs.ExpireDelayedAppend(offset):
            driver.log("append_timeout", cause, partition=tp, offset=offset, now=now)
        case _:
            driver.log(WITHOUT_FIELDS[type(change)], cause, partition=tp, now=now)


def change_log(broker: BrokerContext, tp: TopicPartition, change: logs.Change) -> ReplicaLog:
    """A missing log is created, a deleted one is removed."""
    after = logs.apply(broker.logs.get(tp, ReplicaLog()), change)
    put, remove = (None, (tp,)) if isinstance(change, logs.DeleteLog) else ({tp: after}, ())
    apply_update(broker, fx.UpdateContext("logs", put, remove=remove))
    return after


def difference(before: ReplicaLog, after: ReplicaLog) -> dict[str, Any]:
    """Return the attributes of `after` that differ from `before`, by name. Records are not compared."""
    return {name: getattr(after, name) for name in IN_MEMORY_OR_SMALL if getattr(before, name) != getattr(after, name)}


def checkpoint(driver: Driver) -> None:
    """Write to disk each high watermark of this broker's replicas that differs from its last checkpoint.

    Each write has a journal record.

    Source: ReplicaManager.checkpointHighWatermarks (0.8 on).
    """
    for tp, log in list(driver.broker.logs.items()):
        if log.checkpoint != log.high_watermark:
            apply_log_change(driver, None, tp, logs.CheckpointHighWatermark())
