"""A narrow column, such as a notebook beside JupyterLab's side bar: pictures keep a readable size, and nothing is cut off."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote

import pytest
from playwright.sync_api import Locator

from kcontrol import Lab
from tests.browser.conftest import Open
from tests.browser.support import Desk
from tests.browser.test_html_page import go
from tests.views.support import cluster

pytestmark = [pytest.mark.chromium]

PAGE, COLUMN, WIDE = 600, 300, 1200  # pixels: JupyterLab with its side bar, a page like its notebook, a page with room
READABLE, READABLE_DIAGRAM, READABLE_WHEEL = 640, 440, 300  # pixels: a picture that is wider is not drawn smaller
READABLE_TABLE = 560  # pixels: the same for a table
SIZE = 9  # pixels: a readable font

# The widths of a picture, of the box around it and of what can be scrolled in this box, and the width that the picture asks for.
WIDTHS = """async (picture) => {
    await picture.decode();
    const box = picture.closest('.kc-scroll, .jp-OutputArea-output'), round = Math.round;
    return [round(picture.getBoundingClientRect().width), box.clientWidth, box.scrollWidth, picture.naturalWidth];
}"""
BEYOND = "(box) => box.scrollWidth - box.clientWidth"  # pixels that are out of sight
# Whether an element is inside the box around it, from its left edge to its right edge.
INSIDE = """([node, box]) => {
    const inner = node.getBoundingClientRect(), outer = box.getBoundingClientRect();
    return inner.left >= outer.left - 1 && inner.right <= outer.right + 1;
}"""


def is_inside(node: Locator, box: Locator) -> bool:
    """Whether an element is inside a box."""
    return bool(node.page.evaluate(INSIDE, [node.element_handle(), box.element_handle()]))


@pytest.fixture
def narrow(sit_down: Callable[[str], Desk]) -> Iterator[Desk]:
    """A notebook with pictures and controls, beside JupyterLab's side bar."""
    desk = sit_down("narrow.ipynb")
    desk.finish()
    before = desk.page.viewport_size
    assert before
    desk.page.set_viewport_size({"width": PAGE, "height": 900})
    yield desk
    desk.page.set_viewport_size(before)


def output(desk: Desk, number: int) -> Locator:
    """Scrolls to a cell, by its number from 0, and returns its output."""
    cell = desk.page.locator(".jp-Notebook .jp-CodeCell").nth(number)
    cell.scroll_into_view_if_needed()
    return cell.locator(".jp-OutputArea-output").first


def test_a_group_strip_of_a_notebook_keeps_its_size(narrow: Desk) -> None:
    """A group strip in a narrow notebook is readable, and its output has a scroll bar of its own."""
    width, box, scrolled, own = output(narrow, 1).locator("img").evaluate(WIDTHS)
    assert box < width == READABLE < own
    assert scrolled >= READABLE


def test_a_small_picture_is_not_drawn_larger(narrow: Desk) -> None:
    """A picture whose own width is smaller than that of a readable strip has its own width."""
    width, _, _, own = output(narrow, 2).locator("img").evaluate(WIDTHS)
    assert width == own < READABLE


def test_a_diagram_keeps_a_size_of_its_own(narrow: Desk) -> None:
    """A diagram in a narrow notebook is readable, and smaller than a group strip, because its letters are larger."""
    width, box, scrolled, own = output(narrow, 3).locator("img").evaluate(WIDTHS)
    assert box < width == READABLE_DIAGRAM < own
    assert scrolled >= READABLE_DIAGRAM


def test_the_timing_wheel_is_in_sight(narrow: Desk) -> None:
    """The picture of a purgatory in a narrow notebook is readable, and its output shows the whole wheel without scrolling."""
    picture = output(narrow, 8).locator("img")
    width, box, _, own = picture.evaluate(WIDTHS)
    assert width == READABLE_WHEEL < own and 12 * width / own >= SIZE
    drawn = unquote(picture.get_attribute("src") or "")
    right = max(float(x) for x in re.findall(r"[ML]([0-9.]+) ", drawn))
    assert right * width / own <= box


