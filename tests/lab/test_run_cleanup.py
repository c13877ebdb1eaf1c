"""Runs that are kept by themselves have one place, and the oldest are cleared; nothing else is ever deleted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kcontrol import Lab
from kcontrol.install import run_cleanup
from kcontrol.install.workspace import STATE, WORK
from tests.parts import ROOT

ENDED = 2**22 + 1
"""The id of a process that Linux and macOS never give."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with eleven runs of 100 bytes, the first the oldest, that processes have left which have ended."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for minute in range(11):
        run(folder, minute)
    return folder


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than ten runs are too many; five are left."""
    monkeypatch.setattr(run_cleanup, "MOST_RUNS", 10)
    monkeypatch.setattr(run_cleanup, "_cleared", set())


def run(folder: Path, minute: int, pid: int = ENDED, size: int = 100) -> Path:
    path = folder / f"20260101-00{minute:02}00-simulated.jsonl"
    path.write_bytes(b"x" * size)
    with (folder / run_cleanup.INDEX).open("a") as index:
        index.write(f"{pid} {path.name}\n")
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.jsonl"))


def test_the_oldest_are_deleted(place: Path) -> None:
    """Above the bound half of it is left, the newest, and one sentence says how many are gone and from where."""
    newest = names(place)[-5:]
    said = run_cleanup.clear(place)
    assert said.startswith(f"The 6 oldest runs in {place} have been deleted") and said.endswith(".")
    assert names(place) == newest
    assert run_cleanup.clear(place) == ""


def test_at_the_bound_nothing_is_deleted(place: Path) -> None:
    """Ten runs are not too many."""
    (place / names(place)[0]).unlink()
    assert run_cleanup.clear(place) == ""
    assert len(names(place)) == 10


def test_large_runs_are_deleted(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs are too many where they are larger than the bound together."""
    for name in names(place):
        (place / name).unlink()
    monkeypatch.setattr(run_cleanup, "MOST_MB", 1)
    run(place, 1, size=700_000)
    newest = run(place, 2, size=400_000)
    assert run_cleanup.clear(place)
    assert names(place) == [newest.name]


def test_what_no_lab_has_written_by_itself_stays(place: Path) -> None:
    """Files of a user stay: with a name of their own, with the form of our names, a link that replaced a run, and a folder."""
    mine = [place / "mine.jsonl", place / "20250101-000000-simulated.jsonl", place / "notes.txt"]
    for path in mine:
        path.write_text("mine")
    target = place.parent / "elsewhere.jsonl"
    target.write_text("mine")
    link = place / names(place)[1]
    link.unlink()
    link.symlink_to(target)
    with (place / run_cleanup.INDEX).open("a") as index:
        index.write(f"{ENDED} ../elsewhere.jsonl\n{ENDED} notes.txt\n{ENDED} {target}\n")
    run(place, 20)
    assert run_cleanup.clear(place)
    assert [path for path in [*mine, link, target] if not path.exists() or path.read_text() != "mine"] == []


def test_a_run_that_still_goes_on_stays(place: Path) -> None:
    """The oldest run stays where its process still runs."""
    living = run(place, 0, pid=os.getpid())
    index = place / run_cleanup.INDEX
    index.write_text("".join(line for line in index.read_text().splitlines(True) if line != f"{ENDED} {living.name}\n"))
    assert run_cleanup.clear(place)
    assert living.exists()


def test_what_was_saved_by_name_stays(place: Path) -> None:
    """`save` over a file that a lab has written by itself makes it the user's."""
    with Lab(1, runs=None) as lab:
        lab.save(saved := place / names(place)[0])
    run(place, 20)
    assert run_cleanup.clear(place)
    assert saved.exists()


SCRIPT = "from kcontrol import Lab; lab = Lab(1); print(lab._file.path)"


def script(code: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=True, timeout=100)


def test_a_script_clears_before_its_first_run(place: Path) -> None:
    """A script whose folder has too many says on stderr what it deletes, and keeps its own run."""
    done = script("from kcontrol.install import run_cleanup; run_cleanup.MOST_RUNS = 10; " + SCRIPT, place.parent)
    assert done.stderr.startswith(f"kcontrol: The 6 oldest runs in {place}")
    assert len(names(place)) == 6 and Path(done.stdout.strip()).name == names(place)[-1]


@pytest.mark.parametrize("below", ["", "exercises"])
def test_a_learners_runs_are_in_one_folder(below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever in the learner's folder a lab is opened, its run is in `runs` at the top."""
    (tmp_path / STATE).parent.mkdir()
    (tmp_path / STATE).write_text("{}")
    (tmp_path / below).mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path / below)
    assert run_cleanup.folder() == tmp_path / "runs"


@pytest.mark.parametrize("below", ["", "notebooks", "tests/lab"])
def test_the_projects_runs_are_beside_the_learners(below: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs in the project's folder keeps its runs in `work/runs`, which git ignores, and makes no second folder."""
    monkeypatch.chdir(ROOT / below)
    assert run_cleanup.folder() == WORK / "runs"


def test_a_folder_that_was_named_is_never_cleared(tmp_path: Path) -> None:
    """Where `runs=` names a folder, no index says that its files may be deleted."""
    with Lab(1, runs=tmp_path / "mine") as lab:
        assert lab._file.path is not None and lab._file.path.exists()
    assert not (tmp_path / "mine" / run_cleanup.INDEX).exists()
