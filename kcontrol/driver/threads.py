"""A thread, its event queue and a timer of a broker process, and `Outbox`, the functions of the cluster that a driver calls.

A thread has one queue and at most one suspended handler. Only the driver writes the fields.

Source: ControllerEventManager.ControllerEventThread and KafkaScheduler (2.8).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from kcontrol.core import effects as fx
from kcontrol.core.events import Event
from kcontrol.driver.round_trips import RoundTrip
from kcontrol.group.handlers import REQUESTS
from kcontrol.journal.journal import RecordId

if TYPE_CHECKING:
    from kcontrol.driver.driver import Driver

Handle = Callable[[Any, Any], fx.Handler]


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
        """At the end of a session; Kafka calls this preemption. Returns the removed events, the oldest first."""
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


class Outbox(Protocol):
    """The interface of the cluster to a driver.

    Through it a driver sends requests and responses, closes channels to brokers, and appends to and
    reads the logs of partitions.
    """

    def send(self, driver: Driver, requests: Any, record: RecordId) -> None: ...
    def close_channels(self, driver: Driver, brokers: tuple[int, ...]) -> None: ...
    def submit(self, driver: Driver, effect: fx.Submit, record: RecordId) -> None: ...
    def respond(self, driver: Driver, correlation_id: str, body: Any, record: RecordId) -> None: ...
    def append(self, driver: Driver, effect: fx.Append, record: RecordId) -> None: ...
    def read_log(self, driver: Driver, partition: Any, offset: int) -> tuple[fx.LogBatch, ...] | None: ...


@dataclass(slots=True)
class ReplayLog:
    """The inputs of a suspended handler, from which the handler can be run again."""

    # A copy of the context when the handler began.
    context: Any
    # The calls of the generator, in order: ("send", None) starts the handler, then each round trip has ("send", result) or
    # ("throw", exception).
    results: list[tuple[str, Any]]

    def copy(self) -> ReplayLog:
        return ReplayLog(self.context, self.results.copy())


@dataclass(slots=True)
class Thread:
    """A thread of a broker: its queue, the suspended handler, and the effect that the handler waits for."""

    # Such as "controller" or "requests".
    name: str
    # The memory that the thread's handlers read: of a controller, a broker or a group coordinator.
    context: Any
    # The call `handle(context, event)` returns the generator that handles the event.
    handle: Handle
    # Threads with the same `lock` take turns: a thread holds the lock from the beginning of a handler until the handler ends or
    # yields `YieldLock`.
    lock: str | None = None
    queue: EventQueue[Event] = field(default_factory=EventQueue)
    # The suspended handler and its event; None if no handler is suspended.
    handler: fx.Handler | None = None
    event: Any = None
    # The id of the journal record `begin` of the latest handler.
    begin_record: RecordId | None = None
    waits_for: RoundTrip | None = None
    # The inputs of the suspended handler; None unless the driver keeps them (`keeps_replay_logs`).
    replay_log: ReplayLog | None = None
    has_yielded_lock: bool = False  # other threads may have changed the context since the handler began
    # For each partition the sequence number of the journal record of its last transition in this handler; the key None has the
    # last transition of all partitions.
    last_change_seq: dict[Any, int] = field(default_factory=dict)

    @property
    def sleep_timer(self) -> str:
        """Return the name of the timer that ends this thread's sleep, such as "sleep-controller"."""
        return f"sleep-{self.name}"


class Timer:
    """A timer that is set: when it fires, the event that it queues, and the thread of that event.

    `record` is the id of the journal record `set_timer`.
    """

    # `periodic`: the handler of the event sets the timer again.
    # `is_routine`: `World.run` fires the timer when nothing else is left to do.
    __slots__ = ("at_ms", "event", "is_routine", "periodic", "record", "thread")

    def __init__(self, at_ms: int, thread: str, event: Any, record: RecordId, *, periodic: bool) -> None:
        self.at_ms, self.thread, self.event, self.record, self.periodic = at_ms, thread, event, record, periodic
        # `World.run` fires no timer of a group coordinator: such a timer would remove members.
        self.is_routine = not periodic and thread != REQUESTS