def test_a_table_of_sentences_is_not_squeezed(narrow: Desk) -> None:
    """A table of sentences in a narrow notebook keeps a readable width, and its output has a scroll bar."""
    table = output(narrow, 10).locator("table")
    width, box = table.evaluate("(table) => [table.offsetWidth, table.parentElement.clientWidth]")
    assert box < width == READABLE_TABLE
    assert table.locator("tbody td").first.evaluate("(cell) => cell.offsetWidth") > READABLE_TABLE / 4


def test_a_printed_line_ends_between_words(narrow: Desk) -> None:
    """A printed line that is longer than a narrow column continues on the next line after a whole word."""
    widths = (
        output(narrow, 9)
        .locator("pre")
        .evaluate(
            """(pre) => {
            const text = pre.firstElementChild?.firstChild ?? pre.firstChild, range = document.createRange(), found = [];
            for (let at = 0; at + 9 <= text.length; at += 10) {
                range.setStart(text, at);
                range.setEnd(text, at + 9);
                found.push(range.getClientRects().length);
            }
            return found;
        }"""
        )
    )
    assert len(widths) == 20 and set(widths) == {1}


def test_an_option_of_a_radio_button_has_several_lines(narrow: Desk) -> None:
    """The options of a radio button end inside the output, and a long option is higher than a short one."""
    options = output(narrow, 4)
    assert is_inside(options.locator("label").last, options)
    short, long = options.locator(".widget-radio-box label").evaluate_all("(all) => all.map((one) => one.offsetHeight)")
    assert long > short
    beside = "(all) => all.map((input) => input.getBoundingClientRect().top - input.parentElement.getBoundingClientRect().top)"
    assert max(options.locator("input").evaluate_all(beside)) < short / 2
    assert options.evaluate(BEYOND) <= 0


def test_a_list_of_choices_ends_inside_its_column(narrow: Desk) -> None:
    """The arrow of a list of choices is inside the output."""
    choices = output(narrow, 5)
    assert is_inside(choices.locator("select"), choices)


def test_a_long_name_in_a_text_has_several_lines(narrow: Desk) -> None:
    """A text with a long name, also one in code font, needs no scrolling sideways."""
    assert output(narrow, 7).evaluate(BEYOND) <= 0


def test_group_strips_of_the_viewer_keep_their_size(open_page: Open) -> None:
    """Both strips of two runs side by side are readable on a narrow page, and have scroll bars; a wide page shows them whole."""
    old, new = (Lab.open(f"{release}/group/leader-leaves") for release in ("0.9.0.1", "2.8.2"))
    page = open_page(old.records, beside=(new.name, new.records, 1))
    pictures = page.locator(".kc-groups img")
    for width, box, scrolled, own in [picture.evaluate(WIDTHS) for picture in pictures.all()]:
        assert width == own < box == scrolled
    page.set_viewport_size({"width": COLUMN, "height": 900})
    found = [picture.evaluate(WIDTHS) for picture in pictures.all()]
    assert len(found) == 2
    for width, box, scrolled, own in found:
        assert box < width == scrolled == READABLE < own


def test_the_line_in_a_group_strip_stays_in_sight(open_page: Open) -> None:
    """On a narrow page the names on the left of the strip are visible first; a step scrolls the strip to the record it shows."""
    run = Lab.open("2.8.2/group/leader-leaves")
    page = open_page(run.records)
    page.set_viewport_size({"width": COLUMN, "height": 900})
    page.locator(".kc-groups img").evaluate(WIDTHS)
    assert page.locator(".kc-groups .kc-scroll").evaluate("(box) => box.scrollLeft") == 0
    for at in (run.group_strip().marks()[2][0], len(run.records) - 1):
        go(page, at)
        assert is_inside(page.locator(".kc-groups .kc-strip-now"), page.locator(".kc-groups .kc-scroll")), at


def test_names_of_partitions_stay_in_sight(open_page: Open) -> None:
    """On a narrow page the table of partitions is scrolled to its last column, and its first column is still visible."""
    page = open_page(list(cluster().journal.records))
    page.set_viewport_size({"width": COLUMN, "height": 900})
    box, names = page.locator(".kc-partitions .kc-scroll"), page.locator(".kc-partitions td.kc-name")
    box.evaluate("(box) => { box.scrollIntoView(); box.scrollLeft = box.scrollWidth; }")
    assert is_inside(page.locator(".kc-partitions td:last-child").first, box)
    assert is_inside(names.first, box)
    over = """(cell) => {
        const { left, top, width, height } = cell.getBoundingClientRect();
        return document.elementFromPoint(left + width / 2, top + height / 2) === cell && cell.scrollWidth <= cell.clientWidth;
    }"""
    assert names.first.evaluate(over)


