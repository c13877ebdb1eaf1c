"""Every order of events up to a depth: breadth first over fingerprints, so the first counterexample is a shortest one."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from kcontrol.sim import acts, quick
from kcontrol.sim.invariants import ALWAYS, Property, violation
from kcontrol.sim.settings import Settings
from kcontrol.sim.world import Action, World


@dataclass(frozen=True)
class Found:
    """What a search has seen: how many states, and the shortest run that breaks a property, if there is one."""

    states: int
    settings: Settings
    violation: str | None = None
    past: tuple[Action, ...] = ()
    actions: tuple[Action, ...] = ()

    def scenario(self) -> str:
        """The run as Python that can be pasted."""
        lines = [
            "from kcontrol.config import BrokerConfig",
            "from kcontrol.sim.settings import Settings",
            "from kcontrol.sim.world import World",
            "",
            f"world = World({self.settings!r})",
            "for action in [",
        ]
        lines += [f"    {action!r}," for action in (*self.past, *self.actions)]
        return "\n".join([*lines, "]:", "    world.step(action)", f"# {self.violation}"])


class Node(NamedTuple):
    """A state on the frontier, the actions that led to it, and how many of them were faults."""

    world: World
    path: tuple[Action, ...]
    faults: int


def search(world: World, depth: int, faults: int, properties: tuple[Property, ...] = ALWAYS) -> Found:
    """Explore from here: at most `depth` further steps, at most `faults` of them faults. The world itself stays as it is."""
    with _without_collection():
        return _explore(world, quick.start(world), depth, faults, properties)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Pause Python's garbage collector: what a search lets go of holds no cycles, and what it keeps only grows."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _explore(world: World, root: World, depth: int, faults: int, properties: tuple[Property, ...]) -> Found:
    seen = {(root.fingerprint(), -1)}
    frontier = deque([Node(root, (), 0)])
    while frontier:
        node = frontier.popleft()
        for action, cost in _following(node.world):
            if node.faults + cost > faults:
                continue
            there, path = node.world.fork(exact=True), (*node.path, action)
            there.step(action)
            if found := violation(there, properties):
                return Found(len(seen), world.settings, found, tuple(world.done), path)
            if len(path) < depth and (mark := (there.fingerprint(), node.faults + cost)) not in seen:
                seen.add(mark)
                frontier.append(Node(there, path, node.faults + cost))
    return Found(len(seen), world.settings)


def _following(world: World) -> Iterator[tuple[Action, int]]:
    yield from ((action, 0) for action in list(acts.routine(world)))
    yield from ((action, 1) for action in list(acts.faults(world)))
