"""Every action: when it can happen and what it does. ACTIONS at the end is the list.

Routine actions go on by themselves; faults are what somebody, or something, does to the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kcontrol import znodes
from kcontrol.controller.handlers import event_of
from kcontrol.effects import Op
from kcontrol.errors import UserError
from kcontrol.events import (
    AlterIsrReceived,
    AlterIsrResponse,
    BrokerStartup,
    ControlledShutdown,
    ControlledShutdownResponse,
    Event,
    Expire,
    RegisterBrokerAndReelect,
    ReplicaCaughtUp,
    ReplicaLags,
    Shutdown,
)
from kcontrol.model import ReplicaAssignment, TopicPartition
from kcontrol.runtime.driver import Driver
from kcontrol.runtime.journal import RecordId
from kcontrol.runtime.zookeeper import Client
from kcontrol.sim import network, process, topic_ids

if TYPE_CHECKING:
    from kcontrol.sim.world import Action, World

HOST = "127.0.0.1"
FIRST_PORT = 9092


def hears(world: World, broker: int) -> bool:
    """Whether a process is there and can be spoken to."""
    p = world.processes.get(broker)
    return p is not None and not p.frozen


# ---------------------------------------------------------------- threads and watch events


def begin(world: World, n: int, thread: str) -> None:
    world.processes[n].driver.begin(thread)


def advance(world: World, n: int, thread: str) -> None:
    world.processes[n].driver.advance(thread)


def deliver(world: World, n: int) -> None:
    """The next watch event of the session becomes an event of the queue, if its path still has a handler."""
    p = world.processes[n]
    notice = p.notices.popleft()
    said, path = notice.event
    listens = (path, said == "NodeChildrenChanged") in p.driver.watched
    event = event_of(said, path) if listens else None
    if event is None:
        p.driver.log("drop", notice.record, type=said, path=path)
    else:
        p.driver.enqueue(event, notice.record, noticed=True)


# ---------------------------------------------------------------- requests and questions


def _begin_if_idle(driver: Driver, thread: str) -> None:
    if driver.can_begin(driver.threads[thread]):
        driver.begin(thread)


def deliver_request(world: World, sender: int, receiver: int) -> None:
    """The first request of a channel is handled by its receiver, whose answer goes back at once."""
    parcel = world.network.channels[sender, receiver][0]
    event = world.network.request_event(world.processes[sender].driver, (sender, receiver))
    driver = world.processes[receiver].driver
    record = driver.log("receive", parcel.record, api=parcel.api, sender=sender)
    driver.enqueue(event, record, "requests")
    _begin_if_idle(driver, "requests")


def lose(world: World, sender: int, receiver: int) -> None:
    """The connection breaks before the request arrives: the sender sends the same request again."""
    parcel = world.network.channels[sender, receiver][0]
    world.log("lose", parcel.record, sender=sender, receiver=receiver, api=parcel.api)


def duplicate(world: World, sender: int, receiver: int) -> None:
    """The connection breaks before the answer arrives: the receiver will hear the same request again."""
    parcel = world.network.channels[sender, receiver][0]
    world.log("duplicate", parcel.record, sender=sender, receiver=receiver, api=parcel.api)
    world.network.channels[sender, receiver].appendleft(parcel)
    deliver_request(world, sender, receiver)


def ask(world: World, n: int) -> None:
    """What a broker wants to know goes to whom it takes for the controller, all of one kind in one request."""
    driver = world.processes[n].driver
    pending = world.network.pending(n)
    target = driver.broker.controller_id
    correlation_id = f"{n}.{driver.incarnation}-{pending[0].record.seq}-{pending[0].api}"
    together = [question for question in pending if question.api == pending[0].api]
    body: dict[Any, Any] = {}
    for question in together:
        question.asked, question.correlation_id, question.refused_by = target, correlation_id, None
        body |= question.body
    event: Event
    if pending[0].api == "AlterIsr":
        event = AlterIsrReceived(correlation_id, n, driver.broker.broker_epoch, tuple(body.items()))
    else:
        event = ControlledShutdown(correlation_id, body["broker_id"], body["broker_epoch"])
    world.processes[target].driver.enqueue(event, pending[0].record)


def answer_question(world: World, by: Driver, correlation_id: str, body: Any, record: RecordId) -> None:
    """The controller's answer reaches the broker that asked; a refusal as a whole makes it ask again, when it knows better."""
    for n, questions in world.network.questions.items():
        asked = [q for q in questions if q.correlation_id == correlation_id]
        if not asked or n not in world.processes:
            continue
        driver = world.processes[n].driver
        if body is None:
            for question in asked:
                question.asked, question.correlation_id = -1, ""
            return
        if body["error"] != "NONE" and asked[0].api == "AlterIsr":
            for question in asked:
                question.asked, question.correlation_id = -1, ""
                question.refused_by = (by.node, driver.broker.controller_epoch)
            driver.log("refused", record, api=asked[0].api, error=body["error"])
            return
        world.network.settle(n, asked)
        world.log("told", record, broker=n, settled=[str(q.record) for q in asked])
        driver.enqueue(_answer(asked[0].api, body), record, "requests")
        _begin_if_idle(driver, "requests")
        return


