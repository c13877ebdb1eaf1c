"""The comparison of a table that Spark has made with the table that pandas has made, cell by cell."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

Cell = Any
Rows = list[dict[str, Cell]]


def rows_of_spark(spark: Any, name: str) -> Rows:
    return [{column: _plain(value) for column, value in row.asDict().items()} for row in spark.table(name).collect()]


def rows_of_pandas(frame: pd.DataFrame) -> Rows:
    """Return the rows of a pandas table, with Python's values; a missing value is None."""
    columns = {name: [_plain(value) for value in frame[name].astype("object")] for name in frame.columns}
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _plain(value: Any) -> Cell:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if hasattr(value, "timestamp"):
        return pd.Timestamp(value).tz_localize(None).isoformat()
    return value.item() if hasattr(value, "item") else value


def differences(table: str, spark: Rows, pandas: Rows, columns: Sequence[str]) -> Iterator[str]:
    """Yield one sentence per difference, which names the table, the evidence of the row, and the column."""
    ours, theirs = (_by_evidence(rows) for rows in (spark, pandas))
    for key in sorted({*ours, *theirs}):
        for row, (a, b) in enumerate(_pairs(ours.get(key, []), theirs.get(key, []))):
            where = f"{table}: run {key[0]}, record {key[1]}, row {row}"
            if a is None or b is None:
                yield f"{where}: only {'pandas' if a is None else 'Spark'} has the row {a or b}"
                continue
            if list(a) != list(columns) or list(b) != list(columns):
                yield f"{where}: the columns are {list(a)} and {list(b)}"
            for column in (c for c in columns if c in a and c in b and _value(c, a[c]) != _value(c, b[c])):
                yield f"{where}, column {column}: Spark has {a[column]!r}, pandas {b[column]!r}"


def _pairs(a: Rows, b: Rows) -> Iterator[tuple[dict[str, Cell] | None, dict[str, Cell] | None]]:
    for number in range(max(len(a), len(b))):
        yield (a[number] if number < len(a) else None, b[number] if number < len(b) else None)


def _by_evidence(rows: Rows) -> dict[tuple[str, int], Rows]:
    found: dict[tuple[str, int], Rows] = {}
    for row in sorted(rows, key=lambda row: (row["run"], row["n"], str(_sortable(row)))):
        found.setdefault((row["run"], row["n"]), []).append(row)
    return found


def _sortable(row: dict[str, Cell]) -> list[Cell]:
    return [row.get(name) for name in ("partition", "api", "receiver", "topic", "member_id", "group_id")]


def _value(column: str, value: Cell) -> Cell:
    return json.loads(value) if column == "fields" else value
