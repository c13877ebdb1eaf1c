"""A world for searches: what a broker has done once in a state, it does again without being run.

A handler is a function of what it is told, so what a driver makes of a call depends on nothing but its own state and ZooKeeper's
answer. A search calls the same drivers in the same states over and over; so each call is run once, on a copy, and what came of it
is kept: what was handed over, the records, and the state afterwards. States are compared as fingerprints compare them, but with
zxids, correlation ids and session ids as they are. Time stands still, since no decision depends on it; causes and sequence
numbers in the journal are those of the first run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from kcontrol.effects import Append, LogBatch, Stat, WatchEvent, Znode
from kcontrol.runtime.driver import Driver
from kcontrol.runtime.journal import Journal, Record, RecordId, Spell
from kcontrol.runtime.zk_memory import MemoryZooKeeper
from kcontrol.runtime.zookeeper import Client, Written
from kcontrol.sim import fingerprint, process

if TYPE_CHECKING:
    from kcontrol.sim.quick import QuickWorld

Call = tuple[Any, ...]
Run = Callable[[Driver], Any]
LEARNING = ("learn", "adopt", "change")  # the kinds of records that go with a change of a context
NUMBERED = ("send", "ask")  # the kinds of records whose numbers become correlation ids


@dataclass(slots=True, eq=False)
class Local:
    """One state of a driver, never changed, what a fingerprint says of it, and what came of every call on it so far."""

    driver: Driver
    text: fingerprint.Text
    contexts: str  # what the text says of the contexts
    ready: list[tuple[str, str]]
    came_of: dict[Call, Outcome | Question] = field(default_factory=dict)
    is_spent: bool = False


@dataclass(slots=True, eq=False)
class Stored:
    """One state of ZooKeeper, never changed, what a fingerprint says of it, and every session's questions to it so far."""

    zk: MemoryZooKeeper
    text: fingerprint.Text
    came_of: dict[tuple[int, int], Answer] = field(default_factory=dict)


class Answer(NamedTuple):
    """What ZooKeeper answered, as it is and as a key, its next state, and the watch events that it sent."""

    value: Any
    key: Any
    next: Stored
    fired: list[tuple[int, WatchEvent]]


class Outcome(NamedTuple):
    """What came of a call: what was handed over, the records, and the next state; None where it has to be run each time."""

    handed_over: list[Call]
    records: list[Record]
    next: Local | None
    kept: Any  # keeps alive what the key of the call names by its id


@dataclass(slots=True, eq=False)
class Question:
    """A call that asks ZooKeeper: what, and what came of each answer."""

    method: str
    args: tuple[Any, ...]
    came_of: dict[Any, Outcome]


class Step(NamedTuple):
    """What came of a step: the next state of the process, if it was one's, ZooKeeper's, the watch events and the records."""

    next: Local | None
    stored: Stored
    fired: tuple[tuple[int, WatchEvent], ...]
    records: list[Record]


class Notes(Journal):
    """The journal of one call. Only records that correlation ids are made of are numbered, from `count` on."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def add(self, node: int, incarnation: int, kind: str, cause: RecordId | None, at_ms: int, fields: dict[str, Any]) -> RecordId:
        if kind in NUMBERED:
            self.count += 1
        id = RecordId(node, incarnation, self.count if kind in NUMBERED else 0)
        self.extend([Record(id, kind, cause, at_ms, fields)])
        return id

    def add_batch(self, node: int, incarnation: int, at_ms: int, spell: Spell, columns: tuple[Sequence[Any], ...]) -> None:
        for row in zip(*columns, strict=True):
            kind, cause, fields = spell(*row)
            self.add(node, incarnation, kind, cause, at_ms, fields)


class Answers:
    """A client that notes what it is asked; the first answer may be known already."""

    def __init__(self, client: Client, known: list[Any]) -> None:
        self.client, self.known = client, known
        self.asked: list[tuple[str, tuple[Any, ...], Any]] = []

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def ask(*args: Any) -> Any:
            answer = self.known.pop() if self.known else ask_now(self.client, method, args)
            self.asked.append((method, args, answer))
            if isinstance(answer, Exception):
                raise answer
            return answer

        return ask


class Handed:
    """An outbox that notes what it is handed, and whether it was an answer to this driver's own question with more to come."""

    def __init__(self, notes: Notes) -> None:
        self.notes, self.calls, self.answered_itself = notes, list[Call](), list[int]()

    def __getattr__(self, name: str) -> Callable[..., None]:
        def note(driver: Driver, *args: Any) -> None:
            self.calls.append((name, *args))
            if name == "respond" and args[0].startswith(f"{driver.node}."):
                self.answered_itself.append(len(self.notes.records))

        return note

    def append(self, driver: Driver, effect: Append, record: RecordId) -> None:
        raise NotImplementedError("no broker of this world has a log of groups")

    def read_log(self, driver: Driver, partition: Any, offset: int) -> tuple[LogBatch, ...] | None:
        raise NotImplementedError("no broker of this world has a log of groups")

    @property
    def can_wait(self) -> bool:
        """Whether it makes no difference that all this is handed over only at the end of the call."""
        return all(record.kind == "end" for at in self.answered_itself for record in self.notes.records[at:])


