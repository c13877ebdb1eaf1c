"""The memory of a recorded group coordinator, inferred step by step, with a journal record for each change.

`requests.py` has the changes by each request, `to_journal.py` the rules of the inference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from kcontrol.core.effects import LogBatch
from kcontrol.core.model import TopicPartition
from kcontrol.group import events as e
from kcontrol.group.context import GroupConfig
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC, partition_for
from kcontrol.group.group_machine import COMPLETING, DEAD, EMPTY, PREPARING
from kcontrol.group.group_rules import group_rules
from kcontrol.group.handlers import REQUESTS, SCHEDULER
from kcontrol.group.model import (
    CommitRecordMetadataAndOffset,
    Group,
    GroupState,
    Member,
    Offsets,
)
from kcontrol.group.offsets_topic_records import read_group_value, read_offset_value
from kcontrol.group.rebalance import join_timer, session_timer
from kcontrol.journal.journal import OUTSIDE, Journal, RecordId
from kcontrol.journal.record_fields import INFERRED
from kcontrol.recordings.groups.recording import Step, errors, record_bytes

BROKER = 1
"""The id of the broker in journals of recordings, which do not have the id."""

RECORD, TIME = INFERRED
GONE = ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID")


class Memory:
    """The state of a recorded coordinator, inferred from requests, responses and log; each change adds a record to the journal.

    `now_ms` is the next record's time; an argument `cause` is the causing record's id.
    """

    def __init__(self, recording: Step, journal: Journal) -> None:
        self.recording, self.journal, self.now_ms = recording, journal, 0
        self.rules = group_rules(recording["release"])
        self.group_id = recording["group"]
        count = recording["broker"].get("offsets.topic.num.partitions", GroupConfig.of(recording["release"]).partitions)
        self.partition = TopicPartition(OFFSETS_TOPIC, partition_for(self.group_id, count))
        self.incarnation = 0
        self.group: Group | None = None
        self.offsets = Offsets()
        self.log = [(entry, *record_bytes(entry)) for entry in recording["log"]]
        self.appended = 0  # how many records of the log are in the journal
        self.sessions: dict[str, tuple[int, RecordId]] = {}  # member id -> when its session ends, and the record that set this
        self.parked: set[str] = set()
        self.released: dict[str, RecordId] = {}  # correlation id -> the record that ends the wait of its request

    # ---------------------------------------------------------------- records

    def note(self, kind: str, cause: RecordId | None, *, inferred: str | None = RECORD, **fields: Any) -> RecordId:
        """Append a record of `kind`, such as "update", with `fields` to the recorded broker's journal; return the record's id.

        `inferred` is "record" if the recording lacks the event, "time" if only the event's time, else None.
        """
        # "record": the recording lacks this record; "time": it lacks the time of this record; None: it has both.
        said = fields if inferred is None else fields | {"inferred": inferred}
        return self.journal.add(BROKER, self.incarnation, kind, cause, self.now_ms, said)

    def _update(
        self, field: str, cause: RecordId, put: Any = None, *, remove: Iterable[Any] = (), container: str = "map"
    ) -> None:
        fields = {"field": field, "container": container, "clear": False, "remove": list(remove), "put": put}
        self.note("update", cause, context="group", **fields)

    def put(self, group: Group, cause: RecordId) -> None:
        self.group = group
        self._update("groups", cause, {self.group_id: group})

    def commit(self, offsets: Offsets, cause: RecordId) -> None:
        """Replace the group's committed offsets by `offsets`, and add an `update` record to the journal."""
        self.offsets = offsets
        if offsets:
            self._update("offsets", cause, {self.group_id: offsets})
        else:
            self._update("offsets", cause, remove=(self.group_id,))

    def move(self, target: GroupState, rule: str, cause: RecordId, *, leaves: bool = False) -> None:
        """Move the group to the state `target`, and add a `group` record; `rule` is the reason, such as "a member leaves".

        If `leaves` is True, the group is then removed from the memory.
        """
        assert self.group is not None
        source = self.group.state
        # A group that leaves the memory has no metadata afterwards.
        moved = None if leaves else replace(self.group, state=target, state_timestamp_ms=self.now_ms)
        names = {"from": self._name(source), "to": self._name(target)}
        self.note("group", cause, group_id=self.group_id, **names, rule=rule, group_metadata=moved)
        self.group = moved

    def _name(self, state: GroupState) -> str:
        return self.rules.completing_rebalance_name if state is COMPLETING else str(state)

    # ---------------------------------------------------------------- the process

    def start(self, act: RecordId | None, *, inferred: str | None = None) -> None:
        """Add the journal records of a start of the recorded broker, and load what its log of the offsets topic has so far.

        `act` is the id of the `scenario` record of this start. The first start is not in a recording: for it `act` is None, and
        `inferred` is "record", which marks its journal record as inferred.
        """
        self.incarnation += 1
        said = {} if inferred is None else {"inferred": inferred}
        fields = {"broker": BROKER, "incarnation": self.incarnation}
        cause = self.journal.add(OUTSIDE, 0, "start", act, self.now_ms, fields | said)
        if self.appended:
            cause = self.note("read_log", cause, partition=self.partition, offset=0)
            self._load(cause)
        self._update("owned", cause, [self.partition.partition], container="set")

    def _load(self, cause: RecordId) -> None:
        group, committed = None, dict[TopicPartition, CommitRecordMetadataAndOffset]()
        for offset, (entry, _, value) in enumerate(self.log[: self.appended]):
            if entry["key"]["kind"] == "group":
                group = None if value is None else read_group_value(self.group_id, value)
                continue
            tp = partition_of(entry)
            if value is None:
                committed.pop(tp, None)
            else:
                committed[tp] = CommitRecordMetadataAndOffset(read_offset_value(value), offset)
        if group is not None:
            self.put(group, cause)
        self.commit(Offsets(committed), cause)
        for member in group.members.values() if group else ():
            self.restart_session(member, cause)

    def stop(self, act: RecordId) -> None:
        """Stop the broker, which loses its memory, its timers and its parked requests.

        `act` is the id of the journal record `scenario` that stops the broker.
        """
        self.journal.add(OUTSIDE, 0, "stop", act, self.now_ms, {"broker": BROKER, "exit_code": 0})
        self.group, self.offsets = None, Offsets()
        self.sessions.clear()
        self.parked.clear()

    def receive(self, event: Any, cause: RecordId | None, thread: str, *, inferred: str | None = None) -> RecordId:
        """Record that an event enters the queue of `thread` and its handler begins; return the `begin` record's id.

        `cause` is the event's cause; `inferred` is "record" if the recording lacks the event, else None.
        """
        timed = replace(event, timestamp_ms=self.now_ms) if hasattr(event, "timestamp_ms") else event
        record = self.note("enqueue", cause, inferred=inferred, thread=thread, event=timed, is_notification=False)
        return self.note("begin", record, thread=thread, event=event.name)

    def done(self, thread: str, begun: RecordId) -> None:
        self.note("end", begun, thread=thread)

    def respond(self, correlation_id: str, body: Any, cause: RecordId) -> RecordId:
        self.parked.discard(correlation_id)
        return self.note("respond", cause, inferred=None, correlation_id=correlation_id, body=body)

    # ---------------------------------------------------------------- requests

    def park(self, correlation_id: str, what: str, cause: RecordId) -> None:
        self.parked.add(correlation_id)
        self.note("park", cause, correlation_id=correlation_id, key=f"{what} {self.group_id}")

    # ---------------------------------------------------------------- rebalances

    def prepare(self, rule: str, cause: RecordId) -> None:
        """Begin a rebalance of the recorded group: move it to PreparingRebalance; `rule` is the reason in the journal.

        Do nothing without a group, or if the group is in PreparingRebalance already.
        """
        group = self.group
        if group is None or group.state is PREPARING:
            return
        if group.state is COMPLETING:
            self.released |= {m.awaiting_sync: cause for m in group.members.values() if m.awaiting_sync is not None}
            self.put(group.with_each_member(assignment=b"", awaiting_sync=None), cause)
        self.move(PREPARING, rule, cause)

    def complete_by_timer(self, answers: list[Step]) -> None:
        """Let the timer of the rebalance fire, which ends the join phase and begins the next generation.

        `answers` has the recorded JoinGroups whose responses name the new generation.
        """
        timer = join_timer(self.group_id)
        event = e.JoinTimedOut(self.group_id, self.group.generation if self.group else 0)
        armed = self.note("set_timer", None, timer=timer, thread=REQUESTS, fires_at_ms=self.now_ms, event=event)
        self.complete_join(answers, self.note("timer_fired", armed, timer=timer))

    def complete_join(self, answers: list[Step], cause: RecordId) -> None:
        """Begin the next generation, with the members in the recorded JoinGroup response to the group leader.

        `answers` has the recorded JoinGroups whose responses name the new generation; the record `cause` ended the join phase.
        """
        group = self.group
        if group is None or group.state is not PREPARING:
            return
        first = answers[0]["answer"]
        listed = next((step["answer"]["members"] for step in answers if step["answer"]["members"]), None)
        named = {step["answer"]["member"] for step in answers} if listed is None else set(listed)
        members = {id: m for id, m in group.members.items() if id in named}
        # Members that the response lacks are removed.
        for gone in group.members.keys() - members.keys():
            self.cancel_session(gone, cause)
        self.released |= {m.awaiting_join: cause for m in members.values() if m.awaiting_join is not None}
        joined = {id: replace(m, awaiting_join=None) for id, m in members.items()}
        about = {"generation": first["generation"], "protocol": first["protocol"], "leader": first["leader"]}
        self.group = replace(group, members=joined, pending_members=(), **about)
        self.move(COMPLETING, "all members have joined, or the wait is over", cause)
        for member in joined.values():
            self.restart_session(member, cause)

    def remove(self, member_ids: Iterable[str], rule: str, cause: RecordId) -> None:
        """Remove members from the group; the remaining members rebalance for the reason `rule`, such as "a member leaves"."""
        assert self.group is not None
        gone = list(member_ids)
        for id in gone:
            self.cancel_session(id, cause)
        self.put(self.group.without(*gone), cause)
        self.prepare(rule, cause)
        if not self.group.members and not self.group.pending_members:
            # A group without members becomes Empty; up to 0.10.0, or if its tombstone follows in the log, it leaves the memory.
            self._vacate(cause)

    def _vacate(self, cause: RecordId) -> None:
        assert self.group is not None
        following = next((value for entry, _, value in self.log[self.appended :] if entry["key"]["kind"] == "group"), b"")
        if following is None or not self.rules.keeps_empty_groups:
            self.move(DEAD, "no member is left", cause, leaves=True)
            self.append_group(None, cause, lambda value: value is None)
            return
        self.group = replace(self.group, generation=self.group.generation + 1, protocol=None, leader=None)
        self.move(EMPTY, "no member is left", cause)
        self.append_group(None, cause, lambda value: value is not None and not value["members"])

    # ---------------------------------------------------------------- sessions

    def restart_session(self, member: Member, cause: RecordId) -> None:
        ends_ms = self.now_ms + member.session_timeout_ms
        event = e.SessionTimedOut(self.group_id, member.member_id)
        timer = session_timer(self.group_id, member.member_id)
        record = self.note("set_timer", cause, timer=timer, thread=REQUESTS, fires_at_ms=ends_ms, event=event)
        self.sessions[member.member_id] = ends_ms, record

    def cancel_session(self, member_id: str, cause: RecordId) -> None:
        if self.sessions.pop(member_id, None):
            self.note("cancel_timer", cause, timer=session_timer(self.group_id, member_id))

    def expire_until(self, at_ms: int) -> None:
        """Remove the members whose sessions end by `at_ms`, and append the tombstones of the offsets that expire by `at_ms`."""
        while due := sorted((ends_ms, id) for id, (ends_ms, _) in self.sessions.items() if ends_ms <= at_ms):
            ends_ms, member_id = due[0]
            _, armed = self.sessions.pop(member_id)
            self.now_ms = max(self.now_ms, ends_ms)
            fired = self.note("timer_fired", armed, timer=session_timer(self.group_id, member_id))
            member = self.group.members.get(member_id) if self.group else None
            # A member stays if the response to its next request shows that the coordinator knows it.
            if member is not None and not member.is_parked and not self._succeeds_later(member_id, ends_ms):
                self.remove((member_id,), "session timeout", fired)
        self._expire_offsets(at_ms)

    def _succeeds_later(self, member_id: str, since_ms: int) -> bool:
        later = (step for step in self.recording["exchange"] if step["at"] >= since_ms and "api" in step)
        own = next((step for step in later if step["request"].get("member") == member_id and errors(step)), None)
        return own is not None and not set(errors(own)) & set(GONE)

    def _expire_offsets(self, at_ms: int) -> None:
        """Append the next tombstones of the recorded log, as long as they delete offsets found expired by `at_ms`.

        A tombstone gets the time of the coordinator's periodic check that found the offset expired.
        """
        every_ms = self.recording["broker"].get("offsets.retention.check.interval.ms")
        while every_ms and self.appended < len(self.log):
            entry, _, value = self.log[self.appended]
            held = self.offsets.committed.get(partition_of(entry)) if entry["key"]["kind"] == "offset" and value is None else None
            # The next record is no tombstone of an expired offset.
            if held is None or held.value.expire_timestamp is None:
                return
            # The first check after the offset has expired.
            check_ms = (held.value.expire_timestamp // every_ms + 1) * every_ms
            if check_ms > at_ms:
                return
            self.now_ms = max(self.now_ms, check_ms)
            begun = self.receive(e.ExpireOffsets(), None, SCHEDULER, inferred=RECORD)
            self.append_tombstones(begun)
            self.done(SCHEDULER, begun)

    # ---------------------------------------------------------------- the log

    def append_group(self, written: Any, cause: RecordId, fits: Callable[[Step | None], bool]) -> RecordId | None:
        """Append the recorded log up to and including its next group metadata record; return the `offsets_append` record's id.

        If there is none, or `fits` is False for its value (None: a tombstone), append nothing and return None. `written` is the
        coordinator's event after the append.
        """
        places = range(self.appended, len(self.log))
        at = next((at for at in places if self.log[at][0]["key"]["kind"] == "group"), None)
        if at is None or not fits(self.log[at][0]["value"]):
            return None
        self.append_until(at)
        return self.append(at, at + 1, written, cause)

    def append_tombstones(self, cause: RecordId) -> None:
        """Record in the journal the append of the tombstones that come next in the recorded log, up to the first other record.

        Also remove the offsets of these tombstones from the group in this memory.
        """
        end = self.appended
        while end < len(self.log) and self.log[end][2] is None:
            end += 1
        if end > self.appended:
            gone = [partition_of(entry) for entry, _, _ in self.log[self.appended : end] if entry["key"]["kind"] == "offset"]
            record = self.append(self.appended, end, None, cause)
            self.commit(self.offsets.without(gone), record)

    def append_rest(self) -> None:
        self.append_until(len(self.log))

    def append_until(self, end: int) -> None:
        """Record in the journal the append of the recorded log's next records, before index `end`; its cause is not known."""
        if self.appended < end:
            self.append(self.appended, end, None, None)

    def append(self, first: int, end: int, written: Any, cause: RecordId | None) -> RecordId:
        records = tuple((key, value) for _, key, value in self.log[first:end])
        about = {"records": [list(record) for record in records], "completion_event": written}
        record = self.note("append", cause, inferred=TIME, partition=self.partition, **about)
        self.appended = end
        return self.note("offsets_append", record, inferred=TIME, partition=self.partition, batch=LogBatch(first, records))


def partition_of(entry: Step) -> TopicPartition:
    return TopicPartition(entry["key"].get("topic", ""), entry["key"].get("partition", 0))
