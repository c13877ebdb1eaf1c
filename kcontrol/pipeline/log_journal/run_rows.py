"""Writes the journal of broker logs as Parquet files in one pass, without Spark; at most 50,000 rows are in memory.

The folder `_steps/journal` gets the rows of the journal, except those of transitions that write no znode. From these rows Spark
makes all tables except `journal` and `transitions`.
"""

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import pyarrow as arrow
import pyarrow.parquet as parquet

from kcontrol.journal.journal import Record
from kcontrol.journal.record_fields import INFERRED

RUN = "logs"
"""The name of the run in all tables."""
NARROW = Path("_steps", "journal")
"""The folder of the rows of `journal` that other tables are made of, with their columns `inferred` and `line`."""
FILE = "part-0.parquet"
BATCH = 50_000
_TEXT, _INT, _LONG = arrow.string(), arrow.int32(), arrow.int64()
JOURNAL = arrow.schema([
    ("run", _TEXT), arrow.field("n", _INT, nullable=False), arrow.field("id", _TEXT, nullable=False),
    ("at", arrow.timestamp("ms")), ("at_ms", _LONG), ("time_ms", _LONG), ("node", _INT), ("incarnation", _INT), ("seq", _INT),
    ("kind", _TEXT), ("cause", _TEXT), ("fields", _TEXT),
])  # fmt: skip
EVIDENCE = arrow.schema([*JOURNAL, ("inferred", _TEXT), ("line", _TEXT)])
TRANSITIONS = arrow.schema([
    ("run", _TEXT), ("n", _INT), ("record", _TEXT), ("time_ms", _LONG), ("controller", _INT), ("machine", _TEXT),
    ("partition", _TEXT), ("replica", _INT), ("source", _TEXT), ("target", _TEXT), ("rule", _TEXT), ("write", _TEXT),
    ("inferred", _TEXT), ("line", _TEXT), ("mismatch", _TEXT),
])  # fmt: skip
Row = tuple[Any, ...]


def write_rows(records: Iterable[Record], folder: Path) -> set[str]:
    """Write journal records as the tables `journal` and `transitions` into `folder`; return the records' kinds.

    Raises OSError for a failed write.
    """
    kinds = set[str]()
    with (
        _Rows(folder / "journal", JOURNAL) as journal,
        # `_steps/journal` has the rows of `journal` but those of transitions that write no znode.
        _Rows(folder / NARROW, EVIDENCE) as narrow,
        _Rows(folder / "transitions", TRANSITIONS) as transitions,
    ):
        for n, record in enumerate(records, 1):
            kinds.add(record.kind)
            row = _journal_row(n, record)
            journal.add(row)
            is_transition = record.kind == "change"
            if is_transition:
                transitions.add(_transition_row(n, record))
            if not is_transition or record.fields["write"] is not None:
                narrow.add((*row, record.fields.get("inferred"), record.fields.get("line")))
    return kinds


class _Rows:
    """A Parquet file in a new folder that grows by one row with each call of `add`; at the end of `with` the file is complete."""

    def __init__(self, folder: Path, schema: arrow.Schema) -> None:
        folder.mkdir(parents=True)
        self._schema, self._rows = schema, list[Row]()
        # Spark writes and reads times in this form.
        self._file = parquet.ParquetWriter(folder / FILE, schema, use_deprecated_int96_timestamps=True)

    def add(self, row: Row) -> None:
        self._rows.append(row)
        if len(self._rows) == BATCH:
            self._write()

    def _write(self) -> None:
        columns = zip(*self._rows, strict=True)
        arrays = [arrow.array(values, column.type) for values, column in zip(columns, self._schema, strict=True)]
        self._file.write_batch(arrow.record_batch(arrays, schema=self._schema))
        self._rows.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None and self._rows:
                self._write()
        finally:
            self._file.close()


def _journal_row(n: int, record: Record) -> Row:
    id, cause, at = record.id, record.cause, record.at_ms
    fields = msgspec.json.encode(record.to_json().fields).decode()
    return RUN, n, str(id), at, None, at, id.broker, id.incarnation, id.seq, record.kind, cause and str(cause), fields


def _transition_row(n: int, record: Record) -> Row:
    fields = record.fields
    partition, _, replica = fields["subject"].partition("@")
    listed = (fields.get("inferred") or "").split(", ")
    inferred = ", ".join(name for name in listed if name in INFERRED or name in TRANSITIONS.names) or None
    return (
        RUN, n, str(record.id), record.at_ms, record.id.broker, fields["machine"], partition, int(replica) if replica else None,
        fields["source"], fields["target"], fields["rule"] or None, fields["write"], inferred, fields["line"],
        fields.get("mismatch"),
    )  # fmt: skip
