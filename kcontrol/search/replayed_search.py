"""The part of a search that other processes do: they play a run again up to a state, and return the state's successors.

A world with suspended handlers cannot be pickled, but settings and actions determine it. So a process gets the actions that lead
to a state. The runs of one list of states share their beginnings, and an Explorer keeps the worlds along the last run.
"""

from __future__ import annotations

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
    """What determines a search: the settings and actions of its first state, its budget, and the properties."""

    settings: Settings
    past: tuple[Action, ...]
    budget: Budget
    properties: tuple[Property, ...]


class Explorer:
    """Performs actions from any state of one search."""

    def __init__(self, start: Start) -> None:
        world = World(start.settings)
        for action in start.past:
            world.step(action)
        self._start, self._path, self._worlds = start, tuple[Action, ...](), [memo_world.fork_for_search(world)]

    def answer(self, node: FrontierState) -> Answer:
        """Return the successors of a state; if a learner's function raises an error, the error's sentence is the last item."""
        found: Answer = []
        try:
            for successor in successors(self._world(node.path), node, self._start.budget, self._start.properties):
                found.append(successor._replace(world=None))
        except UserError as problem:
            found.append(str(problem))
        return found

    def _world(self, path: tuple[Action, ...]) -> World:
        """Return the world after the actions of `path`; play the actions that the last path does not begin with."""
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
    """Return the Explorer of a pickled Start. It is kept until the next search, since what it has learned makes it faster."""
    return Explorer(pickle.loads(start))  # noqa: S301 # the driver's own data


def answers(start: bytes, nodes: Sequence[FrontierState]) -> list[Answer]:
    """Return the answer for each state; after a violation or an error the other answers are empty, since they are not needed."""
    found: list[Answer] = []
    with without_collection():
        for node in nodes:
            found.append(explorer(start).answer(node))
            last = found[-1][-1] if found[-1] else None
            if isinstance(last, str) or any(isinstance(each, Successor) and each.violation for each in found[-1]):
                break
    return found + [[] for _ in nodes[len(found) :]]
