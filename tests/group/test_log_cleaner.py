"""The log cleaner: segments, what a cleaning removes, and everything that reads a log with gaps.

References: LogCleaner.scala and LogCleanerManager.scala (0.9.0.1, 2.8.2, 3.3.2), Log.scala (2.8.2), cases of LogCleanerTest.scala
(2.8.2) where a test names one, and kafka-python's builders for the sizes of batches.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from kafka.record import MemoryRecordsBuilder

from kcontrol.broker.log import AppendRecords, ReplaceSegments, ReplicaLog, Truncate, apply
from kcontrol.broker.log_cleaner import clean, log_to_clean
from kcontrol.broker.log_segments import Compaction, Segment, size_in_bytes
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.core.errors import UserError
from kcontrol.core.model import TopicPartition
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.group.offsets_topic_records import OffsetsTopicRecord
from kcontrol.search.group_invariants import committed_offsets_are_stored
from tests.core.durability import DURABLE
from tests.core.support import settle
from tests.group.test_coordinators_in_a_cluster import agrees, started

T = TopicPartition(OFFSETS_TOPIC, 0)
DAY_MS = 86_400_000


# ---------------------------------------------------------------- one log


def record(offset: int, key: str, *, tombstone: bool = False) -> OffsetsTopicRecord:
    return OffsetsTopicRecord(offset, 0, key.encode(), None if tombstone else b"v", offset)


def log_of(*segments: str, retention_ms: int = DAY_MS, modified_ms: tuple[int, ...] = ()) -> ReplicaLog:
    """A log with these segments; each letter is the key of a record, a capital letter that of a tombstone."""
    records, bases = [], []
    for keys in segments:
        bases.append(len(records))
        records += [record(len(records) + i, key.lower(), tombstone=key.isupper()) for i, key in enumerate(keys)]
    times = modified_ms or (0,) * len(segments)
    parts = tuple(Segment(base, at) for base, at in zip(bases, times, strict=True))
    settings = Compaction(120, retention_ms)
    return ReplicaLog(tuple(records), high_watermark=len(records), segments=parts, compaction=settings)


def cleaned(log: ReplicaLog, release: str = "2.8", now_ms: int = 0) -> ReplicaLog:
    return apply(log, clean(log, release, now_ms))


def keys(log: ReplicaLog) -> str:
    """The records as letters, as in `log_of`; a dot is a gap."""
    found = {r.offset: r.key.decode() if r.data else r.key.decode().upper() for r in log.records}  # type: ignore[attr-defined]
    return "".join(found.get(offset, ".") for offset in range(log.log_end_offset))


def test_the_last_record_of_each_key_stays_below_the_active_segment() -> None:
    """Records keep their offsets, the active segment stays whole, and a key of the active segment removes nothing before it."""
    log = cleaned(log_of("aabab", "bca", "aacc"))
    assert (keys(log), log.first_dirty_offset, log.log_end_offset) == ("....." + "bca" + "aacc", 8, 12)


def test_keys_of_the_clean_part_are_removed_by_the_dirty_part() -> None:
    """A second cleaning reads the keys of the dirty part, and writes the clean part again. Source: Cleaner.doClean (2.8)."""
    once = cleaned(log_of("ab", "a", "x"))
    assert (keys(once), once.first_dirty_offset) == (".bax", 3)
    again = once._replace(records=(*once.records, record(4, "b"), record(5, "y")), segments=(*once.segments, Segment(5)))
    assert keys(cleaned(again)) == "..axby"
    repeated = once._replace(records=(record(0, "a"), *once.records), segments=(*once.segments, Segment(4)))
    assert keys(cleaned(repeated)) == "abax"


def test_the_end_of_a_log_stays_when_its_last_records_go() -> None:
    """With an empty active segment the log end offset is stored; the next append clears it. Source: Log.replaceSegments (2.8)."""
    empty = apply(log_of("aa", "ba", "c"), Truncate(4, ""))
    assert (empty.segments[-1].base_offset, empty.log_end_offset) == (4, 4)
    gone = apply(empty, ReplaceSegments(empty.records[:1], empty.segments, 4, ()))
    assert (gone.log_end_offset, gone.empty_until, keys(gone)) == (4, 4, "a...")
    appended = apply(gone, AppendRecords((record(4, "d"),)))
    assert (appended.log_end_offset, appended.empty_until) == (5, 0)


@pytest.mark.parametrize(("offset", "end", "left", "dirty"), [(9, 9, ".....bcaa", 8), (6, 6, ".....b", 5), (3, 3, "...", 0)])
def test_a_truncation_into_a_gap_keeps_its_offset(offset: int, end: int, left: str, dirty: int) -> None:
    """After a truncation the log ends at the offset, also in a gap; the cleaner begins at the active segment at the latest."""
    # Source: Log.truncateTo, LogManager.truncateTo with maybeTruncateCheckpoint (2.8).
    log = apply(cleaned(log_of("aabab", "bca", "aacc")), Truncate(offset, ""))
    assert (log.log_end_offset, keys(log), log.first_dirty_offset, log.high_watermark) == (end, left, dirty, end)


@pytest.mark.parametrize(
    ("release", "unstable", "high_watermark", "end"),
    [("0.9", 3, 3, 8), ("1.0", 5, 3, 5), ("2.8", 6, 3, 5), ("3.0", None, 3, 8), ("3.1", None, 3, 0), ("3.9", None, 7, 5)],
)
def test_how_far_a_release_cleans(release: str, unstable: int | None, high_watermark: int, end: int) -> None:
    """Up to 0.11 the active segment is the bound, since 1.0 an open transaction too, since 3.1 the high watermark."""
    # The segment that has the bound is not cleaned: LogCleanerTest.testCleaningWithUncleanableSection.
    log = log_of("aabab", "bca", "aacc")._replace(high_watermark=high_watermark)
    if unstable is not None:
        records = tuple(r._replace(producer_id=1) if r.offset == unstable else r for r in log.records)  # type: ignore[attr-defined]
        log = log._replace(records=records)
    assert log_to_clean(log, release).first_uncleanable_offset == end


def test_a_log_is_cleaned_when_more_than_half_of_it_is_dirty() -> None:
    """The dirty closed segments must have more than half of the bytes of all closed segments; exactly half is not enough."""
    # Source: `cleanableRatio > minCleanableRatio` in grabFilthiestCompactedLog of LogCleanerManager.scala (2.8).
    clean_one = cleaned(log_of("ab", "x"))
    third = clean_one._replace(records=(*clean_one.records, record(3, "y")), segments=(Segment(0), Segment(2), Segment(3)))
    assert not log_to_clean(log_of("aaaa"), "2.8").is_dirty_enough
    assert log_to_clean(log_of("a", "a"), "2.8").is_dirty_enough
    assert not log_to_clean(third, "2.8").is_dirty_enough
    half = third._replace(records=(*third.records, record(4, "z")), segments=(Segment(0), Segment(2), Segment(4)))
    found = log_to_clean(half, "2.8")
    assert found.clean_bytes == found.cleanable_bytes > 0 and not found.is_dirty_enough
    more = third._replace(records=(*half.records, record(5, "z")), segments=(*third.segments, Segment(5)))
    assert log_to_clean(more, "2.8").is_dirty_enough


@pytest.mark.parametrize(("release", "gap_ms", "left"), [("2.8", DAY_MS - 1, "A"), ("2.8", DAY_MS, "."), ("0.9", DAY_MS, ".")])
def test_a_tombstone_waits_for_a_later_clean_segment(release: str, gap_ms: int, left: str) -> None:
    """Up to 3.0 a tombstone goes if its segment is delete.retention.ms older than the last segment that was clean before."""
    # The first cleaning has no clean segment, so it keeps every tombstone. Source: Cleaner.clean (0.9), doClean (2.8).
    log = log_of("aA", "bc", "d", "e", modified_ms=(1, 1 + gap_ms, 9, 9))._replace(compaction=Compaction(60))
    first = cleaned(log._replace(segments=log.segments[:3]), release)
    assert keys(first)[1] == "A" and [s.modified_ms for s in first.segments] == [1, 1 + gap_ms, 9]
    second = cleaned(first._replace(segments=(*first.segments, Segment(5))), release)
    assert keys(second)[1] == left


def test_since_3_1_a_tombstone_waits_for_its_own_time() -> None:
    """Since 3.1 the first cleaning gives a batch with a tombstone its time; a cleaning after that time removes the tombstone."""
    # Source: MemoryRecords.filterTo and shouldRetainRecord (3.3), KIP-534.
    first = cleaned(log_of("aA", "b", retention_ms=100), "3.9", now_ms=1_000)
    assert (keys(first), first.delete_horizons) == (".Ab", ((1, 1_100),))
    assert cleaned(first, "3.9", now_ms=1_099).delete_horizons == ((1, 1_100),)
    later = cleaned(first, "3.9", now_ms=1_100)
    assert (keys(later), later.delete_horizons) == ("..b", ())


def test_neighbours_that_fit_become_one_segment() -> None:
    """Cleaned segments are joined while their sizes fit into segment.bytes; the time is that of the last one."""
    # Source: Cleaner.groupSegmentsBySize (2.8).
    log = log_of("a", "b", "c", "d", "e", modified_ms=(1, 2, 3, 4, 5))
    one = size_in_bytes(log.records[:1], 2)
    joined = cleaned(log._replace(compaction=Compaction(2 * one)))
    assert joined.segments == (Segment(0, 2), Segment(2, 4), Segment(4, 5))


def test_a_record_without_a_key_goes() -> None:
    """A record that a producer sent without a key does not survive a cleaning. Source: shouldRetainRecord (2.8)."""
    log = log_of("ab", "c")
    keyless = log.records[0]._replace(key=None)  # type: ignore[attr-defined]
    assert keys(cleaned(log._replace(records=(keyless, *log.records[1:])))) == ".bc"


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_sizes_are_kafka_pythons(magic: int) -> None:
    """A batch has the size that kafka-python's builder gives the same keys and values, long ones and tombstones included."""
    for count, length in ((1, 1), (3, 60), (2, 70), (70, 200)):
        builder = MemoryRecordsBuilder(magic, 0, 1 << 24)
        records = []
        for i in range(count):
            key, data = b"k" * (length - i % 2), None if i % 5 == 4 else b"d" * length
            builder.append(timestamp=1_000, key=key, value=data)
            records.append(OffsetsTopicRecord(7 + i, 0, key, data, 7))
        builder.close()
        assert size_in_bytes(records, magic) == builder.size_in_bytes()


