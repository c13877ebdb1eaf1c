"""Reads and stores the learner's progress in one file: tries, hints, solved exercises and answers to questions."""

import contextlib
import json
from pathlib import Path
from typing import Any

from kcontrol.install.workspace import STATE, replace

FILE = STATE.with_name("progress.json")
PREDICTIONS = "predictions"  # the key beside the ids of exercises

_without_a_folder: dict[str, dict[str, Any]] = {}


def folder() -> Path | None:
    """Return the learner's folder that contains the working directory; None elsewhere, as for the package's own notebooks."""
    current = Path.cwd()
    return next((place for place in (current, *current.parents) if (place / STATE).exists()), None)


def read(place: Path | None) -> dict[str, dict[str, Any]]:
    """Return the learner's progress: exercise id to {"tries": 2, "hints": 0, "solved": True}.

    The key "predictions" maps a question id to the chosen option's text. `place` is the learner's folder; for None, return the
    progress that this process has in memory.
    """
    # Outside a learner's folder the progress lasts as long as this process.
    if place is None:
        return _without_a_folder
    try:
        found = json.loads((place / FILE).read_text(encoding="utf-8"))
    # An unreadable file counts as empty.
    except (OSError, ValueError):
        return {}
    return {str(id): dict(about) for id, about in found.items() if isinstance(about, dict)} if isinstance(found, dict) else {}


def of(place: Path | None, id: str) -> dict[str, Any]:
    """Return the progress in the exercise `id`, such as {"tries": 2, "hints": 0, "solved": True}; 0 and False at first.

    `place` is the learner's folder; for None, the progress is the one that this process keeps.
    """
    about = read(place).get(id, {})
    counts = {name: about[name] if isinstance(about.get(name), int) else 0 for name in ("tries", "hints")}
    return {**counts, "solved": about.get("solved") is True}


def prediction(place: Path | None, id: str) -> str | None:
    """The text of the option that the learner chose for a question; None without an answer, and without a folder."""
    kept = read(place).get(PREDICTIONS, {}).get(id) if place else None
    return kept if isinstance(kept, str) else None


def note_prediction(place: Path | None, id: str, option: str) -> None:
    """Store `option`, the text of the learner's answer to the question `id`, in the learner's folder `place`.

    Do nothing if `place` is None.
    """
    if place is not None:
        known = read(place)
        known[PREDICTIONS] = known.get(PREDICTIONS, {}) | {id: option}
        _write(place, known)


def note(place: Path | None, id: str, **changes: Any) -> bool:
    """Store a learner's progress in the exercise `id`: `changes` are new values of `tries`, `hints` or `solved`.

    `place` is the learner's folder; for None the progress is kept in this process alone. Return whether it is in a file now.
    """
    known = read(place)
    known[id] = of(place, id) | changes
    # Without a folder `known` is the memory of this process.
    return place is not None and _write(place, known)


def _write(place: Path, known: dict[str, dict[str, Any]]) -> bool:
    with contextlib.suppress(OSError):
        replace(place / FILE, json.dumps(known, indent=1, sort_keys=True).encode())
        return True
    return False
