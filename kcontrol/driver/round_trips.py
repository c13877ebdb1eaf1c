"""Performs the effect that a suspended handler waits for: reads, writes and waits.

Since 1.1 one round trip performs the whole effect. Before 1.1 each path, transaction or transition
of the effect has a round trip of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from kcontrol.core import effects as fx
from kcontrol.driver import fenced_writes, state_change_commits
from kcontrol.zookeeper.port import WriteResult

if TYPE_CHECKING:
    from kcontrol.driver.driver import Driver
    from kcontrol.driver.threads import Thread


def is_instant(effect: fx.Effect) -> bool:
    """A handler goes on at once after an instant effect."""
    if isinstance(effect, fx.Commit):
        return not any(isinstance(change, fx.StateChange) and change.write for change in effect.changes)
    return not isinstance(effect, ROUND_TRIPS)


ROUND_TRIPS = (*get_args(fx.RoundTripEffect), fx.YieldLock, fx.Sleep)


class RoundTrip:
    """The round trips to ZooKeeper that perform one effect of a suspended handler, and their results so far.

    Since 1.1 an effect has one round trip; before 1.1 each of its paths, transactions or transitions has a round trip.
    """

    __slots__ = ("answered", "effect", "partial_results", "parts")

    def __init__(self, effect: Any, *, pipelined: bool) -> None:
        self.effect = effect
        # The effect of each round trip, in order.
        self.parts = [effect] if pipelined else _split(effect)
        # The results of the round trips that have ended.
        self.partial_results: list[Any] = []
        # After a connection loss during the present round trip: the results of its first transactions, which had arrived. The
        # repeated round trip sends only the other transactions.
        self.answered: list[WriteResult] = []

    def perform(self, driver: Driver, thread: Thread) -> tuple[bool, Any]:
        """(True, result) after the last round trip. An exception repeats the same round trip at the next call."""
        answer = _perform(driver, thread, self.parts[len(self.partial_results)])
        self.partial_results.append(answer)
        self.answered = []
        if len(self.partial_results) < len(self.parts):
            return False, None
        return True, answer if len(self.parts) == 1 else _join(self.partial_results)


def _split(effect: Any) -> list[Any]:
    match effect:
        case fx.Exists(paths, watch) | fx.Read(paths, watch) | fx.Children(paths, watch):
            return [type(effect)((path,), watch) for path in paths] or [effect]
        case fx.FencedTransactions(transactions, fence):
            return [fx.FencedTransactions((one,), fence) for one in transactions] or [effect]
        case fx.Commit(changes):
            return [fx.Commit((one,)) for one in changes]
    return [effect]


def _join(answers: list[Any]) -> Any:
    if isinstance(answers[0], fx.CommitResult):
        return fx.CommitResult(*(sum(column, ()) for column in zip(*answers, strict=True)))
    return sum(answers, ())


def _perform(driver: Driver, thread: Thread, effect: Any) -> Any:
    client = driver.client
    match effect:
        case fx.Exists(paths, watch):
            stats = tuple(client.exists(paths, watch))
            _log_read(driver, thread, "exists", paths, tuple(s.mzxid if s else None for s in stats), watch)
            return stats
        case fx.Read(paths, watch):
            znodes = tuple(client.read(paths, watch))
            _log_read(driver, thread, "read", paths, tuple(z.stat.mzxid if z else None for z in znodes), watch)
            return znodes
        case fx.Children(paths, watch):
            names = tuple(client.children(paths, watch))
            _log_read(driver, thread, "children", paths, tuple(None if n is None else len(n) for n in names), watch)
            return names
        case fx.Transaction(ops):
            return _write(driver, thread, (ops,), fenced_writes.UNFENCED)[0]
        case fx.FencedTransactions(transactions, fence):
            return _write(driver, thread, transactions, state_change_commits.expected_epoch_zk_version(driver, fence))
        case fx.Commit(changes):
            return state_change_commits.commit(driver, thread, changes)
        case fx.ReadLog(partition, offset):
            batches = driver.outbox.read_log(driver, partition, offset)
            count = None if batches is None else len(batches)
            driver.log("read_log", thread.begin_record, partition=partition, offset=offset, batches=count)
            return batches
    return None  # YieldLock, Sleep or AwaitInFlightRequests: a step is possible only once the wait is over


def _log_read(driver: Driver, thread: Thread, how: str, paths: Any, seen: Any, watch: bool) -> None:
    driver.log("read", thread.begin_record, how=how, paths=paths, seen=seen, watch=watch)


def _write(driver: Driver, thread: Thread, transactions: Any, fence: int) -> tuple[fx.TransactionResult, ...]:
    outcome = fenced_writes.write(driver.client, transactions, fence, thread.waits_for.answered if thread.waits_for else None)
    state_change_commits.log_writes(driver, thread, transactions, outcome.results, fence)
    if outcome.error is not None:
        raise outcome.error
    return outcome.results
