"""Kafka's guarantees about records, for simulated clusters whose brokers store records.

The tuple DURABLE has one function for each guarantee. The guarantees hold as long as elections are clean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kcontrol.broker.log import ReplicaLog
from kcontrol.broker.log_segments import StoredRecord
from kcontrol.cluster import data_plane
from kcontrol.core.model import TopicPartition
from kcontrol.search.invariants import Property, stored

if TYPE_CHECKING:
    from kcontrol.cluster.world import World


def _led(world: World) -> Iterator[tuple[TopicPartition, int, tuple[int, ...], ReplicaLog]]:
    found = data_plane.replicas(world)
    for tp, value in stored(world):
        if tp in found.get(value.leader, {}):
            yield tp, value.leader, value.isr, found[value.leader][tp]


def committed_records_survive(world: World) -> str | None:
    """Violation, or None: since 0.11 (KIP-101) each leader has all records acknowledged with acks=all under clean elections."""
    for tp, leader, _, log in _led(world):
        records = {(r.offset, r.leader_epoch) for r in log.records}
        for a in world.acknowledged.get(tp, ()):
            if a.acks == "all" and (a.offset, a.leader_epoch) not in records:
                by = f"acknowledged by {a.leader}"
                return f"{tp}: broker {leader} leads without record {a.offset} ({a.value}), {by}"
    # The journal record `record_lost` says that the last step has removed the last copy of an acknowledged record.
    lost = next((r.fields for r in world.last_step if r.kind == "record_lost" and r.fields["acks"] == "all"), None)
    return f"{lost['partition']}: record {lost['offset']} ({lost['value']}) is on no replica any more" if lost else None


def replicas_agree(world: World) -> str | None:
    """Violation, or None: since 0.11 (KIP-101) a log of the ISR equals the leader's up to the replica's high watermark."""
    found = data_plane.replicas(world)
    for tp, leader, isr, log in _led(world):
        for broker in isr:
            mine = found.get(broker, {}).get(tp, ReplicaLog())
            end, cleaned = min(mine.high_watermark, mine.log_end_offset), max(mine.first_dirty_offset, log.first_dirty_offset)
            ours, theirs = ({r.offset: r for r in one.below(end)} for one in (mine, log))
            # Each broker has its own log cleaner, so below `first_dirty_offset` of either log a record may be in one log alone.
            if any(ours.get(o) != theirs.get(o) for o in ours.keys() | theirs if o >= cleaned or (o in ours and o in theirs)):
                return f"{tp}: broker {broker} has {_values(mine.below(end))}, its leader {leader} has {_values(log.records)}"
    return None


def high_watermark_within(world: World) -> str | None:
    """No high watermark is beyond the end of its log (since 0.8.0)."""
    for broker, found in data_plane.replicas(world).items():
        for tp, log in found.items():
            if log.high_watermark > log.log_end_offset:
                return (
                    f"{tp}: the high watermark of broker {broker} is {log.high_watermark}, its log ends at {log.log_end_offset}"
                )
    return None


def _values(records: tuple[StoredRecord, ...]) -> str:
    return "[" + ", ".join(record.value for record in records) + "]"


DURABLE: tuple[Property, ...] = (committed_records_survive, replicas_agree, high_watermark_within)
