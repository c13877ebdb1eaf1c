"""FIELDS: the fields of each kind of journal record, in types of JSON; `check` compares a record with them.

A field that the table lacks is ignored. A field whose type admits `Absent` may be missing, and readers take it as None: a release
that adds a field to a kind declares it so.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, UnsetType

Absent = UnsetType
Names = list[str]

BrokerId = Annotated[int, Meta(ge=0, le=2**31 - 1)]
"""A 32-bit integer. Source: broker.id in KafkaConfig (0.8.0 to 3.9)."""
BrokerIds = list[BrokerId]
LeaderId = Annotated[int, Meta(ge=-2, le=2**31 - 1)]
"""A broker id, -1 for no leader, or -2 while a topic is deleted.

Source: LeaderAndIsr.NoLeader and LeaderDuringDelete (0.8.1 to 3.9).
"""
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Partition = Annotated[str, Meta(pattern=r"-\d{1,10}$")]
Subject = Annotated[str, Meta(pattern=r"-\d{1,10}(@\d{1,10})?$")]
Channel = Annotated[str, Meta(pattern=r"^\d{1,10}>\d{1,10}$")]
Hex = Annotated[str, Meta(pattern=r"^([0-9a-f]{2})*$")]
"""Bytes as hexadecimal text, as `bytes.hex` writes them."""
OfBrokers = dict[Annotated[str, Meta(pattern=r"^\d{1,10}$")], Any]
Id = tuple[BrokerId, Count, Count]
Op = tuple[Literal["create", "set", "delete", "check"], str, str | None, Int64 | None, bool]
Acks = str | int


class Value(msgspec.Struct):
    """The leadership of a partition, as in its state znode: leader, ISR and epochs, with the version of the znode."""

    leader: LeaderId
    isr: BrokerIds
    leader_epoch: Int32
    zk_version: Int32
    controller_epoch: Int32


class Entry(msgspec.Struct):
    """The state of a partition in LeaderAndIsr or UpdateMetadata: its leader, ISR, epochs and replicas.

    Simulated runs have a field `zk_version` too, which is not checked: recordings of Kafka do not have the field.
    """

    leader: LeaderId
    isr: BrokerIds
    leader_epoch: Int32
    controller_epoch: Int32
    replicas: BrokerIds


class NamedEntry(Entry):
    """An entry of a LeaderAndIsr request: the state of a partition, with the partition's name, such as `t-0`."""

    partition: Partition


class LeaderAndIsr(msgspec.Struct):
    """The LeaderAndIsr requests of one `send` record: `values` has the states of partitions, each state once.

    `to` maps a broker id to positions in `values`: {"1": [0, 2]} sends broker 1 the first and third state.
    """

    values: list[NamedEntry]
    to: dict[Annotated[str, Meta(pattern=r"^\d{1,10}$")], list[Count]]


class UpdateMetadata(msgspec.Struct):
    """The UpdateMetadata requests in the batch of a `send` record: each broker in `to` gets all `partitions`."""

    partitions: dict[Partition, Entry]
    to: BrokerIds


class StopReplica(msgspec.Struct):
    """The StopReplica requests of one `send` record: `to` maps a broker id to the partitions in its request.

    A partition, such as `t-0`, has an object with `leader_epoch` and `delete` (whether the broker deletes its replica).
    """

    to: dict[Annotated[str, Meta(pattern=r"^\d{1,10}$")], dict[Partition, dict[str, Any]]]


class Requests(msgspec.Struct):
    """The requests of one `send` record, a batch: the LeaderAndIsr, UpdateMetadata and StopReplica that a controller sends.

    The field of an API is absent if the batch has no request of this API.
    """

    # The id and the epoch of the sender.
    controller_id: BrokerId
    controller_epoch: Int32
    # All registered brokers.
    live_brokers: BrokerIds
    leader_and_isr: LeaderAndIsr | UnsetType = msgspec.UNSET
    update_metadata: UpdateMetadata | UnsetType = msgspec.UNSET
    stop_replica: StopReplica | UnsetType = msgspec.UNSET


class Event(msgspec.Struct):
    """An event in a queue, in JSON: `event` is the name of the event's class; the fields of this class are further keys."""

    event: str


class LogRecord(msgspec.Struct):
    """A record of a partition's log, such as a message of a producer: its offset, its leader epoch and its value."""

    offset: Count
    leader_epoch: Int32
    value: str


