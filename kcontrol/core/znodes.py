"""The znodes of the control plane: paths, and the encoder and decoder of each format.

Codecs come in pairs of `encode_x` and `decode_x`. Decoders raise `MalformedZnode` for data that
they cannot read.

Source: ZkData.scala (2.8).
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from kcontrol.core.kafka_json import (
    Fields,
    Int32,
    MalformedZnode,
    NotJson,
    decode,
    encode,
    in_scala_hash_map_order,
    java_int,
)
from kcontrol.core.model import RECOVERED, LeaderAndIsr, ReplicaAssignment, TopicPartition

__all__ = ["MalformedZnode", "encode"]

CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CLUSTER_ID = "/cluster/id"
FEATURE = "/feature"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
ISR_CHANGE_NOTIFICATION = "/isr_change_notification"
LOG_DIR_EVENT_NOTIFICATION = "/log_dir_event_notification"
CONFIG_CHANGES = "/config/changes"


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(tp: TopicPartition) -> str:
    return f"{TOPICS}/{tp.topic}/partitions/{tp.partition}"


def state_path(tp: TopicPartition) -> str:
    return f"{TOPICS}/{tp[0]}/partitions/{tp[1]}/state"


def topic_config_path(topic: str) -> str:
    return f"/config/topics/{topic}"


def delete_topic_path(topic: str) -> str:
    return f"{DELETE_TOPICS}/{topic}"


_STATE_PATH = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")


def parse_state_path(path: str) -> TopicPartition | None:
    """Return the partition whose state znode has this path, or None for another path."""
    found = _STATE_PATH.fullmatch(path) if path.endswith("/state") else None
    return TopicPartition(found.group(1), int(found.group(2))) if found else None


def parent(path: str) -> str:
    """Return the path of the parent; `/` for a top-level path and for `/` itself."""
    return path.rpartition("/")[0] or "/"


# ---------------------------------------------------------------- /controller and /controller_epoch


def encode_controller(broker_id: int, timestamp_ms: int, format_version: int = 1) -> bytes:
    """Return the data of `/controller` in the format 1 or 2, with `timestamp_ms` as `timestamp`.

    Format 2 adds the KRaft controller epoch -1 (KIP-866).

    Source: ControllerZNode.encode (3.4).
    """
    value = {"version": format_version, "brokerid": broker_id, "timestamp": str(timestamp_ms)}
    return encode(value | {"kraftControllerEpoch": -1} if format_version > 1 else value)


def decode_controller(data: bytes, *, or_bare_id: bool = True) -> int:
    """Return the id of the broker in `/controller`: JSON or, with `or_bare_id`, an integer alone.

    Raises MalformedZnode for other data. Source: KafkaController.parseControllerId (0.8.1 to 1.0),
    ControllerZNode.decode (1.1).
    """
    try:
        broker_id: int = decode(data, CONTROLLER).get("brokerid", Int32)
    except MalformedZnode:
        if not or_bare_id:
            raise
        try:
            broker_id = java_int(data.decode())
        except ValueError:
            text = data.decode(errors="replace")
            text = f"{CONTROLLER} holds {text!r}, neither JSON nor a broker id"
            raise MalformedZnode(text) from None
    return broker_id


def encode_controller_epoch(controller_epoch: int) -> bytes:
    return str(controller_epoch).encode()


def decode_controller_epoch(data: bytes) -> int:
    try:
        return java_int(data.decode())
    except ValueError:
        text = data.decode(errors="replace")
        raise MalformedZnode(f"{CONTROLLER_EPOCH} holds {text!r}, which is no number") from None


# ---------------------------------------------------------------- the state of a partition


def encode_state(value: LeaderAndIsr) -> bytes:
    isr = ",".join(map(str, value.isr))
    recovery, leader_recovery_state = "", value.leader_recovery_state
    if leader_recovery_state != RECOVERED:
        recovery = f'"leader_recovery_state":{leader_recovery_state},'
    return (
        f'{{"controller_epoch":{value.controller_epoch},"leader":{value.leader},"version":1,'
        f'{recovery}"leader_epoch":{value.leader_epoch},"isr":[{isr}]}}'
    ).encode()


class _State(msgspec.Struct):
    leader: Int32
    leader_epoch: Int32
    isr: tuple[Int32, ...]
    controller_epoch: Int32
    leader_recovery_state: Int32 = RECOVERED


_decode_state = msgspec.json.Decoder(_State).decode


def decode_state(data: bytes, zk_version: int = -1) -> LeaderAndIsr:
    """Return the leadership in a state znode's data.

    `zk_version` is the znode's version in ZooKeeper, -1 if the caller does not know it. Raises
    MalformedZnode for data that is not the JSON of a leadership.
    """
    try:
        state = _decode_state(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        state = decode(data, "a state znode").all(_State)
    head, tail = (state.leader, state.isr, state.leader_epoch), state.leader_recovery_state
    return LeaderAndIsr(*head, zk_version, state.controller_epoch, tail)


def decode_states(keys: Iterable[Any], znodes: Iterable[Any]) -> dict[Any, LeaderAndIsr]:
    """Return the leadership in each state znode by its key, without the znodes that are missing."""
    found = zip(keys, znodes, strict=True)
    return {key: decode_state(z.data, z.stat.version) for key, z in found if z}


# ---------------------------------------------------------------- topics


class TopicZnode(NamedTuple):
    """The content of `/brokers/topics/<t>`: assignments by partition number, and an id (2.8 on)."""

    partitions: dict[int, ReplicaAssignment]
    topic_id: str | None = None

    def assignments(self, topic: str) -> dict[TopicPartition, ReplicaAssignment]:
        return {TopicPartition(topic, p): a for p, a in sorted(self.partitions.items())}


def encode_topic(topic: TopicZnode, format_version: int = 3) -> bytes:
    """Return the data of a topic znode in the format 1, 2 or 3.

    Format 1 has replicas alone, format 2 also the added and the removed replicas, format 3 also the
    topic's id.
    """
    rows = {str(p): a for p, a in sorted(topic.partitions.items())}
    replicas = in_scala_hash_map_order({p: a.replicas for p, a in rows.items()})
    if format_version == 1:
        return encode({"version": 1, "partitions": replicas})
    value: dict[str, Any] = {"partitions": replicas}
    if topic.topic_id:
        value["topic_id"] = topic.topic_id
    # A partition is listed here only if it has such replicas. The order of the keys is that of
    # Kafka's hash maps.
    adding = {p: a.adding for p, a in rows.items() if a.adding}
    removing = {p: a.removing for p, a in rows.items() if a.removing}
    value["adding_replicas"] = in_scala_hash_map_order(adding)
    value["removing_replicas"] = in_scala_hash_map_order(removing)
    return encode(value | {"version": format_version})


def decode_topic(data: bytes) -> TopicZnode:
    """Return the assignments of a topic, and the topic's id if the znode has an id.

    Text that is not JSON gives no assignments. Raises MalformedZnode for empty data and for fields
    of another type.
    """
    try:
        fields = decode(data, "a topic znode")
    except NotJson:
        return TopicZnode({})
    partitions = fields.get("partitions", dict[str, tuple[Int32, ...]], {})
    names = ("adding_replicas", "removing_replicas")
    changes = [Fields(fields.get(name, dict, {}), "a topic znode") for name in names]
    topic_id = fields.get("topic_id", str, "") or None
    try:
        rows = {java_int(p): _assignment(p, ids, *changes) for p, ids in partitions.items()}
    except ValueError as error:
        text = "a topic znode does not map partition numbers to lists of broker ids"
        raise MalformedZnode(f"{text}: {error}") from None
    return TopicZnode(rows, topic_id)


def decode_topics(keys: Iterable[Any], znodes: Iterable[Any]) -> dict[Any, TopicZnode]:
    """Return the content of each topic znode by its key, without the znodes that are missing."""
    return {key: decode_topic(z.data) for key, z in zip(keys, znodes, strict=True) if z}


def _assignment(number: str, replicas: tuple[int, ...], *changes: Fields) -> ReplicaAssignment:
    if not any(fields.value for fields in changes):
        return ReplicaAssignment(replicas)
    ids = tuple[Int32, ...]
    return ReplicaAssignment(replicas, *(fields.get(number, ids, ()) for fields in changes))


def encode_topic_config(overrides: dict[str, str]) -> bytes:
    return encode({"version": 1, "config": overrides})


def encode_config_change(topic: str, format_version: int) -> bytes:
    """Return the data of a notification that a topic's settings have changed.

    Format 0 (0.8.1) has the topic's name, 1 (0.9) the entity's type and name, 2 (0.10.1 on) the
    entity's path.

    Source: AdminUtils.changeTopicConfig (0.8.1), getConfigChangeZnodeData (0.9, 0.10.1),
    ConfigEntityChangeNotificationZNode (2.8).
    """
    named: dict[int, Any] = {
        0: topic,
        1: {"version": 1, "entity_type": "topics", "entity_name": topic},
        2: {"version": 2, "entity_path": f"topics/{topic}"},
    }
    return encode(named[format_version])


def decode_topic_config(data: bytes) -> dict[str, str]:
    """Raises MalformedZnode for data that is not JSON with an object `config`."""
    config = decode(data, "a topic's configuration").get("config", dict)
    return {str(key): str(value) for key, value in config.items()}


# ---------------------------------------------------------------- brokers


class BrokerEndpoint(NamedTuple):
    """The host and the port of a broker's listener."""

    host: str
    port: int


