"""Play random commands on the ZooKeeper in memory and on a real one, and compare all that can be seen.

Usage: python -m tests.zookeeper.agree --seed N [--count M]

Compared are the result of every command, the watch events of each session after a barrier, and at the end of each program the
whole tree and the root, with all lines of the stat but the two times. Zxids are compared by rank among all that were seen,
session ids by order of opening. The exit code is 1 where anything differs.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from functools import cache
from typing import Any

import pytest

from kcontrol.core.effects import Op, SessionExpired, Stat, Znode
from kcontrol.core.errors import UserError
from kcontrol.zookeeper.kazoo import KazooZooKeeper
from kcontrol.zookeeper.memory import MemoryZooKeeper
from kcontrol.zookeeper.port import ClosedSession, WriteResult
from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper
from kcontrol.zookeeper.server.java import find_java
from tests.zookeeper.programs import SESSIONS, Command, End, Late, Look, Settle, Write, programs
from tests.zookeeper.support import Clock

_CHROOTS = itertools.count(1)

# Before every program, so that most of what it does finds something there.
PRELUDE = Write(0, tuple((Op("create", path, b"0"),) for path in ("/a", "/b", "/a/a")))


class Player:
    """Plays commands on one ZooKeeper; `seen` has for each command what can be compared with another one's."""

    def __init__(self, zookeeper: Any) -> None:
        self._zookeeper = zookeeper
        self._clients = [zookeeper.connect() for _ in range(SESSIONS)]
        self._ended: Any = None
        self._session_ids = [client.session_id for client in self._clients]
        self.seen: list[list[Any]] = []

    def play(self, command: Command) -> None:
        """Do one thing and note what came back."""
        self.seen.append([])
        match command:
            case Write(by, transactions):
                self.seen[-1] += self._clients[by].write(transactions)
            case Look(by, call, paths, watch):
                self.seen[-1].append((call, getattr(self._clients[by], call)(paths, watch)))
            case End(by):
                self._ended, self._clients[by] = self._clients[by], self._zookeeper.connect()
                self._session_ids.append(self._clients[by].session_id)
                self.seen[-1].append(self._zookeeper.end(self._ended))
            case Late(call) if self._ended:
                arguments: dict[str, tuple[Any, ...]] = {"write": ([],), "events": ()}
                with pytest.raises(SessionExpired):
                    getattr(self._ended, call)(*arguments.get(call, ([], True)))
            case Settle():
                self._settle()

    def finish(self) -> list[list[Any]]:
        """Return all that was seen, zxids by rank: a list for each command, and the last events with the root and the tree."""
        self.play(Settle())
        observer = self._zookeeper.connect()
        self.seen[-1] += [observer.read(["/"], False), observer.children(["/"], False), self._zookeeper.tree()]
        zxids: list[int] = []
        self._map(self.seen, zxids.append)
        ranks = {zxid: rank for rank, zxid in enumerate(sorted(set(zxids)))}
        return [self._map(item, ranks.__getitem__) for item in self.seen]

    def _settle(self) -> None:
        self._zookeeper.settle()
        self.seen[-1] += [client.events() for client in self._clients]

    def _map(self, item: Any, zxid: Any) -> Any:
        """The same with every zxid mapped, owners numbered in order of opening and times left out."""
        match item:
            case Stat():
                owner = self._session_ids.index(item.ephemeral_owner) + 1 if item.ephemeral_owner else 0
                stat = item._replace(ctime=0, mtime=0, ephemeral_owner=owner)
                return stat._replace(czxid=zxid(stat.czxid), mzxid=zxid(stat.mzxid), pzxid=zxid(stat.pzxid))
            case Znode():
                return Znode(item.data, self._map(item.stat, zxid))
            case WriteResult():
                return item._replace(zxid=zxid(item.zxid), stats=tuple(self._map(list(item.stats), zxid)))
            case ClosedSession():
                return item._replace(zxid=zxid(item.zxid))
            case dict():
                return {path: self._map(node, zxid) for path, node in item.items()}
            case list():
                return [self._map(one, zxid) for one in item]
            case (str() as call, list() as answers):
                return (call, self._map(answers, zxid))
        return item


@cache
def java_release() -> int:
    """Return the feature release of the Java of the servers; a search for this Java starts a process each time."""
    return find_java().version


def play_on_both(server: EmbeddedZooKeeper, program: list[Command]) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return what was seen in memory and on the server: at the start, at each command of the program, and at its end."""
    chroot = f"/random-{next(_CHROOTS)}"
    memory = Player(MemoryZooKeeper(Clock(), chroot, java_release()))
    for command in [PRELUDE, *program]:
        memory.play(command)
    with KazooZooKeeper(server.hosts, chroot) as zookeeper:
        real = Player(zookeeper)
        for command in [PRELUDE, *program]:
            real.play(command)
        return memory.finish(), real.finish()


class Tally:
    """Counts what agrees and what differs, and prints where a program differs first."""

    def __init__(self) -> None:
        self.programs = self.passed = self.failed = 0
        self.commands: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()

    def add(self, program: list[Command], memory: list[list[Any]], real: list[list[Any]]) -> None:
        """Count one program."""
        self.programs += 1
        self.commands.update(type(command).__name__ for command in program)
        self.answers.update(item.error or "OK" for seen in real for item in seen if isinstance(item, WriteResult))
        differing = [index for index, pair in enumerate(zip(memory, real, strict=True)) if pair[0] != pair[1]]
        self.passed += len(real) - len(differing)
        self.failed += len(differing)
        for index in differing[:1]:
            step = ("the start", *program, "the end")[index]
            print(f"Program {self.programs} differs first in step {index} of {len(program) + 1}: {step}")
            print(f"  memory: {memory[index]}\n  real:   {real[index]}", flush=True)

    def __str__(self) -> str:
        lines = (f"{what}: {', '.join(f'{name} {count}' for name, count in sorted(counter.items()))}"
                 for what, counter in (("commands", self.commands), ("transactions", self.answers)))  # fmt: skip
        head = f"{self.commands.total()} commands in {self.programs} programs, each of which has a start and an end"
        return "\n".join([head, *lines, f"{self.passed} passed, {self.failed} failed"])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.zookeeper.agree", description=__doc__.split("\n")[0] if __doc__ else ""
    )
    parser.add_argument("--seed", type=int, required=True, help="what the programs depend on")
    parser.add_argument("--count", type=int, default=2_000, help="how many commands are played (default: 2000)")
    chosen = parser.parse_args(arguments)
    if chosen.count < 1:
        parser.error("--count must be 1 or more.")
    tally, drawn = Tally(), programs(chosen.seed)
    try:
        with EmbeddedZooKeeper() as server:
            while left := chosen.count - tally.commands.total():
                program = next(drawn)[:left]
                tally.add(program, *play_on_both(server, program))
    except UserError as problem:
        parser.error(str(problem))
    print(f"seed {chosen.seed}: {tally}")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
