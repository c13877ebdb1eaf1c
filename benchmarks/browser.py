"""Measure the time to the first live picture, and from a click to its paint, in a real JupyterLab.

Usage: python -m benchmarks.browser [--clicks 50]

The paint is the second animation frame after the change of the picture. The viewer's buttons back and forward, which need no
kernel, are compared with its step button, which needs the kernel; both are clicked in one run.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Locator, Page, sync_playwright

from kcontrol.install.doctor import find_chromium
from tests.browser.support import Desk, jupyterlab, notebook
from tests.views.support import CHROMIUM

CELLS = ["from kcontrol import Lab", 'lab = Lab(brokers=3)\nlab.create_topic("t", [[2, 3, 1], [3, 1, 2]]).run()\nlab.kill(2)']
WATCH = """() => {
  const picture = document.querySelector('.kc');
  window.kcPaints = []; window.kcClicked = 0;
  document.addEventListener('click', () => { window.kcClicked = performance.now(); }, true);
  new MutationObserver(() => {
    if (!window.kcClicked) return;
    const clicked = window.kcClicked; window.kcClicked = 0;
    requestAnimationFrame(() => requestAnimationFrame(() => window.kcPaints.push(performance.now() - clicked)));
  }).observe(picture, { attributes: true, attributeFilter: ['data-at'] });
}"""


def clicks(page: Page, buttons: list[Locator], count: int) -> list[float]:
    """Click the buttons in turn, each after the paint of the last click; return the ms of all clicks but the first five."""
    page.evaluate("() => { window.kcPaints = []; }")
    for number in range(count + 5):
        buttons[number % len(buttons)].click()
        page.wait_for_function("(n) => window.kcPaints.length > n", arg=number, polling=5)
    times: list[float] = page.evaluate("window.kcPaints")
    return times[5:]


def say(what: str, times: list[float]) -> None:
    ordered = sorted(times)
    p95 = ordered[int(len(ordered) * 0.95)]
    print(f"{what}: median {statistics.median(ordered):.1f} ms, p95 {p95:.1f} ms over {len(ordered)} clicks")


def measure(folder: Path, count: int) -> None:
    source = folder / "source"
    source.mkdir()
    notebook(source / "bench.ipynb", CELLS)
    began = time.perf_counter()
    with jupyterlab(source, folder / "work") as address, sync_playwright() as playwright:
        print(f"server answers: {time.perf_counter() - began:.1f} s")
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM)
        desk = Desk(browser.new_context(viewport={"width": 1500, "height": 1600}), address, "bench.ipynb")
        print(f"notebook stands: {time.perf_counter() - began:.1f} s")
        desk.run_all()
        print(f"first live picture: {time.perf_counter() - began:.1f} s after the command")
        page = desk.page
        page.evaluate(WATCH)
        viewer = page.locator(".kc").first
        step, back, on = (viewer.locator(f"button[data-do='{name}']").first for name in ("click_step", "back", "forward"))
        through_kernel = clicks(page, [step], 20)
        without = clicks(page, [back, on], count)
        say("click to paint, without the kernel", without)
        say("click to paint, a step of the cluster through the kernel", through_kernel)
        print(f"through the kernel against without: {statistics.median(through_kernel) / statistics.median(without):.1f} times")
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="First live picture, and click to paint.")
    parser.add_argument("--clicks", type=int, default=50)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), chosen.clicks)


if __name__ == "__main__":
    main()
