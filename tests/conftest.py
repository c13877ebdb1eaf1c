"""What holds for every test: a test whose part is missing is skipped with the reason, or fails where that part is required."""

import gc
import re
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling

from tests.parts import PARTS, SHARED, parse_required

# A random test that fails once in a while and a deadline on a busy machine are both flakes, so neither is left to chance.
hypothesis.settings.register_profile("kcontrol", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("kcontrol")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--require PARTS`."""
    parser.addoption("--require", default="", metavar="PARTS", help=f"fail where one of these is missing: {', '.join(PARTS)}")


def pytest_configure(config: pytest.Config) -> None:
    """Refuses an unknown part before anything runs, and listens to the signals that tests send to the processes they start."""
    # A shell lets what it starts in the background ignore SIGINT, and nohup SIGHUP; every process below inherits that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        parse_required(config.getoption("--require"))
    except ValueError as problem:
        raise pytest.UsageError(str(problem)) from problem


@cache
def missing(part: str) -> str | None:
    """Why a part is missing, asked once per process."""
    return PARTS[part]()


def require(part: str, config: pytest.Config) -> None:
    """Goes on if the part is there; skips with the reason if not, and fails with it where the part is required."""
    reason = missing(part)
    if reason is None:
        return
    if part in parse_required(config.getoption("--require")):
        pytest.fail(f"{part} is required: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Looks at a test's marks before any of its fixtures starts."""
    for part in PARTS:
        if item.get_closest_marker(part):
            require(part, item.config)


# Where every step of a world is followed by a look at the invariants. The searches look for themselves.
WATCHED = ("core", "golden", "lab", "traces")


# One worker runs all tests of a line, so their browser or Spark starts once; one worker runs any other file, too. The workers
# begin with these lines, in this order, because no file takes so long. The commands of the last line's files start a Java each,
# so at most two sessions of Spark and the Java of a few commands are open.
CHAINS = (r"tests/pipeline/(?!test_(?:cluster|follow|killed_commands)\.)", "tests/browser/", "tests/pipeline/")


def chain(nodeid: str) -> str | None:
    """The first line of CHAINS that has the test; None for a test of another folder."""
    return next((line for line in CHAINS if re.match(line, nodeid)), None)


class ChainsTogether(LoadFileScheduling):
    """Gives a worker all tests of a file or of a line of CHAINS."""

    def _split_scope(self, nodeid: str) -> str:
        return chain(nodeid) or super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ChainsTogether | None:
    """Where xdist is asked to keep files together, keeps the chains together, too."""
    return ChainsTogether(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Spares the garbage collector what was collected: it stays until the end, and one look at all of it takes half a second."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begins with the chains, and gives `invariants_hold` to the tests of the watched folders."""
    items.sort(key=lambda item: (*CHAINS, None).index(chain(item.nodeid)))
    here = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(here).parts[0] if item.path.is_relative_to(here) else ""
        if folder in WATCHED and isinstance(item, pytest.Function) and not item.get_closest_marker("breaks_invariants"):
            item.fixturenames.append("invariants_hold")


@pytest.fixture
def invariants_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step of every world is followed by the invariants it may have broken, and every rest by those that hold at rest."""
    from kcontrol.cluster.world import World
    from kcontrol.search import invariants
    from kcontrol.search.search import report

    step, run = World.step, World.run

    def watched_step(world: World, action: Any) -> None:
        step(world, action)
        if found := invariants.violation(world):
            raise AssertionError(report(world, found))

    def watched_run(world: World, limit: int = 1_000_000) -> int:
        steps = run(world, limit)
        if found := invariants.violation(world, invariants.AT_REST):
            raise AssertionError(report(world, found))
        return steps

    monkeypatch.setattr(World, "step", watched_step)
    monkeypatch.setattr(World, "run", watched_run)


@pytest.fixture(scope="session")
def shared(request: pytest.FixtureRequest) -> Path:
    """The folder of recordings and cases beside the project."""
    require("shared", request.config)
    return SHARED
