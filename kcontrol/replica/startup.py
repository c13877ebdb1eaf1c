"""What a broker does with ZooKeeper before it serves, in the order in which 2.8 does it.

Source: KafkaServer.startup, KafkaZkClient.createTopLevelPaths, ProducerIdManager.getNewProducerIdBlock (2.8).
"""

from __future__ import annotations

from kcontrol.effects import Enqueue, Handler, Op, Read, Result, Transaction
from kcontrol.events import BrokerStartup, Startup
from kcontrol.registration import ensure, name_cluster, register
from kcontrol.replica.context import BrokerContext
from kcontrol.znodes import (
    PRODUCER_ID_BLOCK,
    BrokerEndpoint,
    decode_producer_id_block_end,
    encode_producer_id_block,
)

PRODUCER_IDS_PER_BLOCK = 1_000


def startup(ctx: BrokerContext, event: BrokerStartup) -> Handler:
    """Root paths, cluster id, registration; then the controller module starts, and the broker takes its first producer ids."""
    for path in ctx.rules.root_paths:
        yield from ensure(path)
    yield from name_cluster(event.cluster_id)
    yield from register(ctx.rules, ctx.broker_id, BrokerEndpoint(event.host, event.port), event.timestamp_ms)
    yield Enqueue(Startup())
    yield from _producer_id_block(ctx.broker_id)


def _producer_id_block(broker_id: int) -> Handler:
    """Take the next thousand producer ids, again and again until nobody is faster."""
    while True:
        (znode,) = yield Read((PRODUCER_ID_BLOCK,))
        if znode is None:
            return
        start = decode_producer_id_block_end(znode.data) + 1 if znode.data else 0
        block = encode_producer_id_block(broker_id, start, start + PRODUCER_IDS_PER_BLOCK - 1)
        result: Result = yield Transaction((Op("set", PRODUCER_ID_BLOCK, block, znode.stat.version),))
        if result.code != "BadVersion":
            return
