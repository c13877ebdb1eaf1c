"""The README and the pages of `docs/` say what is so."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kcontrol import Lab, exercises, rules
from kcontrol.core.releases import sort_key
from kcontrol.lab import namespaces
from tests.parts import ROOT

README = (ROOT / "README.md").read_text()
LAB_PAGE = (ROOT / "docs" / "lab.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
READ_FIRST = re.findall(r"^\d\. `([^`]+)`", ARCHITECTURE, re.MULTILINE)
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "exercises/README.md", *ROOT.glob("kcontrol/**/README.md")]
BLOCKS = re.findall(r"```(python)?\n(.*?)```", README, re.DOTALL)


def test_the_example_prints_what_stands_below_it(tmp_path: Path) -> None:
    """The README's Python, run as it stands in an empty folder, prints exactly the block that follows it."""
    (_, code), (_, output) = BLOCKS[0], BLOCKS[1]
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    printed = [line.rstrip() for line in ran.stdout.splitlines()]
    assert (printed, ran.stderr) == (output.splitlines(), "")


def test_it_is_short() -> None:
    """The README has at most 100 lines and 900 words, the page about the architecture at most 200 lines."""
    assert len(README.splitlines()) <= 100 and len(README.split()) <= 900
    assert len(ARCHITECTURE.splitlines()) <= 200


def test_it_lists_every_chapter() -> None:
    """The table of chapters has each notebook, in the order of their numbers."""
    listed = re.findall(r"\(notebooks/([^)]+)\)", README)
    assert listed == sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_points_to_is_there(page: Path) -> None:
    """Every link and picture that is a path leads to a file."""
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)]+)\)", page.read_text()) if "://" not in target]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


def test_the_reading_path_is_short() -> None:
    """The reading path names five files that exist; together they have at most 1,235 lines."""
    assert len(READ_FIRST) == 5
    assert sum(len((ROOT / name).read_text().splitlines()) for name in READ_FIRST) <= 1_235


@pytest.mark.parametrize("name", READ_FIRST)
def test_the_reading_path_is_free_of_earlier_releases(name: str) -> None:
    """No file of the reading path names a release before 1.1, but in `since` and `until` of a table's row."""
    text = re.sub(r"\b(since|until)=\"[\d.]+\"", "", (ROOT / name).read_text())
    assert [number for number in re.findall(r"\d+(?:\.\d+)+", text) if sort_key(number) < sort_key("1.1")] == []


def test_the_page_about_a_lab_prints_what_stands_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python of docs/lab.md is one program; each part of it prints exactly the block that follows."""
    monkeypatch.chdir(tmp_path)
    parts = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)\n```", LAB_PAGE, re.DOTALL)
    names: dict[str, object] = {}
    said = []
    for code, _ in parts:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, names)
        said.append("\n".join(line.rstrip() for line in out.getvalue().splitlines()))
    assert said == [output for _, output in parts]
    assert len(parts) == LAB_PAGE.count("\n## ") == LAB_PAGE.count("```python") == 10


def test_the_page_about_a_lab_has_every_public_name() -> None:
    """docs/lab.md names every command of a lab, of its namespaces but `tables`, and of the modules without a cluster."""
    places = (Lab, namespaces.Zk, namespaces.Network, namespaces.Disks, rules, exercises)
    names = {name for place in places for name in dir(place) if not name.startswith("_")}
    named = set(re.findall(r"\w+", LAB_PAGE))
    assert names - named == set()
