"""How a broker stops in good order: it asks the controller until it leads nothing more, or until it has asked often enough.

Source: KafkaServer.controlledShutdown (2.8).
"""

from __future__ import annotations

from kcontrol.effects import Arm, Ask, Exit, Handler, Learn
from kcontrol.events import ControlledShutdownResponse, Shutdown
from kcontrol.replica.context import BrokerContext

RETRY_TIMER = "controlled-shutdown-retry"


def shut_down(ctx: BrokerContext, event: Shutdown) -> Handler:
    """Ask the controller to move the leaders away, naming this broker's epoch."""
    yield Learn("shutdown_attempts", ctx.shutdown_attempts + 1, context="broker")
    yield Ask("ControlledShutdown", {"broker_id": ctx.broker_id, "broker_epoch": ctx.broker_epoch})


def controlled_shutdown_response(ctx: BrokerContext, event: ControlledShutdownResponse) -> Handler:
    """Stop if nothing remains, or after the last attempt; otherwise ask again in a while."""
    done = event.error == "NONE" and not event.remaining
    if done or ctx.shutdown_attempts >= ctx.config.controlled_shutdown_max_retries:
        yield Exit(0)
    else:
        yield Arm(RETRY_TIMER, ctx.config.controlled_shutdown_retry_backoff_ms, Shutdown())
