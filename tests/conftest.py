"""What holds for every test: a test whose part is missing is skipped with the reason, or fails where that part is required."""

from functools import cache
from pathlib import Path

import hypothesis
import pytest

from tests.parts import PARTS, SHARED, parse_required

# A random test that fails once in a while and a deadline on a busy machine are both flakes, so neither is left to chance.
hypothesis.settings.register_profile("kcontrol", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("kcontrol")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--require PARTS`."""
    parser.addoption("--require", default="", metavar="PARTS", help=f"fail where one of these is missing: {', '.join(PARTS)}")


def pytest_configure(config: pytest.Config) -> None:
    """Refuses an unknown part before anything runs."""
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


@pytest.fixture(scope="session")
def shared(request: pytest.FixtureRequest) -> Path:
    """The folder of recordings and cases beside the project."""
    require("shared", request.config)
    return SHARED