def encode_broker(endpoint: BrokerEndpoint, timestamp_ms: int, format_version: int = 5) -> bytes:
    """Return a broker's registration (its znode's data) with one PLAINTEXT listener.

    `timestamp_ms` is the time of the registration, the field `timestamp`. Format 2 adds
    `endpoints`, format 4 `listener_security_protocol_map`, format 5 `features`.

    Source: Broker.scala and ZkUtils.registerBrokerInZk (0.8.1), BrokerIdZNode.encode (2.8).
    """
    value = {
        "features": {}, "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        "endpoints": [f"PLAINTEXT://{endpoint.host}:{endpoint.port}"], "jmx_port": -1,
        "port": endpoint.port, "host": endpoint.host, "version": format_version,
        "timestamp": str(timestamp_ms),
    }  # fmt: skip
    since = {"endpoints": 2, "listener_security_protocol_map": 4, "features": 5}
    return encode({key: v for key, v in value.items() if format_version >= since.get(key, 1)})


def decode_broker(data: bytes) -> BrokerEndpoint:
    fields = decode(data, "a broker's registration")
    return BrokerEndpoint(fields.get("host", str), fields.get("port", int))


# ---------------------------------------------------------------- lists of partitions


def encode_partition_list(partitions: tuple[TopicPartition, ...]) -> bytes:
    """For ISR change notifications and `/admin/preferred_replica_election`."""
    items = [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]
    return encode({"version": 1, "partitions": items})