def _answer(api: str, body: Any) -> Event:
    if api == "AlterIsr":
        return AlterIsrResponse(body["error"], tuple(body["partitions"].items()))
    return ControlledShutdownResponse(body["error"], tuple(body["partitions"]))


def _may_ask(world: World, n: int) -> bool:
    broker = world.processes[n].driver.broker
    pending = world.network.pending(n)
    waiting = any(q.asked != -1 for q in world.network.questions.get(n, ()))
    if not pending or waiting or not hears(world, broker.controller_id):
        return False
    return all(q.refused_by != (broker.controller_id, broker.controller_epoch) for q in pending)


def fetch(world: World, follower: int, partition: str) -> None:
    """A follower catches up with its leader, which takes note of it."""
    tp = TopicPartition.parse(partition)
    leader = world.processes[world.processes[follower].driver.broker.hosted[tp].value.leader].driver
    leader.enqueue(ReplicaCaughtUp(tp, follower), None, "requests")
    _begin_if_idle(leader, "requests")


def _fetches(world: World) -> Iterator[tuple[int, TopicPartition]]:
    """Followers outside the ISR that agree with a living leader about who leads and since when."""
    for n, p in sorted(world.processes.items()):
        for tp, held in p.driver.behind.items() if not p.frozen else ():
            for follower in held.replicas:
                other = world.processes.get(follower)
                if follower == n or follower in held.value.isr or other is None or other.frozen:
                    continue
                mine = other.driver.broker.hosted.get(tp)
                if mine and (mine.value.leader, mine.value.leader_epoch) == (n, held.value.leader_epoch):
                    yield follower, tp


def shrink(world: World, leader: int, partition: str, follower: int) -> None:
    """A follower has not caught up for too long: its leader wants it out of the ISR."""
    driver = world.processes[leader].driver
    driver.enqueue(ReplicaLags(TopicPartition.parse(partition), follower), None, "requests")
    _begin_if_idle(driver, "requests")


def fire(world: World, n: int, timer: str) -> None:
    driver = world.processes[n].driver
    if world.is_simulated:
        world.now_ms = max(world.now_ms, driver.timers[timer].at_ms)
    driver.fire(timer)


# ---------------------------------------------------------------- processes and sessions


def start(world: World, n: int) -> None:
    """A broker process starts: a new session, and its start-up handler waiting to run."""
    incarnation = world.incarnations[n] = world.incarnations.get(n, 0) + 1
    cause = world.log("start", None, broker=n, incarnation=incarnation)
    client = world.zk.connect(world.settings.config.zookeeper_session_timeout_ms)
    world.owners[client.session_id] = n
    controller, broker = process.contexts(world.settings, n)
    driver = world._driver(n, incarnation, client, controller, broker)
    world.processes[n] = process.Process(driver, HOST, FIRST_PORT + n)
    opened = driver.log("open", cause, session=client.session_id)
    cluster_id = f"{world.random.getrandbits(128):032x}"[:22]
    driver.enqueue(BrokerStartup(HOST, FIRST_PORT + n, 0, cluster_id), opened, "main")


