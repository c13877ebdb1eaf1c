"""What a record decides about a partition or about the controller: for the headline of a cluster at rest and for comparisons.

A decision about a partition is a new content of its state znode (leader, ISR and leader epoch), an election that finds no leader,
or the deletion of the partition. The controller makes most decisions; up to 2.6 a partition's leader also writes its ISR itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from kcontrol.model import PartitionState
from kcontrol.runtime.journal import Record
from kcontrol.views import text
from kcontrol.znodes import CONTROLLER, CONTROLLER_EPOCH, MalformedZnode, decode_controller, parse_state_path

NO_LEADER = ("no leader elected",)
DELETED = ("deleted",)


class Decided(NamedTuple):
    """A decision about `partition`: its outcome as values that compare, and in words."""

    partition: str
    outcome: tuple[Any, ...]
    words: str


def about_partitions(record: Record) -> list[Decided]:
    """Return what a record decides about partitions, one decision each; most records decide nothing."""
    if record.kind not in ("change", "write", "refuse"):
        return []
    r = record.plain()
    fields = r.fields
    if r.kind == "refuse" and fields["target"] == PartitionState.ONLINE.value and not fields["illegal"]:
        partition = str(fields["subject"])
        return [Decided(partition, NO_LEADER, f"{partition} stays {text.short(fields['source'])}: {fields['reason']}")]
    if r.kind == "change" and fields["target"] == PartitionState.NON_EXISTENT.value:
        return [Decided(fields["subject"], DELETED, f"{fields['subject']} is deleted")]
    return [_led(partition, value) for partition, value in written(r).items()]


def _led(partition: str, value: dict[str, Any]) -> Decided:
    leader = "no broker leads" if value["leader"] == -1 else f"broker {value['leader']} leads"
    words = f"{partition}: {leader}, leader epoch {value.get('leader_epoch')}, ISR {list(value['isr'])}"
    return Decided(partition, (value["leader"], *value["isr"], value.get("leader_epoch")), words)


def decision(record: Record) -> str:
    """Return what a record decides, or nothing: `t-1: broker 2 leads, leader epoch 2, ISR [2, 3]`, `broker 2 is controller`."""
    found = [decided.words for decided in about_partitions(record)]
    return text.clean("; ".join([*_elected(record), *found]))


def _elected(record: Record) -> Iterator[str]:
    if record.kind != "write" or record.fields["error"] is not None:
        return
    texts = {op[1]: op[2] for op in record.plain().fields["ops"] if op[0] in ("create", "set")}
    if CONTROLLER not in texts:
        return
    try:
        controller = decode_controller(texts[CONTROLLER].encode())
    except MalformedZnode:
        return
    epoch = f", controller epoch {texts[CONTROLLER_EPOCH]}" if CONTROLLER_EPOCH in texts else ""
    yield f"broker {controller} is controller{epoch}"


def written(record: Record) -> dict[str, dict[str, Any]]:
    """Return the leadership that a record writes, by the names of the partitions; empty for a record that writes none."""
    if record.kind not in ("change", "write"):
        return {}
    r = record.plain()
    if r.kind == "change":
        names = [r.fields["subject"].partition("@")[0]]
    else:
        names = [str(tp) for op in r.fields["ops"] if (tp := parse_state_path(op[1])) is not None]
    return {name: stored for name in names if (stored := leadership(r, name)) and _is_whole(stored)}


def _is_whole(stored: dict[str, Any]) -> bool:
    """Return whether a znode's JSON has a leader and an ISR; a client may write any data into a znode."""
    return isinstance(stored.get("leader"), int) and isinstance(stored.get("isr"), list | tuple)


def leadership(r: Record, partition: str) -> dict[str, Any] | None:
    """Return what a record writes to a partition's state znode, or None."""
    f = r.fields
    if r.kind == "change" and f["write"] and f["subject"].partition("@")[0] == partition:
        value: dict[str, Any] = f["value"]
        return value
    if r.kind == "write" and f["error"] is None:
        for op in f["ops"]:
            tp = parse_state_path(op[1])
            if tp is not None and str(tp) == partition and op[0] in ("create", "set"):
                return _parsed(op[2])
    return None


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
