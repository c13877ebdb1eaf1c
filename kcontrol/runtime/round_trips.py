"""One suspended effect on its way: how it is performed, whole or, before 1.1, one path, transaction or change at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcontrol import effects as fx
from kcontrol.runtime import commits, fencing
from kcontrol.runtime.zookeeper import Written

if TYPE_CHECKING:
    from kcontrol.runtime.driver import Driver, Thread


def is_instant(effect: fx.Effect) -> bool:
    """Whether the driver performs this within the step. A commit is, unless it writes."""
    if isinstance(effect, fx.Commit):
        return not any(isinstance(change, fx.StateChange) and change.write for change in effect.changes)
    return not isinstance(effect, ROUND_TRIPS)


ROUND_TRIPS = (fx.Exists, fx.Read, fx.Children, fx.Transaction, fx.Writes, fx.ReadLog, fx.Release, fx.Sleep, fx.AwaitRequests)


class RoundTrip:
    """The effect that a handler waits for, and the answers to the parts of it that were performed already.

    `answered` is what a part that has met a connection loss had been answered by then.
    """

    __slots__ = ("answered", "effect", "parts", "so_far")

    def __init__(self, effect: Any, *, pipelined: bool) -> None:
        self.effect = effect
        self.parts = [effect] if pipelined else _split(effect)
        self.so_far: list[Any] = []
        self.answered: list[Written] = []

    def perform(self, driver: Driver, thread: Thread) -> tuple[bool, Any]:
        """Do the next part; return whether that was the last, and then the whole answer."""
        answer = _perform(driver, thread, self.parts[len(self.so_far)])
        self.so_far.append(answer)
        self.answered = []
        if len(self.so_far) < len(self.parts):
            return False, None
        return True, answer if len(self.parts) == 1 else _join(self.so_far)


def _split(effect: Any) -> list[Any]:
    match effect:
        case fx.Exists(paths, watch) | fx.Read(paths, watch) | fx.Children(paths, watch):
            return [type(effect)((path,), watch) for path in paths] or [effect]
        case fx.Writes(transactions, fence):
            return [fx.Writes((one,), fence) for one in transactions] or [effect]
        case fx.Commit(changes):
            return [fx.Commit((one,)) for one in changes]
    return [effect]


def _join(answers: list[Any]) -> Any:
    if isinstance(answers[0], fx.Committed):
        return fx.Committed(*(sum(column, ()) for column in zip(*answers, strict=True)))
    return sum(answers, ())


def _perform(driver: Driver, thread: Thread, effect: Any) -> Any:
    client = driver.client
    match effect:
        case fx.Exists(paths, watch):
            stats = tuple(client.exists(paths, watch))
            _note(driver, thread, "exists", paths, tuple(s.mzxid if s else None for s in stats), watch)
            return stats
        case fx.Read(paths, watch):
            znodes = tuple(client.read(paths, watch))
            _note(driver, thread, "read", paths, tuple(z.stat.mzxid if z else None for z in znodes), watch)
            return znodes
        case fx.Children(paths, watch):
            names = tuple(client.children(paths, watch))
            _note(driver, thread, "children", paths, tuple(None if n is None else len(n) for n in names), watch)
            return names
        case fx.Transaction(ops):
            return _write(driver, thread, (ops,), fencing.UNFENCED)[0]
        case fx.Writes(transactions, fence):
            return _write(driver, thread, transactions, commits.fence(driver, fence))
        case fx.Commit(changes):
            return commits.perform(driver, thread, changes)
        case fx.ReadLog(partition, offset):
            batches = driver.outbox.read_log(driver, partition, offset)
            driver.log("read_log", thread.begun, partition=partition, offset=offset, batches=len(batches or ()))
            return batches
    return None  # a Release, a Sleep or AwaitRequests: the lock is back, the time is over, no request is out


def _note(driver: Driver, thread: Thread, how: str, paths: Any, seen: Any, watch: bool) -> None:
    driver.log("read", thread.begun, how=how, paths=paths, seen=seen, watch=watch)


def _write(driver: Driver, thread: Thread, transactions: Any, fence: int) -> tuple[fx.Result, ...]:
    outcome = fencing.write(driver.client, transactions, fence, thread.waits_for.answered if thread.waits_for else None)
    commits.log_writes(driver, thread, transactions, outcome.results, fence)
    if outcome.error is not None:
        raise outcome.error
    return outcome.results
