"""A learner's copy in a real JupyterLab: no output before its run, and questions answered by mouse and by keyboard."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page

from kcontrol.install import progress
from tests.browser.support import RESULTS, Desk, jupyterlab, notebook
from tests.parts import ROOT

pytestmark = [pytest.mark.chromium]

WIDTHS = (1360, 1024, 800)
CHAPTERS = ("00", "05", "09")
SHORT = [
    "from kcontrol import Lab, exercises\nlab = Lab(brokers=[4, 1, 2, 3], topics={'t': [[1, 2, 3]]}, runs=None)",
    "exercises.predict('leader-after-1-dies', lab)",
    "lab.kill(1).run()\nexercises.outcome('leader-after-1-dies')\nlab",
]
THEMES = ("JupyterLab Light", "JupyterLab Dark")
SIGNS = ("✓", "✗")
RIGHT, WRONG = "Broker 2, the next of the assignment.", "Broker 3, the last one of the list."

# How many code cells the open notebook has, drawn or not, and how many outputs and run numbers.
SHOWN = """() => {
    const panel = window.openNotebook();
    if (!panel) return [0, 0];
    const codes = [...panel.content.model.cells].filter((cell) => cell.type === 'code');
    const shown = codes.map((cell) => cell.outputs.length + (cell.executionCount === null ? 0 : 1));
    return [codes.length, shown.reduce((sum, count) => sum + count, 0)];
}"""
# The id of the cell that Shift+Enter runs next: the active one, where the notebook takes keys.
NEXT = """() => {
    const panel = window.openNotebook();
    return panel.content.node.contains(document.activeElement) ? panel.content.activeCell.model.id : '';
}"""
# Whether any text of an element is cut: by itself or by one of the boxes around it, up to the page.
CUT = """(node) => {
    const own = node.getBoundingClientRect();
    const boxes = [node, ...node.querySelectorAll('*')];
    for (let up = node.parentElement; up && !up.classList.contains('jp-WindowedPanel-outer'); up = up.parentElement) {
        const around = up.getBoundingClientRect();
        const outside = own.left < around.left - 1 || own.right > around.right + 1;
        if (outside && getComputedStyle(up).overflow !== 'visible') return true;
    }
    return boxes.some((box) => box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).display !== 'inline');
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("questions") / "work"


@pytest.fixture(scope="module")
def workbook(folder: Path) -> Iterator[str]:
    """The address of a JupyterLab on a learner's copy of three chapters and of a short one."""
    source = folder.parent / "source"
    source.mkdir()
    for path in (path for chapter in CHAPTERS for path in (ROOT / "notebooks").glob(f"{chapter}-*.ipynb")):
        shutil.copy(path, source)
    notebook(source / "short-chapter.ipynb", SHORT)
    with jupyterlab(source, folder) as address:
        yield address


@pytest.fixture
def opened(workbook: str, folder: Path, browser: Browser) -> Iterator[Callable[[str], Desk]]:
    """Opens a chapter by how its name begins, on a page of a laptop's size; no answer is kept, and no page shows an error."""
    (folder / progress.FILE).unlink(missing_ok=True)
    context = browser.new_context(viewport={"width": 1360, "height": 900})
    desks: list[Desk] = []

    def open_one(chapter: str) -> Desk:
        name = next(folder.glob(f"{chapter}-*.ipynb")).name
        desks.append(Desk(context, workbook, name))
        return desks[-1]

    yield open_one
    assert [(desk.errors, desk.dialogs) for desk in desks] == [([], [])] * len(desks)
    for desk in desks:
        desk.command("notebook:shutdown-kernel", {})
    context.close()


# Whether the cell with this id has been run to its end, and what it is written in.
RUN = """(id) => {
    const panel = window.openNotebook();
    const cell = [...panel.content.model.cells].find((cell) => cell.id === id);
    const ended = cell.type !== 'code' || cell.executionCount !== null && cell.executionState !== 'running';
    return ended ? cell.sharedModel.source : null;
}"""


def shift_enter_to_question(page: Page) -> None:
    """Run cells by Shift+Enter up to the first that asks a question; the kernel counts as idle just after a cell is sent."""
    page.wait_for_function("() => document.querySelector('#jp-main-statusbar').innerText.includes('(ipykernel) | Idle')")
    page.locator(".jp-Notebook .jp-Cell").first.locator(".jp-InputPrompt").click()
    source = ""
    while ".predict(" not in source:
        cell = page.evaluate(NEXT)
        page.keyboard.press("Shift+Enter")
        page.wait_for_function(f"(cell) => ({NEXT})() !== cell", arg=cell)
        source = page.wait_for_function(f"(id) => ({RUN})(id)", arg=cell).json_value()
    page.wait_for_selector(".kc-question")


def option(page: Page, text: str) -> Locator:
    return page.locator(".kc-question").first.get_by_role("button", name=text)


def marks(page: Page) -> list[str]:
    """The signs beside the options of the first question."""
    return [mark for mark in page.locator(".kc-question").first.locator(".kcq-mark").all_text_contents() if mark]


