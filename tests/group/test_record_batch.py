"""The bytes of compressed batches of the offsets topic: read by kafka-python, compared with Kafka's classes, and in a cluster."""

from __future__ import annotations

import random
import struct
import zlib

import pytest
from kafka.record import MemoryRecords
from kafka.record.util import calc_crc32c

from kcontrol.batches.record_batch import BATCH_OVERHEAD, MESSAGE_OVERHEAD, Batch, Record, records_section, size_in_bytes
from kcontrol.broker import log_segments
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.core.model import TopicPartition
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.group.model import OffsetAndMetadata
from kcontrol.group.offset_expiration import EXPIRY_TIMER
from kcontrol.group.offsets_topic_records import OffsetsTopicRecord, offset_key, offset_value
from tests.core.support import settle
from tests.group.kafka_batches import kafka_batches
from tests.group.test_coordinators_in_a_cluster import agrees, started

T = TopicPartition(OFFSETS_TOPIC, 0)
GZIP = 1
GZIP_HEAD = 10
"""The bytes of the head of gzip's format; the last names the operating system."""


def drawn(chance: random.Random, base_offset: int = 0, *, is_cleaned: bool = False) -> Batch:
    """A gzip batch of commits and tombstones, one to 200 records; `is_cleaned` leaves out random ones."""
    count = chance.choice([1, 2, 5, 70, 200])
    offsets = [n for n in range(count) if not (is_cleaned and chance.random() < 0.5)] or [count - 1]
    found = []
    for n in offsets:
        key = offset_key("g" * chance.randint(1, 9), TopicPartition("t" * chance.randint(1, 90), n))
        text = OffsetAndMetadata(chance.randrange(10**6), metadata="m" * chance.choice([0, 9, 900]), commit_timestamp=n)
        found.append(Record(base_offset + n, key, None if chance.random() < 0.3 else offset_value(text, 3)))
    return Batch(base_offset, tuple(found), GZIP)


def with_head(batch: Batch, message_format: int) -> bytes:
    """The batch with the header, or the wrapper, that a broker writes before its records."""
    section, last = records_section(batch, message_format), batch.records[-1].offset
    if message_format == 2:
        delta = last - batch.base_offset
        rest = struct.pack(">hiqqqhii", batch.codec, delta, 0, 0, -1, -1, -1, len(batch.records)) + section
        return struct.pack(">qiibI", batch.base_offset, len(rest) + 9, 0, 2, calc_crc32c(rest)) + rest
    time = struct.pack(">q", 0) * message_format
    body = struct.pack(">bb", message_format, batch.codec) + time + struct.pack(">ii", -1, len(section)) + section
    return struct.pack(">qiI", last, len(body) + 4, zlib.crc32(body)) + body


