"""The controlled shutdown of a broker: requests to the controller until the broker may stop.

The broker stops after a response without a partition and without an error, or after
`controlled.shutdown.max.retries` requests.

Source: KafkaServer.controlledShutdown (2.8).
"""

from collections.abc import Callable

from kcontrol.broker.context import BrokerContext
from kcontrol.broker.events import ControlledShutdownResponse, Shutdown
from kcontrol.core import effects
from kcontrol.core.effects import Handler
from kcontrol.core.kafka_json import NotJson
from kcontrol.core.znodes import CONTROLLER, MalformedZnode, broker_path, decode_controller

RETRY_TIMER = "controlled-shutdown-retry"
UNREACHABLE, DISCONNECTED = "ConnectException", "NETWORK_EXCEPTION"
"""The errors if the controller's process has ended: before the request, or before the response."""


def shut_down(ctx: BrokerContext, event: Shutdown) -> Handler:
    """Send ControlledShutdown to the controller, if the broker in `/controller` is registered.

    Otherwise set the retry timer, or end the process after the last attempt.

    Source: KafkaServer.shutdown, `swallow(controlledShutdown())` (0.8.1, 1.1, 2.8).
    """
    yield effects.UpdateContext("shutdown_attempts", ctx.shutdown_attempts + 1, context="broker")
    (znode,) = yield effects.Read((CONTROLLER,))
    try:
        controller_id = LOOKUPS[ctx.rules.controller_lookup](znode)
    # `/controller` has text without a broker id or, up to 1.0, is missing: Kafka does not retry.
    except MalformedZnode as error:
        yield effects.LogError(error)
        yield effects.Exit(0)
        return
    (registration,) = yield effects.Read((broker_path(controller_id),))
    if registration is None:
        yield from _exit_or_retry(ctx, done=False)
        return
    body = {"broker_id": ctx.broker_id, "broker_epoch": ctx.broker_epoch}
    yield effects.Submit("ControlledShutdown", body, to=controller_id)


def controlled_shutdown_response(ctx: BrokerContext, event: ControlledShutdownResponse) -> Handler:
    """End the process if the response has no partition and no error, or after the last attempt.

    Otherwise set the timer for the next attempt. Up to 0.8.1 the process also ends if the
    controller cannot be reached.

    Source: KafkaServer.controlledShutdown and BlockingChannel.connect (0.8.1, 0.8.2).
    """
    # Up to 0.8.1 a broker that cannot connect to the controller ends without a retry: connect()
    # raises outside the loop's try.
    ends = event.error == UNREACHABLE and ctx.rules.unreachable_controller == "stops the broker"
    yield from _exit_or_retry(ctx, done=ends or (event.error == "NONE" and not event.remaining))


def _get_controller(znode: effects.Znode | None) -> int:
    """Return the broker id in `/controller`, whose text is JSON or the bare id.

    Raises MalformedZnode for any other text, and if `znode` is None (it does not exist). Source:
    ZkUtils.getController, KafkaController.parseControllerId (0.8.0, 1.0).
    """
    if znode is None:
        raise MalformedZnode(f"{CONTROLLER} does not exist")
    return decode_controller(znode.data)


def _get_controller_id(znode: effects.Znode | None) -> int:
    """Return the broker id in `/controller`; -1 if the znode does not exist or has no JSON.

    Raises MalformedZnode for JSON without a broker id.

    Source: KafkaZkClient.getControllerId, ControllerZNode.decode, Json.parseBytes (1.1, 2.8).
    """
    try:
        return decode_controller(znode.data, or_bare_id=False) if znode else -1
    except NotJson:
        return -1


LOOKUPS: dict[str, Callable[[effects.Znode | None], int]] = {
    "getController": _get_controller,
    "getControllerId": _get_controller_id,
}


def _exit_or_retry(ctx: BrokerContext, *, done: bool) -> Handler:
    if done or ctx.shutdown_attempts >= ctx.config.controlled_shutdown_max_retries:
        yield effects.Exit(0)
    else:
        yield effects.SetTimer(
            RETRY_TIMER, ctx.config.controlled_shutdown_retry_backoff_ms, Shutdown()
        )
