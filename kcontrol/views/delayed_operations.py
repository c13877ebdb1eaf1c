"""Kafka's purgatories from the journal alone: delayed operations, watch lists, and the wheel of timers.

Two data structures of Kafka are updated by each record `try_complete`, `watch_operation` and `check_and_complete`
(`group/delayed_operations.py`), and by each record of a timer: watch lists as in DelayedOperationPurgatory, and the timing wheel
of `group/timing_wheel.py`, whose clock is the time of the journal. A purgatory begins with the process of its broker.

Kafka's reaper advances the wheel whenever a bucket is due, with or without a request. So a task can move to a finer ring, or
leave the wheel, at a time that no record has.

Source: DelayedOperation.scala, Timer.scala (0.9, 2.8); the purge interval of 1,000: DelayedOperationPurgatory (0.9, 2.8).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kcontrol.group.timing_wheel import Timer, Wheel
from kcontrol.journal.journal import Record, RecordId

PURGATORIES = ("Heartbeat", "Rebalance")
PURGE_INTERVAL = 1_000
TRIES = {1: "first try", 2: "second try"}


class Place(NamedTuple):
    """A slot of a timing wheel into which an operation's timer task was put at the time `at_ms`."""

    at_ms: int
    # The length of a slot.
    tick_ms: int
    # The number of the slot in its wheel.
    slot: int


@dataclass(slots=True, eq=False)
class Operation:
    """One delayed operation of a coordinator, such as a DelayedJoin, with the key of its watch list and its timer."""

    # Its class, such as "DelayedJoin".
    operation: str
    # "Heartbeat" or "Rebalance".
    purgatory: str
    # The key of its watch list.
    key: str
    # The name of its timer.
    timer: str
    # The journal record of the first try to complete the operation.
    begun: RecordId
    # The time of this record.
    begun_ms: int
    # The steps of tryCompleteElseWatch, in order: "try", "watch" (added to the watch list), "try again", "timer" (timer set).
    steps: list[str] = field(default_factory=list)
    # The time at which its timer will fire, None before the timer is set.
    deadline_ms: int | None = None
    # The slots of timing wheels that have had its timer task, in order.
    places: list[Place] = field(default_factory=list)
    # The time at which its timer task has left the wheels to expire, None before.
    left_wheel_ms: int | None = None
    # "first try", "second try", "a check" (a call of checkAndComplete), "its timer", or "" while the operation waits.
    completed_by: str = ""
    # The time of the completion, None while the operation waits.
    completed_ms: int | None = None


