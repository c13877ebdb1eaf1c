"""`./run test`: every check and every test, counted in one line.

The fast tier is what a contributor runs; `--all` adds what takes long. Each lint step counts as one check, each cell of a
notebook as one test. Nothing may be left running at the end, which is a check too.
"""

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import psutil
import typer

from tests.parts import ROOT, parse_required

RESULTS = ROOT / "tests" / ".results"
MARK = "KCONTROL_TEST_RUN"
WORKERS = "2"
NO_TESTS_COLLECTED = 5
SLOWEST = 10
LINT = {
    "ruff check": ["ruff", "check", "."],
    "ruff format": ["ruff", "format", "--check", "."],
    "mypy": ["mypy"],
    "lint-imports": ["lint-imports"],
}


@dataclass
class Tally:
    """The numbers of checks and tests that have passed, failed or were skipped; `times` has (seconds, name) of each test."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    times: list[tuple[float, str]] = field(default_factory=list)

    def count(self, *, ok: bool) -> None:
        """Counts one check."""
        self.passed += ok
        self.failed += not ok

    def add_report(self, path: Path) -> int:
        """Adds the tests of a JUnit report and returns how many of them failed."""
        failed = 0
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            outcomes = {child.tag for child in case}
            name = f"{case.get('classname', '')}::{case.get('name', '')}"
            self.times.append((float(case.get("time", "0")), name))
            if outcomes & {"failure", "error"}:
                failed += 1
            elif "skipped" in outcomes:
                self.skipped += 1
            else:
                self.passed += 1
        self.failed += failed
        return failed


@contextlib.contextmanager
def section(title: str) -> Iterator[None]:
    """Prints a heading, and at the end how long it took."""
    print(f"\n== {title}", flush=True)
    began = time.monotonic()
    yield
    print(f"== {title}: {time.monotonic() - began:.1f} s", flush=True)


def run(command: list[str]) -> int:
    """Runs one of the environment's tools in the project's folder and returns its exit status."""
    program = Path(sys.executable).parent / command[0]
    return subprocess.run([program, *command[1:]], cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode


def pytest(tally: Tally, title: str, arguments: list[str]) -> None:
    """Runs pytest with these arguments, and counts the tests of its report.

    Counts one failed check if pytest ends with an error although no test of the report has failed.
    """
    report = RESULTS / f"{title.replace(' ', '-')}.xml"
    with section(title):
        status = run(["pytest", "--quiet", f"--junit-xml={report}", *arguments])
        failed = tally.add_report(report) if report.exists() else 0
        if status not in {0, NO_TESTS_COLLECTED} and not failed:
            print(f"{title}: pytest ended with status {status}", flush=True)
            tally.count(ok=False)


def notebooks() -> list[str]:
    """Returns the folders that hold notebooks."""
    return [name for name in ("notebooks", "exercises") if any((ROOT / name).rglob("*.ipynb"))]


def left_running(mark: str) -> list[psutil.Process]:
    """Returns the processes that still run and have `mark` in the environment variable MARK, as all that these tests start."""
    left = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                left.append(process)
    return left


def check_nothing_left(tally: Tally, mark: str) -> None:
    """Counts one check: nothing that the tests started is left. What ends within five seconds was already on its way out."""
    with section("nothing left running"):
        deadline = time.monotonic() + 5
        while (left := left_running(mark)) and time.monotonic() < deadline:
            psutil.wait_procs(left, timeout=0.2)
        for process in left:
            with contextlib.suppress(psutil.Error):
                print(f"left running: {process.pid} {' '.join(process.cmdline())[:200]}", flush=True)
                process.kill()
        tally.count(ok=not left)


def run_everything(tally: Tally, tier: str, required: str) -> None:
    """Runs the lint steps, then the tests side by side, then those that must be alone, then the notebooks.

    `tier` ends pytest's expression of marks: " and not slow" for the fast tier, "" for all tests. `required` are the parts that
    must be there, such as "zookeeper,spark".
    """
    for name, command in LINT.items():
        with section(name):
            tally.count(ok=run(command) == 0)
    common = ["tests", f"--require={required}"]
    pytest(tally, "tests", [*common, "-n", WORKERS, "--dist", "loadfile", "-m", f"not serial{tier}"])
    pytest(tally, "serial tests", [*common, "-m", f"serial{tier}"])
    if found := notebooks():
        nbval = [
            "-p",
            "tests.notebooks.plugin",
            "--nbval",
            "--nbval-current-env",
            "--nbval-sanitize-with",
            "tests/notebooks/sanitize.cfg",
        ]
        pytest(tally, "notebooks", [*found, *nbval, "-n", WORKERS, "--dist", "loadfile"])


def keep_bytecode() -> None:
    """Let the processes of the tests keep their bytecode in RESULTS, if the environment forbids bytecode beside the sources."""
    # Hundreds of tests start a Python process. Without bytecode each of these processes compiles pandas and all that it imports
    # again, which takes 1.5 s of CPU time.
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ["PYTHONPYCACHEPREFIX"] = str(RESULTS / "bytecode")


def main(
    every: Annotated[bool, typer.Option("--all", help="Everything, the slow tests too.")] = False,
    require: Annotated[str, typer.Option(metavar="PARTS", help="Parts that must be there, such as zookeeper,spark.")] = "",
) -> None:
    """Passes the fast tier of the tests, or all of them."""
    try:
        parse_required(require)
    except ValueError as problem:
        raise typer.BadParameter(str(problem), param_hint="--require") from problem
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir()
    mark = secrets.token_hex(16)
    os.environ[MARK] = mark
    keep_bytecode()
    tally, began = Tally(), time.monotonic()
    try:
        run_everything(tally, "" if every else " and not slow", require)
    finally:
        check_nothing_left(tally, mark)
    print("\nThe slowest tests:")
    for seconds, name in sorted(tally.times, reverse=True)[:SLOWEST]:
        print(f"{seconds:8.2f} s  {name}")
    print(f"\n{time.monotonic() - began:.0f} s in all")
    print(f"total: {tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped", flush=True)
    raise typer.Exit(1 if tally.failed or not tally.passed else 0)


if __name__ == "__main__":
    typer.run(main)
