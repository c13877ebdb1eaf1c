"""The learner's folder is filled, updated and reset, and what the learner wrote is never lost."""

import hashlib
import json
from pathlib import Path

import nbformat
import pytest

from kcontrol.install.workspace import Changes, WorkspaceProblem, chapter_file, prepare, restore

FIRST, SECOND, ANNEX = "00-first.ipynb", "01-second.ipynb", "A1-annex.ipynb"


def reset(folder: Path, chapter: str, source: Path) -> tuple[Path, Path | None]:
    return restore(folder, chapter_file(chapter, source), source)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The notebooks of one release, with a picture, a hidden file, a cache and a run."""
    folder = tmp_path / "notebooks"
    (folder / "pictures").mkdir(parents=True)
    (folder / ".ipynb_checkpoints").mkdir()
    (folder / "runs").mkdir()
    for name in (FIRST, SECOND, ANNEX, "pictures/broker.svg", ".hidden", f".ipynb_checkpoints/{FIRST}", "runs/1.jsonl"):
        (folder / name).write_text(f"{name} of release 1")
    return folder


@pytest.fixture
def folder(tmp_path: Path, source: Path) -> Path:
    """A learner's folder as the first start leaves it."""
    path = tmp_path / "übung mit leer"
    prepare(path, source)
    return path


def test_the_first_start_copies_what_readers_need(tmp_path: Path, source: Path) -> None:
    """Notebooks and pictures are copied, hidden files, caches and runs are not."""
    wanted = [FIRST, SECOND, ANNEX, "pictures/broker.svg"]
    folder = tmp_path / "new"
    assert prepare(folder, source) == Changes(copied=sorted(wanted))
    assert sorted(
        p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and ".kcontrol" not in p.parts
    ) == sorted(wanted)


def run(path: Path, text: str = "lab.run()") -> bytes:
    """Writes a notebook with one cell that has been run; returns its bytes."""
    cell = nbformat.v4.new_code_cell(
        text, id="run", execution_count=3, outputs=[nbformat.v4.new_output("stream", text="the answer")]
    )
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    return path.read_bytes()


def test_a_learners_copy_has_no_outputs(tmp_path: Path, source: Path) -> None:
    """The copy has every cell and no output and no number of a run; the notebook it is made from keeps both."""
    before = run(source / FIRST)
    folder = tmp_path / "new"
    prepare(folder, source)
    copy = nbformat.read(folder / FIRST, as_version=4)
    nbformat.validate(copy)
    assert [(cell.source, cell.outputs, cell.execution_count) for cell in copy.cells] == [("lab.run()", [], None)]
    assert (source / FIRST).read_bytes() == before


def test_reset_brings_back_a_copy_without_outputs(folder: Path, source: Path) -> None:
    """After `reset` too the notebook has no outputs; what the learner had run is kept beside it with its outputs."""
    run(source / FIRST)
    mine = run(folder / FIRST)
    path, backup = reset(folder, "0", source)
    assert backup is not None and backup.read_bytes() == mine
    assert nbformat.read(path, as_version=4).cells[0].outputs == []


def test_an_untouched_copy_with_outputs_is_brought_up_to_date(folder: Path, source: Path) -> None:
    """A copy of an earlier release, outputs and all, is replaced if it is untouched, and kept if the learner changed it."""
    earlier = {name: run(source / name) for name in (FIRST, SECOND)}
    for name, content in earlier.items():
        (folder / name).write_bytes(content)
    known = {name: hashlib.sha256(content).hexdigest() for name, content in earlier.items()}
    (folder / ".kcontrol" / "shipped.json").write_text(json.dumps(known))
    mine = run(folder / SECOND, "mine")
    changes = prepare(folder, source)
    assert (changes.updated, changes.kept) == ([FIRST], [SECOND])
    assert b"the answer" not in (folder / FIRST).read_bytes() and (folder / SECOND).read_bytes() == mine


def test_new_outputs_alone_are_no_update(folder: Path, source: Path) -> None:
    """Where a release differs in its outputs only, nothing is brought up to date."""
    run(source / FIRST)
    prepare(folder, source)
    (source / FIRST).write_bytes((source / FIRST).read_bytes().replace(b"the answer", b"another"))
    assert prepare(folder, source) == Changes()


def test_a_second_start_changes_nothing(folder: Path, source: Path) -> None:
    """Without an update nothing is copied, and what the learner changed stays without a word."""
    (folder / FIRST).write_text("mine")
    assert prepare(folder, source) == Changes()
    assert (folder / FIRST).read_text() == "mine"