def kill(world: World, n: int) -> None:
    """The process dies at once; ZooKeeper does not know yet, and keeps its session until it expires."""
    world.log("stop", None, broker=n, exit_code=None)
    remove_process(world, n)


def term(world: World, n: int) -> None:
    """The process is asked to stop, as by SIGTERM: it says goodbye to the controller first."""
    driver = world.processes[n].driver
    driver.enqueue(Shutdown(), world.log("act", None, action=["term", n]), "requests")


def remove_process(world: World, n: int) -> None:
    p = world.processes.pop(n)
    if p.session == "open":
        world.ghosts.setdefault(n, []).append(p.driver.client)
    world.network.forget(n)


def freeze(world: World, n: int) -> None:
    """The process is stopped as by SIGSTOP: it does nothing, and its session goes on until it expires."""
    world.log("freeze", None, broker=n)
    world.processes[n].frozen = True


def thaw(world: World, n: int) -> None:
    world.log("thaw", None, broker=n)
    world.processes[n].frozen = False


def expire(world: World, n: int) -> None:
    """The oldest session that this broker left behind ends, or, if it left none, the one that it works under."""
    ghosts = world.ghosts.get(n)
    if ghosts:
        client = ghosts.pop(0)
        if not ghosts:
            del world.ghosts[n]
        end_session(world, n, client, None)
        return
    p = world.processes[n]
    p.session = "expired"
    p.notices.clear()
    end_session(world, n, p.driver.client, p.driver.log("session_lost", None))


def end_session(world: World, n: int, client: Client, cause: RecordId | None) -> None:
    closed = world.zk.end(client)
    world.log("close", cause, broker=n, session=client.session_id, deleted=list(closed.deleted), zxid=closed.zxid)


def exit_with(world: World, n: int, exit_code: int) -> None:
    """The process gives up by itself and closes its session on the way."""
    p = world.processes.pop(n)
    cause = world.log("stop", None, broker=n, exit_code=exit_code)
    world.network.forget(n)
    if p.session == "open":
        end_session(world, n, p.driver.client, cause)


def renew(world: World, n: int) -> None:
    """The client library of a living broker learns that its session is gone; the controller hears of it before anything else."""
    p = world.processes[n]
    p.session = "expiring"
    record = p.driver.log("renew", None)
    p.driver.clear("controller", record)
    p.driver.enqueue(Expire(), record)


def reconnect(world: World, n: int) -> None:
    """Once Expire has begun, the library opens another session; registering under it queues behind Expire."""
    p = world.processes[n]
    client = world.zk.connect(world.settings.config.zookeeper_session_timeout_ms)
    world.owners[client.session_id] = n
    p.driver.client, p.session = client, "open"
    record = p.driver.log("open", None, session=client.session_id)
    p.driver.enqueue(RegisterBrokerAndReelect(p.host, p.port), record)


def _expire_has_begun(driver: Driver) -> bool:
    return not any(isinstance(item.event, Expire) for item in driver.threads["controller"].queue.waiting)


# ---------------------------------------------------------------- outside hands


def create_topic(world: World, topic: str, assignment: Any) -> None:
    """What the topic tool writes: the configuration, then the topic with its replicas, with an id since 2.8."""
    cause = world.log("act", None, action=["create_topic", topic, assignment])
    numbered = assignment.items() if isinstance(assignment, dict) else enumerate(assignment)
    partitions = {int(p): ReplicaAssignment(tuple(replicas)) for p, replicas in numbered}
    topic_id = topic_ids.of(topic) if world.settings.rules().topic_ids else None
    data = znodes.encode_topic(znodes.TopicZnode(partitions, topic_id))
    world.write((Op("create", znodes.topic_config_path(topic), znodes.encode_topic_config({})),), cause)
    world.write((Op("create", znodes.topic_path(topic), data),), cause)


