"""The world of a scenario: the product's own cluster, under a schedule in which nothing happens unless a line asks for it.

Requests stay on their channels, timers never fire, followers never fetch and sessions end only by an action. What remains, the
controllers' event threads and their watch events, runs to quiet after every action, one round trip a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.broker.events import BrokerStartup
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.controller.handlers import design_of
from kcontrol.core import effects as fx
from kcontrol.core import znodes
from kcontrol.core.controller_rules import LISTENERS
from kcontrol.core.effects import Op, Znode
from kcontrol.core.events import RegisterBrokerAndReelect
from kcontrol.core.model import PartitionReplica, TopicPartition
from kcontrol.core.znodes import BrokerEndpoint
from kcontrol.driver.driver import Driver
from kcontrol.driver.threads import Thread
from kcontrol.journal.journal import Record
from tests.conformance.values import CannotPlay, look_up

Case = dict[str, Any]

THREAD = "controller"
STEPS_LIMIT = 50_000

CONFIG: dict[str, tuple[str, Any]] = {
    # in the format        the broker's setting                        where the format's default differs from the product's
    "unclean":             ("unclean.leader.election.enable",          False),
    "imbalance_pct":       ("leader.imbalance.per.broker.percentage",  10),
    "delete_topic_enable": ("delete.topic.enable",                     True),
}  # fmt: skip


@dataclass
class Trap:
    """What is to happen just before the `left`th round trip from now on that writes `path`."""

    path: str
    left: int
    spring: Callable[[], None]


class Stage:
    """A cluster whose brokers are registered; which controller modules have been started, and who may not run, is kept here."""

    def __init__(self, case: Case) -> None:
        self.given = given = case["given"]
        self.world = World(_settings(case["version"], given))
        self.rules = self.world.settings.rules()
        self.threads = tuple(row.name for row in design_of(self.rules).threads if row.context_name == THREAD)
        self.unstarted: set[int] = set()
        self.cut_off: set[int] = set()  # their session has ended and their client library has not noticed
        self.surplus_callbacks: set[int] = (
            set()
        )  # called back with a session that has not ended: Expire is queued, the rest follows
        self.held = False
        self.loses_watch_events = False  # they are under way, and still are when the case ends
        self.traps: list[Trap] = []
        self.asked: dict[str, dict[str, Any]] = {}  # what was asked by correlation id, for the results
        self.epochs: dict[int, int] = {}  # the last epoch of each broker, dead ones included
        self.requests_from = 0
        self.when_from = 0
        for broker in given["brokers"]:
            self.register(broker)

    # ---------------------------------------------------------------- who is there

    def driver(self, broker: int) -> Driver:
        """The driver of a living broker. Raises CannotPlay for any other."""
        if broker not in self.world.processes:
            raise CannotPlay(f"broker {broker} does not live")
        return self.world.processes[broker].driver

    def active(self) -> list[int]:
        return [n for n, p in sorted(self.world.processes.items()) if p.driver.controller.is_active]

    def controller(self) -> Driver:
        """Whose memory counts: the only active controller, else the one that `/controller` names, else the first one."""
        named = self.read(znodes.CONTROLLER)
        candidates = [
            *(self.active() if len(self.active()) == 1 else ()),
            *([znodes.decode_controller(named.data)] if named else ()),
        ]
        for broker in (*candidates, self.given["controller"]):
            if broker in self.world.processes:
                return self.world.processes[broker].driver
        raise CannotPlay("there is no controller to look at or to ask")

    def read(self, path: str) -> Znode | None:
        """A znode as an outsider sees it."""
        return self.world.tool.read([path], False)[0]

    def note_epochs(self) -> None:
        """Remember the epochs of the brokers that are registered now."""
        for name in self.world.tool.children([znodes.BROKER_IDS], False)[0] or ():
            stat = self.world.tool.exists([znodes.broker_path(int(name))], False)[0]
            self.epochs[int(name)] = stat.czxid if stat else -1

    # ---------------------------------------------------------------- the schedule

    def register(self, broker: int) -> None:
        """A broker's process starts and registers; its controller module does not run yet."""
        self.unstarted.add(broker)
        self.step(("start", broker))
        main = self.driver(broker).threads["main"]
        if self.rules.design == LISTENERS:
            self._register_early(broker, main.queue.waiting[0].event)
        while self.rules.design != LISTENERS and (main.queue or main.handler is not None):
            self.step(("advance" if main.handler is not None else "begin", broker, "main"))
        if broker not in self.world.processes:
            raise CannotPlay(f"broker {broker} could not register")
        self.note_epochs()

    def _register_early(self, broker: int, event: BrokerStartup) -> None:
        """Where the election comes first, the registration that would follow it is made here; the broker will find its own."""
        for path in self.rules.root_paths:
            if self.read(path) is None:
                self.create(path)
        data = znodes.encode_broker(BrokerEndpoint(event.host, event.port), event.timestamp_ms, self.rules.broker_znode)
        self.write_as(broker, (Op("create", znodes.broker_path(broker), data, ephemeral=True),))

    def step(self, action: tuple[Any, ...]) -> None:
        """One action of the world; the watch events that it causes are queued at once."""
        self.world.step(action)
        self._queue_watch_events()

    def _queue_watch_events(self) -> None:
        for n, p in self.world.processes.items():
            while p.notifications:
                if self.loses_watch_events:
                    p.notifications.popleft()
                else:
                    self.world.step(("deliver_notification", n))

    def settle(self) -> None:
        """Let every controller go on until none has anything to do. Raises CannotPlay if that never happens."""
        for _ in range(STEPS_LIMIT):
            action = next(self._routine(), None)
            if action is None:
                return
            if action[0] == "advance":
                self._spring_traps(self.driver(action[1]).threads[action[2]])
            self.step(action)
        raise CannotPlay(f"the cluster was not quiet after {STEPS_LIMIT} steps")

    def _routine(self) -> Iterator[tuple[Any, ...]]:
        if self.held:
            return
        for n, p in sorted(self.world.processes.items()):
            if n in self.unstarted or n in self.cut_off:
                continue
            for thread in (p.driver.threads[name] for name in self.threads):
                if p.driver.can_advance(thread):
                    yield ("advance", n, thread.name)
                elif p.driver.can_begin(thread):
                    yield ("begin", n, thread.name)
            if p.session == "expiring":
                yield ("reconnect", n)
            elif n in self.surplus_callbacks:
                self.surplus_callbacks.discard(n)
                p.driver.enqueue(RegisterBrokerAndReelect(p.host, p.port, p.driver.client.session_id), None)
                yield ("begin", n, THREAD)

    # ---------------------------------------------------------------- traps

    def _spring_traps(self, thread: Thread) -> None:
        paths = written_by(thread)
        for trap in [trap for trap in self.traps if trap.path in paths]:
            trap.left -= 1
            if trap.left == 0:
                self.traps.remove(trap)
                trap.spring()

    # ---------------------------------------------------------------- a client that is no broker

    def create(self, path: str, data: bytes = b"") -> None:
        if znodes.parent(path) != "/" and self.read(znodes.parent(path)) is None:
            self.create(znodes.parent(path))
        self.step(("create", path, data.decode()))

    def set(self, path: str, data: bytes) -> None:
        self.step(("set", path, data.decode()))

    def put(self, path: str, data: bytes) -> None:
        (self.create if self.read(path) is None else self.set)(path, data)

    def create_sequential(self, prefix: str, data: bytes) -> None:
        """Create a znode whose name ends in the number that ZooKeeper would append."""
        stat = self.world.tool.exists([znodes.parent(prefix)], False)[0]
        created = (stat.cversion + stat.num_children) // 2 if stat else 0
        self.create(f"{prefix}{created:010d}", data)

    def delete(self, path: str) -> None:
        """Delete a znode and every znode below it, the deepest first."""
        below = [other for other in self.world.zk.tree() if other == path or other.startswith(f"{path}/")]
        for other in reversed(below or [path]):
            self.step(("delete", other))

    def write_as(self, broker: int, ops: tuple[Op, ...]) -> None:
        """A living broker writes on its own session, beside its threads. Raises CannotPlay if ZooKeeper refuses."""
        driver, before = self.driver(broker), len(self.world.journal.records)
        (written,) = driver.client.write([ops])
        if written.error:
            raise CannotPlay(f"broker {broker} cannot write {ops[0].path}: {written.error}")
        done = [[op.kind, op.path, op.data, v, op.ephemeral] for op, v in zip(ops, written.versions, strict=True)]
        driver.log("write", None, ops=done, zxid=written.zxid, error=None, epoch_zk_version=-1)
        self.world._notify(before)  # what `World.step` does after an action; this write is none
        self._queue_watch_events()

    # ---------------------------------------------------------------- what happened

    def records(self, kind: str, since: int = 0) -> list[Record]:
        """The records of this kind from this position of the journal on."""
        return [record for record in self.world.journal.records[since:] if record.kind == kind]


