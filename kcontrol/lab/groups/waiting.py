"""Tables of the timers that brokers have set, and of the requests that a coordinator has parked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from kcontrol.journal.journal import Record
from kcontrol.lab.tables import journal_tables
from kcontrol.views import group_state

State = Mapping[str, Any]
TIMERS = {"broker": "int64", "fires": journal_tables.TIME, "in_ms": "Int64", "timer": "string", "event": "string",
          "group": "string", "member": "string", "client": "string"}  # fmt: skip
PARKED = {"broker": "int64", "request": "string", "since": journal_tables.TIME, "waited_ms": "Int64", "group": "string",
          "member": "string", "client": "string", "completed_by": "string"}  # fmt: skip
REQUESTS = {"join": "JoinGroup", "sync": "SyncGroup", "append": "OffsetCommit"}


def timers(records: Sequence[Record], state: State) -> pd.DataFrame:
    """Return one row per timer that is set, the timer that fires next first, with its member."""
    now_ms, armed = records[-1].at_ms, []
    for broker, node in state["nodes"].items():
        for name, timer in node["timers"].items():
            event = timer["event"] or {"event": None}
            about = {"group": event.get("group_id"), "member": event.get("member_id")}
            row = {"broker": int(broker), "timer": name, "event": event["event"], **about}
            fires_ms = timer["at_ms"]
            armed.append(row | {"fires_ms": fires_ms, "in_ms": fires_ms - now_ms, "client": _client(state, **about)})
    armed.sort(key=lambda row: (row["fires_ms"], row["broker"], row["timer"]))
    return journal_tables.table(armed, journal_tables.timed(TIMERS, records))


def _client(state: State, group: str | None, member: str | None) -> str | None:
    """Return the client id of a member; for a pending member id, the text before the UUID."""
    for _, name, held in group_state.cached(state, "groups"):
        if name == group and member in held["members"]:
            return str(held["members"][member]["client_id"])
    return member.rpartition("-")[0] if member else None


def parked(records: Sequence[Record], state: State) -> pd.DataFrame:
    """Return one row per request that a coordinator has parked without a response, the oldest first."""
    rows = [row for record in _unanswered(records, state) for row in _row(record, state)]
    now_ms = records[-1].at_ms
    timed = ({**row, "waited_ms": now_ms - row["since_ms"]} for row in rows)
    return journal_tables.table(timed, journal_tables.timed(PARKED, records))


def _unanswered(records: Sequence[Record], state: State) -> Iterator[Record]:
    """Yield the record of each request that is parked now, in the order in which they were parked."""
    found = {
        (record.id.node, record.fields["correlation_id"]): record
        for record in records
        if record.kind == "park" and record.fields["key"].partition(" ")[0] in REQUESTS
    }
    for (node, correlation_id), record in found.items():
        if correlation_id in state["nodes"].get(str(node), {}).get("parked", {}):
            yield record


def _row(record: Record, state: State) -> Iterator[dict[str, Any]]:
    broker, correlation_id = record.id.node, record.fields["correlation_id"]
    sort, _, group = record.fields["key"].partition(" ")
    row = {"broker": broker, "request": REQUESTS[sort], "since_ms": record.at_ms, "group": group}
    held = state["nodes"][str(broker)].get("group", {}).get("groups", {}).get(group)
    if sort == "append" or held is None:
        yield row | {"completed_by": f"the write to the log of group {group}"}
        return
    waiting = f"awaiting_{sort}"
    member = next((m for m in held["members"].values() if correlation_id in (m[waiting], m["dropped"])), None)
    who = {"member": member["member_id"], "client": member["client_id"]} if member else {}
    yield row | who | {"completed_by": _for_join(group, held) if sort == "join" else _for_sync(held)}


def _for_join(group: str, held: Mapping[str, Any]) -> str:
    if held["state"] != "PreparingRebalance":
        return "the write of the new member id to the log"
    if held["is_delayed"]:
        return f'the end of the first wait, the timer "join {group}"'
    missing = [m["client_id"] for m in held["members"].values() if m["awaiting_join"] is None]
    named = [f"JoinGroup of {', '.join(missing)}"] if missing else []
    named += [f"JoinGroup with the new member ids {', '.join(held['pending_members'])}"] if held["pending_members"] else []
    return f'{" and ".join(named)}, or the timer "join {group}"'


def _for_sync(held: Mapping[str, Any]) -> str:
    leader = held["members"][held["leader"]]
    if leader["awaiting_sync"] is not None:
        return "the write of the leader's assignment to the log"
    return f"SyncGroup of the leader {leader['client_id']}"
