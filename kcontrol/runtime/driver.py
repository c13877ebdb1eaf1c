"""The only hands that write: a broker's threads, each a queue of events and at most one suspended handler.

`begin` takes the next event and runs its handler to its first round trip, `advance` performs that round trip and runs on to the
next. The same driver works on the in-memory ZooKeeper and on a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from kcontrol import effects as fx
from kcontrol.controller.context import ControllerContext, apply_learn
from kcontrol.controller.handlers import preempted
from kcontrol.events import Event
from kcontrol.group.context import GroupContext, apply_move
from kcontrol.group.handlers import REQUESTS
from kcontrol.replica.context import BrokerContext, HostedPartition
from kcontrol.runtime import commits, logs
from kcontrol.runtime.event_queue import EventQueue
from kcontrol.runtime.journal import Journal, RecordId, Spell
from kcontrol.runtime.round_trips import RoundTrip, is_instant
from kcontrol.runtime.zookeeper import Client, ConnectionLoss

Handle = Callable[[Any, Any], fx.Handler]


class Outbox(Protocol):
    """What a driver hands over to its surroundings."""

    def send(self, driver: Driver, requests: Any, record: RecordId) -> None: ...
    def close_channels(self, driver: Driver, brokers: tuple[int, ...]) -> None: ...
    def ask(self, driver: Driver, question: fx.Ask, record: RecordId) -> None: ...
    def respond(self, driver: Driver, correlation_id: str, body: Any, record: RecordId) -> None: ...
    def append(self, driver: Driver, effect: fx.Append, record: RecordId) -> None: ...
    def read_log(self, driver: Driver, partition: Any, offset: int) -> tuple[fx.LogBatch, ...] | None: ...


@dataclass(slots=True)
class Begun:
    """What a suspended handler can be copied from: the context at its beginning and everything that it was told since."""

    context: Any
    answers: list[tuple[str, Any]]

    def copy(self) -> Begun:
        return Begun(self.context, self.answers.copy())


@dataclass(slots=True)
class Thread:
    """A source of events: who handles them, what waits, and the handler that is suspended, with what it waits for.

    Threads that name the same `lock` take turns: one holds it from `begin` to the end of its handler or to a `Release`.
    """

    name: str
    context: Any
    handle: Handle
    lock: str | None = None
    queue: EventQueue[Event] = field(default_factory=EventQueue)
    handler: fx.Handler | None = None
    event: Any = None
    begun: RecordId | None = None
    waits_for: RoundTrip | None = None
    answers: list[Any] = field(default_factory=list)
    begun_with: Begun | None = None
    has_let_go: bool = False  # of its lock: since then others may have changed the context under this handler
    changed: dict[Any, int] = field(default_factory=dict)  # the number of each partition's last move within this handler

    @property
    def sleeps_until(self) -> str:
        """The name of the timer that ends this thread's sleep."""
        return f"sleep-{self.name}"


class Timer:
    """A timer that is armed: when it fires, which thread gets which event, and the record that armed it."""

    __slots__ = ("at_ms", "event", "periodic", "record", "thread")

    def __init__(self, at_ms: int, thread: str, event: Any, record: RecordId, *, periodic: bool) -> None:
        self.at_ms, self.thread, self.event, self.record, self.periodic = at_ms, thread, event, record, periodic

    @property
    def goes_by_itself(self) -> bool:
        """Whether it fires when nothing else is left to do: no periodic one, and none that says that a member was silent."""
        return not self.periodic and self.thread != REQUESTS


