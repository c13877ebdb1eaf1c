"""One broker process: its driver, where it listens, and how things stand with its ZooKeeper session."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from kcontrol import events
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.handlers import handle as handle_controller_event
from kcontrol.effects import WatchEvent
from kcontrol.generations import EVENT_THREAD, LISTENERS, QUEUE, Rules
from kcontrol.group.context import GroupContext
from kcontrol.group.handlers import REQUESTS, SCHEDULER
from kcontrol.group.handlers import THREADS as GROUP_THREADS
from kcontrol.group.handlers import handle as handle_group_event
from kcontrol.model import TopicPartition
from kcontrol.replica.context import BrokerContext
from kcontrol.replica.handlers import HANDLERS as BROKER_HANDLERS
from kcontrol.replica.handlers import handle as handle_broker_event
from kcontrol.runtime.driver import Driver, Handle, Outbox, Thread
from kcontrol.runtime.journal import Journal, RecordId
from kcontrol.runtime.revival import revive
from kcontrol.runtime.zookeeper import Client
from kcontrol.sim.settings import Settings

LOCK = "controllerLock"

# fmt: off
THREADS: dict[str, tuple[tuple[str, str, str | None], ...]] = {
    # design          thread, the room whose handlers it runs, and the lock that it shares
    LISTENERS:    (("main",                "controller", LOCK),
                   ("zk-events",           "controller", LOCK),
                   ("controlled-shutdown", "controller", LOCK),
                   ("scheduler",           "controller", LOCK),
                   ("delete-topics",       "controller", LOCK),
                   ("send",                "controller", LOCK),
                   ("requests",            "broker",     None)),
    QUEUE:        (("zk-events",           "controller", None),
                   ("controller",          "controller", None),
                   ("main",                "broker",     None),
                   ("requests",            "broker",     None)),
    EVENT_THREAD: (("main",                "broker",     None),
                   ("controller",          "controller", None),
                   ("requests",            "broker",     None)),
}
ROUTES: dict[str, tuple[str, dict[type[events.Event], str]]] = {
    # design: the thread that hears of everything, but for these events
    LISTENERS:    ("zk-events",  {events.ControlledShutdown: "controlled-shutdown",
                                  events.AutoPreferredReplicaLeaderElection: "scheduler",
                                  events.DeletionsResumed: "delete-topics",
                                  events.TopicDeletionStopReplicaResponseReceived: "send"}),
    QUEUE:        ("controller", dict.fromkeys((events.PathChanged, events.NewSession, events.RegisterBroker), "zk-events")),
    EVENT_THREAD: ("controller", {}),
}
# fmt: on

HANDLE: dict[str, Handle] = {"controller": handle_controller_event, "broker": handle_broker_event}


def threads(
    rules: Rules, controller: ControllerContext, broker: BrokerContext, group: GroupContext | None = None
) -> list[Thread]:
    """The threads of a broker, as the design of its release has them, and a coordinator's two."""
    contexts = {"controller": controller, "broker": broker}
    found = [Thread(name, contexts[room], HANDLE[room], lock) for name, room, lock in THREADS[rules.design]]
    return found + ([Thread(name, group, handle_group_event) for name in (REQUESTS, SCHEDULER)] if group else [])


def route(rules: Rules) -> Callable[[events.Event], str]:
    """Which thread hears of an event."""
    usual, others = ROUTES[rules.design]
    of_broker = {**GROUP_THREADS, **dict.fromkeys(BROKER_HANDLERS, "requests"), events.BrokerStartup: "main"}
    return lambda event: others.get(type(event)) or of_broker.get(type(event)) or usual


class Notice(NamedTuple):
    """A watch event that ZooKeeper has sent and the broker has not looked at, with the record of its sending."""

    event: WatchEvent
    record: RecordId


class Ghost(NamedTuple):
    """A session that has outlived its process, with the record of the process's end."""

    client: Client
    record: RecordId


@dataclass(slots=True)
class Process:
    """`session` is `open`, `expired` (nobody has noticed), or `expiring` (the controller knows); `lost` is the record why."""

    driver: Driver
    host: str
    port: int
    session: str = "open"
    frozen: bool = False
    notices: deque[Notice] = field(default_factory=deque)
    lost: RecordId | None = None
    coordinates: frozenset[TopicPartition] = frozenset()  # partitions of the offsets topic that it has been told to lead
    was_asked: bool = False  # whether a question has reached it since its session ended


def contexts(settings: Settings, broker_id: int) -> tuple[ControllerContext, BrokerContext]:
    """The two contexts of a broker that has just started."""
    rules = settings.rules()
    controller = ControllerContext(broker_id, rules, settings.config, dict(settings.replace))
    return controller, BrokerContext(broker_id, rules, settings.config, settings.data)


def copy_driver(
    driver: Driver, client: Client, journal: Journal, clock: Callable[[], int], outbox: Outbox, *, move: bool = False
) -> Driver:
    """A driver in the same state, in other surroundings.

    To `move` means that the twin takes over the suspended handlers, and the contexts that they hold: the driver itself can be
    looked at and copied as before, but its handlers cannot go on. Raises ValueError if a handler is suspended that was not begun
    to be copied.
    """
    copies = driver.controller.copy(), driver.broker.copy()
    contexts = (driver.controller, driver.broker) if move else copies
    group = driver.group.copy() if driver.group else None
    twins = {id(driver.controller): contexts[0], id(driver.broker): contexts[1], id(driver.group): group}
    rooms = [twins[id(thread.context)] for thread in driver.threads.values()]
    threads = [Thread(t.name, room, t.handle, t.lock) for t, room in zip(driver.threads.values(), rooms, strict=True)]
    twin = Driver(driver.node, driver.incarnation, client, journal, clock, outbox, *contexts, threads, driver.route)
    twin.group = group
    if move:
        driver.controller, driver.broker = copies
    for name, thread in driver.threads.items():
        other = twin.threads[name]
        other.queue = thread.queue.copy()
        if move:
            thread.context = driver.controller if other.context is twin.controller else driver.broker
        if thread.handler is not None:
            room = (
                "controller" if thread.context is driver.controller else "group" if thread.context is driver.group else "broker"
            )
            revive(thread, other, room, pipelined=driver.controller.rules.pipelined, handler=thread.handler if move else None)
    twin.watched, twin.timers, twin.parked = driver.watched.copy(), driver.timers.copy(), driver.parked.copy()
    twin.behind, twin.exact, twin.locks = driver.behind.copy(), driver.exact, driver.locks.copy()
    twin.is_cut_off, twin.exit_code, twin.exit_cause = driver.is_cut_off, driver.exit_code, driver.exit_cause
    return twin


def can_be_copied(driver: Driver) -> bool:
    """Whether no handler is suspended, or those that are were begun to be copied and have let nobody in between."""
    suspended = [thread for thread in driver.threads.values() if thread.handler is not None]
    return all(thread.begun_with is not None and not thread.has_let_go for thread in suspended)
