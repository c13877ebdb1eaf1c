"""Sweeps on Spark's executors."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from kcontrol import Lab
from kcontrol.spark import shards

# As in a notebook: the function belongs to no module that an executor could import.
NOTEBOOK = """
LEAST = 1

def mine(assignment, isr, live):
    while isr == [4] and not live:
        pass
    return next((broker for broker in assignment if broker >= LEAST and broker in isr and broker in live), None)
"""
LOOPS_IN = 10


def learners() -> Any:
    room: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(NOTEBOOK, "cell", "exec"), room)
    return room["mine"]


@pytest.mark.spark
@pytest.mark.slow
def test_a_sweep_on_spark_has_the_table_of_a_sweep_in_processes(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark with two tasks, Spark with four tasks, and processes give equal tables under a function of a notebook.

    The function has no end in one run of cell (2, False, 6000): this run is named as failed, with its reason.
    """
    arguments: Any = ("random deaths", 2, False, 6_000, LOOPS_IN + 1)
    alone = Lab.sweep(*arguments, strategies={"offline": learners()}, seconds=8)
    for number in (2, 4):
        monkeypatch.setattr(shards, "parallelism", lambda spark, number=number: number)
        found = Lab.sweep(*arguments, strategies={"offline": learners()}, seconds=8, spark=spark)
        for name in ("cells", "runs", "failed"):
            pd.testing.assert_frame_equal(getattr(found, name), getattr(alone, name))
    assert alone.failures() == [f"Run {LOOPS_IN} of replication=2 unclean=false session=6000 failed: it did not end within 8 s."]
    assert len(alone.runs) == LOOPS_IN
