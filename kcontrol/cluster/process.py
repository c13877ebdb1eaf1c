"""One broker process: its driver, its address, and the state of its ZooKeeper session.

A suspended handler, a generator, cannot be copied. A copy of the process runs the handler again, on a copy of the context: its
results come from the `ReplayLog`, and no effect is performed.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kcontrol.broker.context import BrokerContext, adopted
from kcontrol.broker.events import BrokerStartup
from kcontrol.broker.handlers import HANDLERS as BROKER_HANDLERS
from kcontrol.broker.handlers import handle as handle_broker_event
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.sessions import SessionState
from kcontrol.controller.context import ControllerContext, apply_state_change, apply_update
from kcontrol.controller.handlers import design_of
from kcontrol.controller.handlers import handle as handle_controller_event
from kcontrol.core import effects as fx
from kcontrol.core import events
from kcontrol.core.controller_rules import Rules
from kcontrol.core.model import TopicPartition
from kcontrol.driver import log_changes
from kcontrol.driver.driver import Driver
from kcontrol.driver.round_trips import RoundTrip, is_instant
from kcontrol.driver.threads import Handle, Outbox, Thread
from kcontrol.group.context import GroupContext, apply_transition
from kcontrol.group.handlers import REQUESTS, SCHEDULER
from kcontrol.group.handlers import THREADS as GROUP_THREADS
from kcontrol.group.handlers import handle as handle_group_event
from kcontrol.journal.journal import Journal, RecordId
from kcontrol.zookeeper.port import Client

HANDLE: dict[str, Handle] = {"controller": handle_controller_event, "broker": handle_broker_event}


def threads(
    rules: Rules, controller: ControllerContext, broker: BrokerContext, group: GroupContext | None = None
) -> list[Thread]:
    """Each with the context that its handlers change; with `group` the last two are the coordinator's."""
    contexts = {"controller": controller, "broker": broker}
    found = [
        Thread(name, contexts[context_name], HANDLE[context_name], lock) for name, context_name, lock in design_of(rules).threads
    ]
    return found + ([Thread(name, group, handle_group_event) for name in (REQUESTS, SCHEDULER)] if group else [])


def route(rules: Rules) -> Callable[[events.Event], str]:
    """Return a function from an event to the name of the thread that handles it in the release of `rules`."""
    design = design_of(rules)
    of_broker = {**GROUP_THREADS, **dict.fromkeys(BROKER_HANDLERS, "requests"), BrokerStartup: "main"}
    return lambda event: design.routes.get(type(event)) or of_broker.get(type(event)) or design.default_thread


class QueuedNotification(NamedTuple):
    """A watch event that ZooKeeper has sent and the broker has not handled, with the id of its journal record `notify`."""

    event: fx.WatchEvent
    record: RecordId


class OrphanedSession(NamedTuple):
    """A ZooKeeper session that is still open after its process has ended, with the id of the process's `stop` record."""

    client: Client
    record: RecordId


@dataclass(slots=True)
class Process:
    """One broker process: its driver, which runs its handlers, its address, and the state of its ZooKeeper session."""

    driver: Driver
    host: str
    port: int
    session: SessionState = SessionState.OPEN
    # True: the process has got SIGSTOP and has not resumed.
    frozen: bool = False
    # The watch events that the broker has not handled, the oldest first.
    notifications: deque[QueuedNotification] = field(default_factory=deque)
    # The `session_lost` record, or the later `renew` record; None before the first loss of a session.
    session_loss_record: RecordId | None = None
    # The partitions of the offsets topic for which PartitionElected was queued. The broker leads each of them, or has stopped
    # hosting its replica of the partition but keeps the log.
    coordinated_partitions: frozenset[TopicPartition] = frozenset()
    # True: another broker has sent AlterIsr or ControlledShutdown to this process since the process's session expired.
    was_sent_request: bool = False


def contexts(settings: Settings, broker_id: int) -> tuple[ControllerContext, BrokerContext]:
    """Of a broker that has just started: rules and settings of the run, no state yet."""
    rules = settings.rules()
    controller = ControllerContext(broker_id, rules, design_of(rules), settings.config, settings.changes)
    return controller, BrokerContext(broker_id, rules, settings.config, settings.data)


def copy_driver(
    driver: Driver, client: Client, journal: Journal, clock: Callable[[], int], outbox: Outbox, *, moves_handlers: bool = False
) -> Driver:
    """Return a copy of a broker's driver with another client, journal, clock and outbox (its interface to the cluster).

    With `moves_handlers`, only the copy can continue suspended handlers. Raises ValueError if a handler cannot be copied.
    """
    copies = driver.controller.copy(), driver.broker.copy()
    # With `moves_handlers` the copy takes over the suspended handlers with their contexts; the original can still be read and
    # copied, but its suspended handlers cannot go on.
    contexts = (driver.controller, driver.broker) if moves_handlers else copies
    group = driver.group.copy() if driver.group else None
    copied_contexts = {id(driver.controller): contexts[0], id(driver.broker): contexts[1], id(driver.group): group}
    threads = [Thread(t.name, copied_contexts[id(t.context)], t.handle, t.lock) for t in driver.threads.values()]
    copied = Driver(driver.node, driver.incarnation, client, journal, clock, outbox, *contexts, threads, driver.route)
    copied.group = group
    if moves_handlers:
        driver.controller, driver.broker = copies
    for name, thread in driver.threads.items():
        other = copied.threads[name]
        other.queue = thread.queue.copy()
        if moves_handlers:
            thread.context = driver.controller if other.context is copied.controller else driver.broker
        if thread.handler is not None:
            names = {id(driver.controller): "controller", id(driver.broker): "broker", id(driver.group): "group"}
            moved = thread.handler if moves_handlers else None
            replay_handler(thread, other, names[id(thread.context)], pipelined=driver.controller.rules.pipelined, handler=moved)
    copied.znode_handlers, copied.timers, copied.parked = driver.znode_handlers.copy(), driver.timers.copy(), driver.parked.copy()
    copied.routine_timers, copied.locks = driver.routine_timers.copy(), driver.locks.copy()
    copied.under_replicated, copied.keeps_replay_logs = driver.under_replicated.copy(), driver.keeps_replay_logs
    copied.has_lost_session, copied.exit_code, copied.exit_cause = driver.has_lost_session, driver.exit_code, driver.exit_cause
    return copied


def can_be_copied(driver: Driver) -> bool:
    """Whether a copy can continue every suspended handler."""
    suspended = [thread for thread in driver.threads.values() if thread.handler is not None]
    # The copy runs a handler again with its replay log, which is not possible after a release of the lock (`YieldLock`).
    return all(thread.replay_log is not None and not thread.has_yielded_lock for thread in suspended)


# ---------------------------------------------------------------- a copy of a suspended handler


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
