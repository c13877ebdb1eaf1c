"""Journals of consumer groups on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lab.group_runs import RUNS, played
from tests.pipeline.spark_tables import made


@pytest.mark.spark
def test_runs_of_groups_on_spark(spark: Any, tmp_path: Path) -> None:
    """Each of the twelve runs has on Spark the states of the group at each broker, and the leaders of the offsets topic."""
    for number, name in enumerate(RUNS):
        played(name).save(tmp_path / f"{number}.jsonl")
    journal = made(spark, tmp_path, "journal")
    journal.createOrReplaceTempView("journal")
    found = spark.sql(
        "SELECT run, node, get_json_object(fields, '$.to') AS to FROM journal WHERE kind = 'group' "
        "ORDER BY run, node, incarnation, seq"
    ).toPandas()
    led = made(spark, tmp_path, "leaderships").toPandas()
    for number, name in enumerate(RUNS):
        records = sorted((r for r in played(name).records if r.kind == "group"), key=lambda record: record.id)
        own = found[found["run"] == str(number)]
        assert list(zip(own["node"], own["to"], strict=True)) == [(r.id.node, r.to_json().fields["to"]) for r in records] != []
        coordinators = led[(led["run"] == str(number)) & (led["partition"] == "__consumer_offsets-0")]
        assert int(coordinators.sort_values("zxid")["leader"].iloc[0]) == 1