def test_a_full_segment_is_followed_by_a_new_one() -> None:
    """An append begins a segment if the active one would exceed segment.bytes with it. Source: LogSegment.shouldRoll (2.8)."""
    log, one = ReplicaLog(), size_in_bytes([record(0, "k")], 2)
    log = log._replace(compaction=Compaction(3 * one))
    for offset in range(7):
        log = apply(log, AppendRecords((record(offset, "k"),), now_ms=10 * offset))
    assert log.segments == (Segment(0, 20), Segment(3, 50), Segment(6, 60))


# ---------------------------------------------------------------- a cluster


def cluster(release: str = "2.8", *, segment_bytes: int = 300, brokers: tuple[int, ...] = (1, 2), **more: int) -> World:
    """Two consumers that are no members, and an offsets topic with small segments on all brokers; broker 1 leads it."""
    config = {"initial_delay_ms": 0, "segment_bytes": segment_bytes, **more}
    return started(Settings(release, brokers, consumers={"a": "g", "b": "h"}, group_config=config))


def commit(world: World, count: int, chance: random.Random) -> None:
    for _ in range(count):
        settle(world, ("commit", chance.choice("ab"), f"t-{chance.randrange(3)}", chance.randrange(100)))


def clean_all(world: World) -> None:
    """Let each running broker clean its log, where its cleaner would."""
    for broker in sorted(world.processes):
        if log_to_clean(world.processes[broker].driver.broker.logs[T], world.settings.release).is_dirty_enough:
            world.step(("clean_log", broker, str(T)))
            agrees(world)