def test_an_update_replaces_what_was_not_touched(folder: Path, source: Path) -> None:
    """An unchanged file becomes the new one; a file that the learner changed stays, and one update lists it as kept."""
    (folder / FIRST).write_text("mine")
    for name in (FIRST, SECOND):
        (source / name).write_text("release 2")
    assert prepare(folder, source) == Changes(updated=[SECOND], kept=[FIRST])
    assert ((folder / FIRST).read_text(), (folder / SECOND).read_text()) == ("mine", "release 2")
    assert prepare(folder, source) == Changes()
    assert (folder / FIRST).read_text() == "mine"


def test_a_file_of_the_learners_own_name_is_kept(tmp_path: Path, source: Path) -> None:
    """A file that was there before the first start is the learner's."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / FIRST).write_text("mine")
    assert prepare(folder, source).kept == [FIRST]
    assert (folder / FIRST).read_text() == "mine"


def test_a_lost_memory_loses_no_work(folder: Path, source: Path) -> None:
    """If the folder's memory is broken, a changed file is still kept."""
    (folder / FIRST).write_text("mine")
    (folder / ".kcontrol" / "shipped.json").write_text("{broken")
    (source / FIRST).write_text("release 2")
    assert prepare(folder, source).kept == [FIRST]
    assert (folder / FIRST).read_text() == "mine"


def test_a_deleted_file_comes_back(folder: Path, source: Path) -> None:
    """A file that the learner has deleted is copied again."""
    (folder / SECOND).unlink()
    assert prepare(folder, source) == Changes(copied=[SECOND])


def test_reset_keeps_the_learners_version_beside(folder: Path, source: Path) -> None:
    """`reset` brings back one chapter and keeps each version of the learner's under a name of its own; others are not touched."""
    (folder / SECOND).write_text("mine too")
    for number, text in ((1, "mine"), (2, "mine again")):
        (folder / FIRST).write_text(text)
        path, backup = reset(folder, "0", source)
        assert path == folder / FIRST
        assert path.read_text() == f"{FIRST} of release 1"
        assert backup == folder / f"00-first.kept-{number}.ipynb"
        assert backup.read_text() == text
    assert (folder / SECOND).read_text() == "mine too"


def test_reset_of_an_untouched_chapter_leaves_no_backup(folder: Path, source: Path) -> None:
    """There is nothing to keep of a chapter that is as it was shipped."""
    assert reset(folder, "1", source) == (folder / SECOND, None)
    assert sorted(path.name for path in folder.glob("*.ipynb")) == [FIRST, SECOND, ANNEX]


def test_an_update_after_a_reset_goes_on(folder: Path, source: Path) -> None:
    """After a reset the chapter is updated like any untouched one."""
    (folder / FIRST).write_text("mine")
    (source / FIRST).write_text("release 2")
    reset(folder, "0", source)
    (source / FIRST).write_text("release 3")
    assert prepare(folder, source) == Changes(updated=[FIRST])


@pytest.mark.parametrize(
    ("chapter", "name"),
    [("0", FIRST), ("00", FIRST), ("1", SECOND), ("a1", ANNEX), ("A1", ANNEX), (FIRST, FIRST), ("00-first", FIRST)],
)
def test_chapters_are_named_by_number_or_file(chapter: str, name: str, source: Path) -> None:
    """A chapter goes by its number with or without leading nought, or by its file's name."""
    assert chapter_file(chapter, source) == name


def test_an_unknown_chapter(folder: Path, source: Path) -> None:
    """For an unknown chapter the sentence lists those there are, and nothing changes."""
    with pytest.raises(WorkspaceProblem, match=r"^There is no chapter '9': choose one of 00, 01, a1\.$"):
        reset(folder, "9", source)


def test_a_folder_that_cannot_be_written(tmp_path: Path, source: Path) -> None:
    """A folder that cannot be made raises WorkspaceProblem with a sentence that says what to do."""
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceProblem, match=r"cannot be written \(.+\): choose another one with --dir\.$"):
        prepare(tmp_path / "file" / "work", source)


def test_no_notebooks(tmp_path: Path) -> None:
    """A copy of the project without notebooks raises WorkspaceProblem."""
    with pytest.raises(WorkspaceProblem, match="There are no notebooks in"):
        prepare(tmp_path / "work", tmp_path / "nothing")
