"""The queue of one thread: first in, first out, with preemption and a record of how long events waited.

Source: ControllerEventManager.scala (2.8).
"""

from __future__ import annotations

from collections import deque
from typing import Any, Generic, NamedTuple, TypeVar

E = TypeVar("E")

QUEUE_TIME_TIMEOUT_MS = 300_000


class Queued(NamedTuple):
    """An event that waits, since when, and the record that says how it came."""

    event: Any
    at_ms: int
    record: Any


class EventQueue(Generic[E]):
    """Events that wait. The one that a thread has taken is no longer in here, and nothing can preempt it."""

    __slots__ = ("queue_times_ms", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Queued] = deque()
        self.queue_times_ms: list[int] = []

    def __len__(self) -> int:
        return len(self.waiting)

    def put(self, event: E, now_ms: int, record: Any = None) -> None:
        self.waiting.append(Queued(event, now_ms, record))

    def clear(self) -> list[Queued]:
        """Take out everything that waits, for the caller to preempt each in order."""
        preempted = list(self.waiting)
        self.waiting.clear()
        return preempted

    def take(self, now_ms: int) -> Queued:
        """The next event; how long it waited is remembered. Raises IndexError on an empty queue."""
        item = self.waiting.popleft()
        self.queue_times_ms.append(now_ms - item.at_ms)
        return item

    def idle(self, for_ms: int) -> None:
        """The thread has found nothing for so long: after five minutes the waiting times are forgotten."""
        if for_ms >= QUEUE_TIME_TIMEOUT_MS:
            self.queue_times_ms.clear()

    def copy(self) -> EventQueue[E]:
        twin: EventQueue[E] = EventQueue()
        twin.waiting.extend(self.waiting)
        twin.queue_times_ms = self.queue_times_ms.copy()
        return twin
