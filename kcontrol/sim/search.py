"""Every order of events up to a depth: breadth first over fingerprints, so the first counterexample is a shortest one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kcontrol.sim import acts
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
    root = world.fork(exact=True)
    seen = {root.fingerprint()}
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
            mark = f"{there.fingerprint()}/{node.faults + cost}"
            if mark not in seen and len(path) < depth:
                seen.add(mark)
                frontier.append(Node(there, path, node.faults + cost))
    return Found(len(seen), world.settings)


def _following(world: World) -> Iterator[tuple[Action, int]]:
    yield from ((action, 0) for action in list(acts.routine(world)))
    yield from ((action, 1) for action in list(acts.faults(world)))
