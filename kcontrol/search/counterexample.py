"""The report of a run that breaks an invariant: the invariant, the step, and the run as Python code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcontrol.search.search import SearchResult

if TYPE_CHECKING:
    from kcontrol.cluster.world import World


def report(world: World, violation: str) -> str:
    """The last step, the sentence `violation`, and Python code that plays the run."""
    last = repr(world.done[-1]) if world.done else "nothing"
    run = SearchResult(0, world.settings, violation, (), tuple(world.done)).scenario()
    return f"# After step {len(world.done)}, {last}: {violation}\n{run}"
