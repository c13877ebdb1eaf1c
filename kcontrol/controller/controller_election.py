"""Handles the election of the controller, and the end of its term.

The broker whose id is in the ephemeral znode `/controller` is controller. Since 2.1 each write
checks the version of `/controller_epoch`, so an earlier controller fails with its next write
(ControllerMoved).

If `/controller` is deleted before a broker has set its watch on it again, no broker of Kafka
creates it: ControllerChange makes a controller resign and starts no election. kcontrol does so too
(`tests/traces/data/deletion-unheard-2.8.txt`).

Source: KafkaController.scala (2.8): processStartup, elect, maybeResign, triggerControllerMove,
onControllerResignation; KafkaZkClient.registerControllerAndIncrementControllerEpoch (2.8).
"""

from collections.abc import Generator
from typing import Any

from kcontrol.broker.registration import WriteFailed, create_broker_znode
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.design import on_controller_failover, on_controller_resignation
from kcontrol.core import effects, events
from kcontrol.core import znodes as zk
from kcontrol.core.effects import Handler


def startup(ctx: ControllerContext, event: events.Startup) -> Handler:
    """Register the handler of `/controller` for the life of the process, and compete for the znode.

    Source: KafkaController.processStartup (2.8).
    """
    yield effects.RegisterZNodeHandler(zk.CONTROLLER)
    yield effects.Exists((zk.CONTROLLER,), watch=True)
    yield from elect(ctx, event.timestamp_ms)


def reelect(ctx: ControllerContext, event: events.Reelect) -> Handler:
    """Resign if this broker is no longer controller, then compete for `/controller` if it is free.

    If `/controller` exists, only store the id that it names in the context. Source:
    KafkaController.processReelect (2.8).
    """
    yield from maybe_resign(ctx)
    yield from elect(ctx, event.timestamp_ms)


def controller_change(ctx: ControllerContext, event: events.ControllerChange) -> Handler:
    """Resign if this broker was controller and `/controller` no longer names this broker.

    Also read the controller's id (-1 without the znode) into the context. Do not compete for the
    znode.

    Source: KafkaController.processControllerChange (2.8).
    """
    yield from maybe_resign(ctx)


def expire(ctx: ControllerContext, event: events.Expire) -> Handler:
    """Resign after the session has expired, whether the broker was controller or not.

    Source: KafkaController.processExpire (2.8).
    """
    yield effects.UpdateContext("active_controller_id", -1)
    yield from on_controller_resignation(ctx)


def register_and_reelect(ctx: ControllerContext, event: events.RegisterBrokerAndReelect) -> Handler:
    """Register the broker in the new session, resign if it was controller, and compete again.

    The registration gives a new broker epoch. Source:
    KafkaController.processRegisterBrokerAndReelect (2.8).
    """
    rules, endpoint = ctx.rules, zk.BrokerEndpoint(event.host, event.port)
    at_ms, session = event.timestamp_ms, event.session
    yield from create_broker_znode(rules, ctx.broker_id, endpoint, at_ms, session)
    yield from maybe_resign(ctx)
    yield from elect(ctx, event.timestamp_ms)


def maybe_resign(ctx: ControllerContext) -> Handler:
    """Read `/controller` with a new watch; resign if this broker was controller and is no longer.

    Source: KafkaController.maybeResign (2.8).
    """
    was_active = ctx.is_active
    yield effects.RegisterZNodeHandler(zk.CONTROLLER)
    yield effects.Exists((zk.CONTROLLER,), watch=True)
    yield from update_active_controller(ctx)
    if was_active and not ctx.is_active:
        yield from on_controller_resignation(ctx)


def elect(ctx: ControllerContext, timestamp_ms: int) -> Handler:
    """Read the id in `/controller` into the context, and compete for the znode if it is missing.

    `timestamp_ms` is the time that the new `/controller` stores.

    Source: KafkaController.elect (2.8).
    """
    yield from update_active_controller(ctx)
    if ctx.active_controller_id == -1:
        yield from ctx.design.elect(ctx, timestamp_ms)


def elect_with_epoch(ctx: ControllerContext, timestamp_ms: int) -> Handler:
    """Create `/controller` and write the next controller epoch, then run the failover.

    `timestamp_ms` is for `/controller`. After an error except ControllerMoved, delete `/controller`
    if this broker is controller, and raise the error again.

    Source: KafkaController.elect (2.1, 2.8), KAFKA-6082.
    """
    try:
        yield from _register_controller_and_increment_epoch(ctx, timestamp_ms)
        yield from on_controller_failover(ctx)
    # Another broker has won the election.
    except effects.ControllerMoved:
        yield from maybe_resign(ctx)
    except Exception:
        yield from trigger_controller_move(ctx)
        raise


