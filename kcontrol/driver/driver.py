"""The driver of one broker: its threads, and the only code that writes ZooKeeper, contexts and the journal.

Theory. Handlers decide and do nothing else: a handler is a generator that yields effects (`core/effects.py`). The
driver performs each effect and sends its result into the handler. So every decision can be run on a simulated ZooKeeper
and on a real one, can be suspended between two reads, and leaves records of all its inputs and outputs.

One step of a world is one round trip. `begin` takes the next event of a thread's queue and runs its handler to its
first round trip. `advance` performs this round trip and runs the handler to the next one. Between two steps anything
may happen: other brokers write, watches fire, sessions expire. Races of Kafka are therefore races here.

Rules of this file:

* A thread has one queue and at most one suspended handler. Threads that name the same lock take turns: a thread holds
  the lock from `begin` to the end of its handler, or until the handler yields `YieldLock`. Which waiting thread gets a
  free lock is a choice of the world, not of the driver.
* Each type of effect is a row of PERFORM (`instant_effects.py`) or a round trip (`round_trips.py`).
* A context changes in `driver/` alone, by `apply_update`, `apply_state_change` and `apply_transition`. The function
  that changes a context also writes the record, so the fold of the journal equals the context after every record.
* Each record names its cause: the record that began the handler, or the last transition of the same partition within
  the handler (`last_change_seq`). Chains of causes therefore lead from any write to the event behind it.
* An exception of a round trip is thrown into the handler, which may catch it. A lost connection, and before 1.1 an
  expired session, is not thrown: the same round trip is performed again. An exception that leaves the handler ends the
  event and is recorded; the thread continues with the next event, as Kafka's threads do. On the thread `main` the
  exception ends the process.

What the table does not say: which effects are round trips and how these are split before 1.1 (`round_trips.py`), how a
batch of transitions is written (`state_change_commits.py`), what the fence checks (`fenced_writes.py`), and what
becomes of a request, a response or an append after the outbox has taken it (`cluster/`).

Read next: `threads.py` (the fields of a thread and of a timer), `instant_effects.py`, `round_trips.py`,
`state_change_commits.py`, `fenced_writes.py`, then `cluster/process.py` (how a suspended handler is copied) and
`cluster/world.py` (which step comes next).

Source: ControllerEventManager.scala (1.1 to 3.9) for the loop over events; KafkaZkClient.scala for retries.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from kcontrol.broker.context import BrokerContext, HostedPartition
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.handlers import preempted_response
from kcontrol.core import effects as fx
from kcontrol.core.events import Event
from kcontrol.driver.instant_effects import PERFORM, log_error, set_timer
from kcontrol.driver.round_trips import RoundTrip, is_instant
from kcontrol.driver.threads import Outbox, ReplayLog, Thread, Timer
from kcontrol.group.context import GroupContext
from kcontrol.journal.journal import Journal, RecordFactory, RecordId
from kcontrol.zookeeper.port import Client, ConnectionLoss


class Driver:
    """One broker process: it queues events, runs handlers on its threads and performs their effects."""

    def __init__(
        self,
        node: int,
        incarnation: int,
        client: Client,
        journal: Journal,
        clock: Callable[[], int],
        outbox: Outbox,
        controller: ControllerContext,
        broker: BrokerContext,
        threads: Iterable[Thread],
        route: Callable[[Event], str],
    ) -> None:
        # The broker's id, and the number of this start of its process, from 1 on.
        self.node, self.incarnation, self.client = node, incarnation, client
        self.journal, self.clock, self.outbox = journal, clock, outbox
        self.controller, self.broker = controller, broker
        self.group: GroupContext | None = None  # None: the world has no consumers
        self.threads = {thread.name: thread for thread in threads}
        self.route = route  # returns the name of the thread for an event
        self.locks: dict[str, str] = {}  # lock to the name of the thread that holds it
        self.znode_handlers: set[tuple[str, bool]] = set()  # (path, True for children) of each registered handler
        self.timers: dict[str, Timer] = {}
        self.routine_timers: set[str] = set()  # the names of the timers that `World.run` fires
        self.parked: dict[str, str] = {}  # correlation id to the key of its `Park`
        self.under_replicated: dict[Any, HostedPartition] = {}  # led by this broker, with replicas outside the ISR
        self.exit_code: int | None = None  # not None: the process is about to end
        self.has_lost_session = False  # the session has expired, and the client library has not opened a new session yet
        self.exit_cause: RecordId | None = None
        self.keeps_replay_logs = False  # whether handlers keep their inputs, for copies and fingerprints

    # ---------------------------------------------------------------- journal and queues

    def log(self, kind: str, cause: RecordId | None, **fields: Any) -> RecordId:
        return self.journal.add(self.node, self.incarnation, kind, cause, self.clock(), fields)

    def log_batch(self, factory: RecordFactory, *columns: Sequence[Any]) -> None:
        """Value i of each column makes record i, by `factory`, and only when the journal is read."""
        self.journal.add_batch(self.node, self.incarnation, self.clock(), factory, columns)

    @property
    def next_seq(self) -> int:
        return self.journal.next_seq(self.node, self.incarnation)

    def enqueue(
        self, event: Event, cause: RecordId | None, thread: str | None = None, *, is_watch_event: bool = False
    ) -> RecordId:
        """None: the thread for this type of event. Returns the record's id."""
        thread = thread or self.route(event)
        if hasattr(event, "timestamp_ms"):
            event = replace(event, timestamp_ms=self.clock())  # type: ignore[call-arg]
        record = self.log("enqueue", cause, thread=thread, event=event, is_notification=is_watch_event)
        self.threads[thread].queue.put(event, self.clock(), record)
        return record

    def clear(self, thread: str, cause: RecordId | None) -> None:
        """Remove all events from a thread's queue; end each request among them with an error, before 2.2 without a response.

        `cause` is the journal record that caused the removal. Source: ControllerEvent.preempt (2.2, 2.8).
        """
        for item in self.threads[thread].queue.clear():
            record = self.log("preempt", cause, thread=thread, event=item.event)
            if correlation_id := getattr(item.event, "correlation_id", None):
                # The body None, for no response, reaches the cluster too: there the sender's request becomes pending again.
                self.respond(correlation_id, preempted_response(self.controller.rules, item.event), record)

    # ---------------------------------------------------------------- steps

    def can_begin(self, thread: Thread) -> bool:
        return thread.handler is None and bool(thread.queue) and (thread.lock is None or thread.lock not in self.locks)

    def can_advance(self, thread: Thread) -> bool:
        """Not while the handler sleeps or waits for a new session, or while another thread holds the lock."""
        waits_for_session = self.has_lost_session and self.controller.rules.handlers_outlive_session
        if thread.handler is None or thread.sleep_timer in self.timers or waits_for_session:
            return False
        return thread.lock is None or self.locks.get(thread.lock, thread.name) == thread.name

    def ready(self) -> list[tuple[str, str]]:
        """(step, name of the thread): "advance" resumes the thread's handler, "begin" takes the next event of its queue."""
        busy = [t for t in self.threads.values() if t.handler is not None or t.queue.waiting]
        steps = [("begin" if self.can_begin(t) else "advance" if self.can_advance(t) else "", t.name) for t in busy]
        return [(step, name) for step, name in steps if step]

    @property
    def is_quiet(self) -> bool:
        return all(thread.handler is None for thread in self.threads.values())

    def begin(self, name: str) -> None:
        """Take the next event of the thread `name`, and run its handler to the first round trip.

        A round trip is an effect for which the handler waits, such as a read of ZooKeeper.
        """
        thread = self.threads[name]
        item = thread.queue.take(self.clock())
        thread.event = item.event
        thread.begin_record = self.log("begin", item.record, thread=name, event=item.event.name)
        if thread.lock:
            self.locks[thread.lock] = name
        if self.keeps_replay_logs:
            thread.replay_log = ReplayLog(thread.context.copy(), [])
        thread.handler = thread.handle(thread.context, item.event)
        self._resume(thread, thread.handler.send, None)

    def advance(self, name: str) -> None:
        """Perform the round trip, such as a read of ZooKeeper, for which the handler of the thread `name` waits.

        Then run the handler to its next effect with a round trip, unless the present effect needs a further round trip: before
        1.1 for its next path, or after a connection loss.
        """
        thread = self.threads[name]
        assert thread.handler is not None and thread.waits_for is not None
        if thread.lock:
            self.locks[thread.lock] = name
        try:
            done, answer = thread.waits_for.perform(self, thread)
        except Exception as error:  # ControllerMoved, FenceCheckFailed, SessionExpired, or an error of the client
            if self._is_retried(error):
                self.log("connection_loss", thread.begin_record, thread=name)
                return
            self.log("exception", thread.begin_record, thread=name, error=type(error).__name__)
            self._resume(thread, thread.handler.throw, error)
        else:
            if done:
                self._resume(thread, thread.handler.send, answer)

    def _is_retried(self, error: Exception) -> bool:
        """Whether the client library of this release repeats a request after this error."""
        # Since 1.1 KafkaZkClient.retryRequestsUntilConnected, before 1.1 ZkClient.retryUntilConnected.
        outlived = isinstance(error, fx.SessionExpired) and self.controller.rules.handlers_outlive_session
        return outlived or isinstance(error, ConnectionLoss)

    def _resume(self, thread: Thread, method: Callable[[Any], Any], value: Any) -> None:
        handler = thread.handler
        assert handler is not None
        if thread.replay_log is not None:
            thread.replay_log.results.append((method.__name__, value))
        try:
            effect = method(value)
            while is_instant(effect):
                effect = handler.send(PERFORM[type(effect)](self, thread, effect))
            thread.waits_for = RoundTrip(effect, pipelined=self.controller.rules.pipelined)
            if isinstance(effect, fx.YieldLock) and thread.lock:
                self.locks.pop(thread.lock, None)
                thread.has_yielded_lock = True
                self.log("yield_lock", thread.begin_record, thread=thread.name)
            elif isinstance(effect, fx.Sleep):
                set_timer(self, thread, fx.SetTimer(thread.sleep_timer, effect.delay_ms, None))
        except StopIteration:
            self._end(thread, None)
        except Exception as error:  # Kafka's thread logs an exception of a handler and takes the next event
            self._end(thread, error)

    def _end(self, thread: Thread, error: Exception | None) -> None:
        if error is not None:
            if thread.name == "main":
                self.exit_code, self.exit_cause = 1, thread.begin_record
            log_error(self, thread, fx.LogError(error))
        self.log("end", thread.begin_record, thread=thread.name)
        thread.handler = thread.event = thread.waits_for = thread.replay_log = None
        thread.last_change_seq, thread.has_yielded_lock = {}, False
        if thread.lock:
            self.locks.pop(thread.lock, None)

    def respond(self, correlation_id: str, body: Any, cause: RecordId | None) -> None:
        self.parked.pop(correlation_id, None)
        self.outbox.respond(self, correlation_id, body, self.log("respond", cause, correlation_id=correlation_id, body=body))

    def fire(self, timer: str) -> None:
        """Queue the timer's event or, without one, end the sleep of a thread. Raises KeyError for a timer that is not set."""
        due = self.timers.pop(timer)
        self.routine_timers.discard(timer)
        record = self.log("fire_timer", due.record, timer=timer)
        if due.event:
            self.enqueue(due.event, record, due.thread)
