"""What a record decides about a partition or about the controller, in a few words: the headline of a cluster at rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kcontrol.runtime.journal import Record
from kcontrol.views import text
from kcontrol.znodes import CONTROLLER, CONTROLLER_EPOCH, MalformedZnode, decode_controller, decode_state, parse_state_path

WITHOUT_VALUE = {"OfflinePartition": "has no leader in the controller's memory", "NonExistentPartition": "is deleted"}


def decision(record: Record) -> str:
    """Return what a record decides, or nothing: `t-1: broker 2 leads, leader epoch 2, ISR [2, 3]`, `broker 2 is controller`."""
    r = record.plain()
    match r.kind:
        case "change":
            return text.clean(_changed(r.fields))
        case "refuse" if r.fields["machine"] == "partition":
            return text.clean(f"{r.fields['subject']} stays {text.short(r.fields['source'])}: {r.fields['reason']}")
        case "write" if r.fields["error"] is None:
            return text.clean("; ".join(_written(r.fields["ops"])))
    return ""


def _changed(f: dict[str, Any]) -> str:
    if f["value"]:
        return _leads(f["subject"].partition("@")[0], f["value"])
    end = WITHOUT_VALUE.get(f["target"])
    return f"{f['subject']} {end}" if end else ""


def _leads(partition: str, value: dict[str, Any]) -> str:
    leader = "no broker leads" if value["leader"] == -1 else f"broker {value['leader']} leads"
    return f"{partition}: {leader}, leader epoch {value['leader_epoch']}, ISR {list(value['isr'])}"


def _written(ops: Sequence[Sequence[Any]]) -> Iterator[str]:
    texts = {op[1]: op[2] for op in ops if op[0] in ("create", "set")}
    for path, data in texts.items():
        partition = parse_state_path(path)
        try:
            if path == CONTROLLER:
                epoch = f", controller epoch {texts[CONTROLLER_EPOCH]}" if CONTROLLER_EPOCH in texts else ""
                yield f"broker {decode_controller(data.encode())} is controller{epoch}"
            elif partition:
                yield _leads(str(partition), decode_state(data.encode())._asdict())
        except MalformedZnode:
            continue  # anybody may write anything into a znode: that is no decision
