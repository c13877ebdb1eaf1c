"""The recordings that tests read: those in the project, and those beside it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from kcontrol.journal.journal import Record
from kcontrol.recordings import recording, to_journal
from tests.parts import ROOT, SHARED

OURS = sorted((ROOT / "notebooks" / "recordings").glob("*/*.json")) + sorted(
    (ROOT / "tests" / "golden" / "recordings").glob("**/*.json")
)
THEIRS = sorted((SHARED / "golden").glob("[0-9]*/*.json"))
RELEASES = ("0.8.0", "0.8.1.1", "0.8.2.2", "0.9.0.1", "0.10.2.2", "0.11.0.3", "1.0.2", "1.1.1", "2.4.1", "2.8.2", "3.9.1")


def name(path: Path) -> str:
    """A recording's release and scenario, and the folder where it is another than usual."""
    return "/".join(path.parts[-3:]).removesuffix(".json")


def once(paths: list[Path]) -> list[Path]:
    return list({path.read_bytes(): path for path in reversed(paths)}.values())[::-1]


def tier(path: Path) -> list[pytest.MarkDecorator]:
    """The fast tier has the recordings of one release of each design, but for the one with 214 failovers."""
    is_fast = path.parent.name in ("0.8.2.2", "1.0.2", "2.8.2") and path.stem != "never-led-loop"
    return [] if is_fast else [pytest.mark.slow]


# A recording that is in the project is read there. Where there is no folder beside it one test of each kind says so.
EACH = [pytest.param(path, id=name(path), marks=tier(path)) for path in once(OURS)]
EACH += [
    pytest.param(path, id=name(path), marks=[pytest.mark.shared, *tier(path)]) for path in once(OURS + THEIRS) if path in THEIRS
]
if not THEIRS:
    EACH.append(pytest.param(SHARED / "golden" / "0" / "none.json", id="none", marks=pytest.mark.shared))


@lru_cache(maxsize=1)
def opened(path: Path) -> tuple[dict[str, Any], list[Record]]:
    found = recording.load(path)
    return found, to_journal.to_journal(found)


def in_project(release: str, scenario: str) -> Path:
    return ROOT / "notebooks" / "recordings" / release / f"{scenario}.json"
