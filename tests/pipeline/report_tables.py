"""A folder of tables of runs, written without Spark, with the columns that a report reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pyarrow.parquet as parquet

from kcontrol.pipeline.logs.log_tables import FORMAT as LOGS
from kcontrol.pipeline.pipeline import FORMAT, MARK
from kcontrol.pipeline.report.tables import EVIDENCE, TABLES

Row = Mapping[str, Any]
TEXTS = {"run", "record", "partition", "reason", "group_id", "ended_by", "ended_in", "kind", "fields", *EVIDENCE}


def write_tables(
    folder: Path, rows: Mapping[str, Sequence[Row]], runs: Mapping[str, Sequence[int | None]], zone: str | None = None
) -> Path:
    """Write the tables of a report and `journal`; missing fields are null. With a `zone` they are tables of broker logs."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text(json.dumps(LOGS if zone else FORMAT))
    about = {"kind": "run", "fields": json.dumps({"zone": zone})}
    journal = [{"run": run, "time_ms": time_ms} | about for run, times in runs.items() for time_ms in times]
    _write(folder / "journal", ["run", "time_ms", "kind", "fields"], journal)
    for name, columns in TABLES.items():
        _write(folder / name, ["run", "n", "record", *columns, *(EVIDENCE if zone else ())], rows.get(name, []))
    return folder


def _write(folder: Path, columns: Sequence[str], rows: Sequence[Row]) -> None:
    folder.mkdir(exist_ok=True)
    schema = arrow.schema([(column, arrow.string() if column in TEXTS else arrow.int64()) for column in columns])
    held = [{column: row.get(column) for column in columns} for row in rows]
    parquet.write_table(arrow.Table.from_pylist(held, schema), folder / "part-0.parquet")


def led(run: str, n: int, partition: str, leader: int) -> Row:
    return {
        "run": run, "n": n, "record": f"1.1.{n}", "partition": partition, "leader": leader, "leader_epoch": n, "time_ms": n * 10,
    }  # fmt: skip


def window(run: str, n: int, partition: str, begin_ms: int | None, end_ms: int | None, reason: str = "death") -> Row:
    length = None if begin_ms is None or end_ms is None else end_ms - begin_ms
    times = {"begin_ms": begin_ms, "end_ms": end_ms, "duration_ms": length, "end_n": None if end_ms is None else n + 5}
    return {"run": run, "n": n, "record": f"1.1.{n}", "partition": partition, "led_before": 1, "reason": reason, **times}


def tenure(run: str, n: int, broker: int, begin_ms: int, end_ms: int | None) -> Row:
    times = {"begin_ms": begin_ms, "end_ms": end_ms, "duration_ms": None if end_ms is None else end_ms - begin_ms}
    return {"run": run, "n": n, "record": f"{broker}.1.{n}", "broker": broker, "controller_epoch": 1, **times}


def rebalance(run: str, n: int, reason: str | None, begin_ms: int, end_ms: int | None) -> Row:
    times = {"begin_ms": begin_ms, "end_ms": end_ms, "duration_ms": None if end_ms is None else end_ms - begin_ms}
    return {"run": run, "n": n, "record": f"1.1.{n}", "group_id": "g", "reason": reason, **times}