def trigger_controller_move(ctx: ControllerContext) -> Handler:
    """Resign, then delete `/controller`, so that all brokers compete again.

    If this broker is not controller, only store the id of the controller, or -1, in the context.

    Source: KafkaController.triggerControllerMove (2.8).
    """
    yield from update_active_controller(ctx)
    if not ctx.is_active:
        return
    fence = ctx.controller_epoch_zk_version
    yield effects.UpdateContext("active_controller_id", -1)
    yield from on_controller_resignation(ctx)
    try:
        yield effects.FencedTransactions(
            ((effects.Op("delete", zk.CONTROLLER),),), expected_epoch_zk_version=fence
        )
    except effects.ControllerMoved:
        return  # another broker has won the next election already


# ---------------------------------------------------------------- the election itself


def update_active_controller(ctx: ControllerContext) -> Handler:
    """Read `/controller` with a new watch; store its id, -1 without the znode, in the context."""
    (znode,) = yield effects.Read((zk.CONTROLLER,), watch=True)
    yield effects.UpdateContext(
        "active_controller_id", zk.decode_controller(znode.data, or_bare_id=False) if znode else -1
    )


def _read_controller_epoch() -> Generator[effects.Effect, Any, tuple[int, int] | None]:
    (znode,) = yield effects.Read((zk.CONTROLLER_EPOCH,))
    return (zk.decode_controller_epoch(znode.data), znode.stat.version) if znode else None


def _register_controller_and_increment_epoch(ctx: ControllerContext, timestamp_ms: int) -> Handler:
    """Create `/controller` with `timestamp_ms` and increment the epoch, in one transaction.

    Raises ControllerMoved if another broker has won, and WriteFailed for any other error of
    ZooKeeper.

    Source: KafkaZkClient.registerControllerAndIncrementControllerEpoch (2.8).
    """
    stored = yield from _read_controller_epoch()
    if stored is None:
        created: effects.TransactionResult = yield effects.Transaction(
            (effects.Op("create", zk.CONTROLLER_EPOCH, zk.encode_controller_epoch(0)),)
        )
        stored = (0, 0) if created.is_ok else (yield from _read_controller_epoch())
    if stored is None:
        raise effects.ControllerMoved
    controller_epoch, zk_version = stored[0] + 1, stored[1]
    data = zk.encode_controller(ctx.broker_id, timestamp_ms, ctx.rules.controller_znode)
    create = effects.Op("create", zk.CONTROLLER, data, ephemeral=True)
    epoch = zk.encode_controller_epoch(controller_epoch)
    update = effects.Op("set", zk.CONTROLLER_EPOCH, epoch, zk_version)
    result: effects.TransactionResult = yield effects.Transaction((create, update))
    if result.is_ok:
        zk_version = result.versions[1] or 0
    elif result.code in ("NodeExists", "BadVersion"):
        zk_version = yield from _check_controller_and_epoch(ctx, controller_epoch)
    else:
        raise WriteFailed(f"registering as controller failed with {result.code}")
    yield effects.UpdateContext("controller_epoch", controller_epoch)
    yield effects.UpdateContext("controller_epoch_zk_version", zk_version)
    yield effects.UpdateContext("active_controller_id", ctx.broker_id)


def _check_controller_and_epoch(
    ctx: ControllerContext, controller_epoch: int
) -> Generator[effects.Effect, Any, int]:
    """Return the version of `/controller_epoch` if this broker is controller in ZooKeeper.

    Raises ControllerMoved unless `/controller` has this broker's id and `/controller_epoch` has
    `controller_epoch`.

    Source: KafkaZkClient.registerControllerAndIncrementControllerEpoch, checkControllerAndEpoch
    (2.8).
    """
    # After a lost connection the client sends a transaction twice; the second try fails although
    # the first has succeeded.
    znode: effects.Znode | None
    (znode,) = yield effects.Read((zk.CONTROLLER,), watch=True)
    if znode is None:
        raise effects.ControllerMoved
    stored = yield from _read_controller_epoch()
    if (
        zk.decode_controller(znode.data, or_bare_id=False) == ctx.broker_id
        and stored
        and stored[0] == controller_epoch
    ):
        return stored[1]
    raise effects.ControllerMoved
