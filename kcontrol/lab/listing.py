"""What there is to open, to answer and to solve, as tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from kcontrol.errors import UserError
from kcontrol.lab import exercises, predicting, progress, tables
from kcontrol.lab.frames import Wide
from kcontrol.lab.workspace import PROJECT
from kcontrol.views import text

SHIPPED = PROJECT / "notebooks" / "recordings"
SUFFIX = ".json"

RECORDINGS = {"release": "string", "scenario": "string"}
QUESTIONS = {"chapter": "string", "question": "string"}
EXERCISES = {"chapter": "string", "verb": "string", "minutes": "int64", "standing": "string", "hints": "int64", "title": "string"}
PROGRESS = {"exercises": "int64", "tried": "int64", "solved": "int64"}


class Lists:
    """Tables of what comes with the project, and of how far the learner has come."""

    @staticmethod
    def recordings() -> pd.DataFrame:
        """One row per recording of real brokers, by the name that `Lab.open` and `Lab.play` take."""
        rows = ({"name": f"{release}/{scenario}", "release": release, "scenario": scenario} for release, scenario in shipped())
        return Wide(tables.table(rows, RECORDINGS, "name"))

    @staticmethod
    def questions() -> pd.DataFrame:
        """One row per question, by the id that `lab.predict` takes."""
        rows = ({"id": id} | dict(about) | {"chapter": str(about["chapter"])} for id, about in predicting.predictions().items())
        return Wide(tables.table(rows, QUESTIONS, "id"))

    @staticmethod
    def exercises() -> pd.DataFrame:
        """One row per exercise, by the id that `lab.check` takes, with its standing and the number of hints taken."""
        return Wide(tables.table(_exercises(), EXERCISES, "id"))

    @staticmethod
    def progress() -> pd.DataFrame:
        """One row per chapter: how many exercises it has, and how many of them were tried and solved in this folder."""
        found: dict[str, dict[str, Any]] = {}
        for row in _exercises():
            chapter = found.setdefault(row["chapter"], {"chapter": row["chapter"], "exercises": 0, "tried": 0, "solved": 0})
            chapter["exercises"] += 1
            chapter["tried"] += row["standing"] != exercises.OPEN
            chapter["solved"] += row["standing"] == exercises.SOLVED
        return tables.table(found.values(), PROGRESS, "chapter")


def _exercises() -> Iterator[dict[str, Any]]:
    folder = progress.folder()
    for id, entry in exercises.registry().items():
        known = {"standing": exercises.standing(folder, id), "hints": progress.of(folder, id)["hints"]}
        yield {"id": id} | entry | known | {"chapter": str(entry["chapter"])}


def shipped() -> list[tuple[str, str]]:
    """Return the release and the scenario of every recording that comes with the project, by release and name."""
    found = ((path.parent.name, path.stem) for path in SHIPPED.glob(f"*/*{SUFFIX}"))
    return sorted(found, key=lambda names: ([int(part) for part in names[0].split(".")], names[1]))


def file_of(name: str | Path) -> Path:
    """Return the file that a path or the name of a recording means.

    Raises UserError for a path that is too long, and, listing the recordings, for a name such as "2.8.2/x" that neither a file
    nor a recording has.
    """
    release, _, scenario = str(name).rpartition("/")
    try:
        if Path(name).exists() or release not in {known for known, _ in shipped()}:
            return Path(name)
    except OSError as error:
        raise UserError(f"The file {text.clean(str(name))} cannot be read: {error.strerror}.") from None
    there = [known for of, known in shipped() if of == release]
    if scenario not in there:
        raise UserError(f"There is no recording {str(name)!r}; of {release} there are {', '.join(there)}.")
    return SHIPPED / release / f"{scenario}{SUFFIX}"
