"""How a broker competes for `/controller` where listeners share one lock: `ZookeeperLeaderElector`, with its weaknesses.

Source: ZookeeperLeaderElector.scala, KafkaController.scala (SessionExpirationListener, startup), KafkaServer.scala (0.8.1 on).
"""

from __future__ import annotations

from kcontrol.controller.context import ControllerContext
from kcontrol.controller.controller_epoch import read_controller_epoch
from kcontrol.controller.failover_and_resignation import resign, take_over
from kcontrol.effects import Complain, Exists, Handler, Learn, Op, Read, Release, Result, Sleep, Transaction, Watch
from kcontrol.events import BrokerStartup, ControllerEpochChange, LeaderChange, NewSession, RegisterBroker
from kcontrol.registration import ensure_if_missing, name_cluster, register, register_patiently
from kcontrol.znodes import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    BrokerEndpoint,
    decode_controller,
    encode_controller,
)

NOBODY = -1


def broker_startup(ctx: ControllerContext, event: BrokerStartup) -> Handler:
    """Root paths, then the election and all that follows if it is won, and only then the registration, but for 0.8.0."""
    if ctx.rules.registers_first:
        yield from _register(ctx, event.host, event.port, event.timestamp_ms)
    for path in ctx.rules.root_paths:
        yield from ensure_if_missing(path)
    if ctx.rules.names_cluster:
        yield from name_cluster(event.cluster_id)
    if ctx.rules.follows_epoch:
        yield from read_controller_epoch(ctx, watch=False)  # what is written before the watch is set goes unnoticed
        yield Watch(CONTROLLER_EPOCH)
        yield Exists((CONTROLLER_EPOCH,), watch=True)
    yield Watch(CONTROLLER)
    yield Exists((CONTROLLER,), watch=True)
    yield from elect(ctx, event.timestamp_ms)
    if not ctx.rules.registers_first:
        yield Release()
        yield from _register(ctx, event.host, event.port, event.timestamp_ms)


def _register(ctx: ControllerContext, host: str, port: int, timestamp_ms: int, session: int = 0) -> Handler:
    """Raises WriteFailed for a znode that is taken, from 0.9 on also where it is this broker's from an earlier life."""
    endpoint, timeout_ms = BrokerEndpoint(host, port), ctx.config.zookeeper_session_timeout_ms
    if ctx.rules.own_znode == "waited out":
        yield from register_patiently(ctx.rules, ctx.broker_id, endpoint, timestamp_ms, timeout_ms)
    else:
        yield from register(ctx.rules, ctx.broker_id, endpoint, timestamp_ms, session)


def elect(ctx: ControllerContext, timestamp_ms: int) -> Handler:
    """Create `/controller` and take over, or learn who was first.

    Whatever fails on the way gives `/controller` up again, without a resignation: listeners, machines and channels stay. In 0.8.0
    the znode stays too.
    """
    if ctx.rules.looks_before_electing:
        (znode,) = yield Read((CONTROLLER,), watch=True)
        yield Learn("active_controller_id", decode_controller(znode.data) if znode else NOBODY)
        if znode:
            return
    try:
        if (yield from _create(ctx, timestamp_ms)):
            yield Learn("active_controller_id", ctx.broker_id)
            yield from take_over(ctx)
    except Exception as error:
        yield Complain(error)
        yield Learn("active_controller_id", NOBODY)
        if ctx.rules.failed_failover == "deletes /controller":
            yield Transaction((Op("delete", CONTROLLER),))


def _create(ctx: ControllerContext, timestamp_ms: int) -> Handler:
    """Return whether `/controller` is ours. One that we left behind in an earlier session is waited out, before 0.9."""
    data = encode_controller(ctx.broker_id, timestamp_ms)
    while True:
        result: Result = yield Transaction((Op("create", CONTROLLER, data, ephemeral=True),))
        if result.is_ok:
            return True
        (znode,) = yield Read((CONTROLLER,), watch=True)
        if znode is None:
            continue
        if znode.data == data:  # the connection was lost after the znode had been created
            return True
        named = decode_controller(znode.data)
        if named != ctx.broker_id or ctx.rules.own_znode == "fails":
            yield Learn("active_controller_id", named)
            return False
        yield Sleep(ctx.config.zookeeper_session_timeout_ms)


def leader_change(ctx: ControllerContext, event: LeaderChange) -> Handler:
    """`/controller` names somebody: remember him, and before 0.9 go on even if he is another one. Deleted: compete."""
    yield Exists((CONTROLLER,), watch=True)
    (znode,) = yield Read((CONTROLLER,), watch=True)
    ruled = ctx.active_controller_id == ctx.broker_id
    if znode is not None:
        yield Learn("active_controller_id", decode_controller(znode.data))
        if ruled and ctx.active_controller_id != ctx.broker_id and ctx.rules.resigns_when_replaced:
            yield from _resign(ctx)
        return
    if ruled and ctx.rules.resigns_when_deleted:
        yield from _resign(ctx)
    yield from elect(ctx, event.timestamp_ms)


def _resign(ctx: ControllerContext) -> Handler:
    """Resign; where others may need the lock to come to their end, it is let go before and after."""
    if ctx.rules.resigns_unlocked:
        yield Release()
    yield from resign(ctx)
    if ctx.rules.resigns_unlocked:
        yield Release()


def controller_epoch_change(ctx: ControllerContext, event: ControllerEpochChange) -> Handler:
    """Every broker follows the epoch, the controller too, whoever has written it."""
    yield from read_controller_epoch(ctx)


def new_session(ctx: ControllerContext, event: NewSession) -> Handler:
    """Resign whatever `/controller` says, and compete again; since 0.10.2 only if it does not name this broker."""
    if ctx.rules.skips_own_session:
        (znode,) = yield Read((CONTROLLER,), watch=True)
        if znode and decode_controller(znode.data) == ctx.broker_id:
            return
    yield from _resign(ctx)
    yield from elect(ctx, event.timestamp_ms)


def register_broker(ctx: ControllerContext, event: RegisterBroker) -> Handler:
    """The registration went with the session: make another."""
    yield from _register(ctx, event.host, event.port, event.timestamp_ms, event.session)
