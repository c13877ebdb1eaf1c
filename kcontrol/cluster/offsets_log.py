"""Appends the records of a group coordinator to the log of a partition of the offsets topic, and reads this log.

A coordinator appends to the log of its own broker, the partition's leader. The records reach the followers by fetches, like those
of any topic, and the outcome of an append is an event of the coordinator (`replication.append_records`). A former leader that has
not received the next LeaderAndIsr yet appends in vain: no follower fetches from it, and it truncates its log when it becomes a
follower.

Source: appendForGroup and doLoadGroupsAndOffsets of GroupMetadataManager.scala (2.8).
"""

from collections.abc import Sequence
from dataclasses import replace

from kcontrol.broker import log_segments, replication
from kcontrol.broker.log import ReplicaLog
from kcontrol.core.effects import Append, LogBatch
from kcontrol.core.model import TopicPartition
from kcontrol.driver.driver import Driver
from kcontrol.driver.instant_effects import PERFORM
from kcontrol.driver.threads import Thread
from kcontrol.group.offsets_topic_records import OffsetsTopicRecord
from kcontrol.journal.journal import RecordId

NO_ACKS = 0


def append(driver: Driver, effect: Append, record: RecordId) -> None:
    """Append the records of `effect` as one batch to the broker's log of the partition `effect.partition`.

    When enough replicas have the batch, or after an error, queue `effect.completion_event` (if not None) with the error and the
    first offset. `record` is the append's journal record.

    Source: compressionType, appendForGroup, cleanupGroupMetadata (2.8).
    """
    assert driver.group is not None
    config, tp = driver.group.config, effect.partition
    log = driver.broker.logs.get(tp, ReplicaLog())
    base, epoch = log.log_end_offset, log.leader_epoch
    codec = log_segments.codec_on_disk(config.compression_codec, driver.broker.rules.release)
    records = tuple(
        OffsetsTopicRecord(offset, epoch, key, data, base, effect.producer_id, codec)
        for offset, (key, data) in enumerate(effect.records, base)
    )
    removes = all(data is None for _, data in effect.records) and bool(effect.records)
    # An append that has only tombstones waits for no replica.
    acks = NO_ACKS if removes else config.required_acks
    event = effect.completion_event and replace(effect.completion_event, base_offset=base)
    asked = replication.AppendRequest(tp, records, acks, config.commit_timeout_ms, event, record)
    caller = Thread("", driver.broker, replication.append_records, begin_record=record)  # the append is the cause of its effects
    for instant in replication.append_records(driver.broker, asked):
        PERFORM[type(instant)](driver, caller, instant)


def read(driver: Driver, tp: TopicPartition, offset: int) -> tuple[LogBatch, ...] | None:
    """Read batches of the log of `tp`, the first one with the record at `offset`, up to `offsets.load.buffer.size` bytes.

    Return None if the broker of `driver` is not the leader. Source: Log.read (2.8).
    """
    log, group = driver.broker.logs.get(tp), driver.group
    if log is None or group is None or not driver.broker.is_leader(tp):
        return None
    end = log.high_watermark if group.rules.loads_up_to == "high watermark" else log.log_end_offset
    found = log_segments.batches(record for record in replication.read_segment(log, offset) if record.offset < end)
    read: list[LogBatch] = []
    size, message_format = 0, log_segments.message_format(driver.broker.rules.release)
    for records in found:
        size += log_segments.size_in_bytes(records, message_format)
        # At least one batch is returned, and no batch of the next segment.
        if read and size > group.config.load_buffer_size:
            break
        read.append(_batch(records))
    return tuple(read)


def _batch(records: Sequence[log_segments.StoredRecord]) -> LogBatch:
    first, own = records[0], [record for record in records if isinstance(record, OffsetsTopicRecord)]
    if not isinstance(first, OffsetsTopicRecord):
        return LogBatch(first.offset, ((None, first.value.encode()),))
    pairs = tuple((record.key, record.data) for record in own)
    return LogBatch(first.offset, pairs, first.producer_id, next_offset=records[-1].offset + 1)