def written_by(thread: Thread) -> frozenset[str]:
    """The paths that the next round trip of a thread creates, sets or deletes."""
    waiting = thread.waits_for
    if waiting is None:
        return frozenset()
    match waiting.parts[len(waiting.partial_results)]:
        case fx.Transaction(ops):
            written = ops
        case fx.FencedTransactions(transactions):
            written = tuple(op for ops in transactions for op in ops)
        case fx.Commit(changes):
            return frozenset(
                znodes.state_path(_partition(c.subject)) for c in changes if isinstance(c, fx.StateChange) and c.write
            )
        case _:
            return frozenset()
    return frozenset(op.path for op in written if op.kind != "check")


def _partition(subject: Any) -> TopicPartition:
    return subject.topic_partition if isinstance(subject, PartitionReplica) else subject


def _settings(release: str, given: Case) -> Settings:
    """What the format's `config` means for a broker. Raises CannotPlay for a setting that the product does not have."""
    asked, config = dict(given.get("config", {})), BrokerConfig()
    alter_isr = asked.pop("alter_isr", False)
    for name in asked:
        look_up(CONFIG, "config", name)
    for name, (key, default) in CONFIG.items():
        try:
            config = config.with_setting(key, asked.get(name, default))
        except ValueError:
            if asked.get(name, default) != default:
                raise CannotPlay(f"brokers have no setting {key} yet") from None
    return Settings(release, tuple(given["brokers"]), config=config, followers=False, rule_changes={"alter_isr": alter_isr})
