"""Those who ask the controller for something and are answered: brokers and admin clients; and the answers of brokers to it."""

from __future__ import annotations

from typing import Any

from kcontrol.cluster.network import response_event
from kcontrol.core import events
from kcontrol.core.model import LeaderAndIsr, TopicPartition
from kcontrol.driver.driver import Driver
from tests.conformance.stage import Stage
from tests.conformance.values import CannotPlay, look_up, partition, partitions, pick, plain


def make_event(name: str, **fields: Any) -> events.Event:
    """An event of the product. Raises CannotPlay, by name, where there is none or it does not carry that much."""
    kind = getattr(events, name, None)
    if kind is None:
        raise CannotPlay(f"the product has no event {name} yet")
    try:
        event: events.Event = kind(**fields)
    except TypeError:
        raise CannotPlay(f"the product's event {name} does not carry {', '.join(fields)} yet") from None
    return event


def _ask(stage: Stage, at: Driver, name: str, action: str, broker: int | None = None, **fields: Any) -> None:
    """Queue a request and remember who waits for its answer."""
    correlation_id = f"case-{len(stage.asked) + 1}"
    event = make_event(name, correlation_id=correlation_id, **fields)
    stage.asked[correlation_id] = {"action": action} | ({} if broker is None else {"broker": broker})
    at.enqueue(event, None)


# ---------------------------------------------------------------- requests


def api_reassign(stage: Stage, given: Any) -> None:
    """AlterPartitionReassignments; null cancels."""
    targets = {partition(tp): None if replicas is None else tuple(replicas) for tp, replicas in given.items()}
    _ask(stage, stage.controller(), "ApiPartitionReassignment", "api_reassign", targets=tuple(targets.items()))


def list_reassignments(stage: Stage, given: Any) -> None:
    """ListPartitionReassignments, of all or of those named."""
    named = None if given is True else partitions(given)
    _ask(stage, stage.controller(), "ListPartitionReassignments", "list_reassignments", partitions=named)


def elect_leaders(stage: Stage, given: Any) -> None:
    """ElectLeaders by an admin client."""
    fields = {"partitions": partitions(given["partitions"]), "election_type": given["type"], "trigger": "AdminClientTriggered"}
    _ask(stage, stage.controller(), "ReplicaLeaderElection", "elect_leaders", **fields)


def auto_rebalance(stage: Stage, _: Any) -> None:
    """The timer of the automatic rebalance fires."""
    stage.controller().enqueue(make_event("AutoPreferredReplicaLeaderElection"), None)


def controlled_shutdown(stage: Stage, given: Any) -> None:
    """A broker sends ControlledShutdown to the active controller, or to the broker that `to` names."""
    broker = given["broker"]
    at = stage.driver(given["to"]) if "to" in given else stage.controller()
    epoch = _epoch(stage, broker, given.get("epoch", "current"))
    _ask(stage, at, "ControlledShutdown", "controlled_shutdown", broker, broker_id=broker, broker_epoch=epoch)


def alter_isr(stage: Stage, given: Any) -> None:
    """A leader asks for other ISRs."""
    broker, wanted = given["broker"], []
    for tp, value in given["partitions"].items():
        asked = LeaderAndIsr(broker, tuple(value["isr"]), value["leader_epoch"], value["zk_version"])
        wanted.append((partition(tp), asked))
    epoch = _epoch(stage, broker, given.get("epoch", "current"))
    fields = {"broker_id": broker, "broker_epoch": epoch, "partitions": tuple(wanted)}
    _ask(stage, stage.controller(), "AlterIsrReceived", "alter_isr", broker, **fields)


def _epoch(stage: Stage, broker: int, which: str) -> int:
    current = stage.epochs.get(broker, -1)
    return int(look_up({"current": current, "stale": current - 1, "unknown": -1}, "epoch", which))


# ---------------------------------------------------------------- answers to requests of the controller


def broker_answers(stage: Stage, given: Any) -> None:
    """A broker's response arrives at the controller."""
    look_up({"LeaderAndIsr": _answer_leader_and_isr, "StopReplica": _answer_stop_replica}, "api", given["api"])(stage, given)


def _answer_leader_and_isr(stage: Stage, given: Any) -> None:
    codes = {partition(tp): code for tp, code in given.get("partitions", {}).items()}
    errors = tuple((tp, code) for tp, code in codes.items() if code != "NONE")
    event = events.LeaderAndIsrResponseReceived(given["broker"], given.get("error", "NONE"), errors, tuple(codes))
    stage.controller().enqueue(event, None)


def _answer_stop_replica(stage: Stage, given: Any) -> None:
    """Every unanswered StopReplica that carries a delete and mentions a listed partition is answered and leaves its channel."""
    codes = {partition(tp): code for tp, code in given["partitions"].items()} if "partitions" in given else None
    for (sender, receiver), parcels in list(stage.world.network.channels.items()):
        if receiver != given["broker"] or sender not in stage.world.processes:
            continue
        for parcel in [p for p in parcels if p.api == "StopReplica" and _deletes(p.requests.stop_replica[receiver], codes)]:
            parcels.remove(parcel)
            answer = codes if codes is not None else dict.fromkeys(parcel.requests.stop_replica[receiver], "NONE")
            errors = {tp: code for tp, code in answer.items() if code != "NONE"}
            body = {"error": given.get("error", "NONE"), "errors": errors, "partitions": tuple(answer)}
            driver = stage.world.processes[sender].driver
            if event := response_event(parcel, receiver, body, driver.controller):
                driver.enqueue(event, parcel.record)


def _deletes(entries: dict[TopicPartition, Any], codes: dict[TopicPartition, str] | None) -> bool:
    return any(entry.delete for entry in entries.values()) and (codes is None or any(tp in entries for tp in codes))


# ---------------------------------------------------------------- the answers given


def results(stage: Stage, expected: list[Any]) -> Any:
    """All answers in the order in which they were given; of each, what the expectation at its place speaks of."""
    found = [_shown(stage, r) for r in stage.records("respond") if r.fields["correlation_id"] in stage.asked]
    if len(found) != len(expected):
        return found
    return [_as_asked(f, e) for f, e in zip(found, expected, strict=True)]


def _as_asked(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """A list of reassignments is compared whole, everything else as far as the expectation speaks of it."""
    whole = {"partitions": found["partitions"]} if found["action"] == "list_reassignments" and "partitions" in expected else {}
    picked: dict[str, Any] = pick(found, expected)
    return picked | whole


def _shown(stage: Stage, record: Any) -> dict[str, Any]:
    body, asked = record.fields["body"], stage.asked[record.fields["correlation_id"]]
    answers = {str(tp): plain(_value(answer)) for tp, answer in body["partitions"].items()}
    shown = asked | {"at": record.id.node, "error": body["error"], "partitions": answers}
    return shown | ({"remaining": sorted(answers)} if asked["action"] == "controlled_shutdown" else {})


def _value(answer: Any) -> Any:
    return answer._asdict() if hasattr(answer, "_asdict") else answer


_ACTIONS = (
    api_reassign, list_reassignments, elect_leaders, auto_rebalance, controlled_shutdown, alter_isr, broker_answers,
)  # fmt: skip
ACTIONS = {action.__name__: action for action in _ACTIONS}
