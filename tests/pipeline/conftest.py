"""One Spark session for all tests of a worker, and runs to read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kcontrol import Lab
from kcontrol.pipeline.gateway import spark_session, stop_spark

# What the fast tier has of Spark: its start, and a table of one run. Each other test of Spark is slow.
FAST = "test_one_run_is_the_same_in_spark_and_in_pandas"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Spark's start takes ten processor seconds, and a query as much as a hundred tests without Spark."""
    if item.get_closest_marker("spark") and item.name != FAST:
        item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    yield spark_session()
    stop_spark()


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a blank and a bracket in its name, and three runs in it."""
    folder = tmp_path_factory.mktemp("a learner's [runs]") / "runs"
    Lab(runs=folder, topics={"t": [[2, 3], [1, 2, 3]]}).kill(1).run().start(1).run().save(folder / "failover.jsonl")
    (first,) = folder.glob("*-simulated.jsonl")
    first.unlink()
    deleted = Lab(runs=folder, topics={"my-topic.x": [[1, 2]]}).zk.delete("/controller").run()
    deleted.branch("by hand").zk.set(
        "/brokers/topics/my-topic.x/partitions/0/state", '{"leader":2,"leader_epoch":7,"isr":[2]}'
    ).run()
    return folder
