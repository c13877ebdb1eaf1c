"""The world that a search goes through: it forks in no time, because its drivers remember what came of every call."""

from __future__ import annotations

from collections import deque
from typing import Any, cast
from weakref import ref

from kcontrol.effects import WatchEvent
from kcontrol.runtime.driver import Driver
from kcontrol.runtime.zk_memory import MemoryZooKeeper
from kcontrol.runtime.zookeeper import Client
from kcontrol.sim import acts, fingerprint, process
from kcontrol.sim.process import Notice, Process
from kcontrol.sim.recall import Answer, Memory, Notes, Question, RecallingDriver, Step, Stored, ask_now, told
from kcontrol.sim.world import Action, World

Fired = tuple[tuple[int, WatchEvent], ...]

OWN_STEPS = ("advance", "begin", "deliver", "fire")
"""The kinds of actions that are one process's own."""
HANDS = ("create_topic", "delete_topic", "delete", "set", "create")
"""The kinds of actions that are an outside hand's, and change nothing but ZooKeeper."""


class QuickWorld(World):
    """A fork of a world, and the forks of that: the same actions lead to the same states, and time stands still.

    What a driver holds is for looking at; only actions change it.
    """

    memory: Memory
    _stored: Stored
    _own: MemoryZooKeeper | None = None  # what this step changes by itself
    _is_stepping = False
    is_local = True  # whether this step has reached nobody else but by watch events
    _fired: Fired = ()
    _told: Fired = ()  # the watch events of the last step
    _unheard = 0  # how many records there were before they were told
    _tool_session: int

    @classmethod
    def of(cls, world: World) -> QuickWorld:
        """A quick fork. Raises ValueError on a real ZooKeeper."""
        plain, now_ms = world.fork(exact=True), world.now_ms
        zk, tool = cast(MemoryZooKeeper, plain.__dict__.pop("zk")), plain.__dict__.pop("_tool")
        quick = cls.__new__(cls)
        quick.__dict__.update(plain.__dict__)
        quick.clock, quick.memory = lambda: now_ms, Memory(now_ms)
        quick._stored = quick.memory.stored(zk.copy(lambda: now_ms), quick.owners)
        quick._tool_session = tool.session_id
        quick.journal.spell_out()
        quick._base, quick._since = None, []  # a quick world needs no past to be copied from
        for p in plain.processes.values():
            p.driver = quick._stand_in(p.driver)
        return quick

    def fork(self, *, exact: bool = True) -> QuickWorld:
        """A second world with the same past."""
        twin = QuickWorld.__new__(QuickWorld)
        twin.__dict__.update(self.__dict__)
        twin.journal, twin.network, twin.done = self.journal.copy(), self.network.copy(), self.done.copy()
        twin.ghosts = {n: ghosts.copy() for n, ghosts in self.ghosts.items()}
        twin.processes, here = {}, ref(twin)
        for n, p in self.processes.items():
            driver = cast(RecallingDriver, p.driver)
            stand_in: Any = RecallingDriver(here, driver.local, driver.session_id)
            state = (p.session, p.frozen, deque(p.notices), p.lost, p.coordinates, p.was_asked)
            twin.processes[n] = Process(stand_in, p.host, p.port, *state)
        return twin

    def step(self, action: Action) -> None:
        """Do one of `actions()`; whether it is one is not looked at."""
        key = self._key(action)
        known = self.memory.steps.get(key) if key else None
        if known is not None:
            self._repeat(action, known)
            return
        self._is_stepping = self.is_local = True
        try:
            self._perform(acts.ACTIONS[action[0]].perform, action)
        finally:
            self._is_stepping = False
        if key and self.is_local:
            p = self.processes.get(action[1]) if action[0] in OWN_STEPS else None
            next = cast(RecallingDriver, p.driver).local if p else None
            if p is not None or action[0] not in OWN_STEPS:
                own = self.journal.since(self._before)[: self._unheard - self._before]
                self.memory.steps[key] = Step(next, self._stored, self._told, own)

    def _key(self, action: Action) -> Any:
        """All that a step depends on, as far as the process goes on by itself and nobody else hears of it but by watch events."""
        if action[0] in HANDS:
            return str(action), self._stored
        if action[0] not in OWN_STEPS:
            return None
        p = self.processes[action[1]]
        driver = cast(RecallingDriver, p.driver)
        return action, driver.local, driver.session_id, tuple([n.event for n in p.notices]), p.session, self._stored

    def _repeat(self, action: Action, known: Step) -> None:
        """Do what came of the same step before."""
        if known.next is not None:
            p = self.processes[action[1]]
            cast(RecallingDriver, p.driver).local = known.next
            if action[0] == "deliver":
                p.notices.popleft()
        self._stored = known.stored
        self._before = len(self.journal)
        self.journal.extend(known.records)
        self._tell(known.fired)
        self.done.append(action)

    def fingerprint(self) -> str:
        """Equal for worlds of one search with equal futures, however they came about."""
        parts = [self._stored.text]
        for n, p in sorted(self.processes.items()):
            parts += [cast(RecallingDriver, p.driver).local.text, fingerprint.Text(fingerprint.surroundings(n, p), ())]
        return self.memory.fingerprint([*parts, *fingerprint.left_and_on_the_way(self.ghosts, self.network)])

    # ---------------------------------------------------------------- ZooKeeper

    def have(self, *paths: str) -> list[bool]:
        nodes = (self._own or self._stored.zk).nodes()
        return [path in nodes for path in paths]

    @property
    def zk(self) -> MemoryZooKeeper:  # type: ignore[override]
        """Within a step a ZooKeeper of this world's own, to be changed; otherwise one to be looked at."""
        if self._own is None and self._is_stepping:
            self._own = self._stored.zk.copy()
        return self._own or self._stored.zk

    @property
    def tool(self) -> Client:
        return QuickTool(self)

    def put(self, question: Question, session: int) -> Answer:
        """What becomes of a driver's question."""
        if self._own is not None:
            value = ask_now(self._own.client(session), question.method, question.args)
            return Answer(value, told(value), self._stored, [])
        answer = self.memory.ask(self._stored, question, session, self.owners)
        self._stored, self._fired = answer.next, (*self._fired, *answer.fired)
        return answer

    def _notify(self, before: int) -> None:
        if self._own is not None:
            self._fired = (*self._fired, *self._own.take_events())
            self._stored, self._own = self.memory.stored(self._own, self.owners), None
        self._unheard, self._told, self._fired = len(self.journal), self._fired, ()
        self._tell(self._told)

    def _tell(self, fired: Fired) -> None:
        for n, p in sorted(self.processes.items()) if fired else ():
            session = cast(RecallingDriver, p.driver).session_id
            for event in [event for to, event in fired if to == session and p.session == "open"]:
                p.notices.append(Notice(event, self.log("notify", None, to=n, type=event.type, path=event.path)))

    # ---------------------------------------------------------------- drivers

    def _driver(self, node: int, incarnation: int, client: Client, controller: Any, broker: Any, group: Any = None) -> Any:
        return self._stand_in(super()._driver(node, incarnation, client, controller, broker))

    def _stand_in(self, driver: Driver) -> Any:
        driver.journal = Notes(0)
        return RecallingDriver(ref(self), self.memory.local(driver), driver.client.session_id)


class QuickTool:
    """The outside hand's session: what it only looks at copies nothing."""

    def __init__(self, world: QuickWorld) -> None:
        self._world, self.session_id = world, world._tool_session

    def __getattr__(self, name: str) -> Any:
        world = self._world
        if name == "write":
            return world.zk.client(self.session_id).write
        return getattr((world._own or world._stored.zk).client(self.session_id), name)


def start(world: World) -> World:
    """A fork to search from: a quick one, unless threads take turns, or there are logs or consumers, unknown to recalling."""
    locks = [lock for _, _, lock in process.THREADS[world.settings.rules().design] if lock]
    unknown = locks or world.settings.data or world.settings.consumers
    return world.fork(exact=True) if unknown else QuickWorld.of(world)
