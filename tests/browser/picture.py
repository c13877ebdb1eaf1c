"""`./run python -m tests.browser.picture` makes the README's picture, docs/images/viewer.png, from a run, with Chromium."""

from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from kcontrol import Lab
from kcontrol.install.doctor import find_chromium
from kcontrol.lab import record_lookup
from kcontrol.views.html_page import write_html
from tests.parts import ROOT
from tests.views.support import CHROMIUM

PICTURE = ROOT / "docs" / "images" / "viewer.png"
SIZE = {"width": 1180, "height": 1000}


def write_page(path: Path) -> None:
    """Write a page whose first record is the election of a leader, after the death of a leader."""
    with Lab(brokers=3, topics={"orders": [[2, 3, 1], [3, 1, 2], [1, 2, 3]]}, runs=None) as lab:
        lab.kill(2).run()
        records = lab.records
    elected = record_lookup.record(records, "leader of orders-0")
    write_html(records, path, title="A leader dies", at=[record.id for record in records].index(elected.id), theme="light")


def main() -> None:
    """Draw the page, and keep the picture of its viewer."""
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "run.html"
        write_page(page_file)
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM)
        page = browser.new_page(viewport=SIZE)
        page.goto(page_file.as_uri())
        page.wait_for_selector(".kc[data-at]")
        page.locator(".kc").screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
