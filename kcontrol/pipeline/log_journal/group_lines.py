"""Reads the lines of group coordinators: rebalances with their reasons and generations, and the members that lines name.

Each of the lines "Preparing to rebalance", "Stabilized", "is now empty" and "is dead" makes a record of kind `group`. What the
coordinator does not log is inferred, and its record is marked:

* "Assignment received from leader" stands for the state Stable, which begins when the assignment is stored: the time is inferred.
* Up to 2.0 the line "Preparing to rebalance" has no reason; it is taken from the lines about members since the group's former
  line. Up to 0.10.2 a coordinator writes "has failed" also for a member that leaves. From 2.1 to 2.6.0 "Updating metadata for
  member" does not say whether the member is the leader.
* Members are known by the lines that name them. At INFO a coordinator does not name each member that joins. So the members of
  a generation are marked as inferred, unless the lines have named as many members as the number in the line "Stabilized". A
  member id that a coordinator has assigned (MEMBER_ID_REQUIRED) counts as a member if the number of members then agrees; the id
  is marked as inferred.

Source: GroupCoordinator.scala, prepareRebalance, onCompleteJoin, doSyncGroup and their callers (0.9.0 to 3.9).
"""

import re
from dataclasses import dataclass, field
from typing import Any

from kcontrol.core.releases import sort_key
from kcontrol.kafka_logs.log_lines import REASON, read
from kcontrol.pipeline.log_journal.log_line import Line
from kcontrol.pipeline.log_journal.memory import NOT_KNOWN, TIME, Memory
from kcontrol.pipeline.log_journal.processes import Processes
from kcontrol.views.group_state import state_name

PREPARING, COMPLETING, STABLE, EMPTY, DEAD = "PreparingRebalance", "CompletingRebalance", "Stable", "Empty", "Dead"
JOINS, LEAVES, EXPIRES, OFFERS = "a new member", "a member leaves", "session timeout", "a member offers other protocols"
GONE = "a member leaves or fails"
REASONS = {
    "new": JOINS, "static": "a static member is back", "updated": OFFERS, "protocol": "a static member is back",
    "leader": "the leader joins again", "left": LEAVES, "expired": EXPIRES, "sync": "sync timeout",
    "capacity": "group.max.size is exceeded", "storing": "the assignment was not stored",
}  # fmt: skip
"""kcontrol's reason for each case of `reason` in the table of log lines."""
LEAVING = ("left", "expired", "sync")
"""The reasons that name members which are removed."""
UUID = re.compile(r"-[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")


@dataclass
class Known:
    """What log lines have said so far about a group at one coordinator: its state, generation and members."""

    # None before the first log line about a state.
    state: str | None = None
    generation: int = 0
    # Member id to whether a log line says that it has joined; False for an id that a consumer has to use when it joins again.
    members: dict[str, bool] = field(default_factory=dict)
    # Member id to group.instance.id, for static members.
    instances: dict[str, str] = field(default_factory=dict)
    # The reason for the next rebalance, from the latest log line about a member; None after each transition.
    why: str | None = None
    # Log lines name all members of the latest generation.
    is_complete: bool = False


