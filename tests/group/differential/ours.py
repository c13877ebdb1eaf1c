"""Plays a sequence of steps on our coordinator and says after each step what can be seen, in the words of the Java beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from kcontrol.core.effects import Append, LogBatch
from kcontrol.core.model import TopicPartition
from kcontrol.driver.driver import Driver
from kcontrol.group import events as e
from kcontrol.group import handlers
from kcontrol.group.context import GroupConfig
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.group.error_codes import ERRORS
from kcontrol.group.model import Group, GroupProtocol, Members
from kcontrol.journal.journal import RecordId
from tests.conformance.group.stage import Answer, Stage
from tests.group.differential.seen import answer_of, state_of

Json = dict[str, Any]
NAMES = {code: name for name, code in ERRORS.items()}
LAST = 1_000_000
SETTINGS = {
    "min_session": "min_session_timeout_ms", "max_session": "max_session_timeout_ms", "initial_delay": "initial_delay_ms",
    "max_size": "max_size", "partitions": "partitions", "retention_ms": "retention_ms", "metadata_max": "metadata_max",
}  # fmt: skip


@contextmanager
def hash_map_order(ranks: Mapping[str, int], votes: Mapping[str, int]) -> Iterator[None]:
    """Walk members by rank and decide ties of the vote by `votes`, as Kafka's hash maps do; what has no rank comes last."""
    make = Group.__init__

    def make_sorted(group: Group, *args: Any, **fields: Any) -> None:
        make(group, *args, **fields)
        members = sorted(group.members.values(), key=lambda member: ranks.get(member.member_id, LAST))
        object.__setattr__(group, "members", Members(members))

    def select_protocol(group: Group) -> str:
        found = group.votes
        return max(found, key=lambda name: (found[name], -votes.get(name, LAST)))

    with mock.patch.object(Group, "__init__", make_sorted), mock.patch.object(Group, "select_protocol", select_protocol):
        yield


class Recorder(Stage):
    """A stage that keeps what one step did: answers, records and exceptions. `is_slow`: a partition's loading has begun."""

    def __init__(self, release: str, config: GroupConfig, owned: set[int]) -> None:
        super().__init__(release, config, owned)
        self.is_slow = False
        self.clear()

    def clear(self) -> None:
        self.records: list[list[Any]] = []
        self.bodies: dict[str, tuple[Any, int]] = {}
        self.exceptions: list[str] = []

    def settle(self) -> None:
        """Handle all that is ready, except what waits for a slow loading."""
        while ready := [item for item in self.driver.ready() if not (self.is_slow and item[1] == handlers.SCHEDULER)]:
            kind, thread = ready[0]
            before = len(self.journal)
            getattr(self.driver, kind)(thread)
            for record in self.journal.since(before):
                if record.kind == "handler_error":
                    said = record.fields
                    self.exceptions.append(f"{said['error']} from {said['event']}: {said['message']}")

    def respond(self, driver: Driver, correlation_id: str, body: Any, record: RecordId) -> None:
        if correlation_id in self.bodies:
            self.exceptions.append(f"answered twice: {correlation_id}")
        self.bodies[correlation_id] = body, self.now
        self.answers[correlation_id] = Answer(body, self.now, 0)

    def base(self, partition: TopicPartition) -> int:
        log = self.logs.setdefault(partition, [])
        return log[-1].base_offset + max(len(log[-1].records), 1) if log else 0

    def append(self, driver: Driver, effect: Append, record: RecordId) -> None:
        """Write, and end the write as `mode` says; the record of an Empty group is held as any other, tombstones are not."""
        partition, base = effect.partition, self.base(effect.partition)
        producer = -1 if effect.producer_id is None else effect.producer_id
        self.records += [[partition.partition, k.hex(), None if v is None else v.hex(), producer] for k, v in effect.records]
        if self.mode != "fail":
            self.logs[partition].append(LogBatch(base, effect.records, effect.producer_id))
        if self.mode == "hold" and (effect.completion_event is not None or any(value is not None for _, value in effect.records)):
            self.held.append((effect.completion_event, base, record))
        elif effect.completion_event is not None:
            has_failed = self.mode == "fail"
            error, at = (self.error, -1) if has_failed else ("NONE", base)
            driver.enqueue(replace(effect.completion_event, error=error, base_offset=at), record)

    def release_some(self, error: str, only: int | None) -> None:
        """End the writes that are held, or the first `only` of them."""
        if only is not None and only < len(self.held):
            held, self.held = self.held[:only], self.held[only:]
        else:
            self.mode, held, self.held = "ok", self.held, []
        for then, base, record in held:
            if then is not None:
                self.driver.enqueue(replace(then, error=error, base_offset=base if error == "NONE" else -1), record)
                self.settle()


