"""Adds to a table of a run that was made from broker logs which of its values no line of the logs has.

The same columns are made by SQL for Spark (`kcontrol/spark/log_journal/evidence.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from kcontrol.journal.journal import Record
from kcontrol.lab.tables import journal_tables

WHOLE = ("record", "time")
MISMATCH = "transitions"
"""The table whose rows are marked if the machines of the release do not have the transition."""


def with_evidence(table: pd.DataFrame, records: Sequence[Record], name: str) -> pd.DataFrame:
    """Return the table `name` with the columns `inferred` and `line`; the table `transitions` also gets `mismatch`.

    `line` is the file and the number of the line that the row was made from; it is missing if there is no such line. `inferred`
    is missing if lines have the whole row. Else it has, separated by commas, "record" if no line has the row, "time" if no line
    has its time, the names of columns whose values no line has, and "end" if no line has its end. `mismatch` says why a
    transition is illegal or does not follow from the latest transition of its subject, with the lines of both; it is missing for
    any other transition.
    """
    fields = [record.fields for record in records]
    ends = table["end_n"] if "end_n" in table else [None] * len(table)
    inferred = [_inferred(fields, n, end, list(table.columns)) for n, end in zip(table["n"], ends, strict=True)]
    more = {"inferred": inferred, "line": [fields[n - 1].get("line") for n in table["n"]]}
    if name == MISMATCH:
        more["mismatch"] = [fields[n - 1].get("mismatch") for n in table["n"]]
    made = {column: journal_tables.typed(pd.Series(values, dtype="object"), "string") for column, values in more.items()}
    return table.assign(**{column: values.set_axis(table.index) for column, values in made.items()})


def _inferred(fields: Sequence[dict[str, Any]], n: int, end: Any, columns: Sequence[str]) -> str | None:
    names = [name for name in str(fields[n - 1].get("inferred", "")).split(", ") if name in WHOLE or name in columns]
    if end is not None and not pd.isna(end) and fields[end - 1].get("inferred") in WHOLE:
        names.append("end")
    return ", ".join(names) or None
