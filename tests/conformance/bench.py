"""A single broker on an in-memory ZooKeeper, for the kinds that need no cluster: the driver runs one handler at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.broker.context import BrokerContext
from kcontrol.broker.handlers import handle as handle_broker_event
from kcontrol.controller.context import ControllerContext, ReplicaStates
from kcontrol.controller.handlers import design_of
from kcontrol.core import effects as fx
from kcontrol.core.controller_rules import rules
from kcontrol.core.effects import Op
from kcontrol.core.events import Event
from kcontrol.core.model import TopicPartition
from kcontrol.core.znodes import BrokerEndpoint, parent
from kcontrol.driver.driver import Driver
from kcontrol.driver.threads import Thread
from kcontrol.journal.journal import Journal, Record
from kcontrol.zookeeper.memory import MemoryZooKeeper

ENDPOINT = BrokerEndpoint("127.0.0.1", 9092)
LIMIT = 10_000


@dataclass(frozen=True)
class Story(Event):
    """An event of the bench's own: the bench runs its `handler`."""

    label: str
    handler: Callable[[Any], fx.Handler]


class Outbox:
    """Keeps the driver's responses by correlation id; its other effects are in the journal."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}

    def send(self, driver: Driver, requests: Any, record: Any) -> None:
        """Channels deliver nothing by themselves."""

    def close_channels(self, driver: Driver, brokers: tuple[int, ...]) -> None:
        """There are none."""

    def submit(self, driver: Driver, question: Any, record: Any) -> None:
        """The bench has no controller to send the question to."""

    def respond(self, driver: Driver, correlation_id: str, body: Any, record: Any) -> None:
        self.answers[correlation_id] = body

    def append(self, driver: Driver, effect: Any, record: Any) -> None:
        raise NotImplementedError("there is no log here")

    def read_log(self, driver: Driver, partition: Any, offset: int) -> None:
        """There is no log."""


class Bench:
    """A broker with its two contexts, which are set by hand before a handler runs."""

    def __init__(
        self, release: str, broker_id: int = 1, *, unclean: bool = False, inter_broker_protocol: str | None = None
    ) -> None:
        self.now_ms = 0
        self.zk = MemoryZooKeeper(now_ms=lambda: self.now_ms)
        self.tool = self.zk.connect()
        self.journal, self.outbox = Journal(), Outbox()
        chosen, config = rules(release, inter_broker_protocol), BrokerConfig(unclean_leader_election_enable=unclean)
        self.controller = ControllerContext(broker_id, chosen, design_of(chosen), config)
        self.broker = BrokerContext(broker_id, chosen, config)
        self.driver = Driver(
            broker_id,
            1,
            self.zk.connect(),
            self.journal,
            lambda: self.now_ms,
            self.outbox,
            self.controller,
            self.broker,
            [
                Thread("controller", self.controller, lambda ctx, event: event.handler(ctx)),
                Thread("requests", self.broker, handle_broker_event),
            ],
            lambda event: "controller",
        )

    # ---------------------------------------------------------------- before

    def put(self, path: str, data: bytes = b"", version: int = 0) -> None:
        """A znode with this zk version; parents that are missing have 0."""
        if parent(path) != "/" and self.tool.exists([parent(path)], False) == [None]:
            self.put(parent(path))
        self.tool.write([(Op("create", path, data),)])
        for _ in range(version):
            self.tool.write([(Op("set", path, data),)])

    def lead(self, controller_epoch: int = 1) -> None:
        """This broker is the controller, of this epoch."""
        self.put("/controller_epoch", str(controller_epoch).encode(), controller_epoch)
        self.know(active_controller_id=self.controller.broker_id)
        if self.controller.design.active_by_channels:
            self.know(has_channels=True, machines_started=True)
        self.know(controller_epoch=controller_epoch, controller_epoch_zk_version=controller_epoch)

    def know(self, **fields: Any) -> None:
        """The controller's context is as given; of replica states, those given are added."""
        for name, value in fields.items():
            held = getattr(self.controller, name)
            if isinstance(held, ReplicaStates):
                for replica, state in value.items():
                    held.by_broker.setdefault(replica.broker_id, {})[replica.topic_partition] = state
            elif isinstance(held, dict | set):
                held.clear()
                held.update(value)
            else:
                object.__setattr__(self.controller, name, value)

    def register(
        self,
        live: Sequence[int],
        shutting_down: Sequence[int] = (),
        offline_dirs: Mapping[int, frozenset[TopicPartition]] | None = None,
    ) -> None:
        """These brokers are known, those that are shutting down among them."""
        self.know(
            live_brokers=dict.fromkeys(live, ENDPOINT), live_broker_epochs={broker: 100 + broker for broker in live},
            shutting_down_broker_ids=set(shutting_down), offline_dirs=offline_dirs or {},
        )  # fmt: skip

    # ---------------------------------------------------------------- run

    def run(self, event: Event, thread: str = "controller") -> list[Record]:
        """Take one event to its end and return its records. Raises RuntimeError if its handler failed."""
        before = len(self.journal.records)
        self.driver.enqueue(event, None, thread)
        self.driver.begin(thread)
        for _ in range(LIMIT):
            if self.driver.threads[thread].handler is None:
                break
            self.driver.advance(thread)
        records = self.journal.records[before:]
        for record in records:
            if record.kind == "handler_error":
                raise RuntimeError(f"{record.fields['error']}: {record.fields['message']}")
        return records

    def run_handler(self, story: Callable[[Any], fx.Handler]) -> list[Record]:
        return self.run(Story("story", story))
