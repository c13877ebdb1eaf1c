"""Makes a sequence that differs shorter, as long as it goes on to differ in the same sort of thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.group.differential.compare import Found, kind_of

Json = dict[str, Any]
Differs = Callable[[Json], Found | None]
TRIES = 400
OPTIONAL = ("epoch", "retention", "require_stable", "instance", "slow", "producer")
OPTIONAL_IN_SYNC = ("type", "protocol")


def shrink(sequence: Json, found: Found, differs: Differs, tries: int = TRIES) -> Json:
    """Return a sequence with fewer steps and fewer fields that shows the same kind of difference."""
    wanted = kind_of(sequence["steps"], found)

    def is_bad(steps: list[Json]) -> bool:
        nonlocal tries
        tries -= 1
        if tries < 0 or not steps:
            return False
        now = differs(sequence | {"steps": steps})
        return now is not None and kind_of(steps, now) == wanted

    steps = fewer_steps(sequence["steps"][: found.step + 1], is_bad)
    return sequence | {"steps": fewer_fields(steps, is_bad)}


def fewer_steps(steps: list[Json], is_bad: Callable[[list[Json]], bool]) -> list[Json]:
    """Leave out stretches of steps, each half as long as those before, until no single step can go."""
    size = max(1, len(steps) // 2)
    while size:
        start, has_cut = 0, False
        while start < len(steps):
            rest = steps[:start] + steps[start + size :]
            if is_bad(rest):
                steps, has_cut = rest, True
            else:
                start += size
        size = size // 2 if size > 1 else int(has_cut)
    return steps


def fewer_fields(steps: list[Json], is_bad: Callable[[list[Json]], bool]) -> list[Json]:
    """Leave out the fields that a step need not have."""
    for index, step in enumerate(steps):
        for field in (*OPTIONAL, *(OPTIONAL_IN_SYNC if step["do"] == "sync" else ())):
            if field in steps[index]:
                simpler = {key: value for key, value in steps[index].items() if key != field}
                rest = [*steps[:index], simpler, *steps[index + 1 :]]
                if is_bad(rest):
                    steps = rest
    return steps