def committed(world: World, broker: int) -> dict[str, Any]:
    """The offsets in the cache of a coordinator, by group and partition."""
    group = world.processes[broker].driver.group
    assert group is not None
    return {f"{name} {tp}": s.value.offset for name, held in group.offsets.items() for tp, s in held.committed.items()}


@pytest.mark.parametrize("release", ["0.9", "0.10.2", "2.8", "3.9"])
@pytest.mark.parametrize("seed", range(3))
def test_a_load_of_a_cleaned_log_finds_the_same(release: str, seed: int) -> None:
    """After random commits, cleanings and expiries the next coordinator loads the offsets of the first from fewer records."""
    # The properties of replicated logs hold, and the journal folds to the state after every cleaning.
    chance, world = random.Random(seed), cluster(release)
    for _ in range(3):
        commit(world, 8, chance)
        clean_all(world)
    log = world.processes[1].driver.broker.logs[T]
    assert len(log.records) < log.log_end_offset
    before = committed(world, 1)
    settle(world, ("kill", 1))
    assert committed(world, 2) == before and [check(world) for check in DURABLE] == [None] * len(DURABLE)
    settle(world, ("start", 1))
    commit(world, 4, chance)
    agrees(world)
    one, two = (world.processes[n].driver.broker.logs[T].log_end_offset for n in (1, 2))
    assert one == two


