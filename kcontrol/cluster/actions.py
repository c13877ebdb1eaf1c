"""ACTIONS: everything that can happen next in a cluster, one row for each kind of action.

A run is a list of actions: tuples such as ("kill", 1), a word of the table and arguments. `World.step` performs one, and between
two actions nothing happens. What a cluster does by itself (a delivery, the next round trip of a handler, a timer) is an action
like what an operator or a fault does to it: so a run can be played again, branched at each action, and searched.

Such a word is the same everywhere: the action ("freeze", 3), the method `lab.freeze(3)`, the step {"freeze": 3} of a scenario. A
kind of journal record has it too where the record says exactly this act; other kinds say what came of it: `kill` and `exit` both
end in a record `stop`.

What the table does not say:

* Which action comes next: `routine_actions` for the cluster's own, in the order in which `World.run` takes them, and
  `fault_actions` for those of `settings.faults`; every other action comes from outside, by `World.step`.
* The arguments: they are the parameters of the performing function (`form`).
* When time passes: `consumer_life.py`, and the action `wait`.

Read next: `lifecycle.py` (processes and sessions), `delivery.py` (what travels), `consumer_clients.py`.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kcontrol.cluster import (
    admin_actions,
    broker_to_controller,
    channel_closing,
    consumer_clients,
    consumer_life,
    coordinator_requests,
    data_plane,
    delayed_responses,
    delivery,
    group_admin,
    lifecycle,
)
from kcontrol.cluster import refusals as why
from kcontrol.cluster.sessions import EXPIRED, EXPIRING, OPEN, SessionState
from kcontrol.core import znodes
from kcontrol.core.errors import ActionNotPossible, UserError, listed
from kcontrol.core.model import TopicPartition

if TYPE_CHECKING:
    from kcontrol.cluster.world import Action, World


class Kind(NamedTuple):
    """A row of ACTIONS; each of its functions gets the World and the action's arguments."""

    possible: Callable[..., bool]
    # Performs the action without another check.
    perform: Callable[..., None]
    # The reason why it is not possible, "" for no particular one. Apart from `possible`, because a search asks that very often.
    why_not: Callable[..., str] = lambda world, *words: ""


class PossibleAction(tuple[Any, ...]):
    """An action that is possible now: a tuple of its name and arguments, such as ("kill", 1).

    `routine` is True for an action that the cluster performs by itself, such as a delivery.
    """

    __slots__ = ()
    routine = False


class RoutineAction(PossibleAction):
    """A PossibleAction with `routine` True: one that the cluster performs by itself, such as a delivery."""

    __slots__ = ()
    routine = True


def _is_up(world: World, n: int) -> bool:
    return why.is_id(n) and n in world.processes


def _is_down(world: World, n: int) -> bool:
    return why.is_id(n) and n not in world.processes


def _is_frozen(world: World, n: int) -> bool:
    return _is_up(world, n) and world.processes[n].frozen


def _is_reachable(world: World, n: int) -> bool:
    return why.is_id(n) and delivery.is_reachable(world, n)


def _can(name: str) -> Callable[..., bool]:
    def possible(world: World, n: int, thread: str) -> bool:
        p = world.processes.get(n)
        found = p.driver.threads.get(thread) if p and not p.frozen else None
        can = found is not None and p is not None and bool(getattr(p.driver, name)(found))
        return can and not channel_closing.is_blocked(world, n, thread)

    return possible


def _has_notifications(world: World, n: int) -> bool:
    return delivery.is_reachable(world, n) and bool(world.processes[n].notifications)


def _in_transit(world: World, sender: int, receiver: int) -> bool:
    return (sender, receiver) in world.network.deliverable() and delivery.is_deliverable(world, sender, receiver)


def _can_break(world: World, sender: int, receiver: int) -> bool:
    return _in_transit(world, sender, receiver) and delivery.is_sender_alive(world, sender, receiver)


def _can_send_to_controller(world: World, n: int) -> bool:
    return delivery.is_reachable(world, n) and broker_to_controller.can_send(world, n)


def _can_fetch(world: World, follower: int, partition: str) -> bool:
    if world.settings.data:
        return data_plane.can_fetch(world, follower, partition)
    return (follower, TopicPartition.parse(partition)) in set(delivery.fetches(world))


def _fetch(world: World, follower: int, partition: str) -> None:
    (data_plane if world.settings.data else delivery).fetch(world, follower, partition)


def _asks(request: str) -> Callable[..., None]:
    def send(world: World, name: str, broker: int | None = None) -> None:
        consumer_clients.send_request(world, request, name, broker)

    return send


def _has_session(world: World, n: int) -> bool:
    return n in world.orphaned_sessions or (n in world.processes and world.processes[n].session is OPEN)


