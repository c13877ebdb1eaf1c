"""Reassignments as one asks for them and as they stand: the checks of what is asked, and the table of what is under way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from kcontrol.errors import UserError
from kcontrol.generations import rules
from kcontrol.lab import electing, tables
from kcontrol.model import ReplicaAssignment, TopicPartition
from kcontrol.runtime.journal import Record
from kcontrol.views import scene
from kcontrol.znodes import (
    REASSIGN_PARTITIONS,
    MalformedZnode,
    broker_path,
    decode_reassignment,
    decode_topic,
    encode_reassignment,
    topic_path,
)

Targets = Mapping[str, Sequence[int] | None]

# fmt: off
REASSIGNMENTS = {"replicas": "object", "target": "object", "adding": "object", "removing": "object", "isr": "object",
                 "missing": "object", "in_znode": "bool"}
# fmt: on


def checked(state: scene.State, targets: object) -> dict[str, list[int] | None]:
    """What is asked, if it has the right form and names partitions that there are. Raises UserError."""
    if not isinstance(targets, Mapping) or not targets or not all(map(_is_target, targets.values())):
        raise UserError(
            f"{targets!r} names no reassignment: give each partition the brokers that it is to be on, as in "
            '{"t-0": [2, 3]}, or None to cancel.'
        )
    names = {electing.find(state, str(name)).name: target for name, target in targets.items()}
    return {name: None if target is None else [int(b) for b in target] for name, target in names.items()}


def _is_target(value: object) -> bool:
    """Whether this is a list of ids, or None; whether it makes sense is for the controller to say."""
    listed = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    return value is None or (listed and all(hasattr(b, "__index__") and not isinstance(b, bool) for b in value))  # type: ignore[attr-defined]


def request_text(state: scene.State, targets: Mapping[str, list[int] | None]) -> str:
    """What the tool writes into `/admin/reassign_partitions`. Raises UserError if it cannot be."""
    if REASSIGN_PARTITIONS in state["znodes"]:
        raise UserError(
            f"There is a request in {REASSIGN_PARTITIONS} already: let the controller see to it first, with lab.run()."
        )
    if cancelled := [name for name, target in targets.items() if target is None]:
        raise UserError(f"A request in {REASSIGN_PARTITIONS} cancels nothing, so give {', '.join(cancelled)} a list of brokers.")
    return encode_reassignment({TopicPartition.parse(tp): tuple(ids or ()) for tp, ids in targets.items()}).decode()


def whom_to_ask(state: scene.State) -> int:
    """The broker that `/controller` names. Raises UserError where there is none that runs."""
    ruler = scene.controller(state)
    if ruler is None or str(ruler[0]) not in state["nodes"]:
        raise UserError("No controller runs that could be asked: start a broker, and let the cluster elect one with lab.run().")
    return ruler[0]


def require_requests(release: str) -> None:
    """Raise UserError in releases whose brokers know no such requests."""
    if not rules(release).reassigns_on_request:
        raise UserError(
            f"Brokers of {release} answer no such request; it came with 2.4 (KIP-455). lab.reassignments() looks itself."
        )


# ---------------------------------------------------------------- what comes of it

REASONS = {
    "INVALID_REPLICA_ASSIGNMENT": "its brokers are none, or one twice, or one that is added is not alive",
    "NO_REASSIGNMENT_IN_PROGRESS": "there is nothing to cancel",
    "UNKNOWN_TOPIC_OR_PARTITION": "the controller does not know the partition",
}
"""Why the controller refuses a partition's reassignment. Source: KafkaController.validateReplicas and its callers (2.8)."""


def refusals(record: Record) -> Iterator[str]:
    """What an answer to an admin client refuses, one sentence for each partition."""
    if record.kind != "respond" or not str(record.fields["correlation_id"]).startswith("admin-"):
        return
    body = record.fields["body"] or {}  # a request that was thrown out of the controller's queue has an answer without a body
    for partition, code in (body.get("partitions") or {}).items():
        if isinstance(code, str) and code != "NONE":
            reason = f" ({REASONS[code]})" if code in REASONS else ""
            yield f"The controller refuses the reassignment of {partition}: {code}{reason}."


def unanswered(release: str, state: scene.State, targets: Mapping[str, list[int] | None]) -> Iterator[str]:
    """What the controller will make of a request in `/admin/reassign_partitions` that names brokers that are not alive.

    Up to 0.10.0 it refuses the request, which is a `fail` record of the journal.
    Source: KafkaController.initiateReassignReplicasForTopicPartition (0.8.0 to 0.10.0), onPartitionReassignment (0.10.1 on).
    """
    for name, target in targets.items() if not rules(release).refuses_dead_targets else ():
        if dead := [str(b) for b in target or () if broker_path(b) not in state["znodes"]]:
            who = f"names brokers that are not alive ({', '.join(dead)})"
            yield f"The reassignment of {name} {who}: Kafka {release} adds them all and waits until each is in sync."


# ---------------------------------------------------------------- what is under way


def reassignments(state: scene.State) -> pd.DataFrame:
    """One row per partition that is being reassigned, or that the znode asks for; `missing` are those of the target not in sync.

    Before 2.4 the topic znode does not say what is being added: once it is written there it counts as assigned.
    """
    return tables.table(_rows(state), REASSIGNMENTS, "partition")


def _rows(state: scene.State) -> Iterator[dict[str, Any]]:
    asked = _asked(state)
    for p in scene.partitions(state):
        stored = decode_topic(state["znodes"][topic_path(p.topic)][0].encode()).partitions[p.number]
        wanted = asked.get(p.name)
        if not stored.is_being_reassigned and wanted is None:
            continue
        triple = stored if stored.is_being_reassigned else _implied(stored, wanted or ())
        yield {
            "partition": p.name,
            "replicas": list(p.replicas),
            "target": list(triple.target),
            "adding": list(triple.adding),
            "removing": list(triple.removing),
            "isr": list(p.isr),
            "missing": [b for b in triple.target if b not in p.isr],
            "in_znode": wanted is not None,
        }


def _implied(stored: ReplicaAssignment, target: tuple[int, ...]) -> ReplicaAssignment:
    """The triple where the topic znode does not have it: what is not in the target is to go."""
    replicas = tuple(dict.fromkeys((*target, *stored.replicas)))
    adding = tuple(b for b in target if b not in stored.replicas)
    return ReplicaAssignment(replicas, adding, tuple(b for b in replicas if b not in target))


def _asked(state: scene.State) -> dict[str, tuple[int, ...]]:
    found = state["znodes"].get(REASSIGN_PARTITIONS)
    try:
        return {str(tp): target for tp, target in decode_reassignment(found[0].encode()).items()} if found else {}
    except MalformedZnode:
        return {}
