"""Runs notebooks again and keeps what they show: `./run python -m tests.notebooks.regen [--check] [NOTEBOOK ...]`.

Text, HTML tables and SVG are kept; views and states of widgets are not, for without a kernel they only say that they are missing.
An output that differs from the one before in nothing but times, zxids and the like is left as it was, so a second run changes
nothing. With `--check` nothing is written, and the exit status is 1 if something would be.
"""

import copy
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import nbformat
import typer
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

from tests.notebooks.kernels import sockets
from tests.notebooks.sanitizing import WIDGET_VIEW, compared
from tests.parts import ROOT

TIMEOUT_S = 600
"""The longest time for the start of a kernel and for one cell; a busy machine needs much of this time."""
LATE_S = 300
"""The longest time between the end of a cell and its last output."""
RECORDINGS = ROOT / "notebooks" / "recordings"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def execute(
    notebook: NotebookNode, env: dict[str, str] | None = None, prepare: Callable[[Path], None] = lambda _: None
) -> NotebookNode:
    """The notebook with the outputs of a fresh run, in a folder of its own with the recordings, as it is kept here.

    `env` is the kernel's environment, this process's where none is given. `prepare` puts files into the folder.

    Raises SystemExit, naming the cell, where one shows an error: a widget's callback that fails does not stop the run.
    """
    fresh = copy.deepcopy(notebook)
    with tempfile.TemporaryDirectory(prefix="kcontrol-notebook-") as folder, sockets() as listening:
        (Path(folder) / RECORDINGS.name).symlink_to(RECORDINGS)
        prepare(Path(folder))
        settings = {"timeout": TIMEOUT_S, "kernel_name": "python3", "store_widget_state": False, "record_timing": False}
        settings["coalesce_streams"] = True  # a slow loop prints in as many pieces as the kernel happens to flush
        # The defaults of nbclient are too short for a busy machine: a kernel has 60 seconds to start, and outputs that arrive
        # more than 4 seconds after the end of their cell are left out without an error.
        settings |= {"startup_timeout": TIMEOUT_S, "iopub_timeout": LATE_S, "raise_on_iopub_timeout": True}
        settings["config"] = Config(AsyncKernelManager=listening)
        NotebookClient(fresh, resources={"metadata": {"path": folder}}, **settings).execute(env=env or dict(os.environ))
    for number, cell in enumerate(fresh.cells):
        for output in cell.get("outputs", ()):
            if output.output_type == "error":
                raise SystemExit(f"cell {number} ends in {output.ename}: {output.evalue}")
    return tidy(fresh)


def tidy(notebook: NotebookNode) -> NotebookNode:
    """Without what only a running kernel understands, and with metadata that no machine changes."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({"tags": cell.metadata["tags"]} if cell.metadata.get("tags") else {})
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop(WIDGET_VIEW, None)
            if "metadata" in output:
                output.metadata = nbformat.from_dict({})
    return notebook


def keep_what_is_the_same(old: NotebookNode, new: NotebookNode) -> None:
    """Put the old outputs back where the new ones differ in nothing that counts."""
    before = {cell.id: cell for cell in old.cells}
    for cell in new.cells:
        was = before[cell.id]
        if cell.cell_type == "code" and compared(was.outputs) == compared(cell.outputs):
            cell.outputs = was.outputs
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = cell.execution_count


def regenerate(path: Path, *, check: bool = False) -> bool:
    """Run one notebook again; returns whether the file is, or would be, another one."""
    before = path.read_text(encoding="utf-8")
    old = nbformat.reads(before, as_version=4)
    new = execute(old)
    keep_what_is_the_same(tidy(old), new)
    after = nbformat.writes(new) + "\n"
    if after != before and not check:
        path.write_text(after, encoding="utf-8")
    return after != before


def main(
    notebooks: Annotated[list[Path] | None, typer.Argument(help="All that the project has where none is named.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if something would change.")] = False,
) -> None:
    """Run notebooks again and keep what they show."""
    changed = False
    for path in notebooks or sorted((ROOT / "notebooks").glob("*.ipynb")):
        differs = regenerate(path, check=check)
        changed |= differs
        print(f"{path}: {('would change' if check else 'changed') if differs else 'unchanged'}")
    sys.exit(1 if changed and check else 0)


if __name__ == "__main__":
    typer.run(main)
