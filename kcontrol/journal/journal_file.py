"""Writes journals to files, one journal record in JSON per line, and reads them with a check of each record.

The last line has the number of records, so that a reader knows a journal whose end is missing.
"""

import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple

import msgspec
from msgspec import Meta

from kcontrol.core.errors import LATER, UserError
from kcontrol.journal import record_fields
from kcontrol.journal.fold import Fold
from kcontrol.journal.journal import JOURNAL_VERSION, OUTSIDE, Record, RecordId, to_line

LONGEST_BYTES = 64 * 2**20
"""The limit of a line, and of a recording; the largest `send` record of 10,000 partitions has about 5 MB."""

END = b'{"records":'

WRONG = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, AssertionError)
"""The errors that reading and folding raise for records that contradict each other."""


class JournalFile(NamedTuple):
    records: list[Record]
    # Whether the file has its last line, the number of records.
    is_whole: bool


# ---------------------------------------------------------------- writing


def write(records: Iterable[Record], path: str | Path) -> None:
    """The last line is the number of records. Raises UserError."""
    try:
        with Path(path).open("wb") as file:
            count = 0
            for count, record in enumerate(records, 1):  # noqa: B007
                file.write(to_line(record))
            file.write(end(count))
    except OSError as error:
        raise UserError(f"The journal cannot be written to {path}: {error.strerror}; name another file or make room.") from None


def end(count: int) -> bytes:
    """Return the last line of a journal file, `{"records":<count>}`."""
    return b"%s%d}\n" % (END, count)


# ---------------------------------------------------------------- reading


def opened(path: str | Path) -> BinaryIO:
    """Open a file for reading bytes. Raises OSError if that fails, and UserError for a device, pipe or folder."""
    file = Path(path)
    if not stat.S_ISREG(file.stat().st_mode):
        raise UserError(f"{path} is not a file: name a journal or a recording.")
    return file.open("rb")


def read(path: str | Path) -> list[Record]:
    """Return the records of a journal file, with or without its last line, which the journal of a killed run lacks.

    Raises UserError as `load` does.
    """
    return load(path).records


def load(path: str | Path) -> JournalFile:
    """Read a journal file.

    Raises UserError if the file cannot be read or has another journal version, and, with the line's number, for a damaged line.
    """
    reader = _Reader(path)
    try:
        with opened(path) as file:
            for line in iter(lambda: file.readline(LONGEST_BYTES + 1), b""):
                reader.take(line)
    except OSError as error:
        raise UserError(f"The journal {path} cannot be read: {error.strerror}.") from None
    return reader.done()


def check(records: Iterable[Record]) -> Iterator[Record]:
    """Raises one of `WRONG` at the first record that does not fit the ones before (a missing or doubled number)."""
    checks = _Checks()
    for record in records:
        yield checks.take(record.to_json())


Node = Annotated[int, Meta(ge=OUTSIDE, le=2**31 - 1)]
Number = Annotated[int, Meta(ge=0, le=2**53)]
Id = tuple[Node, Number, Number]


class _Line(msgspec.Struct):
    id: Id
    kind: str
    cause: Id | None
    at_ms: Annotated[int, Meta(ge=-(2**53), le=2**53)]
    fields: dict[str, Any]


class _End(msgspec.Struct):
    records: Number


class _Reader:
    """Reads a journal file: `take` adds the record of the next line, `done` returns the JournalFile with all records."""

    def __init__(self, path: str | Path) -> None:
        self._path, self._number = path, 0
        self._records: list[Record] = []
        self._checks, self._ended = _Checks(), False
        self._decoder, self._end = msgspec.json.Decoder(_Line), msgspec.json.Decoder(_End)

    def take(self, line: bytes) -> None:
        self._number += 1
        try:
            if len(line) > LONGEST_BYTES:
                raise ValueError(f"it has more than {LONGEST_BYTES:,} bytes")
            if self._ended:
                raise ValueError("it comes after the line that ends the journal")
            if self._records and line.startswith(END):
                self._finish(self._end.decode(line).records)
            else:
                self._records.append(self._checks.take(self._record(line)))
        except WRONG as problem:
            raise UserError(self._said(problem)) from None

    def _record(self, line: bytes) -> Record:
        found = self._decoder.decode(line)
        cause = RecordId(*found.cause) if found.cause else None
        record = Record(RecordId(*found.id), found.kind, cause, found.at_ms, found.fields)
        if not self._records and (problem := refusal(self._path, record.kind, record.fields)):
            raise UserError(problem)
        return record

    def _finish(self, count: int) -> None:
        if count != len(self._records):
            raise ValueError(f"it counts {count} records, and there are {len(self._records)}")
        self._ended = True

    def _said(self, error: BaseException) -> str:
        reason = f"it does not fit the lines before it ({error!r})" if not isinstance(error, ValueError) else str(error)
        if not self._records:
            return f"{self._path} is not a journal of kcontrol: line 1: {reason}."
        return f"The journal {self._path} is damaged in line {self._number}: {reason}."

    def done(self) -> JournalFile:
        if not self._records:
            raise UserError(NO_JOURNAL.format(self._path))
        return JournalFile(self._records, self._ended)


NO_JOURNAL = "{} is not a journal of kcontrol: its first line should be a record of kind run."


def refusal(path: str | Path, kind: str, fields: Mapping[str, Any]) -> str | None:
    """Why the file is not read, from the kind and the fields of its first line; None for a journal of JOURNAL_VERSION."""
    version = fields.get("journal_version")
    if kind != "run" or type(version) is not int or version < 1:
        return NO_JOURNAL.format(path)
    return LATER.format(path, JOURNAL_VERSION) if version > JOURNAL_VERSION else None


class _Checks:
    """Checks a journal's records in order: sequence numbers, causes, fields, and changes of the cluster's state.

    A wrong change is, for example, the deletion of a znode that does not exist after the earlier records.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[int, int], int] = {}
        self._fold = Fold()

    def take(self, record: Record) -> Record:
        """Return `record` if it fits the records before it in the file, and each field has the right type.

        Else raise ValueError, TypeError or another exception of the tuple `WRONG`.
        """
        node, incarnation, seq = record.id
        expected = self._last.get((node, incarnation), 0) + 1
        if seq != expected:
            place = RecordId(node, incarnation, expected)
            raise ValueError(f"it has record {record.id} in the place of {place}; a line is missing, doubled or out of order")
        if (cause := record.cause) and not 1 <= cause.seq <= self._last.get(cause[:2], 0):
            raise ValueError(f"the cause of record {record.id}, {cause}, does not come before it")
        record_fields.check(record.kind, record.fields)
        self._fold.add(record)
        self._last[node, incarnation] = seq
        return record
