"""The kinds about one broker's threads: the queue of the event thread, and how a broker answers control requests."""

from __future__ import annotations

from typing import Any

from kcontrol.broker.context import HostedPartition
from kcontrol.broker.events import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest
from kcontrol.controller.event_thread import DESIGN
from kcontrol.controller.request_batch import LeaderAndIsrPartition, StopReplicaPartition
from kcontrol.core import events
from kcontrol.core.effects import Exists, Handler
from kcontrol.core.model import LeaderAndIsr, TopicPartition
from kcontrol.journal.journal import RecordId
from tests.conformance.bench import Bench, Story
from tests.conformance.values import CannotPlay, look_up, only_item, pick

Case = dict[str, Any]

THREAD = "controller"
TP = TopicPartition("t", 0)


# ---------------------------------------------------------------- event_queue


class Queue:
    """The queue of the controller's event thread, with a clock that only a step of a case moves."""

    def __init__(self, version: str) -> None:
        self.bench = Bench(version)
        self.thread = self.bench.driver.threads[THREAD]
        self.idle_for_ms = 0

    def put(self, given: Any) -> None:
        self.bench.driver.enqueue(_event(given), None, THREAD)

    def clear_and_put(self, given: Any) -> None:
        """Preempt what waits, then queue."""
        self.bench.driver.clear(THREAD, None)
        self.put(given)

    def take(self, _: Any) -> None:
        """The thread starts the first event, and is inside it from now on."""
        if self.thread.handler is not None or not self.thread.queue:
            raise CannotPlay("take: the thread is inside an event, or none is waiting")
        self.bench.driver.begin(THREAD)
        self.idle_for_ms = 0

    def finish(self, _: Any) -> None:
        if self.thread.handler is None:
            raise CannotPlay("finish: the thread is not inside an event")
        while self.thread.handler is not None:
            self.bench.driver.advance(THREAD)

    def run_all(self, _: Any) -> None:
        while self.thread.handler is not None or self.thread.queue:
            if self.thread.handler is None:
                self.take(None)
            self.finish(None)

    def advance_ms(self, ms: int) -> None:
        self.bench.now_ms += ms

    def idle_ms(self, ms: int) -> None:
        """Time passes while the thread waits on an empty queue."""
        if self.thread.handler is not None or self.thread.queue:
            raise CannotPlay("idle_ms: the queue is not empty, or the thread is inside an event")
        self.bench.now_ms += ms
        self.idle_for_ms += ms
        self.thread.queue.idle(self.idle_for_ms)

    # ------------------------------------------------------------ what is seen

    def seen(self) -> dict[str, Any]:
        """All that the format can ask about."""
        times = self.thread.queue.queue_times_ms
        inside = self.thread.handler is not None
        return {
            "processed": [r.fields["event"] for r in self.bench.journal.records if r.kind == "begin"],
            "preempted": [r.fields["event"].label for r in self.bench.journal.records if r.kind == "preempt"],
            "queued": [item.event.label for item in self.thread.queue.waiting],
            "state": (DESIGN.handlers[events.TopicChange].state if inside else events.ControllerState.IDLE).value,
            "queue_time": {"count": len(times), "min": min(times, default=0), "max": max(times, default=0)},
        }


class Named(Story):
    """An event that is known by its label."""

    @property
    def name(self) -> str:
        return self.label


def _event(given: Any) -> Named:
    label, fails = (given, False) if isinstance(given, str) else (given["name"], given.get("fails", False))

    def handler(ctx: Any) -> Handler:
        yield Exists(("/",))
        if fails:
            raise RuntimeError(f"{label} was to fail")

    return Named(label, handler)


STEPS = {
    # step            what it does
    "put":            Queue.put,
    "clear_and_put":  Queue.clear_and_put,
    "take":           Queue.take,
    "finish":         Queue.finish,
    "run_all":        Queue.run_all,
    "advance_ms":     Queue.advance_ms,
    "idle_ms":        Queue.idle_ms,
}  # fmt: skip


def event_queue(case: Case) -> dict[str, Any]:
    """What is seen at the end, and at each `expect`; of the queue time only what is asked for."""
    queue, expected, found = Queue(case["version"]), [], []
    for item in case["when"]:
        name, value = only_item(item, "the step")
        if name == "expect":
            expected.append(value)
            found.append(pick(queue.seen(), value))
        else:
            look_up(STEPS, "step", name)(queue, value)
    return pick(queue.seen(), case["then"]) | {"expect": found}


# ---------------------------------------------------------------- broker_fencing


def broker_fencing(case: Case) -> dict[str, Any]:
    """Each request meets the given state, independently of the others."""
    found, expected = [_response(case, asked) for asked in case["when"]], case["then"]["responses"]
    return {"responses": [pick(f, e) for f, e in zip(found, expected, strict=True)]}


def _response(case: Case, asked: Case) -> dict[str, Any]:
    given = case["given"]
    bench = Bench(case["version"], given["broker"])
    broker = bench.broker
    replicas = tuple(asked.get("replicas", (given["broker"],)))
    held = LeaderAndIsr(given["broker"], (given["broker"],), given["leader_epoch"], 0, given["controller_epoch"])
    object.__setattr__(broker, "broker_epoch", given["broker_epoch"])
    object.__setattr__(broker, "controller_epoch", given["controller_epoch"])
    broker.hosted[TP] = HostedPartition(held, (given["broker"],))  # type: ignore[index]
    event = _request(asked, replicas)
    bench.run(event, "requests")
    answer = bench.outbox.answers["asked"]
    found = {"error": answer["error"], "controller_epoch_after": broker.controller_epoch}
    if answer["error"] == "NONE" and asked["api"] != "UpdateMetadata":
        found["partition_error"] = answer["errors"].get(TP, "NONE")
    return found


def _request(asked: Case, replicas: tuple[int, ...]) -> Any:
    epoch, controller_epoch = asked.get("leader_epoch", 0), asked["controller_epoch"]
    leader = LeaderAndIsrPartition(replicas[0], epoch, replicas, controller_epoch, 0, replicas, (), (), False)
    header = {
        "correlation_id": "asked", "request": RecordId(9, 1, 1), "controller_id": 9, "controller_epoch": controller_epoch,
        "broker_epoch": asked["broker_epoch"],
    }  # fmt: skip
    make = {
        "LeaderAndIsr": lambda: LeaderAndIsrRequest(**header, partitions={TP: leader}),
        "UpdateMetadata": lambda: UpdateMetadataRequest(**header, partitions={}, live_brokers=replicas),
        "StopReplica": lambda: StopReplicaRequest(**header, partitions={TP: StopReplicaPartition(epoch, False)}),
    }
    return look_up(make, "api", asked["api"])()


KINDS = {
    # kind             what it did, under the keys of `then`
    "event_queue":     event_queue,
    "broker_fencing":  broker_fencing,
}  # fmt: skip
