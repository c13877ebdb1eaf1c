"""The event queue of one thread: first in, first out, with the waiting times of its events.

After the end of a session all waiting events are removed at once; Kafka calls this preemption.

Source: ControllerEventManager.scala (2.8).
"""

from __future__ import annotations

from collections import deque
from typing import Any, Generic, NamedTuple, TypeVar

E = TypeVar("E")

QUEUE_TIME_TIMEOUT_MS = 300_000


class Queued(NamedTuple):
    """An event in a queue, the time of its arrival there, and the id of its journal record."""

    event: Any
    at_ms: int
    record: Any


class EventQueue(Generic[E]):
    """The events that wait for a thread, without the event that the thread handles now.

    `queue_times_ms` has the waiting times of the events that were taken from the queue.
    """

    __slots__ = ("queue_times_ms", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Queued] = deque()
        # How long each event taken from the queue had waited, oldest first.
        self.queue_times_ms: list[int] = []

    def __len__(self) -> int:
        return len(self.waiting)

    def put(self, event: E, now_ms: int, record: Any = None) -> None:
        self.waiting.append(Queued(event, now_ms, record))

    def clear(self) -> list[Queued]:
        """Remove all events from the queue, and return them, the oldest event first."""
        preempted = list(self.waiting)
        self.waiting.clear()
        return preempted

    def take(self, now_ms: int) -> Queued:
        """Take the next event, and keep its time in the queue for EventQueueTimeMs."""
        item = self.waiting.popleft()
        self.queue_times_ms.append(now_ms - item.at_ms)
        return item

    def idle(self, idle_ms: int) -> None:
        """After five idle minutes Kafka's metric EventQueueTimeMs forgets its times."""
        if idle_ms >= QUEUE_TIME_TIMEOUT_MS:
            self.queue_times_ms.clear()

    def copy(self) -> EventQueue[E]:
        copy: EventQueue[E] = EventQueue()
        copy.waiting.extend(self.waiting)
        copy.queue_times_ms = self.queue_times_ms.copy()
        return copy