class GroupLines:
    """The consumer groups of the coordinators, as the log lines read so far show them.

    Each public method reads a log line about a group; most add a `group` record to the journal.
    """

    def __init__(self, memory: Memory, processes: Processes, release: str) -> None:
        self.memory, self.processes, self._release = memory, processes, release
        self._failed = EXPIRES if sort_key(release) >= sort_key("0.11.0") else GONE
        self._known: dict[tuple[int, int, str], Known] = {}  # broker, incarnation, group id

    # ---------------------------------------------------------------- members

    def joined(self, line: Line) -> None:
        """Read the log line about a new member id, and add the id to the group's members."""
        if (known := self._of(line)) is not None and "member" in line.facts:
            self._add(known, line.facts["member"], line.facts.get("instance"), "add" in (line.facts.get("how") or ""))
            known.why = JOINS

    def rejoined(self, line: Line) -> None:
        """Read the log line about a static member that has joined with a new member id, and replace the member's id."""
        old, facts = line.facts.get("old_member"), line.facts
        for known in [known for known in self._known.values() if old in known.members]:
            del known.members[str(old)]
            if "member" in facts:
                self._add(known, facts["member"], facts.get("instance"), is_member=True)

    def gone(self, line: Line) -> None:
        """Remove a member whose session has ended or that leaves, or a member id whose consumer has not joined."""
        if (known := self._of(line)) is not None and "member" in line.facts:
            known.members.pop(line.facts["member"], None)
            known.why = {"member_failed": self._failed, "member_left": LEAVES}.get(line.kind, known.why)

    def not_rejoined(self, line: Line) -> None:
        """Read the log line about members that have not joined before the rebalance timeout, and remove these members."""
        if (known := self._of(line)) is not None:
            for member in line.facts["members"]:
                known.members.pop(member.strip("() "), None)

    @staticmethod
    def _add(known: Known, member: str, instance: str | None, is_member: bool) -> None:
        known.members[member] = is_member or known.members.get(member, False)
        if instance is not None:
            known.instances[member] = instance

    # ---------------------------------------------------------------- states

    def prepared(self, line: Line) -> None:
        """Read the log line "Preparing to rebalance group", and record the group in the state PreparingRebalance."""
        if (known := self._of(line)) is None:
            return
        reason, is_sure = self._reason(line.facts.get("reason"), known)
        known.generation = line.facts["generation"]
        named = ([] if is_sure else ["reason"]) + ([] if self._names_all(line, known) else ["members"])
        self._move(line, known, PREPARING, reason, named)

    def _names_all(self, line: Line, known: Known) -> bool:
        """Return whether the log lines name every member of the generation that the rebalance of `line` begins.

        `known` is the group as the log lines before `line` describe it.
        """
        after = self.processes.ahead.next(self.processes.position, "stabilized", line.facts["group"])
        if after is None or after.facts["generation"] != known.generation + 1:
            return known.is_complete
        return after.facts.get("members") == sum(known.members.values())

    def stabilized(self, line: Line) -> None:
        """Read the log line "Stabilized group", and record that the group is CompletingRebalance in a new generation."""
        if (known := self._of(line)) is None:
            return
        known.generation, size = line.facts["generation"], line.facts.get("members")
        named, inferred = sum(known.members.values()), list[str]()
        known.is_complete = named == size
        if not known.is_complete:
            inferred = ["members"]
            if named < len(known.members) and size in (None, len(known.members)):
                known.members, inferred = dict.fromkeys(known.members, True), ["members", "member_id"]
        self._move(line, known, COMPLETING, "all have joined", inferred)

    def assigned(self, line: Line) -> None:
        """Read the log line "Assignment received from leader", and record the group in the state Stable."""
        if (known := self._of(line)) is not None:
            known.generation = line.facts["generation"]
            self._move(line, known, STABLE, "the assignment is stored", [TIME])

    def empty(self, line: Line) -> None:
        """Read the log line about a group that "is now empty", and record that the group is Empty in a new generation."""
        if (known := self._of(line)) is not None:
            known.generation, known.members, known.is_complete = line.facts["generation"], {}, True
            self._move(line, known, EMPTY, "no member is left", [])

    def ended(self, line: Line) -> None:
        """Record the end of a group that is unloaded or removed, or of all groups that an administrator has deleted."""
        why = "another broker coordinates" if line.kind == "group_unloading" else "the group is removed"
        for group in line.facts.get("groups", [line.facts.get("group")]):
            if (known := self._of(line, group)) is not None and known.state != DEAD:
                self._move(line, known, DEAD, why, [], group)

    def _reason(self, text: str | None, known: Known) -> tuple[str, bool]:
        """Return (reason of a rebalance, whether a log line states this reason); `text` is the reason in the line, or None.

        Also add the joining member in `text` to `known`, and remove the leaving members.
        """
        found = read(REASON, text) if text else None
        if text is None or found is None:
            return (text, True) if text else (known.why or NOT_KNOWN, False)
        case, named = found
        if case == "new":
            instance = named.get("instance", "None").removeprefix("Some(").removesuffix(")")
            self._add(known, named["member"], None if instance in ("None", "null") else instance, is_member=True)
        elif case in LEAVING:
            for gone in re.split(r", ?", named.get("members") or named.get("asked") or named["member"]):
                known.members.pop(gone, None)
        error = named.get("error")
        return REASONS[case] + (f": {error}" if error else ""), case != "updated" or "state" in named

    # ---------------------------------------------------------------- records

    def _of(self, line: Line, group: str | None = None) -> Known | None:
        """Return the state and the members of a group as the log lines of one broker have shown them.

        The group is `group`, by default the group in `line`. Return None if `line` names no broker or there is no group.
        """
        broker, group = line.facts.get("broker", line.broker), group or line.facts.get("group")
        if broker is None or group is None:
            return None
        self.memory.ensure_running(broker)
        return self._known.setdefault((broker, self.memory.incarnations[broker], group), Known())

    def _move(self, line: Line, known: Known, to: str, rule: str, inferred: list[str], group: str | None = None) -> None:
        """Add the `group` record of a transition to the state `to`, and set this state in `known`; `rule` is the reason.

        `inferred` names the fields whose values no log line has. `group` None means the group of `line`.
        """
        # `known` is what the log lines before `line` say about the group.
        group, broker = group or line.facts["group"], line.facts.get("broker", line.broker)
        value = None if to == DEAD else self._value(line, known, to, group)
        source = known.state or (STABLE if to == PREPARING and known.generation else PREPARING if to != PREPARING else EMPTY)
        named = [*inferred, *([] if known.state else ["from"])]
        known.state, known.why = to, None
        fields = {"group_id": group, "from": state_name(source, self._release), "to": state_name(to, self._release)}
        self.memory.note(broker, "group", None, ", ".join(named) or None, **fields, rule=rule, group_metadata=value)

    def _value(self, line: Line, known: Known, state: str, group: str) -> dict[str, Any]:
        """Return the value of a journal record `group`: the group in the state `state`, as the log lines so far describe it.

        `known` has the generation and members in these lines. A field that no log line has, such as `leader`, is empty or None.
        """
        members = {id: _member(id, known.instances.get(id)) for id, is_member in known.members.items() if is_member}
        return {
            "group_id": group, "state": state, "state_timestamp_ms": line.at_ms, "protocol_type": None, "protocol": None,
            "generation": known.generation, "leader": None, "members": members,
            "pending_members": [id for id, is_member in known.members.items() if not is_member], "pending_sync": [],
            "is_delayed": False, "subscribed_topics": None,
        }  # fmt: skip


def _member(id: str, instance: str | None) -> dict[str, Any]:
    """Return a member as a `group` record has it, from its member id and its group.instance.id; all other fields are empty."""
    return {
        # A member id is a client id and a UUID.
        "member_id": id, "client_id": UUID.sub("", id), "client_host": "", "session_timeout_ms": 0, "rebalance_timeout_ms": 0,
        "protocols": {}, "instance_id": instance, "assignment": "", "awaiting_join": None, "awaiting_sync": None,
        "is_new": False, "unwritten": [], "dropped": None,
    }  # fmt: skip
