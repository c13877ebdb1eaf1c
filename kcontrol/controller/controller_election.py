"""Becoming controller, ceasing to be controller, and noticing which of the two it is.

Source: KafkaController.scala (2.8): processStartup, elect, maybeResign, triggerControllerMove, onControllerResignation; and
KafkaZkClient.registerControllerAndIncrementControllerEpoch.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from kcontrol.controller.context import ControllerContext
from kcontrol.controller.failover_and_resignation import resign, take_over
from kcontrol.effects import ControllerMoved, Effect, Exists, Handler, Learn, Op, Read, Result, Transaction, Watch, Writes, Znode
from kcontrol.events import ControllerChange, Expire, Reelect, RegisterBrokerAndReelect, Startup
from kcontrol.registration import WriteFailed, register
from kcontrol.znodes import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    BrokerEndpoint,
    decode_controller,
    decode_controller_epoch,
    encode_controller,
    encode_controller_epoch,
)


def startup(ctx: ControllerContext, event: Startup) -> Handler:
    """Listen to `/controller` for life, and compete for it."""
    yield Watch(CONTROLLER)
    yield Exists((CONTROLLER,), watch=True)
    yield from elect(ctx, event.timestamp_ms)


def reelect(ctx: ControllerContext, event: Reelect) -> Handler:
    """Give up what is lost, then compete for what is free."""
    yield from maybe_resign(ctx)
    yield from elect(ctx, event.timestamp_ms)


def controller_change(ctx: ControllerContext, event: ControllerChange) -> Handler:
    """Somebody is named in `/controller`: give up if it is somebody else, but never compete."""
    yield from maybe_resign(ctx)


def expire(ctx: ControllerContext, event: Expire) -> Handler:
    """Without a session nobody rules: resign, whether active or not."""
    yield Learn("active_controller_id", -1)
    yield from resign(ctx)


def register_and_reelect(ctx: ControllerContext, event: RegisterBrokerAndReelect) -> Handler:
    """Under a new session: register anew, which gives a new broker epoch, and compete again."""
    yield from register(ctx.rules, ctx.broker_id, BrokerEndpoint(event.host, event.port), event.timestamp_ms, event.session)
    yield from maybe_resign(ctx)
    yield from elect(ctx, event.timestamp_ms)


def maybe_resign(ctx: ControllerContext) -> Handler:
    """Read who rules, with the watch set anew, and resign if it was this broker and is no longer."""
    was_active = ctx.is_active
    yield Watch(CONTROLLER)
    yield Exists((CONTROLLER,), watch=True)
    yield from _learn_active_controller(ctx)
    if was_active and not ctx.is_active:
        yield from resign(ctx)


def elect(ctx: ControllerContext, timestamp_ms: int) -> Handler:
    """Compete for `/controller`, and take over if won."""
    yield from _learn_active_controller(ctx)
    if ctx.active_controller_id != -1:
        return
    if not ctx.rules.elects_with_epoch:
        yield from _elect_by_znode_alone(ctx, timestamp_ms)
        return
    try:
        yield from _register(ctx, timestamp_ms)
        yield from take_over(ctx)
    except ControllerMoved:
        yield from maybe_resign(ctx)
    except Exception:
        yield from trigger_controller_move(ctx)
        raise


def trigger_controller_move(ctx: ControllerContext) -> Handler:
    """Give `/controller` up so that somebody else may try; without resigning if it is somebody else's already."""
    yield from _learn_active_controller(ctx)
    if not ctx.is_active:
        return
    fence = ctx.controller_epoch_zk_version
    yield Learn("active_controller_id", -1)
    yield from resign(ctx)
    try:
        yield Writes(((Op("delete", CONTROLLER),),), fence=fence)
    except ControllerMoved:
        return  # it was deleted and taken in the meantime, which is as good


# ---------------------------------------------------------------- the election itself


def _learn_active_controller(ctx: ControllerContext) -> Handler:
    (znode,) = yield Read((CONTROLLER,), watch=True)
    yield Learn("active_controller_id", decode_controller(znode.data, or_bare_id=False) if znode else -1)


def _read_controller_epoch() -> Generator[Effect, Any, tuple[int, int] | None]:
    (znode,) = yield Read((CONTROLLER_EPOCH,))
    return (decode_controller_epoch(znode.data), znode.stat.version) if znode else None


def _register(ctx: ControllerContext, timestamp_ms: int) -> Handler:
    """`/controller` and the next epoch in one transaction: whoever comes second has lost both.

    Raises ControllerMoved if another broker has won.
    """
    stored = yield from _read_controller_epoch()
    if stored is None:
        created: Result = yield Transaction((Op("create", CONTROLLER_EPOCH, encode_controller_epoch(0)),))
        stored = (0, 0) if created.is_ok else (yield from _read_controller_epoch())
    if stored is None:
        raise ControllerMoved
    controller_epoch, zk_version = stored[0] + 1, stored[1]
    data = encode_controller(ctx.broker_id, timestamp_ms, ctx.rules.controller_znode)
    result: Result = yield Transaction(
        (
            Op("create", CONTROLLER, data, ephemeral=True),
            Op("set", CONTROLLER_EPOCH, encode_controller_epoch(controller_epoch), zk_version),
        )
    )
    if result.is_ok:
        zk_version = result.versions[1] or 0
    elif result.code in ("NodeExists", "BadVersion"):
        zk_version = yield from _check_whether_it_was_us(ctx, controller_epoch)
    else:
        raise WriteFailed(f"registering as controller failed with {result.code}")
    yield Learn("controller_epoch", controller_epoch)
    yield Learn("controller_epoch_zk_version", zk_version)
    yield Learn("active_controller_id", ctx.broker_id)


def _elect_by_znode_alone(ctx: ControllerContext, timestamp_ms: int) -> Handler:
    """`/controller` alone decides, and the epoch is written while taking over; who fails there deletes it, whosever it is.

    Source: KafkaController.elect and triggerControllerMove, KafkaZkClient.checkedEphemeralCreate (1.1).
    """
    data = encode_controller(ctx.broker_id, timestamp_ms)
    result: Result = yield Transaction((Op("create", CONTROLLER, data, ephemeral=True),))
    if not result.is_ok:
        yield from _learn_active_controller(ctx)
        return
    yield Learn("active_controller_id", ctx.broker_id)
    try:
        yield from take_over(ctx)
    except Exception:
        yield from resign(ctx)
        yield Learn("active_controller_id", -1)
        yield Writes(((Op("delete", CONTROLLER),),))
        raise


def _check_whether_it_was_us(ctx: ControllerContext, controller_epoch: int) -> Generator[Effect, Any, int]:
    """A transaction that was sent twice fails the second time although it had succeeded: the stored names tell.

    Raises ControllerMoved if it was somebody else's.
    """
    znode: Znode | None
    (znode,) = yield Read((CONTROLLER,), watch=True)
    if znode is None:
        raise ControllerMoved
    stored = yield from _read_controller_epoch()
    if decode_controller(znode.data, or_bare_id=False) == ctx.broker_id and stored and stored[0] == controller_epoch:
        return stored[1]
    raise ControllerMoved
