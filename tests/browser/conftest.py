"""One JupyterLab and one Chromium for all tests of a run; each test has a page of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from kcontrol.lab.doctor import find_chromium
from tests.browser.support import Desk, jupyterlab, notebook
from tests.views.support import CHROMIUM, NASTY

PREPARE = f"""from tests.views.support import OfWorld, cluster
from kcontrol.views.viewer import Viewer
world = cluster(topic={NASTY!r})
viewer = Viewer(OfWorld(world), title="A cluster to break")"""

NOTEBOOKS = {
    "steps.ipynb": [PREPARE, "viewer", "print('below')", "print('further below')"],
    "busy.ipynb": [
        PREPARE,
        "viewer",
        "import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)\nprint('went on')",
    ],
    "late.ipynb": [PREPARE, "world.step(('kill', 1))\nviewer.refresh()\nviewer.click_run()\nviewer", "viewer"],
}


@pytest.fixture(scope="session")
def lab_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The learner's folder."""
    return tmp_path_factory.mktemp("lab") / "work"


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory, lab_folder: Path) -> Iterator[str]:
    """The address of a JupyterLab that serves NOTEBOOKS."""
    source = tmp_path_factory.mktemp("notebooks")
    for name, cells in NOTEBOOKS.items():
        notebook(source / name, cells)
    with jupyterlab(source, lab_folder) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def open_desk(lab: str, browser: Browser) -> Iterator[Callable[[str], Desk]]:
    """Opens a notebook; at the end of a test nothing has gone wrong behind its page, and nobody outside was asked."""
    context = browser.new_context(viewport={"width": 1500, "height": 1600})
    desks: list[Desk] = []

    def open_one(name: str) -> Desk:
        desks.append(Desk(context, lab, name))
        return desks[-1]

    yield open_one
    found = [(desk.errors, desk.dialogs, desk.strangers) for desk in desks]
    context.close()
    assert found == [([], [], [])] * len(desks)


@pytest.fixture
def desk(open_desk: Callable[[str], Desk]) -> Desk:
    """The notebook with a viewer over a world, all cells run."""
    desk = open_desk("steps.ipynb")
    desk.run_all()
    return desk