def _sessions_exist(world: World, brokers: tuple[int, ...]) -> bool:
    return len(brokers) > 0 and all(_has_session(world, n) for n in brokers)


def _session(state: SessionState) -> Callable[..., bool]:
    def possible(world: World, n: int) -> bool:
        p = world.processes.get(n)
        begun = p is not None and (state is not EXPIRING or lifecycle.expire_has_begun(p.driver))
        return p is not None and not p.frozen and p.session is state and begun

    return possible


def _wants_to_exit(world: World, n: int) -> bool:
    return delivery.is_reachable(world, n) and world.processes[n].driver.exit_code is not None


def _is_armed(world: World, n: int, timer: str) -> bool:
    return _is_reachable(world, n) and timer in world.processes[n].driver.timers


def _can_shrink_isr(world: World, leader: int, partition: str, follower: int) -> bool:
    """Return whether broker `leader` runs, leads the partition in its own view, and can remove the follower from the ISR now.

    If the brokers store records (`Settings.data`), the follower must lag (`is_lagging`).
    """
    tp = TopicPartition.parse(partition)
    held = world.processes[leader].driver.broker.hosted.get(tp) if delivery.is_reachable(world, leader) else None
    if held is None or held.pending_isr or follower not in held.leadership.isr:
        return False
    leads = held.leadership.leader == leader != follower
    return leads and (not world.settings.data or data_plane.is_lagging(world, leader, tp, follower))


# fmt: off
ACTIONS: dict[str, Kind] = {
    # action                      is possible if                      is performed by                       why it is not possible
    # the cluster by itself
    "advance":               Kind(_can("can_advance"),                delivery.advance,                     why.unreachable),
    "begin":                 Kind(_can("can_begin"),                  delivery.begin,                       why.unreachable),
    "deliver_notification":  Kind(_has_notifications,                 delivery.deliver_notification),
    "deliver_request":       Kind(_in_transit,                        delivery.deliver_request),
    "send_delayed_response": Kind(delayed_responses.has_deliverable,  delayed_responses.send_delayed_response),
    "send_to_controller":    Kind(_can_send_to_controller,            broker_to_controller.send_requests),
    "fetch":                 Kind(_can_fetch,                         _fetch),
    "checkpoint":            Kind(data_plane.needs_checkpoint,        data_plane.checkpoint),
    "fire_timer":            Kind(_is_armed,                          delivery.fire_timer,                  why.fire_timer),
    "time_out_request":      Kind(channel_closing.can_time_out,       channel_closing.time_out_request),
    "exit":                  Kind(_wants_to_exit,                     lifecycle.exit_process),
    # processes of brokers
    "start":                 Kind(_is_down,                           lifecycle.start,                      why.start),
    "kill":                  Kind(_is_up,                             lifecycle.kill,                       why.unreachable),
    "terminate":             Kind(_is_reachable,                      lifecycle.terminate,                  why.unreachable),
    "freeze":                Kind(_is_reachable,                      lifecycle.freeze,                     why.unreachable),
    "thaw":                  Kind(_is_frozen,                         lifecycle.thaw,                       why.thaw),
    # sessions with ZooKeeper
    "expire_session":        Kind(_has_session,                       lifecycle.expire_session,             why.expire_session),
    "expire_sessions":       Kind(_sessions_exist,                    lifecycle.expire_sessions),
    "renew":                 Kind(_session(EXPIRED),                  lifecycle.renew_session),
    "reconnect":             Kind(_session(EXPIRING),                 lifecycle.reconnect),
    "reopen":                Kind(lifecycle.is_admin_clients,         lifecycle.reopen),
    # replicas and their logs, and what travels
    "shrink_isr":            Kind(_can_shrink_isr,                    delivery.shrink_isr,                  why.shrink_isr),
    "time_out_fetch":        Kind(delayed_responses.can_time_out,     delayed_responses.time_out_fetch,     why.unreachable),
    "drop_request":          Kind(_can_break,                         delivery.drop_request,                why.break_channel),
    "duplicate_request":     Kind(_can_break,                         delivery.duplicate_request,           why.break_channel),
    "produce":               Kind(data_plane.can_produce,             data_plane.produce,                   why.produce),
    "clean_log":             Kind(data_plane.can_clean,               data_plane.clean,                     why.clean_log),
    "lose_tail":             Kind(data_plane.has_tail,                data_plane.lose_tail,                 why.lose_tail),
    "fail_log_dir":          Kind(lifecycle.has_replica,              lifecycle.fail_log_dir,               why.fail_log_dir),
    # consumers and their groups, and the clock
    "join":                  Kind(consumer_clients.can_ask,           _asks("join"),                        why.ask),
    "sync":                  Kind(consumer_clients.can_ask,           _asks("sync"),                        why.ask),
    "heartbeat":             Kind(consumer_clients.can_ask,           _asks("heartbeat"),                   why.ask),
    "leave":                 Kind(consumer_clients.can_ask,           _asks("leave"),                       why.ask),
    "commit":                Kind(consumer_clients.can_commit,        consumer_clients.commit,              why.commit),
    "find_coordinator":      Kind(consumer_clients.can_find,          consumer_clients.find_coordinator,    why.find_coordinator),
    "freeze_consumer":       Kind(consumer_life.can_freeze,           consumer_life.freeze,                 why.freeze_consumer),
    "thaw_consumer":         Kind(consumer_life.can_thaw,             consumer_life.thaw,                   why.process),
    "restart":               Kind(consumer_clients.is_consumer,       consumer_clients.restart,             why.process),
    "expire_poll_interval":  Kind(consumer_clients.can_expire_poll,   consumer_clients.expire_poll,         why.expire_poll),
    "stop_polling":          Kind(consumer_life.can_stop_polling,     consumer_life.stop_polling,           why.process),
    "start_polling":         Kind(consumer_life.can_start_polling,    consumer_life.start_polling,          why.process),
    "coordinator_request":   Kind(coordinator_requests.can_ask,       coordinator_requests.ask),
    "expire_offsets":        Kind(coordinator_requests.can_expire,    coordinator_requests.expire_offsets,  why.unreachable),
    "wait":                  Kind(consumer_life.can_wait,             consumer_life.wait,                   why.wait),
    # administrators
    "create_topic":          Kind(admin_actions.can_create_topic,     admin_actions.create_topic),
    "alter_topic":           Kind(admin_actions.can_alter_topic,      admin_actions.alter_topic,            why.alter_topic),
    "delete_topic":          Kind(admin_actions.can_delete_topic,     admin_actions.delete_topic,           why.delete_topic),
    "reassign":              Kind(admin_actions.can_reassign,         admin_actions.reassign,               why.unreachable),
    "list_reassignments":    Kind(admin_actions.can_list,             admin_actions.list_reassignments,     why.unreachable),
    "list_groups":           Kind(*group_admin.functions("ListGroups")),
    "describe_group":        Kind(*group_admin.functions("DescribeGroups")),
    "delete_groups":         Kind(*group_admin.functions("DeleteGroups")),
    "delete_offsets":        Kind(*group_admin.functions("OffsetDelete")),
    "create":                Kind(admin_actions.can_write,            admin_actions.create),
    "set":                   Kind(admin_actions.can_write,            admin_actions.set_data),
    "delete":                Kind(admin_actions.can_delete,           admin_actions.delete),
    "scenario":              Kind(admin_actions.is_step,              admin_actions.note_step),
}
# fmt: on


