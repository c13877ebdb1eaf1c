"""A cluster in one process. What can happen next is a value; one action is one step; a list of actions is the whole history."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from kcontrol.controller.handlers import DESIGNS
from kcontrol.effects import Append, Ask, LogBatch, Op, SessionExpired
from kcontrol.errors import UserError
from kcontrol.model import TopicPartition
from kcontrol.replica.log import ReplicaLog
from kcontrol.runtime.driver import Driver
from kcontrol.runtime.journal import JOURNAL_VERSION, OUTSIDE, Journal, Record, RecordId
from kcontrol.runtime.zk_memory import MemoryZooKeeper
from kcontrol.runtime.zookeeper import Client, ConnectionLoss, ZooKeeper, ask_twice
from kcontrol.sim import acts, causes, data, exchange, groups, held_answers_1_0, lives, network, process, questions, timeouts
from kcontrol.sim.fingerprint import fingerprint
from kcontrol.sim.network import Network
from kcontrol.sim.process import Ghost, Notice, Process
from kcontrol.sim.settings import Settings
from kcontrol.sim.snapshot import snapshot

Action = tuple[Any, ...]


class World:
    """`actions()` lists what can happen, `step(action)` does one of it, `run()` goes on until nothing routine is left.

    The ZooKeeper is the in-memory one unless another is handed in. With the in-memory one time is virtual, one ms a step, and the
    world can be forked.
    """

    def __init__(
        self, settings: Settings | None = None, zookeeper: ZooKeeper | None = None, clock: Callable[[], int] | None = None
    ) -> None:
        self.settings = settings or Settings()
        self.settings.rules()  # a release that is not played is refused before anything happens
        self.now_ms = 0
        self.clock = clock or (lambda: self.now_ms)
        self.is_simulated = zookeeper is None
        self.zk: ZooKeeper = zookeeper or MemoryZooKeeper(now_ms=lambda: self.now_ms)
        self.journal, self.network = Journal(), Network()
        self.processes: dict[int, Process] = {}
        self.ghosts: dict[int, list[Ghost]] = {}  # sessions that have outlived their processes, the oldest first
        self.owners: Mapping[int, int] = {}  # session id -> broker; forks share it, and the next one
        self.incarnations: Mapping[int, int] = {}
        self.disks: dict[int, dict[TopicPartition, ReplicaLog]] = {}  # the logs of brokers that do not run
        self.acknowledged: dict[TopicPartition, tuple[data.Acknowledged, ...]] = {}  # what producers rely on
        self.consumers: Mapping[str, groups.Consumer] = groups.consumers(self.settings)
        self.offsets_logs: Mapping[TopicPartition, tuple[LogBatch, ...]] = {}  # what coordinators have written
        self.offsets_epochs: Mapping[TopicPartition, int] = {}  # the latest leader epoch of those that were told to coordinate
        self.done: list[Action] = []
        self._tool = self.zk.connect()
        self._base: World | None = None
        self._since: list[Action] = []
        self._before = 0
        s = self.settings
        self.log(
            "run",
            None,
            journal_version=JOURNAL_VERSION,
            release=s.release,
            seed=s.seed,
            brokers=list(s.brokers),
            world=self.kind,
            **({"data": True} if s.data else {}),
            **({"min_insync_replicas": least} if (least := s.config.min_insync_replicas or 1) > 1 else {}),
            **({"consumers": dict(self.consumers)} if s.consumers else {}),
        )

    @property
    def tool(self) -> Client:
        """The session of the clients outside the brokers; if a real ZooKeeper has ended it, another one is opened."""
        if not self.is_simulated and self._tool.has_expired():
            self.done.append(lives.REOPEN)
            lives.reopen(self, lives.TOOLS)
        return self._tool

    @property
    def kind(self) -> str:
        return "simulated" if self.is_simulated else "zookeeper"

    # ---------------------------------------------------------------- what can happen

    def actions(self) -> list[Action]:
        """What can happen next: first what goes on by itself, in the order in which `run` takes it, then the faults on offer."""
        return [*acts.routine(self), *acts.faults(self)]

    def step(self, action: Action) -> None:
        """Do one action. Raises UserError, listing what there is, for an action that is unknown or not possible now."""
        action = tuple(action)
        if (late := lives.overdue(self)) and action != late:
            self._perform(lives.outage, late)
        perform = acts.find(self, action)
        if (
            self.is_simulated
            and not self.exact
            and self.is_quiet
            and (self._base is None or len(self._since) >= self._copying_pays_after)
        ):
            self._base, self._since = self._copy(), []
        self._perform(perform, action)
        self._since.append(action)
        self.now_ms += 1

    def _perform(self, perform: Callable[..., None], action: Action) -> None:
        """Do one action and what follows from it in the same step. An action that raises an error does not count as done."""
        self._before = before = len(self.journal)
        is_collecting = gc.isenabled()
        gc.disable()  # within a step hundreds of thousands of values may come, and hardly a cycle
        try:
            perform(self, *action[1:])
        finally:
            if is_collecting:
                gc.enable()
        self._deliver_instantly()
        if self.settings.data:
            data.look_for_losses(self, before)
        if self.settings.consumers:
            groups.keep_up(self)
        done = len(self.done)
        self.done.append(action)
        try:
            self._notify(before)
        except ConnectionLoss:  # the action is done, and its watch events come with the next step
            raise
        except BaseException:
            del self.done[done:]
            raise

    def run(self, limit: int = 1_000_000) -> int:
        """Until quiet: every thread, every delivery, no faults. Return the number of steps. Raises RuntimeError at the limit."""
        for steps in range(limit):
            following = next(acts.routine(self), None)
            if following is None:
                return steps
            self.step(following)
        raise RuntimeError(f"the cluster was not quiet after {limit} steps")

    def run_event(self, broker: int, thread: str | None = None) -> None:
        """Take the next event of a thread, of the controller's if none is named, and go on with it alone to its handler's end."""
        thread = thread or process.ROUTES[self.settings.rules().design][0]
        self.step(("begin", broker, thread))
        while self.processes[broker].driver.threads[thread].handler is not None:
            self.step(("advance", broker, thread))

    @property
    def last_step(self) -> list[Record]:
        """The records of the last step."""
        return self.journal.since(self._before)

    @property
    def is_quiet(self) -> bool:
        """Whether no handler is suspended."""
        return all(p.driver.is_quiet for p in self.processes.values())

    # ---------------------------------------------------------------- forks

    @property
    def _copying_pays_after(self) -> int:
        return 1 + len(self.journal) // 2_000

    def fork(self, *, exact: bool = False) -> World:
        """A second world with the same past.

        It is a plain copy where no handler is suspended, or where this world is `exact`: then its handlers keep what they can be
        copied from, and what a fingerprint needs. Otherwise the actions since the last quiet point are played again.
        Raises ValueError on a real ZooKeeper.
        """
        if not self.is_simulated:
            raise ValueError("only a simulated world can be forked")
        plain = all(process.can_be_copied(p.driver) for p in self.processes.values())
        start = self if plain or self._base is None else self._base
        twin = start._copy()
        twin.be_exact(exact or self.exact)
        for action in self._since if start is not self else ():
            twin.step(action)
        return twin

    def be_exact(self, exact: bool) -> None:
        """From now on, keep of every handler what it can be copied from, or no longer."""
        self.exact = exact
        for p in self.processes.values():
            p.driver.exact = exact

    exact = False

    def _copy(self) -> World:
        """A plain copy. Raises ValueError if a handler is suspended that was not begun to be copied."""
        twin = object.__new__(World)
        twin.settings, twin.now_ms, twin.is_simulated, twin.exact = self.settings, self.now_ms, True, self.exact
        twin.clock = lambda: twin.now_ms
        assert isinstance(self.zk, MemoryZooKeeper)
        zk = self.zk.copy(now_ms=lambda: twin.now_ms)
        twin.zk, twin._tool = zk, zk.client(self._tool.session_id)
        twin.journal, twin.network = self.journal.copy(), self.network.copy()
        twin.processes = {n: twin._twin_process(p, zk) for n, p in self.processes.items()}
        twin.ghosts = {n: [Ghost(zk.client(g.client.session_id), g.record) for g in ghosts] for n, ghosts in self.ghosts.items()}
        twin.owners, twin.incarnations, twin.done = self.owners, self.incarnations, self.done.copy()
        twin.disks, twin.acknowledged = self.disks.copy(), self.acknowledged.copy()
        twin.consumers, twin.offsets_logs, twin.offsets_epochs = self.consumers, self.offsets_logs, self.offsets_epochs
        twin._base, twin._since, twin._before = None, [], self._before
        return twin

    def _twin_process(self, p: Process, zk: MemoryZooKeeper) -> Process:
        client = zk.client(p.driver.client.session_id)
        driver = process.copy_driver(p.driver, client, self.journal, lambda: self.clock(), self)
        return Process(driver, p.host, p.port, p.session, p.frozen, p.notices.copy(), p.lost, p.coordinates, p.was_asked)

    def _driver(self, node: int, incarnation: int, client: Client, controller: Any, broker: Any, group: Any = None) -> Driver:
        threads, route = process.threads(controller.rules, controller, broker, group), process.route(controller.rules)
        driver = Driver(node, incarnation, client, self.journal, lambda: self.clock(), self, controller, broker, threads, route)
        driver.exact, driver.group = self.exact, group
        return driver

    # ---------------------------------------------------------------- what drivers hand over

    def send(self, driver: Driver, requests: Any, record: RecordId) -> None:
        self.network.post(driver.node, requests, record)

    def close_channels(self, driver: Driver, brokers: tuple[int, ...]) -> None:
        (learnt,) = self.journal.since(len(self.journal) - 1)
        timeouts.close(self, driver, brokers, learnt.id)

    def ask(self, driver: Driver, question: Ask, record: RecordId) -> None:
        asked = network.Question(question.api, question.body, record, question.to)
        self.network.questions.setdefault(driver.node, []).append(asked)

    def respond(self, driver: Driver, correlation_id: str, body: Any, record: RecordId) -> None:
        """An answer reaches whoever has asked: the controller that sent a request, the broker that had a question, a producer."""
        questions.note_controller(self, driver)
        if groups.note_answer(self, correlation_id, body, record) or data.note_answer(self, driver, correlation_id, body, record):
            return
        if not held_answers_1_0.holds_back(self, driver, correlation_id, body):
            self.answer(driver, correlation_id, body, record)

    def answer(self, driver: Driver, correlation_id: str, body: Any, record: RecordId) -> None:
        """An answer that nothing holds back reaches whoever has asked."""
        if (answered := self.network.answered(correlation_id)) is not None:
            (sender, receiver), parcel = answered
            self.log("answered", record, channel=f"{sender}>{receiver}", api=parcel.api)
            asker = self.processes.get(sender)
            if asker and (parcel.is_left or asker.driver.incarnation != parcel.record.incarnation):
                asker = None
            event = network.response_event(parcel, receiver, body, asker.driver.controller) if asker else None
            if event and asker and type(event) in DESIGNS[asker.driver.controller.rules.design]:  # 0.8 has no such callbacks
                asker.driver.enqueue(event, record)
        else:
            questions.answer(self, driver, correlation_id, body, record)

    def snapshot(self) -> dict[str, Any]:
        """What a picture shows, in plain values; equal to `fold(journal.records)` after every step."""
        return snapshot(self)

    def fingerprint(self) -> str:
        """Equal for worlds with equal futures, however they came about."""
        return fingerprint(self)

    def append(self, driver: Driver, effect: Append, record: RecordId) -> None:
        groups.append(self, driver, effect, record)

    def read_log(self, driver: Driver, partition: Any, offset: int) -> tuple[LogBatch, ...] | None:
        return groups.read_log(self, driver, partition, offset)

    # ---------------------------------------------------------------- after every step

    def log(self, kind: str, cause: RecordId | None, **fields: Any) -> RecordId:
        return self.journal.add(OUTSIDE, 0, kind, cause, self.clock(), fields)

    def have(self, *paths: str) -> list[bool]:
        """Whether there are znodes at these paths."""
        return [stat is not None for stat in ask_twice(lambda: self.tool.exists(paths, False))]

    def write(self, transactions: list[tuple[Op, ...]], act: list[Any]) -> RecordId:
        """An outside hand writes; return the record of the last write.

        Raises UserError where ZooKeeper refuses the first transaction: then nothing has happened.
        """
        written = self.tool.write(transactions)
        if written[0].error:
            raise UserError(f"ZooKeeper refuses that write to {transactions[0][0].path}: {written[0].error}.")
        latest = cause = self.log("act", None, action=act)
        for ops, result in zip(transactions, written, strict=True):
            versions, paths = result.versions or (None,) * len(ops), result.paths or [op.path for op in ops]
            stored = zip(ops, paths, versions, strict=True)
            done = [[op.kind, path, op.data, version, op.ephemeral] for op, path, version in stored]
            latest = self.log("write", cause, ops=done, zxid=result.zxid, error=result.error, fence=-1)
        return latest

    def _deliver_instantly(self) -> None:
        while self.settings.instant_requests and (pairs := [p for p in self.network.deliverable() if exchange.hears(self, p[1])]):
            exchange.deliver_request(self, *pairs[0])

    def _notify(self, before: int) -> None:
        """Hand over the watch events that this step has caused, each with the record of the write that caused it."""
        self.zk.settle()
        while late := lives.overdue(self):
            self.done.append(late)
            lives.outage(self, late[1])
        for n, p in sorted(self.processes.items()):
            if p.session != "open":
                continue
            with suppress(SessionExpired):  # between the look at the sessions and this one; the next step journals it
                for event in p.driver.client.events():
                    cause = causes.of_watch_event(self.journal.since(before), event)
                    p.notices.append(Notice(event, self.log("notify", cause, to=n, type=event.type, path=event.path)))
