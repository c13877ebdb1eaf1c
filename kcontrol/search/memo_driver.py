"""Memoized drivers for searches: each call of a driver's method, such as `begin`, runs once per state; its outcome is reused.

A driver runs the handlers of one broker; its outbox takes the handlers' requests and responses. A handler depends only on the
values that it receives, so the outcome of a call depends only on the state of the driver and on ZooKeeper's response. A search
makes equal calls in equal states very often. Each call is run once, on a copy of the driver, and its outcome is kept: the calls
to the outbox, the journal records, and the next state. States are compared as `cluster/fingerprint.py` compares them, but with
exact zxids, correlation ids and session ids. Time stands still, since no decision depends on it. A journal record names another
record as its cause: where an outcome is reused, its records have the causes and sequence numbers of the call that was run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from kcontrol.cluster import fingerprint, process
from kcontrol.core.effects import Append, LogBatch, Stat, WatchEvent, Znode
from kcontrol.core.znodes import BROKER_IDS
from kcontrol.driver.driver import Driver
from kcontrol.journal.journal import Journal, Record, RecordFactory, RecordId
from kcontrol.zookeeper.memory import MemoryZooKeeper
from kcontrol.zookeeper.port import Client, WriteResult

if TYPE_CHECKING:
    from kcontrol.search.memo_world import MemoWorld

Call = tuple[Any, ...]
Run = Callable[[Driver], Any]
LEARNING = ("update", "apply_request", "change")  # the kinds of records that are written when a context changes
NUMBERED = ("send", "submit")  # the kinds of records whose numbers are part of correlation ids


@dataclass(slots=True, eq=False)
class DriverState:
    """One immutable state of a broker's driver, and the outcomes of calls of the driver's methods in this state."""

    # A driver in this state; each call is made on a copy.
    driver: Driver
    # The text of the state for comparisons.
    text: fingerprint.Text
    # The part of the text about the memory of the controller, the broker and the coordinator.
    contexts: str
    # ("begin" or "advance", thread) for each step that is possible now.
    ready: list[tuple[str, str]]
    # By the key of a call, such as ("begin", thread): the outcome or, if the call makes a round trip to ZooKeeper, an outcome for
    # each response.
    outcomes: dict[Call, Outcome | ZooKeeperCall] = field(default_factory=dict)
    # Whether the suspended handlers of `driver` were moved to its first copy, since a generator cannot be copied. Each later copy
    # must run these handlers again up to the suspension.
    handlers_are_moved: bool = False


@dataclass(slots=True, eq=False)
class ZooKeeperState:
    """One immutable state of ZooKeeper, its fingerprint text, and the response to each call made in this state.

    `answers` maps (id() of the ZooKeeperCall object, session that makes the call) to the response.
    """

    # A ZooKeeper in this state; a call is made on a copy.
    zk: MemoryZooKeeper
    text: fingerprint.Text
    answers: dict[tuple[int, int], ZooKeeperAnswer] = field(default_factory=dict)


class ZooKeeperAnswer(NamedTuple):
    """The response of ZooKeeper to a call, ZooKeeper's next state, and the watch events that the call caused."""

    # The response, or the exception that was raised.
    value: Any
    # The result of `answer_key` for `value`: responses with equal keys have equal outcomes.
    key: Any
    next: ZooKeeperState
    # Pairs of a session and an event.
    fired: list[tuple[int, WatchEvent]]


class Outcome(NamedTuple):
    """The stored outcome of one call of a driver's method: requests and responses to send, journal records, the next state."""

    # The calls of the outbox's methods in their order, as (name of the method, *its arguments without the driver).
    outbox_calls: list[Call]
    records: list[Record]
    # The state after the call. None if the call must be run each time (`MemoDriver._run`): the broker has responded to a request
    # of its own and then written further records, so the response must be delivered during the call, before these records.
    next: DriverState | None
    # The event that the call has put into the driver's queue, or None. It is referenced here so that the id() of a dict in it,
    # which keys of later calls may contain, is not used for another object.
    kept: Any


@dataclass(slots=True, eq=False)
class ZooKeeperCall:
    """The round trip to ZooKeeper during one call of a driver's method: the method of the ZooKeeper client and its arguments."""

    method: str
    args: tuple[Any, ...]
    # The key of ZooKeeper's response (`answer_key`) -> the outcome of the driver's call after this response.
    outcomes: dict[Any, Outcome]


class Step(NamedTuple):
    """The outcome of one action of a cluster, such as ("deliver_notification", 1): the next states, and the new records."""

    # The next state of the broker that the action concerns; None for an action of a client that is no broker.
    next: DriverState | None
    # The next state of ZooKeeper.
    stored: ZooKeeperState
    # Watch events: pairs of a session and an event.
    fired: tuple[tuple[int, WatchEvent], ...]
    records: list[Record]


