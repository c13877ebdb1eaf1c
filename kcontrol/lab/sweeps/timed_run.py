"""One run of a sweep: a cluster in virtual time, with events from outside at their times.

ZooKeeper ends the session of a killed broker at a random time after the kill, between two thirds of the session timeout and the
whole timeout.

Source: ClientCnxn.SendThread.run (ZooKeeper 3.5): readTimeout, and the ping after half of it.
"""

import random
from bisect import insort
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from kcontrol.cluster import actions, consumer_life
from kcontrol.cluster.consumer_configs import GROUP_ID, SESSION_MS, STRATEGY, TOPICS
from kcontrol.cluster.world import Action, World
from kcontrol.core.errors import UserError
from kcontrol.core.model import TopicPartition
from kcontrol.journal.journal import Record
from kcontrol.lab.history import brokers, consumer_groups, partitions
from kcontrol.lab.history.entries import Row, entries_of
from kcontrol.lab.support import replacements, requested_settings
from kcontrol.lab.sweeps.scenarios import BROKERS, GROUP, PARTITIONS, PRODUCE, TOPIC, Event, named, plan
from kcontrol.views import assignment_matrix
from kcontrol.zookeeper.port import Client

MOST_STEPS = 100_000
# A leader does not remove a follower that is slow from the ISR (replica.lag.time.max.ms): a follower leaves it with its
# session.
SETTLE_MS = 10_000
SUPERVISOR_MS = 5_000
"""The time after which a supervisor starts a broker again whose start has failed."""


class Cell(NamedTuple):
    """One combination of a sweep's settings.

    `replication` is the replication factor of the topics, `unclean` the value of unclean.leader.election.enable, and `session`
    both zookeeper.session.timeout.ms of the brokers and session.timeout.ms of the consumers.
    """

    replication: int
    unclean: bool
    session: int

    def __str__(self) -> str:
        return f"replication={self.replication} unclean={str(self.unclean).lower()} session={self.session}"


class Job(NamedTuple):
    """The values that all runs of a sweep share: the scenario's name, the release, the seed of the sweep, and changes of Kafka.

    `rows`, `strategies` and `rules` are the arguments of Lab with these names; None changes nothing.
    """

    scenario: str
    release: str
    seed: int
    # Transitions of the state machines, mapped to the learner's functions.
    rows: Any = None
    # Leader elections and rules of the group coordinator, mapped to the learner's functions.
    strategies: Any = None
    # Rules, which are differences between releases such as "fenced_writes", mapped to values.
    rules: Any = None
    # The name of Kafka's assignor that the consumers use.
    assignor: str = "range"


class Task(NamedTuple):
    """One run of a sweep: its cell (one combination of the settings), and its number in the cell, from 1."""

    cell: Cell
    number: int


class Outcome(NamedTuple):
    """The measures of one run; `failed` is the reason why the run has failed, None for a run with measures."""

    task: Task
    # The number of rows of the table `offline_windows`: times in which no running broker led a partition.
    offline: int = 0
    # The length of the longest of these times, None without one.
    offline_ms: int | None = None
    # The number of acknowledged records that no replica has any more.
    lost: int = 0
    # The length of the longest rebalance, None without a rebalance.
    rebalance_ms: int | None = None
    # The number of moves of partitions from one consumer to another (`assignment_matrix.py`).
    moved: int = 0
    failed: str | None = None


class RunFailed(Exception):
    """The error of a run without results: a learner's function failed, or the run took more than 100,000 steps."""


def outcome(job: Job, task: Task) -> Outcome:
    """`failed` has the reason if the run or a learner's function fails."""
    try:
        world, begin_ms = play(job, task)
        return Outcome(task, *_measured(world.journal.records, begin_ms, world.now_ms))
    except RunFailed as failure:
        return Outcome(task, failed=str(failure))
    except UserError as problem:
        return Outcome(task, failed=str(problem).removesuffix("."))


def play(job: Job, task: Task) -> tuple[World, int]:
    """Play the run `task` of the sweep `job`; return the cluster at the end, and the virtual ms when the events began.

    The events follow the brokers' start. Raises RunFailed if a learner's function fails.
    """
    # The seed of the sweep, the cell and the number of the run determine the run.
    chance = random.Random(f"{job.seed} {task.cell} {task.number}")
    scenario = named(job.scenario)
    world = _started(job, task.cell, chance.getrandbits(31), scenario.consumers)
    run = TimedRun(world, task.cell.session, chance)
    run.perform([], SETTLE_MS)
    begin_ms = world.now_ms
    events = plan(scenario, chance)
    run.perform(events, events[-1].at_ms + task.cell.session + SETTLE_MS)
    return world, begin_ms


def settings_of(job: Job, cell: Cell, seed: int, consumers: tuple[str, ...]) -> Any:
    """Raises UserError for settings that the release does not have."""
    config = {"unclean.leader.election.enable": cell.unclean, "zookeeper.session.timeout.ms": cell.session}
    used = {GROUP_ID: GROUP, SESSION_MS: cell.session, TOPICS: [TOPIC], STRATEGY: [job.assignor]}
    groups = dict.fromkeys(consumers, used)
    changed = requested_settings.Changed(job.rows, job.strategies, job.rules)
    return requested_settings.settings(BROKERS, job.release, seed, config, changed, True, groups)


