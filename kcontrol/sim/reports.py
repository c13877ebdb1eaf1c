"""How a run that breaks an invariant is told: the rule, the step, and the run as Python that can be pasted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcontrol.sim.search import Found

if TYPE_CHECKING:
    from kcontrol.sim.world import World


def report(world: World, found: str) -> str:
    """What was broken, at which step, and the whole run; its last line names the violation, as that of a search does."""
    last = repr(world.done[-1]) if world.done else "nothing"
    run = Found(0, world.settings, found, (), tuple(world.done)).scenario()
    return f"# After step {len(world.done)}, {last}: {found}\n{run}"
