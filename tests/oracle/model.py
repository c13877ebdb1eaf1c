"""What a random scenario may do next: a small model of brokers, leaders, ISRs and what is under way.

The model is wrong where the brokers are too subtle for it. It has one purpose: no step fails at the tool, and no step needs what
`../shared/golden/README.md` calls a known limit of the comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

Step = dict[str, Any]
TOPICS = ("orders", "clicks", "views", "carts", "users", "stock", "mails", "bills", "parts", "plans", "rooms", "seats", "trips")
MOST_REPLICAS = 4  # of one partition, and in one move: Scala hashes larger sets
DELETED_REPLICAS = 2  # of a deleted topic before 1.1 with five live brokers or more
MOST_PARTITIONS = 3
DEAD_TARGETS = 0.25  # of the moves may ask for a broker that is dead
OVERWRITTEN = {"version": 1, "timestamp": "1"}


@dataclass
class Partition:
    """What the model believes about a partition; `leader` is None while no replica can lead."""

    replicas: list[int]
    isr: list[int] = field(default_factory=list)
    leader: int | None = None
    was_led: bool = False


@dataclass
class Model:
    """A cluster as far as a scenario has to know it."""

    release: tuple[int, ...]
    brokers: list[int]
    unclean: bool
    cold: int  # the one broker that may be frozen, whose session outlives that
    live: set[int] = field(default_factory=set)
    paused: set[int] = field(default_factory=set)
    frozen: set[int] = field(default_factory=set)
    controllers: set[int] = field(default_factory=set)  # one of these is the controller
    topics: dict[str, dict[int, Partition]] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)  # topics whose deletion has been asked for
    moving: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    overwritten: bool = False
    used: int = 0

    # ---------------------------------------------------------------- what is

    @property
    def awake(self) -> set[int]:
        """Return the brokers that live and answer."""
        return self.live - self.frozen

    @property
    def dead(self) -> list[int]:
        return sorted(set(self.brokers) - self.live - self.paused)

    @property
    def is_calm(self) -> bool:
        """Return whether a controller surely answers, and no request is out at a frozen broker."""
        return not self.frozen and bool(self.controllers) and not self.overwritten

    def partitions(self) -> Iterator[tuple[str, int, Partition]]:
        for topic, partitions in sorted(self.topics.items()):
            if topic not in self.deleted:
                yield from ((topic, number, p) for number, p in sorted(partitions.items()))

    def _steady(self) -> list[tuple[str, int, Partition]]:
        """Return the partitions that have a leader that answers, and do not move."""
        return [(t, n, p) for t, n, p in self.partitions() if p.leader in self.awake and (t, n) not in self.moving]

    # ---------------------------------------------------------------- what may come

    def possible(self, word: str, chance: Random) -> Step | None:
        """Return a random step with this word that can be done now, or None."""
        if self.overwritten and word != "znode-delete":
            return None
        return WORDS[word](self, chance)

    def create(self, chance: Random) -> Step | None:
        if self.used == len(TOPICS) or not self.controllers:
            return None
        count = chance.randint(1, MOST_PARTITIONS)
        return {"create": {TOPICS[self.used]: {n: self._replicas(chance) for n in range(count)}}}

    def _replicas(self, chance: Random) -> list[int]:
        """Return random replicas, of which one lives."""
        size = chance.randint(1, min(MOST_REPLICAS, len(self.brokers), 3 if chance.random() < 0.8 else MOST_REPLICAS))
        drawn = chance.sample(self.brokers, size)
        if not set(drawn) & self.live:
            drawn[chance.randrange(size)] = chance.choice(sorted(self.live))
        return drawn

    def expand(self, chance: Random) -> Step | None:
        idle = [t for t in self.topics if t not in self.deleted and not any(topic == t for topic, _ in self.moving)]
        few = [t for t in idle if len(self.topics[t]) < MOST_PARTITIONS]
        if not few or not self.controllers:
            return None
        topic = chance.choice(few)
        return {"expand": {topic: {len(self.topics[topic]): self._replicas(chance)}}}

    def delete_topic(self, chance: Random) -> Step | None:
        if self.release < (0, 8, 1) or self.frozen:
            return None
        idle = [t for t in self.topics if t not in self.deleted and not any(topic == t for topic, _ in self.moving)]
        if self.release < (1, 1) and len(self.brokers) > MOST_REPLICAS:
            idle = [t for t in idle if len({b for p in self.topics[t].values() for b in p.replicas}) <= DELETED_REPLICAS]
        return {"delete-topic": chance.choice(idle)} if idle else None

    def reassign(self, chance: Random) -> Step | None:
        target = self._move(chance)
        return None if target is None else {"reassign": target}

    def api_reassign(self, chance: Random) -> Step | None:
        target = self._move(chance) if self.release >= (2, 4) else None
        return None if target is None else {"api-reassign": target}

    def _move(self, chance: Random) -> dict[str, list[int]] | None:
        """Return one partition and a target, which may have a dead broker, with at most four replicas in the move."""
        if self.moving or not self.is_calm:
            return None
        found = [(t, n, p) for t, n, p in self._steady() if set(p.replicas) <= self.awake]
        if not found:
            return None
        topic, number, partition = chance.choice(found)
        others = self.brokers if chance.random() < DEAD_TARGETS else sorted(self.awake)
        target = chance.sample(others, chance.randint(1, min(3, len(others))))
        together = set(target) | set(partition.replicas)
        return {f"{topic}-{number}": target} if len(together) <= MOST_REPLICAS else None

    def prefer(self, chance: Random) -> Step | None:
        led = [f"{t}-{n}" for t, n, p in self.partitions() if p.was_led and (t, n) not in self.moving]
        if not led or not self.is_calm:
            return None
        return {"prefer": sorted(chance.sample(led, chance.randint(1, min(3, len(led)))))}

    def kill(self, chance: Random) -> Step | None:
        return self._one("kill", chance, self._may_leave())

    def term(self, chance: Random) -> Step | None:
        return self._one("term", chance, self._may_leave() if self.is_calm else [])

    def pause(self, chance: Random) -> Step | None:
        return self._one("pause", chance, [] if self.paused or self.frozen else self._may_leave())

    def freeze(self, chance: Random) -> Step | None:
        return self._one("freeze", chance, [self.cold] if self.cold in self.awake - self.controllers and not self.moving else [])

    def resume(self, chance: Random) -> Step | None:
        return self._one("resume", chance, sorted(self.paused | self.frozen))

    def start(self, chance: Random) -> Step | None:
        return self._one("start", chance, [] if self.frozen and self.frozen & self.controllers else self.dead)

    def _may_leave(self) -> list[int]:
        """Return the brokers that may leave so that one remains that can be the controller; the cold one has a long session."""
        return sorted(b for b in self.awake - {self.cold} if self.awake - {b} and not (self.frozen and b in self.controllers))

    @staticmethod
    def _one(word: str, chance: Random, brokers: list[int]) -> Step | None:
        return {word: chance.choice(brokers)} if brokers else None

    def znode_delete(self, chance: Random) -> Step | None:
        return {"znode-delete": "/controller"} if self.controllers and not self.frozen and not self.paused else None

    def znode_set(self, chance: Random) -> Step | None:
        if not self.is_calm or self.paused or self.moving:
            return None
        return {"znode-set": {"/controller": {**OVERWRITTEN, "brokerid": chance.choice(sorted(self.live))}}, "patience": 3}

    # ---------------------------------------------------------------- what follows

    def do(self, step: Step) -> None:
        """Take a step in."""
        word = next(iter(step))
        DOES[word](self, step[word])
        self._elect()

    def _do_start(self, brokers: Any) -> None:
        for broker in brokers if isinstance(brokers, list) else [brokers]:
            self.controllers = self.controllers or {broker}
            self._come(broker)

    def _come(self, broker: int) -> None:
        self.live.add(broker)
        self._elect()
        for (topic, number), target in list(self.moving.items()):
            if set(target) <= self.live:
                del self.moving[topic, number]
                self._have_moved(self.topics[topic][number], target)

    def _do_leave(self, broker: int) -> None:
        self.live.discard(broker)
        if broker in self.controllers:
            self.controllers = set(self.awake)
        for _, _, p in self.partitions():
            if broker in p.isr and len(p.isr) > 1:
                p.isr.remove(broker)
            if p.leader == broker:
                p.leader = None

    def _do_pause(self, broker: int) -> None:
        self._do_leave(broker)
        self.paused.add(broker)

    def _do_freeze(self, broker: int) -> None:
        self.frozen.add(broker)

    def _do_resume(self, broker: int) -> None:
        self.frozen.discard(broker)
        if broker in self.paused:
            self.paused.discard(broker)
            self._come(broker)

    def _do_create(self, topics: dict[str, dict[int, list[int]]]) -> None:
        for topic, assignment in topics.items():
            self.used += topic not in self.topics
            for number, replicas in assignment.items():
                alive = [b for b in replicas if b in self.live]
                fresh = Partition(list(replicas), alive, alive[0] if alive else None, bool(alive))
                self.topics.setdefault(topic, {})[int(number)] = fresh

    def _do_delete(self, topic: str) -> None:
        self.deleted.add(topic)

    def _do_move(self, targets: dict[str, list[int]]) -> None:
        for name, target in targets.items():
            topic, _, number = name.rpartition("-")
            if set(target) <= self.live:
                self._have_moved(self.topics[topic][int(number)], target)
            else:  # refused, or it waits for the broker: nothing else may need to know
                self.moving[topic, int(number)] = target

    @staticmethod
    def _have_moved(p: Partition, target: list[int]) -> None:
        p.replicas, p.isr = list(target), list(target)
        p.leader = p.leader if p.leader in target else target[0]

    def _do_prefer(self, partitions: list[str]) -> None:
        for name in partitions:
            topic, _, number = name.rpartition("-")
            p = self.topics[topic][int(number)]
            if p.replicas[0] in p.isr and p.replicas[0] in self.live:
                p.leader = p.replicas[0]

    def _do_overwrite(self, _: Any) -> None:
        self.overwritten = True

    def _do_delete_znode(self, _: Any) -> None:
        self.overwritten = False
        self.controllers = set(self.awake)

    def _elect(self) -> None:
        if self.overwritten:
            return
        for _, _, p in self.partitions():
            if p.leader is None:
                able = [b for b in p.replicas if b in p.isr and b in self.live]
                able = able or ([b for b in p.replicas if b in self.live] if self.unclean or not p.isr else [])
                if able:
                    p.leader, p.was_led = able[0], True
                    p.isr = [b for b in p.isr if b in self.live] or [able[0]]
            if p.leader in self.awake:
                p.isr += [b for b in p.replicas if b in self.awake and b not in p.isr]


WORDS: dict[str, Callable[[Model, Random], Step | None]] = {
    "create": Model.create, "expand": Model.expand, "delete-topic": Model.delete_topic, "reassign": Model.reassign,
    "api-reassign": Model.api_reassign, "prefer": Model.prefer, "kill": Model.kill, "start": Model.start, "term": Model.term,
    "pause": Model.pause, "freeze": Model.freeze, "resume": Model.resume, "znode-delete": Model.znode_delete,
    "znode-set": Model.znode_set,
}  # fmt: skip
DOES: dict[str, Callable[[Model, Any], None]] = {
    "create": Model._do_create, "expand": Model._do_create, "delete-topic": Model._do_delete, "reassign": Model._do_move,
    "api-reassign": Model._do_move, "prefer": Model._do_prefer, "kill": Model._do_leave, "start": Model._do_start,
    "term": Model._do_leave, "pause": Model._do_pause, "freeze": Model._do_freeze, "resume": Model._do_resume,
    "znode-delete": Model._do_delete_znode, "znode-set": Model._do_overwrite,
}  # fmt: skip
