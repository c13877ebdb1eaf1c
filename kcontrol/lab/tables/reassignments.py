"""Checks a learner's request to reassign partitions, says how the controller responds, and makes the table of reassignments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kcontrol.core import znodes
from kcontrol.core.controller_rules import rules
from kcontrol.core.errors import UserError
from kcontrol.core.model import ReplicaAssignment, TopicPartition
from kcontrol.core.znodes import REASSIGN_PARTITIONS
from kcontrol.journal.journal import Record
from kcontrol.lab.run import Run
from kcontrol.lab.support.late import pd
from kcontrol.lab.tables import elections, journal_tables
from kcontrol.views import folded_state

Targets = Mapping[str, Sequence[int] | None]

# fmt: off
# `missing` has the brokers of the target that are not in the ISR.
REASSIGNMENTS = {"replicas": "object", "target": "object", "adding_replicas": "object", "removing_replicas": "object",
                 "isr": "object", "missing": "object", "in_znode": "bool"}
# fmt: on


def checked(state: folded_state.State, targets: object) -> dict[str, list[int] | None]:
    """Return the target replicas by partition, None for a cancellation.

    Raises UserError if `targets` does not map partitions to lists of ids or to None, and for an unknown partition.
    """
    if not isinstance(targets, Mapping) or not targets or not all(map(_is_target, targets.values())):
        raise UserError(
            f"{targets!r} is not a reassignment: map each partition to its target brokers, as in "
            '{"t-0": [2, 3]}, or to None to cancel.'
        )
    names = {elections.find(state, str(name)).name: target for name, target in targets.items()}
    return {name: None if target is None else [int(b) for b in target] for name, target in names.items()}


def _is_target(value: object) -> bool:
    """None or integers; the controller checks whether these are ids of brokers."""
    listed = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    return value is None or (listed and all(hasattr(b, "__index__") and not isinstance(b, bool) for b in value))  # type: ignore[attr-defined]


def request_text(state: folded_state.State, targets: Mapping[str, list[int] | None]) -> str:
    """Return the JSON that Kafka's tool writes into `/admin/reassign_partitions` for `targets`, brokers by partition.

    Raises UserError if this znode exists, and for a target None: this znode cannot cancel a reassignment.
    """
    if REASSIGN_PARTITIONS in state["znodes"]:
        raise UserError(f"{REASSIGN_PARTITIONS} holds a request already: let the controller complete it first, with lab.run().")
    if cancelled := [name for name, target in targets.items() if target is None]:
        raise UserError(f"A request in {REASSIGN_PARTITIONS} cannot cancel: give {', '.join(cancelled)} a list of brokers.")
    return znodes.encode_reassignment({TopicPartition.parse(tp): tuple(ids or ()) for tp, ids in targets.items()}).decode()


def active_controller(state: folded_state.State) -> int:
    """Return the broker that `/controller` names. Raises UserError if there is none, or if it does not run."""
    ruler = folded_state.controller(state)
    if ruler is None or str(ruler[0]) not in state["nodes"]:
        raise UserError("No active controller runs: start a broker, and let the cluster elect a controller with lab.run().")
    return ruler[0]


# ---------------------------------------------------------------- what comes of it

REASONS = {
    "INVALID_REPLICA_ASSIGNMENT": "its brokers are none, or one twice, or one that is added is not alive",
    "NO_REASSIGNMENT_IN_PROGRESS": "there is nothing to cancel",
    "UNKNOWN_TOPIC_OR_PARTITION": "the controller does not know the partition",
}
"""Why the controller refuses a partition's reassignment. Source: KafkaController.validateReplicas and its callers (2.8)."""


def refusals(record: Record) -> Iterator[str]:
    """Yield one sentence for each partition whose reassignment is refused in `record`, the journal record of a response.

    Yield nothing if the record is not a response to the reassignment request of an admin client.
    """
    if record.kind != "respond" or not str(record.fields["correlation_id"]).startswith("admin-"):
        return
    body = record.fields["body"] or {}  # the response to a request that was preempted in the controller's queue has no body
    for partition, code in (body.get("partitions") or {}).items():
        if isinstance(code, str) and code != "NONE":
            reason = f" ({REASONS[code]})" if code in REASONS else ""
            yield f"The controller refuses the reassignment of {partition}: {code}{reason}."


def unanswered(release: str, state: folded_state.State, targets: Mapping[str, list[int] | None]) -> Iterator[str]:
    """Yield a sentence for each requested reassignment that waits because some target brokers are not alive.

    `targets` maps partitions to target brokers, or to None for a cancellation.

    Source: KafkaController.initiateReassignReplicasForTopicPartition (0.8.0 to 0.10.0), onPartitionReassignment (0.10.1 on).
    """
    # The reassignments were requested in `/admin/reassign_partitions`, so the requester gets no response. Releases up to 0.10.0
    # refuse such a reassignment and write a `handler_error` record in the journal instead.
    for name, target in targets.items() if not rules(release).refuses_dead_targets else ():
        if dead := [str(b) for b in target or () if znodes.broker_path(b) not in state["znodes"]]:
            which = f"has brokers that are not alive ({', '.join(dead)})"
            yield f"The reassignment of {name} {which}: Kafka {release} adds all brokers and waits until each is in sync."


# ---------------------------------------------------------------- what is under way


def ongoing_reassignments(run: Run) -> pd.DataFrame:
    """Each partition that is being reassigned: replicas, target, target brokers not in the ISR.

    A partition that only `/admin/reassign_partitions` names has a row too. Before 2.4 every replica in the topic znode counts
    as a replica from before the reassignment.
    """
    return journal_tables.table(_rows(run.state), REASSIGNMENTS, "partition")


def _rows(state: folded_state.State) -> Iterator[dict[str, Any]]:
    asked = _asked(state)
    for p in folded_state.partitions(state):
        stored = znodes.decode_topic(state["znodes"][znodes.topic_path(p.topic)][0].encode()).partitions[p.number]
        wanted = asked.get(p.name)
        if not stored.is_being_reassigned and wanted is None:
            continue
        triple = stored if stored.is_being_reassigned else _implied(stored, wanted or ())
        yield {
            "partition": p.name,
            "replicas": list(p.replicas),
            "target": list(triple.target),
            "adding_replicas": list(triple.adding),
            "removing_replicas": list(triple.removing),
            "isr": list(p.isr),
            "missing": [b for b in triple.target if b not in p.isr],
            "in_znode": wanted is not None,
        }


def _implied(stored: ReplicaAssignment, target: tuple[int, ...]) -> ReplicaAssignment:
    """The assignment during a reassignment before 2.4, whose topic znode has no adding and removing replicas."""
    replicas = tuple(dict.fromkeys((*target, *stored.replicas)))
    adding = tuple(b for b in target if b not in stored.replicas)
    return ReplicaAssignment(replicas, adding, tuple(b for b in replicas if b not in target))


def _asked(state: folded_state.State) -> dict[str, tuple[int, ...]]:
    found = state["znodes"].get(REASSIGN_PARTITIONS)
    try:
        return {str(tp): target for tp, target in znodes.decode_reassignment(found[0].encode()).items()} if found else {}
    except znodes.MalformedZnode:
        return {}