LONGEST = 300  # characters of an action, or of one of its texts, in an error
SHOWN = {"n": "broker", "name": "consumer"}
"""What errors call a parameter, where its name in the code is another one."""


def form(kind: str) -> str:
    """How actions of this kind are written, optional arguments in brackets: "('freeze_consumer', consumer[, for_ms])"."""
    _, *given = inspect.signature(ACTIONS[kind].perform).parameters.values()
    named = ((SHOWN.get(one.name, one.name), one.default is one.empty) for one in given)
    return f"('{kind}'{''.join(f', {name}' if needed else f'[, {name}]' for name, needed in named)})"


def find_action(world: World, action: Action) -> Callable[..., None]:
    """Return the function that performs an action, to be called with the world and the action's arguments.

    Raises UserError if the action is unknown, has wrong arguments, or is not possible now.
    """
    kind = ACTIONS.get(action[0]) if action and isinstance(action[0], str) else None
    if kind is None:
        close = difflib.get_close_matches(str(action[0]), ACTIONS) if action else []
        similar = f" similar ones are {listed(map(form, close))};" if close else ""
        where = "lab.actions() has those that are possible now, ACTIONS in kcontrol.cluster.actions has all"
        raise UserError(f"There is no action {_cut(repr(action[:1]))};{similar} {where}.")
    try:
        possible = kind.possible(world, *action[1:])
    except (AttributeError, TypeError, ValueError) as error:
        reason = f": {_cut(str(error))}" if isinstance(error, ValueError) and str(error) else ""
        raise UserError(f"{_cut(repr(action))} does not have the form {form(action[0])}{reason}.") from None
    if not possible:
        raise _not_now(world, kind, action)
    return kind.perform


def _not_now(world: World, kind: Kind, action: Action) -> ActionNotPossible:
    others, reason = world.actions(), kind.why_not(world, *action[1:])
    listed = ", ".join(map(repr, others[:12])) or "none"
    reason = reason or f"{_cut(repr(action))} is not possible now; possible actions: {listed}"
    # A sentence that has a long text of the action, such as the name of a consumer, has only its beginning.
    for value in action:
        if isinstance(value, str):
            reason = reason.replace(repr(value), _cut(repr(value)))
    return ActionNotPossible(f"{reason}.", others)


