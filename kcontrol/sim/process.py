"""One broker process: its driver, where it listens, and how things stand with its ZooKeeper session."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from kcontrol.controller.context import ControllerContext
from kcontrol.controller.handlers import handle as handle_controller_event
from kcontrol.effects import WatchEvent
from kcontrol.replica.context import BrokerContext
from kcontrol.replica.handlers import handle as handle_broker_event
from kcontrol.runtime.driver import Driver, Handle
from kcontrol.runtime.journal import RecordId
from kcontrol.runtime.revival import revive
from kcontrol.runtime.zookeeper import Client
from kcontrol.sim.settings import Settings

THREADS: dict[str, tuple[Handle, str | None]] = {
    # thread       handles with             and shares the lock
    "main":       (handle_broker_event, None),
    "controller": (handle_controller_event, None),
    "requests":   (handle_broker_event, None),
}  # fmt: skip


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
    """`session` is `open`, `expired` (nobody has noticed), or `expiring` (the controller has been told)."""

    driver: Driver
    host: str
    port: int
    session: str = "open"
    frozen: bool = False
    notices: deque[Notice] = field(default_factory=deque)


def contexts(settings: Settings, broker_id: int) -> tuple[ControllerContext, BrokerContext]:
    """The two contexts of a broker that has just started."""
    rules = settings.rules()
    controller = ControllerContext(broker_id, rules, settings.config, dict(settings.replace))
    return controller, BrokerContext(broker_id, rules, settings.config, settings.data)


def copy_driver(driver: Driver, twin: Driver) -> Driver:
    """Carry over all that a driver holds. Raises ValueError if a handler is suspended that was not begun to be copied."""
    for name, thread in driver.threads.items():
        other = twin.threads[name]
        other.queue = thread.queue.copy()
        if thread.handler is not None:
            room = "controller" if thread.context is driver.controller else "broker"
            revive(thread, other, room, pipelined=driver.controller.rules.pipelined)
    twin.watched, twin.timers, twin.parked = driver.watched.copy(), driver.timers.copy(), driver.parked.copy()
    twin.behind, twin.exact, twin.locks = driver.behind.copy(), driver.exact, driver.locks.copy()
    return twin


def can_be_copied(driver: Driver) -> bool:
    """Whether no handler is suspended, or those that are were begun to be copied and share their context with nobody."""
    suspended = [thread for thread in driver.threads.values() if thread.handler is not None]
    return all(thread.begun_with is not None and thread.lock is None for thread in suspended)
