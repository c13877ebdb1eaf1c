"""What ZooKeeper holds of one partition, write by write: the topic znode says who should have it, the state znode who leads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from kcontrol.lab import tables
from kcontrol.model import ReplicaAssignment, TopicPartition
from kcontrol.runtime.journal import Record
from kcontrol.views import decisions
from kcontrol.znodes import MalformedZnode, decode_topic, topic_path

# fmt: off
COLUMNS = {"by": "Int64", "replicas": "object", "adding": "object", "removing": "object", "leader": "Int64", "isr": "object",
           "leader_epoch": "Int64"}
# fmt: on
KINDS = ("write", "change")


def stored(records: Sequence[Record], partition: TopicPartition) -> pd.DataFrame:
    """One row per write that changed one of the partition's two znodes, by the record's id, with what both held after it.

    `by` is the broker that wrote, missing where a client wrote. Who leads is missing until there is a state znode.
    """
    return tables.table(_rows(records, partition), COLUMNS, "id")


def _rows(records: Sequence[Record], partition: TopicPartition) -> Iterator[dict[str, Any]]:
    held: dict[str, Any] = {"replicas": [], "adding": [], "removing": [], "leader": None, "isr": [], "leader_epoch": None}
    for record in records:
        if record.kind not in KINDS:
            continue
        found = _written(record.plain(), partition)
        if found.items() <= held.items():
            continue
        held |= found
        yield {"id": str(record.id), "by": record.id.broker} | held


def _written(record: Record, partition: TopicPartition) -> dict[str, Any]:
    """The columns that this record writes, with their values."""
    found: dict[str, Any] = {}
    assigned = _assigned(record, partition)
    if assigned is not None:
        replicas, adding, removing = (list(part) for part in assigned)
        found |= {"replicas": replicas, "adding": adding, "removing": removing}
    led = decisions.leadership(record, str(partition))
    if led is not None:
        found |= {"leader": led.get("leader"), "isr": led.get("isr"), "leader_epoch": led.get("leader_epoch")}
    return found


def _assigned(record: Record, partition: TopicPartition) -> ReplicaAssignment | None:
    """What a write of the topic znode says of the partition, or None."""
    if record.kind != "write" or record.fields["error"] is not None:
        return None
    for op in record.fields["ops"]:
        if op[0] in ("create", "set") and op[1] == topic_path(partition.topic):
            try:
                return decode_topic(op[2].encode()).partitions.get(partition.partition)
            except MalformedZnode:
                return None
    return None