class LogChange(msgspec.Struct):
    """The new values of the fields of a `ReplicaLog`, such as `high_watermark`; unchanged fields are absent.

    The records of the log are never among these fields.
    """

    # The leader epochs of the log and their start offsets, oldest first.
    epochs: list[dict[str, Int64]] | UnsetType = msgspec.UNSET
    # The high watermark on disk; `high_watermark` is that in memory.
    checkpoint: Count | UnsetType = msgspec.UNSET
    high_watermark: Count | UnsetType = msgspec.UNSET
    # The leader of the partition, -1 without a leader.
    leader: LeaderId | UnsetType = msgspec.UNSET
    leader_epoch: Int32 | UnsetType = msgspec.UNSET
    # On a leader: each follower's id and its log end offset.
    followers: list[tuple[BrokerId, Count]] | UnsetType = msgspec.UNSET
    # The Produce requests and coordinator appends that wait until the high watermark has passed their record.
    waiting: list[dict[str, Any]] | UnsetType = msgspec.UNSET
    # True while a follower does not know where its log diverges from the leader's log.
    truncating: bool | UnsetType = msgspec.UNSET


class Hosted(msgspec.Struct):
    """A partition that a broker hosts, in the field `hosted` of journal records of kind `update`."""

    # The leader, the ISR and the epochs as this broker knows them.
    leadership: Value
    # All brokers with a replica of the partition.
    replicas: BrokerIds


class Assignment(msgspec.Struct):
    """The brokers of a partition's replicas, and the brokers that a reassignment adds and removes."""

    replicas: BrokerIds
    adding: BrokerIds
    removing: BrokerIds


class Body(msgspec.Struct):
    """The body of a response in a journal record: an error, errors by partition or group, and results by partition."""

    # "NONE" for success.
    error: str | UnsetType = msgspec.UNSET
    # Partition or group to its error.
    errors: dict[str, Any] | UnsetType = msgspec.UNSET
    # Partition to its result, such as a leadership.
    partitions: dict[str, Any] | UnsetType = msgspec.UNSET


class Consumer(msgspec.Struct):
    """The state of a consumer in a journal record: its group, member id, generation and last error."""

    group: str
    member_id: str
    generation: Int32
    error: str
    # (id, number of process starts) of the broker whose response the consumer waits for; None without a waiting request.
    asked: tuple[BrokerId, Count] | None


PROMISE = {"partition": Partition, "offset": Count, "leader_epoch": Int32, "value": str, "acks": Acks, "leader": BrokerId}
MOVE = {"machine": Literal["partition", "replica"], "subject": Subject, "source": str, "target": str}
TRAVELS = {"sender": BrokerId, "receiver": BrokerId, "api": str}
OF_THREAD = {"thread": str}
OF_BROKER = {"broker": BrokerId}
OF_LOG = {"partition": Partition, "now": LogChange}
OF_OPERATION = {"operation": str, "purgatory": str, "key": str, "timer": str}

# The field `inferred` of a record that was made from a recording or a log: no line has the record, or no line has its time.
INFERRED = ("record", "time")

