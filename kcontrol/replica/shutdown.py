"""How a broker stops in good order: it asks the controller until it leads nothing more, or until it has asked often enough.

Source: KafkaServer.controlledShutdown (2.8).
"""

from __future__ import annotations

from kcontrol.effects import Arm, Ask, Exit, Handler, Learn, Read
from kcontrol.events import ControlledShutdownResponse, Shutdown
from kcontrol.replica.context import BrokerContext
from kcontrol.znodes import CONTROLLER, broker_path, decode_controller

RETRY_TIMER = "controlled-shutdown-retry"


def shut_down(ctx: BrokerContext, event: Shutdown) -> Handler:
    """Ask whoever is controller now to move the leaders away, naming this broker's epoch; if there is nobody, ask again later."""
    yield Learn("shutdown_attempts", ctx.shutdown_attempts + 1, context="broker")
    (znode,) = yield Read((CONTROLLER,))
    controller_id = decode_controller(znode.data) if znode else -1
    (registration,) = yield Read((broker_path(controller_id),))
    if registration is None:
        yield from _go_or_ask_again(ctx, done=False)
        return
    yield Ask("ControlledShutdown", {"broker_id": ctx.broker_id, "broker_epoch": ctx.broker_epoch}, to=controller_id)


def controlled_shutdown_response(ctx: BrokerContext, event: ControlledShutdownResponse) -> Handler:
    """Stop if nothing remains, or after the last attempt; otherwise ask again in a while."""
    yield from _go_or_ask_again(ctx, done=event.error == "NONE" and not event.remaining)


def _go_or_ask_again(ctx: BrokerContext, *, done: bool) -> Handler:
    if done or ctx.shutdown_attempts >= ctx.config.controlled_shutdown_max_retries:
        yield Exit(0)
    else:
        yield Arm(RETRY_TIMER, ctx.config.controlled_shutdown_retry_backoff_ms, Shutdown())
