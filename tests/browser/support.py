"""A real JupyterLab on a folder of its own, and what a test does in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import nbformat
from playwright.sync_api import BrowserContext, Page

from tests.parts import ROOT

RESULTS = ROOT / "tests" / ".results" / "browser"
PATIENCE_MS = 60_000
LONGEST_CHAPTER_MS = 600_000  # chapter 18 plays 1,200 clusters, on a machine with two cores that other tests use too

# The workbook's own server, with these notebooks in the place of the shipped ones.
SERVE = """
import sys
from pathlib import Path
from kcontrol.install import jupyter_server, workspace
files = workspace.shipped(Path(sys.argv[1]))
workspace.shipped = lambda _: files
jupyter_server.serve(Path(sys.argv[2]), browser=False)
"""


def notebook(path: Path, cells: Sequence[str]) -> None:
    """Writes a notebook of code cells that have not been run."""
    made = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    )
    made.cells = [nbformat.v4.new_code_cell(source, id=f"cell-{number}") for number, source in enumerate(cells)]
    nbformat.write(made, path)


@contextmanager
def jupyterlab(source: Path, folder: Path) -> Iterator[str]:
    """Starts JupyterLab on copies of the notebooks in `source` and yields its address, the token included."""
    log, own = folder.parent / "server.log", folder.parent / "config"
    own.mkdir()
    (own / "jupyter_server_config.json").write_text('{"LabApp": {"expose_app_in_browser": true}}')
    # Settings that a test changes, such as the theme, are not the settings of the user who runs the tests.
    env = os.environ | {"JUPYTER_CONFIG_PATH": str(own), "JUPYTERLAB_SETTINGS_DIR": str(own / "settings")}
    with log.open("w") as noise:
        command = [sys.executable, "-c", SERVE, source, folder]
        server = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=noise, text=True)
    try:
        assert server.stdout is not None
        said = next((line for line in server.stdout if "http" in line), "")
        address = re.search(r"http://127\.0\.0\.1:\d+/\S+", said)
        assert address, f"JupyterLab did not start: {log.read_text()[-2000:]}"
        yield address[0]
    finally:
        server.terminate()
        server.wait()


# Brings a viewer into view and counts the lines of its journal that are empty though there is a record for them.
GAPS = """async (kc) => {
    kc.scrollIntoView({ block: 'center' });
    for (let frame = 0; frame < 4; frame++) await new Promise(requestAnimationFrame);
    const box = kc.querySelector('.kc-journal'), { top } = box.getBoundingClientRect(), line = 21;
    const inSight = (middles) => middles.filter((y) => y > 0 && y < box.clientHeight).length;
    const count = Math.round(box.firstChild.offsetHeight / line);
    const all = Array.from({ length: count }, (_, i) => (i + 0.5) * line - box.scrollTop);
    const drawn = [...box.querySelectorAll('.kc-line')].map((row) => row.getBoundingClientRect().top + line / 2 - top);
    return inSight(all) - inSight(drawn);
}"""


# `window.openNotebook()` is the open notebook of JupyterLab.
OPEN_NOTEBOOK = """window.openNotebook = () =>
    [...window.jupyterapp.shell.widgets('main')].find((widget) => widget.content?.model?.cells);"""


# The id of the active cell of the open notebook.
ACTIVE = """() => {
    const panel = window.openNotebook();
    return panel.content.activeCell.model.id;
}"""


# The open notebook as its file would have it.
CONTENT = """() => {
    const panel = window.openNotebook();
    return panel.content.model.toJSON();
}"""


# Opens a notebook in the place of the open one, whose kernel ends, and waits for its kernel.
OPEN_INSTEAD = """async (name) => {
    const before = window.openNotebook();
    await before.sessionContext.shutdown();
    before.dispose();
    const after = await window.jupyterapp.commands.execute('docmanager:open', { path: name });
    await Promise.all([after.context.ready, after.sessionContext.ready]);
}"""


# Takes the cells that an earlier test has added, from the given index on, out of the open notebook.
TAKE_OUT = """(first) => {
    const panel = window.openNotebook();
    const { cells, sharedModel } = panel.content.model;
    if (cells.length > first) sharedModel.deleteCellRange(first, cells.length);
}"""


class Desk:
    """A page with a notebook open, and what went on behind it: requests, dialogs and errors."""

    def __init__(self, context: BrowserContext, address: str, name: str) -> None:
        self.page: Page = context.new_page()
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        self.errors: list[str] = []
        self.cells_of_file = 0
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.add_init_script(OPEN_NOTEBOOK)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        base, token = re.sub(r"/lab.*", "", address), address.split("token=")[1]
        self.page.goto(f"{base}/lab/tree/{name}?reset&token={token}")
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")

    def open_instead(self, name: str) -> None:
        """Opens another notebook, as a reader does who goes on to the next chapter; what went on before is forgotten."""
        self.page.evaluate(OPEN_INSTEAD, name)
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")
        self.cells_of_file = 0
        for events in (self.requests, self.dialogs, self.errors):
            events.clear()

    @property
    def outside_requests(self) -> list[str]:
        """The requests of the page to addresses outside this machine."""
        return [url for url in self.requests if not re.match(r"https?://127\.0\.0\.1[:/]|data:|blob:", url)]

    def run_all(self, *, hidden: bool = False) -> None:
        """Run the cells of the file, with `hidden` while another tab is in front, and wait for a viewer that is new."""
        if not hidden:
            self.page.wait_for_function(
                "() => document.querySelector('#jp-main-statusbar').innerText.includes('(ipykernel) | Idle')"
            )
            self.cells_of_file = self.cells_of_file or len(self.content().cells)  # the file has come before its kernel is idle
            self.page.evaluate(TAKE_OUT, self.cells_of_file)
        self.page.evaluate("() => document.querySelectorAll('.kc').forEach((old) => old.classList.add('earlier'))")
        self.command("notebook:run-all-cells", {"activate": not hidden})
        self.page.wait_for_selector(".kc.earlier", state="detached")
        self.page.wait_for_selector(".kc[data-at]", state="attached" if hidden else "visible")

    def content(self) -> nbformat.NotebookNode:
        return nbformat.from_dict(self.page.evaluate(CONTENT))

    def reload(self) -> None:
        """Saves the notebook and loads the page anew; the kernel goes on."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
        self.page.reload()
        self.page.wait_for_selector(".kc[data-at]")

    def command(self, name: str, arguments: dict[str, str | bool]) -> None:
        self.page.evaluate("([name, given]) => { window.jupyterapp.commands.execute(name, given); }", [name, arguments])

    def run_cell(self, source: str) -> None:
        """Writes a line into a new cell at the end and runs it."""
        self.page.locator(".jp-Notebook .jp-Cell").last.locator(".jp-InputArea-prompt").click()
        before = self.page.evaluate(ACTIVE)  # the active cell until the new one is there
        self.command("notebook:insert-cell-below", {})
        self.page.wait_for_function(f"(before) => ({ACTIVE})() !== before", arg=before)
        self.page.locator(".jp-Notebook .jp-Cell.jp-mod-active .cm-content").fill(source)
        self.command("notebook:run-cell", {})

    def use_theme(self, name: str) -> None:
        """Switches JupyterLab's theme and waits until the picture that covers the page meanwhile is gone."""
        self.command("apputils:change-theme", {"theme": name})
        self.page.wait_for_selector(f'body[data-jp-theme-light="{str(name.endswith("Light")).lower()}"]', state="attached")
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")

    @property
    def cells(self) -> int:
        return self.page.locator(".jp-Notebook .jp-Cell").count()

    def finish(self) -> None:
        """Waits until the last cell has been run and the kernel is at rest."""
        self.page.wait_for_function(
            """() => {
                const panel = window.openNotebook();
                const codes = [...panel.content.model.cells].filter((cell) => cell.type === 'code');
                return codes.at(-1).executionCount !== null && panel.sessionContext.session.kernel.status === 'idle';
            }""",
            timeout=LONGEST_CHAPTER_MS,
            polling=200,  # ms; else Chromium draws the page sixty times a second in order to look
        )

    def gaps(self) -> list[int]:
        """How many lines of each viewer's journal are empty though there is a record for them, as one scrolls to it."""
        return [viewer.evaluate(GAPS) for viewer in self.page.locator(".kc").all()]

    def at(self) -> int:
        return int(self.page.locator(".kc").first.get_attribute("data-at") or -1)

    def wait_at(self, index: int) -> None:
        self.page.wait_for_function("(at) => document.querySelector('.kc').dataset.at === String(at)", arg=index)

    def picture(self, name: str) -> None:
        """Keeps a picture of the first viewer among the results."""
        RESULTS.mkdir(parents=True, exist_ok=True)
        self.page.locator(".kc").first.screenshot(path=RESULTS / f"{name}.png")
