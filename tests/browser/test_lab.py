"""The viewer in a real JupyterLab: stepped by mouse and keyboard, in both themes, with a topic whose name is markup."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kcontrol.views.viewer import Viewer
from tests.browser.support import Desk
from tests.views.support import NASTY

pytestmark = [pytest.mark.chromium]


def test_stepped_by_mouse(desk: Desk) -> None:
    """A fault from the menu and `run` go to Python and come back as new records; the picture follows."""
    page, begun = desk.page, desk.at()
    page.locator(".kc-faults > summary").click()
    desk.picture("faults-open")
    page.get_by_role("button", name="kill broker 1", exact=True).click()
    desk.wait_at(begun + 1)
    assert page.locator(".kc-broker.dead b").inner_text() == "broker 1"
    page.locator('.kc button[data-do="click_run"]').click()
    page.wait_for_function("() => document.querySelector('.kc .kc-actions').textContent.includes('quiet')")
    assert desk.at() > begun + 100
    assert "broker 2" in page.locator(".kc-broker.rules b").inner_text()
    assert page.locator(".kc-partitions tbody tr").count() == 3
    desk.picture("after-a-death-light")
    desk.use_theme("JupyterLab Dark")
    desk.picture("after-a-death-dark")
    desk.use_theme("JupyterLab Light")


def test_stepped_by_keyboard(desk: Desk) -> None:
    """Arrows step, with shift they go from fault to fault, Home and End to the ends; `every record` shows the rest."""
    page, last = desk.page, desk.at()
    page.locator(".kc").first.focus()
    page.keyboard.press("Shift+ArrowLeft")
    page.wait_for_function("() => document.querySelector('.kc-line.here .kc-kind')?.textContent === 'act'")
    act = desk.at()
    page.keyboard.press("ArrowRight")
    assert desk.at() > act
    page.keyboard.press("ArrowLeft")
    assert desk.at() == act
    page.keyboard.press("Home")
    assert desk.at() == 0
    page.keyboard.press("End")
    assert desk.at() == last
    page.get_by_label("every record").check()
    page.locator(".kc").first.focus()
    page.keyboard.press("ArrowLeft")
    assert desk.at() == last - 1
    assert page.locator(".kc-sentence").get_attribute("aria-live") == "polite"
    assert page.locator(".kc-sentence").inner_text() == page.locator(".kc-line.here .kc-say").inner_text()


@pytest.mark.parametrize("name", ["back", "click_step", "why"])
def test_keys_of_jupyterlab_do_nothing_on_a_button(desk: Desk, name: str) -> None:
    """With a button of the viewer focused, `d d`, `a`, `b` and `x` neither delete nor make cells."""
    page, before = desk.page, desk.cells
    page.locator(f'.kc button[data-do="{name}"]:visible').first.focus()
    for key in "ddxxabm":
        page.keyboard.press(key)
    page.locator(".kc").first.focus()
    page.keyboard.press("ArrowLeft")  # by then JupyterLab has handled every key before it
    assert desk.cells == before


def test_the_focus_stays(desk: Desk) -> None:
    """A button that was pressed by keyboard has the focus afterwards, also where its action is gone."""
    page = desk.page
    back = page.locator('.kc button[data-do="back"]')
    back.focus()
    for _ in range(3):
        page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.dataset.do") == "back"
    page.locator(".kc-faults > summary").click()
    kill = page.get_by_role("button", name="kill broker 3", exact=True)
    kill.focus()
    page.keyboard.press("Enter")
    kill.wait_for(state="detached")
    assert page.evaluate("document.activeElement.closest('.kc') !== null")


def test_a_topic_named_as_markup(desk: Desk) -> None:
    """The name stands in the table, the tree, the journal and the chain of causes letter by letter, and makes no element."""
    page = desk.page
    assert page.locator(".kc-partitions td").first.inner_text() == f"{NASTY}-0"
    assert page.locator(".kc-tree .kc-path", has_text=NASTY).count() > 0
    page.locator('.kc button[data-do="previous_fault"]').click()
    page.locator(".kc-line.here", has_text=NASTY).click()
    page.wait_for_selector(".kc-chain li")
    assert page.locator(".kc-chain", has_text=NASTY).count() == 1
    assert page.locator(".kc img").count() == 0
    desk.picture("why")


def test_stepping_while_the_kernel_works(sit_down: Callable[[str], Desk], lab_folder: Path) -> None:
    """While a cell runs, going back and forth needs no kernel; a click that needs it waits and says so."""
    desk = sit_down("busy.ipynb")
    page, last = desk.page, desk.at()
    page.locator('.kc button[data-do="previous_fault"]').click()
    assert desk.at() < last
    page.locator('.kc button[data-do="to"]').first.click()
    page.locator('.kc button[data-do="click_step"]').first.click(force=True)
    page.locator(".kc-faults > summary").click()
    page.get_by_role("button", name="kill broker 2", exact=True).click()
    assert page.locator(".kc-actions").get_attribute("aria-busy") == "true"
    (lab_folder / "go").touch()
    desk.wait_at(last + 1)
    page.wait_for_function("() => document.querySelector('.kc-actions').getAttribute('aria-busy') === 'false'")


def test_records_that_come_before_the_picture(sit_down: Callable[[str], Desk]) -> None:
    """What happens between making a viewer and showing it is in the picture, in each of its views and after a reload."""
    desk = sit_down("late.ipynb")
    page = desk.page
    for reloaded in (False, True):
        if reloaded:
            desk.reload()
        page.wait_for_function("() => document.querySelectorAll('.kc[data-at]').length === 2")
        places = page.locator(".kc-place").all_inner_texts()
        assert len(places) == 2
        assert places[0] == places[1]
        here, count = re.findall(r"\d+", places[0])[:2]
        assert here == count
    page.locator('.kc button[data-do="previous_fault"]').first.click()
    assert len(set(page.evaluate("[...document.querySelectorAll('.kc')].map((e) => e.dataset.at)"))) == 1


def test_what_goes_wrong_is_shown(desk: Desk) -> None:
    """An act that the world refuses is said where it was asked for, and the next success takes it away."""
    page = desk.page
    page.locator(".kc-faults > summary").click()
    kill = page.get_by_role("button", name="kill broker 2", exact=True)
    # Two wishes at once: when Python comes to the second one, the broker is dead already.
    kill.evaluate("(b) => { b.click(); b.setAttribute('aria-disabled', 'false'); b.click(); }")
    page.wait_for_selector(".kc-error:not([hidden])")
    assert "Broker 2 is not running" in page.locator(".kc-error").inner_text()
    desk.picture("error")
    kill.wait_for(state="detached")
    page.locator(".kc-faults > summary").click()
    page.get_by_role("button", name="start broker 2", exact=True).click()
    page.wait_for_selector(".kc-error", state="hidden")


def test_every_button_has_a_method(sit_down: Callable[[str], Desk]) -> None:
    """Each button and each choice names a public method of the viewer, and every method that stands for one has one."""
    page = sit_down("branches.ipynb").page
    page.locator(".kc-line").first.click()
    names = page.evaluate(
        "[...document.querySelectorAll('.kc :is(button, select)')].map((b) => b.dataset.do ?? `nameless: ${b.textContent}`)"
    )
    assert set(names) == {
        *("previous_fault", "back", "forward", "next_fault", "to", "why", "click_step", "click_run"),
        *("click_switch", "click_branch", "click_without", "click_compare"),
    }
    assert all(callable(getattr(Viewer, name)) and Viewer.__dict__[name].__doc__ for name in names)


def test_branches_by_mouse_and_keyboard(sit_down: Callable[[str], Desk]) -> None:
    """A branch is made by its name and Enter, put beside the other one, switched away from; a death is played without."""
    desk = sit_down("branches.ipynb")
    page, begun = desk.page, desk.at()
    field = page.locator(".kc-field")
    field.fill("<b>what if</b>")
    field.press("ArrowLeft")
    assert desk.at() == begun
    field.press("Enter")
    page.wait_for_function("() => document.querySelector('.kc-select').value === '<b>what if</b>'")
    page.locator(".kc-faults > summary").click()
    page.get_by_role("button", name="kill broker 1", exact=True).click()
    desk.wait_at(begun + 1)
    page.locator('.kc button[data-do="click_run"]').click()
    page.locator('.kc select[data-do="click_compare"]').select_option("main")
    page.wait_for_selector(".kc-beside:not([hidden]) tr.differs")
    assert page.locator(".kc-parted").inner_text().startswith("The first difference is record ")
    page.wait_for_function("() => document.querySelector('.kc-actions').textContent.includes('quiet')")
    differing = page.locator(".kc-beside tr.kc-of-partitions.differs .kc-name").all_inner_texts()
    assert differing == ["orders-0", "orders-1"]
    desk.picture("beside-light")
    desk.use_theme("JupyterLab Dark")
    desk.picture("beside-dark")
    desk.use_theme("JupyterLab Light")
    page.locator(".kc-line").last.click()
    page.locator('.kc button[data-do="click_without"]').click()
    page.locator(".kc-beside th", has_text="without: kill broker 1").wait_for()
    page.locator('.kc select[data-do="click_switch"]').select_option("main")
    page.wait_for_function("(at) => document.querySelector('.kc').dataset.at === String(at)", arg=begun)
    assert page.locator(".kc-beside:visible, .kc b:has-text('what if') b").count() == 0


def test_python_moves_the_picture(desk: Desk) -> None:
    """What a cell sets is what every view shows: a place, a chain of causes, a question that holds the buttons."""
    page = desk.page
    desk.run_cell("viewer.to(100); viewer.why(100); viewer.held = 'Answer first.'; world.step(('kill', 3))")
    page.wait_for_selector(".kc-chain li")
    desk.wait_at(100)
    assert page.locator(".kc-held").inner_text() == "Answer first."
    assert page.locator('.kc button[data-do="click_step"]').first.get_attribute("aria-disabled") == "true"
    desk.run_cell("viewer.refresh(); viewer.held = ''")
    page.wait_for_function("() => document.querySelector('.kc-sentence').textContent.startsWith('Broker 3 is killed')")
    page.wait_for_selector('.kc button[data-do="click_step"][aria-disabled="false"]')


def test_python_knows_where_the_reader_is(desk: Desk) -> None:
    """The place to which one has gone by keyboard is the viewer's in the next cell, and in its still picture."""
    page = desk.page
    page.locator(".kc").first.focus()
    page.keyboard.press("Shift+ArrowLeft")
    page.wait_for_function("() => document.querySelector('.kc-line.here .kc-kind')?.textContent === 'act'")
    here = desk.at()
    desk.run_cell("print('the reader is at', viewer.at, viewer.line())")
    page.wait_for_selector(f"text=the reader is at {here} ")


# Lets JupyterLab wait this many ms before it inserts a cell, as a busy machine does.
SLOW_INSERTION = """(ms) => {
    const commands = window.jupyterapp.commands, execute = commands.execute.bind(commands);
    commands.execute = async (name, given) => {
        if (name === 'notebook:insert-cell-below') await new Promise((done) => setTimeout(done, ms));
        return execute(name, given);
    };
}"""


def test_a_line_is_written_into_the_cell_that_was_inserted_for_it(desk: Desk) -> None:
    """What a test runs in a new cell stands there, and leaves the cell above as it was, however slow JupyterLab inserts it."""
    # The next run of all cells begins without the new cell.
    page, cells = desk.page, desk.cells
    page.evaluate(SLOW_INSERTION, 1000)
    desk.run_cell("print('in the', 'new cell')")
    page.wait_for_selector("text=in the new cell")
    assert desk.cells == cells + 1
    page.evaluate("() => { delete window.jupyterapp.commands.execute; }")  # the class has the real one
    desk.run_all()
    assert desk.cells == cells