def delete(world: World, path: str) -> None:
    """An outside hand deletes a znode."""
    cause = world.log("act", None, action=["delete", path])
    _insist(path, world.write((Op("delete", path),), cause))


def set_data(world: World, path: str, text: str) -> None:
    """An outside hand rewrites a znode."""
    cause = world.log("act", None, action=["set", path, text])
    _insist(path, world.write((Op("set", path, text.encode()),), cause))


def create(world: World, path: str, text: str) -> None:
    """An outside hand creates a persistent znode."""
    cause = world.log("act", None, action=["create", path, text])
    _insist(path, world.write((Op("create", path, text.encode()),), cause))


def _insist(path: str, error: str | None) -> None:
    if error:
        raise UserError(f"ZooKeeper refuses that write to {path}: {error}.")


class Kind(NamedTuple):
    """One kind of action: what it does, whether it goes on by itself, and when it is possible, given the words of the action."""

    perform: Callable[..., None]
    routine: bool
    possible: Callable[..., bool]
    form: str


def _has(world: World, n: Any, *_: Any) -> bool:
    return n in world.processes


def _can(name: str) -> Callable[..., bool]:
    def possible(world: World, n: int, thread: str) -> bool:
        p = world.processes.get(n)
        found = p.driver.threads.get(thread) if p and not p.frozen else None
        return found is not None and p is not None and bool(getattr(p.driver, name)(found))

    return possible


def _in_transit(world: World, sender: int, receiver: int) -> bool:
    return (sender, receiver) in world.network.deliverable() and hears(world, receiver) and hears(world, sender)


def _session(state: str) -> Callable[..., bool]:
    def possible(world: World, n: int) -> bool:
        p = world.processes.get(n)
        begun = p is not None and (state != "expiring" or _expire_has_begun(p.driver))
        return p is not None and not p.frozen and p.session == state and begun

    return possible


def _always(world: World, *_: Any) -> bool:
    return True


# fmt: off
ACTIONS: dict[str, Kind] = {
    # kind          does             routine  possible when                                                              form
    "advance":      Kind(advance,         True,  _can("can_advance"),                                                 "('advance', broker, thread)"),
    "begin":        Kind(begin,           True,  _can("can_begin"),                                                   "('begin', broker, thread)"),
    "deliver":      Kind(deliver,         True,  lambda w, n: hears(w, n) and bool(w.processes[n].notices),           "('deliver', broker)"),
    "renew":        Kind(renew,           True,  _session("expired"),                                                 "('renew', broker)"),
    "reconnect":    Kind(reconnect,       True,  _session("expiring"),                                                "('reconnect', broker)"),
    "request":      Kind(deliver_request, True,  _in_transit,                                                         "('request', sender, receiver)"),
    "ask":          Kind(ask,             True,  lambda w, n: hears(w, n) and _may_ask(w, n),                         "('ask', broker)"),
    "fetch":        Kind(fetch,           True,  lambda w, n, tp: (n, TopicPartition.parse(tp)) in set(_fetches(w)),  "('fetch', follower, partition)"),
    "expire":       Kind(expire,          True,  lambda w, n: n in w.ghosts or (n in w.processes and w.processes[n].session == "open"), "('expire', broker)"),
    "fire":         Kind(fire,            False, lambda w, n, t: hears(w, n) and t in w.processes[n].driver.timers,   "('fire', broker, timer)"),
    "start":        Kind(start,           False, lambda w, n: isinstance(n, int) and n >= 0 and n not in w.processes, "('start', broker)"),
    "kill":         Kind(kill,            False, _has,                                                                "('kill', broker)"),
    "term":         Kind(term,            False, hears,                                                               "('term', broker)"),
    "freeze":       Kind(freeze,          False, hears,                                                               "('freeze', broker)"),
    "thaw":         Kind(thaw,            False, lambda w, n: n in w.processes and w.processes[n].frozen,             "('thaw', broker)"),
    "shrink":       Kind(shrink,          False, _has,                                                                "('shrink', leader, partition, follower)"),
    "lose":         Kind(lose,            False, _in_transit,                                                         "('lose', sender, receiver)"),
    "duplicate":    Kind(duplicate,       False, _in_transit,                                                         "('duplicate', sender, receiver)"),
    "create_topic": Kind(create_topic,    False, _always,                                                             "('create_topic', topic, assignment)"),
    "delete":       Kind(delete,          False, _always,                                                             "('delete', path)"),
    "set":          Kind(set_data,        False, _always,                                                             "('set', path, text)"),
    "create":       Kind(create,          False, _always,                                                             "('create', path, text)"),
}
# fmt: on


