"""Random scenarios on official brokers: our controller does what theirs does."""

from __future__ import annotations

import psutil
import pytest

from tests.oracle.judging import verdict
from tests.oracle.scenarios import scenario

SEED = 20


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize("number", range(3))
def test_our_brokers_do_what_official_ones_do(number: int) -> None:
    """A random scenario, recorded with brokers of 2.8.2 and played by ours, shows no difference; no process is left."""
    before = set(psutil.Process().children(recursive=True))
    assert verdict(scenario("2.8.2", SEED, number), "2.8.2").result.difference is None
    assert set(psutil.Process().children(recursive=True)) <= before
