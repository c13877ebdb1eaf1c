"""Picks the controller of a release (a Design: its tables and functions), and runs its handlers.

This is the only module of `controller/` that imports `earlier/`. Only `handle` catches
ControllerMoved, and checks whether this broker is controller.

Source: KafkaController.process and ControllerEventManager.ControllerEventThread (2.8).
"""

from collections.abc import Callable, Collection
from functools import cache
from typing import Any

from kcontrol.controller import controller_election as election
from kcontrol.controller import event_thread
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.design import Design
from kcontrol.controller.earlier import event_queue_0_11, event_thread_to_2_5, listeners_to_0_10
from kcontrol.core import events as e
from kcontrol.core.controller_rules import EVENT_THREAD, LISTENERS, QUEUE, Rules
from kcontrol.core.effects import ControllerMoved, Handler, Respond

PAGES: dict[str, Callable[[Rules], Design]] = {
    LISTENERS: listeners_to_0_10.design,
    QUEUE: event_queue_0_11.design,
    EVENT_THREAD: lambda rules: event_thread_to_2_5.changed(event_thread.DESIGN, rules),
}


@cache
def design_of(rules: Rules) -> Design:
    # A release from 1.1 to 2.5 has the tables of 2.8, with functions of its own.
    return PAGES[rules.design](rules)


def event_for_notification(notification: str, path: str, design: Design) -> e.Event | None:
    """None: Kafka ignores this notification."""
    return design.event_for_notification(notification, path)


def has_handler(
    notification: str, path: str, design: Design, znode_handlers: Collection[tuple[str, bool]]
) -> bool:
    """`znode_handlers` has (path, True) for children, (path, False) for data."""
    return any((path, kind) in znode_handlers for kind in design.handler_kinds[notification])


def every_event(listeners: Collection[tuple[str, bool]], design: Design) -> list[e.Event]:
    """Return the events of all `listeners`, which ZkClient calls after a new session.

    `listeners` has `(path, True)` for a listener of children, `(path, False)` for a listener of
    data; `design` has each path's event.

    Source: ZkClient.fireAllEvents (0.3).
    """
    notification = [
        ("NodeChildrenChanged" if children else "NodeDataChanged", path)
        for path, children in sorted(listeners)
    ]
    return [
        event for kind, path in notification if (event := design.event_for_notification(kind, path))
    ]


def not_controller_response(event: e.Event) -> dict[str, Any]:
    """Such as `{"error": "NOT_CONTROLLER", "partitions": {}}`."""
    match event:
        case e.ControlledShutdown():
            return {"error": "ControllerMovedException", "partitions": {}}
        # A request for elections has the error at each partition.
        case e.ReplicaLeaderElection(partitions=named):
            return {"error": "NONE", "partitions": dict.fromkeys(named or (), "NOT_CONTROLLER")}
    return {"error": "NOT_CONTROLLER", "partitions": {}}


def preempted_response(rules: Rules, event: e.Event) -> dict[str, Any] | None:
    """The response to a request that the end of the session removes from the queue."""
    # Without a response the client waits until its timeout.
    return not_controller_response(event) if event.name in rules.responds_when_preempted else None


def handle(ctx: ControllerContext, event: e.Event) -> Handler:
    """Call the handler of `event`, and resign if the handler raises ControllerMoved.

    On a broker that is not controller, do not run handlers that only a controller runs; respond to
    requests with NOT_CONTROLLER. Raises NotImplementedError for an event without a handler.

    Source: KafkaController.process (2.8), which catches ControllerMovedException.
    """
    row = ctx.design.handlers.get(type(event))
    if row is None:
        raise NotImplementedError(
            f"{event.name} has no handler here yet; docs/omissions.md says so"
        )
    if row.only_if_active and not ctx.is_active:
        if correlation_id := getattr(event, "correlation_id", None):
            yield Respond(correlation_id, not_controller_response(event))
        return
    try:
        yield from row.handler(ctx, event)
    except ControllerMoved:
        yield from election.maybe_resign(ctx)