class ScratchJournal(Journal):
    """The journal of a driver's copy during one call; the caller adds its records to the journal of the world.

    Only records that send requests are numbered, because correlation ids contain these numbers; other records have the number 0.
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        # The number of the broker's last record that sends requests; at first that of the last one before the call.
        self.count = count

    def add(self, node: int, incarnation: int, kind: str, cause: RecordId | None, at_ms: int, fields: dict[str, Any]) -> RecordId:
        if kind in NUMBERED:
            self.count += 1
        id = RecordId(node, incarnation, self.count if kind in NUMBERED else 0)
        self.extend([Record(id, kind, cause, at_ms, fields)])
        return id

    def add_batch(
        self, node: int, incarnation: int, at_ms: int, record_of: RecordFactory, columns: tuple[Sequence[Any], ...]
    ) -> None:
        for row in zip(*columns, strict=True):
            kind, cause, fields = record_of(*row)
            self.add(node, incarnation, kind, cause, at_ms, fields)


class RecordingClient:
    """A ZooKeeper client that records its calls in `asked`, as (method, arguments, response or exception).

    If `known_responses` has a response, the next call takes this response, and ZooKeeper is not called.
    """

    def __init__(self, client: Client, known_responses: list[Any]) -> None:
        self.client, self.known_responses = client, known_responses
        self.asked: list[tuple[str, tuple[Any, ...], Any]] = []

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def ask(*args: Any) -> Any:
            answer = self.known_responses.pop() if self.known_responses else call_client(self.client, method, args)
            self.asked.append((method, args, answer))
            if isinstance(answer, Exception):
                raise answer
            return answer

        return ask


class RecordingOutbox:
    """Stores the requests and responses that handlers send during one call of a driver, and sends none of them."""

    def __init__(self, journal: ScratchJournal) -> None:
        # `own_responses`: for each response to a request of this broker to itself, the number of journal records before it.
        self.journal, self.calls, self.own_responses = journal, list[Call](), list[int]()

    def __getattr__(self, name: str) -> Callable[..., None]:
        def record(driver: Driver, *args: Any) -> None:
            self.calls.append((name, *args))
            if name == "respond" and args[0].startswith(f"{driver.node}."):
                self.own_responses.append(len(self.journal.records))

        return record

    def append(self, driver: Driver, effect: Append, record: RecordId) -> None:
        raise NotImplementedError("a MemoWorld has no group coordinators: fork_for_search forks a plain World")

    def read_log(self, driver: Driver, partition: Any, offset: int) -> tuple[LogBatch, ...] | None:
        raise NotImplementedError("a MemoWorld has no group coordinators: fork_for_search forks a plain World")

    @property
    def can_wait(self) -> bool:
        """Whether the journal stays equal if the requests and responses are sent only after the driver's call."""
        # After each response of the broker to itself the only record is `end`, that of the handler's end.
        return all(record.kind == "end" for at in self.own_responses for record in self.journal.records[at:])


def call_client(client: Client, method: str, args: tuple[Any, ...]) -> Any:
    """Call the method `method` of a ZooKeeper client, and return its result, or the exception that it raised."""
    try:
        return getattr(client, method)(*args)
    except Exception as error:
        return error


def answer_key(answer: Any) -> Any:
    """Return a hashable key of a response of ZooKeeper (or its exception); equal keys mean equal outcomes of every handler."""
    if isinstance(answer, list):
        return tuple([_item_key(item) for item in answer])
    return type(answer)


def _item_key(item: Any) -> Any:
    kind = type(item)
    if kind is Znode:
        return (item.data, *_item_key(item.stat))
    if kind is Stat:
        return (item.version, item.czxid, item.ephemeral_owner)
    if kind is WriteResult:  # the zxid of a registration is the broker epoch
        return item if any(path.startswith(BROKER_IDS) for path in item.paths) else item[1:]
    return item


def digest_text(text: fingerprint.Text) -> fingerprint.Text:
    """Return a copy of `text`, one part of a state's fingerprint, with a BLAKE2b hash in place of the long text `words`."""
    return text._replace(words=hashlib.blake2b(text.words.encode(), digest_size=16).hexdigest())


