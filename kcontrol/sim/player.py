"""Plays scenarios: `Player(scenario).play()` is a world in which the steps of a scenario have been done, one after the other.

A scenario is a dict with `brokers` and `steps`; each step maps words of STEPS to what they are about. A recording of real brokers
is one too: its steps say what was done under `do`, and who won. Who wins an election is an input: where a recording says it, that
broker's watch event is delivered first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kcontrol import setting_values
from kcontrol.config import BrokerConfig
from kcontrol.effects import Transaction
from kcontrol.errors import UserError
from kcontrol.model import ReplicaAssignment, TopicPartition
from kcontrol.sim import acts
from kcontrol.sim.recorded_choices import LOCAL, RecordedChoices, wins, writes_of
from kcontrol.sim.recorded_step import RecordedStep, Shrink, State
from kcontrol.sim.settings import Settings
from kcontrol.sim.world import World
from kcontrol.znodes import (
    CONTROLLER,
    PREFERRED_REPLICA_ELECTION,
    REASSIGN_PARTITIONS,
    decode_state,
    decode_topic,
    encode,
    encode_partition_list,
    encode_reassignment,
    encode_topic,
    parse_state_path,
    topic_path,
)

UNCLEAN = "unclean.leader.election.enable"
RECORDERS = ("patience", "quiet")  # how long who records a step waits for news
ORDER_ONLY = ("sleep", "await")


class Player:
    """One run of one scenario, with its own settings unless others are given. Raises UserError for what is no scenario.

    `followed` has a sentence for each choice of the recording that Kafka leaves open and that the player has repeated.
    """

    def __init__(self, scenario: Mapping[str, Any], settings: Settings | None = None) -> None:
        self.steps = _steps(scenario)
        self.world = World(settings or settings_of(scenario))
        self.number, self.recorded = 0, RecordedStep({})
        self.winners: list[int] = []
        self.choices = RecordedChoices(self.recorded, self.world)
        self.all_hear = True
        self.waits = True  # each act waits for its effect, as the step words say; inside `together` none does
        self.slow: int | None = None
        self.kept: set[int] = set()  # the sessions of these brokers go on until a step waits for their end
        self.states: dict[str, State] = {}
        self.joins: list[tuple[str, int]] = []
        self.shrinks: list[Shrink] = []
        self.written = 0  # by brokers, in this step
        self.followed: list[str] = []

    @property
    def winner(self) -> int | None:
        """The broker that wins the next election."""
        return self.winners[0] if self.winners else None

    def play(self) -> World:
        """Do all steps, letting the cluster come to rest after each. Raises UserError for a step that cannot be done."""
        for number, step in enumerate(self.steps):
            self.world.step(("scenario", number, step["do"]))
            self.number, self.recorded = number, RecordedStep(step)
            self.winners = self.recorded.winners
            self.choices = RecordedChoices(self.recorded, self.world)
            self.written = 0
            self.joins, self.shrinks = self.recorded.isr_changes(self.states)
            self.all_hear = not self._somebody_else_rules_on(number)
            kept = set(self.kept)
            self._do(step["do"])
            self.kept -= kept
            self._rest()
            self._end_sessions()
            self._rest()
            self._shrink(len(self.recorded.writes))
        return self.world

    def _do(self, step: dict[str, Any]) -> None:
        for word, argument in step.items():
            if word in RECORDERS or (word in ORDER_ONLY and self.waits):
                continue
            if word not in STEPS:
                raise UserError(f"The step word {word!r} is not known; there are {', '.join([*STEPS, *RECORDERS])}.")
            try:
                STEPS[word](self, argument)
            except (AttributeError, TypeError, ValueError) as problem:
                raise UserError(f"The step {word!r} is about something that it cannot be about: {problem}.") from None

    def _settle(self, but: str = "", writes: int | None = None) -> None:
        """Until quiet, or until brokers have written so often; the next winner comes first, one kind of action never."""
        end = None if writes is None else self.written + writes
        while routine := [a for a in self._routine() if a[0] != but and not (a[0] == "expire" and a[1] in self.kept)]:
            if end is not None and self.written >= end:
                return
            self.world.step(self._next(routine))
            self.written += sum(map(writes_of, self.world.last_step))
            self.choices.watch(self.world.last_step)
            if len(self.winners) > 1 and any(map(wins, self.world.last_step)):
                del self.winners[0]

    def _rest(self) -> None:
        """Until quiet; where a recording says when sessions end, none ends here."""
        self._settle(but="expire" if self.recorded.is_recorded else "")

    def _end_sessions(self, before: int | None = None) -> None:
        """End the sessions that the recording ends in this step: all, or those whose end comes before this number of its writes.

        Between two of them the cluster comes to rest, unless the second follows at once.
        """
        for broker in self.recorded.closes(before):
            if self._has_left_a_session(broker):
                self._shrink(self.recorded.end_of(broker))
                self.world.step(("expire", broker))
                if self.recorded.anything_follows_the_end_of(broker):
                    self._rest()

    def _has_left_a_session(self, broker: int) -> bool:
        p = self.world.processes.get(broker)
        return broker in self.world.ghosts or (p is not None and p.frozen and p.session == "open")

    def _shrink(self, before: int) -> None:
        """Let leaders take lagging followers out of an ISR, where the recording shows that before this number of its writes."""
        while self.shrinks and self.shrinks[0].at < before:
            lag = self.shrinks.pop(0)
            tp, leader = parse_state_path(lag.path), lag.before["leader"]
            (znode,) = self.world.tool.read([lag.path], False)
            if znode is None or leader not in self.world.processes:
                continue
            held = decode_state(znode.data)
            if (held.leader, held.leader_epoch) != (leader, lag.before["leader_epoch"]) or lag.follower not in held.isr:
                continue
            if acts.ACTIONS["shrink"].possible(self.world, leader, str(tp), lag.follower):
                self.world.step(("shrink", leader, str(tp), lag.follower))
                self._rest()
                self.followed.append(f"step {self.number}: broker {lag.follower} has lagged too long behind {leader} for {tp}")

    def _next(self, routine: list[Any]) -> Any:
        """All are told of an election at once: whoever is about to bid waits until the others have heard of it too.

        A controller of 0.8 that hears of it too late does not resign; where the recording shows that, the winner is alone first.
        """
        prompt = [action for action in routine if not self._waits(action)]
        if at_once := [action for action in prompt if action[0] == "exit" and action[1] in self.recorded.at_once]:
            return at_once[0]
        self.slow = self.slow if prompt else None
        routine = prompt or routine
        if action := self.choices.next(routine):
            return action
        bids = [action for action in routine if self._is_bid(action)] if self.all_hear else []
        if bids and (hearing := [a for a in routine if a[0] in LOCAL and a not in bids and a[2:] != ("main",)]):
            return hearing[0]
        mine = [action for action in routine if action[0] in LOCAL and action[1] == self.winner]
        awaited = [] if not bids or self.winner is None else [a for a in routine if a[:2] == ("request", self.winner)]
        following = (mine or awaited or bids or routine)[0]
        if following[0] == "ask":
            return next((("ask", broker) for broker in self.recorded.at_once if ("ask", broker) in routine), following)
        return self._next_fetch(routine, following) if following[0] == "fetch" else following

    def _next_fetch(self, routine: list[Any], following: Any) -> Any:
        """The followers of several partitions join in the order of the recording."""
        for path, follower in self.joins:
            fetch = ("fetch", follower, str(parse_state_path(path)))
            if fetch in routine:
                self.joins.remove((path, follower))
                return fetch
        return following

    def _waits(self, action: Any) -> bool:
        """Whether this has to wait until a slow broker has fetched once more: that it hears of requests or ends, or a timer.

        The end of a broker that stops by itself, and the new session of a broker whose session has ended, wait for the writes
        that ZooKeeper saw before.
        """
        if action[0] in ("renew", "reconnect") and self.written < self.recorded.writes_before_the_new_session_of(action[1]):
            return True
        if action[0] == "exit" and self.written < self.recorded.writes_before_the_end_of(action[1]):
            return True
        late = action == ("exit", self.slow) or (action[0], action[-1]) == ("request", self.slow)
        return self.slow is not None and (late or action[0] == "fire")

    def _somebody_else_rules_on(self, number: int) -> bool:
        """Whether a later step of the recording has a transition by a broker that is not the winner, and has not won again."""
        winner = self.winners[-1] if self.winners else None
        for step in self.steps[number + 1 :]:
            owner = step.get("znodes", {}).get("/controller", {}).get("ephemeral_owner")
            if any(transition["by"] not in (winner, owner) for transition in step.get("transitions", ())):
                return True
            if owner != winner:
                return False
        return False

    def _is_bid(self, action: Any) -> bool:
        """Whether this step would create `/controller`."""
        if action[0] != "advance":
            return False
        trip = self.world.processes[action[1]].driver.threads[action[2]].waits_for
        ops = trip.effect.ops if trip and isinstance(trip.effect, Transaction) else ()
        return any((op.kind, op.path) == ("create", CONTROLLER) for op in ops)

    def _routine(self) -> list[Any]:
        """Return what goes on by itself: a request to a frozen broker times out where the recording has a write to come."""
        is_long = not self.recorded.is_recorded or self.written < self.recorded.writes_of_brokers
        routine = [action for action in acts.routine(self.world) if action[0] != "time_out" or is_long]
        return routine or self.choices.fetch_timeouts()[:1]

    def start(self, brokers: Any) -> None:
        """One after the other; a broker whose process runs is left alone."""
        for broker in _list(brokers):
            if broker not in self.world.processes:
                self.world.step(("start", broker))
                self._wait()

    def _wait(self) -> None:
        if self.waits:
            self._rest()

    def kill(self, brokers: Any) -> None:
        """All at once; when each session ends, and what happens in between, is read from the recording."""
        killed = _list(brokers)
        for broker in killed:
            self.world.step(("kill", broker))
        if not self.waits:
            self.kept |= set(killed)
            return
        ended = [broker for broker in self.recorded.closes() if broker in killed]
        for broker in [*dict.fromkeys(ended), *(b for b in killed if b not in ended)]:
            if broker in self.world.ghosts:
                self.world.step(("expire", broker))
            if self.recorded.anything_follows_the_end_of(broker):
                self._settle(but="expire")

    def pause(self, brokers: Any) -> None:
        """Stopped until its session has ended; a broker that is frozen already stays so."""
        for broker in _list(brokers):
            if not (broker in self.world.processes and self.world.processes[broker].frozen):
                self.world.step(("freeze", broker))
            if self.waits:
                self.world.step(("expire", broker))

    def freeze(self, brokers: Any) -> None:
        for broker in _list(brokers):
            self.world.step(("freeze", broker))

    def resume(self, brokers: Any) -> None:
        for broker in _list(brokers):
            self.world.step(("thaw", broker))

    def together(self, steps: list[dict[str, Any]]) -> None:
        """Several acts that do not wait for their effects; a recording says how far the cluster had come before each."""
        self.waits = False
        try:
            for step in steps:
                for word, argument in step.items():
                    self._catch_up(word, argument)
                self._do(step)
        finally:
            self.waits = True

    def _catch_up(self, word: str, argument: Any) -> None:
        """Let happen what ZooKeeper saw before an act, according to the recording."""
        if writes := self.recorded.before(word, argument):
            self._settle(but="expire", writes=writes)
        self._end_sessions(self.recorded.at)

    def await_(self, what: dict[str, str]) -> None:
        """Go on until a znode is gone, or there; a session that keeps it ends for that."""
        for how, path in what.items() if not self.recorded.is_recorded else ():
            while (routine := self._before_expiry()) and self.world.have(path) != [how != "gone"]:
                self.world.step(self._next(routine))
            (stat,) = self.world.tool.exists([path], False)
            owner = self.world.owners.get(stat.ephemeral_owner) if stat is not None and how == "gone" else None
            if owner is not None and self._has_left_a_session(owner):
                self.world.step(("expire", owner))

    def _before_expiry(self) -> list[Any]:
        return [action for action in self._routine() if action[0] != "expire"]

    def sleep(self, seconds: float) -> None:
        """Long enough for everything but the end of a session."""
        self._settle(but="expire")

    def expand(self, topics: dict[str, Any]) -> None:
        version = self.world.settings.rules().topic_znode
        for topic, added in topics.items():
            (znode,) = self.world.tool.read([topic_path(topic)], False)
            if znode is None:
                raise UserError(f"There is no topic {topic!r} to expand: create it in an earlier step.")
            stored = decode_topic(znode.data)
            grown = stored.partitions | {int(p): ReplicaAssignment(tuple(replicas)) for p, replicas in added.items()}
            self.world.step(("set", topic_path(topic), encode_topic(stored._replace(partitions=grown), version).decode()))

    def term(self, brokers: Any) -> None:
        """In good order. A broker that fetches once more before it hears that it is to stop enters an ISR again, as recorded."""
        for broker in self.recorded.at_once or _list(brokers):
            self.slow = broker if self.recorded.is_in_sync_again(broker) else None
            self.world.step(("term", broker))
            if not self.recorded.at_once:
                self._wait()
        self.slow = None

    def prefer(self, partitions: list[str]) -> None:
        text = encode_partition_list(tuple(map(TopicPartition.parse, partitions))).decode()
        self.world.step(("create", PREFERRED_REPLICA_ELECTION, text))

    def create(self, topics: dict[str, Any]) -> None:
        """Topics of one step; whether the controller met them one by one or together is read from the recording."""
        for topic, assignment in topics.items():
            if self.recorded.meets_earlier_topics_before(topic):
                self._rest()
            replicas = assignment.get("partitions", assignment)
            numbered = {int(p): tuple(brokers) for p, brokers in replicas.items()}
            config = [assignment["config"]] if assignment.get("config") else []
            self.world.step(("create_topic", topic, numbered, *config))

    def reassign(self, targets: dict[str, list[int]]) -> None:
        asked = {TopicPartition.parse(tp): tuple(replicas) for tp, replicas in targets.items()}
        self.world.step(("create", REASSIGN_PARTITIONS, encode_reassignment(asked).decode()))

    def api_reassign(self, targets: dict[str, list[int] | None]) -> None:
        """AlterPartitionReassignments at the controller. Raises ValueError where none takes such requests."""
        (stat,) = self.world.tool.exists([CONTROLLER], False)
        owner = self.world.owners.get(stat.ephemeral_owner) if stat is not None else None
        if owner is None or not self.world.settings.rules().reassigns_on_request:
            raise ValueError(f"release {self.world.settings.release} has no controller that takes such requests now")
        self.world.step(("reassign", owner, targets))

    def delete_topic(self, topics: Any) -> None:
        for topic in _list(topics):
            self.world.step(("delete_topic", topic))

    def znode_delete(self, path: str) -> None:
        self.world.step(("delete", path))

    def znode_set(self, znodes: dict[str, Any]) -> None:
        for path, value in znodes.items():
            self.world.step(("set", path, value if isinstance(value, str) else encode(value).decode()))


STEPS: dict[str, Callable[[Player, Any], None]] = {
    "start": Player.start,
    "kill": Player.kill,
    "term": Player.term,
    "prefer": Player.prefer,
    "pause": Player.pause,
    "freeze": Player.freeze,
    "resume": Player.resume,
    "together": Player.together,
    "create": Player.create,
    "expand": Player.expand,
    "reassign": Player.reassign,
    "delete-topic": Player.delete_topic,
    "znode-delete": Player.znode_delete,
    "znode-set": Player.znode_set,
    "api-reassign": Player.api_reassign,
    "await": Player.await_,
    "sleep": Player.sleep,
}


def settings_of(scenario: Mapping[str, Any]) -> Settings:
    """The release, the brokers and their settings. Raises UserError, listing what is legal, for a setting that is not."""
    release = release_of(scenario)
    config = BrokerConfig.of(release)
    try:
        for key, value in config_of(scenario, release).items():
            config = config.but(key, value, release)
    except ValueError as problem:
        raise UserError(f"{problem}.") from None
    return Settings(release, tuple(scenario["brokers"]), config=config)


def config_of(scenario: Mapping[str, Any], release: str) -> dict[str, Any]:
    """Return settings that the release has: topics may be deleted, no timer rebalances leaders, `unclean` is the scenario's."""
    said = {"auto.leader.rebalance.enable": False, "delete.topic.enable": True, UNCLEAN: scenario.get("unclean")}
    known = setting_values.names("broker", release)
    return {key: value for key, value in said.items() if key in known and value is not None}


def release_of(scenario: Mapping[str, Any]) -> str:
    """The release line that a scenario names, or the usual one where it names none."""
    return line_of(str(scenario.get("release") or Settings().release))


def line_of(release: str) -> str:
    """The release line of a release: 2.8.2 is of 2.8, 0.8.1.1 of 0.8.1."""
    parts = release.split(".")
    return ".".join(parts[:3] if parts[0] == "0" else parts[:2])


def _steps(scenario: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The steps, each with what to do under `do`."""
    steps = scenario.get("steps")
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps) or "brokers" not in scenario:
        raise UserError("This is no scenario: it should have brokers, a list of ids, and steps, a list of what to do.")
    return [step if isinstance(step.get("do"), dict) else {"do": step} for step in steps]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