def _cut(shown: str) -> str:
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}\u2026"


def routine_actions(world: World) -> Iterator[Action]:
    """Yield the actions that the cluster can perform by itself now, in the order in which `World.run` performs them."""
    if outage := lifecycle.overdue(world):
        yield outage
    living = [(n, p) for n, p in sorted(world.processes.items()) if not p.frozen]
    frozen = len(living) < len(world.processes)
    closing = frozen or world.network.thawed
    late = []  # brokers whose renewal comes after requests that are under way, since a request is faster than a session's end
    asking = [n for n, _ in living if n in world.network.to_controller and broker_to_controller.can_send(world, n)]
    for n, p in living:
        for kind, name in p.driver.ready():
            if not (closing and channel_closing.is_blocked(world, n, name)):
                yield (kind, n, name)
    for n, p in living:
        if p.notifications:
            yield ("deliver_notification", n)
        if p.session is EXPIRED:
            sends = any(by == n and delivery.is_reachable(world, to) for by, to in world.network.channels)
            if sends or any(broker_to_controller.reaches_before_renewal(world, asker, n) for asker in asking):
                late.append(n)
            else:
                yield ("renew", n)
        elif p.session is EXPIRING and lifecycle.expire_has_begun(p.driver):
            yield ("reconnect", n)
    for sender, receiver in world.network.deliverable():
        if delivery.is_deliverable(world, sender, receiver):
            yield ("deliver_request", sender, receiver)
    if world.network.delayed_responses:
        yield from (("send_delayed_response", broker) for broker, _ in delayed_responses.deliverable(world))
    yield from (("send_to_controller", n) for n in asking if n not in late)
    yield from (("renew", n) for n in late)
    yield from (("send_to_controller", n) for n in asking if n in late)
    for n, p in living:
        if p.driver.exit_code is not None:
            yield ("exit", n)
    if world.settings.followers:
        for follower, tp in (data_plane if world.settings.data else delivery).fetches(world):
            yield ("fetch", follower, str(tp))
    for n, _ in living if world.settings.data else ():
        if data_plane.needs_checkpoint(world, n):
            yield ("checkpoint", n)
    for n in sorted(world.orphaned_sessions):
        yield ("expire_session", n)
    for n, p in living:
        yield from (("fire_timer", n, name) for name in sorted(p.driver.routine_timers))
    for n, _ in living if frozen else ():
        yield from (("time_out_request", n, receiver) for receiver in channel_closing.brokers_to_time_out(world, n))


def fault_actions(world: World) -> Iterator[Action]:
    """Yield the possible faults of the kinds in `settings.faults`, and the timers that `World.run` does not fire.

    Examples are ("kill", 1) and, for a timer, ("fire_timer", broker, name of the timer).
    """
    offered = world.settings.faults
    for n, p in sorted(world.processes.items()):
        timers = sorted(p.driver.timers.items()) if not p.frozen else ()
        yield from (("fire_timer", n, name) for name, timer in timers if not timer.is_routine)
        if "kill" in offered:
            yield "kill", n
        if "expire_session" in offered and p.session is OPEN and n not in world.orphaned_sessions:
            yield "expire_session", n
        yield from ((kind, n) for kind in (("thaw",) if p.frozen else ("terminate", "freeze")) if kind in offered)
        for tp, held in sorted(p.driver.broker.hosted.items()) if "shrink_isr" in offered else ():
            yield from (("shrink_isr", n, str(tp), b) for b in held.leadership.isr if _can_shrink_isr(world, n, str(tp), b))
        if world.settings.data and "produce" in offered and not p.frozen:
            yield from data_plane.produce_actions(world, n, p.driver.broker)
    yield from (("start", n) for n in world.settings.brokers if n not in world.processes and "start" in offered)
    for kind in ("drop_request", "duplicate_request"):
        if kind in offered:
            yield from ((kind, *pair) for pair in world.network.deliverable() if _can_break(world, *pair))
    if "create_topic" in offered:
        missing = (t for t in world.settings.topics if admin_actions.lacks_topic(world, t))
        yield from (("create_topic", topic, world.settings.topics[topic]) for topic in missing)
    requests = [request for request in consumer_clients.REQUESTED if request in offered]
    for name in world.consumers if requests else ():
        yield from ((request, name) for request in requests if consumer_clients.can_ask(world, name))
    if "delete_topic" in offered:
        present = (topic for topic in admin_actions.topics(world) if admin_actions.can_delete_topic(world, topic))
        yield from (("delete_topic", topic) for topic in present)
    if "delete_controller" in offered and world.exist(znodes.CONTROLLER) == [True]:
        yield ("delete", znodes.CONTROLLER)
