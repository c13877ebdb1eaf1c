"""The records of a partition of `__consumer_offsets`: as a table, field by field, and what compaction keeps of them.

A record without a key comes from a producer, never from a coordinator: the cleaner drops the record, and a load fails at it.

Read next: `group_loading.read_batch`, which reads these records at an election.

Source: Cleaner.cleanInto, shouldRetainRecord of LogCleaner.scala (0.9, 2.8).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kcontrol.batches.record_batch import CODECS
from kcontrol.broker import log_segments
from kcontrol.broker.log_segments import StoredRecord, base_offset_of, data_of, key_of
from kcontrol.core.effects import LogBatch
from kcontrol.core.errors import UserError
from kcontrol.core.model import LogRecord, TopicPartition
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.group.group_loading import Loaded, read_batch
from kcontrol.group.group_rules import group_rules
from kcontrol.group.offsets_topic_records import OffsetsTopicRecord, decode
from kcontrol.journal.fold import end_offset
from kcontrol.lab.groups import decoded_bytes
from kcontrol.lab.support import arguments
from kcontrol.lab.support.late import pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views import group_state, text
from kcontrol.views.offsets_topic_picture import NO_KEY, OffsetsTopicPicture, Square

if TYPE_CHECKING:
    from kcontrol.lab.run import Run

State = Mapping[str, Any]
GROUP_VERSION = 2
RECORDS = {"kind": "string", "key_version": "Int64", "value_version": "Int64", "group_id": "string", "partition": "string",
           "value": "string", "key_bytes": "Int64", "value_bytes": "Int64", "codec": "string", "batch": "int64",
           "batch_bytes": "int64", "compaction": "string"}  # fmt: skip
KEEPS, KEEPS_FOR_A_WHILE = "keeps", "keeps for delete.retention.ms"


class PartitionLog(NamedTuple):
    """The log of a partition of the offsets topic on one broker.

    `broker` is None in a recording of real brokers, which has one log of the partition for all its replicas.
    """

    partition: str
    broker: int | None
    records: tuple[StoredRecord, ...]
    high_watermark: int
    end_offset: int


# ---------------------------------------------------------------- the log


def log(state: State, partition: str | None = None) -> PartitionLog:
    """Return the leader's log of a partition of `__consumer_offsets`; without a running leader, the longest log.

    `partition` None means the first partition with a record. Raises UserError if there is no such log.
    """
    logs = _logs(state)
    known = sorted({found.partition for found in logs})
    # Without `partition`, and if no partition has a record, it is the first of all.
    written = [found.partition for found in logs if found.records]
    name = partition if partition is not None else next(iter(written or known), None)
    fitting = [found for found in logs if found.partition == name]
    if not known:
        raise UserError(f"No broker has a log of {OFFSETS_TOPIC} yet: let a consumer join its group, then run the cluster.")
    if not fitting:
        asked = f"No log of {arguments.shown(name)}"
        raise UserError(f"{asked} is in this run; its partitions of {OFFSETS_TOPIC} are {text.listed(known, 50)}.")
    return max(fitting, key=lambda found: (_leads(state, found), found.end_offset))


def _leads(state: State, found: PartitionLog) -> bool:
    node = str(found.broker)
    return found.broker is None or (node in state["nodes"] and state["logs"][node][found.partition]["leader"] == found.broker)


def _logs(state: State) -> list[PartitionLog]:
    of_brokers = [
        PartitionLog(name, int(n), tuple(map(_record, held["records"])), held["high_watermark"], end_offset(held))
        for n, logs in state.get("logs", {}).items()
        for name, held in logs.items()
        if name.startswith(f"{OFFSETS_TOPIC}-")
    ]
    recorded = {name: tuple(_of_batches(batches)) for name, batches in state.get("offsets_logs", {}).items()}
    return of_brokers + [PartitionLog(name, None, records, len(records), len(records)) for name, records in recorded.items()]


def _record(held: Mapping[str, Any]) -> StoredRecord:
    # The journal has a record that a producer sent without a key as its value alone.
    if "key" not in held:
        return LogRecord(held["offset"], held["leader_epoch"], held["value"])
    data = None if held["data"] is None else bytes.fromhex(held["data"])
    key, codec = bytes.fromhex(held["key"]), held.get("codec", 0)
    return OffsetsTopicRecord(held["offset"], held["leader_epoch"], key, data, held["base_offset"], codec=codec)


def _of_batches(batches: Iterable[Mapping[str, Any]]) -> Iterable[OffsetsTopicRecord]:
    """Yield the records of the log of `__consumer_offsets` from the `batches` of a recording."""
    for batch in batches:
        base = batch["base_offset"]
        # Keys and values in a recording are text: a backslash, "x" and two hexadecimal digits stand for each byte that is no
        # UTF-8.
        for offset, (key, data) in enumerate(batch["records"], base):
            yield OffsetsTopicRecord(offset, 0, _bytes(key), None if data is None else _bytes(data), base, batch["producer_id"])


def _bytes(escaped: str) -> bytes:
    return re.sub(rb"\\x([89a-f][0-9a-f])", lambda found: bytes.fromhex(found[1].decode()), escaped.encode())


# ---------------------------------------------------------------- tables


def offsets_topic(run: Run, partition: str | None = None, *, offset: int | None = None) -> pd.DataFrame:
    """The records of a partition of `__consumer_offsets`: key, value, batch, what compaction does.

    With `offset`, one row per field of this record, with its bytes. `partition` None means the first with a record. Raises
    UserError for an unknown partition or offset.
    """
    found = log(run.state, partition)
    if offset is None:
        last, batches = _last(found.records), _batches(found.records, run._played)
        rows = (_row(r) | {"offset": r.offset, "compaction": _fate(r, last[r.offset])} | batches[r.offset] for r in found.records)
        return journal_tables.table(rows, RECORDS, "offset", "int64")
    records = {record.offset: record for record in found.records}
    if offset not in records:
        raise UserError(
            f"{found.partition} has no record {arguments.shown(offset)}; it has {text.listed(map(str, records), 50)}."
        )
    record = records[offset]
    kind, key, data = _kind(record), key_of(record), data_of(record)
    if key is None:
        raise UserError(f"Record {offset} of {found.partition} has no key and no fields; its value is the {_value(record)}.")
    parts = {"key": decoded_bytes.decode(f"{kind}_key", key)}
    if data is not None:
        parts["value"] = decoded_bytes.decode(f"{kind}_value", data)
    return pd.concat(parts, names=["part", "field"])


def _kind(record: StoredRecord) -> str:
    key = key_of(record)
    if key is None:
        return NO_KEY
    return "group" if int.from_bytes(key[:2], "big", signed=True) == GROUP_VERSION else "offset"


def _row(record: StoredRecord) -> dict[str, Any]:
    kind, key, data = _kind(record), key_of(record), data_of(record)
    row: dict[str, Any] = {"kind": kind, "value": _value(record), "value_bytes": None if data is None else len(data)}
    if key is None:
        return row
    version, fields = decode(f"{kind}_key", key)
    row |= {"key_version": version, "group_id": fields["group"], "key_bytes": len(key)}
    row["partition"] = str(TopicPartition(fields["topic"], fields["partition"])) if kind == "offset" else None
    return row | {"value_version": None if data is None else int.from_bytes(data[:2], "big")}


def _batches(records: Sequence[StoredRecord], release: str) -> dict[int, dict[str, Any]]:
    """Return, by record offset, the columns about its batch: `codec`, `batch` (offset of its first record) and `batch_bytes`.

    Up to 0.10.2 each record that is not compressed is its own batch.
    """
    version = log_segments.message_format(release)
    found: dict[int, dict[str, Any]] = {}
    for together in log_segments.batches(records):
        is_whole = version == 2 or log_segments.as_batch(together).codec
        for batch in [together] if is_whole else [(record,) for record in together]:
            first, size = log_segments.as_batch(batch), log_segments.size_in_bytes(batch, version)
            columns = {"codec": CODECS[first.codec], "batch": batch[0].offset, "batch_bytes": size}
            found |= {record.offset: columns for record in batch}
    return found


def _value(record: StoredRecord) -> str:
    kind, data = _kind(record), data_of(record)
    if data is None:
        return "tombstone"
    if kind == NO_KEY:
        return f"text {text.clean(repr(record.value), 100)}"
    fields = decode(f"{kind}_value", data)[1]
    return f"offset {fields['offset']}" if "offset" in fields else _group(fields["generation"], len(fields["members"]))


def _group(generation: int, members: int) -> str:
    return f"generation {generation}, {members} member{'s' * (members != 1)}"


# ---------------------------------------------------------------- compaction


def _last(records: Sequence[StoredRecord]) -> dict[int, int | None]:
    """Return, by the offset of each record, the offset of the last record with an equal key; None for a record without a key."""
    last = {key_of(record): record.offset for record in records}
    return {record.offset: None if (key := key_of(record)) is None else last[key] for record in records}


def _fate(record: StoredRecord, last: int | None) -> str:
    """Such as "keeps", or "drops: 7 has its key", where 7 is the last record with this key."""
    # This is what the cleaner would keep of a log whose segments are all closed; the cleaner itself (`broker/log_cleaner.py`)
    # never cleans the active segment. It removes a last tombstone once it is older than `delete.retention.ms` (24 h), so that a
    # reader of the log has this time to see the tombstone.
    if record.offset != last:
        return f"drops: {NO_KEY if last is None else f'{last} has its key'}"
    return KEEPS if data_of(record) is not None else KEEPS_FOR_A_WHILE


# ---------------------------------------------------------------- the picture: log, cache, load


def picture(state: State, release: str, partition: str | None, now_ms: int) -> OffsetsTopicPicture:
    """Return a picture of a partition of `__consumer_offsets`: log, coordinator's cache, and the cache after a load.

    `partition` None means the first partition with a record. Raises UserError for an unknown partition.
    """
    # Without `partition` it is the first partition with a record. The release decides how far a load reads the log.
    found = log(state, partition)
    last, batches = _last(found.records), _batches(found.records, release)
    squares = [
        Square(_name(r), _value(r), str(r.offset), is_faded=last[r.offset] != r.offset, batch=_compressed(batches[r.offset]))
        for r in found.records
    ]
    title = f"{found.partition} at {now_ms:,} ms, Kafka {release}"
    nodes = state["nodes"]
    node = nodes.get(str(found.broker), {}) if found.broker is not None else next(iter(nodes.values()), {})
    return OffsetsTopicPicture(title, found.broker, squares, _cached({"nodes": {"0": node}}), _load(found, release))


def _compressed(batch: Mapping[str, Any]) -> str:
    """Return words for a compressed batch, such as ", in a gzip batch of 130 bytes"; "" for any other batch."""
    return "" if batch["codec"] == CODECS[0] else f", in a {batch['codec']} batch of {batch['batch_bytes']} bytes"


def _name(record: StoredRecord) -> str:
    key = key_of(record)
    if key is None:
        return NO_KEY
    fields = decode(f"{_kind(record)}_key", key)[1]
    if "topic" not in fields:
        return str(fields["group"])
    return f"{fields['group']} {TopicPartition(fields['topic'], fields['partition'])}"


def _cached(state: State) -> dict[str, str]:
    """`{"billing": "generation 2, 1 member", "billing t-0": "offset 5"}`."""
    groups = {group: _group(held["generation"], len(held["members"])) for _, group, held in group_state.cached(state, "groups")}
    offsets = {
        f"{group} {tp}": f"offset {stored['value']['offset']}"
        for _, group, held in group_state.cached(state, "offsets")
        for tp, stored in held["committed"].items()
    }
    return groups | offsets


def _load(found: PartitionLog, release: str) -> dict[str, str]:
    """Return the groups and offsets that a load of the log `found` would put into a coordinator's cache, in words.

    An example is `{"billing": "generation 2, 1 member", "billing t-0": "offset 5"}`.
    """
    loaded, rules = Loaded(), group_rules(release)
    # The release decides whether a load reads the log to its end or to the high watermark.
    end = found.high_watermark if rules.loads_up_to == "high watermark" else found.end_offset
    try:
        for record in (record for record in found.records if record.offset < end):
            pair, producer_id = (key_of(record), data_of(record)), getattr(record, "producer_id", None)
            read_batch(loaded, LogBatch(base_offset_of(record), (pair,), producer_id))
    # A record that cannot be read ends the load; before 0.10.1 the offsets before it stay (`partition_elected`).
    except ValueError:
        loaded = Loaded(offsets={} if rules.offsets_need_group else loaded.offsets)
    groups = {name: _group(group.generation, len(group.members)) for name, group in loaded.groups.items() if group is not None}
    offsets = {
        f"{name} {tp}": f"offset {stored.value.offset}"
        for name, held in loaded.offsets.items()
        for tp, stored in held.committed.items()
    }
    return groups | offsets
