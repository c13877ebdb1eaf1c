"""A breadth-first search through all orders of a cluster's actions: its first counterexample is a shortest one.

States with equal fingerprints (`cluster/fingerprint.py`) are searched once.
"""

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
    """The bounds of a search: actions per run (`steps`), faults among these actions, states reached, and seconds."""

    steps: int
    faults: int
    states: int = 1_000_000_000
    seconds: float = float("inf")


@dataclass(frozen=True)
class SearchResult:
    """The number of states that a search has reached, and a shortest run that breaks a property, if there is one."""

    states: int
    # The settings of the simulated cluster that was searched.
    settings: Settings
    # The sentence of the violation.
    violation: str | None = None
    # The actions before the search; () without a violation.
    past: tuple[Action, ...] = ()
    # The actions from the begin of the search to the violation; () without a violation.
    actions: tuple[Action, ...] = ()
    # One of ENDS: the violation, the bound that was reached, or that every state is known.
    ended_by: str = NOTHING_LEFT
    # If the states or the seconds ended the search: the number of actions up to which all runs were searched.
    depth: int = 0

    def scenario(self) -> str:
        """Return Python code that makes the cluster and performs `past` and `actions`, with the violation as its last comment.

        `past` are the actions before the search began. Without a violation the code performs no action.
        """
        lines = [
            "from kcontrol.broker.broker_configs import BrokerConfig", "from kcontrol.cluster.run_settings import Settings",
            "from kcontrol.cluster.world import World", "from kcontrol.core.transitions import Changes", "",
            f"world = World({self.settings!r})", "for action in [",
        ]  # fmt: skip
        lines += [f"    {action!r}," for action in (*self.past, *self.actions)]
        return "\n".join([*lines, "]:", "    world.step(action)", f"# {self.violation}"])


def report(world: World, violation: str) -> str:
    """The last step, the sentence `violation`, and Python code that plays the run."""
    last = repr(world.done[-1]) if world.done else "nothing"
    run = SearchResult(0, world.settings, violation, (), tuple(world.done)).scenario()
    return f"# After step {len(world.done)}, {last}: {violation}\n{run}"


class FrontierState(NamedTuple):
    """A state whose next actions are still to be searched; `world` is None if other processes perform these actions."""

    world: World | None
    # The actions from the begin of the search to this state.
    path: tuple[Action, ...]
    # The number of faults in `path`.
    faults: int


class Successor(NamedTuple):
    """The state after one more action; `cost` is 1 if the action is a fault, such as a kill, else 0."""

    action: Action
    cost: int
    # The sentence of a broken property.
    violation: str | None = None
    # The fingerprint of the state; None if the search ends here, at a violation or a bound.
    mark: str | None = None
    # None if the action was not performed, because of the bound of faults, or was performed in another process.
    world: World | None = None


Expansion = Iterator[tuple[FrontierState, Iterable[Successor]]]
Expand = Callable[[deque[FrontierState]], Expansion]
"""A function that takes all states of a level from the queue and yields each with its successors, both in their order."""


def search(world: World, depth: int, faults: int, properties: tuple[Property, ...] = ALWAYS) -> SearchResult:
    """At most `depth` steps and `faults` faults; a property returns the sentence of a violation, or None."""
    return search_within(world, Budget(depth, faults), properties)


def search_within(world: World, budget: Budget, properties: tuple[Property, ...] = ALWAYS) -> SearchResult:
    """A shortest run that breaks a property, or none within the budget."""
    with without_collection():  # a search frees no cycles, and its memory only grows
        return _explore(world, memo_world.fork_for_search(world), budget, properties)


def _explore(world: World, root: World, budget: Budget, properties: tuple[Property, ...]) -> SearchResult:
    def expand(level: deque[FrontierState]) -> Expansion:
        while level:
            node = level.popleft()
            assert node.world is not None
            yield node, successors(node.world, node, budget, properties)

    return explore(world, root, budget, properties, expand)


def explore(world: World, root: World, budget: Budget, properties: tuple[Property, ...], expand: Expand) -> SearchResult:
    """Search breadth first from the state `root`, a copy of `world`, until a violation, a limit of `budget`, or no new state.

    `expand` yields each state of one depth with its successors.
    """
    # The shortest run has no step: it is the state in which the search begins.
    if broken := violation(root, properties):
        return SearchResult(1, world.settings, broken, tuple(world.done), (), FOUND)
    if budget.steps == 0:
        return SearchResult(1, world.settings, ended_by=STEPS)
    seen, cut = {(root.fingerprint(), -1)}, NOTHING_LEFT
    # `root` is a fork of `world`, which itself takes no step. States of a level keep their order, so the result does not depend
    # on the processes that expand them.
    level, ends_s = deque([FrontierState(root, (), 0)]), time.monotonic() + budget.seconds
    while level:
        following = deque[FrontierState]()
        for node, found in expand(level):
            if len(seen) >= budget.states or time.monotonic() >= ends_s:
                end = STATES if len(seen) >= budget.states else SECONDS
                return SearchResult(len(seen), world.settings, ended_by=end, depth=len(node.path))
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
    """Yield a Successor for each action that is possible in the state `node`, with the first violation of `properties`.

    `world` is in this state and does not change; `budget` bounds the steps and the faults.
    """
    for action, cost in _following(world):
        if node.faults + cost > budget.faults:
            # Beyond the bound of faults the action is not performed.
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
