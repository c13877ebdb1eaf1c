"""The simulated cluster of a search, whose brokers reuse the outcomes of earlier calls of their handlers.

A search copies the cluster before each action (`fork`). All copies share the stored outcomes.

Read next: `memo_driver.py`.
"""

from __future__ import annotations

from collections import deque
from typing import Any, cast
from weakref import ref

from kcontrol.cluster import actions, fingerprint
from kcontrol.cluster.process import Process, QueuedNotification
from kcontrol.cluster.sessions import SessionState
from kcontrol.cluster.world import Action, World
from kcontrol.controller.handlers import design_of
from kcontrol.core.effects import WatchEvent
from kcontrol.driver.driver import Driver
from kcontrol.search import memo_driver
from kcontrol.zookeeper.memory import MemoryZooKeeper
from kcontrol.zookeeper.port import Client

Fired = tuple[tuple[int, WatchEvent], ...]

OWN_STEPS = ("advance", "begin", "deliver_notification", "fire_timer")
"""The kinds of actions that depend on one process and ZooKeeper alone."""
ADMIN_ACTIONS = ("create_topic", "delete_topic", "delete", "set", "create")
"""The kinds of actions of clients outside the brokers that change nothing but ZooKeeper."""


class MemoWorld(World):
    """A copy of a simulated cluster (World) for the search, whose brokers reuse stored outcomes of their handlers.

    Equal actions lead to equal states, and time stands still. Only `step` may change a driver; other code may only
    read it.
    """

    memory: memo_driver.Memo  # the states and outcomes that all copies share
    _stored: memo_driver.ZooKeeperState  # the state of ZooKeeper after the last step
    _own: MemoryZooKeeper | None = None  # this step's copy of ZooKeeper, if the step changes ZooKeeper without a driver
    _is_stepping = False  # whether `step` is performing an action now
    is_local = True  # whether this step has changed only one process and ZooKeeper, apart from watch events
    _fired: Fired = ()  # the watch events of this step, which are not delivered yet
    _delivered: Fired = ()  # the watch events of the last step
    _length_before_events = 0  # the length of the journal before the records of the last step's watch events
    _tool_session: int  # the session of all clients that are no brokers

    @classmethod
    def of(cls, world: World) -> MemoWorld:
        """Return a copy of the simulated cluster `world` for the search, whose brokers reuse stored outcomes of their handlers.

        Raises ValueError if `world` uses a real ZooKeeper.
        """
        plain, now_ms = world.fork(keep_replay_logs=True), world.now_ms
        zk, tool = cast(MemoryZooKeeper, plain.__dict__.pop("zk")), plain.__dict__.pop("_tool")
        memoized = cls.__new__(cls)
        memoized.__dict__.update(plain.__dict__)
        memoized.clock, memoized.memory = lambda: now_ms, memo_driver.Memo(now_ms)
        memoized._stored = memoized.memory.stored(zk.copy(lambda: now_ms), memoized.owners)
        memoized._tool_session = tool.session_id
        memoized.journal.build_records()
        memoized._base, memoized._actions_since_base = None, []  # the fork of a MemoWorld performs no actions again
        for p in plain.processes.values():
            p.driver = memoized._memo_driver(p.driver)
        return memoized

    def fork(self, *, keep_replay_logs: bool = True) -> MemoWorld:
        """Return an independent copy of this simulated cluster; `keep_replay_logs` has no effect."""
        # Handlers belong to the states of drivers, which all copies share.
        forked = MemoWorld.__new__(MemoWorld)
        forked.__dict__.update(self.__dict__)
        forked.journal, forked.network, forked.done = self.journal.copy(), self.network.copy(), self.done.copy()
        forked.orphaned_sessions = {n: orphans.copy() for n, orphans in self.orphaned_sessions.items()}
        forked.processes, reference = {}, ref(forked)
        for n, p in self.processes.items():
            driver = cast(memo_driver.MemoDriver, p.driver)
            copied: Any = memo_driver.MemoDriver(reference, driver.local, driver.session_id)
            state = (
                p.session, p.frozen, deque(p.notifications), p.session_loss_record, p.coordinated_partitions, p.was_sent_request,
            )  # fmt: skip
            forked.processes[n] = Process(copied, p.host, p.port, *state)
        return forked

    def step(self, action: Action) -> None:
        """Perform an action, or apply its stored outcome if the action was performed before in an equal state.

        The action is not checked: it must be one of `actions()`.
        """
        key = self._key(action)
        known = self.memory.steps.get(key) if key else None
        if known is not None:
            self._repeat(action, known)
            return
        self._is_stepping = self.is_local = True
        try:
            self._perform(actions.ACTIONS[action[0]].perform, action)
        finally:
            self._is_stepping = False
        if key and self.is_local:
            p = self.processes.get(action[1]) if action[0] in OWN_STEPS else None
            next = cast(memo_driver.MemoDriver, p.driver).local if p else None
            if p is not None or action[0] not in OWN_STEPS:
                own = self.journal.since(self._journal_length_before)[: self._length_before_events - self._journal_length_before]
                self.memory.steps[key] = memo_driver.Step(next, self._stored, self._delivered, own)

    def _key(self, action: Action) -> Any:
        """All values on which the outcome depends; None: the outcome is not stored."""
        if action[0] in ADMIN_ACTIONS:
            return str(action), self._stored
        if action[0] not in OWN_STEPS:
            return None
        p = self.processes[action[1]]
        driver = cast(memo_driver.MemoDriver, p.driver)
        return action, driver.local, driver.session_id, tuple([n.event for n in p.notifications]), p.session, self._stored

    def _repeat(self, action: Action, step: memo_driver.Step) -> None:
        """Apply `step`, the outcome of an equal action in an equal state, without performing the action."""
        if step.next is not None:
            p = self.processes[action[1]]
            cast(memo_driver.MemoDriver, p.driver).local = step.next
            if action[0] == "deliver_notification":
                p.notifications.popleft()
        self._stored = step.stored
        self._journal_length_before = len(self.journal)
        self.journal.extend(step.records)
        self._deliver(step.fired)
        self.done.append(action)

    def fingerprint(self) -> str:
        """Return a text of the cluster's state; copies of a cluster with equal texts have equal futures, whatever their past."""
        parts = [self._stored.text]
        for n, p in sorted(self.processes.items()):
            parts += [cast(memo_driver.MemoDriver, p.driver).local.text, fingerprint.Text(fingerprint.process_state(n, p), ())]
        return self.memory.fingerprint([*parts, *fingerprint.orphans_and_network(self.orphaned_sessions, self.network)])

    # ---------------------------------------------------------------- ZooKeeper

    def exist(self, *paths: str) -> list[bool]:
        nodes = (self._own or self._stored.zk).nodes()
        return [path in nodes for path in paths]

    @property
    def zk(self) -> MemoryZooKeeper:  # type: ignore[override]
        """Return the stored ZooKeeper, only for reading; during a step, a copy that the step may change."""
        if self._own is None and self._is_stepping:
            self._own = self._stored.zk.copy()
        return self._own or self._stored.zk

    @property
    def tool(self) -> Client:
        return MemoAdminClient(self)

    def call_zookeeper(self, call: memo_driver.ZooKeeperCall, session: int) -> memo_driver.ZooKeeperAnswer:
        """Return ZooKeeper's response to a driver's call in this session."""
        # The present step works on its own copy of ZooKeeper.
        if self._own is not None:
            value = memo_driver.call_client(self._own.client(session), call.method, call.args)
            return memo_driver.ZooKeeperAnswer(value, memo_driver.answer_key(value), self._stored, [])
        answer = self.memory.ask(self._stored, call, session, self.owners)
        self._stored, self._fired = answer.next, (*self._fired, *answer.fired)
        return answer

    def _notify(self, before: int) -> None:
        if self._own is not None:
            self._fired = (*self._fired, *self._own.take_events())
            self._stored, self._own = self.memory.stored(self._own, self.owners), None
        self._length_before_events, self._delivered, self._fired = len(self.journal), self._fired, ()
        self._deliver(self._delivered)

    def _deliver(self, watch_events: Fired) -> None:
        for n, p in sorted(self.processes.items()) if watch_events else ():
            session = cast(memo_driver.MemoDriver, p.driver).session_id
            for event in [event for to, event in watch_events if to == session and p.session is SessionState.OPEN]:
                record = self.log("notify", None, to=n, type=event.type, path=event.path)
                p.notifications.append(QueuedNotification(event, record))

    # ---------------------------------------------------------------- drivers

    def _driver(self, node: int, incarnation: int, client: Client, controller: Any, broker: Any, group: Any = None) -> Any:
        return self._memo_driver(super()._driver(node, incarnation, client, controller, broker))

    def _memo_driver(self, driver: Driver) -> Any:
        driver.journal = memo_driver.ScratchJournal(0)
        return memo_driver.MemoDriver(ref(self), self.memory.local(driver), driver.client.session_id)


class MemoAdminClient:
    """The ZooKeeper client of tools, which are no brokers, in a MemoWorld; only a write makes a copy of ZooKeeper."""

    def __init__(self, world: MemoWorld) -> None:
        self._world, self.session_id = world, world._tool_session

    def __getattr__(self, name: str) -> Any:
        world = self._world
        if name == "write":
            return world.zk.client(self.session_id).write
        return getattr((world._own or world._stored.zk).client(self.session_id), name)


def why_plain(world: World) -> str | None:
    """Return why the settings exclude the quick search (MemoWorld), such as "the cluster has consumers"; else None."""
    if any(row.lock for row in design_of(world.settings.rules()).threads):
        return "the threads of a controller before 0.11 share a lock"
    if world.settings.consumers:
        return "the cluster has consumers"
    return "the brokers store records" if world.settings.data else None


def fork_for_search(world: World) -> World:
    """A plain World where a MemoWorld does not support the settings (`why_plain`)."""
    return world.fork(keep_replay_logs=True) if why_plain(world) else MemoWorld.of(world)