class Driver:
    """One broker process: its two contexts, its threads, its session, its timers and its unanswered requests."""

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
        self.group: GroupContext | None = None  # where it coordinates groups
        self.threads = {thread.name: thread for thread in threads}
        self.route = route
        self.locks: dict[str, str] = {}
        self.watched: set[tuple[str, bool]] = set()
        self.timers: dict[str, Timer] = {}
        self.parked: dict[str, str] = {}
        self.behind: dict[Any, HostedPartition] = {}  # what this broker leads and not everybody has caught up with
        self.exit_code: int | None = None  # once the process wants to stop
        self.is_cut_off = False  # whether its session has ended and its client library has not opened another one yet
        self.exit_cause: RecordId | None = None
        self.exact = False  # whether suspended handlers keep what a fingerprint needs

    # ---------------------------------------------------------------- journal and queues

    def log(self, kind: str, cause: RecordId | None, **fields: Any) -> RecordId:
        return self.journal.add(self.node, self.incarnation, kind, cause, self.clock(), fields)

    def log_batch(self, spell: Spell, *columns: Sequence[Any]) -> None:
        """A record for each row of the columns, as `Journal.add_batch` spells them, from `next_seq` on."""
        self.journal.add_batch(self.node, self.incarnation, self.clock(), spell, columns)

    @property
    def next_seq(self) -> int:
        return self.journal.next_seq(self.node, self.incarnation)

    def enqueue(self, event: Event, cause: RecordId | None, thread: str | None = None, *, noticed: bool = False) -> RecordId:
        """Put an event into the queue of a thread, or of the one that is there for it.

        `noticed` says that it is the next undelivered watch event.
        """
        thread = thread or self.route(event)
        if hasattr(event, "timestamp_ms"):
            event = replace(event, timestamp_ms=self.clock())  # type: ignore[call-arg]
        record = self.log("enqueue", cause, thread=thread, event=event, noticed=noticed)
        self.threads[thread].queue.put(event, self.clock(), record)
        return record

    def clear(self, thread: str, cause: RecordId | None) -> None:
        """Take out and preempt all that waits; whoever waits for an answer is told so, where Kafka tells him."""
        for item in self.threads[thread].queue.clear():
            record = self.log("preempt", cause, thread=thread, event=item.event)
            if correlation_id := getattr(item.event, "correlation_id", None):
                self._respond(correlation_id, preempted(self.controller.rules, item.event), record)

    # ---------------------------------------------------------------- what can be done

    def can_begin(self, thread: Thread) -> bool:
        return thread.handler is None and bool(thread.queue) and (thread.lock is None or thread.lock not in self.locks)

    def can_advance(self, thread: Thread) -> bool:
        """Whether a suspended handler can go on: it does not sleep, wait for a new session, or wait for another to let go."""
        if (
            thread.handler is None
            or thread.sleeps_until in self.timers
            or (self.is_cut_off and self.controller.rules.outlives_session)
        ):
            return False
        return thread.lock is None or self.locks.get(thread.lock, thread.name) == thread.name

    def ready(self) -> list[tuple[str, str]]:
        """What its threads can do now, in their order: each `advance` or `begin`, and the thread."""
        advancing = {name: self.can_advance(thread) for name, thread in self.threads.items()}
        can = {name: "advance" if advancing[name] else "begin" if self.can_begin(t) else "" for name, t in self.threads.items()}
        return [(kind, name) for name, kind in can.items() if kind]

    @property
    def is_quiet(self) -> bool:
        return all(thread.handler is None for thread in self.threads.values())

    def begin(self, name: str) -> None:
        """Take the next event and run its handler to its first round trip."""
        thread = self.threads[name]
        item = thread.queue.take(self.clock())
        thread.event = item.event
        thread.begun = self.log("begin", item.record, thread=name, event=item.event.name)
        if thread.lock:
            self.locks[thread.lock] = name
        if self.exact:
            thread.begun_with = Begun(thread.context.copy(), [])
        thread.handler = thread.handle(thread.context, item.event)
        self._resume(thread, thread.handler.send, None)

    def advance(self, name: str) -> None:
        """Perform the round trip that the handler waits for, and run it to the next one."""
        thread = self.threads[name]
        assert thread.handler is not None and thread.waits_for is not None
        if thread.lock:
            self.locks[thread.lock] = name
        try:
            done, answer = thread.waits_for.perform(self, thread)
        except Exception as error:  # ControllerMoved, FenceBroken, SessionExpired, or a call that nobody can perform
            if self._sends_again(error):
                self.log("connection_loss", thread.begun, thread=name)
                return
            self.log("thrown", thread.begun, thread=name, error=type(error).__name__)
            self._resume(thread, thread.handler.throw, error)
        else:
            if done:
                self._resume(thread, thread.handler.send, answer)

    def _sends_again(self, error: Exception) -> bool:
        """Return whether the client library of this release sends a request again that ended in this error.

        Source: ZkClient.retryUntilConnected (up to 1.0) for both errors, KafkaZkClient.retryRequestsUntilConnected (1.1 on) for a
        lost connection alone.
        """
        outlived = isinstance(error, fx.SessionExpired) and self.controller.rules.outlives_session
        return outlived or isinstance(error, ConnectionLoss)

    def _resume(self, thread: Thread, go: Callable[[Any], Any], value: Any) -> None:
        handler = thread.handler
        assert handler is not None
        if thread.begun_with is not None:
            thread.begun_with.answers.append((go.__name__, value))
        try:
            effect = go(value)
            while is_instant(effect):
                effect = handler.send(self._perform(thread, effect))
            thread.waits_for = RoundTrip(effect, pipelined=self.controller.rules.pipelined)
            if isinstance(effect, fx.Release) and thread.lock:
                self.locks.pop(thread.lock, None)
                thread.has_let_go = True
                self.log("release", thread.begun, thread=thread.name)
            elif isinstance(effect, fx.Sleep):
                self._arm(thread, fx.Arm(thread.sleeps_until, effect.delay_ms, None))
        except StopIteration:
            self._end(thread, None)
        except Exception as error:  # Kafka logs whatever an event throws and goes on: so does a broker here
            self._end(thread, error)

    def _end(self, thread: Thread, error: Exception | None) -> None:
        if error is not None:
            if thread.name == "main":
                self.exit_code, self.exit_cause = 1, thread.begun
            self._complain(thread, fx.Complain(error))
        self.log("end", thread.begun, thread=thread.name)
        thread.handler = thread.event = thread.waits_for = thread.begun_with = None
        thread.changed, thread.has_let_go = {}, False
        if thread.lock:
            self.locks.pop(thread.lock, None)

    # ---------------------------------------------------------------- instant effects

    def _perform(self, thread: Thread, effect: fx.Effect) -> Any:
        return PERFORM[type(effect)](self, thread, effect)

    def _commit(self, thread: Thread, effect: fx.Commit) -> fx.Committed:
        return commits.perform(self, thread, effect.changes)

    def _learn(self, thread: Thread, effect: fx.Learn) -> None:
        context: Any = getattr(self, effect.context)
        before = self.controller.live_broker_epochs.copy() if effect.field == "live_broker_epochs" else {}  # type: ignore[attr-defined]
        apply_learn(context, effect)
        held = getattr(context, effect.field)
        kind = "set" if isinstance(held, set) else "value" if not hasattr(held, "__len__") or isinstance(held, str) else "map"
        fields = {
            "context": effect.context,
            "field": effect.field,
            "of": kind,
            "clear": effect.clear,
            "remove": effect.remove,
            "put": effect.put,
        }
        self.log("learn", thread.begun, **fields)
        if effect.field == "hosted":
            self._look_behind({**dict.fromkeys(effect.remove), **(effect.put or {})})
        gone = tuple(b for b, epoch in before.items() if self.controller.live_broker_epochs.get(b) != epoch)
        if effect.field == "has_channels" and not effect.put:
            gone = self.controller.live_or_shutting_down_broker_ids
        if gone:
            self.outbox.close_channels(self, gone)

    def _move_group(self, thread: Thread, effect: fx.MoveGroup) -> None:
        assert self.group is not None
        apply_move(self.group, effect)
        said = {"group": effect.group_id, "from": effect.source, "to": effect.target, "rule": effect.rule, "value": effect.value}
        self.log("group", thread.begun, **said)

    def _append(self, thread: Thread, effect: fx.Append) -> None:
        records = [list(record) for record in effect.records]
        record = self.log("append", thread.begun, partition=effect.partition, records=records, then=effect.then)
        self.outbox.append(self, effect, record)

    def _adopt(self, thread: Thread, effect: fx.Adopt) -> None:
        told = thread.event.partitions
        chosen = told if effect.partitions is None else {tp: told[tp] for tp in effect.partitions}
        put = {tp: HostedPartition.told(entry) for tp, entry in chosen.items()} if effect.field == "hosted" else chosen
        apply_learn(self.broker, fx.Learn(effect.field, put))
        if effect.field == "hosted":
            self._look_behind(put)
        self.log("adopt", thread.begun, field=effect.field, request=thread.event.request, partitions=effect.partitions)

    def _look_behind(self, changed: Mapping[Any, HostedPartition | None]) -> None:
        for tp, held in changed.items():
            leads = held is not None and held.value.leader == self.node and not held.pending_isr
            if held and leads and (len(held.value.isr) < len(held.replicas) or self.broker.rules.strangers_obey):
                self.behind[tp] = held
            else:
                self.behind.pop(tp, None)

    def _watch(self, thread: Thread, effect: fx.Watch | fx.Unwatch) -> None:
        change = self.watched.add if isinstance(effect, fx.Watch) else self.watched.discard
        change((effect.path, effect.children))

    def _send(self, thread: Thread, effect: fx.Send) -> None:
        record = self.log("send", commits.latest(thread), requests=effect.requests)
        self.outbox.send(self, effect.requests, record)

    def _ask(self, thread: Thread, effect: fx.Ask) -> None:
        record = self.log("ask", thread.begun, api=effect.api, body=effect.body)
        self.outbox.ask(self, effect, record)

    def _answer(self, thread: Thread, effect: fx.Respond) -> None:
        self._respond(effect.correlation_id, effect.body, thread.begun)

    def _respond(self, correlation_id: str, body: Any, cause: RecordId | None) -> None:
        self.parked.pop(correlation_id, None)
        record = self.log("respond", cause, correlation_id=correlation_id, body=body)
        self.outbox.respond(self, correlation_id, body, record)

    def _park(self, thread: Thread, effect: fx.Park) -> None:
        self.parked[effect.correlation_id] = effect.key
        self.log("park", thread.begun, correlation_id=effect.correlation_id, key=effect.key)

    def _arm(self, thread: Thread, effect: fx.Arm) -> None:
        at_ms = self.clock() + effect.delay_ms
        name = self.route(effect.event) if effect.event else thread.name
        record = self.log("arm", thread.begun, timer=effect.timer, thread=name, fires_at_ms=at_ms, event=effect.event)
        self.timers[effect.timer] = Timer(at_ms, name, effect.event, record, periodic=effect.periodic)

    def _cancel(self, thread: Thread, effect: fx.Cancel) -> None:
        if self.timers.pop(effect.timer, None):
            self.log("cancel", thread.begun, timer=effect.timer)

    def _complain(self, thread: Thread, effect: fx.Complain) -> None:
        said = {"event": thread.event.name, "error": type(effect.error).__name__, "message": str(effect.error)}
        self.log("fail", thread.begun, thread=thread.name, **said)

    def _exit(self, thread: Thread, effect: fx.Exit) -> None:
        self.exit_code, self.exit_cause = effect.exit_code, thread.begun

    def _enqueue(self, thread: Thread, effect: fx.Enqueue) -> None:
        name = effect.thread or self.route(effect.event)
        if effect.clear:
            self.clear(name, thread.begun)
        self.enqueue(effect.event, thread.begun, name)

    def fire(self, timer: str) -> None:
        """The time of a timer has come: its event is queued, or who slept goes on. Raises KeyError if it is not armed."""
        due = self.timers.pop(timer)
        record = self.log("fire", due.record, timer=timer)
        if due.event:
            self.enqueue(due.event, record, due.thread)


PERFORM: dict[type, Callable[[Driver, Thread, Any], Any]] = {
    fx.Commit: Driver._commit,
    fx.Learn: Driver._learn,
    fx.MoveGroup: Driver._move_group,
    fx.Append: Driver._append,
    fx.Adopt: Driver._adopt,
    fx.WriteLog: logs.write,
    fx.Watch: Driver._watch,
    fx.Unwatch: Driver._watch,
    fx.Send: Driver._send,
    fx.Ask: Driver._ask,
    fx.Respond: Driver._answer,
    fx.Park: Driver._park,
    fx.Arm: Driver._arm,
    fx.Cancel: Driver._cancel,
    fx.Enqueue: Driver._enqueue,
    fx.Complain: Driver._complain,
    fx.Exit: Driver._exit,
}
