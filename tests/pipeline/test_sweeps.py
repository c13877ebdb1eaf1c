"""Sweeps on Spark's executors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kcontrol import Lab
from kcontrol.pipeline import shards

# As in a notebook: the function belongs to no module that an executor could import.
NOTEBOOK = """
LEAST = 1

def mine(assignment, isr, live):
    while isr == [4] and not live:
        pass
    return next((broker for broker in assignment if broker >= LEAST and broker in isr and broker in live), None)
"""
LOOPS_IN = 10
ASSIGNOR = """
FIRST = 0

def mine(partitions, members):
    return {sorted(members)[FIRST]: [f"t-{number}" for number in range(partitions["t"])]}
"""


# The command prints the master and the number of tasks of each job that it gives to Spark.
ON_SPARK = """
import sys
from kcontrol.cli import main
from kcontrol.pipeline import shards

flat_mapped = shards.flat_mapped

def shown(spark, function, parts):
    print("Spark job on", spark.sparkContext.master, "with", len(parts), "tasks", flush=True)
    return flat_mapped(spark, function, parts)

shards.flat_mapped = shown
sys.exit(main())
"""


def tasks_of_last_job(spark: Any) -> int:
    """Return the number of tasks that Spark's status names for the first stage of the latest job."""
    status = spark.sparkContext.statusTracker()
    job = status.getJobInfo(max(status.getJobIdsForGroup()))
    return int(status.getStageInfo(job.stageIds[0]).numTasks)


def learners(notebook: str = NOTEBOOK) -> Any:
    room: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(notebook, "cell", "exec"), room)
    return room["mine"]


@pytest.mark.spark
@pytest.mark.slow
def test_a_sweep_on_spark_has_the_table_of_a_sweep_in_processes(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark with two tasks, Spark with four tasks, and processes give equal tables under a function of a notebook."""
    # The function has no end in one run of cell (2, False, 6000): this run is named as failed, with its reason.
    arguments: Any = ("random deaths", 2, False, 6_000, LOOPS_IN + 1)
    alone = Lab.sweep(*arguments, strategies={"offline": learners()}, seconds=8)
    for number in (2, 4):
        monkeypatch.setattr(shards, "parallelism", lambda spark, number=number: number)
        found = Lab.sweep(*arguments, strategies={"offline": learners()}, seconds=8, spark=spark)
        assert tasks_of_last_job(spark) == number
        for name in ("cells", "runs", "failed"):
            pd.testing.assert_frame_equal(getattr(found, name), getattr(alone, name))
    assert alone.failures() == [f"Run {LOOPS_IN} of replication=2 unclean=false session=6000 failed: it did not end within 8 s."]
    assert len(alone.runs) == LOOPS_IN


@pytest.mark.spark
@pytest.mark.slow
def test_an_assignor_of_a_notebook_travels_to_the_executors(spark: Any) -> None:
    """Processes and Spark give equal tables under an assignor of a notebook, and other tables than under the assignor range."""
    arguments: Any = ("consumers come and go", 3, False, 6_000, 3)
    alone, kafkas = Lab.sweep(*arguments, strategies={"assignor": learners(ASSIGNOR)}), Lab.sweep(*arguments)
    found = Lab.sweep(*arguments, strategies={"assignor": learners(ASSIGNOR)}, spark=spark)
    for name in ("cells", "runs", "failed"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(alone, name))
    assert len(found.runs) == 3 and found.runs.moved.tolist() != kafkas.runs.moved.tolist()


@pytest.mark.spark
@pytest.mark.slow
def test_the_command_writes_equal_tables_on_two_and_on_four_cores(tmp_path: Path) -> None:
    """`kcontrol sweep` with an equal seed writes equal tables with --master local[2] and with --master local[4]."""
    tables = []
    for cores in (2, 4):
        out = tmp_path / str(cores)
        options = "--replication", "1,2", "--session", "6000", "--runs", "3", "--seed", "5", "--master", f"local[{cores}]"
        command = (sys.executable, "-c", ON_SPARK, "sweep", "random deaths", *options, "--out", str(out))
        done = subprocess.run(command, check=True, timeout=300, stdout=subprocess.PIPE, text=True)
        assert f"Spark job on local[{cores}] with {cores} tasks\n" in done.stdout
        tables.append({name: pd.read_parquet(out / name) for name in ("cells", "runs", "failed")})
    assert len(tables[0]["runs"]) == 6
    for name, table in tables[0].items():
        pd.testing.assert_frame_equal(table, tables[1][name])
