"""Becoming controller, ceasing to be controller, and noticing which of the two it is.

Source: KafkaController.scala (2.8): processStartup, elect, maybeResign, triggerControllerMove, onControllerResignation; and
KafkaZkClient.registerControllerAndIncrementControllerEpoch.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from kcontrol.controller.context import ControllerContext
from kcontrol.controller.elections_on_request import FIRST_REBALANCE_MS, arm_rebalance, pending_preferred_elections
from kcontrol.controller.failover import failover
from kcontrol.effects import (
    Cancel,
    ControllerMoved,
    Effect,
    Exists,
    Handler,
    Learn,
    Op,
    Read,
    Result,
    Transaction,
    Unwatch,
    Watch,
    Writes,
    Znode,
)
from kcontrol.events import ControllerChange, Expire, Reelect, RegisterBrokerAndReelect, Startup
from kcontrol.registration import WriteFailed, register
from kcontrol.znodes import (
    BROKER_IDS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    DELETE_TOPICS,
    ISR_CHANGE_NOTIFICATION,
    LOG_DIR_EVENT_NOTIFICATION,
    PREFERRED_REPLICA_ELECTION,
    REASSIGN_PARTITIONS,
    TOPICS,
    BrokerEndpoint,
    broker_path,
    decode_controller,
    decode_controller_epoch,
    encode_controller,
    encode_controller_epoch,
    topic_path,
)

FORGOTTEN_AT_RESIGNATION = (
    "live_brokers", "live_broker_epochs", "shutting_down_broker_ids", "offline_dirs", "all_topics", "topic_ids",
    "assignments", "leadership", "partition_states", "replica_states", "topics_to_be_deleted",
)  # fmt: skip


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
    yield from register(ctx.broker_id, BrokerEndpoint(event.host, event.port), event.timestamp_ms, event.session)
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
    try:
        yield from _register(ctx, timestamp_ms)
        yield from failover(ctx)
        yield from pending_preferred_elections(ctx)
        yield from arm_rebalance(ctx, FIRST_REBALANCE_MS)
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


def resign(ctx: ControllerContext) -> Handler:
    """Stop listening, forget everything. `/controller` is still listened to."""
    for path in (ISR_CHANGE_NOTIFICATION, LOG_DIR_EVENT_NOTIFICATION):
        yield Unwatch(path, children=True)
    yield Cancel("auto-leader-rebalance")
    for path in (REASSIGN_PARTITIONS, PREFERRED_REPLICA_ELECTION, *map(broker_path, sorted(ctx.live_brokers))):
        yield Unwatch(path)
    for topic in sorted(ctx.all_topics):
        yield Unwatch(topic_path(topic))
    for path in (TOPICS, DELETE_TOPICS, BROKER_IDS):
        yield Unwatch(path, children=True)
    for name in FORGOTTEN_AT_RESIGNATION:
        if getattr(ctx, name):
            yield Learn(name, clear=True)
    yield Learn("controller_epoch", 0)
    yield Learn("controller_epoch_zk_version", 0)


# ---------------------------------------------------------------- the election itself


def _learn_active_controller(ctx: ControllerContext) -> Handler:
    (znode,) = yield Read((CONTROLLER,), watch=True)
    yield Learn("active_controller_id", decode_controller(znode.data) if znode else -1)


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
    result: Result = yield Transaction(
        (
            Op("create", CONTROLLER, encode_controller(ctx.broker_id, timestamp_ms), ephemeral=True),
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


def _check_whether_it_was_us(ctx: ControllerContext, controller_epoch: int) -> Generator[Effect, Any, int]:
    """A transaction that was sent twice fails the second time although it had succeeded: the stored names tell.

    Raises ControllerMoved if it was somebody else's.
    """
    znode: Znode | None
    (znode,) = yield Read((CONTROLLER,), watch=True)
    if znode is None:
        raise ControllerMoved
    stored = yield from _read_controller_epoch()
    if decode_controller(znode.data) == ctx.broker_id and stored and stored[0] == controller_epoch:
        return stored[1]
    raise ControllerMoved