class Purgatory:
    """One purgatory of one broker process: its delayed operations, its watch lists, and its timing wheels.

    Each method with a parameter `r` reads the journal records of one kind, such as `try_complete`.
    """

    def __init__(self, name: str, start_ms: int) -> None:
        self.name, self.wheel_timer = name, Timer(start_ms=start_ms)
        self.watch_lists: dict[str, list[Operation]] = {}
        self.operations: list[Operation] = []
        self._waiting: dict[str, Operation] = {}  # by the name of the timer
        self._tasks: dict[str, Operation] = {}
        self._estimated_total, self._now_ms = 0, start_ms

    @property
    def watched(self) -> int:
        """Return the number of entries of all watch lists, with those of completed operations: Kafka's gauge PurgatorySize."""
        return sum(map(len, self.watch_lists.values()))

    @property
    def delayed(self) -> int:
        """Return the number of tasks in the timer: Kafka's gauge NumDelayedOperations."""
        return len(self.wheel_timer)

    def rings(self) -> list[Wheel]:
        """Return the timing wheels of the purgatory's timer, the wheel with the smallest tick first."""
        found = [self.wheel_timer.wheel]
        while found[-1].above is not None:
            found.append(found[-1].above)
        return found

    # ---------------------------------------------------------------- records

    def try_complete(self, r: Record) -> None:
        """Read a `try_complete` record, one of two tries of tryCompleteElseWatch; a success completes the operation."""
        f = r.fields
        # Later tries, by checkAndComplete, are journal records of another kind.
        if f["attempt"] == 1:
            begun = Operation(f["operation"], f["purgatory"], f["key"], f["timer"], r.id, r.at_ms)
            self.operations.append(begun)
            self._waiting[f["timer"]] = begun
        self._waiting[f["timer"]].steps.append("try" if f["attempt"] == 1 else "try again")
        if f["is_complete"]:
            self._complete(f["timer"], TRIES[f["attempt"]], r.at_ms)

    def watch(self, r: Record) -> None:
        """Put the operation of a `watch_operation` record on the watch list of the record's key."""
        found = self._waiting[r.fields["timer"]]
        found.steps.append("watch")
        self.watch_lists.setdefault(found.key, []).append(found)
        self._estimated_total += 1

    def check(self, r: Record) -> None:
        """A check drops complete operations from the watch list, whether it completes its own or not."""
        if r.fields["is_complete"]:
            self._complete(r.fields["timer"], "a check", r.at_ms)
        self._keep_waiting(r.fields["key"])

    def start_timer(self, r: Record) -> None:
        """Add the task of an operation to the timing wheel, if the timer of this `set_timer` record belongs to an operation."""
        if (found := self._waiting.get(r.fields["timer"])) is None:
            return
        found.steps.append("timer")
        found.deadline_ms, task = r.fields["fires_at_ms"], str(found.begun)
        self._tasks[task] = found
        self._place(found, self.wheel_timer.add(task, found.deadline_ms), r.at_ms)

    def fire(self, r: Record) -> None:
        """Complete the operation whose timer the `fire_timer` record names; the operation stays on its watch list."""
        self._complete(r.fields["timer"], "its timer", r.at_ms)

    def advance(self, now_ms: int) -> None:
        """Advance the timing wheels to `now_ms`: tasks of buckets that begin by then move to a finer wheel, or expire."""
        timer = self.wheel_timer
        while timer.next_ms is not None and timer.next_ms <= now_ms:
            for move in timer.advance(now_ms):
                bucket = timer.bucket_of(move.task)
                self._place(self._tasks[move.task], bucket, move.expiration_ms)
        # Kafka's reaper removes complete operations from the watch lists when their estimated number is above PURGE_INTERVAL.
        if now_ms > self._now_ms and self._estimated_total - self.delayed > PURGE_INTERVAL:
            self._estimated_total = self.delayed
            for key in list(self.watch_lists):
                self._keep_waiting(key)
        self._now_ms = now_ms

    # ---------------------------------------------------------------- parts

    def _place(self, operation: Operation, bucket: Any, at_ms: int) -> None:
        if bucket is None:
            operation.left_wheel_ms = at_ms
            return
        tick_ms = self.rings()[bucket.level - 1].tick_ms
        operation.places.append(Place(at_ms, tick_ms, bucket.index))

    def _complete(self, timer: str, by: str, at_ms: int) -> None:
        """`by` says what completed the operation, such as "a check"."""
        if (found := self._waiting.pop(timer, None)) is not None:
            found.completed_by, found.completed_ms = by, at_ms
            self.wheel_timer.cancel(str(found.begun))

    def _keep_waiting(self, key: str) -> None:
        left = [operation for operation in self.watch_lists.pop(key, ()) if not operation.completed_by]
        if left:
            self.watch_lists[key] = left


STEPS = {"try_complete": Purgatory.try_complete, "watch_operation": Purgatory.watch, "check_and_complete": Purgatory.check}
TIMERS = {"set_timer": Purgatory.start_timer, "fire_timer": Purgatory.fire}


def purgatories(records: Iterable[Record]) -> list[tuple[int, Purgatory]]:
    """Return (broker id, purgatory) for each purgatory that has had an operation.

    Each start of a broker makes two, "Heartbeat" and "Rebalance"; the purgatories have the order of these starts.
    """
    found: list[tuple[int, Purgatory]] = []
    running: dict[int, dict[str, Purgatory]] = {}
    for record in records:
        if record.kind == "start":
            fresh = {name: Purgatory(name, record.at_ms) for name in PURGATORIES}
            running[record.fields["broker"]] = fresh
            found += [(record.fields["broker"], purgatory) for purgatory in fresh.values()]
        elif record.kind == "stop":
            running.pop(record.fields["broker"], None)
        for purgatory in (p for each in running.values() for p in each.values()):
            purgatory.advance(record.at_ms)
        of_broker = running.get(record.id.node, {})
        if (step := STEPS.get(record.kind)) is not None:
            step(of_broker[record.fields["purgatory"]], record)
        elif (timed := TIMERS.get(record.kind)) is not None:
            for purgatory in of_broker.values():
                timed(purgatory, record)
    return [(broker, purgatory) for broker, purgatory in found if purgatory.operations]