def test_a_new_replica_fetches_the_gaps() -> None:
    """A replica that begins empty fetches a cleaned log segment by segment, and has the records of the leader and its end."""
    world = cluster(brokers=(1, 2, 3))
    world.step(("create_topic", "x", ((3,),)))
    commit(world, 20, random.Random(1))
    clean_all(world)
    settle(world, ("kill", 2))
    settle(world, ("lose_tail", 2, str(T), 0), ("start", 2))
    leader, follower = (world.processes[n].driver.broker.logs[T] for n in (1, 2))
    assert follower.records == leader.records and follower.log_end_offset == leader.log_end_offset
    assert len(leader.records) < leader.log_end_offset and len(leader.segments) > 1
    agrees(world)


def test_a_fork_repeats_a_cleaning() -> None:
    """A fork of a world whose logs were cleaned has its fingerprint, and goes on like it."""
    world = cluster()
    commit(world, 12, random.Random(2))
    clean_all(world)
    twin = world.fork()
    for one in (world, twin):
        commit(one, 3, random.Random(3))
    assert twin.fingerprint() == world.fingerprint()


def test_a_cleaning_that_is_not_possible_says_why() -> None:
    """Without segment.bytes, on a topic that is not compacted, and on a log that is clean enough, the reason is in the error."""
    world, plain = cluster(), cluster(segment_bytes=10_000)
    commit(world, 12, random.Random(2))
    clean_all(world)
    for one, action, said in (
        (world, ("clean_log", 1, str(T)), "0 of the .* bytes of its closed segments are new"),
        (world, ("clean_log", 1, "t-0"), "has no log of 't-0' to clean"),
        (world, ("clean_log", 9, str(T)), "Broker 9"),
        (plain, ("clean_log", 1, str(T)), "0 of the 0 bytes"),
    ):
        with pytest.raises(UserError, match=said):
            one.step(action)


def test_records_larger_than_a_segment_are_refused() -> None:
    """A commit larger than a segment is refused: RECORD_LIST_TOO_LARGE, for the client INVALID_COMMIT_OFFSET_SIZE."""
    # Source: Log.append (2.8), storeOffsets of GroupMetadataManager.scala (2.8).
    world = cluster(segment_bytes=100)
    settle(world, ("commit", "a", "t-0", 7))
    assert (world.consumers["a"].error, world.processes[1].driver.broker.logs[T].records) == ("INVALID_COMMIT_OFFSET_SIZE", ())


