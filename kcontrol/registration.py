"""How a broker makes itself known in ZooKeeper.

Source: KafkaZkClient.registerBroker and CheckedEphemeral (2.8); ZkUtils.registerBrokerInZk (0.8.1), ZKCheckedEphemeral (0.9.0).
"""

from __future__ import annotations

from kcontrol.effects import Exists, Handler, Learn, Op, Read, Result, Sleep, Transaction
from kcontrol.generations import Rules
from kcontrol.znodes import CLUSTER_ID, BrokerEndpoint, broker_path, decode_broker, encode_broker, encode_cluster_id, parent


class WriteFailed(Exception):
    """ZooKeeper has refused a write for a reason that no race explains."""


def ensure(path: str, data: bytes = b"") -> Handler:
    """Create a persistent znode with its parents, unless it is there. Return whether it was created."""
    result: Result = yield Transaction((Op("create", path, data),))
    if result.code == "NoNode":
        yield from ensure(parent(path))
        result = yield Transaction((Op("create", path, data),))
    if result.code not in ("OK", "NodeExists"):
        raise WriteFailed(f"creating {path} failed with {result.code}")
    return result.is_ok


def name_cluster(cluster_id: str) -> Handler:
    """The first broker of a cluster names it. Source: KafkaServer.getOrGenerateClusterId (0.10.1, 2.8)."""
    (znode,) = yield Read((CLUSTER_ID,))
    if znode is None:
        yield from ensure(CLUSTER_ID, encode_cluster_id(cluster_id))


def ensure_if_missing(path: str) -> Handler:
    """The same after a look whether it is there. Source: ZkUtils.makeSurePersistentPathExists (0.8.1 to 1.0)."""
    (stat,) = yield Exists((path,))
    if stat is None:
        yield from ensure(path)


def register(rules: Rules, broker_id: int, endpoint: BrokerEndpoint, timestamp_ms: int, session: int = 0) -> Handler:
    """Create and set `/brokers/ids/<id>` in one transaction, so that a fresh registration has data version 1.

    The zxid of that is the broker epoch, which this broker knows from now on if the release has any. A znode that `session` holds
    already is left as it is. Raises WriteFailed if another session holds it, as after a restart within the session timeout.
    """
    path = broker_path(broker_id)
    data = encode_broker(endpoint, timestamp_ms, rules.broker_znode)
    if rules.registers_with_version:
        result: Result = yield Transaction((Op("create", path, ephemeral=True), Op("set", path, data, version=0)))
    else:
        result = yield Transaction((Op("create", path, data, ephemeral=True),))
    if result.code == "NodeExists" and session:
        (stat,) = yield Exists((path,))
        if stat and stat.ephemeral_owner == session:
            yield from _learn_broker_epoch(rules, stat.czxid)
            return
    if not result.is_ok:
        raise WriteFailed(f"registering {path} failed with {result.code}: the session of an earlier life still holds it")
    yield from _learn_broker_epoch(rules, result.zxid)


def _learn_broker_epoch(rules: Rules, zxid: int) -> Handler:
    if rules.broker_epochs:
        yield Learn("broker_epoch", zxid, context="broker")


def register_patiently(
    rules: Rules, broker_id: int, endpoint: BrokerEndpoint, timestamp_ms: int, session_timeout_ms: int
) -> Handler:
    """Create `/brokers/ids/<id>`; one that describes this very broker is waited out, a session timeout at a time.

    Raises WriteFailed if it describes another one. Source: ZkUtils.createEphemeralPathExpectConflictHandleZKBug (0.8.1).
    """
    path = broker_path(broker_id)
    data = encode_broker(endpoint, timestamp_ms, rules.broker_znode)
    while True:
        result: Result = yield Transaction((Op("create", path, data, ephemeral=True),))
        if result.is_ok:
            return
        if result.code == "NoNode":
            yield from ensure(parent(path))
            continue
        (znode,) = yield Read((path,))
        if znode is None:
            continue
        if znode.data == data:  # the connection was lost after the znode had been created
            return
        if decode_broker(znode.data) != endpoint:
            raise WriteFailed(f"{path} is taken by a broker that listens somewhere else")
        yield Sleep(session_timeout_ms)
