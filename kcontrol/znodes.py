"""Where the control plane keeps what, and how it is written there.

Paths are functions, codecs come in pairs of `encode_x` and `decode_x`. Decoders raise `MalformedZnode` on anything else.
Source: ZkData.scala (2.8).
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from kcontrol.kafka_json import Fields, Int32, MalformedZnode, NotJson, decode, encode, in_hash_order, java_int
from kcontrol.model import RECOVERED, LeaderAndIsr, ReplicaAssignment, TopicPartition

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
    """The partition whose state znode this is, or None."""
    found = _STATE_PATH.fullmatch(path) if path.endswith("/state") else None
    return TopicPartition(found.group(1), int(found.group(2))) if found else None


def parent(path: str) -> str:
    """The path above; that of a top-level path is `/`."""
    return path.rpartition("/")[0] or "/"


# ---------------------------------------------------------------- /controller and /controller_epoch


def encode_controller(broker_id: int, timestamp_ms: int, version: int = 1) -> bytes:
    """Version 2 also names the epoch of a KRaft controller, which is none (KIP-866). Source: ControllerZNode.encode (3.4)."""
    value = {"version": version, "brokerid": broker_id, "timestamp": str(timestamp_ms)}
    return encode(value | {"kraftControllerEpoch": -1} if version > 1 else value)


def decode_controller(data: bytes, *, or_bare_id: bool = True) -> int:
    """Return the id of the broker that `/controller` names, as JSON or, up to 1.0, as an integer alone.

    Raises MalformedZnode. Source: KafkaController.parseControllerId (0.8.1 to 1.0), ControllerZNode.decode (1.1).
    """
    try:
        broker_id: int = decode(data, CONTROLLER).get("brokerid", Int32)
    except MalformedZnode:
        if not or_bare_id:
            raise
        try:
            broker_id = java_int(data.decode())
        except ValueError:
            raise MalformedZnode(f"{CONTROLLER} holds {data.decode(errors='replace')!r}, neither JSON nor a broker id") from None
    return broker_id


def encode_controller_epoch(controller_epoch: int) -> bytes:
    return str(controller_epoch).encode()


def decode_controller_epoch(data: bytes) -> int:
    try:
        return java_int(data.decode())
    except ValueError:
        raise MalformedZnode(f"{CONTROLLER_EPOCH} holds {data.decode(errors='replace')!r}, which is no number") from None


# ---------------------------------------------------------------- the state of a partition


def encode_state(value: LeaderAndIsr) -> bytes:
    isr = ",".join(map(str, value.isr))
    recovery = f'"leader_recovery_state":{value.leader_recovery_state},' if value.leader_recovery_state != RECOVERED else ""
    return (
        f'{{"controller_epoch":{value.controller_epoch},"leader":{value.leader},"version":1,{recovery}'
        f'"leader_epoch":{value.leader_epoch},"isr":[{isr}]}}'
    ).encode()


class _State(msgspec.Struct):
    leader: Int32
    leader_epoch: Int32
    isr: tuple[Int32, ...]
    controller_epoch: Int32
    leader_recovery_state: Int32 = RECOVERED


_decode_state = msgspec.json.Decoder(_State).decode


def decode_state(data: bytes, zk_version: int = -1) -> LeaderAndIsr:
    """What a state znode says, as of `zk_version`."""
    try:
        state = _decode_state(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        state = decode(data, "a state znode").all(_State)
    leader, isr, leader_epoch, controller_epoch = state.leader, state.isr, state.leader_epoch, state.controller_epoch
    return LeaderAndIsr(leader, isr, leader_epoch, zk_version, controller_epoch, state.leader_recovery_state)


# ---------------------------------------------------------------- topics


class TopicZnode(NamedTuple):
    """What `/brokers/topics/<t>` says: replicas by partition number, and since 2.8 the topic's id."""

    partitions: dict[int, ReplicaAssignment]
    topic_id: str | None = None


def encode_topic(topic: TopicZnode, version: int = 3) -> bytes:
    """The topic znode in one of its formats: 1 has replicas alone, 2 what is added and removed as well, 3 an id too.

    A partition is named among adding or removing only if it has some. The order of the keys is that of the hash maps that Kafka
    fills.
    """
    rows = {str(p): a for p, a in sorted(topic.partitions.items())}
    replicas = in_hash_order({p: a.replicas for p, a in rows.items()})
    if version == 1:
        return encode({"version": 1, "partitions": replicas})
    value: dict[str, Any] = {"partitions": replicas}
    if topic.topic_id:
        value["topic_id"] = topic.topic_id
    value["adding_replicas"] = in_hash_order({p: a.adding for p, a in rows.items() if a.adding})
    value["removing_replicas"] = in_hash_order({p: a.removing for p, a in rows.items() if a.removing})
    return encode(value | {"version": version})


def decode_topic(data: bytes) -> TopicZnode:
    """The assignments of a topic, and its id if it has one. No JSON at all, or no partitions, is a topic without partitions."""
    try:
        fields = decode(data, "a topic znode")
    except NotJson:
        return TopicZnode({})
    partitions = fields.get("partitions", dict[str, tuple[Int32, ...]], {})
    adding, removing = (Fields(fields.get(name, dict, {}), "a topic znode") for name in ("adding_replicas", "removing_replicas"))
    topic_id = fields.get("topic_id", str, "") or None
    try:
        return TopicZnode(
            {java_int(p): _assignment(p, replicas, adding, removing) for p, replicas in partitions.items()}, topic_id
        )
    except ValueError as error:
        raise MalformedZnode(f"a topic znode does not map partition numbers to lists of broker ids: {error}") from None