def _started(job: Job, cell: Cell, seed: int, consumers: tuple[str, ...]) -> World:
    """At rest: brokers and topics are there, and consumers have sent no request."""
    world = World(settings_of(job, cell, seed, consumers))
    world.keep_replay_logs(True)  # a world that need not be copied makes no copies of itself
    replicas = tuple(tuple(BROKERS[(first + i) % len(BROKERS)] for i in range(cell.replication)) for first in range(PARTITIONS))
    topics = [("create_topic", TOPIC, replicas), ("create_topic", "__consumer_offsets", replicas[:1])]
    for action in (*(("start", broker) for broker in BROKERS), *topics):
        world.step(action)
        world.run(MOST_STEPS)
    return world


def _measured(records: list[Record], begin_ms: int, end_ms: int) -> tuple[int, int | None, int, int | None, int]:
    """Return (number of offline windows, longest in ms, lost records, longest rebalance in ms, moves of partitions).

    Windows, losses and rebalances that begin before `begin_ms` do not count. A window or a rebalance without an end lasts
    until `end_ms`.
    """
    entries = entries_of(records)

    def lengths(rows: Iterator[Row]) -> list[int]:
        return [(row["end_ms"] or end_ms) - row["begin_ms"] for row in rows if row["begin_ms"] >= begin_ms]

    # Not by `history_tables`, whose import of pandas takes longer than ten runs.
    offline, rebalances = lengths(partitions.offline_windows(entries)), lengths(consumer_groups.rebalances(entries))
    lost = sum(row["time_ms"] >= begin_ms for row in brokers.records_lost(entries))
    moved = sum(assignment_matrix.matrix(records, GROUP).moved.values())  # the start has one assignment, so no moves
    return len(offline), max(offline, default=None), lost, max(rebalances, default=None), moved


class TimedRun:
    """Runs a cluster and its consumers in virtual time, with events such as broker deaths at given times."""

    def __init__(self, world: World, session_ms: int, chance: random.Random) -> None:
        self._world, self._session_ms, self._chance = world, session_ms, chance
        self._ends_ms: dict[int, int] = {}  # session id of a killed process -> the time at which ZooKeeper ends it

    def perform(self, events: list[Event], for_ms: int) -> None:
        """Let `for_ms` of virtual time pass; the scenario's events happen at their times, counted from this call.

        Raises RunFailed if a learner's function fails, or after 100,000 actions (MOST_STEPS).
        """
        world, begin_ms = self._world, self._world.now_ms
        waiting, most_steps = [Event(begin_ms + at_ms, action) for at_ms, action in events], len(world.done) + MOST_STEPS
        while world.now_ms < begin_ms + for_ms:
            next_ms = waiting[0].at_ms if waiting else begin_ms + for_ms
            chosen = self._outside(waiting.pop(0).action) if next_ms <= world.now_ms else self._own(next_ms)
            if chosen is None:
                continue
            world.step(chosen)
            for broker in self._failed_starts():
                insort(waiting, Event(world.now_ms + SUPERVISOR_MS, ("start", broker)), key=attrgetter("at_ms"))
            if len(world.done) > most_steps:
                raise RunFailed(f"the cluster made {MOST_STEPS:,} steps without an end")

    def _failed_starts(self) -> Iterator[int]:
        """Brokers that exited with an error in the last action. Raises RunFailed if a learner's function failed."""
        for record in self._world.last_step:
            if record.kind == "handler_error" and record.fields["error"] == replacements.RuleFailed.__name__:
                raise RunFailed(str(record.fields["message"]))
            if record.kind == "stop" and record.fields["exit_code"]:
                yield record.fields["broker"]

    def _outside(self, action: Action) -> Action | None:
        """None for an event that is impossible now, such as the kill of a dead broker."""
        options = self._produced(*action[1:]) if action[0] == PRODUCE else [action]
        return next((option for option in options if actions.ACTIONS[option[0]].possible(self._world, *option[1:])), None)

    def _produced(self, partition: int, acks: str) -> list[Action]:
        """Return one produce action, with one record, for each broker that leads the partition in its own view."""
        tp = TopicPartition(TOPIC, partition)
        hosting = ((n, p.driver.broker.hosted.get(tp)) for n, p in sorted(self._world.processes.items()))
        leaders = [n for n, held in hosting if held is not None and held.leadership.leader == n]
        return [("produce", n, str(tp), f"at {self._world.now_ms}", acks) for n in leaders]

    def _own(self, next_ms: int) -> Action | None:
        """The first routine action that is due, else a consumer's, a timer, or a wait until `next_ms` at the latest."""
        until_ms = next_ms
        for action in actions.routine_actions(self._world):
            if (due_ms := self._due_ms(action)) <= self._world.now_ms:
                return action
            until_ms = min(until_ms, due_ms)
        # A wait lasts at least 1 ms, so None is not returned. It ends earlier for an action of a consumer or a routine action.
        return consumer_life.next_action(self._world, max(until_ms, self._world.now_ms + 1))

    def _due_ms(self, action: Action) -> int:
        """A timer's time, the end of a dead broker's session, else 0."""
        if action[0] == "expire_session":
            return self._session_end_ms(self._world.orphaned_sessions[action[1]][0].client)
        if action[0] == "fire_timer":
            return int(self._world.processes[action[1]].driver.timers[action[2]].at_ms)
        return 0

    def _session_end_ms(self, client: Client) -> int:
        """Drawn at random once per session."""
        if client.session_id not in self._ends_ms:
            # A client pings after a third of the timeout, and ZooKeeper ends the session when the timeout has passed since the
            # last ping.
            since_ping_ms = self._chance.randint(0, self._session_ms // 3)
            self._ends_ms[client.session_id] = self._world.now_ms + self._session_ms - since_ping_ms
        return self._ends_ms[client.session_id]