def test_a_long_name_of_a_partition_is_whole(open_page: Open) -> None:
    """The name of a partition has several lines where its column is narrower."""
    page = open_page(list(cluster(topic="orders_of_all_customers").journal.records))
    for width in (COLUMN, WIDE):
        page.set_viewport_size({"width": width, "height": 900})
        cut = "(all) => all.filter((cell) => cell.scrollWidth > cell.clientWidth).length"
        assert page.locator(".kc-partitions td.kc-name").evaluate_all(cut) == 0, width


def test_both_machines_are_readable(open_page: Open) -> None:
    """On a narrow page one machine is below the other, and their words are readable."""
    page = open_page(list(cluster().journal.records))
    page.set_viewport_size({"width": COLUMN, "height": 900})
    sizes = page.locator(".kc-machine").evaluate_all(
        "(all) => all.map((svg) => 12.5 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)"
    )
    assert len(sizes) == 2 and min(sizes) >= SIZE
    tops = page.locator(".kc-machine-panel").evaluate_all("(all) => all.map((one) => one.getBoundingClientRect())")
    assert tops[1]["top"] >= tops[0]["bottom"]


def test_lines_of_the_journal_can_be_scrolled(open_page: Open) -> None:
    """On a narrow page the journal has room for 45 characters of a line, and a scroll bar."""
    page = open_page(list(cluster().journal.records))
    page.set_viewport_size({"width": COLUMN, "height": 900})
    sheet, box = page.locator(".kc-journal").evaluate("(box) => [box.scrollWidth, box.clientWidth]")
    assert sheet >= 460 > box


def test_the_names_of_runs_side_by_side_are_whole(open_page: Open) -> None:
    """On a narrow page no word of the table of two runs side by side is cut off."""
    old, new = (Lab.open(f"{release}/group/leader-leaves") for release in ("0.9.0.1", "2.8.2"))
    page = open_page(old.records, beside=(new.name, new.records, 1))
    page.set_viewport_size({"width": COLUMN, "height": 900})
    cut = "(all) => all.filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)"
    cells = page.locator(".kc-beside :is(th, td)")
    assert cells.count() > 3 and cells.evaluate_all(cut) == []


def test_requests_under_way_have_their_names(open_page: Open) -> None:
    """On a narrow page the names of requests in flight and of waiting requests are whole."""
    world = cluster()
    world.step(("kill", 1))
    world.run()
    records = list(world.journal.records)
    page = open_page(records)
    page.set_viewport_size({"width": COLUMN, "height": 900})
    go(page, next(at for at, record in reversed([*enumerate(records)]) if record.kind == "receive"))
    cut = "(all) => all.map((chip) => [chip.textContent, chip.scrollWidth > chip.clientWidth])"
    chips = page.locator(".kc-channels .kc-chip").evaluate_all(cut)
    assert chips and not any(is_cut for _, is_cut in chips), chips


def test_the_leader_epoch_stands_below_the_brokers_name(open_page: Open) -> None:
    """On a narrow page, where the records of a replica are below its name, the sign of a leader epoch covers no name."""
    lab = Lab(3, data=True, topics={"t": [[1, 2, 3]]}, runs=None)
    for value in "abcd":
        lab.produce("t-0", value).run()
    page = open_page(lab.records)
    page.set_viewport_size({"width": 264, "height": 900})
    gaps = page.locator(".kc-replica").evaluate_all(
        """(all) => all.map((row) => {
            const name = row.querySelector('.kc-label').getBoundingClientRect();
            const first = row.querySelector('.starts')?.getBoundingClientRect();
            return first && first.left < name.right ? first.top - 11 - name.bottom : null;
        }).filter((gap) => gap !== null)"""
    )
    assert gaps and min(gaps) >= 0, gaps
