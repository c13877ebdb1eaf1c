"""One JupyterLab and one Chromium for all tests of a run; each test has a page of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from kcontrol.install.doctor import find_chromium
from kcontrol.journal.journal import Record
from kcontrol.views.html_page import write_html
from tests.browser.support import Desk, jupyterlab, notebook
from tests.views.support import CHROMIUM, NASTY

Open = Callable[..., Page]

PREPARE = f"""from tests.views.support import OfWorld, cluster
from kcontrol.views.viewer import Viewer
world = cluster(topic={NASTY!r})
viewer = Viewer(OfWorld(world), title="A cluster to break")"""

TABLES = (
    "lab.partitions()", "lab.brokers()", "lab.tables.replica_log('t-0')", "lab.tables.watch_events(2)",
    "lab.tables.requests()", "lab.tables.replicas()", "lab.tables.event_handlers()", "lab.journal()", "lab.tables.znodes()",
    "lab.tables.partition_history('t-0')", "lab.tables.metrics()", "lab.tables.config()", "rules.elections()",
    "rules.table('design', 'pipelined', 'responds_when_preempted')",
)  # fmt: skip
WAYS = ["kill: the process is dead", "terminate: the process shuts down in order"]
NOTEBOOKS = {
    "steps.ipynb": [PREPARE, "viewer", "print('below')", "print('further below')"],
    "busy.ipynb": [
        PREPARE,
        "viewer",
        "import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)\nprint('went on')",
    ],
    "branches.ipynb": [
        "from kcontrol import Lab\nlab = Lab(3, topics={'orders': [[1, 2, 3], [2, 3, 1]]}, runs=None)",
        "viewer = lab.viewer\nviewer",
    ],
    "many.ipynb": [
        "from kcontrol import Lab\nlabs = [Lab(7, topics={'t': [[1, 2, 3]] * 9}, runs=None) for _ in range(6)]",
        *(f"labs[{n}].viewer" for n in range(6)),
        "for lab in labs: lab.kill(1).run()",
        "for lab in labs: lab.viewer.held = 'Answer first.'",
        "for lab in labs: lab.viewer.held = ''",
    ],
    "tables.ipynb": [
        "from kcontrol import Lab, rules\nlab = Lab(3, data=True, topics={'t': [[2, 3], [1, 2, 3]]}, runs=None)",
        "lab.produce('t-0', 'a').run().produce('t-0', 'b').produce('t-0', 'c').run().kill(1).run()",
        *TABLES,
    ],
    "narrow.ipynb": [
        "from kcontrol import Lab\nlab = Lab.play('billing')\nlab.viewer",
        "lab.group_strip(coordinators=True)",
        "lab.group_matrix()",
        "lab.diagram('replica')",
        f"from ipywidgets import Dropdown, RadioButtons\nRadioButtons(options={WAYS}, layout={{'width': 'max-content'}})",
        "Dropdown(options=['roundrobin, range'], description='bert offers')",
        "from IPython.display import Markdown",
        "Markdown('The error is INCONSISTENT_GROUP_PROTOCOL_OF_A_MEMBER, after `group.initial.rebalance.delay.ms` ms.')",
        "Lab.play('nightly', until='three members').purgatory()",
        "print('partition ' * 20)",
        "lab.tables.invariants()[['sentence', 'when', 'source']].head(3)",
    ],
    "late.ipynb": [PREPARE, "world.step(('kill', 1))\nviewer.refresh()\nviewer.click_run()\nviewer", "viewer"],
}


# What the fast tier has of the browser: a viewer in JupyterLab, in a page and by keyboard, text of markup, and a report.
FAST = (
    "test_stepped_by_mouse", "test_keys_do_what_the_methods_do", "test_a_journal_full_of_markup",
    "test_a_number_leads_to_its_rows",
)  # fmt: skip


def pytest_itemcollected(item: pytest.Item) -> None:
    """A page takes one to five processor seconds, a notebook ten to twenty."""
    if item.get_closest_marker("chromium") and item.name not in FAST:
        item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def lab_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def open_desk(lab: str, browser: Browser) -> Iterator[Callable[[str], Desk]]:
    """Opens a notebook, or goes back to the page on which it is open."""
    context = browser.new_context(viewport={"width": 1500, "height": 1600})
    desks: dict[str, Desk] = {}

    def open_one(name: str) -> Desk:
        if name not in desks:
            desks[name] = Desk(context, lab, name)
        return desks[name]

    yield open_one
    context.close()


@pytest.fixture
def sit_down(open_desk: Callable[[str], Desk]) -> Iterator[Callable[[str], Desk]]:
    """Opens a notebook and runs all its cells anew; at the end no page has an error, a dialog or a request to another machine."""
    used: list[Desk] = []

    def start(name: str) -> Desk:
        used.append(open_desk(name))
        used[-1].run_all()
        return used[-1]

    yield start
    assert [(desk.errors, desk.dialogs, desk.outside_requests) for desk in used] == [([], [], [])] * len(used)


@pytest.fixture
def desk(sit_down: Callable[[str], Desk]) -> Desk:
    """The notebook with a new viewer over a new world."""
    return sit_down("steps.ipynb")


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens a run as a page; at the end nothing has gone wrong in it, and it has asked for nothing but itself."""
    context, wrong = browser.new_context(viewport={"width": 1200, "height": 1000}), []

    def open_one(records: Sequence[Record], **options: Any) -> Page:
        path = tmp_path / "run.html"
        write_html(records, path, **({"title": "A run"} | options))
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: wrong.append(request.url) if request.url != path.as_uri() else None)
        page.goto(path.as_uri())
        page.wait_for_selector(".kc[data-at]")
        return page

    yield open_one
    context.close()
    assert wrong == []
