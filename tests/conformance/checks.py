"""Every check of a scenario: CHECKS at the end is the list. Each returns what is expected if it holds, else what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kcontrol.core import znodes
from kcontrol.core.model import TopicPartition
from kcontrol.journal.journal import Record
from tests.conformance import requests
from tests.conformance.callers import results
from tests.conformance.kinds_memory import COUNTS, field_of
from tests.conformance.stage import Stage
from tests.conformance.values import CannotPlay, in_order_of, look_up, partition, pick, replica, short_state

# ---------------------------------------------------------------- ZooKeeper


def state(stage: Stage, expected: Mapping[str, Any]) -> Any:
    """State znodes, as far as the expectation speaks of them."""
    return {tp: pick(_state(stage, partition(tp)), wanted) for tp, wanted in expected.items()}


def _state(stage: Stage, tp: TopicPartition) -> Any:
    znode = stage.read(znodes.state_path(tp))
    return znodes.decode_state(znode.data, znode.stat.version)._asdict() | {} if znode else None


def assignments(stage: Stage, expected: Mapping[str, Any]) -> Any:
    """Topic znodes; where the expectation is a list, adding and removing must be empty."""
    return {tp: _assignment(stage, partition(tp), wanted) for tp, wanted in expected.items()}


def _assignment(stage: Stage, tp: TopicPartition, wanted: Any) -> Any:
    znode = stage.read(znodes.topic_path(tp.topic))
    found = znodes.decode_topic(znode.data).partitions.get(tp.partition) if znode else None
    if found is None:
        return None
    if isinstance(wanted, Mapping):
        empty = {"replicas": (), "adding": (), "removing": ()}
        return {name: value for name, value in found._asdict().items() if name in wanted or value != empty[name]}
    return found.replicas if not found.is_being_reassigned else found._asdict()


def paths(stage: Stage, expected: Mapping[str, Any]) -> Any:
    """Whether znodes exist, which broker `/controller` names, and what the reassignment znode contains."""
    return {path: _seen(stage, path, wanted) for path, wanted in expected.items()}


def _seen(stage: Stage, path: str, wanted: Any) -> Any:
    znode = stage.read(path)
    if isinstance(wanted, bool) or znode is None:
        return znode is not None
    if path == znodes.CONTROLLER:
        return znodes.decode_controller(znode.data)
    if path == znodes.REASSIGN_PARTITIONS:
        return znodes.decode_reassignment(znode.data)
    raise CannotPlay(f"the content of {path} cannot be checked")


def controller_epoch(stage: Stage, expected: Mapping[str, int]) -> Any:
    znode = stage.read(znodes.CONTROLLER_EPOCH)
    found = {"value": znodes.decode_controller_epoch(znode.data), "zk_version": znode.stat.version} if znode else None
    return pick(found, expected)


# ---------------------------------------------------------------- memory


def partition_states(stage: Stage, expected: Mapping[str, str]) -> Any:
    ctx = stage.controller().controller
    return {tp: short_state(ctx.partition_state(partition(tp))) for tp in expected}


def replica_states(stage: Stage, expected: Mapping[str, str]) -> Any:
    ctx = stage.controller().controller
    return {text: ctx.replica_state(replica(text)) for text in expected}


def context(stage: Stage, expected: Mapping[str, Any]) -> Any:
    """The controller's bookkeeping; lists are compared as sets."""
    ctx, found = stage.controller().controller, {}
    for name, wanted in expected.items():
        value = look_up(CONTEXT, "key of context", name)(ctx)
        found[name] = in_order_of(value, wanted) if isinstance(wanted, list) else value
    if "replicas_on_offline_dirs" in found:
        wanted = expected["replicas_on_offline_dirs"]
        found["replicas_on_offline_dirs"] = {
            broker: in_order_of(tps, wanted.get(broker, wanted.get(str(broker), [])))
            for broker, tps in found["replicas_on_offline_dirs"].items()
        }
    return found


CONTEXT: dict[str, Callable[[Any], Any]] = {
    # in the format             in the controller's context
    "topics":                   lambda ctx: ctx.all_topics,
    "topics_to_delete":         lambda ctx: ctx.topics_to_be_deleted,
    "topics_ineligible":        lambda ctx: field_of(ctx, "topics_ineligible_for_deletion"),
    "topics_deletion_started":  lambda ctx: field_of(ctx, "topics_with_deletion_started"),
    "reassigning":              lambda ctx: field_of(ctx, "partitions_being_reassigned"),
    "partitions_with_leaders":  lambda ctx: ctx.leadership,
    "live":                     lambda ctx: ctx.live_broker_ids,
    "shutting_down":            lambda ctx: ctx.shutting_down_broker_ids,
    "live_or_shutting_down":    lambda ctx: ctx.live_or_shutting_down_broker_ids,
    "replicas_on_offline_dirs": lambda ctx: ctx.offline_dirs,
    **{name: partial(lambda field, ctx: field_of(ctx, field), field) for name, field in COUNTS.items()},
}  # fmt: skip


def active(stage: Stage, expected: Mapping[Any, bool]) -> Any:
    believing = stage.active()
    return {broker: int(broker) in believing for broker in expected}


