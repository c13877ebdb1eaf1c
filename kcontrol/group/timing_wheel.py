"""Kafka's timer: a hierarchy of wheels, each a ring of buckets of tasks.

A bucket has the tasks of one tick. A tick of the lowest wheel is the shortest; a tick of another
wheel is as long as the whole wheel below.

Source: TimingWheel.scala, TimerTaskList.scala, Timer.scala (0.9, 2.8); PriorityQueue of Java 17.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(slots=True, eq=False)
class Bucket:
    """The bucket number `index` of the wheel at `level`; the lowest wheel has level 1."""

    level: int
    index: int
    # The start of the bucket's time, -1 if the bucket was never used or has expired.
    expiration_ms: int = -1
    # By the name of a task: its deadline in ms. The tasks are in the order of insertion.
    tasks: dict[str, int] = field(default_factory=dict)

    def __lt__(self, other: Bucket) -> bool:
        return self.expiration_ms < other.expiration_ms


def poll(buckets: list[Bucket]) -> Bucket:
    """Remove and return the bucket with the earliest expiration from the heap `buckets`."""
    # Buckets of several wheels can have one expiration. Their order is then that of Kafka's heap:
    # an added bucket rises as in `heapq`, but the last bucket, which replaces the first one, sinks
    # no deeper than an equal one. Source: siftUp and siftDown of PriorityQueue (Java 17).
    first, last, at = buckets[0], buckets.pop(), 0
    while (children := buckets[2 * at + 1 : 2 * at + 3]) and min(children) < last:
        child = 2 * at + 1 + (children[-1] < children[0])
        buckets[at], at = buckets[child], child
    buckets[at : at + 1] = [last] if buckets else []
    return first


class Wheel:
    """A timing wheel of `size` buckets of `tick_ms` each, which begins at the time `now_ms`.

    Deadlines after the end of this wheel belong to the wheel `above`; one tick of the wheel `above`
    is as long as this whole wheel.
    """

    def __init__(self, level: int, tick_ms: int, size: int, start_ms: int) -> None:
        self.level, self.tick_ms, self.size = level, tick_ms, size
        self.interval_ms = tick_ms * size
        self.now_ms = start_ms - start_ms % tick_ms
        self.buckets = [Bucket(level, index) for index in range(size)]
        self.above: Wheel | None = None

    def slot(self, deadline_ms: int) -> tuple[Bucket, int] | None:
        """(bucket, its expiration in ms), also of a wheel above; None less than one tick ahead."""
        if deadline_ms < self.now_ms + self.tick_ms:
            return None
        if deadline_ms < self.now_ms + self.interval_ms:
            number = deadline_ms // self.tick_ms
            return self.buckets[number % self.size], number * self.tick_ms
        # A deadline after the end of this wheel has a bucket of a wheel above.
        self.above = self.above or Wheel(self.level + 1, self.interval_ms, self.size, self.now_ms)
        return self.above.slot(deadline_ms)

    def advance(self, now_ms: int) -> None:
        if now_ms >= self.now_ms + self.tick_ms:
            self.now_ms = now_ms - now_ms % self.tick_ms
            if self.above:
                self.above.advance(self.now_ms)


class Move(NamedTuple):
    """A timer task that leaves an expired bucket: it moves to a lower wheel, or runs if it is due.

    `level` is the level of the bucket's wheel; the lowest wheel has level 1.
    """

    task: str
    level: int
    # The expiration of the bucket that the task leaves.
    expiration_ms: int
    # (level, expiration in ms) of the bucket of a lower wheel into which the task goes, or None if
    # the task is due and runs.
    target: tuple[int, int] | None


class Timer:
    """Kafka's timer: the wheels, and tasks by name, each with an absolute deadline in ms."""

    def __init__(self, tick_ms: int = 1, size: int = 20, start_ms: int = 0) -> None:
        self.wheel = Wheel(1, tick_ms, size, start_ms)
        self._due: list[Bucket] = []
        self._where: dict[str, Bucket] = {}

    def __len__(self) -> int:
        return len(self._where)

    def add(self, task: str, deadline_ms: int) -> Bucket | None:
        """Put a task into the bucket of its deadline, and return this bucket.

        If the task is due now, put it into no bucket and return None.
        """
        # The task may have been put into another bucket before.
        self.cancel(task)
        if (slot := self.wheel.slot(deadline_ms)) is None:
            return None
        bucket, expiration_ms = slot
        bucket.tasks[task] = deadline_ms
        self._where[task] = bucket
        if bucket.expiration_ms != expiration_ms:
            bucket.expiration_ms = expiration_ms
            heapq.heappush(self._due, bucket)
        return bucket

    def bucket_of(self, task: str) -> Bucket | None:
        """Return the bucket that has a task, None if no bucket has it."""
        return self._where.get(task)

    def cancel(self, task: str) -> None:
        """Remove a task if the timer has it; the task's bucket stays until the bucket expires."""
        if bucket := self._where.pop(task, None):
            del bucket.tasks[task]

    def advance(self, now_ms: int) -> list[Move]:
        """Empty the first bucket, if due at `now_ms`: put tasks that are not due into lower wheels.

        Return a Move for each task, [] if no bucket is due. The caller runs the due tasks (`target`
        None), and calls again for the next bucket.
        """
        if self.next_ms is None or self.next_ms > now_ms:
            return []
        bucket = poll(self._due)
        self.wheel.advance(expiration_ms := bucket.expiration_ms)
        tasks, bucket.tasks, bucket.expiration_ms = bucket.tasks, {}, -1
        moves = []
        for task, deadline_ms in tasks.items():
            del self._where[task]
            finer = self.add(task, deadline_ms)
            target = (finer.level, finer.expiration_ms) if finer else None
            moves.append(Move(task, bucket.level, expiration_ms, target))
        return moves

    @property
    def next_ms(self) -> int | None:
        """Return the time in ms at which the next bucket is due, None if no bucket is in use."""
        return self._due[0].expiration_ms if self._due else None
