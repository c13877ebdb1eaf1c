"""Makes the table of one partition's history in ZooKeeper: its replicas in the topic znode, leader and ISR in the state znode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kcontrol.core.model import ReplicaAssignment, TopicPartition
from kcontrol.core.znodes import MalformedZnode, decode_topic, topic_path
from kcontrol.journal.journal import Record
from kcontrol.lab.support.late import pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views import decisions

# fmt: off
COLUMNS = {"by": "Int64", "replicas": "object", "adding": "object", "removing": "object", "leader": "Int64", "isr": "object",
           "leader_epoch": "Int64"}
# fmt: on
KINDS = ("write", "change")


def stored(records: Sequence[Record], partition: TopicPartition) -> pd.DataFrame:
    """Return one row per write that changed the topic znode or state znode of a partition, with the partition's new values.

    `by` is the broker that wrote, missing for a client's write.
    """
    return journal_tables.table(_rows(records, partition), COLUMNS, "id")


def _rows(records: Sequence[Record], partition: TopicPartition) -> Iterator[dict[str, Any]]:
    held: dict[str, Any] = {"replicas": [], "adding": [], "removing": [], "leader": None, "isr": [], "leader_epoch": None}
    for record in records:
        if record.kind not in KINDS:
            continue
        found = _written(record.to_json(), partition)
        if found.items() <= held.items():
            continue
        held |= found
        yield {"id": str(record.id), "by": record.id.broker} | held


def _written(record: Record, partition: TopicPartition) -> dict[str, Any]:
    """Return the partition's values that a journal record writes, by column of the table `stored`; else {}.

    An example is `{"leader": 2, "isr": [2, 3], "leader_epoch": 4}`.
    """
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
    """Return the partition's assignment if `record` is a successful write of its topic znode; else None."""
    if record.kind != "write" or record.fields["error"] is not None:
        return None
    for op in record.fields["ops"]:
        if op[0] in ("create", "set") and op[1] == topic_path(partition.topic):
            try:
                return decode_topic(op[2].encode()).partitions.get(partition.partition)
            except MalformedZnode:
                return None
    return None
