"""The functions that check Kafka's guarantees about consumer groups, for the rows of INVARIANTS in `invariants.py`.

Each function returns the sentence of a violation, or None.

Source: GroupCoordinator.scala, GroupMetadata.scala, GroupMetadataManager.scala (0.9, 2.8); the rows name the methods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kcontrol.core.model import TopicPartition
from kcontrol.group import events as e
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.group.group_loading import Loaded, next_offset, read_batch
from kcontrol.group.model import Group, GroupState
from kcontrol.group.offsets_topic_records import decode, topics_of
from kcontrol.journal.journal import Record, RecordId

if TYPE_CHECKING:
    from kcontrol.cluster.world import World
    from kcontrol.core.effects import LogBatch
    from kcontrol.driver.driver import Driver

SETTLED = (GroupState.COMPLETING, GroupState.STABLE)
COOPERATIVE = "cooperative-sticky"  # its first round leaves partitions without an owner (KIP-429)


def one_leader_and_protocol(world: World) -> str | None:
    for group in _transitions(world):
        if group.state not in SETTLED or not group.members:
            continue
        if group.leader not in group.members:
            return f"group {group.group_id}: the leader {group.leader} is no member in generation {group.generation}"
        if group.protocol not in group.candidates:
            return f"group {group.group_id}: the protocol {group.protocol} is not supported by all members"
    for group_id, answers in _join_answers(world).items():
        if len(answers) > 1:
            return f"group {group_id}: one step answers JoinGroup with {sorted(answers)}"
    return None


def assigned_once(world: World) -> str | None:
    for group in _transitions(world):
        if group.state is not GroupState.STABLE:
            continue
        owned = [(tp, member) for member in group.members.values() for tp in _partitions(member.assignment)]
        counts = Counter(tp for tp, _ in owned)
        if twice := sorted(str(tp) for tp, count in counts.items() if count > 1):
            return f"group {group.group_id}: {', '.join(twice)} are assigned more than once in generation {group.generation}"
        for tp, member in owned:
            if tp.topic not in (topics_of(member.metadata(group.protocol)) or {tp.topic}):
                return f"group {group.group_id}: {tp} is assigned to {member.member_id}, which does not subscribe to the topic"
        sent = _sent_by_leader(world, group)
        if group.protocol != COOPERATIVE and (left_out := sorted({*_left_out(counts), *map(str, sent - set(counts))})):
            return f"group {group.group_id}: {', '.join(left_out)} are assigned to no member in generation {group.generation}"
    for member_id, answer, group in _sync_answers(world):
        if group.members[member_id].assignment != answer.assignment:
            return f"group {group.group_id}: the response to SyncGroup has another assignment than {member_id} has in the group"
    return None


def answered_once(world: World) -> str | None:
    for record in world.last_step:
        if record.kind != "respond" or not str(record.fields["correlation_id"]).startswith("consumer "):
            continue
        for earlier in _before(world, record):
            if earlier.fields.get("correlation_id") == record.fields["correlation_id"] and earlier.kind == "respond":
                return f"the request {record.fields['correlation_id']!r} is answered twice"
            event = earlier.fields.get("event")
            if earlier.kind == "enqueue" and getattr(event, "correlation_id", None) == record.fields["correlation_id"]:
                break
    return None


def _session_timeouts(world: World) -> Iterator[tuple[e.SessionTimedOut, Group, Group]]:
    """Of the last step, with the group before and after; both must be in the cache."""
    for record in world.last_step:
        if record.kind == "begin" and record.fields["event"] == e.SessionTimedOut.__name__ and record.cause is not None:
            event = _event(world, record.cause)
            before, now = _cached(world, record, event.group_id), _context(world, record).get(event.group_id)
            if before and now:
                yield event, before, now


def parked_members_stay(world: World) -> str | None:
    for event, before, now in _session_timeouts(world):
        member = before.members.get(event.member_id)
        if member and member.is_parked and not member.is_new and event.member_id not in now.members:
            return f"group {event.group_id}: the session timeout removes {event.member_id}, whose request is parked"
    return None


def removed_members_start_nothing(world: World) -> str | None:
    for event, before, now in _session_timeouts(world):
        if event.member_id not in before.members and before.state is not now.state:
            return f"group {event.group_id}: the session timeout of {event.member_id}, which is no member, begins a rebalance"
    return None


def committed_offsets_are_stored(world: World) -> str | None:
    for n, process in sorted(world.processes.items()):
        ctx = process.driver.group
        if process.frozen or ctx is None:
            continue
        leads = process.driver.broker.is_leader
        # A coordinator that has lost its replica, or whose log directory has failed, cannot read its log.
        for partition in (each for each in ctx.owned - ctx.loading if leads(TopicPartition(OFFSETS_TOPIC, each))):
            stored = _stored(world, n, partition)
            log = process.driver.broker.logs.get(TopicPartition(OFFSETS_TOPIC, partition))
            cleaned: set[tuple[str, TopicPartition]] = {key[:2] for key in stored} if log and log.first_dirty_offset else set()
            for group_id, offsets in ctx.offsets.items():
                mine = offsets.committed.items() if ctx.partition_of(group_id) == partition else ()
                for tp, held in mine:
                    if (group_id, tp, held.value.offset) not in stored and (group_id, tp) not in cleaned:
                        missing = f"the committed offset {held.value.offset} of {tp} is not in the log"
                        return f"group {group_id}: {missing} of coordinator {n}"
    return None


def generation_never_falls(world: World) -> str | None:
    for record in world.last_step:
        group = record.fields.get("group_metadata") if record.kind == "group" else None
        before = _cached(world, record, group.group_id) if group else None
        if group and before and group.generation < before.generation:
            return f"group {group.group_id}: generation {group.generation} follows generation {before.generation}"
    return None


# ---------------------------------------------------------------- what the properties read


def _transitions(world: World) -> Iterator[Group]:
    """Yield the group after each transition in the last step; a transition that removes the group yields nothing."""
    for record in world.last_step:
        if record.kind == "group" and record.fields["group_metadata"] is not None:
            yield record.fields["group_metadata"]


def _join_answers(world: World) -> dict[str, set[tuple[int, str, str]]]:
    """Return a dict from group id to (generation, protocol, leader) of each successful JoinGroup response of the last step."""
    found: dict[str, set[tuple[int, str, str]]] = {}
    for record in world.last_step:
        body, who = record.fields.get("body"), str(record.fields.get("correlation_id", "")).split(" ")
        # Clients that are no consumers of the world send requests without "consumer" in the correlation id.
        if record.kind == "respond" and isinstance(body, e.JoinResult) and body.error == "NONE" and who[0] == "consumer":
            consumer = world.consumers[" ".join(who[1:-1])]
            found.setdefault(consumer.group, set()).add((body.generation, body.protocol, body.leader))
    return found


def _sync_answers(world: World) -> Iterator[tuple[str, e.SyncResult, Group]]:
    """Yield (member id, response, group) of each successful SyncGroup response of the last step, if the group is Stable."""
    for record in world.last_step:
        body, who = record.fields.get("body"), str(record.fields.get("correlation_id", "")).split(" ")
        if record.kind == "respond" and isinstance(body, e.SyncResult) and body.error == "NONE" and who[0] == "consumer":
            consumer = world.consumers[" ".join(who[1:-1])]
            group = _context(world, record).get(consumer.group)
            if group and group.state is GroupState.STABLE and consumer.member_id in group.members:
                yield consumer.member_id, body, group


def _sent_by_leader(world: World, group: Group) -> set[TopicPartition]:
    """Return the partitions in the last SyncGroup of the group's leader in this generation, an empty set without a SyncGroup."""
    for record in reversed(world.journal.records):
        event = record.fields.get("event") if record.kind == "enqueue" else None
        if isinstance(event, e.SyncGroup) and event.group_id == group.group_id and event.assignment:
            is_present = (event.member_id, event.generation) == (group.leader, group.generation)
            return {tp for each in event.assignment.values() for tp in _partitions(each)} if is_present else set()
    return set()