def _assignment(number: str, replicas: tuple[int, ...], adding: Fields, removing: Fields) -> ReplicaAssignment:
    if not (adding.value or removing.value):
        return ReplicaAssignment(replicas)
    return ReplicaAssignment(replicas, *(fields.get(number, tuple[Int32, ...], ()) for fields in (adding, removing)))


def encode_topic_config(overrides: dict[str, str]) -> bytes:
    return encode({"version": 1, "config": overrides})


def encode_config_change(topic: str, version: int) -> bytes:
    """The notification of a topic's changed settings: version 0 is the bare name (0.8.1), 1 has the type of entity, 2 its path.

    Source: AdminUtils.changeTopicConfig (0.8.1), getConfigChangeZnodeData (0.9, 0.10.1),
    ConfigEntityChangeNotificationZNode (2.8).
    """
    named: dict[int, Any] = {
        0: topic,
        1: {"version": 1, "entity_type": "topics", "entity_name": topic},
        2: {"version": 2, "entity_path": f"topics/{topic}"},
    }
    return encode(named[version])


def decode_topic_config(data: bytes) -> dict[str, str]:
    """A topic's settings that differ from the broker's."""
    config = decode(data, "a topic's configuration").get("config", dict)
    return {str(key): str(value) for key, value in config.items()}


# ---------------------------------------------------------------- brokers


class BrokerEndpoint(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int


def encode_broker(endpoint: BrokerEndpoint, timestamp_ms: int, version: int = 5) -> bytes:
    """A broker's registration with one PLAINTEXT listener, in one of its formats; each names what the one before does not.

    Source: Broker.scala and ZkUtils.registerBrokerInZk (0.8.1), BrokerIdZNode.encode (2.8).
    """
    value = {
        "features": {},
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        "endpoints": [f"PLAINTEXT://{endpoint.host}:{endpoint.port}"],
        "jmx_port": -1,
        "port": endpoint.port,
        "host": endpoint.host,
        "version": version,
        "timestamp": str(timestamp_ms),
    }
    since = {"endpoints": 2, "listener_security_protocol_map": 4, "features": 5}
    return encode({key: held for key, held in value.items() if version >= since.get(key, 1)})


def decode_broker(data: bytes) -> BrokerEndpoint:
    fields = decode(data, "a broker's registration")
    return BrokerEndpoint(fields.get("host", str), fields.get("port", int))


# ---------------------------------------------------------------- lists of partitions


def encode_partition_list(partitions: tuple[TopicPartition, ...]) -> bytes:
    """The body of an ISR change notification and of `/admin/preferred_replica_election`."""
    return encode({"version": 1, "partitions": [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]})


def decode_partition_list(data: bytes) -> tuple[TopicPartition, ...]:
    """The partitions of such a list, each once. No JSON at all is an empty list."""
    try:
        fields = decode(data, "a partition list")
    except NotJson:
        return ()
    return tuple(dict.fromkeys(TopicPartition(item.topic, item.partition) for item in fields.get("partitions", list[_Partition])))


class _Partition(msgspec.Struct):
    topic: str
    partition: Int32


def encode_reassignment(targets: dict[TopicPartition, tuple[int, ...]]) -> bytes:
    items = [{"topic": tp.topic, "partition": tp.partition, "replicas": replicas} for tp, replicas in targets.items()]
    return encode({"version": 1, "partitions": items})


class _Target(msgspec.Struct, forbid_unknown_fields=True):
    topic: str
    replicas: tuple[Int32, ...]
    partition: Int32 = 0


class _Targets(msgspec.Struct, forbid_unknown_fields=True):
    partitions: list[_Target]
    version: Any = 1


def decode_reassignment(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """The targets by partition, the last one if a partition is there twice; a key that Kafka does not know is an error."""
    targets: _Targets = decode(data, REASSIGN_PARTITIONS).all(_Targets)
    return {TopicPartition(item.topic, item.partition): item.replicas for item in targets.partitions}


def encode_log_dir_event(broker_id: int) -> bytes:
    return encode({"version": 1, "broker": broker_id, "event": 1})


def decode_log_dir_event(data: bytes) -> int:
    broker_id: int = decode(data, "a log dir notification").get("broker", Int32)
    return broker_id


# ---------------------------------------------------------------- the rest of what a broker writes at its start


def encode_cluster_id(cluster_id: str) -> bytes:
    return encode({"version": "1", "id": cluster_id})


def encode_feature(status: int, version: int = 1) -> bytes:
    return encode({"features": {}, "version": version, "status": status})


def encode_producer_id_block(broker_id: int, start: int, end: int) -> bytes:
    return encode({"version": 1, "broker": broker_id, "block_start": str(start), "block_end": str(end)})


def decode_producer_id_block_end(data: bytes) -> int:
    return int(decode(data, PRODUCER_ID_BLOCK).get("block_end", str))
