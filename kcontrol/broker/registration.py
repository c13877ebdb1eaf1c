"""The registration of a broker in ZooKeeper, and the creation of persistent znodes.

Source: KafkaZkClient.registerBroker and CheckedEphemeral (2.8); ZkUtils.registerBrokerInZk (0.8.1),
ZKCheckedEphemeral (0.9.0).
"""

from kcontrol.core import znodes as zk
from kcontrol.core.controller_rules import Rules
from kcontrol.core.effects import Exists, Handler, Op, Read, Sleep, Transaction, UpdateContext
from kcontrol.core.effects import TransactionResult as Result


class WriteFailed(Exception):
    """ZooKeeper has refused a write. During the start of a broker this error ends the process."""


def make_sure_path_exists(path: str, data: bytes = b"") -> Handler:
    """Returns whether the znode was created. Raises WriteFailed."""
    result: Result = yield Transaction((Op("create", path, data),))
    if result.code == "NoNode":
        yield from make_sure_path_exists(zk.parent(path))
        result = yield Transaction((Op("create", path, data),))
    if result.code not in ("OK", "NodeExists"):
        raise WriteFailed(f"creating {path} failed with {result.code}")
    return result.is_ok


def get_or_generate_cluster_id(cluster_id: str) -> Handler:
    """Create `/cluster/id` with `cluster_id` if the znode is missing, else keep the existing id.

    Unlike Kafka's method, return nothing. Raises WriteFailed if ZooKeeper refuses the write.
    Source: KafkaServer.getOrGenerateClusterId (0.10.1, 2.8).
    """
    (znode,) = yield Read((zk.CLUSTER_ID,))
    if znode is None:
        yield from make_sure_path_exists(zk.CLUSTER_ID, zk.encode_cluster_id(cluster_id))


def make_sure_path_exists_after_read(path: str) -> Handler:
    """Create a persistent znode and its parents if a read shows that the znode is missing.

    Raises WriteFailed after any error of a write but NodeExists. Source:
    ZkUtils.makeSurePersistentPathExists (0.8.1 to 1.0).
    """
    (stat,) = yield Exists((path,))
    if stat is None:
        yield from make_sure_path_exists(path)


def create_broker_znode(
    rules: Rules, broker_id: int, endpoint: zk.BrokerEndpoint, timestamp_ms: int, session: int = 0
) -> Handler:
    """Create `/brokers/ids/<id>` with `endpoint` and the time `timestamp_ms`.

    An existing znode of the ZooKeeper session `session` (0: unknown) is kept. Since 2.2 store the
    znode's czxid as broker epoch. Raises WriteFailed if the write fails for another reason.
    """
    path = zk.broker_path(broker_id)
    data = zk.encode_broker(endpoint, timestamp_ms, rules.broker_znode)
    if rules.registers_with_version:
        # The second operation makes the data version 1.
        ops = (Op("create", path, ephemeral=True), Op("set", path, data, expected_version=0))
        result: Result = yield Transaction(ops)
    else:
        result = yield Transaction((Op("create", path, data, ephemeral=True),))
    # After a restart within the session timeout another session owns the znode.
    if result.code == "NodeExists" and session:
        (stat,) = yield Exists((path,))
        if stat and stat.ephemeral_owner == session:
            yield from _update_broker_epoch(rules, stat.czxid)
            return
    if not result.is_ok:
        text = f"registering {path} failed with {result.code}: an earlier session holds it"
        raise WriteFailed(text)
    yield from _update_broker_epoch(rules, result.zxid)


def _update_broker_epoch(rules: Rules, zxid: int) -> Handler:
    if rules.broker_epochs:
        yield UpdateContext("broker_epoch", zxid, context="broker")


def create_broker_znode_expecting_conflict(
    rules: Rules,
    broker_id: int,
    endpoint: zk.BrokerEndpoint,
    timestamp_ms: int,
    session_timeout_ms: int,
) -> Handler:
    """Create `/brokers/ids/<id>` with `endpoint` and the time `timestamp_ms`.

    Wait `session_timeout_ms`, again and again, while an earlier session's znode of this broker
    exists. Raises WriteFailed if this znode has another endpoint.
    Source: ZkUtils.createEphemeralPathExpectConflictHandleZKBug (0.8.1).
    """
    path = zk.broker_path(broker_id)
    data = zk.encode_broker(endpoint, timestamp_ms, rules.broker_znode)
    while True:
        result: Result = yield Transaction((Op("create", path, data, ephemeral=True),))
        if result.is_ok:
            return
        if result.code == "NoNode":
            yield from make_sure_path_exists(zk.parent(path))
            continue
        (znode,) = yield Read((path,))
        if znode is None:
            continue
        if znode.data == data:  # the connection was lost after the znode had been created
            return
        if zk.decode_broker(znode.data) != endpoint:
            raise WriteFailed(f"{path} is taken by a broker with another host or port")
        yield Sleep(session_timeout_ms)
