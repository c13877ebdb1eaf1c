"""Names of branches, and a second play of a run that leaves one action out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kcontrol.cluster import actions
from kcontrol.cluster.world import Action, World
from kcontrol.core.errors import UserError
from kcontrol.lab.support import arguments
from kcontrol.views import text

MAIN, UNNAMED = "main", "branch"


def free_name(name: object, taken: Mapping[str, Any]) -> str:
    """Return the name for a new branch. Raises UserError for a name that a branch has, and for a value that is not a name."""
    if not isinstance(name, str) or not name.strip():
        raise UserError(f'{name!r} cannot be the name of a branch: use words, such as "what if".')
    arguments.storable(name)
    if name in taken:
        raise UserError(f"There is a branch {name!r} already; choose another name. The branches are {text.listed(taken, 30)}.")
    return name


def numbered(name: str, taken: Mapping[str, Any]) -> str:
    """Return the name, with a number behind it if a branch has the name already."""
    numbers = (f"{name} ({n})" for n in range(2, len(taken) + 3))
    return next(free for free in (name, *numbers) if free not in taken)


class Without(NamedTuple):
    """A run played again without one action: its world, the action, and the later actions that were not possible without it."""

    world: World
    action: Action
    impossible: list[Action]


def is_at_rest(world: World) -> bool:
    """Return whether no routine action is left."""
    return next(actions.routine_actions(world), None) is None


def play_without(original: World, at: int) -> Without:
    """Play the run again in the simulated world, without the action that made record number `at`.

    Later actions that are not possible without this action are left out too. Where the run had no routine action left, the
    second run does its routine actions before the next action. Raises UserError if the record was made by a routine action, or
    if the run cannot be played again.
    """
    whole, shortened = World(original.settings), World(original.settings)
    left_out: Action | None = None
    impossible: list[Action] = []
    for action in original.done:
        routine = action in actions.routine_actions(whole)
        if left_out and not routine and is_at_rest(whole):
            shortened.run()
        before = len(whole.journal)
        _play(whole, action)
        if before <= at < len(whole.journal):
            if routine:
                raise UserError(
                    f"{text.sentence(whole.journal.records[at])} This was the cluster's own step: choose the record of an action "
                    "from outside, such as a kill."
                )
            left_out = action
        elif not _has_happened(shortened, action, routine) and not routine:
            impossible.append(action)
    if left_out is None:
        raise UserError("No action of this run made that record, so there is none to leave out: choose the record of an action.")
    if is_at_rest(whole):
        shortened.run()
    return Without(shortened, left_out, impossible)


def _has_happened(world: World, action: Action, routine: bool) -> bool:
    """Do an action if it is possible and, for a routine action of the run, routine again; return whether it was done."""
    if routine and action not in actions.routine_actions(world):
        return False
    try:
        world.step(action)
    except UserError:
        return False
    return True


def _play(world: World, action: Action) -> None:
    try:
        world.step(action)
    except UserError as problem:
        raise UserError(f"This run cannot be played again, because an outside program changed it: {problem}") from None