def find(world: World, action: Action) -> Callable[..., None]:
    """What performs an action. Raises UserError, listing what there is, for one that is unknown or not possible now."""
    kind = ACTIONS.get(action[0]) if action else None
    if kind is None:
        raise UserError(f"There is no action {action[:1]!r}; there are {', '.join(k.form for k in ACTIONS.values())}.")
    try:
        possible = kind.possible(world, *action[1:])
    except (TypeError, ValueError, KeyError):
        raise UserError(f"{action!r} does not have the form {kind.form}.") from None
    if not possible:
        now = ", ".join(map(repr, world.actions()[:12])) or "nothing"
        raise UserError(f"{action!r} cannot happen now; what can is {now}.")
    return kind.perform


def routine(world: World) -> Iterator[Action]:
    """What goes on by itself: threads first, then watch events, requests, questions, fetches, and the end of sessions left behind."""
    living = [(n, p) for n, p in sorted(world.processes.items()) if not p.frozen]
    for n, p in living:
        for name, thread in p.driver.threads.items():
            if thread.handler is not None and p.driver.can_advance(thread):
                yield ("advance", n, name)
            elif thread.queue and p.driver.can_begin(thread):
                yield ("begin", n, name)
    for n, p in living:
        if p.notices:
            yield ("deliver", n)
        if p.session == "expired":
            yield ("renew", n)
        elif p.session == "expiring" and _expire_has_begun(p.driver):
            yield ("reconnect", n)
    for sender, receiver in world.network.deliverable():
        if hears(world, receiver) and hears(world, sender):
            yield ("request", sender, receiver)
    for n, _ in living:
        if _may_ask(world, n):
            yield ("ask", n)
    if world.settings.followers:
        for follower, tp in _fetches(world):
            yield ("fetch", follower, str(tp))
    for n in sorted(world.ghosts):
        yield ("expire", n)
    for n, p in living:
        yield from (("fire", n, name) for name, timer in sorted(p.driver.timers.items()) if not timer.periodic)


def faults(world: World) -> Iterator[Action]:
    """The faults that the settings put on offer, as far as they are possible now, and the timers that are armed."""
    offered = world.settings.faults
    for n, p in sorted(world.processes.items()):
        yield from (("fire", n, name) for name, timer in sorted(p.driver.timers.items()) if timer.periodic)
        yield from (("kill", n),) if "kill" in offered else ()
        yield from (("expire", n),) if "expire" in offered and p.session == "open" and n not in world.ghosts else ()
        for tp, held in sorted(p.driver.broker.hosted.items()) if "shrink" in offered else ():
            if held.value.leader == n and not held.pending_isr:
                yield from (("shrink", n, str(tp), b) for b in held.value.isr if b != n)
    yield from (("start", n) for n in world.settings.brokers if n not in world.processes and "start" in offered)
    for kind in ("lose", "duplicate"):
        if kind in offered:
            yield from ((kind, *pair) for pair in world.network.deliverable() if _in_transit(world, *pair))
    if "create_topic" in offered:
        topics = ((t, a) for t, a in world.settings.topics.items() if world.tool.exists([znodes.topic_path(t)], False) == [None])
        yield from (("create_topic", topic, assignment) for topic, assignment in topics)
    if "delete_controller" in offered and world.tool.exists([znodes.CONTROLLER], False) != [None]:
        yield ("delete", znodes.CONTROLLER)
