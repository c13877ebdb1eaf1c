"""What the tests of the core share: a quiet cluster, a random walk through what can happen, and a bench for one driver."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from kcontrol.broker.context import BrokerContext
from kcontrol.cluster import actions
from kcontrol.cluster.run_settings import FAULTS, Settings
from kcontrol.cluster.world import Action, World
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.handlers import design_of
from kcontrol.core.controller_rules import rules
from kcontrol.core.effects import Append, Handler, LogBatch, Op, Submit
from kcontrol.core.events import Event
from kcontrol.core.model import PartitionState, TopicPartition
from kcontrol.driver.driver import Driver
from kcontrol.driver.threads import Thread
from kcontrol.journal.fold import Fold
from kcontrol.journal.journal import Journal, Record, RecordId, to_line
from kcontrol.search.invariants import stored as states
from kcontrol.search.search import SearchResult
from kcontrol.zookeeper.memory import MemoryZooKeeper
from kcontrol.zookeeper.port import WriteResult
from tests.core.snapshots import without_defaults

RULES_2_8 = rules("2.8")
TOPICS = {"t": ((1, 2, 3), (2, 3, 1)), "u": ((3, 1),)}
LOCAL = ("advance", "begin", "deliver_notification", "renew", "reconnect")
ALL_FAULTS = (*FAULTS, "create_topic")
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


# ---------------------------------------------------------------- clusters


def cluster(topics: Mapping[str, Any] = TOPICS, **settings: Any) -> World:
    """A quiet cluster whose brokers have started in order, so that the first one is controller, with these topics."""
    world = World(Settings(topics=topics, **settings))
    for broker in world.settings.brokers:
        settle(world, ("start", broker))
    for topic, assignment in topics.items():
        settle(world, ("create_topic", topic, assignment))
    return world


def settle(world: World, *performed: Action) -> None:
    for action in performed:
        world.step(action)
    world.run()


def until(world: World, happens: Callable[[World], bool]) -> None:
    """Takes routine steps until something is so; it is an error if the world falls quiet before."""
    while not happens(world):
        following = next(actions.routine_actions(world), None)
        assert following is not None, "the cluster fell quiet before that"
        world.step(following)


def alone(world: World, broker: int, happens: Callable[[World], bool]) -> None:
    """Takes the routine steps of one broker only, until something is so; it is an error if it has none left before."""
    while not happens(world):
        mine = [action for action in actions.routine_actions(world) if action[0] in LOCAL and action[1] == broker]
        assert mine, f"broker {broker} has nothing left to do before that"
        world.step(mine[0])


def waits_for(world: World, broker: int, kind: type, thread: str = "controller") -> bool:
    """Whether a broker's handler is suspended with a round trip of this kind, which is not yet performed."""
    process = world.processes.get(broker)
    waiting = process.driver.threads[thread].waits_for if process else None
    return waiting is not None and isinstance(waiting.effect, kind)


def stored(world: World) -> dict[str, tuple[int, tuple[int, ...]]]:
    return {str(tp): (value.leader, value.isr) for tp, value in states(world)}


def of_kind(world: World, kind: str, since: int = 0) -> list[Record]:
    return [record for record in world.journal.records[since:] if record.kind == kind]


def journal_bytes(records: Sequence[Record]) -> bytes:
    """A journal as it would be in its file."""
    return b"".join(map(to_line, records))


def scenario(world: World, found: str = "") -> str:
    """The whole run as Python that can be pasted."""
    return SearchResult(0, world.settings, found, (), tuple(world.done)).scenario()


