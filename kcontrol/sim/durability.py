"""What logs promise, as properties of a world whose brokers keep them. `DURABLE` holds while elections are clean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kcontrol.model import LogRecord, TopicPartition
from kcontrol.replica.log import ReplicaLog
from kcontrol.sim import data
from kcontrol.sim.invariants import Property, stored

if TYPE_CHECKING:
    from kcontrol.sim.world import World


def _led(world: World) -> Iterator[tuple[TopicPartition, int, tuple[int, ...], ReplicaLog]]:
    """Each partition that the state znode gives a leader with a log, with that leader, the ISR and the log."""
    found = data.replicas(world)
    for tp, value in stored(world):
        if tp in found.get(value.leader, {}):
            yield tp, value.leader, value.isr, found[value.leader][tp]


def committed_records_survive(world: World) -> str | None:
    """Whoever leads has every record that was acknowledged with acks=all. Since 0.11 (KIP-101), while elections are clean."""
    for tp, leader, _, log in _led(world):
        there = {(r.offset, r.leader_epoch) for r in log.records}
        for promise in world.acknowledged.get(tp, ()):
            if promise.acks == "all" and (promise.offset, promise.leader_epoch) not in there:
                by = f"acknowledged by {promise.leader}"
                return f"{tp}: broker {leader} leads without record {promise.offset} ({promise.value}), {by}"
    lost = next((r.fields for r in world.last_step if r.kind == "record_lost" and r.fields["acks"] == "all"), None)
    return f"{lost['partition']}: record {lost['offset']} ({lost['value']}) is lost for good" if lost else None


def replicas_agree(world: World) -> str | None:
    """Below its high watermark, a replica in sync has what its leader has. Since 0.11 (KIP-101)."""
    found = data.replicas(world)
    for tp, leader, isr, log in _led(world):
        for broker in isr:
            mine = found.get(broker, {}).get(tp, ReplicaLog())
            below = mine.records[: mine.high_watermark]
            if below != log.records[: len(below)]:
                return f"{tp}: broker {broker} has {_values(below)}, its leader {leader} has {_values(log.records)}"
    return None


def high_watermark_within(world: World) -> str | None:
    """No high watermark is beyond the end of its log. Since 0.8.0."""
    for broker, found in data.replicas(world).items():
        for tp, log in found.items():
            if log.high_watermark > log.end_offset:
                return f"{tp}: the high watermark of broker {broker} is {log.high_watermark}, its log ends at {log.end_offset}"
    return None


def _values(records: tuple[LogRecord, ...]) -> str:
    return "[" + ", ".join(record.value for record in records) + "]"


DURABLE: tuple[Property, ...] = (committed_records_survive, replicas_agree, high_watermark_within)