def test_the_topic_has_the_setting_of_the_brokers() -> None:
    """`offsets.topic.segment.bytes` becomes the topic's segment.bytes, which every replica reads; the topic may have its own."""
    # Source: offsetsTopicConfigs (0.9, 2.8).
    world = cluster(segment_bytes=777)
    logs = [world.processes[n].driver.broker.logs[T] for n in (1, 2)]
    assert [log.compaction for log in logs] == [Compaction(777, DAY_MS, 2)] * 2
    settle(world, ("alter_topic", OFFSETS_TOPIC, {"segment.bytes": 500, "delete.retention.ms": 60}))
    assert world.processes[1].driver.broker.logs[T].compaction == Compaction(500, 60, 2)
    agrees(world)


def test_a_cleaning_above_the_high_watermark_removes_the_cached_record() -> None:
    """Under 2.8 a commit that timed out removes the record of the offset in the cache; the invariants allow this."""
    # Source: cleanableOffsets (2.8), which looks at no high watermark.
    world = cluster()
    settle(world, ("commit", "a", "t-0", 1))
    world.step(("freeze", 2))
    for offset in range(2, 7):
        settle(world, ("commit", "a", "t-0", offset))
    world.step(("clean_log", 1, str(T)))
    values = [record.value for record in world.processes[1].driver.broker.logs[T].records]
    assert committed(world, 1) == {"g t-0": 1} and "offset 1 of t-0 in g" not in values
    assert committed_offsets_are_stored(world) is None


# ---------------------------------------------------------------- the buffer of a load


def reads(world: World) -> list[int]:
    return [r.fields["offset"] for r in world.journal.records if r.kind == "read_log" and r.id.node == 2]


@pytest.mark.parametrize(("buffer", "count"), [(5_242_880, 2), (1, 11), (400, 5)])
def test_a_load_reads_in_fetches_of_the_buffers_size(buffer: int, count: int) -> None:
    """A load of ten batches takes as many round trips as the buffer needs, and one that finds the end."""
    # A batch that is larger than the buffer is read whole. Source: doLoadGroupsAndOffsets (2.8), minOneMessage of Log.read.
    world = cluster(segment_bytes=100_000, load_buffer_size=buffer)
    commit(world, 10, random.Random(4))
    before = committed(world, 1)
    settle(world, ("kill", 1))
    assert (len(reads(world)), committed(world, 2)) == (count, before)


def loading_broker_2() -> World:
    """Broker 1, which stored three offsets, has failed, and broker 2 has read two of the three batches of the log."""
    world = cluster(brokers=(1, 2, 3), segment_bytes=100_000, load_buffer_size=1)
    for number in range(3):
        settle(world, ("commit", "a", f"t-{number}", 5))
    world.step(("kill", 1))
    while len(reads(world)) < 2:
        world.step(next(action for action in world.actions() if action.routine))
    return world


def test_nothing_is_cached_between_two_fetches_of_a_load() -> None:
    """A coordinator that fails between two fetches of a load has cached no offset, and its successor loads all offsets."""
    world = loading_broker_2()
    held = world.processes[2].driver.group
    assert held is not None and not held.offsets and held.loading
    settle(world, ("kill", 2))
    assert committed(world, 3) == {"g t-0": 5, "g t-1": 5, "g t-2": 5}


def test_a_load_between_two_fetches_is_cut_off() -> None:
    """If the broker no longer leads between two fetches of a load, it caches the offsets that it has read, and no more."""
    # The resignation, which the thread of the load performs next, removes these offsets. Source: doLoadGroupsAndOffsets (2.8),
    # whose loop ends because the log end offset of a broker that does not lead is -1.
    world = loading_broker_2()
    load, group = ("advance", 2, "group-metadata-manager"), world.processes[2].driver.group
    assert group is not None
    world.step(("terminate", 2))
    while world.processes[2].driver.broker.is_leader(T):
        world.step(next(action for action in world.actions() if action.routine and action != load))
    while group.loading:
        world.step(load)
    assert committed(world, 2) == {"g t-0": 5, "g t-1": 5}
    world.run()
    assert group.offsets == {} and committed(world, 3) == {"g t-0": 5, "g t-1": 5, "g t-2": 5}
