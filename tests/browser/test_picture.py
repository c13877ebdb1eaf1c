"""The script of the README's picture draws the record that the picture's text names."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.picture import write_page

pytestmark = pytest.mark.chromium


def test_the_picture_shows_the_election_of_a_leader(browser: Browser, tmp_path: Path) -> None:
    """The page opens at the record in which the controller elects a leader for the partition of the dead one."""
    write_page(tmp_path / "run.html")
    page = browser.new_page()
    page.goto((tmp_path / "run.html").as_uri())
    page.wait_for_selector(".kc[data-at]")
    said = page.locator(".kc-sentence").inner_text()
    page.close()
    assert said.startswith("Broker 1 moves orders-0 from Offline to Online: leader 3, ISR [3, 1], leader epoch 1.")
