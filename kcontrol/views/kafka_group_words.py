"""The lines of a group coordinator in server.log: which record of a journal makes which line, with the values of the line.

`log_lines.tsv` has the texts by release. The reason in "Preparing to rebalance group" (2.1 on) follows from the event whose
handler begins the rebalance: a JoinGroup, a LeaveGroup, or the end of a session. Without one of these events the reason is not
known, and from 2.1 on no line is returned. The consumers of kcontrol send no reason with a request (KIP-800), so the lines of 3.2
and later have "not provided" in the place of the consumer's reason.

Source: doUnknownJoinGroup (doNewMemberJoinGroup since 3.0), updateStaticMemberAndRebalance, prepareRebalance, onCompleteJoin,
doSyncGroup, handleLeaveGroup, handleDeleteGroups, onExpireHeartbeat, onMemberFailure, onGroupLoaded and onGroupUnloaded of
GroupCoordinator.scala, cleanupGroupMetadata of GroupMetadataManager.scala (0.9 to 3.9).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from kcontrol.group.coordinator_partition import OFFSETS_TOPIC, partition_for
from kcontrol.journal.journal import Record, RecordId

Line = tuple[str, dict[str, Any]]
"""The kind of a line in `log_lines.tsv`, and its facts."""

PREPARING, EMPTY, DEAD = "PreparingRebalance", "Empty", "Dead"
LOADED, UNLOADED, SESSION, LEAVE, JOIN, EXPIRY, DELETE, PENDING = (
    "PartitionElected", "PartitionResigned", "SessionTimedOut", "LeaveGroup", "JoinGroup", "ExpireOffsets", "DeleteGroups",
    "PendingMemberTimedOut",
)  # fmt: skip
ENDS = {UNLOADED: "group_unloading", EXPIRY: "group_dead.expired"}
"""The line about the end of a group at a coordinator, by the event."""
GONE = {PENDING: "pending_member_expired", LEAVE: "pending_member_left"}
"""The line about a pending member id that is removed, by the event whose handler removes the id."""
OFFSET_KEYS = ("\0\0", "\0\1")
"""How the keys of offsets begin: with their version, in two bytes."""
NO_REASON = "not provided"


class GroupWords:
    """Finds, record by record, the lines that a group coordinator logs."""

    def __init__(self) -> None:
        self.events: dict[RecordId, Mapping[str, Any]] = {}  # record -> the event that its handler handles
        self.groups: dict[tuple[int, str], Mapping[str, Any]] = {}
        self.partitions = 0  # of the offsets topic; 0 if the journal does not say
        self.left = ""  # the member that was removed last
        self.removed = Counter[RecordId | None]()  # the record that begins a handler -> its tombstones of offsets

    def lines(self, r: Record) -> Iterator[Line]:
        """Yield the lines that Kafka's coordinator logs at a journal record, as (kind, values): ("rebalance_prepared", {...}).

        The kind names a row of `log_lines.tsv`, the values fill its message. `r` has fields in JSON's types.
        """
        self._follow(r)
        event = self.events.get(r.cause, {}) if r.cause else {}
        if r.kind == "update" and r.fields["context"] == "group" and r.fields["field"] == "groups":
            for group, now in (r.fields["put"] or {}).items():
                yield from self._changed(r, group, now, event)
        elif r.kind == "append" and (r.fields["completion_event"] or {}).get("event") == "AssignmentStored":
            yield from self._assigned(r)
        elif r.kind == "group":
            yield from self._moved(r, event)
        elif r.kind == "respond" and event.get("event") == DELETE:
            yield from self._deleted(r)

    def _follow(self, r: Record) -> None:
        """Store what the lines of later records need: handled events, removed offsets, the number of offsets topic partitions.

        A `stop` record removes the stored groups of the broker that stops.
        """
        if r.kind == "run":
            self.partitions = r.fields.get("config", {}).get("offsets.topic.num.partitions", 0)
        elif r.kind in ("enqueue", "set_timer") and r.fields["event"]:
            self.events[r.id] = r.fields["event"]
        elif r.kind in ("begin", "fire_timer") and r.cause in self.events:
            self.events[r.id] = self.events[r.cause]
        elif r.kind == "read_log":
            self.events[r.id] = {"event": LOADED}
        elif r.kind == "append":
            self.removed[r.cause] += sum(key[:2] in OFFSET_KEYS and value is None for key, value in r.fields["records"])
        elif r.kind == "stop":
            self.groups = {key: group for key, group in self.groups.items() if key[0] != r.fields["broker"]}
        elif r.kind == "write" and r.fields["error"] is None:
            places = [op[1] for op in r.fields["ops"] if op[0] == "create"]
            self.partitions += sum(path.startswith(f"/brokers/topics/{OFFSETS_TOPIC}/partitions/") for path in places)

    def _changed(self, r: Record, group: str, now: Mapping[str, Any], event: Mapping[str, Any]) -> Iterator[Line]:
        before = self.groups.get((r.id.node, group))
        self.groups[r.id.node, group] = now
        if before is None:
            if event.get("event") == LOADED:
                yield "group_loading", {"group": group, "generation": now["generation"]}
            return
        if event.get("event") == JOIN and not event["member_id"]:
            yield from _joined(group, before, now)
        for member_id in sorted({*before["pending_members"]} - {*now["pending_members"]}):
            if (what := GONE.get(event.get("event", ""))) is not None:
                yield what, {"group": group, "member": member_id}
        for member in (m for id, m in before["members"].items() if id not in now["members"]):
            about = {"group": group, "member": member["member_id"], "instance": member["instance_id"]}
            self.left = member["member_id"]
            if event.get("event") in (SESSION, LEAVE):
                yield "member_failed" if event["event"] == SESSION else "member_left", about

    def _assigned(self, r: Record) -> Iterator[Line]:
        written = r.fields["completion_event"]
        held = self.groups.get((r.id.node, written["group_id"]))
        if held is not None:
            said = {"group": written["group_id"], "generation": written["generation"], "member": held["leader"]}
            yield "assignment_received", said | _sizes(held)

    def _moved(self, r: Record, event: Mapping[str, Any]) -> Iterator[Line]:
        f, key = r.fields, (r.id.node, r.fields["group_id"])
        before, after = self.groups.pop(key, None), f["group_metadata"]
        if after is not None:
            self.groups[key] = after
        held: Mapping[str, Any] | None = after or before
        if held is None:
            return
        about = {"group": f["group_id"], "generation": held["generation"]} | _sizes(held) | self._partition(f["group_id"])
        match f["to"]:
            case "PreparingRebalance":
                yield "rebalance_prepared", about | {"state": PREPARING} | self._reason(f, held, event)
            case "Empty":
                yield "group_empty", about
            case "Dead":
                yield ENDS.get(event.get("event", ""), "group_dead.removed"), about
            case "CompletingRebalance" | "AwaitingSync":
                yield "rebalance_stabilized", about

    def _deleted(self, r: Record) -> Iterator[Line]:
        deleted = [group for group, error in (r.fields["body"] or {}).get("errors", {}).items() if error == "NONE"]
        if deleted:
            yield "groups_deleted", {"groups": deleted, "n": self.removed[r.cause]}

    def _partition(self, group: str) -> dict[str, Any]:
        return {"offsets_partition": f"{OFFSETS_TOPIC}-{partition_for(group, self.partitions)}"} if self.partitions else {}

    def _reason(self, f: Mapping[str, Any], held: Mapping[str, Any], event: Mapping[str, Any]) -> dict[str, Any]:
        """Return {"reason": (kind of reason, its facts)}, {} for none."""
        kind = event.get("event")
        if kind == SESSION:
            return {"reason": ("expired", {"member": event["member_id"]})}
        if kind == LEAVE:
            # Up to 2.8 a line has the member id of the request: "" where a tool has named a group.instance.id.
            leaver = {"asked": event["members"][0]["member_id"], "member": self.left}
            return {"reason": ("left", leaver | {"client_reason": NO_REASON})}
        members = held["members"].values() if kind == JOIN else ()
        joined = next((m for m in members if m["awaiting_join"] == event["correlation_id"]), None)
        if joined is None:
            return {}
        about = {"member": joined["member_id"], "instance": joined["instance_id"]}
        about |= {"state": f["from"], "client_reason": NO_REASON}
        if f["rule"] == "a static member is back":
            return {"reason": ("protocol" if f["from"] == "Stable" else "static", about)}
        if f["rule"] == "a new member":
            return {"reason": ("new", about)}
        leads = joined["member_id"] == held["leader"] and f["from"] == "Stable"
        return {"reason": ("leader" if leads else "updated", about)}


def _sizes(held: Mapping[str, Any]) -> dict[str, Any]:
    members = held["members"].values()
    return {"members": len(members), "static_members": sum(member["instance_id"] is not None for member in members)}


def _joined(group: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the log line, as (kind, values), about the member id that a JoinGroup has added to the group."""
    about = {"group": group, "state": before["state"]}
    for member_id in (id for id in now["pending_members"] if id not in before["pending_members"]):
        yield "member_joined.pending", about | {"member": member_id}
    for member in (m for id, m in now["members"].items() if id not in before["members"]):
        id, said = member["instance_id"], about | {"member": member["member_id"]}
        if id is None:
            yield "member_joined", said | {"member_kind": "Dynamic Member"}
            continue
        old = next((m["member_id"] for m in before["members"].values() if m["instance_id"] == id), None)
        said |= {"instance": id, "member_kind": "Static Member"}
        yield ("member_joined", said) if old is None else ("static_member_rejoined", said | {"old_member": old})
