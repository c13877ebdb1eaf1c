"""One coordinator on a manual clock: the real driver with its threads, a log in memory, answers by correlation id."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from kcontrol.broker.context import BrokerContext
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.handlers import design_of
from kcontrol.core.controller_rules import rules
from kcontrol.core.effects import Append, LogBatch
from kcontrol.core.events import Event
from kcontrol.core.model import TopicPartition
from kcontrol.driver.driver import Driver
from kcontrol.driver.threads import Thread
from kcontrol.group import handlers
from kcontrol.group.context import GroupConfig, GroupContext
from kcontrol.group.group_rules import group_rules
from kcontrol.group.offsets_topic_records import decode, group_key
from kcontrol.journal.journal import Journal, RecordId

BROKER = 1


@dataclass(frozen=True)
class Answer:
    """`timers` is how many timers had to fire, one after the other, for this answer."""

    body: Any
    at: int
    timers: int


class Broken(Exception):
    """Something that Kafka's coordinator never does: a second answer, or an exception out of a handler."""


class Stage:
    """`mode` says how writes end: at once ("ok", "fail" with `error`), or when they are released ("hold")."""

    def __init__(self, release: str, config: GroupConfig, owned: Iterable[int], loading: Iterable[int] = ()) -> None:
        self.release, self.now = release, 0
        self.answers: dict[str, Answer] = {}
        self.logs: dict[TopicPartition, list[LogBatch]] = {}
        self.mode, self.error = "ok", "NONE"
        self.held: list[tuple[Any, int, RecordId]] = []
        self.tombstones: list[bytes] = []
        self.written: list[tuple[bytes, bytes | None]] = []
        self.journal = Journal()
        self.context = GroupContext(group_rules(release), config, set(owned), set(loading))
        column = rules(release)
        threads = [Thread(name, self.context, handlers.handle) for name in (handlers.REQUESTS, handlers.SCHEDULER)]
        self.driver = Driver(
            BROKER, 1, None, self.journal, lambda: self.now, self,  # type: ignore[arg-type]
            ControllerContext(BROKER, column, design_of(column)), BrokerContext(BROKER, column), threads,
            lambda event: handlers.THREADS[type(event)],
        )  # fmt: skip
        self.driver.group = self.context

    # ---- time and events

    def advance(self, at: int) -> None:
        """Fire what is due by then, earliest first, in the order of insertion; each sees the clock at its deadline."""
        while True:
            due = [(timer.at_ms, timer.record.seq, name) for name, timer in self.driver.timers.items() if timer.at_ms <= at]
            if not due:
                break
            self.now, _, name = min(due)
            self.driver.fire(name)
            self.settle()
        self.now = max(self.now, at)

    def handle(self, event: Event) -> None:
        """Handle an event, and the events that it causes at this moment."""
        self.driver.enqueue(event, None)
        self.settle()

    def settle(self) -> None:
        while ready := self.driver.ready():
            kind, thread = ready[0]
            before = len(self.journal)
            getattr(self.driver, kind)(thread)
            for record in self.journal.since(before):
                if record.kind == "handler_error" and record.fields["event"] != "PartitionElected":
                    raise Broken(f"{record.fields['error']} from {record.fields['event']}: {record.fields['message']}")

    # ---- the effects that the driver passes on

    def respond(self, driver: Driver, correlation_id: str, body: Any, record: RecordId) -> None:
        if correlation_id in self.answers:
            raise Broken(f"{correlation_id} is answered twice")
        timers = sum(cause.kind == "fire_timer" for cause in self.journal.why(record))
        self.answers[correlation_id] = Answer(body, self.now, timers)

    def append(self, driver: Driver, effect: Append, record: RecordId) -> None:
        log = self.logs.setdefault(effect.partition, [])
        base = log[-1].base_offset + max(len(log[-1].records), 1) if log else 0
        if effect.completion_event is None or self.mode != "fail":
            log.append(LogBatch(base, effect.records, effect.producer_id))
            self.written += effect.records
            self.tombstones += [key for key, value in effect.records if value is None]
        if effect.completion_event is None:
            return
        if self.mode == "hold":
            self.held.append((effect.completion_event, base, record))
        else:
            error = self.error if self.mode == "fail" else "NONE"
            driver.enqueue(replace(effect.completion_event, error=error, base_offset=base), record)

    def release_held(self, error: str) -> None:
        """Acknowledge all that waits, in its order."""
        self.mode, held, self.held = "ok", self.held, []
        for then, base, record in held:
            self.driver.enqueue(replace(then, error=error, base_offset=base), record)
            self.settle()

    def read_log(self, driver: Driver, partition: TopicPartition, offset: int) -> tuple[LogBatch, ...] | None:
        return tuple(batch for batch in self.logs.get(partition, []) if batch.base_offset >= offset)

    # ---- looking at it

    def committed(self) -> set[str]:
        return {f"{group}:{tp}" for group, held in self.context.offsets.items() for tp in held.committed}

    def names_of(self, tombstones: Iterable[bytes]) -> set[str]:
        """Tombstones by what they are about."""
        return {name_of(key) for key in tombstones}


def name_of(key: bytes) -> str:
    if key[:2] == group_key("")[:2]:
        return f"group:{decode('group_key', key)[1]['group']}"
    fields = decode("offset_key", key)[1]
    return f"offset:{fields['group']}:{fields['topic']}-{fields['partition']}"
