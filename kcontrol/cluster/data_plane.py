"""The actions on records in a simulated cluster: produce, fetch, store high watermarks on disk, clean logs, lose records.

While a broker's process does not run, its logs are in `World.disks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kcontrol.broker import log as changes
from kcontrol.broker import log_cleaner
from kcontrol.broker import replication as replica
from kcontrol.broker.context import BrokerContext
from kcontrol.broker.events import FetchResponse, FollowerFetch, Produce
from kcontrol.cluster.delivery import begin_if_idle, is_reachable
from kcontrol.controller.context import apply_update
from kcontrol.core.effects import UpdateContext
from kcontrol.core.model import TopicPartition
from kcontrol.driver import log_changes
from kcontrol.driver.driver import Driver
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.journal.journal import RecordId

if TYPE_CHECKING:
    from kcontrol.cluster.world import Action, World

ACKS = ("1", "all")
PRODUCE = "-Produce"


class Acknowledged(NamedTuple):
    """A record that the broker `leader` has acknowledged to its producer; `acks` is the producer's setting, "1" or "all"."""

    offset: int
    leader_epoch: int
    value: str
    acks: str
    leader: int


# ---------------------------------------------------------------- producers


def can_produce(world: World, leader: int, partition: str, value: str, acks: str) -> bool:
    """Raises ValueError for a wrong partition, value or `acks`."""
    if acks not in ACKS or not isinstance(value, str):
        raise ValueError
    TopicPartition.parse(partition)
    # A broker that does not lead the partition responds with an error.
    return world.settings.data and is_reachable(world, leader)


def produce(world: World, leader: int, partition: str, value: str, acks: str) -> None:
    """The broker may have lost the leadership already. `acks` is "1" or "all"."""
    driver = world.processes[leader].driver
    cause = world.log("act", None, action=["produce", leader, partition, value, acks])
    correlation_id = f"{leader}.{driver.incarnation}-{cause.seq}{PRODUCE}"
    driver.enqueue(Produce(correlation_id, TopicPartition.parse(partition), value, acks), cause, "requests")
    begin_if_idle(world, leader)


def produce_actions(world: World, n: int, broker: BrokerContext) -> Iterator[Action]:
    """One for each partition that the broker leads in its own view; no two values are equal."""
    for tp in sorted(broker.hosted):
        if broker.is_leader(tp):
            log = broker.logs[tp]
            yield ("produce", n, str(tp), f"{n}.{log.leader_epoch}.{log.log_end_offset}", "all")


def record_response(world: World, driver: Driver, correlation_id: str, body: dict[str, Any], record: RecordId) -> bool:
    """Whether `body` answers a producer; without an error its record counts as acknowledged."""
    if not correlation_id.endswith(PRODUCE):
        return False
    if body["error"] == "NONE":
        tp = body["partition"]
        acknowledgement = Acknowledged(body["offset"], body["leader_epoch"], body["value"], body["acks"], driver.node)
        world.acknowledged[tp] = (*world.acknowledged.get(tp, ()), acknowledgement)
        world.log("acknowledged", record, partition=tp, **acknowledgement._asdict())
    return True


# ---------------------------------------------------------------- followers


class Fetch(NamedTuple):
    """The next fetch of a follower, with the response that the leader would send now."""

    # The broker id of the leader.
    leader: int
    # The request, with the partition and the fetch offset.
    asked: FollowerFetch
    # The response.
    answer: FetchResponse


def fetches(world: World) -> Iterator[tuple[int, TopicPartition]]:
    """(follower, partition) for each follower whose next fetch changes a log, a high watermark, an offset or an ISR."""
    for n, p in sorted(world.processes.items()):
        for tp in p.driver.broker.hosted if not p.frozen and _is_idle(world, n) else ():
            if (found := _fetch(world, n, tp)) is not None and _changes_something(world, n, found):
                yield n, tp


def can_fetch(world: World, follower: int, partition: str) -> bool:
    tp = TopicPartition.parse(partition)
    found = _fetch(world, follower, tp) if is_reachable(world, follower) else None
    return found is not None and _changes_something(world, follower, found)