class Ours:
    """One coordinator of ours; `play` does one step and returns what was seen."""

    def __init__(self, release: str, config: Json) -> None:
        self.release = release
        settings = {SETTINGS[key]: value for key, value in config.items() if key in SETTINGS}
        self.stage = Recorder(release, GroupConfig.of(release, **settings), set(config["owned"]))
        self.verbs: dict[str, str] = {}

    def play(self, step: Json) -> Json:
        """Do a step at its time; whatever is raised is part of what is seen."""
        stage = self.stage
        stage.clear()
        if "as" in step:
            self.verbs[step["as"]] = step["do"]
        for name, act in (("step", lambda: self.act(step)), ("timer", lambda: stage.advance(stage.now))):
            try:
                act()
            except Exception as problem:
                stage.exceptions.append(f"{name}: {type(problem).__name__}: {problem}")
        context = stage.context
        seen: Json = {
            "ans": {
                label: answer_of(self.verbs[label], body, self.release) | {"at": at} for label, (body, at) in stage.bodies.items()
            },
            "app": stage.records,
            "st": state_of(context),
            "tm": sorted(f"{name} @{timer.at_ms}" for name, timer in stage.driver.timers.items()),
            "own": sorted(context.owned),
            "load": sorted(context.loading),
        }
        return seen | ({"exc": stage.exceptions} if stage.exceptions else {})

    def act(self, step: Json) -> None:
        self.stage.advance(step["at"])
        if step["do"] in REQUESTS:
            self.stage.handle(REQUESTS[step["do"]](step))
        else:
            getattr(self, step["do"])(step)

    # ---- what is no request

    def tick(self, step: Json) -> None:
        """Let time pass, and nothing else."""

    def cleanup(self, step: Json) -> None:
        self.stage.handle(e.ExpireOffsets())

    def append(self, step: Json) -> None:
        error = NAMES[step.get("error", 0)]
        if step["mode"] == "release":
            self.stage.release_some(error, step.get("only"))
        else:
            self.stage.mode, self.stage.error = step["mode"], error

    def elect(self, step: Json) -> None:
        stage, event = self.stage, e.PartitionElected(step["partition"], step["epoch"])
        if not step.get("slow") or stage.is_slow:
            stage.handle(event)
            return
        stage.driver.enqueue(event, None)
        stage.driver.begin(handlers.SCHEDULER)
        stage.is_slow = bool(stage.context.loading)
        stage.settle()

    def finish(self, step: Json) -> None:
        self.stage.is_slow = False
        self.stage.settle()

    def resign(self, step: Json) -> None:
        self.stage.handle(e.PartitionResigned(step["partition"], step.get("epoch")))

    def end_txn(self, step: Json) -> None:
        partition, producer = TopicPartition(OFFSETS_TOPIC, step["partition"]), step["producer"]
        marker = "commit" if step["commit"] else "abort"
        self.stage.logs.setdefault(partition, []).append(LogBatch(self.stage.base(partition), (), producer, marker))
        self.stage.handle(e.TransactionCompleted(producer, (step["partition"],), step["commit"]))

    def extend(self, step: Json) -> None:
        """Write what another coordinator wrote meanwhile."""
        partition = TopicPartition(OFFSETS_TOPIC, step["partition"])
        for batch in step["batches"]:
            records = tuple((bytes.fromhex(k), None if v is None else bytes.fromhex(v)) for k, v in batch.get("records", ()))
            marker = ("commit" if batch["marker"] else "abort") if "marker" in batch else None
            base = self.stage.base(partition)
            self.stage.logs[partition].append(LogBatch(base, records, batch.get("producer"), marker))


# ---------------------------------------------------------------- requests


def _join(step: Json) -> e.JoinGroup:
    protocols = tuple(GroupProtocol(name, bytes.fromhex(metadata)) for name, metadata in step["protocols"])
    return e.JoinGroup(
        step["as"], step["group"], step.get("member", ""), step["session"], step["rebalance"], step["type"], protocols,
        step.get("instance"), step.get("client", "c"), step.get("host", "/h"), step.get("uuid", "none"),
        step.get("require_known", False),
    )  # fmt: skip


def _sync(step: Json) -> e.SyncGroup:
    assignment = {member: bytes.fromhex(data) for member, data in step.get("assignment", {}).items()}
    named = step.get("instance"), step.get("type"), step.get("protocol")
    return e.SyncGroup(step["as"], step["group"], step["member"], step["gen"], assignment, *named)


def _leave(step: Json) -> e.LeaveGroup:
    members = tuple(e.MemberIdentity(member.get("member", ""), member.get("instance")) for member in step["members"])
    return e.LeaveGroup(step["as"], step["group"], members)


def _commit(step: Json) -> e.OffsetCommit:
    offsets = {
        TopicPartition.parse(o["tp"]): e.CommittedOffset(o["offset"], o.get("metadata", ""), o.get("commit"), o.get("epoch", -1))
        for o in step["offsets"]
    }
    rest = step.get("instance"), step.get("retention"), step.get("producer")
    return e.OffsetCommit(step["as"], step["group"], step.get("member", ""), step["gen"], offsets, *rest)


def _fetch(step: Json) -> e.OffsetFetch:
    asked = step.get("partitions")
    partitions = None if asked is None else tuple(map(TopicPartition.parse, asked))
    return e.OffsetFetch(step["as"], step["group"], partitions, step.get("require_stable", False))


REQUESTS: dict[str, Callable[[Json], Any]] = {
    "join": _join,
    "sync": _sync,
    "heartbeat": lambda s: e.Heartbeat(s["as"], s["group"], s["member"], s["gen"], s.get("instance")),
    "leave": _leave,
    "commit": _commit,
    "fetch": _fetch,
    "describe": lambda s: e.DescribeGroup(s["as"], s["group"]),
    "list": lambda s: e.ListGroups(s["as"], tuple(s.get("states", ()))),
    "delete": lambda s: e.DeleteGroups(s["as"], tuple(s["groups"])),
    "offset_delete": lambda s: e.OffsetDelete(s["as"], s["group"], tuple(map(TopicPartition.parse, s["partitions"]))),
}


def play(sequence: Json, release: str, votes: Mapping[str, int]) -> list[Json]:
    """Return what was seen after each step of a sequence."""
    with hash_map_order(sequence["ranks"], votes):
        ours = Ours(release, sequence["config"])
        return [ours.play(step) for step in sequence["steps"]]
