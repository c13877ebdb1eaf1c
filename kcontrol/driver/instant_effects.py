"""The effects that a driver performs at once, without a round trip: the table PERFORM and its functions.

A function changes a context, writes one journal record, or passes a value to the outbox, and returns the value of the handler's
`yield`.
"""

# The cause of these journal records is the record `begin` of the thread's present handler, except for `send`: the cause of a
# request is the last transition of the handler.
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kcontrol.broker.context import HostedPartition, adopted
from kcontrol.controller.context import apply_update
from kcontrol.core import effects as fx
from kcontrol.driver.log_changes import update_log
from kcontrol.driver.state_change_commits import commit, latest_record
from kcontrol.driver.threads import Thread, Timer
from kcontrol.group import delayed_operations
from kcontrol.group.context import apply_transition

if TYPE_CHECKING:
    from kcontrol.driver.driver import Driver


def update_context(driver: Driver, thread: Thread, effect: fx.UpdateContext) -> None:
    """Change a field of a context and write a journal record `update`.

    Also close the channels to brokers that the change removes from the live brokers.
    """
    context: Any = getattr(driver, effect.context)
    before = driver.controller.live_broker_epochs.copy() if effect.field == "live_broker_epochs" else {}  # type: ignore[attr-defined]
    apply_update(context, effect)
    held = getattr(context, effect.field)
    kind = "set" if isinstance(held, set) else "value" if not hasattr(held, "__len__") or isinstance(held, str) else "map"
    change = {"clear": effect.clear, "remove": effect.remove, "put": effect.put}
    driver.log("update", thread.begin_record, context=effect.context, field=effect.field, container=kind, **change)
    if effect.field == "hosted":
        _track_under_replicated(driver, {**dict.fromkeys(effect.remove), **(effect.put or {})})
    # A broker has left if its epoch is gone or has changed.
    gone = tuple(b for b, epoch in before.items() if driver.controller.live_broker_epochs.get(b) != epoch)
    if effect.field == "has_channels" and not effect.put:
        # A resigning controller closes the channels to all brokers.
        gone = driver.controller.live_or_shutting_down_broker_ids
    if gone:
        driver.outbox.close_channels(driver, gone)


def transition_group(driver: Driver, thread: Thread, effect: fx.TransitionGroup) -> None:
    """The effect's `group` None removes it."""
    assert driver.group is not None
    apply_transition(driver.group, effect)
    source, target = driver.group.name_of(effect.source), driver.group.name_of(effect.target)
    fields = {"group_id": effect.group_id, "from": source, "to": target, "rule": effect.rule, "group_metadata": effect.group}
    driver.log("group", thread.begin_record, **fields)


def append(driver: Driver, thread: Thread, effect: fx.Append) -> None:
    """Write a journal record `append`, and start the append of the effect's records to the offsets topic."""
    records = [list(record) for record in effect.records]
    fields = {"partition": effect.partition, "records": records, "completion_event": effect.completion_event}
    record = driver.log("append", thread.begin_record, **fields)
    driver.outbox.append(driver, effect, record)


def apply_request(driver: Driver, thread: Thread, effect: fx.ApplyRequest) -> None:
    """The journal record points to the request's record and lacks the values."""
    update = adopted(effect, thread.event)
    apply_update(driver.broker, update)
    if effect.field == "hosted":
        _track_under_replicated(driver, update.put)
    request = thread.event.request
    driver.log("apply_request", thread.begin_record, field=effect.field, request=request, partitions=effect.partitions)


def _track_under_replicated(driver: Driver, changed: Mapping[Any, HostedPartition | None]) -> None:
    unassigned = driver.broker.rules.accepts_unassigned_partitions
    for tp, held in changed.items():
        leads = held is not None and held.leadership.leader == driver.node and not held.pending_isr
        if held and leads and (len(held.leadership.isr) < len(held.replicas) or unassigned):
            driver.under_replicated[tp] = held
        else:
            driver.under_replicated.pop(tp, None)


def change_znode_handlers(driver: Driver, thread: Thread, effect: fx.RegisterZNodeHandler | fx.UnregisterZNodeHandler) -> None:
    """Of a fired watch only a path with a registered handler gives an event."""
    change = driver.znode_handlers.add if isinstance(effect, fx.RegisterZNodeHandler) else driver.znode_handlers.discard
    change((effect.path, effect.children))


