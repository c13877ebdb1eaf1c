"""The report of a run that breaks an invariant: the invariant, the step, and the run as Python code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcontrol.search.search import SearchResult

if TYPE_CHECKING:
    from kcontrol.cluster.world import World


def report(world: World, violation: str) -> str:
    """Return a text: the number and action of the last step in the cluster `world`, the `violation`, and Python code for the run.

    `violation` is a sentence as `invariants.violation` returns it.
    """
    last = repr(world.done[-1]) if world.done else "nothing"
    run = SearchResult(0, world.settings, violation, (), tuple(world.done)).scenario()
    return f"# After step {len(world.done)}, {last}: {violation}\n{run}"