FIELDS: dict[str, dict[str, Any]] = {
    "run": {"journal_version": Count, "release": str, "brokers": BrokerIds, "world": str, "seed": Int64 | str | Absent,
            "data": bool | Absent, "consumers": dict[str, Consumer] | Absent, "scenario": str | None | Absent},
    "scenario": {"step": Count, "do": dict[str, Any]},
    "act": {"action": Annotated[list[Any], Meta(min_length=1)], "error": str | Absent},
    # processes and sessions
    "start": OF_BROKER | {"incarnation": Count},
    "stop": OF_BROKER | {"exit_code": Int32 | None, "orphaned_by": BrokerIds | Absent, "unread_by": BrokerIds | Absent},
    "freeze": OF_BROKER,
    "thaw": OF_BROKER,
    "open": {"session": Int64},
    "close": OF_BROKER | {"session": Int64, "deleted": Names, "zxid": Int64},
    "reopen": {"client": str, "session": Int64},
    "session_lost": {},
    "renew": {},
    "connection_loss": OF_THREAD,
    # queues and handlers
    "notify": {"to": BrokerId, "type": str, "path": str},
    "drop_notification": {"type": str, "path": str},
    "enqueue": OF_THREAD | {"event": Event, "is_notification": bool},
    "begin": OF_THREAD | {"event": str},
    "end": OF_THREAD,
    "yield_lock": OF_THREAD,
    "preempt": OF_THREAD | {"event": Event},
    "handler_error": OF_THREAD | {"event": str, "error": str, "message": str},
    "exception": OF_THREAD | {"error": str},
    "set_timer": OF_THREAD | {"timer": str, "fires_at_ms": Int64, "event": Event | None},
    "cancel_timer": {"timer": str},
    "fire_timer": {"timer": str},
    # ZooKeeper and the contexts
    "read": {"how": Literal["exists", "read", "children"], "paths": Names, "seen": list[Any], "watch": bool},
    "write": {"ops": list[Op], "zxid": Int64 | None, "error": str | None, "epoch_zk_version": Int64,
              "codes": list[Int64 | None] | Absent},
    "update": {"context": Literal["controller", "broker", "group"], "field": str, "container": Literal["value", "map", "set"],
               "clear": bool, "remove": list[str | int], "put": Any},
    "apply_request": {"field": Literal["hosted", "metadata"], "request": Id, "partitions": list[Partition] | None},
    "change": MOVE | {"leadership": Value | None, "write": str | None, "rule": str | None, "zxid": Int64 | Absent,
                      "epoch_zk_version": Int64 | Absent},
    "failed_change": MOVE | {"reason": str},
    "conflict": MOVE | {"reason": str},
    # what travels
    "send": {"requests": Requests},
    "response": {"channel": Channel, "api": str},
    "drop_request": TRAVELS,
    "duplicate_request": TRAVELS,
    "close_channels": {"to": BrokerIds, "unread_by": BrokerIds | Absent},
    "receive": {"api": str, "sender": BrokerId},
    "request_refused": {"api": str, "error": str},
    "submit": {"api": str, "body": dict[str, Any] | list[Any] | None},
    "controller_response": OF_BROKER | {"requests": Names, "error": str | Absent},
    "time_out_request": {"to": BrokerId},
    "respond": {"correlation_id": str, "body": Body | None},
    "park": {"correlation_id": str, "key": str},
    "try_complete": OF_OPERATION | {"attempt": Literal[1, 2], "is_complete": bool},
    "watch_operation": OF_OPERATION,
    "check_and_complete": OF_OPERATION | {"is_complete": bool},
    "delay_response": OF_BROKER | {"leaders": BrokerIds},
    "send_delayed_response": OF_BROKER | {"timed_out": bool | Absent},
    # logs
    "log_append": OF_LOG | {"records": list[LogRecord]},
    "log_truncate": OF_LOG | {"offset": Count, "removed": list[LogRecord], "rule": str},
    "log_clean": OF_LOG | {"removed": list[LogRecord]},
    "log_role": OF_LOG | {"leads": bool},
    "log_delete": {"partition": Partition, "removed": list[LogRecord]},
    "high_watermark": OF_LOG,
    "log_config": OF_LOG,
    "append_timeout": OF_LOG | {"offset": Count},
    "follower_end": OF_LOG | {"follower": BrokerId, "offset": Count},
    "checkpoint": OF_LOG,
    "tail_lost": OF_LOG | OF_BROKER | {"offset": Count, "removed": list[LogRecord]},
    "acknowledged": PROMISE,
    "record_lost": PROMISE,
    "record_deleted": PROMISE,
    # groups
    "group": {"group_id": str, "from": str, "to": str, "rule": str, "group_metadata": dict[str, Any] | None},
    "consumer": {"name": str, "now": Consumer},
    "append": {"partition": Partition, "records": list[tuple[Any, Any]], "completion_event": Event | None},
    "offsets_append": {"partition": Partition, "batch": Any},
    "read_log": {"partition": Partition, "offset": Count},
}  # fmt: skip
"""The fields that tables, pictures and sentences read. Records of other kinds are not checked."""

UPDATED: dict[tuple[str, str], Any] = {
    ("value", ""): Int64 | bool | str | None, ("set", ""): list[str | int] | None, ("map", ""): dict[str, Any] | None,
    ("map", "hosted"): dict[Partition, Hosted] | None, ("map", "metadata"): dict[Partition, Entry] | None,
    ("map", "leadership"): dict[Partition, Value] | None, ("map", "assignments"): dict[Partition, Assignment] | None,
    ("map", "partition_states"): dict[Partition, str] | None, ("map", "replica_states"): dict[Subject, str] | None,
    ("map", "live_broker_epochs"): OfBrokers | None, ("map", "live_brokers"): OfBrokers | None,
}  # fmt: skip
"""The type of `put` in an `update` record, by the container and, for fields that views read, by name."""


def _decoder(kind: str, fields: Mapping[str, Any]) -> type[msgspec.Struct]:
    named = {name.replace("from", "source"): name for name in fields}
    rows = [
        (safe, fields[name], msgspec.UNSET) if UnsetType in getattr(fields[name], "__args__", ()) else (safe, fields[name])
        for safe, name in named.items()
    ]
    return msgspec.defstruct(
        kind.title(), rows, rename={safe: name for safe, name in named.items() if safe != name}, kw_only=True
    )


_CHECKED = {kind: _decoder(kind, fields) for kind, fields in FIELDS.items()}


def check(kind: str, fields: Mapping[str, Any]) -> None:
    """`fields` in JSON. Raises ValueError with the name of a missing or mistyped field."""
    if (expected := _CHECKED.get(kind)) is None:
        return
    msgspec.convert(fields, expected)
    if kind == "read" and len(fields["paths"]) != len(fields["seen"]):
        raise ValueError(f"{len(fields['seen'])} versions are seen of {len(fields['paths'])} znodes")
    if kind == "update":
        container, name = fields["container"], fields["field"]
        msgspec.convert(fields["put"], UPDATED.get((container, name), UPDATED[container, ""]))
