"""Everything that can happen: ACTIONS says of each kind when it is possible and what does it.

Routine actions go on by themselves; faults are what somebody, or something, does to the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from kcontrol import znodes
from kcontrol.errors import NotNow, UserError
from kcontrol.model import TopicPartition
from kcontrol.sim import closing_2_1, data, exchange, groups, hands, held_answers_1_0, lives, questions, timeouts

if TYPE_CHECKING:
    from kcontrol.sim.world import Action, World


class Kind(NamedTuple):
    """One kind of action: whether it goes on by itself, when it is possible, what it does, and the words that follow its kind.

    Words in brackets may be left out.
    """

    routine: bool
    possible: Callable[..., bool]
    perform: Callable[..., None]
    form: str


def _is_up(world: World, n: int) -> bool:
    return n in world.processes


def _is_down(world: World, n: object) -> bool:
    return isinstance(n, int) and n >= 0 and n not in world.processes


def _is_frozen(world: World, n: int) -> bool:
    return n in world.processes and world.processes[n].frozen


def _can(name: str) -> Callable[..., bool]:
    def possible(world: World, n: int, thread: str) -> bool:
        p = world.processes.get(n)
        found = p.driver.threads.get(thread) if p and not p.frozen else None
        can = found is not None and p is not None and bool(getattr(p.driver, name)(found))
        return can and not closing_2_1.holds_up(world, n, thread)

    return possible


def _has_notices(world: World, n: int) -> bool:
    return exchange.hears(world, n) and bool(world.processes[n].notices)


def _in_transit(world: World, sender: int, receiver: int) -> bool:
    return (sender, receiver) in world.network.deliverable() and exchange.travels(world, sender, receiver)


def _can_break(world: World, sender: int, receiver: int) -> bool:
    return _in_transit(world, sender, receiver) and exchange.is_connected(world, sender, receiver)


def _can_ask(world: World, n: int) -> bool:
    return exchange.hears(world, n) and questions.may_ask(world, n)


def _can_fetch(world: World, follower: int, partition: str) -> bool:
    if world.settings.data:
        return data.can_fetch(world, follower, partition)
    return (follower, TopicPartition.parse(partition)) in set(exchange.fetches(world))


def _fetch(world: World, follower: int, partition: str) -> None:
    (data if world.settings.data else exchange).fetch(world, follower, partition)


def _has_session(world: World, n: int) -> bool:
    return n in world.ghosts or (n in world.processes and world.processes[n].session == "open")


def _have_sessions(world: World, brokers: tuple[int, ...]) -> bool:
    return len(brokers) > 0 and all(_has_session(world, n) for n in brokers)


def _session(state: str) -> Callable[..., bool]:
    def possible(world: World, n: int) -> bool:
        p = world.processes.get(n)
        begun = p is not None and (state != "expiring" or lives.expire_has_begun(p.driver))
        return p is not None and not p.frozen and p.session == state and begun

    return possible


def _wants_to_exit(world: World, n: int) -> bool:
    return exchange.hears(world, n) and world.processes[n].driver.exit_code is not None


def _is_armed(world: World, n: int, timer: str) -> bool:
    return exchange.hears(world, n) and timer in world.processes[n].driver.timers


def _may_shrink(world: World, leader: int, partition: str, follower: int) -> bool:
    """Whether this broker runs, believes that it leads the partition with the follower in sync, and waits for no answer."""
    tp = TopicPartition.parse(partition)
    held = world.processes[leader].driver.broker.hosted.get(tp) if exchange.hears(world, leader) else None
    leads = held is not None and held.value.leader == leader != follower and follower in held.value.isr and not held.pending_isr
    return leads and (not world.settings.data or data.lags(world, leader, tp, follower))


# fmt: off
ACTIONS: dict[str, Kind] = {
    # kind          routine  possible when         does                       form
    "advance":      Kind(True,  _can("can_advance"),  exchange.advance,          "broker, thread"),
    "begin":        Kind(True,  _can("can_begin"),    exchange.begin,            "broker, thread"),
    "deliver":      Kind(True,  _has_notices,         exchange.deliver,          "broker"),
    "renew":        Kind(True,  _session("expired"),  lives.renew,               "broker"),
    "reconnect":    Kind(True,  _session("expiring"), lives.reconnect,           "broker"),
    "request":      Kind(True,  _in_transit,          exchange.deliver_request,  "sender, receiver"),
    "give":         Kind(True,  held_answers_1_0.is_free, held_answers_1_0.give,         "broker"),
    "ask":          Kind(True,  _can_ask,             questions.ask,             "broker"),
    "exit":         Kind(True,  _wants_to_exit,       lives.leave,               "broker"),
    "fetch":        Kind(True,  _can_fetch,           _fetch,                    "follower, partition"),
    "checkpoint":   Kind(True,  data.is_due,          data.checkpoint,           "broker"),
    "expire":       Kind(True,  _has_session,         lives.expire,              "broker"),
    "outage":       Kind(True,  _have_sessions,       lives.outage,              "brokers"),
    "reopen":       Kind(False, lives.is_tools,       lives.reopen,              "client"),
    "fire":         Kind(True,  _is_armed,            exchange.fire,             "broker, timer"),
    "time_out":     Kind(True,  timeouts.can_time_out, timeouts.time_out,        "sender, receiver"),
    "start":        Kind(False, _is_down,             lives.start,               "broker"),
    "kill":         Kind(False, _is_up,               lives.kill,                "broker"),
    "term":         Kind(False, exchange.hears,       lives.term,                "broker"),
    "freeze":       Kind(False, exchange.hears,       lives.freeze,              "broker"),
    "thaw":         Kind(False, _is_frozen,           lives.thaw,                "broker"),
    "shrink":       Kind(False, _may_shrink,          exchange.shrink,           "leader, partition, follower"),
    "fetch_timeout": Kind(False, held_answers_1_0.may_time_out, held_answers_1_0.time_out, "broker"),
    "lose":         Kind(False, _can_break,           exchange.lose,             "sender, receiver"),
    "duplicate":    Kind(False, _can_break,           exchange.duplicate,        "sender, receiver"),
    "produce":      Kind(False, data.can_produce,     data.produce,              "leader, partition, value, acks"),
    "consumer":     Kind(False, groups.can_ask,       groups.ask,                "consumer, request"),
    "commit":       Kind(False, groups.can_commit,    groups.commit,             "consumer, partition, offset"),
    "lose_tail":    Kind(False, data.has_tail,        data.lose_tail,            "broker, partition, offset"),
    "fail_log_dir": Kind(False, lives.holds,          lives.fail_log_dir,        "broker, partition"),
    "create_topic": Kind(False, hands.can_create_topic, hands.create_topic,      "topic, assignment[, config]"),
    "alter_topic":  Kind(False, hands.can_alter_topic, hands.alter_topic,        "topic, config"),
    "delete_topic": Kind(False, hands.can_delete_topic, hands.delete_topic,      "topic"),
    "delete":       Kind(False, hands.can_write,      hands.delete,              "path"),
    "set":          Kind(False, hands.can_write,      hands.set_data,            "path, text"),
    "create":       Kind(False, hands.can_write,      hands.create,              "path, text"),
    "reassign":     Kind(False, hands.can_reassign,   hands.reassign,            "broker, targets"),
    "list_reassignments": Kind(False, hands.can_list, hands.list_reassignments,  "broker"),
    "scenario":     Kind(False, hands.is_step,        hands.note_step,           "step, do"),
}
# fmt: on


def form(kind: str) -> str:
    """How an action of this kind is written."""
    return f"('{kind}', {ACTIONS[kind].form})"


def find(world: World, action: Action) -> Callable[..., None]:
    """What performs an action. Raises UserError, listing what there is, for one that is unknown or not possible now."""
    kind = ACTIONS.get(action[0]) if action and isinstance(action[0], str) else None
    if kind is None:
        raise UserError(f"There is no action {action[:1]!r}; there are {', '.join(map(form, ACTIONS))}.")
    try:
        required = kind.form.partition("[")[0]
        if not 2 + required.count(",") <= len(action) <= 2 + kind.form.count(","):
            raise ValueError
        possible = kind.possible(world, *action[1:])
    except (AttributeError, TypeError, ValueError):
        raise UserError(f"{action!r} does not have the form {form(action[0])}.") from None
    if not possible:
        others = world.actions()
        now = ", ".join(map(repr, others[:12])) or "nothing"
        raise NotNow(f"{action!r} cannot happen now; what can is {now}.", others)
    return kind.perform


def routine(world: World) -> Iterator[Action]:
    """What goes on by itself: outages, threads, watch events, requests, questions, fetches, sessions left behind, timers."""
    if outage := lives.overdue(world):
        yield outage
    living = [(n, p) for n, p in sorted(world.processes.items()) if not p.frozen]
    frozen = len(living) < len(world.processes)
    closing = frozen or world.network.thawed
    late = []  # brokers that hear later that their sessions have expired: what brokers send or ask reaches its receiver sooner
    asking = [n for n, _ in living if questions.may_ask(world, n)]
    for n, p in living:
        ready = [(kind, name) for kind, name in p.driver.ready() if not (closing and closing_2_1.holds_up(world, n, name))]
        yield from ((kind, n, name) for kind, name in ready)
    for n, p in living:
        if p.notices:
            yield ("deliver", n)
        if p.session == "expired":
            sends = any(by == n and exchange.hears(world, to) for by, to in world.network.channels)
            if sends or any(questions.reaches_before_renewal(world, asker, n) for asker in asking):
                late.append(n)
            else:
                yield ("renew", n)
        elif p.session == "expiring" and lives.expire_has_begun(p.driver):
            yield ("reconnect", n)
    for sender, receiver in world.network.deliverable():
        if exchange.travels(world, sender, receiver):
            yield ("request", sender, receiver)
    if world.network.held:
        yield from (("give", broker) for broker, _ in held_answers_1_0.free(world))
    yield from (("ask", n) for n in asking if n not in late)
    for n in late:
        yield ("renew", n)
    yield from (("ask", n) for n in asking if n in late)
    for n, p in living:
        if p.driver.exit_code is not None:
            yield ("exit", n)
    if world.settings.followers:
        for follower, tp in (data if world.settings.data else exchange).fetches(world):
            yield ("fetch", follower, str(tp))
    for n, _ in living if world.settings.data else ():
        if data.is_due(world, n):
            yield ("checkpoint", n)
    for n in sorted(world.ghosts):
        yield ("expire", n)
    for n, p in living:
        yield from (("fire", n, name) for name, timer in sorted(p.driver.timers.items()) if timer.goes_by_itself)
    for n, _ in living:
        yield from (("time_out", n, receiver) for receiver in timeouts.offers(world, n) if frozen)


def faults(world: World) -> Iterator[Action]:
    """The faults that the settings put on offer, as far as they are possible now, and the timers that are armed."""
    offered = world.settings.faults
    for n, p in sorted(world.processes.items()):
        yield from (
            ("fire", n, name) for name, timer in sorted(p.driver.timers.items()) if not timer.goes_by_itself and not p.frozen
        )
        yield from (("kill", n),) if "kill" in offered else ()
        yield from (("expire", n),) if "expire" in offered and p.session == "open" and n not in world.ghosts else ()
        yield from ((kind, n) for kind in (("thaw",) if p.frozen else ("term", "freeze")) if kind in offered)
        for tp, held in sorted(p.driver.broker.hosted.items()) if "shrink" in offered else ():
            yield from (("shrink", n, str(tp), b) for b in held.value.isr if _may_shrink(world, n, str(tp), b))
        if world.settings.data and "produce" in offered and not p.frozen:
            yield from data.offers(world, n, p.driver.broker)
    yield from (("start", n) for n in world.settings.brokers if n not in world.processes and "start" in offered)
    for kind in ("lose", "duplicate"):
        if kind in offered:
            yield from ((kind, *pair) for pair in world.network.deliverable() if _can_break(world, *pair))
    if "create_topic" in offered:
        missing = (t for t in world.settings.topics if hands.lacks_topic(world, t))
        yield from (("create_topic", topic, world.settings.topics[topic]) for topic in missing)
    for name in world.consumers if "consumer" in offered else ():
        yield from (("consumer", name, request) for request in groups.REQUESTED if groups.can_ask(world, name, request))
    if "delete_topic" in offered:
        yield from (("delete_topic", topic) for topic in hands.topics(world) if hands.can_delete_topic(world, topic))
    if "delete_controller" in offered and world.have(znodes.CONTROLLER) == [True]:
        yield ("delete", znodes.CONTROLLER)
