"""What Kafka promises, as a table, and whether a run has kept it: the run is played again, and looked at after every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from kcontrol.errors import UserError
from kcontrol.lab import tables
from kcontrol.sim.invariants import INVARIANTS, QUIET, STEP, Invariant, is_at_rest
from kcontrol.sim.reports import report
from kcontrol.sim.world import World

Own = Callable[[World], Any]
"""A learner's own invariant: a function of the world whose docstring says what holds. None or True is that it does."""

# fmt: off
PROMISES = {"sentence": "string", "since": "string", "when": "string", "promised": "bool", "source": "string"}
KEPT = {"outcome": "string", "step": "Int64", "action": "string", "what": "string", "sentence": "string"}
# fmt: on


def table(release: str) -> pd.DataFrame:
    """One row per invariant, by name; `promised` says whether this release does."""
    rows = (
        {"invariant": r.name, "sentence": r.sentence, "since": r.since, "when": r.when, "source": r.source,
         "promised": r.is_promised_by(release)}
        for r in INVARIANTS
    )  # fmt: skip
    return tables.table(rows, PROMISES, "invariant")


def kept(world: World, play: Callable[[], Iterator[World]], own: tuple[Own, ...]) -> pd.DataFrame:
    """One row per invariant, those of `own` last: whether it held, and else the first step that broke it.

    `outcome` is "holds", "broken", "not promised" by the release, or "void" after an outside hand's write. `play` gives the same
    world after each of its steps. Raises UserError for a function of one's own that has no docstring or fails.
    """
    rows: list[Mapping[str, Any]] = [{"invariant": name, "sentence": said} for name, said in map(_named, own)]
    rows = [*({"invariant": r.name, "sentence": r.sentence} for r in INVARIANTS), *rows]
    broken: dict[str, tuple[int, str, str]] = {}
    for twin in play():
        if not twin.done:
            continue
        for name, what in _violations(twin, own):
            broken.setdefault(name, (len(twin.done), str(twin.done[-1]), what))
    ours = {row.name: row for row in INVARIANTS}
    found = tables.table((dict(row) | _outcome(row["invariant"], ours, world, broken) for row in rows), KEPT, "invariant")
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
            yield function.__name__, "it says so" if said is False else str(said)


def _asked(function: Own, world: World) -> Any:
    try:
        return function(world)
    except Exception as error:
        raise UserError(f"{function.__name__} failed at step {len(world.done)}: {type(error).__name__}: {error}.") from None


def _named(function: Own) -> tuple[str, str]:
    if not callable(function):
        raise UserError(f"{function!r} is no invariant: it should be a function of the world whose docstring says what holds.")
    sentence = (getattr(function, "__doc__", None) or "").strip().partition("\n")[0]
    if not sentence:
        raise UserError(f"{function!r} is no invariant: it should be a function of the world whose docstring says what holds.")
    return getattr(function, "__name__", repr(function)), sentence
