"""How a broker makes itself known: one transaction that creates its ephemeral znode and fills it.

Source: KafkaZkClient.registerBroker and CheckedEphemeral (2.8).
"""

from __future__ import annotations

from kcontrol.effects import Handler, Op, Result, Transaction
from kcontrol.znodes import BrokerEndpoint, broker_path, encode_broker


class WriteFailed(Exception):
    """ZooKeeper has refused a write for a reason that no race explains."""


def register(broker_id: int, endpoint: BrokerEndpoint, timestamp_ms: int) -> Handler:
    """Create and set `/brokers/ids/<id>` in one transaction, so that a fresh registration has data version 1.

    Raises WriteFailed if another session holds the znode, as after a restart within the session timeout.
    """
    path = broker_path(broker_id)
    data = encode_broker(endpoint, timestamp_ms)
    result: Result = yield Transaction((Op("create", path, ephemeral=True), Op("set", path, data, version=0)))
    if not result.is_ok:
        raise WriteFailed(f"registering {path} failed with {result.code}: the session of an earlier life still holds it")
