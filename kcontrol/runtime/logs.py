"""How a change of a log becomes memory and one record: the broker's logs are reached through here alone.

Every record has the partition, and, unless the log is deleted, under `now` what the change has made of everything but the records
themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcontrol import effects as fx
from kcontrol.controller.context import apply_learn
from kcontrol.model import TopicPartition
from kcontrol.replica import log as logs
from kcontrol.replica.context import BrokerContext
from kcontrol.replica.log import ReplicaLog
from kcontrol.runtime.journal import RecordId

if TYPE_CHECKING:
    from kcontrol.runtime.driver import Driver, Thread

IN_MEMORY_OR_SMALL = ReplicaLog._fields[1:]


def write(driver: Driver, thread: Thread, effect: fx.WriteLog) -> None:
    """What a handler asks for."""
    store(driver, thread.begun, effect.partition, effect.change)


def store(driver: Driver, cause: RecordId | None, tp: TopicPartition, change: logs.Change) -> None:
    """Change a log and say so; a change that changes nothing leaves no record."""
    was_there, before = tp in driver.broker.logs, driver.broker.logs.get(tp, ReplicaLog())
    after = change_in(driver.broker, tp, change)
    if isinstance(change, logs.Delete) and was_there:
        driver.log("log_delete", cause, partition=tp, removed=before.records)
    if isinstance(change, logs.Delete) or after == before:
        return
    now = difference(before, after)
    match change:
        case logs.Append(records):
            driver.log("log_append", cause, partition=tp, records=records, now=now)
        case logs.Truncate(offset, rule):
            driver.log("log_truncate", cause, partition=tp, offset=offset, removed=before.records[offset:], rule=rule, now=now)
        case logs.MoveHighWatermark():
            driver.log("high_watermark", cause, partition=tp, now=now)
        case logs.TakeRole(_, _, leads):
            driver.log("log_role", cause, partition=tp, leads=leads, now=now)
        case logs.NoteFollower(follower, offset):
            driver.log("follower_end", cause, partition=tp, follower=follower, offset=offset, now=now)
        case logs.Configure():
            driver.log("log_config", cause, partition=tp, now=now)
        case logs.Checkpoint():
            driver.log("checkpoint", cause, partition=tp, now=now)


def change_in(broker: BrokerContext, tp: TopicPartition, change: logs.Change) -> ReplicaLog:
    """Change a log of a context, and return it."""
    after = logs.apply(broker.logs.get(tp, ReplicaLog()), change)
    apply_learn(broker, fx.Learn("logs", remove=(tp,)) if isinstance(change, logs.Delete) else fx.Learn("logs", {tp: after}))
    return after


def difference(before: ReplicaLog, after: ReplicaLog) -> dict[str, Any]:
    """What differs between two logs besides their records."""
    return {name: getattr(after, name) for name in IN_MEMORY_OR_SMALL if getattr(before, name) != getattr(after, name)}


def checkpoint(driver: Driver) -> None:
    """Write the high watermarks of all replicas to disk. Source: ReplicaManager.checkpointHighWatermarks (0.8 on)."""
    for tp, log in list(driver.broker.logs.items()):
        if log.checkpoint != log.high_watermark:
            store(driver, None, tp, logs.Checkpoint())
