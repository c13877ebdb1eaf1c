"""Our journal in the format of the recordings of real brokers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from kcontrol.controller.replica_machine import NOBODY_LEADS
from kcontrol.generations import LISTENERS, Rules
from kcontrol.model import PartitionReplica
from kcontrol.runtime.journal import Record, plain
from kcontrol.sim.world import WORLD, World
from kcontrol.znodes import encode_state, state_path

TOOL = "tool"
MASKS = (
    (re.compile(r'"timestamp":"\d+"'), '"timestamp":"<ms>"'),
    (re.compile(r'"port":\d+'), '"port":"<port>"'),
    (re.compile(r"(PLAINTEXT://[^:\"]+):\d+"), r"\1:<port>"),
)


def data(path: str, text: str) -> Any:
    """What a znode holds: a JSON object parsed, other text as it is, nothing as None, and what differs from run to run masked."""
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    value = json.loads(text) if text.startswith("{") else text or None
    return {**value, "id": "<id>"} if path == "/cluster/id" and value else value


def by(record: Record) -> int | str:
    return TOOL if record.id.node == WORLD else record.id.node


def writes(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """Every write that happened, and the beginnings and ends of sessions, in order."""
    for record in records:
        fields = record.fields
        if record.kind == "open":
            yield {"by": by(record), "op": "open"}
        elif record.kind == "close":
            yield {"by": fields["broker"], "op": "close", "deleted": fields["deleted"]}
        elif record.kind == "write" and fields["error"] is None:
            for kind, path, content, version, ephemeral in fields["ops"]:
                yield from _write(record, kind, path, plain(content), version, ephemeral)
        elif record.kind == "change" and fields["write"]:
            subject, value = fields["subject"], fields["value"]
            tp = subject.topic_partition if isinstance(subject, PartitionReplica) else subject
            yield from _write(record, fields["write"], state_path(tp), encode_state(value).decode(), value.zk_version, False)


def _write(record: Record, kind: str, path: str, text: str, version: int | None, ephemeral: bool) -> Iterator[dict[str, Any]]:
    if kind == "check":
        return
    extra: dict[str, Any] = {} if kind == "delete" else {"data": data(path, text)}
    extra |= {"ephemeral": ephemeral} if kind == "create" else {"version": version} if kind == "set" else {}
    fence = record.fields["fence"]  # ZooKeeper's transaction log has the version that a checked znode would get next
    extra |= {"checked": {"/controller_epoch": fence + 1}} if fence != -1 else {}
    yield {"by": by(record), "op": kind, "path": path, **extra}


def short(state: Any) -> str:
    """A state's name without the words Partition and Replica, but for the three states of deletion, which keep theirs."""
    name = str(state)
    return name if name.startswith("ReplicaDeletion") else name.removesuffix("Partition").removesuffix("Replica")


def transitions(records: Iterable[Record], epochs: dict[int, int], rules: Rules) -> Iterator[dict[str, Any]]:
    """Every move that a controller logged as carried out, or refused.

    `epochs` is kept up to date with what each controller believes.
    """
    for record in records:
        fields, node = record.fields, record.id.node
        if record.kind == "learn" and (fields["context"], fields["field"]) == ("controller", "controller_epoch"):
            epochs[node] = fields["put"]
        elif rules.design == LISTENERS and fields.get("rule") == NOBODY_LEADS:
            continue
        elif record.kind in ("change", "refuse"):
            failed = {"failed": True} if record.kind == "refuse" else {}
            move = {"machine": fields["machine"], "subject": str(fields["subject"])}
            yield {
                "by": node,
                "epoch": epochs[node],
                **move,
                "from": short(fields["source"]),
                "to": short(fields["target"]),
                **failed,
            }


OLD_FIELDS = ("leader", "leader_epoch", "isr", "controller_epoch", "replicas")


def requests(records: Iterable[Record], sent: dict[Any, Any], rules: Rules) -> Iterator[dict[str, Any]]:
    """Every request as its receiver handled it, with the fields of its protocol's version.

    `sent` holds the batches by the id of their record.
    """
    for record in records:
        if record.kind == "send":
            sent[record.id] = record.fields["requests"]
        elif record.kind == "receive":
            told = _request(sent[record.cause], record)
            yield {"by": record.fields["sender"], "to": record.id.node, **(_old(told) if rules.design == LISTENERS else told)}


def _old(request: dict[str, Any]) -> dict[str, Any]:
    """The same as version 0 has it: fewer fields, and StopReplica says once whether to delete."""
    partitions = request["partitions"]
    kept = {tp: {name: entry[name] for name in OLD_FIELDS if name in entry} for tp, entry in partitions.items()}
    old = {name: value for name, value in request.items() if name != "type"} | {"partitions": kept}
    deletes = {entry["delete"] for entry in partitions.values() if "delete" in entry}
    return old | ({"delete": deletes.pop()} if deletes else {})


def _request(batch: Any, record: Record) -> dict[str, Any]:
    api, to = record.fields["api"], record.id.node
    head = {"api": api, "controller_epoch": batch.controller_epoch}
    if api == "UpdateMetadata":
        return head | {"partitions": _entries(batch.update_metadata), "live_brokers": sorted(batch.live_brokers)}
    if api == "StopReplica":
        return head | {"partitions": _entries(batch.stop_replica[to])}
    told = batch.leader_and_isr[to]
    leaders = sorted({entry.leader for entry in told.values()} & set(batch.live_brokers))
    return head | {"partitions": _entries(told), "live_leaders": leaders, "type": 0}


def _entries(partitions: Any) -> dict[str, Any]:
    return {str(tp): plain(entry) for tp, entry in partitions.items()}


def znodes(world: World) -> dict[str, Any]:
    return {
        path: {
            "data": data(path, plain(node.data)),
            "version": node.stat.version,
            "ephemeral_owner": world.owners.get(node.stat.ephemeral_owner),
        }
        for path, node in world.zk.tree().items()
    }
