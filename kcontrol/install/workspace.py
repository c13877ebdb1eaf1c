"""Copies, updates and resets the notebooks in the learner's folder, and keeps each file that the learner has changed."""

import hashlib
import itertools
import json
import os
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from kcontrol.core.errors import UserError

PACKAGE = Path(__file__).resolve().parent.parent
# The folder that has `notebooks` and `exercises`: the project's, or the one that a wheel has inside the package.
SHIPPED = PACKAGE / "shipped" if (PACKAGE / "shipped").is_dir() else PACKAGE.parent
NOTEBOOKS = SHIPPED / "notebooks"
# The learner's folder if no other is named.
WORK = Path("~/kcontrol-work") if SHIPPED.is_relative_to(PACKAGE) else SHIPPED / "work"
STATE = Path(".kcontrol") / "shipped.json"
EXERCISES = "exercises"


class WorkspaceProblem(UserError):
    """The error for a learner's folder that cannot be used, and for a chapter that does not exist."""


@dataclass(frozen=True)
class Changes:
    """The notebooks and other shipped files that `prepare` copied to the learner's folder, updated there, or kept.

    A file that the learner has changed is kept. The names are paths relative to the learner's folder.
    """

    copied: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


def without_outputs(content: bytes) -> bytes:
    """Return a notebook without its outputs, so that no output gives away the answer to a question.

    Other content is returned unchanged.
    """
    try:
        notebook = json.loads(content)
    except ValueError:
        return content
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return (json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def shipped(source: Path) -> dict[str, bytes]:
    """Return the files that learners get, relative path to content: notebooks without outputs, and the exercises' stubs.

    `source` is the folder `notebooks`; the stubs are in the folder `exercises` beside it.

    Raises WorkspaceProblem: there are no files, so the installation is incomplete.
    """
    paths = (path for path in sorted(source.rglob("*")) if path.is_file())
    relative = ((path, path.relative_to(source)) for path in paths)
    files = {
        name.as_posix(): without_outputs(path.read_bytes()) if path.suffix == ".ipynb" else path.read_bytes()
        for path, name in relative
        if not any(part.startswith(".") or part in {"__pycache__", "runs"} for part in name.parts)
    }
    if not files:
        raise WorkspaceProblem(f"There are no notebooks in {source}: start from a complete copy of the project.")
    stubs = sorted((source.parent / EXERCISES).glob("*.py"))
    return files | {f"{EXERCISES}/{path.name}": path.read_bytes() for path in stubs}


def digest(content: bytes) -> str:
    """Return the SHA-256 of a file's content as hexadecimal text."""
    return hashlib.sha256(content).hexdigest()


def replace(path: Path, content: bytes) -> None:
    """Write a file atomically, with the rights that the umask allows, and create its folder if it does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(content)
            file.flush()
        except OSError:
            Path(file.name).unlink()
            raise
    mask = os.umask(0)
    os.umask(mask)
    Path(file.name).chmod(0o666 & ~mask)
    Path(file.name).replace(path)


def read_state(folder: Path) -> dict[str, str]:
    """Return, by file name, the hash that each file had when it was last copied into the learner's folder `folder`.

    Return {} if the folder has no readable file with these hashes.
    """
    try:
        state = json.loads((folder / STATE).read_text())
    except (OSError, ValueError):
        return {}
    return {str(name): str(value) for name, value in state.items()} if isinstance(state, dict) else {}


def write_state(folder: Path, state: dict[str, str]) -> None:
    """Store `state`, the hash of each copied file by the file's name, in the learner's folder `folder`.

    A hash is that of the file at the last copy into the folder.
    """
    replace(folder / STATE, json.dumps(state, indent=1, sort_keys=True).encode())


def unwritable(folder: Path, problem: OSError) -> WorkspaceProblem:
    """Return the error for a folder that cannot be written, with the text of `problem`."""
    return WorkspaceProblem(f"The folder {folder} cannot be written ({problem.strerror}): choose another one with --dir.")


def prepare(folder: Path, source: Path = NOTEBOOKS) -> Changes:
    """Copy the shipped files, by default the chapters, into the learner's folder `folder`.

    Return the paths of new, updated and kept files; a file that the learner has changed is kept.

    Raises WorkspaceProblem: the folder cannot be written.
    """
    changes, state = Changes(), read_state(folder)
    try:
        for name, content in shipped(source).items():
            path, new = folder / name, digest(content)
            old = digest(path.read_bytes()) if path.exists() else None
            if old in {None, state.get(name)} and old != new:
                (changes.copied if old is None else changes.updated).append(name)
                replace(path, content)
            elif old != new and state.get(name) != new:
                changes.kept.append(name)
            state[name] = new
        write_state(folder, state)
    except OSError as problem:
        raise unwritable(folder, problem) from problem
    return changes


def chapter_file(chapter: str, source: Path = NOTEBOOKS) -> str:
    """Return the file name of a chapter's notebook in `source`; `chapter` is `0`, `00`, `A1` or the file name.

    Raises WorkspaceProblem: the chapter does not exist; the text lists the chapters.
    """
    notebooks = [name for name in shipped(source) if name.endswith(".ipynb")]
    numbers = {match[1].lower(): name for name in notebooks if (match := re.match(r"([A-Za-z]?\d+)\b", Path(name).name))}
    wanted = chapter.lower()
    for name in notebooks:
        if wanted in {name.lower(), name.lower().removesuffix(".ipynb")}:
            return name
    if found := (wanted and numbers.get(wanted.zfill(2))) or numbers.get(wanted):
        return found
    raise WorkspaceProblem(f"There is no chapter {chapter!r}: choose one of {', '.join(sorted(numbers))}.")


def restore(folder: Path, name: str, source: Path = NOTEBOOKS) -> tuple[Path, Path | None]:
    """Copy the shipped file `name` to the learner's `folder` again; return (its path, the path of the changed version or None).

    A changed version gets another name, such as `<name>.kept-1.ipynb`.

    Raises WorkspaceProblem if the folder cannot be written, and KeyError if no file is shipped under this name.
    """
    content = shipped(source)[name]
    path = folder / name
    backup: Path | None = None
    try:
        if path.exists() and path.read_bytes() != content:
            names = (path.with_name(f"{path.stem}.kept-{number}{path.suffix}") for number in itertools.count(1))
            backup = next(free for free in names if not free.exists())
            path.rename(backup)
        replace(path, content)
        write_state(folder, read_state(folder) | {name: digest(content)})
    except OSError as problem:
        raise unwritable(folder, problem) from problem
    return path, backup
