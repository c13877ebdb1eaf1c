"""A sweep and a search on a standalone Spark cluster: the tables and the run of one machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kcontrol import Lab
from kcontrol.search.museum import MUSEUM
from tests.pipeline.spark_cluster import SparkCluster
from tests.pipeline.test_cluster import COMMAND, cluster, command

__all__ = ["cluster"]  # the fixture

SEARCHES = """
import json, sys
from kcontrol import rules
from kcontrol.spark.gateway import spark_session

found = rules.hunt("fenced_writes", spark=spark_session(sys.argv[-1]))
print(json.dumps([found.states, found.actions, found.engine]), flush=True)
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.serial
def test_a_cluster_gives_the_sweep_and_the_search_of_one_machine(cluster: SparkCluster, tmp_path: Path) -> None:
    """`kcontrol sweep --master` writes the tables of child processes; a search on the cluster finds the run of one process."""
    out = tmp_path / "out"
    arguments = ["sweep", "random deaths", "--replication", "2", "--session", "6000", "--runs", "4", "--out", str(out)]
    with command(SEARCHES + COMMAND, cluster, *arguments) as process:
        printed, problems = process.communicate()
    assert process.returncode == 0, problems
    expected: Any = MUSEUM[0].search()
    states, actions, engine = json.loads(printed.splitlines()[0])
    assert (states, engine) == (expected.states, "quick engine on Spark")
    assert actions == json.loads(json.dumps(expected.actions))
    alone = Lab.sweep("random deaths", 2, False, 6_000, 4)
    for name in ("cells", "runs", "failed"):
        pd.testing.assert_frame_equal(pd.read_parquet(out / name), pd.DataFrame(getattr(alone, name)), check_dtype=False)