def picture(page: Page, name: str) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=RESULTS / f"{name}.png")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_opens_without_outputs(opened: Callable[[str], Desk], chapter: str) -> None:
    """A learner who opens a chapter finds no output and no number of a run."""
    desk = opened(chapter)
    desk.page.wait_for_function(f"() => ({SHOWN})()[0] >= 20")  # the model is empty until the file has come
    picture(desk.page, f"opened-{chapter}")
    _, shown = desk.page.evaluate(SHOWN)
    assert shown == 0


def test_after_an_answer_shift_enter_runs_the_next_cell(opened: Callable[[str], Desk]) -> None:
    """A click on an option shows no outcome; Shift+Enter then runs the next cell, whose output shows the outcome."""
    page = opened("05").page
    shift_enter_to_question(page)
    below = page.evaluate(NEXT)
    option(page, WRONG).click()
    page.wait_for_selector(f".kc-said:has-text('Your answer: {WRONG} Run the next cells')")
    picture(page, "answered")
    assert page.evaluate(NEXT) == below
    assert option(page, WRONG).get_attribute("aria-pressed") == "true" and marks(page) == []
    assert not any(sign in page.locator(".jp-Notebook").inner_text() for sign in SIGNS)
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector(f".jp-OutputArea-output:has-text('Right is: {RIGHT}')")
    assert page.evaluate(NEXT) != below
    assert (
        option(page, WRONG).locator(".kcq-mark").text_content() == "✗"
        and option(page, RIGHT).locator(".kcq-mark").text_content() == "✓"
    )


def test_a_question_is_answered_by_keyboard(opened: Callable[[str], Desk]) -> None:
    """Tab goes from option to option, letters of the command mode do nothing there, Enter answers, Shift+Enter goes on."""
    desk = opened("05")
    page = desk.page
    shift_enter_to_question(page)
    cells = desk.cells
    page.locator(".kc-option").first.focus()
    passed = []
    for _ in range(4):
        passed.append(page.evaluate("() => document.activeElement.querySelector('.kcq-text')?.textContent"))
        if passed[-1] == RIGHT:
            break
        page.keyboard.press("d")
        page.keyboard.press("d")
        page.keyboard.press("Tab")
    assert passed[-1] == RIGHT and desk.cells == cells, passed
    page.keyboard.press("Enter")
    page.wait_for_selector(f".kc-said:has-text('Your answer: {RIGHT}')")
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector(f".jp-OutputArea-output:has-text('✓ Right Your answer: {RIGHT}')")
    assert marks(page) == ["✓"]


def test_an_answer_after_run_all(opened: Callable[[str], Desk]) -> None:
    """After Run All every outcome is folded in; an answer then brings the output of the run that is there already up to date."""
    desk = opened("short")
    page = desk.page
    desk.run_all()
    desk.finish()
    page.locator(".kc-question").first.scroll_into_view_if_needed()
    page.wait_for_selector(".kc-said:has-text('Not answered yet.')")
    page.wait_for_selector("summary:has-text('Show the outcome')", state="attached")
    assert marks(page) == []
    assert not any(sign in page.locator(".jp-Notebook").inner_text() for sign in SIGNS)
    option(page, RIGHT).click()
    page.wait_for_selector(f".jp-OutputArea-output:has-text('✓ Right Your answer: {RIGHT}')")


@pytest.mark.parametrize("theme", THEMES)
def test_right_and_wrong_differ_in_colour_and_no_option_is_cut(opened: Callable[[str], Desk], theme: str) -> None:
    """The right and the wrong option differ from each other and from the rest in colour; no option is cut at any width."""
    desk = opened("05")
    page = desk.page
    desk.use_theme(theme)
    shift_enter_to_question(page)
    option(page, WRONG).click()
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector(".kc-right")
    options = page.locator(".kc-question").first.locator(".kc-option")
    colours = [one.evaluate("(node) => getComputedStyle(node).borderTopColor") for one in options.all()]
    assert len(colours) == 4 and len(set(colours)) == 3
    sizes = page.locator(".kc-asked, .kcq-text").evaluate_all("(all) => all.map((node) => getComputedStyle(node).fontSize)")
    assert len(set(sizes)) == 1  # also beside a viewer and its style sheet
    for width in (*WIDTHS, 560):
        page.set_viewport_size({"width": width, "height": 900})
        options.first.scroll_into_view_if_needed()
        assert [one.evaluate(CUT) for one in options.all()] == [False] * 4, width
        picture(page, f"question-{theme.split()[-1].lower()}-{width}")
    one_line = options.first.evaluate("(node) => node.offsetHeight")
    page.locator(".kc-question").first.evaluate("(node) => { node.style.width = '160px'; }")
    assert options.first.evaluate("(node) => node.offsetHeight") > one_line and not any(
        one.evaluate(CUT) for one in options.all()
    )
    desk.use_theme(THEMES[0])
