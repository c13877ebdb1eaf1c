"""Plays the scenario of a recording on our brokers and records what they do, in the same format.

Who wins an election is an input: it is read from the recording, and that broker's watch event is delivered first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kcontrol.config import BrokerConfig
from kcontrol.model import ReplicaAssignment, TopicPartition
from kcontrol.sim import acts
from kcontrol.sim.settings import Settings
from kcontrol.sim.world import World
from kcontrol.znodes import PREFERRED_REPLICA_ELECTION, decode_topic, encode, encode_partition_list, encode_topic, topic_path
from tests.golden import recording

LOCAL = ("advance", "begin", "deliver", "renew", "reconnect")
ORDER_ONLY = ("patience", "sleep", "await")


class UnknownStep(Exception):
    """A scenario has a step word that this player does not know."""


class Player:
    """One run of one scenario. `play()` returns a recording."""

    def __init__(self, golden: dict[str, Any]) -> None:
        self.golden = golden
        config = BrokerConfig(unclean_leader_election_enable=golden["unclean"], auto_leader_rebalance_enable=False)
        self.world = World(Settings(release=_line(golden["release"]), brokers=tuple(golden["brokers"]), config=config))
        self.epochs: dict[int, int] = {}
        self.sent: dict[Any, Any] = {}
        self.winner: int | None = None
        self.recorded: dict[str, Any] = {}

    def play(self) -> dict[str, Any]:
        head = {key: self.golden[key] for key in ("release", "scenario", "brokers", "session_timeout_ms", "unclean")}
        return {**head, "steps": [self._step(step) for step in self.golden["steps"]]}

    def _step(self, step: dict[str, Any]) -> dict[str, Any]:
        self.winner = step["znodes"].get("/controller", {}).get("ephemeral_owner")
        self.recorded = step
        before = len(self.world.journal.records)
        self._do(step["do"])
        self._settle()
        records = self.world.journal.records[before:]
        return {
            "do": step["do"],
            "writes": list(recording.writes(records)),
            "transitions": list(recording.transitions(records, self.epochs, self.world.settings.rules())),
            "requests": list(recording.requests(records, self.sent, self.world.settings.rules())),
            "znodes": recording.znodes(self.world),
        }

    def _do(self, step: dict[str, Any]) -> None:
        for word, argument in step.items():
            if word in ORDER_ONLY:
                continue
            if word not in STEPS:
                raise UnknownStep(f"the step word {word!r} is not known; there are {', '.join(STEPS)}")
            STEPS[word](self, argument)

    def _settle(self) -> None:
        """Until quiet, whatever concerns the broker that is to win first."""
        while routine := self._routine():
            mine = [a for a in routine if a[0] in LOCAL and a[1] == self.winner]
            self.world.step((mine or routine)[0])

    def _routine(self) -> list[Any]:
        return list(acts.routine(self.world))

    def start(self, brokers: Any) -> None:
        for broker in _list(brokers):
            self.world.step(("start", broker))
            self._settle()

    def kill(self, brokers: Any) -> None:
        for broker in _list(brokers):
            self.world.step(("kill", broker))
        for broker in _list(brokers):
            self.world.step(("expire", broker))

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
            stored = decode_topic(znode.data)
            grown = stored.partitions | {int(p): ReplicaAssignment(tuple(replicas)) for p, replicas in added.items()}
            self.world.step(("set", topic_path(topic), encode_topic(stored._replace(partitions=grown), version).decode()))

    def term(self, brokers: Any) -> None:
        for broker in _list(brokers):
            self.world.step(("term", broker))
            self._settle()

    def prefer(self, partitions: list[str]) -> None:
        text = encode_partition_list(tuple(map(TopicPartition.parse, partitions))).decode()
        self.world.step(("create", PREFERRED_REPLICA_ELECTION, text))

    def create(self, topics: dict[str, Any]) -> None:
        """Topics of one step; whether the controller met them one by one or together is read from the recording."""
        for topic, assignment in topics.items():
            if self._met_earlier_ones_before(topic):
                self._settle()
            self.world.step(("create_topic", topic, {int(p): tuple(replicas) for p, replicas in assignment.items()}))

    def _met_earlier_ones_before(self, topic: str) -> bool:
        """Whether, in the recording, a partition of another topic was Online before the first one of this topic was New."""
        met = False
        for t in self.recorded["transitions"]:
            if t["subject"].rpartition("-")[0] == topic:
                return met
            met = met or t["to"] == "Online"
        return False

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
    "znode-delete": Player.znode_delete,
    "znode-set": Player.znode_set,
}


def _line(release: str) -> str:
    """The release line of a release: 2.8.2 is of 2.8, 0.8.1.1 of 0.8.1."""
    parts = release.split(".")
    return ".".join(parts[:3] if parts[0] == "0" else parts[:2])


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
