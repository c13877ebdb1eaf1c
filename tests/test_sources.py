"""The pages that lead from the sources to the code: what they name exists. Run as a program, brings the chapters up to date."""

from __future__ import annotations

import csv
import importlib
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.parts import ROOT, SHARED
from tests.traces.player import names, parse, read

PAGE = ROOT / "docs" / "sources.md"
GLOSSARY = ROOT / "docs" / "glossary.md"
NOT_YET = "not yet"
PROSE = ("-", "left out", NOT_YET)
CHAPTER = re.compile(r"(?:not yet \()?(A?\d+)\)?")


class Row(NamedTuple):
    source: str
    item: str
    kafka: str
    module: str
    chapter: str
    trace: str


def cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def table(page: Path, heading: str) -> list[list[str]]:
    """The rows of the table that this heading begins."""
    lines = page.read_text(encoding="utf-8").split(heading)[1].splitlines()[2:]
    end = next((at for at, line in enumerate(lines) if not line.startswith("|")), len(lines))
    return [cells(line) for line in lines[:end]]


def rows() -> list[Row]:
    return [Row(*found) for found in table(PAGE, "| source | what it names | in Kafka |")]


@cache
def chapters() -> frozenset[str]:
    """The numbers of the chapters that are there."""
    return frozenset(path.name.split("-")[0].lstrip("0") or "0" for path in (ROOT / "notebooks").glob("*.ipynb"))


def exists(module: str) -> bool:
    """Whether a file below `kcontrol/` is there, and the name in it."""
    path, _, name = module.partition(":")
    if not (ROOT / "kcontrol" / path).is_file():
        return False
    found: object = importlib.import_module("kcontrol." + path.removesuffix(".py").replace("/", "."))
    for part in filter(None, name.split(".")):
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


def test_every_module_and_name_exists() -> None:
    """What the page names below `kcontrol/` can be imported from there."""
    named = {row.module for row in rows()} - set(PROSE)
    assert len(named) > 50
    assert sorted(module for module in named if not exists(module)) == []


def test_a_name_that_is_nowhere_is_found_out() -> None:
    """`exists` is false for a file, a name and an attribute that do not exist, and true for those that do."""
    assert exists("controller/context.py:ControllerContext.leadership") and exists("core/znodes.py")
    assert not any(
        map(exists, ("controller/nowhere.py", "core/znodes.py:Nowhere", "controller/context.py:ControllerContext.nowhere"))
    )


def test_every_chapter_exists() -> None:
    """A chapter is named as there only if its notebook is."""
    named = {part for row in rows() for part in row.chapter.split(", ") if part not in PROSE and not part.startswith(NOT_YET)}
    assert named and named <= chapters()
    assert all(CHAPTER.fullmatch(part) for row in rows() for part in row.chapter.split(", ") if part not in PROSE)


def test_every_trace_exists() -> None:
    """A recording is named by release and scenario, a trace by its file's name, and each is there."""
    named = {row.trace for row in rows()} - set(PROSE)
    places = {f"{path.parent.name}/{path.stem}" for path in (ROOT / "tests" / "golden" / "recordings").rglob("*.json")}
    places |= {path.stem for path in (ROOT / "tests" / "traces").rglob("*.txt")}
    assert named and named <= places


def shown() -> list[tuple[str, str, str, str]]:
    """Source, item, trace and line of each head comment `# 004: item | line` of the traces."""
    heads = re.compile(r"^# (00\d): (.+) \| (.+)$", re.MULTILINE)
    return [(*found[:2], name, found[2]) for name in names() for found in heads.findall(read(name))]


def test_traces_and_rows_name_each_other() -> None:
    """A row of 002 or 004 names a trace exactly if the trace's head names the row; at least 60 of the 103 rows of 004 do."""
    named = {(row.source, row.item, row.trace) for row in rows() if row.source in ("002", "004") and row.trace in names()}
    assert named == {found[:3] for found in shown()}
    assert len([row for row in rows() if row.source == "004"]) == 103
    assert len([source for source, *_ in named if source == "004"]) >= 60


def test_a_trace_shows_each_row_that_it_names() -> None:
    """The line that a head comment quotes for a row is among the lines that the trace expects."""
    expected = {name: [line for block in parse(read(name)) for line in block.expected] for name in names()}
    assert shown() and [found for found in shown() if not any(found[3] in line for line in expected[found[2]])] == []


LEFT_OUT = {"offsetExpireLock": "offsetExpireLock", "removed group": "IllegalStateException", "not active": "isActive"}
"""The beginning of each row of 002 and 004 that is left out, and the name by which its chapter says so."""


def test_a_chapter_says_what_is_left_out_of_groups() -> None:
    """Each row of 002 and 004 that is left out has a sentence in its chapter that says so, with Kafka's name."""
    found = [row for row in rows() if row.source in ("002", "004") and row.module == "left out"]
    assert len(found) == len(LEFT_OUT)
    for row in found:
        name = next(name for begins, name in LEFT_OUT.items() if row.item.startswith(begins))
        text = next((ROOT / "notebooks").glob(f"{row.chapter}-*.ipynb")).read_text(encoding="utf-8")
        sentences = [part for part in re.split(r"[.;] |\\n", text) if re.search(rf"\b{name}\b", part)]
        assert [part for part in sentences if re.search(r"leaves .*out|left out", part)], row


@pytest.mark.shared
def test_every_item_of_the_sources_has_its_row() -> None:
    """The page has the items of the list, all of them, in its order; and each error of the sources that the list knows."""
    with (SHARED / "design" / "seed-items.tsv").open(encoding="utf-8", newline="") as file:
        items = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert [(row.source, row.item, row.kafka) for row in rows()] == [(i["seed"], i["item"], i["generation"]) for i in items]
    wrong = [[i["seed"], i["item"], i["erratum"]] for i in items if i["erratum"] != "-"]
    assert table(PAGE, "| source | what it says | what is so |") == wrong


def test_the_glossary_says_one_sentence_each() -> None:
    """Each name is explained once, in one sentence, in the order of the alphabet."""
    found = table(GLOSSARY, "| Kafka's name | what it is |")
    explained = [name for name, _, _ in found]
    assert len(found) > 40 and explained == sorted(set(explained), key=str.lower)
    assert [text for _, text, _ in found if not text.endswith(".") or ". " in text] == []


@pytest.mark.shared
def test_the_chinese_terms_are_those_of_the_sources() -> None:
    """Every Chinese term of the glossary stands in one of the sources."""
    text = "".join(path.read_text(encoding="utf-8", errors="replace") for path in (SHARED / "seeds").glob("*.txt"))
    terms = [term for *_, term in table(GLOSSARY, "| Kafka's name | what it is |") if term != "-"]
    assert len(terms) > 20 and [term for term in terms if term not in text] == []


def main() -> None:
    """Write the chapters' column anew, from the notebooks that are there."""
    lines = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        parts = re.split(r"(?<!\\)\|", line)
        if len(parts) == 8 and CHAPTER.search(parts[5]):
            numbers = CHAPTER.findall(parts[5])
            parts[5] = f" {', '.join(n if n in chapters() else f'{NOT_YET} ({n})' for n in numbers)} "
        lines.append("|".join(parts))
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
