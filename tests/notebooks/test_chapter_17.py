"""Chapter 17 on the runs of a reader: with none and with two hundred.

With fewer than twelve, kcontrol's own are there too: tests/lab/test_kept_runs.py.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from kcontrol.lab.exercises import checks
from kcontrol.lab.history.example_runs import EXAMPLES
from tests.notebooks import regen
from tests.parts import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.spark]

(CHAPTER,) = (ROOT / "notebooks").glob("17-*.ipynb")
MANY = 200
MOST_MB, MOST_CPU_S = 1_600, 120  # 60 s on two cores
MEASURES = """
import time
from pathlib import Path
from kcontrol.pipeline import gateway

def of_java(file):
    return Path(f"/proc/{gateway._gateway.pid}/{file}").read_text()

def cpu_s():
    return time.process_time() + sum(map(int, of_java("stat").rpartition(")")[2].split()[11:13])) / 100

began = cpu_s(), time.monotonic()
"""
MEASURED = """
texts = Path("/proc/self/status").read_text(), of_java("status")
megabytes = sum(int(text.partition("VmHWM:")[2].split()[0]) // 1024 for text in texts)
print(megabytes, "MB", round(cpu_s() - began[0]), "CPU s", round(time.monotonic() - began[1]), "s", "Java", gateway._gateway.pid)
"""


def with_runs(folder: Path, number: int) -> None:
    """Write the journals of a reader's runs; from the second on they are copies of a few different ones."""
    (folder / "runs").mkdir()
    few = ["controller-returns", "rolling-restart", "group-billing", "unclean-refused"][: max(1, number // 50)]
    for place, name in enumerate(few):
        checks.play(EXAMPLES[name]).save(folder / f"{place}.jsonl")
    for run in range(number):
        text = (folder / f"{run % len(few)}.jsonl").read_bytes()
        (folder / "runs" / f"20260101-{run:06}-simulated.jsonl").write_bytes(text)


@cache
def executed(number: int) -> NotebookNode:
    """Return the chapter, executed with so many runs of a reader, with measurements after Spark's start and at the end."""
    if not Path("/proc/self/status").exists():
        pytest.skip("memory and CPU time are measured by /proc")
    notebook = nbformat.read(CHAPTER, as_version=4)
    place = {cell.id: number for number, cell in enumerate(notebook.cells)}
    for id, source in (("close", MEASURED), ("scan", MEASURES)):
        notebook.cells.insert(place[id], nbformat.v4.new_code_cell(source, id=f"before-{id}"))
    return regen.execute(notebook, prepare=lambda folder: with_runs(folder, number))


@pytest.fixture(params=[0, MANY])
def chapter(request: pytest.FixtureRequest) -> tuple[int, NotebookNode]:
    """The number of runs of a reader, and the chapter's outputs with so many; the repository has those of a reader with none."""
    number: int = request.param
    return number, executed(number) if number else nbformat.read(CHAPTER, as_version=4)


def shown(notebook: NotebookNode, id: str) -> str:
    (cell,) = (cell for cell in notebook.cells if cell.id == id)
    return "\n".join(output.get("text") or output.data["text/plain"] for output in cell.outputs)


def test_the_picture_and_spark_have_every_run(chapter: tuple[int, NotebookNode]) -> None:
    """With fewer than twelve runs the twelve of kcontrol are there too; the reader's kill adds one; Spark counts all of them."""
    own, notebook = chapter
    known = own + (12 if own < 12 else 0)
    headline = f"{known} runs" if known <= 40 else f"40 of {known} runs"
    assert shown(notebook, "open").startswith(headline)
    assert re.search(rf"\b{known + 1} runs", shown(notebook, "kill")) and shown(notebook, "kill").count("\n> ") == 2
    assert shown(notebook, "spark").split()[-2] == str(known + 1)


def test_spark_and_pandas_say_who_was_controller_for_longest(chapter: tuple[int, NotebookNode]) -> None:
    """The table of pandas about the newest thirteen runs and the table of Spark have equal numbers if these are all runs."""
    own, notebook = chapter
    pandas = re.findall(r"^(\d+) +(\d+) +(\d+)$", shown(notebook, "outcome-longest"), re.MULTILINE)
    spark = re.findall(r"^\d+ +(\d+) +(\d+) +(\d+)$", shown(notebook, "spark-tenure"), re.MULTILINE)
    assert len(pandas) == len(spark) > 1
    if own == 0:
        assert sorted(pandas) == sorted(spark)
    else:
        assert all(int(mine[1]) <= int(every[1]) for mine, every in zip(sorted(pandas), sorted(spark), strict=True))


def test_memory_and_time_are_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    """Kernel and Spark together need at most 1.6 GB, and from Spark's start at most the CPU time of 60 s on two cores."""
    measured = shown(executed(MANY), "before-close")
    with capsys.disabled():
        print(f"\nchapter 17 with {MANY} runs: {measured.strip()}")
    memory, cpu = int(measured.split()[0]), int(measured.split()[2])
    assert memory < MOST_MB and cpu < MOST_CPU_S


def test_spark_has_ended_with_the_chapter() -> None:
    """The Java process of Spark does not run any more."""
    pid = shown(executed(MANY), "before-close").split()[-1]
    assert not Path(f"/proc/{pid}").exists()
