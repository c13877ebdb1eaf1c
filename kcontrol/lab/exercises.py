"""Exercises: what there is to solve, hints one at a time, and verdicts."""

from __future__ import annotations

import inspect
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kcontrol.errors import UserError
from kcontrol.lab import arguments, judging, printing, progress, replacing, workspace
from kcontrol.lab.saying import Shown
from kcontrol.lab.verdicts import Verdict, pictures

if TYPE_CHECKING:
    from kcontrol.lab.moment import Moment

FOLDER = workspace.PROJECT / "exercises"
HERE = object()  # the folder that this process works in
OPEN, SOLVED = "open", "solved"
NOT_COUNTED = "This is not counted: progress is kept in a learner's folder, such as the one that ./run lab opens."


@cache
def registry(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Every exercise by its id, in the order of the chapters, as the file has it, with the `folder` that its files lie in."""
    entries = tomllib.loads((folder / "exercises.toml").read_text(encoding="utf-8"))["exercise"]
    return {entry["id"]: {"wrong": [], "folder": str(folder)} | entry for entry in entries}


def exercise(id: object) -> dict[str, Any]:
    """One exercise. Raises UserError, listing the ids, for one that does not exist."""
    if not isinstance(id, str) or id not in registry():
        raise UserError(f"There is no exercise {arguments.shown(id)}; there are {', '.join(registry())}.")
    return registry()[id]


def hint(id: str, folder: Any = HERE) -> Shown:
    """Return the next hint; after the last hint a sentence that there are no more, and then the first hint again.

    Raises UserError for an unknown id.
    """
    hints, place = exercise(id)["hints"], progress.folder() if folder is HERE else folder
    given = progress.of(place, id)["hints"]
    progress.note(place, id, hints=given + 1)
    if (number := given % (len(hints) + 1)) == len(hints):
        return Shown(f"There are no more than these {len(hints)} hints; the next call gives the first one again.")
    return Shown(f"Hint {number + 1} of {len(hints)}: {hints[number]}")


def incident(id: str) -> Moment:
    """The run of an exercise's first scenario, up to where its question is asked. Raises UserError where it has none."""
    from kcontrol.lab.checks import play
    from kcontrol.lab.moment import Moment

    if not (scenarios := exercise(id).get("scenario")):
        raise UserError(f"Exercise {id} has no run to look into: its text says what is asked.")
    with play(scenarios[0]) as lab:
        return Moment(list(lab.records), scenarios[0]["title"])


def check(id: str, answer: object, folder: Any = HERE) -> Verdict:
    """Judge an answer to an exercise; whatever the answer does, this returns. Progress is kept in the learner's `folder`.

    Raises UserError, listing the ids, for an exercise that does not exist.
    """
    said = judged(exercise(id), answer)
    place = progress.folder() if folder is HERE else folder
    known = progress.of(place, id)
    if said.signed:
        progress.note(place, id, tries=known["tries"] + 1, solved=known["solved"] or said.passed)
    return said._replace(text=f"{said.text}\n{NOT_COUNTED}") if said.passed and place is None else said


def judged(entry: dict[str, Any], answer: object) -> Verdict:
    """What `check` says about an answer to this exercise, without a trace left."""
    on_the_shell = isinstance(answer, judging.Text)
    hint = f"`kcontrol exercises hint {entry['id']}`" if on_the_shell else f'lab.hint("{entry["id"]}")'
    return verdict(entry, judging.judge(answer, entry), hint)


def verdict(entry: dict[str, Any], found: dict[str, Any], hint: str = "") -> Verdict:
    """What the process that has judged an answer found, in words; see `judge.reports`. `hint` is the call that gives one."""
    if problem := found.get("problem"):
        return Verdict(False, problem, signed=True, printed=found.get("printed", ""))
    if found.get("open"):
        return Verdict(False, entry["open"])
    printed = "".join(case["printed"] for case in found["cases"])[: printing.MOST_CHARACTERS]
    if found["passed"]:
        count = len(entry.get("scenario", ()))
        where = f" in all {count} scenarios" if count > 1 else ""
        solved = f"Solved: the check reports that your answer is right{where}."  # the report may be the answer's own work
        said = f"{' '.join(filter(None, (solved, found['remark'], entry['solved'])))}\nIn Kafka: {entry['source']}"
        return Verdict(True, said, signed=True, printed=printed, code=our_code(entry))
    first = next(case for case in found["cases"] if not case["is_right"])
    wrong = None if found.get("known") is None else entry["wrong"][found["known"]]
    said = f"Not yet. {first['text']}\n{wrong['message'] if wrong else f'A hint is in {hint}.'}"
    drawn, heard = pictures(first["drawn"]), first["printed"] or printed
    return Verdict(False, said, wrong["misconception"] if wrong else None, signed=True, printed=heard, pictures=drawn)


def our_code(entry: dict[str, Any]) -> str:
    """Return the text of our function that the answer has replaced, or of the solution where it has replaced none."""
    if replaced := entry.get("replaces"):
        return inspect.getsource(replacing.ours(replaced)).rstrip()
    return Path(entry["folder"], entry["solution"]).read_text(encoding="utf-8").rstrip()


# ---------------------------------------------------------------- the learner's files


def file_of(folder: Path, id: str) -> Path:
    """Where the learner's answer to an exercise is. Raises UserError for an unknown id."""
    return folder / workspace.EXERCISES / str(exercise(id)["stub"])


def start(folder: Path, id: str) -> Path:
    """Bring the stub of an exercise into the learner's folder, unless a file of that name is there; return its path."""
    path = file_of(folder, id)
    if not path.exists():
        workspace.restore(folder, path.relative_to(folder).as_posix())
    return path


def check_file(folder: Path, id: str) -> Verdict:
    """Judge what the learner's file for an exercise defines. Raises UserError where there is no such file."""
    path = file_of(folder, id)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UserError(f"There is no answer in {path}: `kcontrol exercises start {id}` brings the stub.") from None
    return check(id, judging.Text(text, path.name), folder)


def reset(folder: Path, id: str) -> tuple[Path, Path | None]:
    """Bring the stub of an exercise back; return its path and where the learner's version went, if there was one."""
    return workspace.restore(folder, file_of(folder, id).relative_to(folder).as_posix())


def standing(folder: Path | None, id: str) -> str:
    """How far a learner has come with an exercise, in a few words."""
    known = progress.of(folder, id)
    if known["solved"]:
        return SOLVED
    return f"tried {known['tries']} times" if known["tries"] > 1 else "tried once" if known["tries"] else OPEN
