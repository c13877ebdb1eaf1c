"""The election of the controller from 0.8.0 to 0.10.2, where listeners share one lock.

The election has faults, which `core/controller_rules.py` lists by release: for example, nothing
fences the writes of a controller that has lost its term.

Source: ZookeeperLeaderElector.scala, KafkaController.scala (SessionExpirationListener, startup),
KafkaServer.scala (0.8.1 to 0.10.2).
"""

from kcontrol.broker import registration
from kcontrol.broker.events import BrokerStartup
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.design import on_controller_failover, on_controller_resignation
from kcontrol.controller.earlier.controller_epoch_increment import read_controller_epoch
from kcontrol.core import effects, events
from kcontrol.core import znodes as zk
from kcontrol.core.effects import Handler

NO_CONTROLLER = -1


def broker_startup(ctx: ControllerContext, event: BrokerStartup) -> Handler:
    """Create persistent znodes such as `/brokers/ids`, compete for `/controller`, and register.

    In 0.8.0 the broker registers first; since 0.8.1 last, after the election and its failover.

    Source: KafkaServer.startup (0.8.0, 0.8.1).
    """
    if ctx.rules.registers_first:
        yield from _register(ctx, event.host, event.port, event.timestamp_ms)
    for path in ctx.rules.root_paths:
        yield from registration.make_sure_path_exists_after_read(path)
    if ctx.rules.generates_cluster_id:
        yield from registration.get_or_generate_cluster_id(event.cluster_id)
    if ctx.rules.follows_epoch:
        # The read sets no watch, so a write before the watch below goes unnoticed, as in Kafka.
        yield from read_controller_epoch(ctx, watch=False)
        yield effects.RegisterZNodeHandler(zk.CONTROLLER_EPOCH)
        yield effects.Exists((zk.CONTROLLER_EPOCH,), watch=True)
    yield effects.RegisterZNodeHandler(zk.CONTROLLER)
    yield effects.Exists((zk.CONTROLLER,), watch=True)
    yield from elect(ctx, event.timestamp_ms)
    if not ctx.rules.registers_first:
        yield effects.YieldLock()
        yield from _register(ctx, event.host, event.port, event.timestamp_ms)


def _register(
    ctx: ControllerContext, host: str, port: int, timestamp_ms: int, session: int = 0
) -> Handler:
    """Create the znode `/brokers/ids/<id>` with this host, port and time.

    `session` is the id of the broker's present session, 0 if unknown. Since 0.9 an existing znode
    of this session is kept. Raises WriteFailed if a znode of another session is in the way.
    Source: KafkaHealthcheck.register, ZkUtils.registerBrokerInZk (0.8.1, 0.9.0).
    """
    endpoint, timeout_ms = zk.BrokerEndpoint(host, port), ctx.config.zookeeper_session_timeout_ms
    # Before 0.9 the broker waits until the znode is gone; WriteFailed comes if it has another host
    # or port. The owner is not read if `session` is 0.
    if ctx.rules.znode_of_earlier_session == "is awaited":
        yield from registration.create_broker_znode_expecting_conflict(
            ctx.rules, ctx.broker_id, endpoint, timestamp_ms, timeout_ms
        )
    else:
        yield from registration.create_broker_znode(
            ctx.rules, ctx.broker_id, endpoint, timestamp_ms, session
        )


def elect(ctx: ControllerContext, timestamp_ms: int) -> Handler:
    """Create `/controller` with `timestamp_ms`, then run the failover.

    If `/controller` exists, read its id into the context. After an error of the failover the broker
    does not resign; since 0.8.1 it deletes `/controller`.

    Source: ZookeeperLeaderElector.elect (0.8.0, 0.8.1, 0.8.2).
    """
    if ctx.rules.reads_before_electing:
        (znode,) = yield effects.Read((zk.CONTROLLER,), watch=True)
        yield effects.UpdateContext(
            "active_controller_id", zk.decode_controller(znode.data) if znode else NO_CONTROLLER
        )
        if znode:
            return
    try:
        if (yield from _create(ctx, timestamp_ms)):
            yield effects.UpdateContext("active_controller_id", ctx.broker_id)
            yield from on_controller_failover(ctx)
    # The broker keeps its listeners, state machines and channels.
    except Exception as error:
        yield effects.LogError(error)
        yield effects.UpdateContext("active_controller_id", NO_CONTROLLER)
        if ctx.rules.failed_failover == "deletes /controller":
            yield effects.Transaction((effects.Op("delete", zk.CONTROLLER),))


