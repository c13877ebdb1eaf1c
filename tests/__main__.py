"""`./run test`: every check and every test, counted in one line.

The fast tier is what a contributor runs; `--all` adds what takes long. Each lint step counts as one check, each cell of a
notebook as one test. Nothing may be left running at the end, which is a check too.
"""

import contextlib
import os
import resource
import secrets
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import psutil
import typer

from tests.durations import RESULTS, Case, cases
from tests.parts import ROOT, parse_required

MARK = "KCONTROL_TEST_RUN"
MOST_WORKERS = 8
"""Each worker collects all tests, which takes about 8 processor seconds, and 20 the first time."""
NO_TESTS_COLLECTED = 5
SLOWEST = 10
FAST_CHAPTERS = ("03-*", "13-*")
"""The notebooks whose cells nbval runs in the fast tier. In `--all` the browser runs every chapter and compares its outputs."""
LINT = (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"], ["lint-imports"])


@dataclass
class Tally:
    """How many checks and tests have passed, failed or were skipped; `tests` are those of the report."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    tests: list[Case] = field(default_factory=list)

    def count(self, *, ok: bool) -> None:
        self.passed += ok
        self.failed += not ok

    def add_report(self, path: Path) -> int:
        """Adds the tests of a report and returns how many of them failed."""
        self.tests = cases(path)
        outcomes = Counter(case.outcome for case in self.tests)
        self.passed += outcomes["passed"]
        self.failed += outcomes["failed"]
        self.skipped += outcomes["skipped"]
        return outcomes["failed"]


def processor_s() -> float:
    """The processor seconds of all processes that this one has started and that have ended, with those below them."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@contextlib.contextmanager
def section(title: str) -> Iterator[None]:
    """Prints a heading, and at the end how long it took, by the clock and by the processors."""
    print(f"\n== {title}", flush=True)
    began, used = time.monotonic(), processor_s()
    yield
    print(f"== {title}: {time.monotonic() - began:.1f} s, {processor_s() - used:.1f} processor seconds", flush=True)


def run(command: list[str]) -> int:
    """Runs one of the environment's tools in the project's folder and returns its exit status."""
    program = Path(sys.executable).parent / command[0]
    return subprocess.run([program, *command[1:]], cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode


def workers() -> int:
    """One worker for each core that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, MOST_WORKERS))


def pytest(tally: Tally, tier: str, required: str) -> None:
    """Run a tier and the notebooks' cells, and count: one failed check if pytest ends with an error and no test has failed."""
    report = RESULTS / "tests.xml"
    plugins = ["-p", "tests.processor_time", "-p", "tests.notebooks.plugin"]
    nbval = ["--nbval", "--nbval-current-env", "--nbval-sanitize-with", "tests/notebooks/sanitize.cfg"]
    # conftest.py decides what one worker runs together, and what comes first.
    side_by_side = ["-n", str(workers()), "--dist", "loadfile", "--no-loadscope-reorder"]
    chapters = [str(path) for name in FAST_CHAPTERS if tier for path in sorted((ROOT / "notebooks").glob(f"{name}.ipynb"))]
    with section("tests"):
        status = run([
            "pytest", "--quiet", "tests", *chapters, f"--require={required}", f"--junit-xml={report}", *plugins, *nbval,
            *side_by_side, "-m", tier,
        ])  # fmt: skip
        failed = tally.add_report(report) if report.exists() else 0
        if status not in {0, NO_TESTS_COLLECTED} and not failed:
            print(f"pytest ended with status {status}", flush=True)
            tally.count(ok=False)


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
    """Lint, then test; `tier` is an expression of marks ("not slow", "" for all), `required` names parts ("zookeeper,spark")."""
    with section("ruff, mypy, lint-imports"), ThreadPoolExecutor() as pool:
        for status in pool.map(run, LINT):
            tally.count(ok=status == 0)
    pytest(tally, tier, required)


def print_times(tests: list[Case]) -> None:
    """Prints the tests and processor seconds of each part, and of the files that take longest."""
    for title, key, most in (("part", "part", len(tests)), ("slowest file", "file", SLOWEST)):
        count, seconds = Counter[str](), Counter[str]()
        for case in tests:
            name = getattr(case, key)
            count[name] += 1
            seconds[name] += case.processor_s
        print(f"\nprocessor s    tests  {title}")
        for name, used in seconds.most_common(most):
            print(f"{used:11.1f} {count[name]:8}  {name}")


def keep_bytecode() -> None:
    """Keep the bytecode in the folder `.cache`, for later runs too, if the environment forbids bytecode beside the sources."""
    # Hundreds of tests start a Python process. Without bytecode each of these processes compiles pandas and all that it imports
    # again, which takes 1.5 s of CPU time; each worker compiles all tests, which takes 12 s.
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / ".cache" / "bytecode")


def main(
    context: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Everything, the slow tests too.")] = False,
    require: Annotated[str, typer.Option(metavar="PARTS", help="Parts that must be there, such as zookeeper,spark.")] = "",
) -> None:
    """Passes the fast tier of the tests, or all of them."""
    try:
        parse_required(require)
        if context.args:
            raise ValueError(f"{context.args[0]!r} is nothing that ./run test takes: use --all or --require PARTS, or neither.")
    except ValueError as problem:
        print(f"kcontrol: {problem}", file=sys.stderr)
        raise typer.Exit(2) from problem
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir()
    mark = secrets.token_hex(16)
    os.environ[MARK] = mark
    keep_bytecode()
    tally, began = Tally(), time.monotonic()
    try:
        run_everything(tally, "" if every else "not slow", require)
    finally:
        check_nothing_left(tally, mark)
    print_times(tally.tests)
    print(f"\n{time.monotonic() - began:.0f} s, {processor_s():.0f} processor seconds in all")
    print(f"total: {tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped", flush=True)
    raise typer.Exit(1 if tally.failed or not tally.passed else 0)


app = typer.Typer(add_completion=False)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(main)

if __name__ == "__main__":
    app()
