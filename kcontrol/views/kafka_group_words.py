"""The lines of a group coordinator in server.log: which record of a journal makes which line, with the values of the line.

`kafka_words.tsv` has the texts by release. The reason in "Preparing to rebalance group" (2.1 on) follows from the event whose
handler begins the rebalance: a JoinGroup, a LeaveGroup, or the end of a session. Without one of these events the reason is not
known, and from 2.1 on no line is returned. The consumers of kcontrol send no reason with a request (KIP-800), so the lines of 3.2
and later have "not provided" in the place of the consumer's reason.

Source: doUnknownJoinGroup (doNewMemberJoinGroup since 3.0), updateStaticMemberAndRebalance, prepareRebalance, onCompleteJoin,
doSyncGroup, handleLeaveGroup, handleDeleteGroups, onExpireHeartbeat, onMemberFailure, onGroupLoaded and onGroupUnloaded of
GroupCoordinator.scala, cleanupGroupMetadata of GroupMetadataManager.scala (0.9 to 3.9).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from kcontrol.group.coordinator_partition import OFFSETS_TOPIC, partition_for
from kcontrol.journal.journal import Record, RecordId

Line = tuple[str, dict[str, Any]]
"""The kind of a line, as in `kafka_words.tsv`, and its values."""

PREPARING, EMPTY, DEAD = "PreparingRebalance", "Empty", "Dead"
LOADED, UNLOADED, SESSION, LEAVE, JOIN, EXPIRY, DELETE, PENDING = (
    "PartitionElected", "PartitionResigned", "SessionTimedOut", "LeaveGroup", "JoinGroup", "ExpireOffsets", "DeleteGroups",
    "PendingMemberTimedOut",
)  # fmt: skip
GONE = {PENDING: "group.pending_expired", LEAVE: "group.pending_left"}
"""The line about a pending member id that is removed, by the event whose handler removes the id."""
OFFSET_KEYS = ("\0\0", "\0\1")
"""How the keys of offsets begin: with their version, in two bytes."""
NO_REASON = "not provided"


class GroupWords:
    """Finds, record by record, the lines that a group coordinator logs.

    A line is (kind, values): the name of a row of `kafka_words.tsv`, and the values of its placeholders.
    """

    def __init__(self) -> None:
        self.events: dict[RecordId, Mapping[str, Any]] = {}  # record -> the event that its handler handles
        self.groups: dict[tuple[int, str], Mapping[str, Any]] = {}
        self.partitions = 0  # of the offsets topic; 0 if the journal does not say
        self.left = ""  # the member that was removed last
        self.removed = Counter[RecordId | None]()  # the record that begins a handler -> its tombstones of offsets

    def lines(self, r: Record) -> Iterator[Line]:
        """Yield the lines that Kafka's coordinator logs at a journal record, as (kind, values): ("group.preparing", {...}).

        The kind names a row of `kafka_words.tsv`, the values fill its message. `r` has fields in JSON's types.
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
                yield "group.loading", {"group": group, "generation": now["generation"]}
            return
        if event.get("event") == JOIN and not event["member_id"]:
            yield from _joined(group, before, now)
        for member_id in sorted({*before["pending_members"]} - {*now["pending_members"]}):
            if (what := GONE.get(event.get("event", ""))) is not None:
                yield what, {"group": group, "member": member_id}
        for member in (m for id, m in before["members"].items() if id not in now["members"]):
            about = {"group": group, "member": member["member_id"], "instance": _option(member["instance_id"])}
            self.left = member["member_id"]
            if event.get("event") in (SESSION, LEAVE):
                yield "group.failed" if event["event"] == SESSION else "group.left", about

    def _assigned(self, r: Record) -> Iterator[Line]:
        written = r.fields["completion_event"]
        held = self.groups.get((r.id.node, written["group_id"]))
        if held is not None:
            said = {"group": written["group_id"], "generation": written["generation"], "member": held["leader"]}
            yield "group.assignment", said | _sizes(held)

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
                yield "group.preparing", about | {"state": PREPARING, "left": self.left} | _reason(f, held, event)
            case "Empty":
                yield "group.empty", about
            case "Dead":
                what = {UNLOADED: "group.unloading", EXPIRY: "group.expired"}.get(event.get("event", ""), "group.dead")
                yield what, about
            case "CompletingRebalance" | "AwaitingSync":
                yield "group.stabilized", about

    def _deleted(self, r: Record) -> Iterator[Line]:
        deleted = [group for group, error in (r.fields["body"] or {}).get("errors", {}).items() if error == "NONE"]
        if deleted:
            yield "group.deleted", {"groups": ", ".join(deleted), "count": self.removed[r.cause]}

    def _partition(self, group: str) -> dict[str, Any]:
        return {"partition": partition_for(group, self.partitions)} if self.partitions else {}


def _sizes(held: Mapping[str, Any]) -> dict[str, Any]:
    members = held["members"].values()
    return {"members": len(members), "static": sum(member["instance_id"] is not None for member in members)}


def _joined(group: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the log line, as (kind, values), about the member id that a JoinGroup has added to the group.

    `before` and `now` are the group before and after the JoinGroup.
    """
    about = {"group": group, "state": before["state"]}
    for member_id in (id for id in now["pending_members"] if id not in before["pending_members"]):
        yield "group.id_created", about | {"member": member_id}
    for member in (m for id, m in now["members"].items() if id not in before["members"]):
        id, said = member["instance_id"], about | {"member": member["member_id"], "sort": "Dynamic"}
        if id is None:
            yield "group.joined", said
            continue
        old = next((m["member_id"] for m in before["members"].values() if m["instance_id"] == id), None)
        said |= {"instance": _option(id), "instance_id": id, "old": old, "sort": "Static"}
        yield ("group.static_joined" if old is None else "group.static_rejoined"), said


def _option(value: str | None) -> str:
    """Return a value as Scala prints an Option: "Some(x)", or "None" for None."""
    return "None" if value is None else f"Some({value})"


def _reason(f: Mapping[str, Any], held: Mapping[str, Any], event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reason in the log line about a rebalance, as a text's name with the values of its placeholders; {} for none.

    For example: {"reason": "reason.left", "member": "anna-1", ...}.

    `f` has the fields of the `group` record, `held` the group afterwards, `event` the handled event.
    """
    # The value of `reason` names a text in `kafka_words.tsv`; the other values fill its placeholders.
    kind, member = event.get("event"), event.get("member_id")
    if kind == SESSION:
        return {"reason": "reason.expired", "member": member}
    if kind == LEAVE:
        return {"reason": "reason.left", "member": event["members"][0]["member_id"], "client_reason": NO_REASON}
    if kind != JOIN:
        return {}
    joined = next((m for m in held["members"].values() if m["awaiting_join"] == event["correlation_id"]), None)
    if joined is None:
        return {}
    about = {"member": joined["member_id"], "instance": _option(joined["instance_id"]), "before": f["from"]}
    about |= {"instance_id": joined["instance_id"], "client_reason": NO_REASON}
    if f["rule"] == "a static member is back":
        return about | {"reason": "reason.static_protocol" if f["from"] == "Stable" else "reason.static"}
    if f["rule"] == "a new member":
        return about | {"reason": "reason.new"}
    leads = joined["member_id"] == held["leader"] and f["from"] == "Stable"
    return about | {"reason": "reason.leader" if leads else "reason.updated"}
