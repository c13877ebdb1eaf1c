"""The report of a run that breaks an invariant: the invariant, the step, and the run as Python code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcontrol.search.search import SearchResult

if TYPE_CHECKING:
    from kcontrol.cluster.world import World


def report(world: World, found: str) -> str:
    """Return the last step of a world, the violation `found`, and the run as Python code, which ends with the violation."""
    last = repr(world.done[-1]) if world.done else "nothing"
    run = SearchResult(0, world.settings, found, (), tuple(world.done)).scenario()
    return f"# After step {len(world.done)}, {last}: {found}\n{run}"
