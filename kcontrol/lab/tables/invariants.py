"""Makes the table of the invariants that Kafka promises, and the table of the invariants that a run has broken.

To check a run, kcontrol plays the run again in a second simulated cluster and evaluates every invariant after each step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kcontrol.cluster.world import World
from kcontrol.core.errors import UserError
from kcontrol.lab.support.late import pd
from kcontrol.lab.tables import journal_tables
from kcontrol.search.invariants import INVARIANTS, QUIET, STEP, Invariant, is_at_rest
from kcontrol.search.search import report

if TYPE_CHECKING:
    from kcontrol.lab.lab import Lab

Own = Callable[[World], Any]
"""A learner's invariant: a function of the world that returns None or True if it holds; its docstring states the invariant."""

# fmt: off
INVARIANT_COLUMNS = {"sentence": "string", "since": "string", "when": "string", "promised": "bool", "source": "string"}
# `outcome` is "holds", "broken", "not promised" (the release does not promise the invariant) or "void" (an outside program has
# written a znode on which the invariant depends).
RESULTS = {"outcome": "string", "step": "Int64", "action": "string", "what": "string", "sentence": "string"}
# fmt: on


def invariants(lab: Lab) -> pd.DataFrame:
    """Each invariant: its sentence, the first release that promises it, when it is checked, its source."""
    release = lab._world.settings.release
    rows = (
        {"invariant": r.name, "sentence": r.sentence, "since": r.since, "when": r.when, "source": r.source,
         "promised": r.is_promised_by(release)}
        for r in INVARIANTS
    )  # fmt: skip
    return journal_tables.table(rows, INVARIANT_COLUMNS, "invariant")


def invariant_checks(lab: Lab, *own: Own) -> pd.DataFrame:
    """Whether this run has kept each promise of Kafka's, with the first step that broke it.

    The run is played again, and every invariant is checked after each step. A function in `own` takes the simulated cluster,
    and returns True or None if its invariant holds; its docstring states the invariant. If an invariant is broken,
    `attrs["scenario"]` of the table is the run as Python code.
    """
    world = lab._world
    # Any other result means that the invariant is broken. `_named` raises UserError for a function without a docstring,
    # `_violations` for a function that raises.
    rows: list[Mapping[str, Any]] = [{"invariant": name, "sentence": said} for name, said in map(_named, own)]
    rows = [*({"invariant": r.name, "sentence": r.sentence} for r in INVARIANTS), *rows]
    broken: dict[str, tuple[int, str, str]] = {}
    for replayed in lab._played_again(World(world.settings)):
        if not replayed.done:
            continue
        for name, what in _violations(replayed, own):
            broken.setdefault(name, (len(replayed.done), str(replayed.done[-1]), what))
    ours = {row.name: row for row in INVARIANTS}
    outcomes = (dict(row) | _outcome(row["invariant"], ours, world, broken) for row in rows)
    found = journal_tables.table(outcomes, RESULTS, "invariant")
    if broken:
        found.attrs["scenario"] = report(world, next(iter(broken.values()))[2])
    return found


def _outcome(
    name: str, ours: Mapping[str, Invariant], world: World, broken: Mapping[str, tuple[int, str, str]]
) -> dict[str, Any]:
    if name in broken:
        return {"outcome": "broken"} | dict(zip(("step", "action", "what"), broken[name], strict=True))
    row = ours.get(name)
    if row and not row.is_promised_by(world.settings.release):
        return {"outcome": "not promised"}
    return {"outcome": "void" if row and row.is_void(world) else "holds"}


def _violations(world: World, own: tuple[Own, ...]) -> Iterator[tuple[str, str]]:
    kinds, rest = {record.kind for record in world.last_step}, is_at_rest(world)
    for row in INVARIANTS:
        looked_at = rest if row.when == QUIET else row.when == STEP and not row.after.isdisjoint(kinds)
        if looked_at and (found := row(world)):
            yield row.name, found
    for function in own:
        said = _asked(function, world)
        if said is not None and said is not True:
            yield function.__name__, "the function returned False" if said is False else str(said)


def _asked(function: Own, world: World) -> Any:
    try:
        return function(world)
    except Exception as error:
        raise UserError(f"{function.__name__} failed at step {len(world.done)}: {type(error).__name__}: {error}.") from None


def _named(function: Own) -> tuple[str, str]:
    wrong = UserError(f"{function!r} is not an invariant: pass a function of the world whose docstring states the invariant.")
    if not callable(function):
        raise wrong
    sentence = (getattr(function, "__doc__", None) or "").strip().partition("\n")[0]
    if not sentence:
        raise wrong
    return getattr(function, "__name__", repr(function)), sentence
