"""Every chapter in a real JupyterLab: Run All, then a viewer by mouse and keyboard, in both themes; pictures are kept.

Here and nowhere else all chapters run and show what is saved in the repository; in the fast tier nbval runs a few of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Page

from tests.browser.support import RESULTS, Desk, jupyterlab
from tests.notebooks.regen import tidy
from tests.notebooks.sanitizing import outputs
from tests.parts import ROOT

pytestmark = [pytest.mark.chromium, pytest.mark.slow, pytest.mark.zookeeper, pytest.mark.spark]

CHAPTERS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
THEMES = ("JupyterLab Light", "JupyterLab Dark")
WIDTHS = (1360, 1024, 800)
HIGHEST = 15_000  # pixels; Chromium draws no picture that is higher than 16,384
WRONG = '[data-mime-type="application/vnd.jupyter.error"], [data-mime-type="application/vnd.jupyter.stderr"]'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workbook") / "work"


@pytest.fixture(scope="module")
def desk(folder: Path, browser: Browser) -> Iterator[Desk]:
    """A page as large as a laptop's, in a JupyterLab on a learner's copy of the workbook."""
    with jupyterlab(ROOT / "notebooks", folder) as workbook:
        context = browser.new_context(viewport={"width": 1360, "height": 900})
        yield Desk(context, workbook, CHAPTERS[0])
        context.close()


@pytest.fixture
def chapter(desk: Desk, folder: Path, request: pytest.FixtureRequest) -> Desk:
    """A chapter, open in the place of the one before; without the runs of the chapters before, which chapter 17 would show."""
    shutil.rmtree(folder / "runs", ignore_errors=True)
    desk.open_instead(request.param)
    return desk


def gaps(desk: Desk) -> dict[int, list[int]]:
    """Lines that are missing in the journals of the chapter's viewers, at each of three widths, where there are any."""
    before, found = desk.page.viewport_size, {}
    for width in WIDTHS:
        desk.page.set_viewport_size({"width": width, "height": 900})
        found[width] = desk.gaps()
    assert before
    desk.page.set_viewport_size(before)
    return {width: missing for width, missing in found.items() if any(missing)}


def look_at_all(page: Page, name: str) -> None:
    """Scrolls through the page and keeps its picture, or several if it is higher than HIGHEST."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    before, panel = page.viewport_size, page.locator(".jp-WindowedPanel-outer").first
    assert before
    height = panel.evaluate("(e) => e.scrollHeight")
    page.set_viewport_size(before | {"height": min(height, HIGHEST) + before["height"]})
    for number in range(-(-height // HIGHEST)):
        panel.evaluate("(e, y) => e.scrollTo(0, y)", number * HIGHEST)
        page.wait_for_timeout(150)  # the page draws what has come into view
        panel.screenshot(path=RESULTS / f"{name}-{number}.png")
    page.set_viewport_size(before)


def step_through(page: Page) -> None:
    """Steps the first viewer that has a past: to its ends by keyboard, and back by mouse."""
    page.locator('.kc[data-at]:not([data-at="0"])').first.evaluate("(e) => e.id = 'stepped'")
    viewer = page.locator("#stepped")
    viewer.scroll_into_view_if_needed()

    def at() -> int:
        return int(viewer.get_attribute("data-at") or -1)

    last = at()
    viewer.focus()
    page.keyboard.press("Home")
    assert at() == 0
    page.keyboard.press("End")
    assert at() == last
    viewer.locator('button[data-do="back"]').click()
    assert at() < last


@pytest.mark.parametrize("chapter", CHAPTERS, indirect=True, ids=[Path(name).stem[:2] for name in CHAPTERS])
def test_a_chapter_from_its_first_cell_to_its_last(chapter: Desk, request: pytest.FixtureRequest) -> None:
    """Run All shows the saved outputs, journals are whole, a viewer steps by key and mouse, and no request leaves the machine."""
    page, name = chapter.page, request.node.callspec.id
    chapter.run_all()
    chapter.finish()
    saved = nbformat.read(ROOT / "notebooks" / request.node.callspec.params["chapter"], as_version=4)
    assert outputs(tidy(chapter.content())) == outputs(tidy(saved))
    assert page.locator(WRONG).all_inner_texts() == []
    step_through(page)
    shown = page.locator("body").get_attribute("data-jp-theme-name")
    for theme in sorted(THEMES, key=lambda theme: theme != shown):
        chapter.use_theme(theme)
        assert gaps(chapter) == {}, theme
        look_at_all(page, f"chapter-{name}-{theme.split()[-1].lower()}")
    assert (chapter.errors, chapter.dialogs, chapter.outside_requests) == ([], [], [])