def ask_now(client: Client, method: str, args: tuple[Any, ...]) -> Any:
    """The answer, or the error, which is an answer too."""
    try:
        return getattr(client, method)(*args)
    except Exception as error:
        return error


def told(answer: Any) -> Any:
    """What a handler can see of an answer, as a key."""
    if isinstance(answer, list):
        return tuple([_seen(item) for item in answer])
    return type(answer)


def _seen(item: Any) -> Any:
    kind = type(item)
    if kind is Znode:
        return (item.data, *_seen(item.stat))
    if kind is Stat:
        return (item.version, item.czxid, item.ephemeral_owner)
    return item[1:] if kind is Written else item


def short(text: fingerprint.Text) -> fingerprint.Text:
    """The same with a digest for its words."""
    return text._replace(words=hashlib.blake2b(text.words.encode(), digest_size=16).hexdigest())


class Memory:
    """All that one search remembers of drivers."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self._locals: dict[Any, Local] = {}
        self._texts: dict[int, tuple[Any, str]] = {}
        self.steps: dict[Any, Step] = {}
        self._stored: dict[Any, Stored] = {}
        self._trees: dict[Any, tuple[Mapping[str, Znode], str]] = {}
        self._ranks: dict[Any, str] = {}

    def local(self, driver: Driver, contexts: str | None = None) -> Local:
        """The one state that is equal to this driver's, which may be its own from now on; `contexts` is what its contexts say."""
        contexts = contexts or fingerprint.contexts(driver)
        said = fingerprint.driver(driver, contexts, self._text)
        key = (driver.node, driver.incarnation, said, driver.exit_code, driver.is_cut_off, _count(driver), *_own(driver))
        found = self._locals.get(key)
        if found is None:
            found = self._locals[key] = Local(driver, short(fingerprint.text(said)), contexts, driver.ready())
        return found

    def stored(self, zk: MemoryZooKeeper, owners: Mapping[int, int]) -> Stored:
        """The one state that is equal to this ZooKeeper's, which may be its own: nobody changes it from now on."""
        names = fingerprint.session_names(zk, owners)
        key = (self._tree(zk.nodes(), names), fingerprint.watches(zk, names), zk.zxid, tuple(names.items()))
        found = self._stored.get(key)
        if found is None:
            found = self._stored[key] = Stored(zk, short(fingerprint.text(f"{key[0]}\n{key[1]}")))
        return found

    def _tree(self, nodes: Mapping[str, Znode], names: Mapping[int, str]) -> str:
        key = id(nodes), tuple(names.values())
        known = self._trees.get(key)
        if known is None:
            known = self._trees[key] = (nodes, fingerprint.znodes(nodes, names, self._text))
        return known[1]

    def ask(self, stored: Stored, question: Question, session: int, owners: Mapping[int, int]) -> Answer:
        """What becomes of a question, asked of a copy when it comes for the first time."""
        key = id(question), session
        known = stored.came_of.get(key)
        if known is None:
            zk = stored.zk.copy()
            value = ask_now(zk.client(session), question.method, question.args)
            fired = zk.take_events()
            known = stored.came_of[key] = Answer(value, told(value), self.stored(zk, owners), fired)
        return known

    def fingerprint(self, parts: list[fingerprint.Text]) -> str:
        """The words of all parts, which are digests, and the ranks of their zxids."""
        zxids = tuple([part.zxids for part in parts])
        ranks = self._ranks.get(zxids)
        if ranks is None:
            ranks = self._ranks[zxids] = str(fingerprint.ranks(zxids))
        return "\n".join([*[part.words for part in parts], ranks])

    def _text(self, value: Any) -> str:
        """The canonical text of what never changes, worked out once."""
        known = self._texts.get(id(value))
        if known is None:
            known = self._texts[id(value)] = (value, fingerprint.canonical(value))
        return known[1]

    def copy(self, local: Local, client: Any, notes: Notes, outbox: Any) -> Driver:
        """A driver in the same state that can be run. The first one takes over the suspended handlers, the others revive them."""
        move, local.is_spent = not local.is_spent, True
        return process.copy_driver(local.driver, client, notes, lambda: self.now_ms, outbox, move=move)


def _count(driver: Driver) -> int:
    return driver.journal.count if isinstance(driver.journal, Notes) else 0


def _own(driver: Driver) -> list[tuple[Any, Any]]:
    """What a fingerprint leaves out of events and what a driver's future may depend on all the same."""
    events = [item.event for thread in driver.threads.values() for item in thread.queue.waiting]
    events += [thread.event for thread in driver.threads.values()]
    return [(getattr(event, "correlation_id", None), getattr(event, "session", None)) for event in events]