def decode_partition_list(data: bytes) -> tuple[TopicPartition, ...]:
    """Return the partitions in data of `encode_partition_list`, each once, in the data's order.

    Data that is not JSON gives an empty tuple. Raises MalformedZnode for empty data and for JSON
    without a list of partitions.
    """
    try:
        fields = decode(data, "a partition list")
    except NotJson:
        return ()
    items = fields.get("partitions", list[_Partition])
    return tuple(dict.fromkeys(TopicPartition(item.topic, item.partition) for item in items))


class _Partition(msgspec.Struct):
    topic: str
    partition: Int32


def encode_reassignment(targets: dict[TopicPartition, tuple[int, ...]]) -> bytes:
    items = [{**tp._asdict(), "replicas": replicas} for tp, replicas in targets.items()]
    return encode({"version": 1, "partitions": items})


class _Target(msgspec.Struct, forbid_unknown_fields=True):
    topic: str
    replicas: tuple[Int32, ...]
    partition: Int32 = 0


class _Targets(msgspec.Struct, forbid_unknown_fields=True):
    partitions: list[_Target]
    version: Any = 1


def decode_reassignment(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """Raises MalformedZnode for other data than Kafka's, or a key that Kafka does not know."""
    targets: _Targets = decode(data, REASSIGN_PARTITIONS).all(_Targets)
    items = targets.partitions
    # If the data lists a partition twice, the result has the later entry.
    return {TopicPartition(item.topic, item.partition): item.replicas for item in items}


def encode_log_dir_event(broker_id: int) -> bytes:
    return encode({"version": 1, "broker": broker_id, "event": 1})


def decode_log_dir_event(data: bytes) -> int:
    broker_id: int = decode(data, "a log dir notification").get("broker", Int32)
    return broker_id


# ---------------------------------------------------------------- other znodes of the startup


def encode_cluster_id(cluster_id: str) -> bytes:
    return encode({"version": "1", "id": cluster_id})


def encode_feature(status: int, format_version: int = 1) -> bytes:
    return encode({"features": {}, "version": format_version, "status": status})


def encode_producer_id_block(broker_id: int, start: int, end: int) -> bytes:
    block = {"block_start": str(start), "block_end": str(end)}
    return encode({"version": 1, "broker": broker_id, **block})


def decode_producer_id_block_end(data: bytes) -> int:
    return int(decode(data, PRODUCER_ID_BLOCK).get("block_end", str))
