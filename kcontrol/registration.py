"""How a broker makes itself known: one transaction that creates its ephemeral znode and fills it.

Source: KafkaZkClient.registerBroker and CheckedEphemeral (2.8).
"""

from __future__ import annotations

from kcontrol.effects import Exists, Handler, Op, Result, Transaction
from kcontrol.znodes import BrokerEndpoint, broker_path, encode_broker


class WriteFailed(Exception):
    """ZooKeeper has refused a write for a reason that no race explains."""


def register(broker_id: int, endpoint: BrokerEndpoint, timestamp_ms: int, session: int = 0) -> Handler:
    """Create and set `/brokers/ids/<id>` in one transaction, so that a fresh registration has data version 1.

    A znode that `session` holds already is left as it is. Raises WriteFailed if another session holds it, as after a restart
    within the session timeout.
    """
    path = broker_path(broker_id)
    data = encode_broker(endpoint, timestamp_ms)
    result: Result = yield Transaction((Op("create", path, ephemeral=True), Op("set", path, data, version=0)))
    if result.code == "NodeExists" and session:
        (stat,) = yield Exists((path,))
        if stat and stat.ephemeral_owner == session:
            return
    if not result.is_ok:
        raise WriteFailed(f"registering {path} failed with {result.code}: the session of an earlier life still holds it")
