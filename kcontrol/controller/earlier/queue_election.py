"""Elects the controller in 0.11 and 1.0, where ZkClient's listeners feed one event thread.

A broker that loses `/controller` resigns only when it handles the event of the change. Nothing
fences its writes until then.

Source: KafkaController.scala (0.11, 1.0): Startup, ControllerChange, Reelect, elect,
triggerControllerMove.
"""

from kcontrol.controller.context import ControllerContext
from kcontrol.controller.design import on_controller_failover, on_controller_resignation
from kcontrol.core import effects
from kcontrol.core.effects import Handler
from kcontrol.core.events import ControllerChange, Reelect, Startup
from kcontrol.core.znodes import CONTROLLER, decode_controller, encode_controller

NO_CONTROLLER = -1


def startup(ctx: ControllerContext, event: Startup) -> Handler:
    """Register the handler of `/controller` for the life of the process, and compete for the znode.

    Source: KafkaController.Startup (0.11, 1.0).
    """
    yield effects.RegisterZNodeHandler(CONTROLLER)
    yield effects.Exists((CONTROLLER,), watch=True)
    yield from elect(ctx, event.timestamp_ms)


def controller_change(ctx: ControllerContext, event: ControllerChange) -> Handler:
    """Store the controller id that the listener has read.

    Resign if this broker was controller and the id is another broker's.

    Source: KafkaController.ControllerChange (0.11, 1.0).
    """
    assert event.controller_id is not None, "a listener passes the id that it has read"
    yield from _set_active_controller(ctx, event.controller_id)


def reelect(ctx: ControllerContext, event: Reelect) -> Handler:
    """Read `/controller`; resign if this broker was controller and the znode no longer names it.

    Then compete for the znode if it is missing.

    Source: KafkaController.Reelect (0.11, 1.0).
    """
    yield from _set_active_controller(ctx, (yield from _read_active_controller()))
    yield from elect(ctx, event.timestamp_ms)


def elect(ctx: ControllerContext, timestamp_ms: int) -> Handler:
    """Create `/controller` with `timestamp_ms`, and run the failover.

    If `/controller` exists, store the id of the named broker in the context. After an error of the
    failover, resign and delete `/controller`.

    Source: KafkaController.elect, triggerControllerMove (0.11, 1.0).
    """
    yield effects.UpdateContext("active_controller_id", (yield from _read_active_controller()))
    if ctx.active_controller_id != NO_CONTROLLER:
        return
    data = encode_controller(ctx.broker_id, timestamp_ms)
    result: effects.TransactionResult = yield effects.Transaction(
        (effects.Op("create", CONTROLLER, data, ephemeral=True),)
    )
    if not result.is_ok:
        yield effects.UpdateContext("active_controller_id", (yield from _read_active_controller()))
        return
    yield effects.UpdateContext("active_controller_id", ctx.broker_id)
    try:
        yield from on_controller_failover(ctx)
    except Exception as error:
        yield effects.LogError(error)
        yield from on_controller_resignation(ctx)
        yield effects.UpdateContext("active_controller_id", NO_CONTROLLER)
        # `/controller` may name another broker by then.
        yield effects.Transaction((effects.Op("delete", CONTROLLER),))


def _read_active_controller() -> Handler:
    (znode,) = yield effects.Read((CONTROLLER,), watch=True)
    return decode_controller(znode.data) if znode else NO_CONTROLLER


def _set_active_controller(ctx: ControllerContext, controller_id: int) -> Handler:
    was_active = ctx.is_active
    yield effects.UpdateContext("active_controller_id", controller_id)
    if was_active and not ctx.is_active:
        yield from on_controller_resignation(ctx)
