"""The startup of a broker whose controller has an event thread (0.11 on): writes to ZooKeeper.

Source: KafkaServer.startup, ProducerIdManager.getNewProducerIdBlock (1.0, 2.8);
KafkaZkClient.createTopLevelPaths (2.8), ZkUtils.setupCommonPaths and KafkaHealthcheck.register
(1.0).
"""

from kcontrol.broker.context import BrokerContext
from kcontrol.broker.events import BrokerStartup
from kcontrol.broker.registration import (
    create_broker_znode,
    get_or_generate_cluster_id,
    make_sure_path_exists,
    make_sure_path_exists_after_read,
)
from kcontrol.core import znodes as zk
from kcontrol.core.effects import Enqueue, Handler, Op, Read, Transaction, TransactionResult
from kcontrol.core.events import Startup

PRODUCER_IDS_PER_BLOCK = 1_000


def startup(ctx: BrokerContext, event: BrokerStartup) -> Handler:
    """Create root znodes and cluster id, register the broker, and queue the event Startup.

    At Startup the broker competes for `/controller`. Before 1.1 the registration is the last step:
    the broker can compete before it is registered.
    """
    for path in ctx.rules.root_paths:
        create = make_sure_path_exists if ctx.rules.pipelined else make_sure_path_exists_after_read
        yield from create(path)
    yield from get_or_generate_cluster_id(event.cluster_id)
    if ctx.rules.registers_first:
        yield from _register(ctx, event)
    yield Enqueue(Startup())
    # From 0.11 to 2.8 a broker takes a block of producer ids here; since 3.0 it requests ids on
    # demand.
    if ctx.rules.takes_producer_ids:
        yield from _new_producer_id_block(ctx.broker_id)
    if not ctx.rules.registers_first:
        yield from _register(ctx, event)


def _register(ctx: BrokerContext, event: BrokerStartup) -> Handler:
    endpoint = zk.BrokerEndpoint(event.host, event.port)
    yield from create_broker_znode(ctx.rules, ctx.broker_id, endpoint, event.timestamp_ms)


def _new_producer_id_block(broker_id: int) -> Handler:
    """Write the next thousand producer ids, for `broker_id`, to `/latest_producer_id_block`.

    After a version conflict read the znode again and retry. If the znode is missing, take no ids.
    """
    while True:
        (znode,) = yield Read((zk.PRODUCER_ID_BLOCK,))
        if znode is None:
            return
        start = zk.decode_producer_id_block_end(znode.data) + 1 if znode.data else 0
        block = zk.encode_producer_id_block(broker_id, start, start + PRODUCER_IDS_PER_BLOCK - 1)
        write = Op("set", zk.PRODUCER_ID_BLOCK, block, znode.stat.version)
        result: TransactionResult = yield Transaction((write,))
        if result.code != "BadVersion":
            return
