"""What a learner has tried, solved and predicted, in one small file of the learner's folder."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from kcontrol.lab.workspace import STATE, replace

FILE = STATE.with_name("progress.json")
PREDICTIONS = "predictions"  # the key beside the ids of exercises

_without_a_folder: dict[str, dict[str, Any]] = {}


def folder() -> Path | None:
    """The learner's folder, where this process works in one; None elsewhere, as in a run of the package's own notebooks."""
    here = Path.cwd()
    return next((place for place in (here, *here.parents) if (place / STATE).exists()), None)


def read(place: Path | None) -> dict[str, dict[str, Any]]:
    """By the id of an exercise: `tries` and `hints` as counts, `solved` as whether; the answers to questions below PREDICTIONS.

    A file that cannot be read is none.
    """
    if place is None:
        return _without_a_folder
    try:
        found = json.loads((place / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(id): dict(about) for id, about in found.items() if isinstance(about, dict)} if isinstance(found, dict) else {}


def of(place: Path | None, id: str) -> dict[str, Any]:
    """What is known about one exercise."""
    about = read(place).get(id, {})
    counts = {name: about[name] if isinstance(about.get(name), int) else 0 for name in ("tries", "hints")}
    return {**counts, "solved": about.get("solved") is True}


def prediction(place: Path | None, id: str) -> str | None:
    """Return the text of the option that answered a question, None where none is kept."""
    kept = read(place).get(PREDICTIONS, {}).get(id) if place else None
    return kept if isinstance(kept, str) else None


def note_prediction(place: Path | None, id: str, option: str) -> None:
    """Remember the answer to a question by its text, whatever its place among the options; without a folder nothing is kept."""
    if place is not None:
        known = read(place)
        known[PREDICTIONS] = known.get(PREDICTIONS, {}) | {id: option}
        _write(place, known)


def note(place: Path | None, id: str, **changes: Any) -> None:
    """Remember this about an exercise. Where the file cannot be written, nothing is remembered: no answer is lost by that."""
    known = read(place)
    known[id] = of(place, id) | changes
    if place is not None:
        _write(place, known)


def _write(place: Path, known: dict[str, dict[str, Any]]) -> None:
    with contextlib.suppress(OSError):
        replace(place / FILE, json.dumps(known, indent=1, sort_keys=True).encode())