def _fetch(world: World, n: int, tp: TopicPartition) -> Fetch | None:
    """Return the next fetch of broker `n` for a partition, None if the broker does not follow or cannot fetch now."""
    mine = world.processes[n].driver.broker
    held = mine.hosted.get(tp)
    if held is None or tp not in mine.logs or not mine.is_fetching(tp) or not is_reachable(world, held.leadership.leader):
        return None
    broker = world.processes[held.leadership.leader].driver.broker
    # Since 2.1 follower and leader must have equal leader epochs.
    agreed = broker.is_leader(tp) and (
        not broker.rules.fenced_fetches or broker.hosted[tp].leadership.leader_epoch == held.leadership.leader_epoch
    )
    if not agreed or tp not in broker.logs or not (_is_idle(world, n) and _is_idle(world, broker.broker_id)):
        return None
    offset, latest_epoch = replica.fetch_position(mine, tp)
    asked = FollowerFetch(tp, n, held.leadership.leader_epoch, offset)
    return Fetch(broker.broker_id, asked, replica.read_for_fetch(broker, tp, offset, latest_epoch))


def _is_idle(world: World, n: int) -> bool:
    thread = world.processes[n].driver.threads["requests"]
    return thread.handler is None and not thread.queue


def _changes_something(world: World, n: int, fetch: Fetch) -> bool:
    tp, offset, answer = fetch.asked.partition, fetch.asked.offset, fetch.answer
    if answer.diverging or answer.records:
        return True
    mine, leader = world.processes[n].driver.broker.logs[tp], world.processes[fetch.leader].driver.broker
    held = leader.hosted[tp]
    joins = n not in held.leadership.isr and not held.pending_isr and replica.is_follower_in_sync(leader, tp, n, offset)
    learns = min(offset, answer.high_watermark) != mine.high_watermark
    return joins or learns or leader.logs[tp].follower_end_offset(n) != offset


def fetch(world: World, follower: int, partition: str) -> None:
    """Let a follower fetch from the leader: queue one event for the leader's broker and one for the follower's broker.

    Source: ReplicaManager.updateFollowerFetchState (2.8).
    """
    found = _fetch(world, follower, TopicPartition.parse(partition))
    assert found is not None, "only a possible action is performed"
    record = None
    # The offset of a log that diverges has no meaning before the log has been cut.
    if found.answer.diverging is None:
        record = world.processes[found.leader].driver.enqueue(found.asked, None, "requests")
        begin_if_idle(world, found.leader)
    world.processes[follower].driver.enqueue(found.answer, record, "requests")
    begin_if_idle(world, follower)


def is_lagging(world: World, leader: int, tp: TopicPartition, follower: int) -> bool:
    """Return whether the follower's log end offset, as the leader knows it, differs from the log end offset of the leader.

    Source: Partition.isFollowerOutOfSync (2.8).
    """
    log = world.processes[leader].driver.broker.logs.get(tp)
    # A follower that has not fetched yet has the log end offset -1.
    return log is not None and log.follower_end_offset(follower) != log.log_end_offset


# ---------------------------------------------------------------- disks


def needs_checkpoint(world: World, n: int) -> bool:
    """Return whether broker `n` runs, is not frozen, and has a high watermark that is not on its disk yet."""
    logs = world.processes[n].driver.broker.logs.values() if is_reachable(world, n) else ()
    return any(log.checkpoint != log.high_watermark for log in logs)


def checkpoint(world: World, n: int) -> None:
    log_changes.checkpoint(world.processes[n].driver)


def log_to_clean(world: World, n: int, partition: str) -> log_cleaner.LogToClean | None:
    """None if the broker is not reachable, or has no compacted log of this partition."""
    tp = TopicPartition.parse(partition)
    log = world.processes[n].driver.broker.logs.get(tp) if is_reachable(world, n) and tp.topic == OFFSETS_TOPIC else None
    # Only the offsets topic has cleanup.policy=compact here; without `segment.bytes` its log is one active segment.
    return log_cleaner.log_to_clean(log, world.settings.release) if log and log.compaction else None