def send(driver: Driver, thread: Thread, effect: fx.Send) -> None:
    """Write a journal record `send`, and put the effect's requests into the channels to the brokers."""
    record = driver.log("send", latest_record(thread), requests=effect.requests)
    driver.outbox.send(driver, effect.requests, record)


def submit(driver: Driver, thread: Thread, effect: fx.Submit) -> None:
    """Write a journal record `submit`, and send the effect's request to the controller."""
    record = driver.log("submit", thread.begin_record, api=effect.api, body=effect.body)
    driver.outbox.submit(driver, effect, record)


def park(driver: Driver, thread: Thread, effect: fx.Park) -> None:
    """Store that a request waits for its response; write a journal record `park` with a key such as "join my-group"."""
    driver.parked[effect.correlation_id] = effect.key
    driver.log("park", thread.begin_record, correlation_id=effect.correlation_id, key=effect.key)


def set_timer(driver: Driver, thread: Thread, effect: fx.SetTimer) -> None:
    """Set a timer, and write a journal record `set_timer`.

    If Kafka's delayed operation behind the timer is complete already (`effect.is_complete`), set no timer, and cancel the timer
    of this name if one is set.
    """
    if effect.is_complete:
        cancel_timer(driver, thread, fx.CancelTimer(effect.timer))
    _log_steps(driver, thread, effect)
    if effect.is_complete:
        return
    at_ms, event = driver.clock() + effect.delay_ms, effect.event
    name = driver.route(event) if event else thread.name
    record = driver.log("set_timer", thread.begin_record, timer=effect.timer, thread=name, fires_at_ms=at_ms, event=event)
    driver.timers[effect.timer] = timer = Timer(at_ms, name, effect.event, record, periodic=effect.periodic)
    (driver.routine_timers.add if timer.is_routine else driver.routine_timers.discard)(effect.timer)


def cancel_timer(driver: Driver, thread: Thread, effect: fx.CancelTimer) -> None:
    """Cancel the timer of the effect, and write a journal record `cancel_timer`, if the timer is set.

    If Kafka's delayed operation behind the timer is not complete (`effect.is_complete` is False), the timer stays set, without a
    record `cancel_timer`.
    """
    # The journal gets the steps of a delayed operation even if the timer stays set.
    _log_steps(driver, thread, effect)
    if effect.is_complete and driver.timers.pop(effect.timer, None) is not None:
        driver.routine_timers.discard(effect.timer)
        driver.log("cancel_timer", thread.begin_record, timer=effect.timer)


def _log_steps(driver: Driver, thread: Thread, effect: fx.SetTimer | fx.CancelTimer) -> None:
    for kind, fields in delayed_operations.steps(driver.group, effect, driver.timers.get(effect.timer)):
        driver.log(kind, thread.begin_record, **fields)


def log_error(driver: Driver, thread: Thread, effect: fx.LogError) -> None:
    """Write a journal record `handler_error` with the thread's event and the type and message of the error."""
    fields = {"event": thread.event.name, "error": type(effect.error).__name__, "message": str(effect.error)}
    driver.log("handler_error", thread.begin_record, thread=thread.name, **fields)


def exit_process(driver: Driver, thread: Thread, effect: fx.Exit) -> None:
    """Store the exit code and its cause in the driver; the cluster then stops the process."""
    driver.exit_code, driver.exit_cause = effect.exit_code, thread.begin_record


def enqueue(driver: Driver, thread: Thread, effect: fx.Enqueue) -> None:
    """Queue the event of `effect`; if `effect.clear` is True, first remove all events from that queue."""
    name = effect.thread or driver.route(effect.event)
    if effect.clear:
        driver.clear(name, thread.begin_record)
    driver.enqueue(effect.event, effect.cause or thread.begin_record, name)


PERFORM: dict[type, Callable[[Driver, Thread, Any], Any]] = {
    fx.Commit: lambda driver, thread, effect: commit(driver, thread, effect.changes),
    fx.Respond: lambda driver, thread, effect: driver.respond(effect.correlation_id, effect.body, thread.begin_record),
    fx.UpdateContext: update_context, fx.TransitionGroup: transition_group, fx.Append: append, fx.ApplyRequest: apply_request,
    fx.UpdateLog: update_log, fx.RegisterZNodeHandler: change_znode_handlers, fx.UnregisterZNodeHandler: change_znode_handlers,
    fx.Send: send, fx.Submit: submit, fx.Park: park, fx.SetTimer: set_timer, fx.CancelTimer: cancel_timer, fx.Enqueue: enqueue,
    fx.LogError: log_error, fx.Exit: exit_process,
}  # fmt: skip
