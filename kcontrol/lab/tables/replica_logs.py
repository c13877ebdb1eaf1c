"""Tables of a lab with `data=True`: the logs of replicas, and the records that a consumer can read."""

from __future__ import annotations

from typing import Any

from kcontrol.core.errors import UserError
from kcontrol.journal.fold import end_offset
from kcontrol.lab.run import Run
from kcontrol.lab.support import arguments
from kcontrol.lab.support.late import pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views import folded_state, text

State = dict[str, Any]

# fmt: off
# `epochs` is the leader epoch cache, a list of [leader epoch, start offset].
LOG = {"leads": "bool", "leader_epoch": "Int64", "high_watermark": "int64", "log_end_offset": "int64", "epochs": "object"}
RECORDS = {"leader_epoch": "int64", "value": "string"}
# fmt: on


def require(state: State) -> State:
    """Return the replicas' logs in a run's state by broker and, for each broker, by partition.

    Each log is a dict as in `journal.fold`. Raises UserError if the brokers of this lab keep no records of partitions.
    """
    found = state.get("logs")
    if found is None:
        raise UserError("The brokers of this lab keep no logs: open one with Lab(data=True).")
    logs: State = found
    return logs


def replicas(state: State, partition: str) -> dict[int, State]:
    """Return the logs of a partition by broker id; each log is a dict with the keys of EMPTY_LOG, such as "records".

    Raises UserError if no broker has a log of this partition.
    """
    logs = require(state)
    arguments.words(partition, "A partition", "t-0")
    found = {int(n): held[partition] for n, held in logs.items() if partition in held}
    if not found:
        names = text.listed(sorted({tp for held in logs.values() for tp in held})) or "none"
        raise UserError(f"There is no log of {partition!r}; the partitions with a log: {names}.")
    return dict(sorted(found.items()))


def replica_log(run: Run, partition: str) -> pd.DataFrame:
    """Each replica's log, dead brokers included: one column per offset with the record's value.

    A value is None where the replica has no such record. Raises UserError if there is no such log.
    """
    state = run.state
    found = replicas(state, partition)
    rows = [_row(state, partition, n, held) for n, held in found.items()]
    # A replica has no record past the end of its log, and where the log cleaner has removed the record.
    longest = max(end_offset(held) for held in found.values())
    frame = journal_tables.table(rows, LOG | {str(offset): "object" for offset in range(longest)}, "replica", "int64")
    frame.columns = pd.Index([*LOG, *range(longest)], dtype="object")
    return frame


def _row(state: State, partition: str, n: int, held: State) -> State:
    living = str(n) in state["nodes"]
    return {
        "replica": n,
        "leads": living and held["leader"] == n,
        "leader_epoch": held["leader_epoch"] if held["leader_epoch"] >= 0 else None,
        "high_watermark": held["high_watermark"],
        "log_end_offset": end_offset(held),
        "epochs": [[entry["leader_epoch"], entry["start_offset"]] for entry in held["epochs"]],
        **{str(record["offset"]): record["value"] for record in held["records"]},
    }


def consumer_records(run: Run, partition: str, broker: int | None = None) -> pd.DataFrame:
    """The records of a partition below the high watermark, as a consumer reads them from the leader.

    With `broker`, read from this broker, which must lead in its own memory. Raises UserError without such a leader, and if
    brokers keep no logs.
    """
    state = run.state
    found = replicas(state, partition)
    known = folded_state.find(state, partition)
    leader = broker if broker is not None else known and known.leader
    held = found.get(leader) if leader is not None and str(leader) in state["nodes"] else None
    if broker is not None and (held is None or held["leader"] != leader):
        leading = text.listed((n for n, log in found.items() if str(n) in state["nodes"] and log["leader"] == n), 30)
        there = f"running brokers that do: {leading or 'none'}"
        raise UserError(f"Broker {broker!r} does not lead {partition} in its own memory; {there}.")
    if held is None or held["leader"] != leader:
        raise UserError(f"A consumer of {partition} finds no running leader: let the cluster run, or start a broker of its ISR.")
    seen = [record for record in held["records"] if record["offset"] < held["high_watermark"]]
    return journal_tables.table(seen, RECORDS, "offset", "int64")


def acks(value: object) -> str:
    """Return the argument `acks` of `produce`, which is 1 or "all", as text. Raises UserError for any other value."""
    if str(value) not in ("1", "all") or isinstance(value, bool):
        raise UserError(f'acks cannot be {value!r}: it is 1 or "all".')
    return str(value)