class Memo:
    """The cache of one search: each reached state of a broker or of ZooKeeper once, and the outcome of each action in it.

    An action that is performed again in an equal state is not computed again.
    """

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self._driver_states: dict[Any, DriverState] = {}
        self._texts: dict[int, tuple[Any, str]] = {}
        # The outcomes of actions, by the key of the action and of the state before it.
        self.steps: dict[Any, Step] = {}
        self._stored: dict[Any, ZooKeeperState] = {}
        self._trees: dict[Any, tuple[Mapping[str, Znode], str]] = {}
        self._ranks: dict[Any, str] = {}

    def local(self, driver: Driver, contexts: str | None = None) -> DriverState:
        """Return the stored state that equals the present state of `driver`; a new state is stored first.

        `contexts` is the fingerprint text of the controller's, broker's and coordinator's memory; if None, it is computed.
        """
        contexts = contexts or fingerprint.contexts(driver)
        state = fingerprint.driver(driver, contexts, self._text)
        key = (
            driver.node, driver.incarnation, state, driver.exit_code, driver.has_lost_session, _count(driver),
            *_event_ids(driver),
        )  # fmt: skip
        found = self._driver_states.get(key)
        if found is None:
            found = self._driver_states[key] = DriverState(driver, digest_text(fingerprint.text(state)), contexts, driver.ready())
        return found

    def stored(self, zk: MemoryZooKeeper, owners: Mapping[int, int]) -> ZooKeeperState:
        """The stored state that equals the present one; a stored `zk` may not change any more."""
        names = fingerprint.session_names(zk, owners)
        key = (self._tree(zk.nodes(), names), fingerprint.watches(zk, names), zk.zxid, tuple(names.items()))
        found = self._stored.get(key)
        if found is None:
            found = self._stored[key] = ZooKeeperState(zk, digest_text(fingerprint.text(f"{key[0]}\n{key[1]}")))
        return found

    def _tree(self, nodes: Mapping[str, Znode], names: Mapping[int, str]) -> str:
        key = id(nodes), tuple(names.values())
        known = self._trees.get(key)
        if known is None:
            known = self._trees[key] = (nodes, fingerprint.znodes(nodes, names, self._text))
        return known[1]

    def ask(
        self, zookeeper_state: ZooKeeperState, call: ZooKeeperCall, session: int, owners: Mapping[int, int]
    ) -> ZooKeeperAnswer:
        """Return ZooKeeper's response to `call` in the state `zookeeper_state`; `session` makes the call.

        `owners` maps a session to its broker.
        """
        key = id(call), session
        known = zookeeper_state.answers.get(key)
        # The first such call in a state is performed on a copy of ZooKeeper; later calls get its response.
        if known is None:
            zk = zookeeper_state.zk.copy()
            value = call_client(zk.client(session), call.method, call.args)
            fired = zk.take_events()
            known = zookeeper_state.answers[key] = ZooKeeperAnswer(value, answer_key(value), self.stored(zk, owners), fired)
        return known

    def fingerprint(self, parts: list[fingerprint.Text]) -> str:
        """Each part's digest, and the rank of each zxid among all."""
        zxids = tuple([part.zxids for part in parts])
        # States whose zxids differ only by gaps get equal texts.
        ranks = self._ranks.get(zxids)
        if ranks is None:
            ranks = self._ranks[zxids] = str(fingerprint.ranks(zxids))
        return "\n".join([*[part.words for part in parts], ranks])

    def _text(self, value: Any) -> str:
        """Return the canonical text (`fingerprint.canonical`) of an immutable value; each object's text is made once."""
        known = self._texts.get(id(value))
        if known is None:
            known = self._texts[id(value)] = (value, fingerprint.canonical(value))
        return known[1]

    def copy(self, driver_state: DriverState, client: Any, journal: ScratchJournal, outbox: Any) -> Driver:
        """Return a driver in the state `driver_state` that can run with this client, journal and outbox."""
        # A suspended handler, a generator, cannot be copied: the first copy takes it over, and each later copy runs it again up
        # to its place.
        move, driver_state.handlers_are_moved = not driver_state.handlers_are_moved, True
        return process.copy_driver(driver_state.driver, client, journal, lambda: self.now_ms, outbox, moves_handlers=move)


def _count(driver: Driver) -> int:
    return driver.journal.count if isinstance(driver.journal, ScratchJournal) else 0


def _event_ids(driver: Driver) -> list[tuple[Any, Any]]:
    """(correlation id, session): what handlers write to the journal and fingerprints leave out."""
    events = [item.event for thread in driver.threads.values() for item in thread.queue.waiting]
    events += [thread.event for thread in driver.threads.values()]
    return [(getattr(event, "correlation_id", None), getattr(event, "session", None)) for event in events]


def key_of(event: Any) -> Any:
    """The event itself if it can be hashed; a dict in a field counts by its id()."""
    # While the key is in use, the caller must keep a reference to the event, so that the id() stays unique.
    try:
        hash(event)
    except TypeError:
        values = [getattr(event, f.name) for f in fields(event)]
        return (type(event), *[id(value) if isinstance(value, dict) else value for value in values])
    return event


