"""Broker logs that are larger than the memory: the parts in which lines are sorted, and in which records are written."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from kcontrol.pipeline.log_journal import fact_lines, run_rows
from kcontrol.pipeline.log_journal.fact_lines import Logs
from kcontrol.pipeline.log_journal.log_line import Line
from kcontrol.pipeline.log_journal.releases import WORDINGS
from kcontrol.pipeline.log_journal.to_journal import to_journal
from kcontrol.pipeline.logs import log_tables
from kcontrol.pipeline.logs.files import LogFile

SCHEMA = "file STRING, n BIGINT, kind STRING, facts MAP<STRING, STRING>, broker INT, local_time TIMESTAMP_NTZ, time_utc TIMESTAMP"


def moves() -> list[Line]:
    """Return the lines of two transitions of each of three partitions, of which the second writes a leadership."""
    known = {"controller": 1, "epoch": 4, "topic": "t"}
    state = {"leader": 1, "isr": [1], "leader_epoch": 0, "zk_version": 0}
    steps = [("NonExistentPartition", "NewPartition", {}), ("NewPartition", "OnlinePartition", state)]
    facts = [
        known | {"partition": partition, "from_state": source, "to_state": target} | more
        for partition in range(3)
        for source, target, more in steps
    ]
    return [Line("state-change.log", n, 1000 + n, "partition_transition", found, 1) for n, found in enumerate(facts, 1)]


def test_records_are_written_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of the table `journal` has all records in order, in row groups of BATCH rows; the last group has the rest."""
    monkeypatch.setattr(run_rows, "BATCH", 4)
    records = list(to_journal(moves(), "2.8", [1]))
    run_rows.write_rows(records, tmp_path)
    file = parquet.ParquetFile(tmp_path / "journal" / run_rows.FILE)
    assert file.read()["id"].to_pylist() == [str(record.id) for record in records]
    sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert sizes == [4, 4, 4, 3]


def test_only_the_table_of_transitions_has_transitions_that_write_nothing(tmp_path: Path) -> None:
    """`transitions` has every transition; NARROW has the three that write a leadership, and all records of other kinds."""
    records = list(to_journal(moves(), "2.8", [1]))
    assert run_rows.write_rows(records, tmp_path) == {record.kind for record in records}
    transitions, narrow = (parquet.read_table(tmp_path / name).to_pylist() for name in ("transitions", run_rows.NARROW))
    changes = [n for n, record in enumerate(records, 1) if record.kind == "change"]
    assert [row["n"] for row in transitions] == changes and len(changes) == 6
    written = [n for n in changes if records[n - 1].fields["write"]]
    assert [row["n"] for row in narrow if row["kind"] == "change"] == written and len(written) == 3
    assert len(narrow) == len(records) - 3


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("slot_lines", [1, 500_000])
def test_lines_come_in_the_order_of_time(slot_lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any) -> None:
    """Lines of two files come by time, then by file and number, in one slot of time or several; no file is read out of order."""
    monkeypatch.setattr(fact_lines, "SLOT_LINES", slot_lines)
    times = {"/logs/a": [*range(0, 12_000, 1000), 500], "/logs/b": [250, 11_000]}
    rows = [
        (file, n, "kind", {"broker": "1", "live": "[1,2]"}, 1, datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None), None)
        for file, found in times.items()
        for n, ms in enumerate(found, 1)
    ]
    logs = Logs("2.8", [1], False, spark.createDataFrame(rows, SCHEMA), "/logs")
    found = list(logs.lines(tmp_path))
    first = [(n * 1000, "a", n + 1) for n in range(12)]
    expected = [first[0], (250, "b", 1), *first[1:], (11_000, "a", 13), (11_000, "b", 2)]
    assert [(line.at_ms, line.file, line.n) for line in found] == expected
    assert found[0].facts == {"broker": 1, "live": [1, 2]} and list(tmp_path.iterdir()) == []


def test_the_part_of_a_wording_stands_in_its_regular_expression() -> None:
    """A text that matches the regular expression of a wording has the wording's part."""
    assert [part for part, pattern, *_ in WORDINGS if part not in pattern.replace("\\", "")] == []


@pytest.mark.spark
def test_many_lines_are_sorted_in_small_partitions(spark: Any) -> None:
    """Files with 1,000,000 lines are sorted in four partitions; small files and later queries in the session's number."""
    usual = spark.conf.get(log_tables.PARTITIONS)
    large, small = (LogFile(Path("server.log"), Path("server.log"), lines, []) for lines in (500_000, 10))
    with log_tables.small_partitions(spark, [large, large]):
        assert spark.conf.get(log_tables.PARTITIONS) == "4" != usual
        rows = spark.range(100).selectExpr("id % 7 AS rest").groupBy("rest").count()
        assert rows.rdd.getNumPartitions() == 4
    with log_tables.small_partitions(spark, [small]):
        assert spark.conf.get(log_tables.PARTITIONS) == usual
    assert spark.conf.get(log_tables.PARTITIONS) == usual