@pytest.mark.parametrize("message_format", [0, 1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_kafka_python_reads_a_compressed_batch(message_format: int, seed: int) -> None:
    """kafka-python reads the codec, the offsets, keys and values of a gzip batch, also of a cleaned batch, and its CRCs fit."""
    batch = drawn(random.Random(seed), base_offset=1_000, is_cleaned=seed % 2 == 1)
    written = with_head(batch, message_format)
    read = MemoryRecords(written).next_batch()
    assert (read.compression_type, read.validate_crc()) == (GZIP, True)
    records = list(read)
    assert [(r.offset, r.key, r.value) for r in records] == list(batch.records) and all(r.validate_crc() for r in records)
    assert size_in_bytes(batch, message_format) == len(written)


@pytest.mark.parametrize(("message_format", "first"), [(0, 1_000), (1, 0)])
def test_messages_in_a_wrapper_of_format_1_have_their_place_in_the_batch(message_format: int, first: int) -> None:
    """The first message in a wrapper has its offset in format 0, and 0 in format 1 (KIP-31)."""
    inside = zlib.decompress(records_section(drawn(random.Random(1), base_offset=1_000), message_format), 31)
    assert struct.unpack_from(">q", inside) == (first,)


@pytest.mark.slow
@pytest.mark.kafka
def test_a_compressed_batch_has_the_bytes_of_kafkas_classes() -> None:
    """Random gzip batches of formats 1 and 2 have, after the head of gzip's format, the bytes that Kafka 2.8.2 writes."""
    chance = random.Random(7)
    batches = [drawn(chance) for _ in range(40)]
    kafka = kafka_batches([[(r.key, r.value) for r in batch.records if r.key] for batch in batches], "GZIP", "12")
    for message_format, overhead in ((1, MESSAGE_OVERHEAD[1]), (2, BATCH_OVERHEAD)):
        written = kafka[str(message_format)]
        ours = [records_section(batch, message_format) for batch in batches]
        assert [data[GZIP_HEAD:] for data in ours] == [data[overhead:][GZIP_HEAD:] for data in written]
        assert [size_in_bytes(batch, message_format) for batch in batches] == [len(data) for data in written]


# ---------------------------------------------------------------- a cluster


def cluster(release: str = "2.8", **config: int) -> World:
    """Two brokers and two consumers that are no members; broker 1 leads the offsets topic."""
    return started(Settings(release, (1, 2), consumers={"a": "g", "b": "h"}, group_config={"initial_delay_ms": 0, **config}))


def commit(world: World, *offsets: int) -> World:
    for offset in offsets:
        settle(world, ("commit", "a", "t-0", offset))
    return world


def records(world: World, broker: int) -> list[OffsetsTopicRecord]:
    log = world.processes[broker].driver.broker.logs[T]
    return [record for record in log.records if isinstance(record, OffsetsTopicRecord)]


@pytest.mark.parametrize(("release", "codec"), [("0.9", 0), ("0.10.2", 1), ("0.11.0", 1), ("2.8", 1), ("3.9", 1)])
def test_the_log_has_the_codec_of_the_coordinator(release: str, codec: int) -> None:
    """The leader's and the follower's records have the setting's codec; 0.9 unpacks them, as its topic is uncompressed."""
    # Source: compressionType of GroupMetadataManager.scala (2.8), offsetsTopicConfigs of GroupCoordinator.scala (0.9, 0.10.0.1).
    world = commit(cluster(release, compression_codec=GZIP), 7, 8)
    assert [[record.codec for record in records(world, broker)] for broker in (1, 2)] == [[codec] * 2] * 2
    agrees(world)


@pytest.mark.parametrize(("release", "first"), [("0.9", None), ("0.10.0.0", None), ("0.10.0.1", 1), ("0.10.2", 1), ("2.8", 1)])
def test_since_when_a_batch_stays_compressed(release: str, first: int | None) -> None:
    """The offsets topic has compression.type=uncompressed up to 0.10.0.0, and producer since 0.10.0.1."""
    assert (log_segments.codec_on_disk(GZIP, release) or None) == first


def test_tombstones_are_compressed_too() -> None:
    """The tombstones of one search for expired offsets are one batch with the setting's codec."""
    # Source: cleanupGroupMetadata of GroupMetadataManager.scala (1.1).
    world = commit(cluster("1.1", compression_codec=GZIP, retention_ms=1), 7)
    settle(world, ("commit", "a", "t-1", 8))
    settle(world, ("fire_timer", 1, EXPIRY_TIMER))
    assert [(r.codec, r.base_offset) for r in records(world, 1) if r.data is None] == [(GZIP, 2)] * 2
    agrees(world)


PLAIN = 104
"""The size of a commit of these clusters under 2.8; compressed alone it has a few bytes more."""


@pytest.mark.parametrize(("codec", "segments"), [(0, [0, 3, 6]), (GZIP, [0, 2, 4, 6])])
def test_segments_count_compressed_bytes(codec: int, segments: list[int]) -> None:
    """A segment ends by the sizes of the compressed batches. Source: LogSegment.shouldRoll (2.8)."""
    world = commit(cluster(compression_codec=codec, segment_bytes=3 * PLAIN + 5), *range(7))
    logs = [world.processes[n].driver.broker.logs[T] for n in (1, 2)]
    assert [[segment.base_offset for segment in log.segments] for log in logs] == [segments] * 2


@pytest.mark.parametrize(("codec", "error"), [(0, "NONE"), (GZIP, "INVALID_COMMIT_OFFSET_SIZE")])
def test_the_limit_of_an_append_counts_compressed_bytes(codec: int, error: str) -> None:
    """A commit that fits into a segment plain and not compressed is refused only with the codec. Source: Log.append (2.8)."""
    world = commit(cluster(compression_codec=codec, segment_bytes=PLAIN + 2), 7)
    assert (world.consumers["a"].error, len(records(world, 1))) == (error, int(error == "NONE"))


@pytest.mark.parametrize(("codec", "count"), [(0, 3), (GZIP, 4)])
def test_a_load_counts_compressed_bytes(codec: int, count: int) -> None:
    """`offsets.load.buffer.size` bounds the compressed bytes of one read: three plain commits, or two compressed ones."""
    # Six commits take two or three reads, and one that finds the end. Source: doLoadGroupsAndOffsets (2.8).
    world = commit(cluster(compression_codec=codec, load_buffer_size=3 * PLAIN + 5), *range(6))
    settle(world, ("kill", 1))
    group = world.processes[2].driver.group
    assert group is not None
    assert len([r for r in world.journal.records if r.kind == "read_log" and r.id.node == 2]) == count
    assert group.offsets["g"].committed[TopicPartition("t", 0)].value.offset == 5


def test_a_cleaned_batch_is_compressed_again() -> None:
    """The cleaner keeps the codec of a batch of which it removes records, and the batch becomes smaller."""
    # Source: MemoryRecords.buildRetainedRecordsInto (2.8).
    whole = drawn(random.Random(6))
    held = [OffsetsTopicRecord(r.offset, 0, r.key or b"", r.value, 0, codec=GZIP) for r in whole.records]
    assert len(held) > 2 and log_segments.as_batch(held) == whole
    left = log_segments.as_batch(held[1::2])
    assert (left.codec, left.base_offset) == (GZIP, 0)
    sizes = [log_segments.size_in_bytes(some, 2) for some in (held[1::2], held)]
    assert BATCH_OVERHEAD < sizes[0] < sizes[1]