def _create(ctx: ControllerContext, timestamp_ms: int) -> Handler:
    """Create `/controller` with `timestamp_ms`; return whether this broker's session owns it.

    If another session owns the znode, read the id in `/controller` into the context.

    Source: ZkUtils.createEphemeralPathExpectConflictHandleZKBug (0.8.1), ZKCheckedEphemeral
    (0.9.0).
    """
    data = zk.encode_controller(ctx.broker_id, timestamp_ms)
    while True:
        result: effects.TransactionResult = yield effects.Transaction(
            (effects.Op("create", zk.CONTROLLER, data, ephemeral=True),)
        )
        if result.is_ok:
            return True
        (znode,) = yield effects.Read((zk.CONTROLLER,), watch=True)
        if znode is None:
            continue
        if znode.data == data:  # an earlier try has created the znode, and its response was lost
            return True
        named = zk.decode_controller(znode.data)
        if named != ctx.broker_id or ctx.rules.znode_of_earlier_session == "fails":
            yield effects.UpdateContext("active_controller_id", named)
            return False
        # Before 0.9 the broker waits until the znode of its own earlier session is gone.
        yield effects.Sleep(ctx.config.zookeeper_session_timeout_ms)


def leader_change(ctx: ControllerContext, event: events.LeaderChange) -> Handler:
    """Read the broker id in `/controller` into the context, or compete if the znode is missing.

    A controller resigns before it competes (since 0.8.1), and if the znode names another broker
    (since 0.9).

    Source: ZookeeperLeaderElector.LeaderChangeListener (0.8.1, 0.9.0).
    """
    yield effects.Exists((zk.CONTROLLER,), watch=True)
    (znode,) = yield effects.Read((zk.CONTROLLER,), watch=True)
    ruled = ctx.active_controller_id == ctx.broker_id
    if znode is not None:
        yield effects.UpdateContext("active_controller_id", zk.decode_controller(znode.data))
        if ruled and ctx.active_controller_id != ctx.broker_id and ctx.rules.resigns_when_replaced:
            yield from _resign(ctx)
        return
    if ruled and ctx.rules.resigns_when_deleted:
        yield from _resign(ctx)
    yield from elect(ctx, event.timestamp_ms)


def _resign(ctx: ControllerContext) -> Handler:
    """Resign as controller; since 0.10.2 release the controller lock before and after.

    Threads that wait for the lock can run before and after the resignation.

    Source: KafkaController.onControllerResignation (0.10.2, KAFKA-4360).
    """
    if ctx.rules.resigns_unlocked:
        yield effects.YieldLock()
    yield from on_controller_resignation(ctx)
    if ctx.rules.resigns_unlocked:
        yield effects.YieldLock()


def controller_epoch_change(ctx: ControllerContext, event: events.ControllerEpochChange) -> Handler:
    """Read the changed `/controller_epoch` into the context of this broker, controller or not.

    Source: ControllerEpochListener.handleDataChange (0.8.1).
    """
    yield from read_controller_epoch(ctx)


def new_session(ctx: ControllerContext, event: events.NewSession) -> Handler:
    """Resign and compete for `/controller` in the new session.

    Since 0.10.2 do nothing if `/controller` names this broker.

    Source: KafkaController.SessionExpirationListener.handleNewSession (0.8.1, 0.10.2).
    """
    if ctx.rules.skips_own_session:
        (znode,) = yield effects.Read((zk.CONTROLLER,), watch=True)
        if znode and zk.decode_controller(znode.data) == ctx.broker_id:
            return
    yield from _resign(ctx)
    yield from elect(ctx, event.timestamp_ms)


def register_broker(ctx: ControllerContext, event: events.RegisterBroker) -> Handler:
    """Register the broker again: its registration has ended with the session.

    Source: KafkaHealthcheck.SessionExpireListener (0.8.1).
    """
    yield from _register(ctx, event.host, event.port, event.timestamp_ms, event.session)