class MemoDriver:
    """The substitute for a broker's driver in a search: a call of a method, such as `begin`, runs once per state of the driver.

    If the call comes in that state again, the stored outcome is used.
    """

    __slots__ = ("_running", "_world", "local", "session_id")

    def __init__(self, world: ref[MemoWorld], driver_state: DriverState, session_id: int) -> None:
        self._world, self.local, self.session_id = world, driver_state, session_id
        self._running: Driver | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._running or self.local.driver, name)

    @property
    def world(self) -> MemoWorld:
        world = self._world()
        assert world is not None, "a MemoDriver may be used only while its MemoWorld exists"
        return world

    @property
    def exit_code(self) -> int | None:
        return (self._running or self.local.driver).exit_code

    @property
    def has_lost_session(self) -> bool:
        return self.local.driver.has_lost_session

    @has_lost_session.setter
    def has_lost_session(self, value: bool) -> None:
        self._call(("has_lost_session", value), lambda d: setattr(d, "has_lost_session", value))

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

    def enqueue(self, event: Any, cause: RecordId | None, thread: str | None = None, *, is_watch_event: bool = False) -> None:
        key = ("enqueue", key_of(event), thread, is_watch_event)
        self._call(key, lambda d: d.enqueue(event, cause, thread, is_watch_event=is_watch_event), event)

    def clear(self, thread: str, cause: RecordId | None) -> None:
        self._call(("clear", thread), lambda d: d.clear(thread, cause))

    def begin(self, name: str) -> None:
        self._call(("begin", name), lambda d: d.begin(name))

    def advance(self, name: str) -> None:
        self._call(("advance", name), lambda d: d.advance(name))

    def fire(self, timer: str) -> None:
        self._call(("fire_timer", timer), lambda d: d.fire(timer))

    # ---------------------------------------------------------------- memoized calls

    def _call(self, key: Call, op: Run, queued_event: Any = None) -> None:
        if self._running is not None:
            op(self._running)
            return
        world = self.world
        known, answers = self.local.outcomes.get(key), list[Any]()
        if isinstance(known, ZooKeeperCall):
            answer = world.call_zookeeper(known, self.session_id)
            answers, outcome = [answer.value], known.outcomes.get(answer.key)
        else:
            outcome = known
        if outcome is None:
            outcome = self._try(key, op, answers, queued_event)
        if outcome.next is None or outcome.outbox_calls:
            world.is_local = False
        if outcome.next is None:
            self._run(op, answers)
            return
        self.local = outcome.next
        world.journal.extend(outcome.records)
        for name, *args in outcome.outbox_calls:
            getattr(world, name)(self, *args)

    def _try(self, key: Call, op: Run, answers: list[Any], queued_event: Any) -> Outcome:
        """Perform the call `op` on a copy of the driver; return its outcome, stored under `key`, such as ("begin", thread).

        If `answers` is empty, ZooKeeper is called, and its response is added. `queued_event` is the event that the call queues,
        else None.
        """
        memory, journal = self.world.memory, ScratchJournal(_count(self.local.driver))
        client, outbox = RecordingClient(self.client, answers.copy()), RecordingOutbox(journal)
        driver = memory.copy(self.local, client, journal, outbox)
        op(driver)
        assert len(client.asked) <= 1, "one step is one round trip"
        contexts = None if any(record.kind in LEARNING for record in journal.records) else self.local.contexts
        # `queued_event` is the event of a call that queues an event: the outcome refers to it, since `key` may have the id() of a
        # dict in it.
        outcome = Outcome(
            outbox.calls, journal.records, memory.local(driver, contexts) if outbox.can_wait else None, queued_event
        )
        if client.asked:
            method, args, answer = client.asked[0]
            answers[:] = [answer]
            call = self.local.outcomes.setdefault(key, ZooKeeperCall(method, args, {}))
            assert isinstance(call, ZooKeeperCall)
            call.outcomes[answer_key(answer)] = outcome
        else:
            self.local.outcomes[key] = outcome
        return outcome

    def _run(self, op: Run, answers: list[Any]) -> None:
        """Perform the call `op` on a copy of the driver, and send its requests and responses during the call; store no outcome.

        `answers` has ZooKeeper's response to the call; if it is empty, ZooKeeper is called.
        """
        journal = ScratchJournal(_count(self.local.driver))
        # A request of the broker to itself calls this driver again during the call.
        client = RecordingClient(self.client, answers.copy())
        self._running = self.world.memory.copy(self.local, client, journal, ForwardingOutbox(self))
        try:
            op(self._running)
            self.world.journal.extend(journal.records)
            self.local = self.world.memory.local(self._running)
        finally:
            self._running = None


class ForwardingOutbox:
    """The outbox of a broker's running driver in a MemoWorld: each request and response is sent through the world at once."""

    def __init__(self, driver: MemoDriver) -> None:
        self.driver = driver

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda _, *args: getattr(self.driver.world, name)(self.driver, *args)
