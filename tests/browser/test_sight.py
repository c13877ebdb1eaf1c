"""What is in sight without scrolling or clicking: a journal without holes, in every viewer of a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.browser.support import Desk

pytestmark = [pytest.mark.chromium, pytest.mark.serial]

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
