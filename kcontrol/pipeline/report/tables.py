"""Reads the tables of a folder that `kcontrol pipeline runs` or `kcontrol pipeline logs` has written, without Spark."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as parquet
from pyarrow import ArrowException

from kcontrol.core.errors import UserError
from kcontrol.pipeline.closed_paths import check_open
from kcontrol.pipeline.logs.log_tables import FORMAT as LOGS
from kcontrol.pipeline.pipeline import FORMAT, MARK, check_version

Row = dict[str, Any]
TABLES = {
    "offline_windows": ("partition", "led_before", "led_after", "begin_ms", "end_ms", "duration_ms", "reason", "end_n"),
    "leaderships": ("partition", "leader", "leader_epoch", "time_ms"),
    "tenures": ("broker", "controller_epoch", "begin_ms", "end_ms", "duration_ms", "ended_by", "end_n"),
    "rebalances": ("group_id", "reason", "begin_ms", "end_ms", "duration_ms", "from_generation", "to_generation", "ended_in"),
}
"""The tables that a report reads, with the columns beside `run`, `n` (the position of a record in its run) and `record`."""
EVIDENCE = ("inferred", "line")
"""The columns that these tables also have if they were made from broker logs."""
COMMANDS: dict[str, str] = {str(FORMAT["kcontrol"]): "runs", str(LOGS["kcontrol"]): "logs"}
"""The kinds of folders that a report reads, each with the command of `kcontrol pipeline` that writes such a folder."""


class RunTimes(NamedTuple):
    """A run: its name, number of records, and times of its first and last record in ms (None in a run without a clock)."""

    name: str
    records: int
    begin_ms: int | None
    end_ms: int | None

    @property
    def length(self) -> int:
        """The length of the run in ms; if its journal has no times, its number of records."""
        return self.records if self.begin_ms is None or self.end_ms is None else self.end_ms - self.begin_ms


class Tables(NamedTuple):
    """The tables that a report reads from a folder, and the folder's runs, sorted by name."""

    runs: list[RunTimes]
    # Table name, such as "rebalances", to rows: dicts by column, sorted by run and `n`.
    rows: Mapping[str, list[Row]]
    # The zone of all times for tables of broker logs, "in UTC" or "as written"; None for tables of runs.
    zone: str | None = None


def read_tables(folder: Path) -> Tables:
    """Return the runs and the tables of a folder that `kcontrol pipeline` has written.

    Raises UserError if the folder lacks a table or has no run.
    """
    command = _check(folder)
    more = EVIDENCE if command == "logs" else ()
    rows = {name: _read(folder, name, ["run", "n", "record", *columns, *more]) for name, columns in TABLES.items()}
    runs: dict[str, RunTimes] = {}
    journal = _table(folder, "journal", ["run", "time_ms"]).group_by("run")
    for row in journal.aggregate([("time_ms", "min"), ("time_ms", "max"), ([], "count_all")]).to_pylist():
        runs[row["run"]] = RunTimes(row["run"], row["count_all"], row["time_ms_min"], row["time_ms_max"])
    if not runs:
        raise UserError(
            f"The tables in {folder} have no run: write them again with kcontrol pipeline {command} PATH --out {folder}."
        )
    return Tables([runs[name] for name in sorted(runs)], rows, _zone(folder) if command == "logs" else None)


def _zone(folder: Path) -> str:
    """Return the zone of the times in the tables of broker logs in `folder`: "in UTC", or "as written" in the logs."""
    # The journal record `run` has the zone.
    journal = parquet.read_table(folder / "journal", columns=["fields"], filters=[("kind", "=", "run")], partitioning=None)
    return str(json.loads(journal["fields"][0].as_py())["zone"])


def _check(folder: Path) -> str:
    """Return the command of `kcontrol pipeline` that wrote a folder of tables, "runs" or "logs".

    Raises UserError for a folder that no such command wrote, or that lacks a table.
    """
    make = "make one with kcontrol pipeline runs PATH --out DIR, or logs in place of runs"
    check_open(folder)
    if not folder.is_dir():
        raise UserError(f"There is no folder {folder}: name a folder of tables, or {make}.")
    try:
        mark = json.loads((folder / MARK).read_text())
    except (OSError, ValueError):
        mark = None
    kind = mark.get("kcontrol") if isinstance(mark, dict) else None
    if kind is None:
        raise UserError(f"{folder} is not a folder of tables: {make}.")
    if kind not in COMMANDS:
        raise UserError(f"{folder} has {kind}; a report needs {' or '.join(COMMANDS)}: {make}.")
    check_version(folder, mark)
    for name in ("journal", *TABLES):
        if not (folder / name).is_dir():
            again = f"write the tables again with kcontrol pipeline {COMMANDS[kind]} PATH --out {folder}"
            raise UserError(f"{folder} has no table {name}: {again}.")
    return COMMANDS[kind]


def _read(folder: Path, name: str, columns: list[str]) -> list[Row]:
    found: list[Row] = _table(folder, name, columns).to_pylist()
    return sorted(found, key=lambda row: (row["run"], row["n"]))


def _table(folder: Path, name: str, columns: list[str]) -> Any:
    try:
        return parquet.read_table(folder / name, columns=columns, partitioning=None)
    except (OSError, ArrowException) as problem:
        reason = str(problem).splitlines()[0]
        raise UserError(f"The table {name} in {folder} cannot be read ({reason}): write the tables again.") from None
