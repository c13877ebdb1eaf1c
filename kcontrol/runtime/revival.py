"""Copying a suspended handler: a generator cannot be copied, but it can be told again what it was told before.

The handler is started anew on a copy of the context as it was at its beginning and gets the same answers; nothing is performed,
and only that context learns. Handlers are deterministic, so it ends up suspended at the same place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcontrol import effects as fx
from kcontrol.controller.context import apply_change, apply_learn
from kcontrol.group.context import apply_move
from kcontrol.replica.context import HostedPartition
from kcontrol.runtime import logs
from kcontrol.runtime.round_trips import RoundTrip, is_instant

if TYPE_CHECKING:
    from kcontrol.runtime.driver import Thread


def revive(thread: Thread, twin: Thread, room: str, *, pipelined: bool, handler: fx.Handler | None = None) -> None:
    """Give `twin`, whose context is a copy of the thread's, a handler that waits where the thread's handler waits.

    `room` is the context that the thread's handlers learn into; a `handler` that is given is taken as it is. Raises ValueError if
    the thread has kept nothing to revive from.
    """
    if thread.begun_with is None or thread.waits_for is None or thread.has_let_go:
        raise ValueError(f"the handler of thread {thread.name} was not begun to be copied")
    twin.handler, twin.event, twin.begun = handler or _tell_again(thread, twin, room), thread.event, thread.begun
    twin.begun_with = thread.begun_with.copy()
    twin.changed = thread.changed.copy()
    twin.waits_for = RoundTrip(thread.waits_for.effect, pipelined=pipelined)
    twin.waits_for.so_far = thread.waits_for.so_far.copy()


def _tell_again(thread: Thread, twin: Thread, room: str) -> fx.Handler:
    """A new handler that has been told what the thread's handler was told."""
    assert thread.begun_with is not None
    context, now = twin.context, twin.context.copy()
    _become(context, thread.begun_with.context)
    handler = twin.handle(context, thread.event)
    effect: Any = None
    for how, value in thread.begun_with.answers:
        if how == "send":
            _recall(context, room, effect, value)
        effect = getattr(handler, how)(value)
        while is_instant(effect):
            effect = handler.send(_recall_instant(context, room, thread, effect))
    _become(context, now)
    return handler


def _become(context: Any, other: Any) -> None:
    """Make a context equal to another one in place, since the handler may hold on to its parts."""
    for name in type(context).__slots__:
        mine, value = getattr(context, name), getattr(other, name)
        if isinstance(mine, dict | set):
            mine.clear()
            mine.update(value)
        elif hasattr(mine, "by_broker"):
            mine.by_broker.clear()
            mine.by_broker.update(value.copy().by_broker)
        else:
            object.__setattr__(context, name, value)


def _recall(context: Any, room: str, effect: Any, answer: Any) -> None:
    if isinstance(effect, fx.Commit):
        for change in answer.done:
            apply_change(context, change)


def _recall_instant(context: Any, room: str, thread: Thread, effect: Any) -> Any:
    match effect:
        case fx.Learn() if effect.context == room:
            apply_learn(context, effect)
        case fx.MoveGroup():
            apply_move(context, effect)
        case fx.Adopt(field, partitions):
            told = thread.event.partitions
            chosen = told if partitions is None else {tp: told[tp] for tp in partitions}
            put = {tp: HostedPartition.told(entry) for tp, entry in chosen.items()} if field == "hosted" else chosen
            apply_learn(context, fx.Learn(field, put))
        case fx.WriteLog(tp, log_change):
            logs.change_in(context, tp, log_change)
        case fx.Commit(changes):
            done = tuple(change for change in changes if isinstance(change, fx.StateChange))
            for change in done:
                apply_change(context, change)
            return fx.Committed(done, (), ())
    return None
