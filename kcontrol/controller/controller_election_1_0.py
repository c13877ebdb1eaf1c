"""How a broker competes for `/controller` on an event thread that is fed by listeners.

Who loses `/controller` resigns only once the event that says so is handled, and nothing that it writes until then is fenced.
Source: KafkaController.scala (0.11, 1.0): Startup, ControllerChange, Reelect, elect, triggerControllerMove.
"""

from __future__ import annotations

from kcontrol.controller.context import ControllerContext
from kcontrol.controller.failover_and_resignation import resign, take_over
from kcontrol.effects import Complain, Exists, Handler, Learn, Op, Read, Result, Transaction, Watch
from kcontrol.events import ControllerChange, Reelect, Startup
from kcontrol.znodes import CONTROLLER, decode_controller, encode_controller

NOBODY = -1


def startup(ctx: ControllerContext, event: Startup) -> Handler:
    """Listen to `/controller` for life, and compete for it."""
    yield Watch(CONTROLLER)
    yield Exists((CONTROLLER,), watch=True)
    yield from elect(ctx, event.timestamp_ms)


def controller_change(ctx: ControllerContext, event: ControllerChange) -> Handler:
    """Believe what the listener has read, and resign if that is somebody else than this broker, which ruled until now."""
    assert event.controller_id is not None, "a listener tells what it has read"
    yield from _believe(ctx, event.controller_id)


def reelect(ctx: ControllerContext, event: Reelect) -> Handler:
    """Look who rules; give up what is lost, then compete for what is free."""
    yield from _believe(ctx, (yield from _who_rules()))
    yield from elect(ctx, event.timestamp_ms)


def elect(ctx: ControllerContext, timestamp_ms: int) -> Handler:
    """Create `/controller`, unless somebody has, and take over; whoever fails there deletes it, whosever it is by then."""
    yield Learn("active_controller_id", (yield from _who_rules()))
    if ctx.active_controller_id != NOBODY:
        return
    data = encode_controller(ctx.broker_id, timestamp_ms)
    result: Result = yield Transaction((Op("create", CONTROLLER, data, ephemeral=True),))
    if not result.is_ok:
        yield Learn("active_controller_id", (yield from _who_rules()))
        return
    yield Learn("active_controller_id", ctx.broker_id)
    try:
        yield from take_over(ctx)
    except Exception as error:
        yield Complain(error)
        yield from resign(ctx)
        yield Learn("active_controller_id", NOBODY)
        yield Transaction((Op("delete", CONTROLLER),))


def _who_rules() -> Handler:
    (znode,) = yield Read((CONTROLLER,), watch=True)
    return decode_controller(znode.data) if znode else NOBODY


def _believe(ctx: ControllerContext, controller_id: int) -> Handler:
    was_active = ctx.is_active
    yield Learn("active_controller_id", controller_id)
    if was_active and not ctx.is_active:
        yield from resign(ctx)
