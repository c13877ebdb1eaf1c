"""Tables of the timers that brokers have set, of the requests that a coordinator has parked, and of its delayed operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kcontrol.core.errors import UserError
from kcontrol.journal.journal import Record
from kcontrol.lab.support import arguments
from kcontrol.lab.support.late import frames, pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views import clock, group_state, text
from kcontrol.views.delayed_operations import Operation, Purgatory, purgatories
from kcontrol.views.purgatory_picture import PurgatoryPicture

if TYPE_CHECKING:
    from kcontrol.lab.run import Run

State = Mapping[str, Any]
TIMERS = {"broker": "int64", "fires": journal_tables.TIME, "in_ms": "Int64", "timer": "string", "event": "string",
          "group_id": "string", "member_id": "string", "client_id": "string"}  # fmt: skip
PARKED = {"broker": "int64", "request": "string", "since": journal_tables.TIME, "waited_ms": "Int64", "group_id": "string",
          "member_id": "string", "client_id": "string", "completed_by": "string"}  # fmt: skip
OPERATIONS = {"broker": "int64", "purgatory": "string", "operation": "string", "key": "string", "begun": journal_tables.TIME,
              "steps": "string", "rings": "string", "fires": journal_tables.TIME, "completed": journal_tables.TIME,
              "completed_by": "string"}  # fmt: skip
# The check of preferred leaders. A run does not fire it, also if its time has come: a run would never be quiet, and elections
# would move coordinators in the middle of what a user looks at.
CHECK = "auto-leader-rebalance"
REQUESTS = {"join": "JoinGroup", "sync": "SyncGroup", "append": "OffsetCommit"}


def timers(run: Run) -> pd.DataFrame:
    """Each timer that a broker has set: when it fires, its event, group and member.

    The next to fire is the first. `in_ms` is the time until the timer fires. The preferred-leader check is last, with <NA>:
    only `lab.fire_timer` fires it.
    """
    records, state = run.records, run.state
    now_ms, armed = records[-1].at_ms, []
    for broker, node in state["nodes"].items():
        for name, timer in node["timers"].items():
            event = timer["event"] or {"event": None}
            # A timer that belongs to no group has no `group_id`; one that belongs to no member has no `member_id` and no
            # `client_id`.
            about = {name: event.get(name) for name in ("group_id", "member_id")}
            row = {"broker": int(broker), "timer": name, "event": event["event"], **about}
            fires_ms = timer["at_ms"]
            in_ms = None if name == CHECK else fires_ms - now_ms
            armed.append(row | {"fires_ms": fires_ms, "in_ms": in_ms, "client_id": _client(state, **about)})
    armed.sort(key=lambda row: (row["in_ms"] is None, row["fires_ms"], row["broker"], row["timer"]))
    return journal_tables.table(armed, journal_tables.timed(TIMERS, records))


def _client(state: State, group_id: str | None, member_id: str | None) -> str | None:
    """A pending id has no member: then the text before the UUID."""
    for _, name, held in group_state.cached(state, "groups"):
        if name == group_id and member_id in held["members"]:
            return str(held["members"][member_id]["client_id"])
    return (member_id.rpartition("-")[0] or None) if member_id else None


def parked(run: Run) -> pd.DataFrame:
    """Each request, such as a JoinGroup, that a coordinator has not answered yet; the oldest first."""
    records, state = run.records, run.state
    rows = [row for record in _unanswered(records, state) for row in _row(record, state)]
    now_ms = records[-1].at_ms
    timed = ({**row, "waited_ms": now_ms - row["since_ms"]} for row in rows)
    return journal_tables.table(timed, journal_tables.timed(PARKED, records))


def _unanswered(records: Sequence[Record], state: State) -> Iterator[Record]:
    """Yield the `park` record of each request that waits for its response at the end of the journal, in the journal's order."""
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
    row = {"broker": broker, "request": REQUESTS[sort], "since_ms": record.at_ms, "group_id": group}
    held = state["nodes"][str(broker)].get("group", {}).get("groups", {}).get(group)
    if sort == "append" or held is None:
        yield row | {"completed_by": f"the write to the log of group {group}"}
        return
    waiting = f"awaiting_{sort}"
    member = next((m for m in held["members"].values() if correlation_id in (m[waiting], m["dropped"])), None)
    who = {name: member[name] for name in ("member_id", "client_id")} if member else {}
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


# ---------------------------------------------------------------- delayed operations


def delayed_operations(run: Run) -> pd.DataFrame:
    """Each delayed operation in Kafka's purgatories: its tries, its timer, the cause of its completion.

    `steps` is, for example, "try, watch, try again, timer"; a try is an attempt to complete the operation. Raises UserError for
    a run without `purgatory=True`.
    """
    # The index is the id of the journal record of the first try. `rings` is the tick of each timing wheel in which the
    # operation's timer was, such as "20 ms > 1 ms".
    records = run.records
    rows = [(each.begun, _operation(broker, each)) for broker, found in _purgatories(records) for each in found.operations]
    position = {record.id: number for number, record in enumerate(records)}
    rows.sort(key=lambda row: position[row[0]])
    named = ({"id": str(begun)} | row for begun, row in rows)
    return frames.Wide(journal_tables.table(named, journal_tables.timed(OPERATIONS, records), "id"))


def _operation(broker: int, operation: Operation) -> dict[str, Any]:
    rings = " > ".join(clock.duration(place.tick_ms) for place in operation.places)
    names = "purgatory", "operation", "key", "begun_ms", "completed_ms", "completed_by"
    named = {name: getattr(operation, name) for name in names}
    return named | {"broker": broker, "steps": ", ".join(operation.steps), "rings": rings, "fires_ms": operation.deadline_ms}


def purgatory(records: Sequence[Record], name: str, broker: int | None) -> PurgatoryPicture:
    """Return a picture of the purgatory `name`, "Heartbeat" or "Rebalance", of a broker at the journal's end.

    `broker` None means the broker where an operation began last. Raises UserError for an unknown name or broker.
    """
    found = _purgatories(records)
    fitting = [entry for entry in found if entry[1].name == name and broker in (None, entry[0])]
    if not fitting:
        listed = text.listed([f"{entry.name} of broker {n}" for n, entry in found], 20)
        of_broker = "" if broker is None else f" of broker {arguments.shown(broker)}"
        raise UserError(f"There is no purgatory {arguments.shown(name)}{of_broker}; there are {listed}.")
    position = {record.id: number for number, record in enumerate(records)}
    n, chosen = max(fitting, key=lambda entry: position[entry[1].operations[-1].begun])
    return PurgatoryPicture(n, chosen, records[-1].at_ms)


def _purgatories(records: Sequence[Record]) -> list[tuple[int, Purgatory]]:
    if found := purgatories(records):
        return found
    raise UserError("The journal has no delayed operation: open the lab with consumers and with purgatory=True.")
