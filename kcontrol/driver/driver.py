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
* PERFORM is the table of instant effects: one row for each type of effect, whose function changes a context, writes one
  record, or passes a value to the outbox. An effect that has no row and is no round trip (`round_trips.py`) does not
  exist.
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

Read next: `threads.py` (the fields of a thread and of a timer), `round_trips.py`, `state_change_commits.py`,
`fenced_writes.py`, then `cluster/handler_replay.py` (how a suspended handler is copied) and `cluster/world.py` (which step
comes next).

Source: ControllerEventManager.scala (1.1 to 3.9) for the loop over events; KafkaZkClient.scala for retries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kcontrol.broker.context import BrokerContext, HostedPartition, adopted
from kcontrol.controller.context import ControllerContext, apply_update
from kcontrol.controller.handlers import preempted_response
from kcontrol.core import effects as fx
from kcontrol.core.events import Event
from kcontrol.driver import log_changes, state_change_commits
from kcontrol.driver.round_trips import RoundTrip, is_instant
from kcontrol.driver.threads import Outbox, ReplayLog, Thread, Timer
from kcontrol.group import delayed_operations
from kcontrol.group.context import GroupContext, apply_transition
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
        self.node, self.incarnation, self.client = node, incarnation, client
        self.journal, self.clock, self.outbox = journal, clock, outbox
        self.controller, self.broker = controller, broker
        self.group: GroupContext | None = None  # None: the world has no consumers
        self.threads = {thread.name: thread for thread in threads}
        self.route = route
        self.locks: dict[str, str] = {}
        self.watched: set[tuple[str, bool]] = set()
        self.timers: dict[str, Timer] = {}
        self.parked: dict[str, str] = {}
        self.under_replicated: dict[Any, HostedPartition] = {}  # led by this broker, with replicas outside the ISR
        self.exit_code: int | None = None  # not None: the process is about to end
        self.has_lost_session = False  # the session has expired, and the client library has not opened a new session yet
        self.exit_cause: RecordId | None = None
        self.keeps_replay_logs = False  # whether handlers keep their inputs, for copies and fingerprints

    # ---------------------------------------------------------------- journal and queues

    def log(self, kind: str, cause: RecordId | None, **fields: Any) -> RecordId:
        return self.journal.add(self.node, self.incarnation, kind, cause, self.clock(), fields)

    def log_batch(self, factory: RecordFactory, *columns: Sequence[Any]) -> None:
        """Write one journal record per row of `columns`; `factory(*row)` makes the record when the journal is read."""
        self.journal.add_batch(self.node, self.incarnation, self.clock(), factory, columns)

    @property
    def next_seq(self) -> int:
        return self.journal.next_seq(self.node, self.incarnation)

    def enqueue(
        self, event: Event, cause: RecordId | None, thread: str | None = None, *, is_watch_event: bool = False
    ) -> RecordId:
        """Queue an event at `thread`, None: at the thread that handles such events; return its journal record's id.

        `cause` is the journal record that caused the event. `is_watch_event`: the event is made of a watch event of ZooKeeper.
        """
        thread = thread or self.route(event)
        if hasattr(event, "timestamp_ms"):
            event = replace(event, timestamp_ms=self.clock())  # type: ignore[call-arg]
        record = self.log("enqueue", cause, thread=thread, event=event, is_notification=is_watch_event)
        self.threads[thread].queue.put(event, self.clock(), record)
        return record

    def clear(self, thread: str, cause: RecordId | None) -> None:
        """Remove all events from a thread's queue; respond to the requests among them (2.2 on).

        `cause` is the cause of their `preempt` journal records. Source: ControllerEvent.preempt (2.2, 2.8).
        """
        for item in self.threads[thread].queue.clear():
            record = self.log("preempt", cause, thread=thread, event=item.event)
            if correlation_id := getattr(item.event, "correlation_id", None):
                self._respond(correlation_id, preempted_response(self.controller.rules, item.event), record)

    # ---------------------------------------------------------------- steps

    def can_begin(self, thread: Thread) -> bool:
        return thread.handler is None and bool(thread.queue) and (thread.lock is None or thread.lock not in self.locks)

    def can_advance(self, thread: Thread) -> bool:
        """Return whether a suspended handler can perform its round trip.

        Return False while the thread sleeps, waits for a new session, or waits for the lock.
        """
        if (
            thread.handler is None
            or thread.sleep_timer in self.timers
            or (self.has_lost_session and self.controller.rules.handlers_outlive_session)
        ):
            return False
        return thread.lock is None or self.locks.get(thread.lock, thread.name) == thread.name

    def ready(self) -> list[tuple[str, str]]:
        """Return (step, thread) for each thread that is not blocked.

        The step "advance" resumes the thread's handler, "begin" takes the next event.
        """
        advancing = {name: self.can_advance(thread) for name, thread in self.threads.items()}
        can = {name: "advance" if advancing[name] else "begin" if self.can_begin(t) else "" for name, t in self.threads.items()}
        return [(kind, name) for name, kind in can.items() if kind]

    @property
    def is_quiet(self) -> bool:
        return all(thread.handler is None for thread in self.threads.values())

    def begin(self, name: str) -> None:
        """Take the next event of this thread's queue, and run its handler to the handler's first round trip."""
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
        """Perform the round trip that the thread's handler waits for, and run the handler to its next round trip."""
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
        """Return whether the client library of this release repeats a request after this error.

        Since 1.1 only a request that ended in a lost connection (KafkaZkClient.retryRequestsUntilConnected);
        before 1.1 also a request of an expired session (ZkClient.retryUntilConnected).
        """
        outlived = isinstance(error, fx.SessionExpired) and self.controller.rules.handlers_outlive_session
        return outlived or isinstance(error, ConnectionLoss)

    def _resume(self, thread: Thread, go: Callable[[Any], Any], value: Any) -> None:
        handler = thread.handler
        assert handler is not None
        if thread.replay_log is not None:
            thread.replay_log.results.append((go.__name__, value))
        try:
            effect = go(value)
            while is_instant(effect):
                effect = handler.send(self._perform(thread, effect))
            thread.waits_for = RoundTrip(effect, pipelined=self.controller.rules.pipelined)
            if isinstance(effect, fx.YieldLock) and thread.lock:
                self.locks.pop(thread.lock, None)
                thread.has_yielded_lock = True
                self.log("yield_lock", thread.begin_record, thread=thread.name)
            elif isinstance(effect, fx.Sleep):
                self._set_timer(thread, fx.SetTimer(thread.sleep_timer, effect.delay_ms, None))
        except StopIteration:
            self._end(thread, None)
        except Exception as error:  # Kafka's thread logs an exception of a handler and takes the next event
            self._end(thread, error)

    def _end(self, thread: Thread, error: Exception | None) -> None:
        if error is not None:
            if thread.name == "main":
                self.exit_code, self.exit_cause = 1, thread.begin_record
            self._log_error(thread, fx.LogError(error))
        self.log("end", thread.begin_record, thread=thread.name)
        thread.handler = thread.event = thread.waits_for = thread.replay_log = None
        thread.last_change_seq, thread.has_yielded_lock = {}, False
        if thread.lock:
            self.locks.pop(thread.lock, None)

    # ---------------------------------------------------------------- instant effects

    def _perform(self, thread: Thread, effect: fx.Effect) -> Any:
        return PERFORM[type(effect)](self, thread, effect)

    def _commit(self, thread: Thread, effect: fx.Commit) -> fx.CommitResult:
        return state_change_commits.commit(self, thread, effect.changes)

    def _update_context(self, thread: Thread, effect: fx.UpdateContext) -> None:
        context: Any = getattr(self, effect.context)
        before = self.controller.live_broker_epochs.copy() if effect.field == "live_broker_epochs" else {}  # type: ignore[attr-defined]
        apply_update(context, effect)
        held = getattr(context, effect.field)
        kind = "set" if isinstance(held, set) else "value" if not hasattr(held, "__len__") or isinstance(held, str) else "map"
        change = {"clear": effect.clear, "remove": effect.remove, "put": effect.put}
        self.log("update", thread.begin_record, context=effect.context, field=effect.field, container=kind, **change)
        if effect.field == "hosted":
            self._track_under_replicated({**dict.fromkeys(effect.remove), **(effect.put or {})})
        gone = tuple(b for b, epoch in before.items() if self.controller.live_broker_epochs.get(b) != epoch)
        if effect.field == "has_channels" and not effect.put:
            gone = self.controller.live_or_shutting_down_broker_ids
        if gone:
            self.outbox.close_channels(self, gone)

    def _transition_group(self, thread: Thread, effect: fx.TransitionGroup) -> None:
        assert self.group is not None
        apply_transition(self.group, effect)
        states = {"from": self.group.name_of(effect.source), "to": self.group.name_of(effect.target)}
        fields = {"group_id": effect.group_id, **states, "rule": effect.rule, "group_metadata": effect.group}
        self.log("group", thread.begin_record, **fields)

    def _append(self, thread: Thread, effect: fx.Append) -> None:
        records = [list(record) for record in effect.records]
        fields = {"partition": effect.partition, "records": records, "completion_event": effect.completion_event}
        record = self.log("append", thread.begin_record, **fields)
        self.outbox.append(self, effect, record)

    def _apply_request(self, thread: Thread, effect: fx.ApplyRequest) -> None:
        update = adopted(effect, thread.event)
        apply_update(self.broker, update)
        if effect.field == "hosted":
            self._track_under_replicated(update.put)
        fields = {"field": effect.field, "request": thread.event.request, "partitions": effect.partitions}
        self.log("apply_request", thread.begin_record, **fields)

    def _track_under_replicated(self, changed: Mapping[Any, HostedPartition | None]) -> None:
        for tp, held in changed.items():
            leads = held is not None and held.leadership.leader == self.node and not held.pending_isr
            unassigned = self.broker.rules.accepts_unassigned_partitions
            if held and leads and (len(held.leadership.isr) < len(held.replicas) or unassigned):
                self.under_replicated[tp] = held
            else:
                self.under_replicated.pop(tp, None)

    def _watch(self, thread: Thread, effect: fx.RegisterZNodeHandler | fx.UnregisterZNodeHandler) -> None:
        change = self.watched.add if isinstance(effect, fx.RegisterZNodeHandler) else self.watched.discard
        change((effect.path, effect.children))

    def _send(self, thread: Thread, effect: fx.Send) -> None:
        record = self.log("send", state_change_commits.latest_record(thread), requests=effect.requests)
        self.outbox.send(self, effect.requests, record)

    def _send_to_controller(self, thread: Thread, effect: fx.SendToController) -> None:
        record = self.log("to_controller", thread.begin_record, api=effect.api, body=effect.body)
        self.outbox.send_to_controller(self, effect, record)

    def _answer(self, thread: Thread, effect: fx.Respond) -> None:
        self._respond(effect.correlation_id, effect.body, thread.begin_record)

    def _respond(self, correlation_id: str, body: Any, cause: RecordId | None) -> None:
        self.parked.pop(correlation_id, None)
        record = self.log("respond", cause, correlation_id=correlation_id, body=body)
        self.outbox.respond(self, correlation_id, body, record)

    def _park(self, thread: Thread, effect: fx.Park) -> None:
        self.parked[effect.correlation_id] = effect.key
        self.log("park", thread.begin_record, correlation_id=effect.correlation_id, key=effect.key)

    def _set_timer(self, thread: Thread, effect: fx.SetTimer) -> None:
        if effect.is_complete:
            self._cancel_timer(thread, fx.CancelTimer(effect.timer))
        self._log_steps(thread, effect)
        if effect.is_complete:
            return
        at_ms, event = self.clock() + effect.delay_ms, effect.event
        name = self.route(event) if event else thread.name
        record = self.log("set_timer", thread.begin_record, timer=effect.timer, thread=name, fires_at_ms=at_ms, event=event)
        self.timers[effect.timer] = Timer(at_ms, name, effect.event, record, periodic=effect.periodic)

    def _cancel_timer(self, thread: Thread, effect: fx.CancelTimer) -> None:
        self._log_steps(thread, effect)
        if effect.is_complete and self.timers.pop(effect.timer, None) is not None:
            self.log("cancel_timer", thread.begin_record, timer=effect.timer)

    def _log_steps(self, thread: Thread, effect: fx.SetTimer | fx.CancelTimer) -> None:
        for kind, fields in delayed_operations.steps(self.group, effect, self.timers.get(effect.timer)):
            self.log(kind, thread.begin_record, **fields)

    def _log_error(self, thread: Thread, effect: fx.LogError) -> None:
        fields = {"event": thread.event.name, "error": type(effect.error).__name__, "message": str(effect.error)}
        self.log("handler_error", thread.begin_record, thread=thread.name, **fields)

    def _exit(self, thread: Thread, effect: fx.Exit) -> None:
        self.exit_code, self.exit_cause = effect.exit_code, thread.begin_record

    def _enqueue(self, thread: Thread, effect: fx.Enqueue) -> None:
        name = effect.thread or self.route(effect.event)
        if effect.clear:
            self.clear(name, thread.begin_record)
        self.enqueue(effect.event, effect.cause or thread.begin_record, name)

    def fire(self, timer: str) -> None:
        """Fire a timer: queue its event, or end the sleep of its thread.

        Raises KeyError for a timer that is not set.
        """
        due = self.timers.pop(timer)
        record = self.log("timer_fired", due.record, timer=timer)
        if due.event:
            self.enqueue(due.event, record, due.thread)


PERFORM: dict[type, Callable[[Driver, Thread, Any], Any]] = {
    fx.Commit: Driver._commit,
    fx.UpdateContext: Driver._update_context,
    fx.TransitionGroup: Driver._transition_group,
    fx.Append: Driver._append,
    fx.ApplyRequest: Driver._apply_request,
    fx.UpdateLog: log_changes.update_log,
    fx.RegisterZNodeHandler: Driver._watch,
    fx.UnregisterZNodeHandler: Driver._watch,
    fx.Send: Driver._send,
    fx.SendToController: Driver._send_to_controller,
    fx.Respond: Driver._answer,
    fx.Park: Driver._park,
    fx.SetTimer: Driver._set_timer,
    fx.CancelTimer: Driver._cancel_timer,
    fx.Enqueue: Driver._enqueue,
    fx.LogError: Driver._log_error,
    fx.Exit: Driver._exit,
}