def key_of(event: Any) -> Any:
    """An event as a key; mappings in it are known by their ids."""
    try:
        hash(event)
    except TypeError:
        values = [getattr(event, f.name) for f in fields(event)]
        return (type(event), *[id(value) if isinstance(value, dict) else value for value in values])
    return event


class RecallingDriver:
    """Stands for a driver in a world of a search: it has a state, and every call takes it to another."""

    __slots__ = ("_running", "_world", "local", "session_id")

    def __init__(self, world: ref[QuickWorld], local: Local, session_id: int) -> None:
        self._world, self.local, self.session_id = world, local, session_id
        self._running: Driver | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._running or self.local.driver, name)

    @property
    def world(self) -> QuickWorld:
        world = self._world()
        assert world is not None, "a driver is looked at while its world is there"
        return world

    @property
    def exit_code(self) -> int | None:
        return (self._running or self.local.driver).exit_code

    @property
    def is_cut_off(self) -> bool:
        return self.local.driver.is_cut_off

    @is_cut_off.setter
    def is_cut_off(self, value: bool) -> None:
        self._call(("is_cut_off", value), lambda d: setattr(d, "is_cut_off", value))

    @property
    def client(self) -> Client:
        return self.world.zk.client(self.session_id)

    @client.setter
    def client(self, client: Client) -> None:
        self.session_id = client.session_id

    def ready(self) -> list[tuple[str, str]]:
        return self.local.ready

    def log(self, kind: str, cause: RecordId | None, **fields: Any) -> RecordId:
        driver = self.local.driver
        return self.world.journal.add(driver.node, driver.incarnation, kind, cause, self.world.now_ms, fields)

    def enqueue(self, event: Any, cause: RecordId | None, thread: str | None = None, *, noticed: bool = False) -> None:
        key = ("enqueue", key_of(event), thread, noticed)
        self._call(key, lambda d: d.enqueue(event, cause, thread, noticed=noticed), event)

    def clear(self, thread: str, cause: RecordId | None) -> None:
        self._call(("clear", thread), lambda d: d.clear(thread, cause))

    def begin(self, name: str) -> None:
        self._call(("begin", name), lambda d: d.begin(name))

    def advance(self, name: str) -> None:
        self._call(("advance", name), lambda d: d.advance(name))

    def fire(self, timer: str) -> None:
        self._call(("fire", timer), lambda d: d.fire(timer))

    # ---------------------------------------------------------------- inside

    def _call(self, key: Call, op: Run, kept: Any = None) -> None:
        if self._running is not None:
            op(self._running)
            return
        world = self.world
        known, answers = self.local.came_of.get(key), list[Any]()
        if isinstance(known, Question):
            answer = world.put(known, self.session_id)
            answers, outcome = [answer.value], known.came_of.get(answer.key)
        else:
            outcome = known
        if outcome is None:
            outcome = self._try(key, op, answers, kept)
        if outcome.next is None or outcome.handed_over:
            world.is_local = False
        if outcome.next is None:
            self._run(op, answers)
            return
        self.local = outcome.next
        world.journal.extend(outcome.records)
        for name, *args in outcome.handed_over:
            getattr(world, name)(self, *args)

    def _try(self, key: Call, op: Run, answers: list[Any], kept: Any) -> Outcome:
        """Run a call on a copy and remember what came of it; `answers` has ZooKeeper's answer afterwards."""
        memory, notes = self.world.memory, Notes(_count(self.local.driver))
        client, outbox = Answers(self.client, answers.copy()), Handed(notes)
        driver = memory.copy(self.local, client, notes, outbox)
        op(driver)
        assert len(client.asked) <= 1, "one step is one round trip"
        contexts = None if any(record.kind in LEARNING for record in notes.records) else self.local.contexts
        outcome = Outcome(outbox.calls, notes.records, memory.local(driver, contexts) if outbox.can_wait else None, kept)
        if client.asked:
            method, args, answer = client.asked[0]
            answers[:] = [answer]
            question = self.local.came_of.setdefault(key, Question(method, args, {}))
            assert isinstance(question, Question)
            question.came_of[told(answer)] = outcome
        else:
            self.local.came_of[key] = outcome
        return outcome

    def _run(self, op: Run, answers: list[Any]) -> None:
        """Run a call that hands something over to this very driver on the way."""
        notes = Notes(_count(self.local.driver))
        client = Answers(self.client, answers.copy())
        self._running = self.world.memory.copy(self.local, client, notes, Forward(self))
        try:
            op(self._running)
            self.world.journal.extend(notes.records)
            self.local = self.world.memory.local(self._running)
        finally:
            self._running = None


class Forward:
    """An outbox that hands everything over at once, in the name of the driver that stands for this one."""

    def __init__(self, driver: RecallingDriver) -> None:
        self.driver = driver

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda _, *args: getattr(self.driver.world, name)(self.driver, *args)
