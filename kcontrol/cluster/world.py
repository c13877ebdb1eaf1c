"""A cluster in one process: `actions()` lists the possible actions, and `step` performs one; a list of actions is a run.

Python cannot copy a suspended generator. So a world keeps a copy of itself from the last step at which no handler was suspended,
and the actions since; a fork copies this copy and repeats the actions. Times and random values reach a handler as fields of its
event, so the bytes of a journal depend on the settings, the seed and the actions alone, under any PYTHONHASHSEED.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from kcontrol.broker.log import ReplicaLog
from kcontrol.broker.shutdown import UNREACHABLE
from kcontrol.cluster import (
    actions,
    broker_to_controller,
    channel_closing,
    consumer_clients,
    consumer_state,
    data_plane,
    delayed_responses,
    delivery,
    lifecycle,
    network,
    offsets_log,
    process,
)
from kcontrol.cluster.fingerprint import fingerprint
from kcontrol.cluster.process import OrphanedSession, Process, QueuedNotification
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.sessions import SessionState
from kcontrol.cluster.snapshot import snapshot
from kcontrol.controller.handlers import design_of
from kcontrol.core.effects import Append, LogBatch, Op, SessionExpired, Submit
from kcontrol.core.errors import UserError
from kcontrol.core.model import TopicPartition
from kcontrol.driver.driver import Driver
from kcontrol.journal.journal import JOURNAL_VERSION, OUTSIDE, Journal, Record, RecordId
from kcontrol.zookeeper.memory import MemoryZooKeeper
from kcontrol.zookeeper.port import Client, ConnectionLoss, ZooKeeper, retry_read

Action = tuple[Any, ...]

BASE_EVERY_COPIES = 10
"""A world copies itself when its records since the last copy have cost this many times as much as a copy."""


@contextmanager
def without_collection() -> Iterator[None]:
    """Switch Python's cyclic garbage collection off during the block; then on again, if it was on before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class World:
    """A cluster whose caller chooses the next action.

    `actions()` lists the possible actions, `step(action)` performs one action, and `run()` performs the actions of a healthy
    cluster until none is left.
    """

    def __init__(
        self, settings: Settings | None = None, zookeeper: ZooKeeper | None = None, clock: Callable[[], int] | None = None
    ) -> None:
        self.settings = settings or Settings()
        self.settings.rules()  # raises UserError for a release that is not implemented
        # Without `zookeeper`, ZooKeeper is in memory, time is virtual, 1 ms a step, and the world can be copied (`fork`).
        self.now_ms = 0
        self.clock = clock or (lambda: self.now_ms)
        self.is_simulated = zookeeper is None
        self.zk: ZooKeeper = zookeeper or MemoryZooKeeper(now_ms=lambda: self.now_ms)
        self.journal, self.network = Journal(), network.Network()
        self.processes: dict[int, Process] = {}
        # broker -> open sessions of its ended processes, the oldest first
        self.orphaned_sessions: dict[int, list[OrphanedSession]] = {}
        self.owners: Mapping[int, int] = {}  # session id -> broker; never changed in place, since forks share the mapping
        self.incarnations: Mapping[int, int] = {}
        self.disks: dict[int, dict[TopicPartition, ReplicaLog]] = {}  # the logs of brokers that do not run
        self.acknowledged: dict[TopicPartition, tuple[data_plane.Acknowledged, ...]] = {}  # records that producers rely on
        self.consumers: dict[str, consumer_state.Consumer] = consumer_clients.consumers(self.settings)
        self.done: list[Action] = []  # the performed actions, in order
        self._tool = self.zk.connect()
        # A copy of this world before a handler began, on which no step is performed: from it `fork` repeats the actions since.
        self._base: World | None = None
        self._actions_since_base: list[Action] = []
        self._next_base_at = 0  # the length of the journal from which on another copy pays
        self._journal_length_before = 0
        s = self.settings
        self.log(
            "run", None, journal_version=JOURNAL_VERSION, release=s.release, seed=s.seed, brokers=list(s.brokers),
            world=self.kind, **({"data": True} if s.data else {}),
            **({"min_insync_replicas": least} if (least := s.config.min_insync_replicas or 1) > 1 else {}),
            **({"consumers": dict(self.consumers)} if s.consumers else {}),
        )  # fmt: skip

    @property
    def tool(self) -> Client:
        """Return the ZooKeeper client of the admin tools. If a real ZooKeeper has ended its session, open a new session."""
        if not self.is_simulated and self._tool.has_expired():
            self.done.append(lifecycle.REOPEN)
            lifecycle.reopen(self, lifecycle.ADMIN_CLIENTS)
        return self._tool

    @property
    def kind(self) -> str:
        return "simulated" if self.is_simulated else "zookeeper"

    # ---------------------------------------------------------------- actions and steps

    def actions(self) -> list[actions.PossibleAction]:
        """Return the possible actions: first the actions of a healthy cluster, which `run` performs, then timers and faults.

        `Settings.faults` names the kinds of faults. `step` also performs actions that are not in the list, such as "reassign".
        """
        routine, faults = actions.routine_actions(self), actions.fault_actions(self)
        return [*map(actions.RoutineAction, routine), *map(actions.PossibleAction, faults)]

    def step(self, action: Action) -> None:
        """Perform one action. Raises UserError, listing the possible actions, if the action is unknown or not possible now."""
        action = tuple(action)
        if (late := lifecycle.overdue(self)) and action != late:
            self._perform(lifecycle.expire_sessions, late)
        perform = actions.find_action(self, action)
        if len(self.journal) >= self._next_base_at and self.is_simulated and not self.keeps_replay_logs and self.is_quiet:
            self._base, self._actions_since_base = self._copy(), []
            self._next_base_at = len(self.journal) + BASE_EVERY_COPIES * self._cost_of_copy
        self._take(perform, action)

    def _take(self, perform: Callable[..., None], action: Action) -> None:
        self._perform(perform, action)
        self._actions_since_base.append(action)
        self.now_ms += 1

    def _perform(self, perform: Callable[..., None], action: Action) -> None:
        """Perform one step: call `perform` with the action's arguments, and queue the watch events of the step's writes.

        Also add the action to the list `done`.
        """
        self._journal_length_before = before = len(self.journal)
        with without_collection():  # a step may create hundreds of thousands of objects and hardly a cycle
            perform(self, *action[1:])
        self._deliver_instantly()
        if self.settings.data:
            data_plane.log_lost_records(self, before)
        if self.settings.consumers:
            consumer_clients.update_coordinators(self)
        done = len(self.done)
        self.done.append(action)
        try:
            self._notify(before)
        except ConnectionLoss:  # the action is done; its watch events are queued by the next step
            raise
        except BaseException:
            del self.done[done:]
            raise

    def run(self, limit: int = 1_000_000) -> int:
        """Until a healthy cluster rests; returns the number of steps. Raises RuntimeError after `limit` steps."""
        for steps in range(limit):
            following = next(actions.routine_actions(self), None)
            if following is None:
                return steps
            self.step(following)
        raise RuntimeError(
            f"World.run: routine actions were left after {limit} steps; raise the limit, or look for a loop in actions()"
        )

    def run_event(self, broker: int, thread: str | None = None) -> None:
        """Run the next event of this broker's thread, by default the controller's, to the end of its handler.

        Raises UserError if no event waits, a handler of the thread is suspended, or the broker does not run.
        """
        thread = thread or design_of(self.settings.rules()).default_thread
        self.step(("begin", broker, thread))
        while self.processes[broker].driver.threads[thread].handler is not None:
            self.step(("advance", broker, thread))

    @property
    def last_step(self) -> list[Record]:
        """Return the journal records of the last step; before the first step, those of the world's start."""
        return self.journal.since(self._journal_length_before)

    @property
    def is_quiet(self) -> bool:
        """Return whether no handler of any broker is suspended."""
        return all(p.driver.is_quiet for p in self.processes.values())

    # ---------------------------------------------------------------- forks

    @property
    def _cost_of_copy(self) -> int:
        """Return how many journal records cost about as much as a copy: each process, and 2,000 old records, cost one record."""
        # Measured with 5 to 15 brokers, 100 and 1,000 partitions. The length of the journal also bounds the state to copy.
        return len(self.processes) + len(self.journal) // 2_000

    def fork(self, *, keep_replay_logs: bool = False) -> World:
        """Return an independent copy of this simulated cluster and its journal.

        With `keep_replay_logs` the copy's handlers store their inputs, so that later copies can repeat the handlers.
        Raises ValueError on a real ZooKeeper.
        """
        if not self.is_simulated:
            raise ValueError("World.fork needs the in-memory ZooKeeper: a session of a real ZooKeeper cannot be copied")
        # A suspended handler cannot be copied: without its replay log the copy begins earlier and performs the actions since
        # then again.
        base = None if all(process.can_be_copied(p.driver) for p in self.processes.values()) else self._base
        copied = (base or self)._copy()
        copied.keep_replay_logs(keep_replay_logs or self.keeps_replay_logs)
        if base is not None:
            copied._base, copied._next_base_at = base, self._next_base_at
            for action in self._actions_since_base:
                copied._take(actions.ACTIONS[action[0]].perform, action)
        return copied

    def keep_replay_logs(self, is_enabled: bool) -> None:
        """Set whether handlers that begin later store their inputs, so that a copy of the world can repeat them."""
        self.keeps_replay_logs = is_enabled
        for p in self.processes.values():
            p.driver.keeps_replay_logs = is_enabled

    # Whether handlers store their inputs, so that a copy of the world can repeat them.
    keeps_replay_logs = False

    def _copy(self) -> World:
        """Return a copy of this world with all its values; no action is performed again.

        Raises ValueError if a suspended handler has no replay log.
        """
        copied = object.__new__(World)
        copied.settings, copied.now_ms = self.settings, self.now_ms
        copied.is_simulated, copied.keeps_replay_logs = True, self.keeps_replay_logs
        copied.clock = lambda: copied.now_ms
        assert isinstance(self.zk, MemoryZooKeeper)
        zk = self.zk.copy(now_ms=lambda: copied.now_ms)
        copied.zk, copied._tool = zk, zk.client(self._tool.session_id)
        copied.journal, copied.network = self.journal.copy(), self.network.copy()
        copied.processes = {n: copied._copy_process(p, zk) for n, p in self.processes.items()}
        copied.orphaned_sessions = {
            n: [OrphanedSession(zk.client(g.client.session_id), g.record) for g in orphans]
            for n, orphans in self.orphaned_sessions.items()
        }
        copied.owners, copied.incarnations, copied.done = self.owners, self.incarnations, self.done.copy()
        copied.disks, copied.acknowledged = self.disks.copy(), self.acknowledged.copy()
        copied.consumers = self.consumers.copy()
        copied._base, copied._actions_since_base, copied._next_base_at = None, [], 0
        copied._journal_length_before = self._journal_length_before
        return copied

    def _copy_process(self, p: Process, zk: MemoryZooKeeper) -> Process:
        client = zk.client(p.driver.client.session_id)
        driver = process.copy_driver(p.driver, client, self.journal, lambda: self.clock(), self)
        return replace(p, driver=driver, notifications=p.notifications.copy())

    def _driver(self, node: int, incarnation: int, client: Client, controller: Any, broker: Any, group: Any = None) -> Driver:
        threads, route = process.threads(controller.rules, controller, broker, group), process.route(controller.rules)
        driver = Driver(node, incarnation, client, self.journal, lambda: self.clock(), self, controller, broker, threads, route)
        driver.keeps_replay_logs, driver.group = self.keeps_replay_logs, group
        return driver

    # ---------------------------------------------------------------- the drivers' outbox

    def send(self, driver: Driver, requests: Any, record: RecordId) -> None:
        self.network.enqueue(driver.node, requests, record)

    def close_channels(self, driver: Driver, brokers: tuple[int, ...]) -> None:
        (update,) = self.journal.since(len(self.journal) - 1)
        channel_closing.close(self, driver, brokers, update.id)

    def submit(self, driver: Driver, effect: Submit, record: RecordId) -> None:
        request = network.BrokerToControllerRequest(effect.api, effect.body, record, effect.to)
        self.network.to_controller.setdefault(driver.node, []).append(request)
        if effect.to is not None and effect.to not in self.processes:
            broker_to_controller.lose(self, driver, [request], record, UNREACHABLE)

    def respond(self, driver: Driver, correlation_id: str, body: Any, record: RecordId) -> None:
        """Deliver `body`, a response of the broker `driver`, to the consumer, producer, controller or broker that waits for it.

        `record` is the journal record `respond`.
        """
        broker_to_controller.record_known_controller(self, driver)
        if consumer_clients.record_response(self, correlation_id, body, record) or data_plane.record_response(
            self, driver, correlation_id, body, record
        ):
            return
        if not delayed_responses.delay_if_fetching(self, driver, correlation_id, body):
            self.answer(driver, correlation_id, body, record)

    def answer(self, driver: Driver, correlation_id: str, body: Any, record: RecordId) -> None:
        """Queue `body`, a response of the broker `driver`, as an event at the controller or broker that sent the request."""
        if (answered := self.network.answered(correlation_id)) is not None:
            (sender, receiver), queued = answered
            self.log("response", record, channel=f"{sender}>{receiver}", api=queued.api)
            controller = self.processes.get(sender)
            if controller and (queued.is_orphaned or controller.driver.incarnation != queued.record.incarnation):
                # The process has ended, or has closed the connection.
                controller = None
            event = network.response_event(queued, receiver, body, controller.driver.controller) if controller else None
            if event and controller and type(event) in controller.driver.controller.design.handlers:  # 0.8 has no such callbacks
                controller.driver.enqueue(event, record)
        else:
            broker_to_controller.deliver_response(self, driver, correlation_id, body, record)

    def snapshot(self) -> dict[str, Any]:
        """Equal to `fold(journal.records)`, whose class `Fold` lists the keys, but for fields that have never changed."""
        return snapshot(self)

    def fingerprint(self) -> str:
        """Return a digest of the simulated cluster's state; worlds with equal digests behave equally from then on."""
        return fingerprint(self)

    def append(self, driver: Driver, effect: Append, record: RecordId) -> None:
        offsets_log.append(driver, effect, record)

    def read_log(self, driver: Driver, partition: Any, offset: int) -> tuple[LogBatch, ...] | None:
        return offsets_log.read(driver, partition, offset)

    # ---------------------------------------------------------------- after every step

    def log(self, kind: str, cause: RecordId | None, **fields: Any) -> RecordId:
        return self.journal.add(OUTSIDE, 0, kind, cause, self.clock(), fields)

    def exist(self, *paths: str) -> list[bool]:
        """Return for each path whether ZooKeeper has a znode there."""
        return [stat is not None for stat in retry_read(lambda: self.tool.exists(paths, False))]

    def write(self, transactions: list[tuple[Op, ...]], action: list[Any]) -> RecordId:
        """Perform transactions as a client that is no broker; return the id of the last journal record.

        An `act` record with `action`, such as ["delete", "/t"], is the cause of the `write` records. Raises UserError if the
        first transaction fails.
        """
        # An error of a later transaction is only written to the journal.
        written = self.tool.write(transactions)
        if written[0].error:
            raise UserError(f"ZooKeeper refuses the write to {transactions[0][0].path}: {written[0].error}.")
        latest = cause = self.log("act", None, action=action)
        for ops, result in zip(transactions, written, strict=True):
            versions, paths = result.versions or (None,) * len(ops), result.paths or [op.path for op in ops]
            stored = zip(ops, paths, versions, strict=True)
            done = [[op.kind, path, op.data, version, op.ephemeral] for op, path, version in stored]
            latest = self.log("write", cause, ops=done, zxid=result.zxid, error=result.error, epoch_zk_version=-1)
        return latest

    def _deliver_instantly(self) -> None:
        while self.settings.instant_requests and (
            pairs := [p for p in self.network.deliverable() if delivery.is_reachable(self, p[1])]
        ):
            delivery.deliver_request(self, *pairs[0])

    def _notify(self, before: int) -> None:
        """Queue the watch events of this step at their brokers, each with the record of the write that caused it.

        `before` is the length of the journal before the step.
        """
        self.zk.settle()
        while late := lifecycle.overdue(self):
            self.done.append(late)
            lifecycle.expire_sessions(self, late[1])
        if isinstance(self.zk, MemoryZooKeeper) and not self.zk.has_events:
            return
        for n, p in sorted(self.processes.items()):
            if p.session is not SessionState.OPEN:
                continue
            with suppress(SessionExpired):  # the session ended after `overdue` had checked it; the next step journals the end
                for event in p.driver.client.events():
                    cause = delivery.cause_of_notification(self.journal.since(before), event)
                    p.notifications.append(
                        QueuedNotification(event, self.log("notify", cause, to=n, type=event.type, path=event.path))
                    )