def can_clean(world: World, n: int, partition: str) -> bool:
    found = log_to_clean(world, n, partition)
    return found is not None and found.is_dirty_enough


def clean(world: World, n: int, partition: str) -> None:
    """Let the log cleaner of broker `n` clean its log of a partition of the offsets topic.

    Source: LogCleaner.CleanerThread (0.9, 2.8). It chooses the log with the largest share of dirty bytes, and waits 15 s
    if no log is dirty enough.
    """
    cause = world.log("act", None, action=["clean_log", n, partition])
    driver, tp = world.processes[n].driver, TopicPartition.parse(partition)
    cleaned = log_cleaner.clean(driver.broker.logs[tp], world.settings.release, world.clock())
    log_changes.apply_log_change(driver, cause, tp, cleaned)


def store_logs(world: World, n: int, driver: Driver) -> None:
    """What the ended process leaves on the disk."""
    if driver.broker.logs:
        # All records stay; the high watermark becomes the last one that was written to the disk (the checkpoint).
        world.disks[n] = {tp: log.after_restart() for tp, log in driver.broker.logs.items()}


def load_logs(world: World, n: int, broker: BrokerContext) -> None:
    """Move the logs of broker `n` from `world.disks` into the context `broker` of its new process."""
    apply_update(broker, UpdateContext("logs", world.disks.pop(n, {})))


def has_tail(world: World, n: int, partition: str, offset: int) -> bool:
    """Return whether the log of a stopped broker has records from `offset` on; False for a running broker."""
    log = world.disks.get(n, {}).get(TopicPartition.parse(partition))
    return log is not None and 0 <= offset < log.log_end_offset


def lose_tail(world: World, n: int, partition: str, offset: int) -> None:
    """Remove the records from `offset` on from a stopped broker's disk: the machine lost power before they were flushed."""
    tp = TopicPartition.parse(partition)
    before = world.disks[n][tp]
    after = changes.apply(before, changes.Truncate(offset, ""))
    world.disks[n] = {**world.disks[n], tp: after}
    cause = world.log("act", None, action=["lose_tail", n, partition, offset])
    removed, now = before.since(offset), log_changes.difference(before, after)
    world.log("tail_lost", cause, broker=n, partition=tp, offset=offset, removed=removed, now=now)


# ---------------------------------------------------------------- losses


def replicas(world: World) -> dict[int, dict[TopicPartition, changes.ReplicaLog]]:
    """Return all logs of each broker as {broker id: {partition: log}}, the logs of stopped brokers included."""
    living = {n: dict(p.driver.broker.logs) for n, p in world.processes.items()}
    return {n: found for n, found in sorted({**world.disks, **living}.items()) if found}


def log_lost_records(world: World, before: int) -> None:
    """One journal record for each acknowledged record that no replica has any more."""
    for cut in world.journal.since(before):
        # Only a truncation, a deletion or a lost tail of a log can lose a record.
        if cut.kind in ("log_truncate", "tail_lost", "log_clean", "log_delete"):
            _log_lost_records_of(world, cut.fields["partition"], cut.id, deleted=cut.kind == "log_delete")


def _log_lost_records_of(world: World, tp: TopicPartition, cause: RecordId, *, deleted: bool) -> None:
    stored = {(r.offset, r.leader_epoch) for found in replicas(world).values() if tp in found for r in found[tp].records}
    acknowledged = world.acknowledged.get(tp, ())
    kept = tuple(a for a in acknowledged if (a.offset, a.leader_epoch) in stored)
    if kept != acknowledged:
        world.acknowledged.pop(tp)
        world.acknowledged |= {tp: kept} if kept else {}
    for gone in acknowledged:
        if gone not in kept:
            world.log("record_deleted" if deleted else "record_lost", cause, partition=tp, **gone._asdict())
