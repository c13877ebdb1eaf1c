"""A search whose actions Spark's executors perform; its result is that of a search in one process.

The states after an equal number of actions are divided into lists, one task of Spark each; this process alone knows which
states were reached.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import cloudpickle

from kcontrol.cluster.world import World
from kcontrol.core.errors import UserError
from kcontrol.pipeline.door import shards
from kcontrol.search import memo_world, replayed_search
from kcontrol.search.invariants import Property
from kcontrol.search.search import Budget, Expansion, FrontierState, SearchResult, Successor, explore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_ONCE = 1_000
"""The number of states that one job of Spark searches: between two jobs the bounds on states and seconds are checked."""


def search_within(spark: SparkSession, world: World, budget: Budget, properties: tuple[Property, ...]) -> SearchResult:
    """Search the runs from `world`, within `budget`, on Spark's executors for a violation of `properties`, such as invariants.

    Raises UserError if a learner's function or a property cannot be sent to an executor.
    """
    start = replayed_search.Start(world.settings, tuple(world.done), budget, properties)
    try:
        pickled = cloudpickle.dumps(start)
    except Exception as problem:  # the errors of pickling have many types
        raise UserError(
            f"The functions of this search cannot be sent to Spark ({problem}): let them use no open files or objects of a lab."
        ) from None
    ask = partial(replayed_search.answers, pickled)

    def expand(level: deque[FrontierState]) -> Expansion:
        while level:
            nodes = [level.popleft()._replace(world=None) for _ in range(min(AT_ONCE, len(level)))]
            answers = shards.flat_mapped(spark, ask, _parts(nodes, shards.parallelism(spark)))
            yield from zip(nodes, map(_checked, answers), strict=True)

    return explore(world, memo_world.fork_for_search(world), budget, properties, expand)


def _parts(nodes: list[FrontierState], number: int) -> list[list[FrontierState]]:
    """Divide the states `nodes` into at most `number` lists of about equal length, each with successive states."""
    length = -(-len(nodes) // number)
    return [nodes[first : first + length] for first in range(0, len(nodes), length)]


def _checked(answer: replayed_search.Answer) -> Iterator[Successor]:
    """Raises the UserError that an executor has returned as an error message."""
    for successor in answer:
        if isinstance(successor, str):
            raise UserError(successor)
        yield successor
