"""Tables of the recordings, the questions and the exercises that come with the project."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kcontrol.core.errors import UserError
from kcontrol.install import progress
from kcontrol.install.workspace import NOTEBOOKS
from kcontrol.lab.exercises import exercises, predictions
from kcontrol.lab.support.late import frames, pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views import text

SHIPPED = NOTEBOOKS / "recordings"
SUFFIX = ".json"
RECORDED_GROUP = re.compile(r"[\d.]+/group/[\w-]+")  # the form of the name of a group's recording

RECORDINGS = {"release": "string", "scenario": "string"}
QUESTIONS = {"chapter": "string", "question": "string"}
EXERCISES = {"chapter": "string", "verb": "string", "minutes": "int64", "standing": "string", "hints": "int64", "title": "string"}
PROGRESS = {"exercises": "int64", "tried": "int64", "solved": "int64"}


def recordings() -> pd.DataFrame:
    """Return one row, with release and scenario, per recording of real brokers.

    The index is the name that `Lab.open` and `Lab.play` take.
    """
    rows = ({"name": f"{release}/{scenario}", "release": release, "scenario": scenario} for release, scenario in shipped())
    return frames.Wide(journal_tables.table(rows, RECORDINGS, "name"))


def questions() -> pd.DataFrame:
    """Return one row per question, with its chapter and text, indexed by the id for `exercises.predict`."""
    rows = ({"id": id} | dict(about) | {"chapter": str(about["chapter"])} for id, about in predictions.predictions().items())
    return frames.Wide(journal_tables.table(rows, QUESTIONS, "id"))


def exercise_table() -> pd.DataFrame:
    """Return one row per exercise, with the learner's result, such as "solved", and the number of hints shown.

    The index is the id for `exercises.check`.
    """
    return frames.Wide(journal_tables.table(_exercises(), EXERCISES, "id"))


def progress_table() -> pd.DataFrame:
    """Return one row per chapter: the number of its exercises, and how many of them the learner has tried and solved."""
    found: dict[str, dict[str, Any]] = {}
    for row in _exercises():
        chapter = found.setdefault(row["chapter"], {"chapter": row["chapter"], "exercises": 0, "tried": 0, "solved": 0})
        chapter["exercises"] += 1
        chapter["tried"] += row["standing"] != exercises.OPEN
        chapter["solved"] += row["standing"] == exercises.SOLVED
    return journal_tables.table(found.values(), PROGRESS, "chapter")


def _exercises() -> Iterator[dict[str, Any]]:
    folder = progress.folder()
    for id, entry in exercises.registry().items():
        known = {"standing": exercises.standing(folder, id), "hints": progress.of(folder, id)["hints"]}
        yield {"id": id} | entry | known | {"chapter": str(entry["chapter"])}


def shipped() -> list[tuple[str, str]]:
    """Return (release, name of the scenario), such as ("2.8.2", "isr-order"), of every recording of the project, sorted."""
    found = (path.relative_to(SHIPPED).with_suffix("").as_posix().split("/", 1) for path in SHIPPED.glob(f"*/**/*{SUFFIX}"))
    pairs = ((release, scenario) for release, scenario in found)
    return sorted(pairs, key=lambda names: ([int(part) for part in names[0].split(".")], names[1]))


def file_of(name: str | Path) -> Path:
    """Return the path `name` if there is such a file, else the file of the project's recording `name`, such as "2.8.2/isr-order".

    Raises UserError for a name that is neither a file nor a recording.
    """
    release, _, scenario = str(name).partition("/")
    releases = list(dict.fromkeys(known for known, _ in shipped()))
    try:
        # A file in the working directory comes before a recording of this name. A path with a suffix, such as "run.json", is
        # returned even if the file is missing, unless it begins with a release.
        if Path(name).exists() or (release not in releases and not RECORDED_GROUP.fullmatch(str(name))):
            if not (Path(name).suffix or Path(name).exists()):
                raise UserError(f"There is no file and no recording {str(name)!r}: see Lab.recordings().")
            return Path(name)
    except OSError as error:
        raise UserError(f"The file {text.clean(str(name))} cannot be read: {error.strerror}.") from None
    if release not in releases:
        raise UserError(f"There is no recording {str(name)!r}; there are recordings of {', '.join(releases)}.")
    there = [known for of, known in shipped() if of == release]
    if scenario not in there:
        raise UserError(f"There is no recording {str(name)!r}; the recordings of {release} are {', '.join(there)}.")
    return SHIPPED / release / f"{scenario}{SUFFIX}"
