"""The rows of the tables of broker logs, read without Spark."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

from kcontrol.pipeline.log_journal.log_line import Line

Row = dict[str, Any]


def rows_of(out: Path, table: str) -> list[Row]:
    """Return the rows of a table, with facts as Python values; the rows have no order."""
    rows: list[Row] = parquet.read_table(out / table).to_pylist()
    for row in rows:
        if "facts" in row:
            row["facts"] = {name: json.loads(value) for name, value in row["facts"]}
    return rows


def by_place(rows: list[Row]) -> dict[tuple[str, int], Row]:
    return {(Path(row["file"]).name, row["n"]): row for row in rows}


def lines_of(rows: list[Row], folder: Path) -> list[Line]:
    """Return the rows with facts of the log files below `folder` as lines in the order of time, as the conversion reads them."""
    latest: dict[str, int] = {}
    found = []
    for row in sorted(rows, key=lambda row: (row["file"], row["n"])):
        file = Path(row["file"].removeprefix("file:"))
        if row["kind"] == "other" or not file.is_relative_to(folder):
            continue
        at_ms = round(row["local_time"].replace(tzinfo=UTC).timestamp() * 1000)
        latest[row["file"]] = max(at_ms, latest.get(row["file"], at_ms))
        name = str(file.relative_to(folder))
        found.append(Line(name, row["n"], latest[row["file"]], row["kind"], row["facts"], row["broker"]))
    return sorted(found, key=lambda line: (line.at_ms, line.file, line.n))
