"""The rows of the tables of broker logs, read without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

Row = dict[str, Any]


def rows_of(out: Path, table: str) -> list[Row]:
    """Return the rows of a table, with facts as Python values; the rows have no order."""
    rows: list[Row] = parquet.read_table(out / table).to_pylist()
    for row in rows:
        if "facts" in row:
            row["facts"] = {name: json.loads(value) for name, value in row["facts"]}
    return rows


def by_place(rows: list[Row]) -> dict[tuple[str, int], Row]:
    """Return the rows by the name of the file and the number of the line."""
    return {(Path(row["file"]).name, row["n"]): row for row in rows}
