"""The memory of a recorded group coordinator, inferred step by step, with a journal record for each change.

`requests.py` has the changes by each request, `to_journal.py` the rules of the inference.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
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
from kcontrol.group.model import CommitRecordMetadataAndOffset, Group, GroupState, Member, Offsets
from kcontrol.group.offsets_topic_records import read_group_value, read_offset_value
from kcontrol.group.rebalance import join_timer, session_timer, sync_timer
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
        self.sync_timer: tuple[int, RecordId] | None = None  # when the sync phase ends, and the record that set its timer
        self.completed_by: RecordId | None = None  # the end of the session for which alone the join phase has waited
        self.parked: set[str] = set()
        self.released: dict[str, RecordId] = {}  # correlation id -> the record that ends the wait of its request

    # ---------------------------------------------------------------- records

    def note(self, kind: str, cause: RecordId | None, *, inferred: str | None = RECORD, **fields: Any) -> RecordId:
        """`inferred`: "record" if the recording lacks the event, "time" if only its time, else None."""
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
        """`rule` is the reason, such as "a member leaves"; with `leaves` the group is removed then."""
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
        """Memory, timers and parked requests are lost."""
        self.journal.add(OUTSIDE, 0, "stop", act, self.now_ms, {"broker": BROKER, "exit_code": 0})
        self.group, self.offsets, self.sync_timer = None, Offsets(), None
        self.sessions.clear()
        self.parked.clear()

    def receive(self, event: Any, cause: RecordId | None, thread: str, *, inferred: str | None = None) -> RecordId:
        """The event enters the queue of `thread`, and its handler begins; returns the id of `begin`."""
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
        self.completed_by = None
        self._cancel_sync_timer(cause)
        if group.state is COMPLETING:
            waiting = [m for m in group.members.values() if m.awaiting_sync is not None]
            self.released |= {m.awaiting_sync: cause for m in waiting if m.awaiting_sync is not None}
            group = group.with_each_member(assignment=b"", awaiting_sync=None)
            for member in waiting:
                self.restart_session(member, cause)
        if group.pending_sync or group is not self.group:
            self.put(replace(group, pending_sync=()), cause)
        self.move(PREPARING, rule, cause)

    def complete_by_timer(self, answers: list[Step]) -> None:
        """Let the timer of the rebalance fire, which ends the join phase and begins the next generation.

        `answers` has the recorded JoinGroups whose responses name the new generation. If the join phase has waited for a member
        whose session has just ended, that end is the cause.
        """
        if self.completed_by is not None:
            self.complete_join(answers, self.completed_by)
            return
        timer = join_timer(self.group_id)
        event = e.JoinTimedOut(self.group_id, self.group.generation if self.group else 0)
        armed = self.note("set_timer", None, timer=timer, thread=REQUESTS, fires_at_ms=self.now_ms, event=event)
        self.complete_join(answers, self.note("fire_timer", armed, timer=timer))

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
        joined = [replace(m, awaiting_join=None) for m in members.values()]
        about = {"generation": first["generation"], "protocol": first["protocol"], "leader": first["leader"]}
        self.group = replace(group.with_members(joined), pending_members=(), **about)
        self.move(COMPLETING, "all members have joined, or the wait is over", cause)
        for member in joined:
            self.restart_session(member, cause)
        if self.rules.sync_timeout:
            self._begin_sync_wait(cause)

    def _begin_sync_wait(self, cause: RecordId) -> None:
        """Set the timer of the sync phase, at whose end the members that have sent no SyncGroup are removed (since 2.8)."""
        assert self.group is not None
        self.put(replace(self.group, pending_sync=tuple(self.group.members)), cause)
        ends_ms = self.now_ms + max(member.rebalance_timeout_ms for member in self.group.members.values())
        event = e.SyncTimedOut(self.group_id, self.group.generation)
        timer = sync_timer(self.group_id)
        self.sync_timer = ends_ms, self.note("set_timer", cause, timer=timer, thread=REQUESTS, fires_at_ms=ends_ms, event=event)

    def end_sync_wait(self, group: Group, member_id: str, cause: RecordId) -> Group:
        """Return the group in which a member has sent SyncGroup; the last SyncGroup cancels the timer of the sync phase."""
        if member_id in group.pending_sync:
            group = replace(group, pending_sync=tuple(id for id in group.pending_sync if id != member_id))
            self.put(group, cause)
            if not group.pending_sync:
                self._cancel_sync_timer(cause)
        return group

    def _cancel_sync_timer(self, cause: RecordId) -> None:
        if self.sync_timer is not None:
            self.sync_timer = None
            self.note("cancel_timer", cause, timer=sync_timer(self.group_id))

    def remove(self, member_ids: Iterable[str], rule: str, cause: RecordId) -> None:
        """Remove members from the group; the remaining members rebalance for the reason `rule`, such as "a member leaves"."""
        assert self.group is not None
        gone = list(member_ids)
        for id in gone:
            self.cancel_session(id, cause)
        self.put(self.group.without(*gone), cause)
        self.prepare(rule, cause)
        self._vacate(cause)

    def _vacate(self, cause: RecordId) -> None:
        """End the join phase of a group without members, whose timeout is 0 ms: the group becomes Empty, also with pending ids.

        Up to 0.10.0, or if the group's tombstone follows in the log, the group leaves the memory.
        """
        if self.group is None or self.group.state is not PREPARING or self.group.members:
            return
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
        id = member.member_id
        self._set_session(id, member.session_timeout_ms, e.SessionTimedOut(self.group_id, id), cause)

    def _set_session(self, member_id: str, timeout_ms: int, event: Any, cause: RecordId) -> None:
        ends_ms, timer = self.now_ms + timeout_ms, session_timer(self.group_id, member_id)
        record = self.note("set_timer", cause, timer=timer, thread=REQUESTS, fires_at_ms=ends_ms, event=event)
        self.sessions[member_id] = ends_ms, record

    def await_pending(self, member_id: str, session_timeout_ms: int, cause: RecordId) -> None:
        """Store a member id that a response has given away, and set the timer at whose end the id is forgotten (KIP-394)."""
        assert self.group is not None
        self.put(replace(self.group, pending_members=(*self.group.pending_members, member_id)), cause)
        self._set_session(member_id, session_timeout_ms, e.PendingMemberTimedOut(self.group_id, member_id), cause)

    def forget_pending(self, member_ids: Collection[str], cause: RecordId) -> None:
        """Remove those of the member ids that are pending, and cancel their timers."""
        group = self.group
        if group is not None and (gone := [id for id in group.pending_members if id in member_ids]):
            for id in gone:
                self.cancel_session(id, cause)
            left = tuple(id for id in group.pending_members if id not in gone)
            self.put(replace(group, pending_members=left), cause)

    def cancel_session(self, member_id: str, cause: RecordId) -> None:
        if self.sessions.pop(member_id, None):
            self.note("cancel_timer", cause, timer=session_timer(self.group_id, member_id))

    def expire_until(self, at_ms: int) -> None:
        """Let the timers of sessions and of the sync phase fire that end by `at_ms`: remove the members that they are about.

        Also append the tombstones of the offsets that expire by then. All this happens in the order of time.
        """
        while due := [each for each in self._timers() if each[0] <= at_ms]:
            ends_ms, member_id, armed = min(due, key=lambda each: each[:2])
            self._expire_offsets(ends_ms)
            self.now_ms = max(self.now_ms, ends_ms)
            timer = session_timer(self.group_id, member_id) if member_id else sync_timer(self.group_id)
            fired = self.note("fire_timer", armed, timer=timer)
            asked = (member_id,) if member_id else self.group.pending_sync if self.group else ()
            if member_id:
                del self.sessions[member_id]
            else:
                self.sync_timer = None
            self._time_out(asked, "session timeout" if member_id else "sync timeout", fired, ends_ms)
        self._expire_offsets(at_ms)

    def _timers(self) -> Iterator[tuple[int, str, RecordId]]:
        """(time at which it fires, member id, record that set it); the sync timer has the member id ""."""
        yield from ((ends_ms, id, armed) for id, (ends_ms, armed) in self.sessions.items())
        if self.sync_timer is not None:
            yield self.sync_timer[0], "", self.sync_timer[1]

    def _time_out(self, member_ids: Iterable[str], rule: str, fired: RecordId, ends_ms: int) -> None:
        """Remove members and pending ids, except those whose requests wait, or whose later request succeeds."""
        if (group := self.group) is None:
            return
        waiting = {id for id, member in group.members.items() if member.is_parked}
        gone = [id for id in member_ids if id not in waiting and not self._succeeds_later(id, ends_ms)]
        self.forget_pending(gone, fired)
        if known := [id for id in gone if id in group.members]:
            self.remove(known, rule, fired)
        left = self.group
        if gone and left and not left.pending_members and all(member.awaiting_join for member in left.members.values()):
            self.completed_by = fired

    def _succeeds_later(self, member_id: str, since_ms: int) -> bool:
        """Whether the coordinator knows the member, as the response to its next successful request shows."""
        later = (step for step in self.recording["exchange"] if step["at"] >= since_ms and "api" in step)
        own = (step for step in later if member_id in [step["request"].get("member"), *_leaving(step)])
        return next((not set(errors(step)) & {*GONE} for step in own if {"NONE", *GONE} & set(errors(step))), False)

    def _expire_offsets(self, at_ms: int) -> None:
        """Append the next tombstones of the recorded log, as long as the coordinator's periodic check by `at_ms` wrote them.

        They delete expired offsets and, since 0.10.1, the Empty group without offsets. A tombstone gets the time of the check.
        """
        every_ms = self.recording["broker"].get("offsets.retention.check.interval.ms")
        while every_ms and (due_ms := self._next_expiry_ms()) is not None:
            # The first check after the offset has expired, or after the group has become Empty.
            check_ms = (due_ms // every_ms + 1) * every_ms
            if check_ms > at_ms:
                return
            self.now_ms = max(self.now_ms, check_ms)
            begun = self.receive(e.ExpireOffsets(), None, SCHEDULER, inferred=RECORD)
            kind = self.log[self.appended][0]["key"]["kind"]
            self.append_tombstones(begun, (kind,))
            if kind == "group":
                self.move(DEAD, "nothing is left of it", begun, leaves=True)
            self.done(SCHEDULER, begun)

    def _next_expiry_ms(self) -> int | None:
        """Return the time at which the offset expires, or the group became Empty, that the next record of the log deletes.

        Return None if the next record is no tombstone of a periodic check.
        """
        entry, _, value = self.log[self.appended] if self.appended < len(self.log) else (None, b"", b"")
        if entry is None or value is not None:
            return None
        if entry["key"]["kind"] == "offset":
            held = self.offsets.committed.get(partition_of(entry))
            return held.value.expire_timestamp if held else None
        group = self.group
        is_left = group is not None and group.state is EMPTY and not self.offsets and self.rules.offsets_need_group
        return group.state_timestamp_ms if group and is_left and not self._is_deleted_later() else None

    def _is_deleted_later(self) -> bool:
        later = (step for step in self.recording["exchange"] if step["at"] >= self.now_ms and step.get("api") == "DeleteGroups")
        return any(step.get("answer", {}).get("errors", {}).get(self.group_id) == "NONE" for step in later)

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

    def append_tombstones(self, cause: RecordId, kinds: Collection[str] = ("offset", "group")) -> None:
        """Record in the journal the append of the tombstones of these kinds that come next in the recorded log.

        They end at the first other record. Also remove their offsets from the group in this memory.
        """
        end = self.appended
        while end < len(self.log) and self.log[end][2] is None and self.log[end][0]["key"]["kind"] in kinds:
            end += 1
        if end > self.appended:
            gone = [partition_of(entry) for entry, _, _ in self.log[self.appended : end] if entry["key"]["kind"] == "offset"]
            record = self.append(self.appended, end, None, cause)
            self.commit(self.offsets.without(gone), record)

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


def _leaving(step: Step) -> list[str]:
    """Return the member ids that a recorded LeaveGroup names, [] for another request."""
    return [member.get("member", "") for member in step["request"].get("members", ())]
