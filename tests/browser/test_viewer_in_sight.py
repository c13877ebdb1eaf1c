"""What is in sight without scrolling or clicking: a journal without holes, in every viewer of a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.browser.conftest import TABLES
from tests.browser.support import Desk

pytestmark = [pytest.mark.chromium]

WIDTHS = (1360, 1024, 800)
WHOLE = [0] * 6  # lines missing in each of the notebook's viewers


@pytest.fixture
def many(open_desk: Callable[[str], Desk], sit_down: Callable[[str], Desk]) -> Iterator[Desk]:
    """Six viewers below each other on a small screen, after Run All."""
    page = open_desk("many.ipynb").page
    before = page.viewport_size
    assert before
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    desk = sit_down("many.ipynb")
    desk.finish()
    yield desk
    page.set_viewport_size(before)


def test_every_journal_is_whole_after_run_all(many: Desk) -> None:
    """After Run All, at three widths and in both themes, no viewer's journal has an empty line where a record belongs."""
    assert many.gaps() == WHOLE
    for width in WIDTHS[1:]:
        many.page.set_viewport_size({"width": width, "height": 900})
        assert many.gaps() == WHOLE, width
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        many.use_theme(theme)
        assert many.gaps() == WHOLE, theme


def test_a_journal_is_whole_when_its_tab_comes_to_the_front(many: Desk) -> None:
    """A viewer that is made and stepped while another tab hides it has a whole journal once its tab is in front."""
    many.command("launcher:create", {})
    many.page.wait_for_selector(".kc", state="hidden")
    many.run_all(hidden=True)
    many.finish()
    many.command("docmanager:open", {"path": "many.ipynb"})
    assert many.gaps() == WHOLE


# Where things end up on the screen when the step button stands at its upper edge.
TOGETHER = """async (kc) => {
    kc.querySelector('.kc-actions').scrollIntoView({ block: 'start' });
    for (let frame = 0; frame < 4; frame++) await new Promise(requestAnimationFrame);
    const screen = kc.closest('.jp-WindowedPanel-outer').getBoundingClientRect();
    const inSight = (part) => {
        const { top, bottom } = part.getBoundingClientRect();
        return bottom > top && top >= screen.top - 1 && bottom <= screen.bottom;
    };
    return ['.kc-actions', '.kc-sentence', '.kc-line.here'].map((part) => inSight(kc.querySelector(part)));
}"""


def test_step_and_what_happened_are_seen_together(many: Desk) -> None:
    """On 900 pixels the step button, the headline and the journal's current line are on one screen, with seven brokers too."""
    for width in WIDTHS[:2]:
        many.page.set_viewport_size({"width": width, "height": 900})
        for viewer in many.page.locator(".kc").all():
            assert viewer.evaluate(TOGETHER) == [True, True, True], width


def test_a_run_without_its_cause_comes_into_sight(sit_down: Callable[[str], Desk]) -> None:
    """The comparison that `without this` opens above its button is scrolled to."""
    desk = sit_down("branches.ipynb")
    page = desk.page
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    page.locator(".kc-line").last.click()
    page.locator('.kc button[data-do="click_without"]').click()
    page.wait_for_selector(".kc-beside:not([hidden])")
    page.wait_for_function(
        """() => {
            const at = document.querySelector('.kc-beside').getBoundingClientRect();
            const screen = document.querySelector('.jp-WindowedPanel-outer').getBoundingClientRect();
            return at.top >= screen.top - 1 && at.top < screen.bottom - 100;
        }"""
    )


def test_a_diagram_is_as_wide_as_its_column(sit_down: Callable[[str], Desk]) -> None:
    """A diagram that is wider than the notebook's column is drawn smaller, beside a viewer: no edge of it is out of sight."""
    desk = sit_down("branches.ipynb")
    page = desk.page
    page.set_viewport_size({"width": WIDTHS[1], "height": 900})
    desk.run_cell("lab.diagram('watch_events')")
    page.wait_for_function("() => document.querySelector('.jp-RenderedSVG > img')?.complete")
    own, wide, column = page.locator(".jp-RenderedSVG > img").evaluate(
        "(img) => [img.naturalWidth, img.getBoundingClientRect().width, img.parentElement.clientWidth]"
    )
    assert own > column >= wide > 0, (own, wide, column)


# Every output with a table or source that has to be scrolled sideways, with its width and that of what it shows.
SIDEWAYS = """() => [...document.querySelectorAll('.jp-RenderedHTML, .cm-scroller')]
    .filter((box) => box.scrollWidth > box.clientWidth + 1)
    .map((box) => [box.closest('.jp-Cell').querySelector('.cm-content').innerText.trim(), box.scrollWidth, box.clientWidth])"""


def test_no_table_and_no_source_is_wider_than_a_small_notebook(sit_down: Callable[[str], Desk]) -> None:
    """On a page 1024 pixels wide, with JupyterLab's side bar open, no table and no line of a cell needs scrolling sideways."""
    desk = sit_down("tables.ipynb")
    desk.finish()
    desk.page.set_viewport_size({"width": 1024, "height": 900})
    wide = []
    for cell in desk.page.locator(".jp-Notebook .jp-CodeCell").all():
        cell.scroll_into_view_if_needed()
        wide += desk.page.evaluate(SIDEWAYS)
    assert wide == [] and desk.page.locator("table.dataframe").count() >= len(TABLES)
