"""A breadth-first search through all orders of a cluster's actions: its first counterexample is a shortest one.

States with equal fingerprints (`cluster/fingerprint.py`) are searched once.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kcontrol.cluster import actions
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import Action, World, without_collection
from kcontrol.search import memo_world
from kcontrol.search.invariants import ALWAYS, Property, violation

FOUND, STEPS, FAULTS, STATES, SECONDS = "a violation", "steps", "faults", "states", "seconds"
NOTHING_LEFT = "no state left"
ENDS = (FOUND, STEPS, FAULTS, STATES, SECONDS, NOTHING_LEFT)
"""What ends a search: a violation; a bound, named as in Budget; or that every state is known. If runs were cut off because of
their steps and because of their faults, the end is "steps"."""


class Budget(NamedTuple):
    """The bounds of a search: at most `steps` per run, `faults` of them faults, `states` known states, and `seconds` of time."""

    steps: int
    faults: int
    states: int = 1_000_000_000
    seconds: float = float("inf")


@dataclass(frozen=True)
class SearchResult:
    """The number of states that a search has reached, and a shortest run that breaks a property, if the search has found one.

    `violation` is the sentence of the violation, or None. `past` are the actions of the world before the search, and `actions`
    the actions from there to the violation; both are empty without a violation. `ended_by` is one of ENDS: the violation, the
    bound of the Budget that was reached, or that every state is known.
    """

    states: int
    settings: Settings
    violation: str | None = None
    past: tuple[Action, ...] = ()
    actions: tuple[Action, ...] = ()
    ended_by: str = NOTHING_LEFT

    def scenario(self) -> str:
        """Return Python code that makes the world and performs `past` and `actions`, with the violation as its last comment.

        `past` are the actions before the search began. Without a violation the code performs no action.
        """
        lines = [
            "from kcontrol.broker.broker_configs import BrokerConfig",
            "from kcontrol.cluster.run_settings import Settings",
            "from kcontrol.cluster.world import World",
            "from kcontrol.core.transitions import Changes",
            "",
            f"world = World({self.settings!r})",
            "for action in [",
        ]
        lines += [f"    {action!r}," for action in (*self.past, *self.actions)]
        return "\n".join([*lines, "]:", "    world.step(action)", f"# {self.violation}"])


class FrontierState(NamedTuple):
    """A state whose next actions are still to be searched; `world` is None if other processes perform its actions.

    `path` has the actions from the start of the search to this state, `faults` the number of faults among them.
    """

    world: World | None
    path: tuple[Action, ...]
    faults: int


class Successor(NamedTuple):
    """The state after one more action of a state; `cost` is 1 if the action is a fault, else 0.

    `violation` is the sentence of a broken property, or None. `mark` is the fingerprint of the state; it is None if the state is
    not searched further, because of a violation or a bound of the budget.
    """

    action: Action
    cost: int
    violation: str | None = None
    mark: str | None = None
    world: World | None = None


Expansion = Iterator[tuple[FrontierState, Iterable[Successor]]]
Expand = Callable[[deque[FrontierState]], Expansion]
"""A function that takes all states of a level from the queue and yields each with its successors, both in their order."""


def search(world: World, depth: int, faults: int, properties: tuple[Property, ...] = ALWAYS) -> SearchResult:
    """Search all runs from `world` with at most `depth` steps, at most `faults` of them faults, for a violation of a property.

    A fault is an action of `actions.fault_actions`. A property is a function that returns the sentence of a violation, or None.
    The result has a shortest run with a violation, or no violation. `world` does not change.
    """
    return search_within(world, Budget(depth, faults), properties)


def search_within(world: World, budget: Budget, properties: tuple[Property, ...] = ALWAYS) -> SearchResult:
    """Search as `search` does, within all bounds of a budget; the first bound on states or seconds that is reached ends it."""
    with without_collection():  # a search frees no cycles, and its memory only grows
        return _explore(world, memo_world.fork_for_search(world), budget, properties)


def _explore(world: World, root: World, budget: Budget, properties: tuple[Property, ...]) -> SearchResult:
    def expand(level: deque[FrontierState]) -> Expansion:
        while level:
            node = level.popleft()
            assert node.world is not None
            yield node, successors(node.world, node, budget, properties)

    return explore(world, root, budget, expand)


def explore(world: World, root: World, budget: Budget, expand: Expand) -> SearchResult:
    """Search from `world`, level by level, with the successors that `expand` yields.

    A level has the states with equal numbers of actions, in the order in which they were reached, so the result does not depend
    on the processes that perform the actions. The search begins at `root`, a fork of `world` for searching, and ends with a level
    without successors, with a broken promise or at a bound of `budget`; `world` itself takes no step.
    """
    seen, cut = {(root.fingerprint(), -1)}, NOTHING_LEFT
    level, ends_s = deque([FrontierState(root, (), 0)]), time.monotonic() + budget.seconds
    while level:
        following = deque[FrontierState]()
        for node, found in expand(level):
            if len(seen) >= budget.states or time.monotonic() >= ends_s:
                return SearchResult(len(seen), world.settings, ended_by=STATES if len(seen) >= budget.states else SECONDS)
            for action, cost, broken, mark, successor in found:
                path, faults = (*node.path, action), node.faults + cost
                if broken:
                    return SearchResult(len(seen), world.settings, broken, tuple(world.done), path, FOUND)
                if faults > budget.faults:
                    cut = FAULTS if cut == NOTHING_LEFT else cut
                elif mark is None:
                    cut = STEPS
                elif (mark, faults) not in seen:
                    seen.add((mark, faults))
                    following.append(FrontierState(successor, path, faults))
        level = following
    return SearchResult(len(seen), world.settings, ended_by=cut)


def successors(world: World, node: FrontierState, budget: Budget, properties: tuple[Property, ...]) -> Iterator[Successor]:
    """Yield the successor of a state by each action that is possible in it; `world` is in this state and does not change.

    An action beyond the bound of faults is not performed, and its successor has no world.
    """
    for action, cost in _following(world):
        if node.faults + cost > budget.faults:
            yield Successor(action, cost)
            continue
        successor = world.fork(keep_replay_logs=True)
        successor.step(action)
        broken = violation(successor, properties)
        is_last = broken is not None or len(node.path) + 1 >= budget.steps
        yield Successor(action, cost, broken, None if is_last else successor.fingerprint(), successor)


def _following(world: World) -> Iterator[tuple[Action, int]]:
    yield from ((action, 0) for action in list(actions.routine_actions(world)))
    yield from ((action, 1) for action in list(actions.fault_actions(world)))