def _partitions(assignment: bytes) -> list[TopicPartition]:
    """Return the partitions in the bytes of a member's assignment (consumer protocol); [] for other bytes."""
    try:
        entries = decode("assignment", assignment)[1]["partitions"] if assignment else []
    except ValueError:
        return []
    return [TopicPartition(entry["topic"], number) for entry in entries for number in entry["partitions"]]


def _left_out(owner_counts: Counter[TopicPartition]) -> list[str]:
    """Partitions without an owner below one of their topic that has an owner."""
    highest: dict[str, int] = {}
    for tp in owner_counts:
        highest[tp.topic] = max(tp.partition, highest.get(tp.topic, 0))
    every = (TopicPartition(topic, number) for topic, last in sorted(highest.items()) for number in range(last))
    return [str(tp) for tp in every if tp not in owner_counts]


def _before(world: World, record: Record) -> Iterator[Record]:
    """Yield the records before `record` in the journal of `world`, from the latest to the journal's first."""
    records = world.journal.records
    at = next(i for i in range(len(records) - 1, -1, -1) if records[i] is record)
    return (records[i] for i in range(at - 1, -1, -1))


def _cached(world: World, record: Record, group_id: str) -> Group | None:
    """Return the group in the cache of the broker that made `record`, just before this record.

    Return None if the cache did not have the group.
    """
    for earlier in _before(world, record):
        if earlier.id[:2] != record.id[:2]:
            continue
        f: Any = earlier.fields
        if earlier.kind == "group" and f["group_id"] == group_id:
            return f["group_metadata"]  # type: ignore[no-any-return]
        if earlier.kind == "update" and (f["context"], f["field"]) == ("group", "groups"):
            if group_id in (f["put"] or {}):
                return f["put"][group_id]  # type: ignore[no-any-return]
            if f["clear"] or group_id in f["remove"]:
                return None
    return None


def _event(world: World, id: RecordId) -> Any:
    return next(r.fields["event"] for r in reversed(world.journal.records) if r.id == id)


def _context(world: World, record: Record) -> dict[str, Group]:
    process = world.processes.get(record.id.node)
    return dict(process.driver.group.groups) if process and process.driver.group else {}


def _batches(world: World, driver: Driver, tp: TopicPartition) -> Iterator[LogBatch]:
    """Yield all batches in the log of the partition `tp` at the broker that runs `driver`, in the order of offsets."""
    offset = 0
    while batches := world.read_log(driver, tp, offset):
        yield from batches
        offset = next_offset(batches[-1])


def _stored(world: World, broker: int, partition: int) -> set[tuple[str, TopicPartition, int]]:
    """Return (group id, topic partition, offset) of each commit in a coordinator's log.

    `broker` is the coordinator, `partition` the number of the partition of the offsets topic. Unreadable records are skipped.
    """
    driver = world.processes[broker].driver
    assert driver.group is not None
    tp = TopicPartition(OFFSETS_TOPIC, partition)
    found: set[tuple[str, TopicPartition, int]] = set()
    for batch in _batches(world, driver, tp):
        loaded = Loaded()
        with suppress(ValueError):  # a record that cannot be read; the coordinator has no offsets behind it
            read_batch(loaded, batch, driver.group.config.retention_ms)
        for group_id, offsets in loaded.offsets.items():
            entries = (offsets.committed, *offsets.by_producer.values())
            found |= {(group_id, each, held.value.offset) for named in entries for each, held in named.items()}
    return found
