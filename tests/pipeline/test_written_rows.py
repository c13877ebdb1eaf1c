"""The tables of five recordings of real brokers against rows that were written by hand from the recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kcontrol import Lab
from kcontrol.lab.history.history_tables import TABLES, table
from kcontrol.lab.run import Run
from tests.pipeline.comparison import rows_of_pandas

WRITTEN: dict[str, dict[str, list[dict[str, Any]]]] = yaml.safe_load((Path(__file__).parent / "written_rows.yaml").read_text())
GOLDEN = Path(__file__).parents[1] / "golden" / "recordings"
CASES = [(name, made) for name, tables in WRITTEN.items() for made in tables]


@pytest.mark.parametrize(("name", "made"), CASES)
def test_a_table_has_the_written_rows(name: str, made: str) -> None:
    """The rows of the table, in their order and in the columns that were written by hand, are those of the recording."""
    expected = WRITTEN[name][made]
    wanted, _, kind = made.partition(" kind=")
    found = rows_of_pandas(table(opened(name).records, name, wanted))
    columns = list(expected[0]) if expected else []
    rows = [{column: row[column] for column in columns} for row in found if not kind or row["kind"] == kind]
    if wanted == "requests":  # a journal has the requests of a batch in another order than the recording
        rows, expected = sorted(rows, key=str), sorted(expected, key=str)
    assert rows == expected


def opened(name: str) -> Run:
    """Return the recording with this name: one of controllers from the tests, one of a group from the notebooks."""
    path = GOLDEN / f"{name}.json"
    return Lab.open(path if path.exists() else name)


def test_every_table_has_written_rows_for_a_recording() -> None:
    """Each table of a run has rows written by hand for at least one recording."""
    assert {made.partition(" kind=")[0] for _, made in CASES} == set(TABLES)
