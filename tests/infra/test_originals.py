"""What is said of copies whose originals have changed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.originals import OriginalChanged, by_name, commands, notice
from tests.parts import ROOT


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders, copies and originals, with one equal file in both."""
    copies, originals = tmp_path / "copies", tmp_path / "the originals"
    for folder in (copies, originals):
        folder.mkdir()
        (folder / "equal.yaml").write_text("equal")
    return copies, originals


def test_a_changed_original_is_a_warning_with_the_command_that_copies_it(folders: tuple[Path, Path]) -> None:
    """The warning holds a command that, run in the project's folder, makes the copy equal to its original."""
    copies, originals = folders
    (copies / "t.json").write_text("old")
    (originals / "t.json").write_text("new")
    with pytest.warns(OriginalChanged) as caught:
        notice(by_name(copies, originals, "*"))
    (command,) = commands(by_name(copies, originals, "*"))
    assert [str(warning.message).endswith(f": {command}") for warning in caught] == [True]
    subprocess.run(command, shell=True, cwd=ROOT, check=True)
    assert (copies / "t.json").read_text() == "new"
    assert commands(by_name(copies, originals, "*")) == []


def test_an_added_original_is_copied_and_a_removed_one_removed(folders: tuple[Path, Path]) -> None:
    """An original without a copy gets the command that copies it, a copy without an original the command that removes it."""
    copies, originals = folders
    (originals / "added.json").write_text("a")
    (copies / "removed.json").write_text("r")
    added, removed = commands(by_name(copies, originals, "*.json"))
    assert added.startswith("cp ") and added.endswith(os.path.relpath(copies / "added.json", ROOT))
    assert removed == f"git rm {os.path.relpath(copies / 'removed.json', ROOT)}"


def test_a_readme_is_not_compared(folders: tuple[Path, Path]) -> None:
    """A README that differs from its original is no notice."""
    copies, originals = folders
    (copies / "README.md").write_text("ours")
    (originals / "README.md").write_text("theirs")
    assert commands(by_name(copies, originals, "*")) == []
