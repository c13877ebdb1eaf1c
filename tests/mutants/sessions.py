"""Sessions of pytest that are collected once and whose tests are run one by one, in whatever order and in whichever process."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

MARKS = "not slow and not zookeeper and not spark and not chromium and not kafka and not shared"
ALONE = ["-o", "addopts=", "-s", "-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:xdist", "-m", MARKS]
SLOWER = 10  # times the processor time of a test without a mutation, after which the test does not end
PATIENCE = 20.0  # seconds on top of that


class Failures:
    """A plugin that remembers the first test that failed."""

    def __init__(self) -> None:
        self.first = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.first:
            self.first = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.first:
            self.first = report.nodeid or "the collection of the tests"


class Loop:
    """A plugin that does something of its own with the tests that were collected."""

    def __init__(self, work: Callable[[pytest.Session], None]) -> None:
        self.work = work
        self.problem: BaseException | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        try:
            self.work(session)
        except BaseException as problem:  # pytest would print it and go on
            self.problem = problem
        return True


def collect(root: Path, paths: Sequence[str], failures: Failures, work: Callable[[pytest.Session], None]) -> None:
    os.chdir(root)
    loop = Loop(work)
    pytest.main([*ALONE, f"--rootdir={root}", *paths], plugins=[failures, loop])
    if loop.problem:
        raise loop.problem


def run_one(item: pytest.Item, following: pytest.Item | None) -> None:
    """Run one test; `following` says which fixtures are kept."""
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def first_failure(
    items: Sequence[pytest.Item], seconds: Callable[[str], float], failures: Failures, say: Callable[[str], None]
) -> str:
    """Run tests until one fails and return its name, or "". One that does not end is said at once, and ends the process."""

    def too_long(*_: Any) -> None:
        say(f"{running} does not end")
        os._exit(0)

    signal.signal(signal.SIGPROF, too_long)
    for item, following in itertools.zip_longest(items, items[1:]):
        running = item.nodeid
        signal.setitimer(signal.ITIMER_PROF, PATIENCE + SLOWER * seconds(running))
        run_one(item, following)
        if failures.first:
            break
    signal.setitimer(signal.ITIMER_PROF, 0)
    return failures.first


def in_order(items: Iterable[pytest.Item], names: Sequence[str]) -> list[pytest.Item]:
    """Return the tests with these names, in the order of the names."""
    by_name = {item.nodeid: item for item in items}
    return [by_name[name] for name in names if name in by_name]
