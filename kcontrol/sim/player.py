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
from kcontrol.sim.settings import Settings
from kcontrol.sim.world import World
from kcontrol.znodes import (
    CONTROLLER,
    PREFERRED_REPLICA_ELECTION,
    REASSIGN_PARTITIONS,
    decode_topic,
    encode,
    encode_partition_list,
    encode_reassignment,
    encode_topic,
    topic_path,
)

UNCLEAN = "unclean.leader.election.enable"
LOCAL = ("advance", "begin", "deliver", "renew", "reconnect")
ORDER_ONLY = ("patience", "sleep", "await")


class Player:
    """One run of one scenario, with its own settings unless others are given. Raises UserError for what is no scenario."""

    def __init__(self, scenario: Mapping[str, Any], settings: Settings | None = None) -> None:
        self.steps = _steps(scenario)
        self.world = World(settings or settings_of(scenario))
        self.winner: int | None = None
        self.recorded: Mapping[str, Any] = {}
        self.all_hear = True
        self.slow: int | None = None

    def play(self) -> World:
        """Do all steps, letting the cluster come to rest after each. Raises UserError for a step that cannot be done."""
        for number, step in enumerate(self.steps):
            self.world.step(("scenario", number, step["do"]))
            self.winner = step.get("znodes", {}).get("/controller", {}).get("ephemeral_owner")
            self.recorded = step
            self.all_hear = not self._somebody_else_rules_on(number)
            self._do(step["do"])
            self._settle()
        return self.world

    def _do(self, step: dict[str, Any]) -> None:
        for word, argument in step.items():
            if word in ORDER_ONLY:
                continue
            if word not in STEPS:
                raise UserError(f"The step word {word!r} is not known; there are {', '.join(STEPS)}.")
            try:
                STEPS[word](self, argument)
            except (AttributeError, TypeError, ValueError) as problem:
                raise UserError(f"The step {word!r} is about something that it cannot be about: {problem}.") from None

    def _settle(self, but: str = "") -> None:
        """Until quiet, whatever concerns the broker that is to win first, and without one kind of action."""
        while routine := [action for action in self._routine() if action[0] != but]:
            self.world.step(self._next(routine))

    def _next(self, routine: list[Any]) -> Any:
        """All are told of an election at once: whoever is about to bid waits until the others have heard of it too.

        A controller of 0.8 that hears of it too late does not resign; where the recording shows that, the winner is alone first.
        """
        prompt = [action for action in routine if not self._waits(action)]
        self.slow = self.slow if prompt else None
        routine = prompt or routine
        bids = [action for action in routine if self._is_bid(action)] if self.all_hear else []
        if bids and (hearing := [a for a in routine if a[0] in LOCAL and a not in bids and a[2:] != ("main",)]):
            return hearing[0]
        mine = [action for action in routine if action[0] in LOCAL and action[1] == self.winner]
        return (mine or bids or routine)[0]

    def _waits(self, action: Any) -> bool:
        """Whether this has to wait until a slow broker has fetched once more: that it hears of requests or ends, or a timer."""
        late = action == ("exit", self.slow) or (action[0], action[-1]) == ("request", self.slow)
        return self.slow is not None and (late or action[0] == "fire")

    def _somebody_else_rules_on(self, number: int) -> bool:
        """Whether a later step of the recording has a transition by a broker that is not the winner, and has not won again."""
        for step in self.steps[number + 1 :]:
            owner = step.get("znodes", {}).get("/controller", {}).get("ephemeral_owner")
            if any(transition["by"] not in (self.winner, owner) for transition in step.get("transitions", ())):
                return True
            if owner != self.winner:
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
        return list(acts.routine(self.world))

    def start(self, brokers: Any) -> None:
        for broker in _list(brokers):
            self.world.step(("start", broker))
            self._settle()

    def kill(self, brokers: Any) -> None:
        """All at once; when each session ends, and what happens in between, is read from the recording."""
        for broker in _list(brokers):
            self.world.step(("kill", broker))
        for broker in self._as_they_ended(_list(brokers)):
            self.world.step(("expire", broker))
            if self._somebody_writes_after_the_end_of(broker):
                self._settle(but="expire")

    def _as_they_ended(self, brokers: list[int]) -> list[int]:
        ended = [w["by"] for w in self.recorded.get("writes", ()) if w["op"] == "close" and w["by"] in brokers]
        return [*dict.fromkeys(ended), *(b for b in brokers if b not in ended)]

    def _somebody_writes_after_the_end_of(self, broker: int) -> bool:
        writes = self.recorded.get("writes", [])
        at = next((i for i, w in enumerate(writes) if (w["op"], w["by"]) == ("close", broker)), len(writes))
        return any(w["op"] not in ("close", "open", "rejected") for w in writes[at + 1 : at + 2])

    def pause(self, brokers: Any) -> None:
        """Stopped until its session has ended."""
        for broker in _list(brokers):
            self.world.step(("freeze", broker))
            self.world.step(("expire", broker))

    def freeze(self, brokers: Any) -> None:
        for broker in _list(brokers):
            self.world.step(("freeze", broker))

    def resume(self, brokers: Any) -> None:
        for broker in _list(brokers):
            self.world.step(("thaw", broker))

    def together(self, steps: list[dict[str, Any]]) -> None:
        for step in steps:
            self._do(step)
            self._settle()

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
        for broker in _list(brokers):
            self.slow = broker if self._is_in_sync_again(broker) else None
            self.world.step(("term", broker))
            self._settle()
        self.slow = None

    def _is_in_sync_again(self, broker: int) -> bool:
        """Whether, in the recording, somebody writes a partition's ISR without this broker, and then one with it."""
        left: set[str] = set()
        for w in self.recorded.get("writes", ()):
            isr = w["data"]["isr"] if w.get("path", "").endswith("/state") and w["op"] == "set" else None
            if isr is not None and broker not in isr:
                left.add(w["path"])
            elif isr is not None and w["path"] in left:
                return True
        return False

    def prefer(self, partitions: list[str]) -> None:
        text = encode_partition_list(tuple(map(TopicPartition.parse, partitions))).decode()
        self.world.step(("create", PREFERRED_REPLICA_ELECTION, text))

    def create(self, topics: dict[str, Any]) -> None:
        """Topics of one step; whether the controller met them one by one or together is read from the recording."""
        for topic, assignment in topics.items():
            if self._met_earlier_ones_before(topic):
                self._settle()
            replicas = assignment.get("partitions", assignment)
            numbered = {int(p): tuple(brokers) for p, brokers in replicas.items()}
            config = [assignment["config"]] if assignment.get("config") else []
            self.world.step(("create_topic", topic, numbered, *config))

    def _met_earlier_ones_before(self, topic: str) -> bool:
        """Whether, in the recording, a partition of another topic was Online before the first one of this topic was New."""
        met = False
        for t in self.recorded.get("transitions", ()):
            if t["subject"].rpartition("-")[0] == topic:
                return met
            met = met or t["to"] == "Online"
        return False

    def reassign(self, targets: dict[str, list[int]]) -> None:
        asked = {TopicPartition.parse(tp): tuple(replicas) for tp, replicas in targets.items()}
        self.world.step(("create", REASSIGN_PARTITIONS, encode_reassignment(asked).decode()))

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
