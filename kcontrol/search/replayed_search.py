"""The part of a search that other processes do: they play a run again up to a state, and return the states after it.

A suspended handler, a generator, cannot be sent to a process, but the actions that lead to a state can.
"""

import pickle
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile
from operator import eq
from typing import NamedTuple

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import Action, World, without_collection
from kcontrol.core.errors import UserError
from kcontrol.search import memo_world
from kcontrol.search.invariants import Property
from kcontrol.search.search import Budget, FrontierState, Successor, successors

Answer = list[Successor | str]
"""The successors of a state, without their worlds; the sentence of a UserError takes the place of the rest."""


class Start(NamedTuple):
    """The input of a search: its first state (settings and past actions), its limits, and the properties to check."""

    settings: Settings
    past: tuple[Action, ...]
    budget: Budget
    properties: tuple[Property, ...]


class Explorer:
    """The part of a search in one process: performs the run to a state, and returns the state's successors."""

    def __init__(self, start: Start) -> None:
        world = World(start.settings)
        for action in start.past:
            world.step(action)
        self._start, self._path, self._worlds = start, tuple[Action, ...](), [memo_world.fork_for_search(world)]

    def answer(self, node: FrontierState) -> Answer:
        """Return the successors of the state `node`, each with `world` None; if a UserError occurs, its text is the last item."""
        # A learner's function, such as the condition of a promise, raises UserError.
        found: Answer = []
        try:
            for successor in successors(self._world(node.path), node, self._start.budget, self._start.properties):
                found.append(successor._replace(world=None))
        except UserError as problem:
            found.append(str(problem))
        return found

    def _world(self, path: tuple[Action, ...]) -> World:
        """Return the simulated cluster after the actions of `path`, from the state in which the search began."""
        # The worlds of the last path are used again as far as both paths begin with equal actions; only the rest of `path` is
        # played.
        shared = len(list(takewhile(lambda pair: eq(*pair), zip(path, self._path, strict=False))))
        del self._worlds[shared + 1 :]
        for action in path[shared:]:
            world = self._worlds[-1].fork(keep_replay_logs=True)
            world.step(action)
            self._worlds.append(world)
        self._path = path
        return self._worlds[-1]


@lru_cache(maxsize=1)
def explorer(start: bytes) -> Explorer:
    """Cached with the clusters that the Explorer has reached."""
    return Explorer(pickle.loads(start))  # noqa: S301 # the driver's own data


def answers(start: bytes, nodes: Sequence[FrontierState]) -> list[Answer]:
    """Return, for each state in `nodes`, the list of its successors (states after one more action); `start` is the pickled Start.

    If a UserError occurs, its text is the last item of the state's list. The lists after an error or a violation are empty.
    """
    # The search ends at the first violation or error, so it needs no further lists.
    found: list[Answer] = []
    with without_collection():
        for node in nodes:
            found.append(explorer(start).answer(node))
            last = found[-1][-1] if found[-1] else None
            if isinstance(last, str) or any(isinstance(each, Successor) and each.violation for each in found[-1]):
                break
    return found + [[] for _ in nodes[len(found) :]]
