"""Checks the names of branches, and plays a run a second time without one of its actions.

A branch is a lab with a copy of a run.

`without` repeats the actions of the run in their order, except the action or fault at the start of a chain of causes. It skips
and names the actions that are then not possible. If the run was at rest, the branch runs to rest too.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kcontrol.cluster import actions
from kcontrol.cluster.world import Action, World
from kcontrol.core.errors import UserError
from kcontrol.lab.support import arguments
from kcontrol.views import text

MAIN, UNNAMED = "main", "branch"


def free_name(name: object, taken: Mapping[str, Any]) -> str:
    """Return `name` if a new branch, a lab with a copy of a run, can have it.

    Raises UserError if `name` is no text, or is the name of a branch in `taken`.
    """
    if not isinstance(name, str) or not name.strip():
        raise UserError(f'{name!r} cannot be the name of a branch: use words, such as "what if".')
    arguments.storable(name)
    if name in taken:
        raise UserError(f"There is a branch {name!r} already; choose another name. The branches are {text.listed(taken, 30)}.")
    return name


def numbered(name: str, taken: Mapping[str, Any]) -> str:
    """Return `name` if no branch in `taken` has it, else the name with the first free number, such as "what if (2)"."""
    numbers = (f"{name} ({n})" for n in range(2, len(taken) + 3))
    return next(free for free in (name, *numbers) if free not in taken)


class Without(NamedTuple):
    """A run that was repeated without one of its actions: the cluster `world` after the repetition, and the left-out `action`."""

    world: World
    action: Action
    # The later actions of the first run that were not possible in the second run. Steps that a cluster performs by itself are
    # not listed.
    impossible: list[Action]


def is_at_rest(world: World) -> bool:
    """Return True if no action is left that the cluster of `world` performs by itself (a delivery, a timer), else False."""
    return next(actions.routine_actions(world), None) is None


def play_without(original: World, at: int) -> Without:
    """Play the actions of `original` in a second world, without the action that made the journal record at position `at`.

    Return the second world, and the actions that were left out. Raises UserError if no action from outside, such as a kill,
    made this record.
    """
    whole, shortened = World(original.settings), World(original.settings)
    left_out: Action | None = None
    impossible: list[Action] = []
    # Later actions that are not possible without the left-out action are left out too. A routine action is a step that the
    # cluster does by itself, such as a delivery.
    for action in original.done:
        routine = action in actions.routine_actions(whole)
        # Where the first run had no routine action left, the second run performs all its own routine actions too.
        if left_out and not routine and is_at_rest(whole):
            shortened.run()
        before = len(whole.journal)
        play(whole, action)
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
    """Perform an action in `world` if the action is possible now; return whether the action was possible.

    If `routine` is True, the action, such as a delivery, is possible only if the cluster would perform it by itself now.
    """
    if routine and action not in actions.routine_actions(world):
        return False
    try:
        world.step(action)
    except UserError:
        return False
    return True


def play(world: World, action: Action) -> None:
    """Raises UserError for an action that is not possible: a program other than the lab has changed the real ZooKeeper."""
    try:
        world.step(action)
    except UserError as problem:
        raise UserError(f"This run cannot be played again, because an outside program changed it: {problem}") from None
