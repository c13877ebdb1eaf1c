"""What a broker does with ZooKeeper before it serves, where its controller has an event thread.

Source: KafkaServer.startup, ProducerIdManager.getNewProducerIdBlock (1.0, 2.8); KafkaZkClient.createTopLevelPaths (2.8),
ZkUtils.setupCommonPaths and KafkaHealthcheck.register (1.0).
"""

from __future__ import annotations

from kcontrol.effects import Enqueue, Handler, Op, Read, Result, Transaction
from kcontrol.events import BrokerStartup, Startup
from kcontrol.registration import ensure, ensure_if_missing, name_cluster, register
from kcontrol.replica.context import BrokerContext
from kcontrol.znodes import (
    PRODUCER_ID_BLOCK,
    BrokerEndpoint,
    decode_producer_id_block_end,
    encode_producer_id_block,
)

PRODUCER_IDS_PER_BLOCK = 1_000


def startup(ctx: BrokerContext, event: BrokerStartup) -> Handler:
    """Root paths, cluster id, registration; then the controller module starts, and the broker takes its first producer ids.

    Before 1.1 the registration comes last, so that the election is under way by then. Since 3.0 producer ids are asked for when
    somebody needs them.
    """
    for path in ctx.rules.root_paths:
        yield from (ensure if ctx.rules.pipelined else ensure_if_missing)(path)
    yield from name_cluster(event.cluster_id)
    if ctx.rules.registers_first:
        yield from _register(ctx, event)
    yield Enqueue(Startup())
    if ctx.rules.takes_producer_ids:
        yield from _producer_id_block(ctx.broker_id)
    if not ctx.rules.registers_first:
        yield from _register(ctx, event)


def _register(ctx: BrokerContext, event: BrokerStartup) -> Handler:
    yield from register(ctx.rules, ctx.broker_id, BrokerEndpoint(event.host, event.port), event.timestamp_ms)


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