def cached_epoch(stage: Stage, expected: Mapping[Any, Any]) -> Any:
    """What the controllers of these brokers believe."""
    contexts = {broker: stage.driver(int(broker)).controller for broker in expected}
    return {b: {"value": c.controller_epoch, "zk_version": c.controller_epoch_zk_version} for b, c in contexts.items()}


# ---------------------------------------------------------------- requests


def recorded(stage: Stage) -> list[requests.Request]:
    """Every request put on a channel since the record was last cleared, over all controllers."""
    return [
        request
        for record in stage.records("send", stage.requests_from)
        for request in requests.of_batch(record.fields["requests"])
    ]


def _of_requests(check: Callable[[list[requests.Request], Any], Any]) -> Callable[[Stage, Any], Any]:
    return lambda stage, expected: check(recorded(stage), expected)


# ---------------------------------------------------------------- what happened


def unclean_elections(stage: Stage, expected: int) -> Any:
    """How often an unclean leader was chosen, also where the choice then lost a race."""
    chosen = [r for kind in ("change", "conflict", "failed_change") for r in stage.records(kind, stage.when_from)]
    return sum(record.fields.get("rule") == "unclean" for record in chosen)


def cas_retries(stage: Stage, expected: int) -> Any:
    """The writes of state znodes that an active controller lost to a newer version."""
    written = [r for r in stage.records("write", stage.when_from) if r.id.incarnation and r.fields["error"] == "BadVersion"]
    unfenced = [r for r in written if znodes.parse_state_path(r.fields["ops"][0][1]) and not _lost_the_fence(stage, r)]
    return len(stage.records("conflict", stage.when_from)) + len(unfenced)


def _lost_the_fence(stage: Stage, write: Record) -> bool:
    return any(record.cause == write.cause for record in stage.records("exception"))


def illegal_transitions(stage: Stage, expected: list[str]) -> Any:
    """What the machines have refused because there is no such row."""
    refused = [r.fields for r in stage.records("failed_change", stage.when_from) if r.fields["illegal"]]
    found = [f"{f['subject']}: {_short(f['source'])} -> {_short(f['target'])}" for f in refused]
    return expected if Counter(found) == Counter(expected) else found


def _short(of: Any) -> str:
    return str(of.value).removesuffix("Partition")


def controller_moved_while_processing(stage: Stage, expected: list[str]) -> Any:
    """The events that a failed epoch check has ended. An election, and AlterIsr, see to that themselves and go on."""
    begun = {record.id: record.fields["event"] for record in stage.records("begin")}
    thrown = [begun[r.cause] for r in stage.records("exception") if r.fields["error"] == "ControllerMoved" and r.cause]
    return [event for event in thrown if event not in ("Startup", "Reelect", "RegisterBrokerAndReelect", "AlterIsrReceived")]


def _epochs_learnt(stage: Stage, broker: int) -> list[int]:
    learnt = [r for r in stage.records("update") if r.id.node == broker and r.fields["context"] == "controller"]
    return [r.fields["put"] for r in learnt if r.fields["field"] == "controller_epoch"]


def resignations(stage: Stage, expected: Mapping[Any, int]) -> Any:
    """How often a broker has forgotten its epoch, which is the end of every resignation and of nothing else."""
    return {broker: _epochs_learnt(stage, int(broker)).count(0) for broker in expected}


def failovers(stage: Stage, expected: Mapping[Any, int]) -> Any:
    """How often a broker has learnt an epoch of its own, with which every failover begins."""
    return {broker: sum(epoch != 0 for epoch in _epochs_learnt(stage, int(broker))) for broker in expected}


def preempted(stage: Stage, expected: Mapping[Any, list[str]]) -> Any:
    """What was taken out of a broker's queue, in order."""
    taken = [r for r in stage.records("preempt") if r.fields["thread"] in stage.threads]
    return {broker: [r.fields["event"].name for r in taken if r.id.node == int(broker)] for broker in expected}


def processed_include(stage: Stage, expected: Mapping[Any, list[str]]) -> Any:
    """Of the events named, those that a broker has begun to handle."""
    begun = [r for r in stage.records("begin") if r.fields["thread"] in stage.threads]
    by_broker = {broker: {r.fields["event"] for r in begun if r.id.node == int(broker)} for broker in expected}
    return {broker: [name for name in named if name in by_broker[broker]] for broker, named in expected.items()}


CHECKS: dict[str, Callable[[Stage, Any], Any]] = {
    # check                              what it looks at
    "state":                             state,
    "assignment":                        assignments,
    "partition_states":                  partition_states,
    "replica_states":                    replica_states,
    "context":                           context,
    "results":                           results,
    "znodes":                            paths,
    "controller_epoch":                  controller_epoch,
    "cached_epoch":                      cached_epoch,
    "active":                            active,
    "unclean_elections":                 unclean_elections,
    "cas_retries":                       cas_retries,
    "illegal_transitions":               illegal_transitions,
    "controller_moved_while_processing": controller_moved_while_processing,
    "resignations":                      resignations,
    "failovers":                         failovers,
    "preempted":                         preempted,
    "processed_include":                 processed_include,
    **{name: _of_requests(check) for name, check in requests.CHECKS.items()},
}  # fmt: skip
