"""Reads the list of exercises, shows their hints one at a time, and returns verdicts on answers."""

from __future__ import annotations

import inspect
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kcontrol.core.errors import UserError
from kcontrol.install import progress, workspace
from kcontrol.lab.exercises import printed_output, sandbox
from kcontrol.lab.exercises.verdicts import Verdict, pictures
from kcontrol.lab.support import arguments, replacements
from kcontrol.lab.support.output import Shown

if TYPE_CHECKING:
    from kcontrol.lab.run import Run

FOLDER = workspace.SHIPPED / "exercises"
HERE = object()  # the working folder of this process
OPEN, SOLVED = "open", "solved"
NOT_COUNTED = "This is not counted: progress is kept in a learner's folder, such as the one that `kcontrol lab` opens."
NOT_WRITTEN = "This is not counted, because {} cannot be written: make room on its disk, and check again."


@cache
def registry(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Return the table of every exercise in `exercises.toml` as a dict, by id, in the order of the file.

    `folder` has this file, and the stubs and solutions that the tables name.
    """
    entries = tomllib.loads((folder / "exercises.toml").read_text(encoding="utf-8"))["exercise"]
    return {entry["id"]: {"wrong": [], "folder": str(folder)} | entry for entry in entries}


def exercise(id: object) -> dict[str, Any]:
    """Return the entry of an exercise, its table in exercises.toml. Raises UserError, which lists the ids, for an unknown id."""
    return registry()[arguments.one_of(id, registry(), "exercise")]


def hint(id: str, folder: Any = HERE) -> Shown:
    """Return the next hint to an exercise, and store in the learner's `folder` that it was shown; after the last, begin again.

    Raises UserError for an unknown id.
    """
    # HERE is the learner's folder that contains the working directory. Without such a folder, and for None, the number of hints
    # is kept in this process only. After the last hint one call returns a sentence that there is no other hint.
    hints, place = exercise(id)["hints"], progress.folder() if folder is HERE else folder
    given = progress.of(place, id)["hints"]
    progress.note(place, id, hints=given + 1)
    if (number := given % (len(hints) + 1)) == len(hints):
        return Shown(f"This exercise has no more than {len(hints)} hints; the next call shows the first hint again.")
    return Shown(f"Hint {number + 1} of {len(hints)}: {hints[number]}")


def incident(id: str) -> Run:
    """Play the first scenario of an exercise, and return its run for the learner.

    Raises UserError for an exercise without a scenario, and for an unknown id.
    """
    from kcontrol.lab.exercises.checks import play
    from kcontrol.lab.run import Run

    if not (scenarios := exercise(id).get("scenario")):
        raise UserError(f"Exercise {id} has no run: its text has all that you need.")
    with play(scenarios[0]) as lab:
        return Run(list(lab.records), scenarios[0]["title"])


def check(id: str, answer: object, folder: Any = HERE) -> Verdict:
    """Check an answer to an exercise in a separate process, write the result into the learner's `folder`, return the verdict.

    Raises UserError for an unknown exercise.
    """
    said = judged(exercise(id), answer)
    # HERE is the learner's folder that contains the working directory. Without such a folder, and for None, the result is kept
    # in this process only.
    place = progress.folder() if folder is HERE else folder
    known = progress.of(place, id)
    kept = said.signed and progress.note(place, id, tries=known["tries"] + 1, solved=known["solved"] or said.passed)
    if kept or not said.passed:
        return said
    return said._replace(text=f"{said.text}\n{NOT_WRITTEN.format(place / progress.FILE) if place else NOT_COUNTED}")


def judged(entry: dict[str, Any], answer: object) -> Verdict:
    """Check an answer to an exercise in a separate process, and return the verdict.

    `entry` is the exercise's table in exercises.toml. Nothing in the learner's folder changes.
    """
    on_the_shell = isinstance(answer, sandbox.AnswerText)
    hint = f"`kcontrol exercises hint {entry['id']}`" if on_the_shell else f'exercises.hint("{entry["id"]}")'
    return verdict(entry, sandbox.judge(answer, entry), hint)


def verdict(entry: dict[str, Any], found: dict[str, Any], hint: str = "") -> Verdict:
    """Return the verdict on an answer from `found`, the report of the process that has checked the answer."""
    if problem := found.get("problem"):
        return Verdict(False, problem, signed=True, printed=found.get("printed", ""))
    if found.get("open"):
        return Verdict(False, entry["open"])
    printed = "".join(case["printed"] for case in found["cases"])[: printed_output.MOST_CHARACTERS]
    if found["passed"]:
        count = len(entry.get("scenario", ()))
        where = f" in all {count} scenarios" if count > 1 else ""
        solved = f"Solved: the check reports that your answer is right{where}."  # the report may be the answer's own work
        said = f"{' '.join(filter(None, (solved, found['remark'], entry['solved'])))}\nIn Kafka: {entry['source']}"
        return Verdict(True, said, signed=True, printed=printed, code=kafka_code(entry))
    # The text of a wrong answer has the first comparison that failed, and the message of a known wrong answer or the call for a
    # hint.
    first = next(case for case in found["cases"] if not case["is_right"])
    wrong = None if found.get("known") is None else entry["wrong"][found["known"]]
    said = f"Not yet. {first['text']}\n{wrong['message'] if wrong else f'A hint is in {hint}.'}"
    drawn, output = pictures(first["drawn"]), first["printed"] or printed
    return Verdict(False, said, wrong["misconception"] if wrong else None, signed=True, printed=output, pictures=drawn)


def kafka_code(entry: dict[str, Any]) -> str:
    """Return the source code of kcontrol's function that an answer to an exercise replaces.

    `entry` is the exercise's table in exercises.toml. If it names no such function, return the text of the solution.
    """
    if replaced := entry.get("replaces"):
        return inspect.getsource(replacements.own_function(replaced)).rstrip()
    return Path(entry["folder"], entry["solution"]).read_text(encoding="utf-8").rstrip()


# ---------------------------------------------------------------- the learner's files


def file_of(folder: Path, id: str) -> Path:
    """Return the path of the file in the learner's `folder` for the answer to an exercise; the file may be missing.

    The file has the name of the exercise's stub. Raises UserError for an unknown id.
    """
    return folder / workspace.EXERCISES / str(exercise(id)["stub"])


def start(folder: Path, id: str) -> Path:
    """Copy the stub of an exercise into the learner's `folder`, unless the file exists there; return its path.

    Raises UserError for an unknown id.
    """
    path = file_of(folder, id)
    if not path.exists():
        workspace.restore(folder, path.relative_to(folder).as_posix())
    return path


def check_file(folder: Path, id: str) -> Verdict:
    """Check the answer in the file for an exercise in the learner's `folder`, and return the verdict.

    Raises UserError if there is no such file, and for an unknown id.
    """
    path = file_of(folder, id)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UserError(f"There is no answer in {path}: copy the stub there with `kcontrol exercises start {id}`.") from None
    return check(id, sandbox.AnswerText(text, path.name), folder)


def reset(folder: Path, id: str) -> tuple[Path, Path | None]:
    """Copy the stub of an exercise into the learner's `folder` again; a changed file is kept under another name.

    Return (path of the stub's copy, path of the kept file or None). Raises UserError for an unknown id.
    """
    return workspace.restore(folder, file_of(folder, id).relative_to(folder).as_posix())


def standing(folder: Path | None, id: str) -> str:
    """Return a learner's result for an exercise: "open", "tried once", "tried 3 times" or "solved".

    `folder` is the learner's folder; None means the results in the memory of this process.
    """
    known = progress.of(folder, id)
    if known["solved"]:
        return SOLVED
    return f"tried {known['tries']} times" if known["tries"] > 1 else "tried once" if known["tries"] else OPEN