def differences(left: Any, right: Any, path: str = "") -> Iterator[str]:
    """Where two plain values differ, one line for each place."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted({*left, *right}):
            yield from differences(left.get(key, "nothing"), right.get(key, "nothing"), f"{path}.{key}")
    elif left != right:
        yield f"{path}: {left!r} is not {right!r}"


def check_folds(world: World, steps: Iterable[object]) -> None:
    """Fail with the places that differ if after one of `steps`, which step the world, the journal does not fold to its state."""
    folded, seen = Fold(), 0
    for _ in steps:
        folded.all(world.journal.records[seen:])
        seen = len(world.journal.records)
        left, right = without_defaults(folded.state), without_defaults(world.snapshot())
        if left != right:
            pytest.fail("\n".join(["the journal folds to something else:", *differences(left, right), scenario(world)]))


def full_counts(ctx: ControllerContext) -> tuple[int, int]:
    """Return the numbers of Offline and of imbalanced partitions as a scan over all partitions finds them."""
    going, states = ctx.topics_with_deletion_started, ctx.partition_states
    offline = sum(state is PartitionState.OFFLINE and tp.topic not in going for tp, state in states.items())
    return offline, sum(map(ctx.is_imbalanced, ctx.assignments))


# ---------------------------------------------------------------- random walks


def choose(world: World, rng: random.Random, faulty: float = 0.15) -> Action:
    """A random action: mostly something that goes on by itself, each kind as likely as the others; now and then a fault."""
    by_kind: dict[str, list[Action]] = {}
    faults: dict[str, list[Action]] = {}
    for action in world.actions():
        kind = action[0]
        (by_kind if action.routine or kind == "fire_timer" else faults).setdefault(kind, []).append(action)
    frozen = [n for n, p in world.processes.items() if p.frozen]
    faults["thaw"] = [("thaw", n) for n in frozen]
    faults["freeze"] = [("freeze", n) for n in world.processes if n not in frozen]
    faults = {kind: actions for kind, actions in faults.items() if actions}
    kinds = faults if faults and (not by_kind or rng.random() < faulty) else by_kind
    return rng.choice(kinds[rng.choice(sorted(kinds))])


def walk(world: World, seed: int, steps: int) -> Iterator[Action]:
    """Takes random steps, saying after each which one it was."""
    rng = random.Random(seed)
    for _ in range(steps):
        action = choose(world, rng)
        world.step(action)
        yield action


# ---------------------------------------------------------------- one driver alone


class Spy:
    """A session that notes every call that reaches ZooKeeper."""

    def __init__(self, client: Any, calls: list[tuple[Any, ...]]) -> None:
        self.client, self.calls = client, calls
        self.session_id = client.session_id

    def exists(self, paths: Sequence[str], watch: bool) -> Any:
        self.calls.append(("exists", tuple(paths), watch))
        return self.client.exists(paths, watch)

    def read(self, paths: Sequence[str], watch: bool) -> Any:
        self.calls.append(("read", tuple(paths), watch))
        return self.client.read(paths, watch)

    def children(self, paths: Sequence[str], watch: bool) -> Any:
        self.calls.append(("children", tuple(paths), watch))
        return self.client.children(paths, watch)

    def write(self, transactions: Sequence[tuple[Op, ...]]) -> list[WriteResult]:
        self.calls.append(("write", tuple(tuple((op.kind, op.path) for op in ops) for ops in transactions)))
        return self.client.write(transactions)

    def events(self) -> Any:
        return self.client.events()


class Post:
    """An outbox that keeps the requests and responses of a driver."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []

    def send(self, driver: Driver, requests: Any, record: RecordId) -> None:
        self.sent.append(("send", requests))

    def close_channels(self, driver: Driver, brokers: tuple[int, ...]) -> None:
        self.sent.append(("close_channels", brokers))

    def submit(self, driver: Driver, question: Submit, record: RecordId) -> None:
        self.sent.append(("ask", question.api, question.body))

    def respond(self, driver: Driver, correlation_id: str, body: Any, record: RecordId) -> None:
        self.sent.append(("respond", correlation_id, body))

    def append(self, driver: Driver, effect: Append, record: RecordId) -> None:
        self.sent.append(("append", effect.partition, effect.records))

    def read_log(self, driver: Driver, partition: Any, offset: int) -> tuple[LogBatch, ...] | None:
        return None


@dataclass(frozen=True, slots=True)
class RunStory(Event):
    """Makes the bench run one of its stories."""

    story: str
    correlation_id: str = ""


Story = Callable[[Any], Handler]


class Bench:
    """Broker 1's driver on an empty ZooKeeper, with handlers of the test; `calls` go to ZooKeeper, `post` to the outbox."""

    def __init__(self, threads: Mapping[str, str | None] | None = None, **rule_changes: Any) -> None:
        self.now_ms = 0
        self.zookeeper = MemoryZooKeeper(lambda: self.now_ms)
        self.client, client = self.zookeeper.connect(), self.zookeeper.connect()
        self.calls: list[tuple[Any, ...]] = []
        self.journal, self.post = Journal(), Post()
        self.journal.add(0, 0, "start", None, 0, {"broker": 1, "incarnation": 1})
        self.stories: dict[str, Story] = {}
        rules = RULES_2_8.with_changes(**rule_changes)
        contexts = ControllerContext(1, rules, design_of(rules)), BrokerContext(1, rules)
        rooms = {"controller": contexts[0]}
        named = (threads or {"controller": None}).items()
        made = [Thread(name, rooms.get(name, contexts[1]), self._handle, lock) for name, lock in named]
        spy, first = Spy(client, self.calls), made[0].name
        self.driver = Driver(1, 1, spy, self.journal, lambda: self.now_ms, self.post, *contexts, made, lambda event: first)

    def _handle(self, ctx: Any, event: RunStory) -> Handler:
        return self.stories[event.story](ctx)

    def enqueue(self, story: Story, thread: str = "controller", correlation_id: str = "") -> None:
        """Puts a story into a thread's queue."""
        self.stories[story.__name__] = story
        self.driver.enqueue(RunStory(story.__name__, correlation_id), None, thread)

    def go(self, thread: str = "controller") -> int:
        """Begins the next event of a thread and goes on to its handler's end; returns how many round trips that took."""
        self.driver.begin(thread)
        trips = 0
        while self.driver.threads[thread].handler is not None:
            self.driver.advance(thread)
            trips += 1
        return trips

    def do(self, *effects: Any) -> list[Any]:
        """A handler that asks for these effects one after the other, run to its end; returns the answers."""
        answers: list[Any] = []

        def asks(ctx: Any) -> Handler:
            for effect in effects:
                answers.append((yield effect))

        self.enqueue(asks)
        self.go()
        return answers

    def outside(self, *ops: Op) -> None:
        """Write as a client outside the brokers, each operation in a transaction of its own."""
        for op in ops:
            (written,) = self.client.write([(op,)])
            assert written.error is None, f"{op.path}: {written.error}"

    def records(self, *kinds: str) -> list[Record]:
        return [record for record in self.journal.records if not kinds or record.kind in kinds]
