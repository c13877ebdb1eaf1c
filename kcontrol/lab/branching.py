"""Branches by their names, and a run played again without one of the things that were done to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kcontrol.errors import UserError
from kcontrol.lab import arguments
from kcontrol.sim import acts
from kcontrol.sim.world import Action, World
from kcontrol.views import text

MAIN = "main"


def free_name(name: object, taken: Mapping[str, Any]) -> str:
    """A name that no branch has yet. Raises UserError for one that is taken, or is none."""
    if not isinstance(name, str) or not name.strip():
        raise UserError(f'{name!r} is no name for a branch: use words, such as "what if".')
    arguments.storable(name)
    if name in taken:
        raise UserError(f"There is a branch {name!r} already; choose another name. The branches are {text.listed(taken, 30)}.")
    return name


def numbered(name: str, taken: Mapping[str, Any]) -> str:
    """The name, with a number behind it if it is taken."""
    numbers = (f"{name} ({n})" for n in range(2, len(taken) + 3))
    return next(one for one in (name, *numbers) if one not in taken)


class Without(NamedTuple):
    """A run without one action: the world that came of it, what was left out, and what could not happen without it."""

    world: World
    action: Action
    impossible: list[Action]


def goes_on_by_itself(world: World, action: Action) -> bool:
    """Return whether this action goes on by itself now, without a client and without a fault."""
    if action[0] == "expire":
        return action[1] in world.ghosts
    if action[0] == "outage":
        return False
    if action[0] == "fire":
        return world.processes[action[1]].driver.timers[action[2]].goes_by_itself
    return acts.ACTIONS[action[0]].routine


def is_at_rest(world: World) -> bool:
    """Whether nothing is left that goes on by itself."""
    return next(acts.routine(world), None) is None


def play_without(original: World, at: int) -> Without:
    """Play the run again in the simulated world, without the action that made record number `at`.

    What is not possible without it is passed over; wherever the run came to rest, so does the other one, and then it goes on.
    Raises UserError where that record is neither an act nor a fault, or the run cannot be played again.
    """
    whole, twin = World(original.settings), World(original.settings)
    left_out: Action | None = None
    impossible: list[Action] = []
    for action in original.done:
        by_itself = goes_on_by_itself(whole, action)
        if left_out and not by_itself and is_at_rest(whole):
            twin.run()
        before = len(whole.journal)
        _play(whole, action)
        if before <= at < len(whole.journal):
            if by_itself:
                raise UserError(f"This is neither an act nor a fault: {text.say(whole.journal.records[at])} Choose one of these.")
            left_out = action
        elif not _has_happened(twin, action, by_itself) and not by_itself:
            impossible.append(action)
    if left_out is None:
        raise UserError("What made that record is not among the actions of this run: there is nothing to leave out.")
    if is_at_rest(whole):
        twin.run()
    return Without(twin, left_out, impossible)


def _has_happened(world: World, action: Action, by_itself: bool) -> bool:
    """Do an action where it is possible, by itself if it was so before, and say whether it was."""
    try:
        possible = acts.ACTIONS[action[0]].possible(world, *action[1:])
        if possible and (not by_itself or goes_on_by_itself(world, action)):
            world.step(action)
            return True
    except UserError:  # ZooKeeper refuses what an outside hand wants to write
        pass
    return False


def _play(world: World, action: Action) -> None:
    try:
        world.step(action)
    except UserError as problem:
        raise UserError(f"This run cannot be played again, since something happened in it from outside: {problem}") from None
