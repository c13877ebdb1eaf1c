"""Adds the columns `inferred` and `line` to a table of a run that kcontrol has read from broker logs.

`inferred` names the row's values that no log line has; `line` is the row's log line, such as "server.log:12". In Spark, SQL adds
equal columns (`kcontrol/pipeline/log_journal/evidence.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kcontrol.journal.journal import Record
from kcontrol.journal.record_fields import INFERRED
from kcontrol.lab.support.late import pd
from kcontrol.lab.tables import journal_tables

MISMATCH = "transitions"
"""The table whose rows are marked if the machines of the release do not have the transition."""


def with_evidence(table: pd.DataFrame, records: Sequence[Record], name: str) -> pd.DataFrame:
    """Return the history table `name`, computed from broker logs, with the added columns `inferred` and `line`.

    `inferred` names the columns whose values no log line has; `line` is the row's log line, such as "server.log:12".
    """
    fields = [record.fields for record in records]
    # `inferred` is missing if log lines have the whole row. Else it has, separated by commas, "record" if no log line has the
    # row, "time" if no log line has its time, the names of columns whose values no log line has, and "end" if no log line has
    # its end.
    ends = table["end_n"] if "end_n" in table else [None] * len(table)
    inferred = [_inferred(fields, n, end, list(table.columns)) for n, end in zip(table["n"], ends, strict=True)]
    # No line says that a request waits or that it was dropped.
    if name == "requests":
        inferred = [", ".join(filter(None, (found, "state" if pd.isna(answer) else None))) or None
                    for found, answer in zip(inferred, table["response_record"], strict=True)]  # fmt: skip
    more = {"inferred": inferred, "line": [fields[n - 1].get("line") for n in table["n"]]}
    # Why a transition is illegal or does not follow from the latest transition of its subject; missing for any other
    # transition.
    if name == MISMATCH:
        more["mismatch"] = [fields[n - 1].get("mismatch") for n in table["n"]]
    made = {column: journal_tables.typed(pd.Series(values, dtype="object"), "string") for column, values in more.items()}
    return table.assign(**{column: values.set_axis(table.index) for column, values in made.items()})


def _inferred(fields: Sequence[dict[str, Any]], n: int, end: Any, columns: Sequence[str]) -> str | None:
    names = [name for name in str(fields[n - 1].get("inferred", "")).split(", ") if name in INFERRED or name in columns]
    if end is not None and not pd.isna(end) and fields[end - 1].get("inferred") in INFERRED:
        names.append("end")
    return ", ".join(names) or None
