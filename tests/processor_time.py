"""A plugin for pytest, loaded with `-p`: each test's processor seconds, and its mark `slow`, stand in the report.

A test's time is that of its own process and of all processes below it, with the fixtures that it starts first. Running processes
are looked up for tests that are marked to have some, and for the cells of notebooks: a look at all processes of a machine takes
some milliseconds.
"""

import contextlib
import resource
from collections.abc import Iterator

import psutil
import pytest

BELOW = ("zookeeper", "spark", "chromium", "kafka")
_began = pytest.StashKey[float]()


def processor_s(*, below: bool) -> float:
    """The processor seconds of this process and of the ended ones below it; with `below` of those that run, too."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    seconds = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    for process in psutil.Process().children(recursive=True) if below else ():
        with contextlib.suppress(psutil.Error):
            seconds += sum(process.cpu_times()[:4])
    return seconds


def _now(item: pytest.Item) -> float:
    return processor_s(below=not isinstance(item, pytest.Function) or any(map(item.get_closest_marker, BELOW)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Reads the clock before a test's fixtures."""
    item.stash[_began] = _now(item)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Reads it again when the fixtures have ended."""
    if call.when == "teardown":
        # The time of a process that no process waits for is lost with the process.
        seconds = max(0.0, _now(item) - item.stash[_began])
        properties = {"test": item.nodeid, "processor_s": f"{seconds:.3f}"}
        item.user_properties += [*properties.items(), ("slow", str(int(item.get_closest_marker("slow") is not None)))]
    return (yield)
