"""The kinds about what the controller keeps in memory: the counts of its context, and a batch of requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from kcontrol.cluster.network import QueuedRequest, response_event
from kcontrol.controller.context import apply_state_change, apply_update
from kcontrol.controller.request_batch import RequestBatch
from kcontrol.core.effects import StateChange, UpdateContext
from kcontrol.core.model import LeaderAndIsr, TopicPartition
from kcontrol.journal.journal import RecordId
from tests.conformance import requests
from tests.conformance.bench import Bench
from tests.conformance.values import (
    PARTITION_STATES,
    CannotPlay,
    assignment,
    is_within,
    look_up,
    only_item,
    partition,
    partitions,
)

Case = dict[str, Any]

COUNTS = {"offline_partition_count": "offline_partition_count", "preferred_imbalance_count": "preferred_replica_imbalance_count"}


def field_of(ctx: Any, name: str) -> Any:
    """A field of a context. Raises CannotPlay, by name, for one that the product does not have."""
    try:
        return getattr(ctx, name)
    except AttributeError:
        raise CannotPlay(f"the controller's context has no {name} yet") from None


def counts(ctx: Any, asked: Iterable[str]) -> dict[str, int]:
    return {name: field_of(ctx, look_up(COUNTS, "counter", name)) for name in asked}


# ---------------------------------------------------------------- context


def context(case: Case) -> dict[str, Any]:
    """Bookkeeping, top-down; what an `expect` finds is compared where it stands."""
    bench, found = Bench(case["version"]), []
    for item in case["when"]:
        name, value = only_item(item, "the step")
        if name == "expect":
            found.append(counts(bench.controller, value))
        else:
            look_up(STEPS, "step", name)(bench.controller, value)
    return {"expect": found}


def _assign(ctx: Any, value: Any) -> None:
    apply_update(ctx, UpdateContext("assignments", {partition(tp): assignment(given) for tp, given in value.items()}))


def _lead(ctx: Any, value: Any) -> None:
    led = {partition(tp): LeaderAndIsr(v["leader"], tuple(v["isr"]), v.get("leader_epoch", 0)) for tp, v in value.items()}
    apply_update(ctx, UpdateContext("leadership", led))


def _partition_state(ctx: Any, value: Any) -> None:
    for tp in partitions(value):
        target = look_up(PARTITION_STATES, "partition state", value[str(tp)])
        apply_state_change(ctx, StateChange(tp, ctx.partition_state(tp), target))


def _queue_deletion(ctx: Any, topics: Any) -> None:
    apply_update(ctx, UpdateContext("topics_to_be_deleted", topics))


def _begin_deletion(ctx: Any, topics: Any) -> None:
    _queue_deletion(ctx, topics)
    field_of(ctx, "topics_with_deletion_started")
    apply_update(ctx, UpdateContext("topics_with_deletion_started", topics))


def _remove_topic(ctx: Any, topic: Any) -> None:
    gone = tuple(tp for tp in ctx.assignments if tp.topic == topic)
    for name in ("topics_to_be_deleted", "topics_with_deletion_started", "all_topics"):
        if hasattr(ctx, name):
            apply_update(ctx, UpdateContext(name, remove=(topic,)))
    apply_update(ctx, UpdateContext("leadership", remove=gone))
    apply_update(ctx, UpdateContext("assignments", remove=gone))


STEPS = {
    # step             what it does to the context
    "assign":          _assign,
    "lead":            _lead,
    "partition_state": _partition_state,
    "queue_deletion":  _queue_deletion,
    "begin_deletion":  _begin_deletion,
    "remove_topic":    _remove_topic,
}  # fmt: skip


# ---------------------------------------------------------------- batch


class Batch:
    """One request batch of a controller with id 1, what it has sent, and the events that the answers became."""

    def __init__(self, case: Case) -> None:
        given = case["given"]
        self.ctx = _knowing(case["version"], given).controller
        self.batch = RequestBatch()
        self.sent: list[requests.Request] = []
        self.unanswered: list[tuple[int, QueuedRequest]] = []
        self.events: list[Any] = []

    def add_leader_and_isr(self, brokers: list[int], partition: str, is_new: bool = False) -> None:
        """Leadership and assignment are those of the context."""
        tp = TopicPartition.parse(partition)
        value = self.ctx.leadership.get(tp)
        if value is None:
            raise CannotPlay(f"{partition} has no leadership to send")
        self.batch.add_leader_and_isr(self.ctx, brokers, tp, value, self.ctx.assignments[tp], is_new=is_new)

    def add_stop_replica(self, brokers: list[int], partition: str, delete: bool) -> None:
        self.batch.add_stop_replica(self.ctx, brokers, TopicPartition.parse(partition), delete=delete)

    def add_update_metadata(self, brokers: list[int], partitions: list[str]) -> None:
        """Those whose leadership is known."""
        self.batch.add_update_metadata(self.ctx, brokers, map(TopicPartition.parse, partitions))

    def new_batch(self) -> None:
        """Start anew, which the batch refuses while something is in it."""
        if self.batch.fold(self.ctx).in_send_order():
            raise CannotPlay("a batch that is still full does not refuse to be started anew here")
        self.batch = RequestBatch()

    def send(self) -> None:
        """Fold the batch and note its requests, none of them answered."""
        for effect in self.batch.send_requests_to_brokers(self.ctx):
            folded = effect.requests
            self.sent += requests.of_batch(folded)
            number = len(self.unanswered)
            self.unanswered += [
                (broker, QueuedRequest(api, folded, RecordId(1, 1, number + i)))
                for i, (api, broker) in enumerate(folded.in_send_order())
            ]

    def answer(self, api: str, broker: int, error: str = "NONE", partitions: Any = None) -> None:
        """A broker answers every unanswered request of this api; what has no callback leads to nothing."""
        here = [(b, parcel) for b, parcel in self.unanswered if (b, parcel.api) == (broker, api)]
        self.unanswered = [item for item in self.unanswered if item not in here]
        for receiver, parcel in here:
            body = {"error": error, "errors": errors_of(partitions or {})}
            event = response_event(parcel, receiver, body, self.ctx)
            if event is not None:
                self.events.append(_shown(event))


def errors_of(codes: dict[str, str]) -> dict[TopicPartition, str]:
    """Error codes by partition, without those that say that all is well."""
    return {partition(tp): code for tp, code in codes.items() if code != "NONE"}


def _shown(event: Any) -> dict[str, Any]:
    errors = {str(tp): code for tp, code in getattr(event, "errors", ())}
    codes = {str(tp): errors.get(str(tp), "NONE") for tp in getattr(event, "partitions", ())}
    return {"event": event.name, "broker": event.broker_id, "error": event.error, "partitions": codes}


def _knowing(version: str, given: Case) -> Bench:
    """A bench whose controller knows what the case gives."""
    bench = Bench(version, inter_broker_protocol=given.get("ibp", version).split("-")[0])
    bench.register(given["live"], given.get("shutting_down", ()))
    epoch = given.get("controller_epoch", 1)
    named = {partition(tp): v for tp, v in given.get("partitions", {}).items()}
    bench.know(
        controller_epoch=epoch,
        assignments={tp: assignment({"replicas": v.get("isr", ())} | v) for tp, v in named.items()},
        leadership={tp: _leadership(v, epoch) for tp, v in named.items() if "leader" in v},
        topics_to_be_deleted=set(given.get("topics_to_delete", ())),
    )
    if given.get("deletion_started") and hasattr(bench.controller, "topics_with_deletion_started"):
        bench.know(topics_with_deletion_started=set(given["deletion_started"]))
    return bench


def _leadership(v: Case, epoch: int) -> LeaderAndIsr:
    return LeaderAndIsr(v["leader"], tuple(v.get("isr", ())), v.get("leader_epoch", 0), v.get("zk_version", 0), epoch)


BATCH_STEPS = {
    # step                 what it does
    "new_batch":           Batch.new_batch,
    "add_leader_and_isr":  Batch.add_leader_and_isr,
    "add_stop_replica":    Batch.add_stop_replica,
    "add_update_metadata": Batch.add_update_metadata,
    "send":                Batch.send,
    "answer":              Batch.answer,
}  # fmt: skip


def batch(case: Case) -> dict[str, Any]:
    """Fill a batch, send it, let brokers answer."""
    playing, expected = Batch(case), case["then"]
    for item in case["when"]:
        name, value = only_item(item, "the step")
        look_up(BATCH_STEPS, "step", name)(playing, **(value if isinstance(value, dict) else {}))
    found: dict[str, Any] = {"total_requests": len(playing.sent), "order": _order(playing.sent, expected.get("order", []))}
    found["events"] = _events(playing.events, expected.get("events", []))
    for name, check in requests.CHECKS.items():
        if name in expected:
            found[name] = check(playing.sent, expected[name])
    return found


def _order(sent: list[requests.Request], expected: list[list[Any]]) -> Any:
    """What is expected if the sequence of apis and, within each api, the brokers are right; else what was sent."""
    found = [[request["api"], request["to"]] for request in sent]
    same_apis = [api for api, _ in found] == [api for api, _ in expected]
    return expected if same_apis and Counter(map(tuple, found)) == Counter(map(tuple, expected)) else found


def _events(found: list[Any], expected: list[Any]) -> Any:
    same = len(found) == len(expected) and all(is_within(e, f) for e, f in zip(expected, found, strict=True))
    return expected if same else found


KINDS = {
    # kind       what it did, under the keys of `then`
    "context":   context,
    "batch":     batch,
}  # fmt: skip
