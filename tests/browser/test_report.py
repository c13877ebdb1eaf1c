"""The report about runs in a browser: its links, its width on a small window, both themes, and no request to a network."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from kcontrol.pipeline.report.page import write_report
from kcontrol.pipeline.report.sections import sections
from kcontrol.pipeline.report.tables import read_tables
from tests.pipeline.report_tables import write_tables
from tests.pipeline.test_report import ROWS, RUNS

pytestmark = [pytest.mark.chromium]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page about three runs; one run has a long name."""
    folder = tmp_path_factory.mktemp("report")
    tables = read_tables(write_tables(folder / "tables", ROWS, RUNS | {"20261123-075538-simulated-of-a-learner": [0, 9]}))
    write_report(folder / "report.html", "Report", tables.runs, sections(tables))
    return folder / "report.html"


def test_a_number_leads_to_its_rows(browser: Browser, report: Path) -> None:
    """A click on a number, and on a hatched window, shows its rows with a frame; the page requests nothing else."""
    page = browser.new_page(viewport={"width": 1000, "height": 400})
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.goto(report.as_uri())
    page.locator("#offline ~ .wide td.number a").first.click()
    caption = page.locator(":target")
    assert (caption.text_content(), caption.evaluate("e => getComputedStyle(e).outlineStyle")) == ("reason death: 2", "solid")
    assert caption.evaluate("e => { const top = e.getBoundingClientRect().top; return top >= 0 && top < innerHeight; }")
    page.locator("a:has(rect.off)").nth(2).click()
    assert page.locator("tr:target td").all_text_contents() == ["1.1.7", "t-0", "1,070 ms", "until the end", "1", ""]
    assert {url.split("#")[0] for url in requested} == {report.as_uri()}
    page.close()


@pytest.mark.parametrize(("scheme", "is_dark"), [("light", False), ("dark", True)])
def test_both_themes_fit_a_window_of_600_pixels(browser: Browser, report: Path, scheme: str, is_dark: bool) -> None:
    """The page is not wider than the window, names of runs have room, text is at least 12 px, with a contrast of 4.5."""
    page = browser.new_page(viewport={"width": 600, "height": 800}, color_scheme="dark" if is_dark else "light")
    page.goto(report.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == 600
    names = page.locator("th[scope=row]").evaluate_all("cells => cells.map(e => e.getBoundingClientRect().width)")
    assert min(names) >= 80 and page.locator("tbody th").first.bounding_box()["width"] >= 140  # type: ignore[index]
    assert (
        page.evaluate(
            "Math.min(...[...document.querySelectorAll('td,th,p,span,text')].map(e => parseFloat(getComputedStyle(e).fontSize)))"
        )
        >= 12
    )
    for name in ("a", "p", "h2", "td"):
        colour, behind = page.evaluate(
            f"[getComputedStyle(document.querySelector('{name}')).color, getComputedStyle(document.body).backgroundColor]"
        )
        light, dark = sorted((_luminance(colour), _luminance(behind)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5
    assert (_luminance(page.evaluate("getComputedStyle(document.body).backgroundColor")) < 0.1) == is_dark
    page.close()


def _luminance(colour: str) -> float:
    """Return the relative luminance (WCAG 2) of a colour such as "rgb(1, 2, 3)"."""
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
