"""Promises are conditions on the states of a cluster. A search tries to find a run that breaks one.

`always`, `never` and `comes_to_rest_with` make promises. A search that finds no such run has proved nothing about runs
beyond its limits, such as the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kcontrol.core.errors import UserError
from kcontrol.core.model import LeaderAndIsr
from kcontrol.core.znodes import CONTROLLER, CONTROLLER_EPOCH, decode_controller, decode_controller_epoch
from kcontrol.search.invariants import INVARIANTS, QUIET, Invariant, active_controllers, is_at_rest, read_znode, stored

if TYPE_CHECKING:
    from kcontrol.cluster.world import Action, World
    from kcontrol.group.model import Group

ALWAYS, NEVER, AT_REST = "always", "never", "comes to rest with"
"""The kinds of promises."""


class SearchedState:
    """The state of the cluster at one point of a search. A promise, which the search tests, is a condition on it.

    state.alive             the brokers whose process runs and is not frozen
    state.controllers       the brokers among `alive` that are controller in their own memory
    state.controller        the broker that /controller names, None without the znode
    state.controller_epoch  the number in /controller_epoch
    state.partitions        by name, as "t-0": objects with leader, isr, leader_epoch, controller_epoch
    state.groups            by group id: objects with state, generation, members (by member id)
    state.action            the last action, such as ("kill", 1); None before the first
    """

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def alive(self) -> list[int]:
        return [n for n, p in sorted(self._world.processes.items()) if not p.frozen]

    @property
    def controllers(self) -> list[int]:
        return active_controllers(self._world)

    @property
    def controller(self) -> int | None:
        found: int | None = read_znode(self._world, CONTROLLER, decode_controller)
        return found

    @property
    def controller_epoch(self) -> int:
        return read_znode(self._world, CONTROLLER_EPOCH, decode_controller_epoch) or 0

    @property
    def partitions(self) -> dict[str, LeaderAndIsr]:
        return {str(tp): value for tp, value in stored(self._world)}

    @property
    def groups(self) -> dict[str, Group]:
        held = (p.driver.group.groups for _, p in sorted(self._world.processes.items()) if p.driver.group)
        return {name: group for groups in held for name, group in groups.items()}

    @property
    def action(self) -> Action | None:
        return self._world.done[-1] if self._world.done else None

    def __dir__(self) -> list[str]:
        return ["action", "alive", "controller", "controller_epoch", "controllers", "groups", "partitions"]


Condition = Callable[[SearchedState], Any]


@dataclass(frozen=True)
class Promise:
    """A property that a search tests: a condition that holds always, never, or whenever the cluster is at rest.

    Called with a world, it returns the sentence of a violation, or None. Raises UserError if the condition raises an error.
    """

    # ALWAYS, NEVER or AT_REST.
    kind: str
    # An invariant of INVARIANTS, or a user's function of the state.
    condition: Invariant | Condition

    def __str__(self) -> str:
        if isinstance(self.condition, Invariant):
            return self.condition.sentence.rstrip(".")
        said = (self.condition.__doc__ or "").strip().partition("\n")[0].rstrip(".")
        return said or f"{self.kind}: {getattr(self.condition, '__name__', 'a function').replace('<lambda>', 'your condition')}"

    def __call__(self, world: World) -> str | None:
        if isinstance(self.condition, Invariant):
            row = self.condition
            looked_at = is_at_rest(world) if row.when == QUIET else not row.after.isdisjoint(r.kind for r in world.last_step)
            found = row.broken(world) if looked_at else None
            return None if found is None or row.is_void(world) else f"{row.name}: {found}"
        if self.kind == AT_REST and not is_at_rest(world):
            return None
        holds = self._asked(self.condition, world)
        done = f"by {world.done[-1]!r}" if world.done else "before the first action"
        return None if holds != (self.kind == NEVER) else f"{self}: broken {done}"

    def _asked(self, condition: Condition, world: World) -> bool:
        try:
            return bool(condition(SearchedState(world)))
        except (Exception, SystemExit) as error:
            raise UserError(
                f"The condition of the promise failed after step {len(world.done)}: {type(error).__name__}: {error}; it gets the "
                f"state of the cluster, which has {', '.join(dir(SearchedState(world)))}."
            ) from None


NAMES: Mapping[str, Invariant] = {row.name: row for row in INVARIANTS}


def always(condition: str | Condition) -> Promise:
    """Return the promise that a condition holds in every state; a search tries to break the promise.

    `condition` is an invariant's name (`lab.tables.invariants()`), or a function of the state (`SearchedState`) that returns True
    while it holds.
    Raises UserError for another value.
    """
    # An invariant of the kind "at quiet" is checked only when the cluster is at rest.
    return Promise(ALWAYS, _condition(condition))


def never(condition: Condition) -> Promise:
    """Return the promise that `condition`, a function of the state (`SearchedState`), returns True in no state.

    Raises UserError for a value that is no function.
    """
    if not callable(condition):
        raise UserError(f"never takes a function of the state, such as lambda state: not state.alive, and not {condition!r:.60}.")
    return Promise(NEVER, condition)


def comes_to_rest_with(condition: str | Condition) -> Promise:
    """Return the promise that a condition holds whenever the cluster has no action to perform by itself.

    `condition` is a function of a `SearchedState`, or the name of an "at quiet" invariant. Raises UserError otherwise.
    """
    found = _condition(condition)
    if isinstance(found, Invariant) and found.when != QUIET:
        at_rest = ", ".join(repr(row.name) for row in INVARIANTS if row.when == QUIET)
        raise UserError(f"{found.name!r} is checked after every step: use always, or choose one of {at_rest}.")
    return Promise(AT_REST, found)


def _condition(condition: Any) -> Invariant | Condition:
    if isinstance(condition, str) and condition in NAMES:
        return NAMES[condition]
    if not callable(condition):
        raise UserError(
            f"{condition!r:.60} is no condition: pass a function of the state, such as lambda state: state.alive, or the name of "
            f"an invariant: {', '.join(map(repr, NAMES))}."
        )
    function: Condition = condition
    return function


def promise(value: Any) -> Promise:
    """Return `value` if it is a Promise; for an invariant's name, return the promise that the invariant always holds.

    Raises UserError, which lists the kinds of promises and the names, for any other value.
    """
    if isinstance(value, Promise):
        return value
    if isinstance(value, str) and value in NAMES:
        return always(value)
    raise UserError(
        f"{value!r:.60} is no promise: pass always(...), never(...) or comes_to_rest_with(...) of kcontrol.rules, or the name of "
        f"an invariant: {', '.join(map(repr, NAMES))}."
    )
