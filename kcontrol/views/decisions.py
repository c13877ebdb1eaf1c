"""Functions that find the decisions in journal records, for the viewer's headline and for comparisons of runs.

A decision is a new content of a state znode, an election without a leader, a deletion of a partition, a controller's
election, or a new state of a consumer group.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from kcontrol.core.model import PartitionState
from kcontrol.core.znodes import CONTROLLER, CONTROLLER_EPOCH, MalformedZnode, decode_controller, parse_state_path
from kcontrol.journal.journal import Record
from kcontrol.views import text

NO_LEADER = ("no leader elected",)
DELETED = ("deleted",)


class Decision(NamedTuple):
    """A decision about a partition: a new leader, ISR or leader epoch, an election without a leader, or the deletion."""

    partition: str
    # The values by which two runs are compared: (leader, each member of the ISR, leader epoch), such as (2, 2, 3, 5) for the ISR
    # [2, 3]. An election without a leader has ("no leader elected",), a deletion ("deleted",).
    outcome: tuple[Any, ...]
    # The decision as text, such as "t-1 is deleted".
    words: str


def about_partitions(record: Record) -> list[Decision]:
    """Return what a journal record decides about partitions: a leader, ISR or leader epoch, a failed election, or a deletion.

    There is at most one decision per partition; most records have none.
    """
    if record.kind not in ("change", "write", "failed_change"):
        return []
    r = record.to_json()
    fields = r.fields
    if r.kind == "failed_change" and fields["target"] == PartitionState.ONLINE.value and not fields["illegal"]:
        partition = str(fields["subject"])
        return [Decision(partition, NO_LEADER, f"{partition} stays {text.short(fields['source'])}: {fields['reason']}")]
    if r.kind == "change" and fields["target"] == PartitionState.NON_EXISTENT.value:
        return [Decision(fields["subject"], DELETED, f"{fields['subject']} is deleted")]
    return [_led(partition, value) for partition, value in written(r).items()]


def _led(partition: str, value: dict[str, Any]) -> Decision:
    leader = "no broker leads" if value["leader"] == -1 else f"broker {value['leader']} leads"
    words = f"{partition}: {leader}, leader epoch {value.get('leader_epoch')}, ISR {list(value['isr'])}"
    return Decision(partition, (value["leader"], *value["isr"], value.get("leader_epoch")), words)


def decision(record: Record) -> str:
    """Such as `t-1: broker 2 leads, leader epoch 2, ISR [2, 3]`; "" without a decision."""
    found = [decided.words for decided in about_partitions(record)]
    return text.clean("; ".join([*_elected(record), *found, *_moved(record)]))


def _moved(record: Record) -> Iterator[str]:
    if record.kind == "group":
        fields = record.to_json().fields
        group = fields["group_metadata"]  # None for a group that becomes Dead
        generation = f", generation {group['generation']}" if group else ""
        yield f"group {fields['group_id']}: {fields['to']}{generation}"


def _elected(record: Record) -> Iterator[str]:
    if record.kind != "write" or record.fields["error"] is not None:
        return
    texts = {op[1]: op[2] for op in record.to_json().fields["ops"] if op[0] in ("create", "set")}
    if CONTROLLER not in texts:
        return
    try:
        controller = decode_controller(texts[CONTROLLER].encode())
    except MalformedZnode:
        return
    epoch = f", controller epoch {texts[CONTROLLER_EPOCH]}" if CONTROLLER_EPOCH in texts else ""
    yield f"broker {controller} is controller{epoch}"


def written(record: Record) -> dict[str, dict[str, Any]]:
    """{"t-0": {"leader": 1, "isr": [1, 2], ...}}; contents without a leader or an ISR are left out."""
    if record.kind not in ("change", "write"):
        return {}
    r = record.to_json()
    if r.kind == "change":
        names = [r.fields["subject"].partition("@")[0]]
    else:
        names = [str(tp) for op in r.fields["ops"] if (tp := parse_state_path(op[1])) is not None]
    return {name: stored for name in names if (stored := leadership(r, name)) and _is_whole(stored)}


def _is_whole(stored: dict[str, Any]) -> bool:
    """Return whether a state znode's JSON has a leader and an ISR. A client can write data without these fields."""
    return isinstance(stored.get("leader"), int) and isinstance(stored.get("isr"), list | tuple)


def leadership(r: Record, partition: str) -> dict[str, Any] | None:
    """Return the JSON object that a journal record writes to the state znode of `partition`, as a dict.

    Return None if the record does not write this znode, and {} if the data is no JSON object.
    """
    f = r.fields
    if r.kind == "change" and f["write"] and f["subject"].partition("@")[0] == partition:
        value: dict[str, Any] = f["leadership"]
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
