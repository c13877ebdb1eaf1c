"""The public names: what `help`, completion and the chapters show, and what an unknown name says."""

from __future__ import annotations

import operator
import pydoc
import re
from collections.abc import Callable, Iterator

import nbformat
import pytest

from kcontrol import Lab, exercises, rules
from kcontrol.core.errors import UserError
from kcontrol.lab import namespaces
from kcontrol.lab.history.history_tables import TABLES
from kcontrol.lab.history.kept_runs import Runs
from kcontrol.lab.run import Run
from kcontrol.lab.tables import run_tables
from tests.parts import ROOT

Opened = Callable[..., Lab]
NAMESPACES = {
    "tables": run_tables.LabTables, "zk": namespaces.Zk, "network": namespaces.Network, "disks": namespaces.Disks,
    "group": namespaces.Group,
}  # fmt: skip
# Commands and tables about groups that no chapter shows yet.
GROUPS = {
    "group.restart", "group.expire_poll_interval", "group.list_groups", "group.describe_group", "group.delete_groups",
    "group.find_coordinator", "group.stop_polling",
    "group.delete_offsets", "tables.assignment", "tables.consumer_groups", "tables.group_responses",
}  # fmt: skip


def public(owner: object) -> list[str]:
    return [name for name in dir(owner) if not name.startswith("_")]


def names() -> Iterator[str]:
    """Every public name of a lab, of its namespaces, and of the two modules beside it."""
    yield from public(Lab)
    for space, kind in NAMESPACES.items():
        yield from (f"{space}.{name}" for name in public(kind))
    yield from (f"exercises.{name}" for name in dir(exercises))
    yield from (f"rules.{name}" for name in dir(rules))


def of_spark(name: str) -> bool:
    """Whether the name is that of a table of the whole run; chapter 17 lists them."""
    return name.removeprefix("tables.") in TABLES


def chapters() -> str:
    cells = (cell for path in sorted((ROOT / "notebooks").glob("*.ipynb")) for cell in nbformat.read(path, as_version=4).cells)
    return "\n".join(cell.source for cell in cells)


def test_every_public_name_stands_in_a_chapter() -> None:
    """Code or text of a chapter shows each public name, but for those of groups, some of whose chapters are to come."""
    text = chapters()
    assert set(names()) >= GROUPS
    assert {name for name in TABLES if f"`{name}`" not in text} == set()
    assert {
        name
        for name in names()
        if not of_spark(name) and not re.search(rf"(?<!\w){re.escape(name)}\b" if "." in name else rf"[.`]{name}\b", text)
    } - GROUPS == set()


def test_completion_shows_public_names_alone(opened: Opened) -> None:
    """What `dir` lists of a lab, of a run that is only read, and of a namespace are the public names of its class."""
    lab = opened(1)
    for owner in (lab, lab.rewind(-1), lab.tables, lab.zk, lab.network, lab.disks, lab.group):
        assert [name for name in dir(owner) if name.startswith("_")] == []
        assert set(dir(owner)) >= set(public(type(owner)))
    assert set(dir(lab)) == {*public(Lab), "name"}


def test_the_map_of_a_lab_fits_a_screen() -> None:
    """`help(Lab)` begins with a map of at most 40 lines of 80 columns, which has every public name of a lab."""
    page = pydoc.plain(pydoc.render_doc(Lab)).splitlines()
    map_ = (Lab.__doc__ or "").splitlines()
    assert len(map_) <= 40 and max(map(len, map_)) <= 80 and len(page) > len(map_)
    first = "\n".join(page[: page.index(" |  Methods defined here:")])
    assert {name for name in public(Lab) if not re.search(rf"\b{name}\b", first)} == set()
    assert "name" in first


def test_each_method_of_many_runs_stands_in_chapter_17() -> None:
    """The chapter about many runs shows each public name of `Runs`, and the docstring lists each."""
    (path,) = (ROOT / "notebooks").glob("17-*.ipynb")
    text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
    for name in public(Runs):
        assert re.search(rf"\.{name}\b", text) and re.search(rf"\b{name}\b", Runs.__doc__ or ""), name


@pytest.mark.parametrize("space", NAMESPACES)
def test_a_namespace_is_a_map_of_itself(opened: Opened, space: str) -> None:
    """A namespace on a line of its own lists each of its names."""
    shown = repr(getattr(opened(1), space))
    assert {name for name in public(NAMESPACES[space]) if not re.search(rf"\b{name}\b", shown)} == set()


def test_a_run_that_is_read_has_the_reading_names_alone(opened: Opened) -> None:
    """A run that is only read has tables, reasons and pictures, and nothing that acts."""
    assert set(public(Run)) == {
        "beside", "brokers", "compare", "diagram", "group_matrix", "group_strip", "journal", "offsets_partition", "partitions",
        "purgatory", "records", "rewind", "save", "save_logs", "state", "summary", "tables", "why",
    }  # fmt: skip
    moment = opened(1).rewind(-1)
    for name in ("kill", "run", "zk", "network"):
        assert not hasattr(moment, name)


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("kil", "it has kill"),
        ("znodes", "it has tables.znodes"),
        ("metric", "it has tables.metrics"),
        ("boo", "help(lab) lists its names"),
        ("disks.boo", "it has clean_log, fail_log_dir and lose_tail"),
        ("tables.watch", "it has watches"),
    ],
)
def test_an_unknown_name_leads_to_a_close_one(opened: Opened, name: str, ending: str) -> None:
    """One sentence has the names that are close, in the namespaces too; without a close name it has all, or where they are."""
    lab = opened(1)
    with pytest.raises(UserError) as raised:
        operator.attrgetter(name)(lab)
    assert raised.value._render_traceback_() == [str(raised.value)] == [f"There is no lab.{name}; {ending}."]
    with pytest.raises(AttributeError):
        operator.attrgetter(name)(lab)
