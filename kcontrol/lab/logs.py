"""The data side of a lab: what replicas hold, what a consumer sees, and what is refused where no logs are kept."""

from __future__ import annotations

from typing import Any

import pandas as pd

from kcontrol.errors import UserError
from kcontrol.lab import arguments, tables
from kcontrol.views import scene, text

State = dict[str, Any]

# fmt: off
LOG = {"leads": "bool", "leader_epoch": "Int64", "high_watermark": "int64", "log_end_offset": "int64", "epochs": "object"}
RECORDS = {"leader_epoch": "int64", "value": "string"}
# fmt: on


def require(state: State) -> State:
    """The logs by broker. Raises UserError where brokers keep none."""
    found = state.get("logs")
    if found is None:
        raise UserError("The brokers of this lab keep no logs: open one with Lab(data=True).")
    logs: State = found
    return logs


def replicas(state: State, partition: str) -> dict[int, State]:
    """The logs of a partition, by broker. Raises UserError for a partition that has none."""
    logs = require(state)
    arguments.words(partition, "A partition", "t-0")
    found = {int(n): held[partition] for n, held in logs.items() if partition in held}
    if not found:
        names = text.listed(sorted({tp for held in logs.values() for tp in held})) or "none"
        raise UserError(f"There is no log of {partition!r}; the partitions that have one: {names}.")
    return dict(sorted(found.items()))


def log(state: State, partition: str) -> pd.DataFrame:
    """One row per replica, by broker; `epochs` is its leader epoch cache, [leader epoch, start offset] each.

    The columns behind are the offsets, with the value of the record that is there, None where the log has ended.
    """
    found = replicas(state, partition)
    rows = [_row(state, partition, n, held) for n, held in found.items()]
    longest = max(len(held["records"]) for held in found.values())
    frame = tables.table(rows, LOG | {str(offset): "object" for offset in range(longest)})
    frame.columns = pd.Index([*LOG, *range(longest)], dtype="object")
    return frame.set_axis(pd.Index(list(found), name="replica", dtype="int64"))


def _row(state: State, partition: str, n: int, held: State) -> State:
    living = str(n) in state["nodes"]
    return {
        "leads": living and held["leader"] == n,
        "leader_epoch": held["leader_epoch"] if held["leader_epoch"] >= 0 else None,
        "high_watermark": held["high_watermark"],
        "log_end_offset": len(held["records"]),
        "epochs": [[entry["leader_epoch"], entry["start_offset"]] for entry in held["epochs"]],
        **{str(record["offset"]): record["value"] for record in held["records"]},
    }


def read(state: State, partition: str, broker: int | None) -> pd.DataFrame:
    """One row per record below the high watermark, by offset."""
    found = replicas(state, partition)
    leader = next((p.leader for p in scene.partitions(state) if p.name == partition), None) if broker is None else broker
    held = found.get(leader) if leader is not None and str(leader) in state["nodes"] else None
    if held is None or held["leader"] != leader:
        raise UserError(
            f"A consumer of {partition} finds no leader to read from: let the cluster run, or start a broker of its ISR."
        )
    seen = held["records"][: held["high_watermark"]]
    return tables.table(seen, RECORDS).set_axis(pd.Index([record["offset"] for record in seen], name="offset", dtype="int64"))


def is_behind(state: State, leader: int, partition: str, follower: int) -> bool:
    """Whether a follower has less than its leader, as far as that one knows."""
    held = replicas(state, partition).get(leader, {"followers": [], "records": []})
    return dict(held["followers"]).get(follower) != len(held["records"])


def acks(value: object) -> str:
    """`"1"` or `"all"`. Raises UserError for anything else."""
    if str(value) not in ("1", "all") or isinstance(value, bool):
        raise UserError(f'{value!r} says nothing about acknowledgements: acks is 1 or "all".')
    return str(value)


def tail(state: State, broker: Any, partition: str, offset: Any) -> tuple[int, str, int]:
    """The three as they are. Raises UserError where the broker runs, or has no record at this offset."""
    held = replicas(state, partition).get(broker)
    if str(broker) in state["nodes"]:
        raise UserError(
            f"Broker {broker} runs: only a machine that has lost its power has lost what was not flushed; kill it first."
        )
    if held is None or not isinstance(offset, int) or not 0 <= offset < len(held["records"]):
        ends = text.listed(f"{n} to {len(log['records'])}" for n, log in replicas(state, partition).items())
        raise UserError(
            f"Broker {broker} has no record {offset!r} of {partition}; the logs go up to these offsets: broker {ends}."
        )
    return broker, partition, offset
