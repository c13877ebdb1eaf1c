"""The tables of five recordings of real brokers against rows that were written by hand from the recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kcontrol import Lab
from kcontrol.lab.history.history_tables import table
from tests.pipeline.comparison import rows_of_pandas

WRITTEN: dict[str, dict[str, list[dict[str, Any]]]] = yaml.safe_load((Path(__file__).parent / "hand_written.yaml").read_text())
CASES = [(name, made) for name, tables in WRITTEN.items() for made in tables]


@pytest.mark.parametrize(("name", "made"), CASES)
def test_a_table_has_the_rows_that_were_written_by_hand(name: str, made: str) -> None:
    """The rows of the table, in their order and in the columns that were written by hand, are those of the recording."""
    expected = WRITTEN[name][made]
    run = Lab.open(Path(__file__).parents[1] / "golden" / "recordings" / f"{name}.json")
    found = rows_of_pandas(table(run.records, name, made))
    columns = list(expected[0]) if expected else []
    assert [{column: row[column] for column in columns} for row in found] == expected
