"""Copies a suspended handler: a generator cannot be copied, but it can be run again with its recorded results.

The new handler runs on a copy of the context and gets its results from the `ReplayLog`; no effect is performed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcontrol.broker.context import adopted
from kcontrol.controller.context import apply_state_change, apply_update
from kcontrol.core import effects as fx
from kcontrol.driver import log_changes
from kcontrol.driver.round_trips import RoundTrip, is_instant
from kcontrol.group.context import apply_transition

if TYPE_CHECKING:
    from kcontrol.driver.threads import Thread


def replay_handler(
    thread: Thread, copy: Thread, context_name: str, *, pipelined: bool, handler: fx.Handler | None = None
) -> None:
    """Give the thread `copy` the suspended handler of `thread`: the generator `handler` or, if None, a new run of the handler.

    `context_name` is "controller", "broker" or "group"; `pipelined`: the requests of a round trip are sent together. Raises
    ValueError if the handler cannot be repeated.
    """
    # A handler cannot be repeated if it has no replay log, waits for nothing, or has released its lock.
    if thread.replay_log is None or thread.waits_for is None or thread.has_yielded_lock:
        raise ValueError(f"the handler of thread {thread.name} cannot be copied: it has no replay log, or yielded its lock")
    copy.handler = handler or _replay_results(thread, copy, context_name)
    copy.event, copy.begin_record = thread.event, thread.begin_record
    copy.replay_log = thread.replay_log.copy()
    copy.last_change_seq = thread.last_change_seq.copy()
    # `pipelined` is the value of this rule: True if the release sends the requests of a round trip together.
    copy.waits_for = RoundTrip(thread.waits_for.effect, pipelined=pipelined)
    copy.waits_for.partial_results = thread.waits_for.partial_results.copy()


def _replay_results(thread: Thread, copy: Thread, context_name: str) -> fx.Handler:
    """Run the handler of `thread` again with the stored results of its effects; return the new, suspended handler.

    The handler runs on the context of `copy`; at the end the earlier values of this context are restored.
    """
    assert thread.replay_log is not None
    context, now = copy.context, copy.context.copy()
    _overwrite(context, thread.replay_log.context)
    handler = copy.handle(context, thread.event)
    effect: Any = None
    for how, value in thread.replay_log.results:
        if how == "send" and isinstance(effect, fx.Commit):
            for change in value.finished:
                apply_state_change(context, change)
        effect = getattr(handler, how)(value)
        while is_instant(effect):
            effect = handler.send(_replay_instant(context, context_name, thread, effect))
    _overwrite(context, now)
    return handler


def _overwrite(context: Any, source: Any) -> None:
    """Copy all values of the context `source` into `context` in place, since the handler may hold references to its parts."""
    for name in type(context).__slots__:
        own, value = getattr(context, name), getattr(source, name)
        if isinstance(own, dict | set):
            own.clear()
            own.update(value)
        elif hasattr(own, "by_broker"):
            own.by_broker.clear()
            own.by_broker.update(value.copy().by_broker)
        else:
            object.__setattr__(context, name, value)


def _replay_instant(context: Any, context_name: str, thread: Thread, effect: Any) -> Any:
    match effect:
        case fx.UpdateContext() if effect.context == context_name:
            apply_update(context, effect)
        case fx.TransitionGroup():
            apply_transition(context, effect)
        case fx.ApplyRequest():
            apply_update(context, adopted(effect, thread.event))
        case fx.UpdateLog(tp, log_change):
            log_changes.change_log(context, tp, log_change)
        case fx.Commit(changes):
            done = tuple(change for change in changes if isinstance(change, fx.StateChange))
            for change in done:
                apply_state_change(context, change)
            return fx.CommitResult(done, (), ())
    return None
