"""Writes journals to files, one journal record in JSON per line, and reads them with a check of each record.

Since version 2 the last line has the number of records, so that a reader knows a journal whose end is missing.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple

import msgspec
from msgspec import Meta

from kcontrol.core.errors import UserError
from kcontrol.journal import record_fields
from kcontrol.journal.fold import Fold
from kcontrol.journal.journal import JOURNAL_VERSION, OUTSIDE, Record, RecordId, to_line

LONGEST_BYTES = 64 * 2**20
"""The limit of a line, and of a recording; the largest `send` record of 10,000 partitions has about 5 MB."""

END = b'{"records":'
ENDED_SINCE = 2

WRONG = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, AssertionError)
"""The errors that reading and folding raise for records that contradict each other."""


class JournalFile(NamedTuple):
    """The records of a journal file; `is_whole` is False if the last line, with the number of records, is missing.

    For a file of version 1, which has no such line, `is_whole` is True.
    """

    records: list[Record]
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
    """Return the records of a journal file.

    Raises UserError if the file cannot be read, has a later journal version, or has a damaged line.
    """
    # A journal without its end line, as a killed run leaves it, is no error.
    return load(path).records


def load(path: str | Path) -> JournalFile:
    """Read a journal file of this or an earlier format version; its records get the fields of this version.

    Raises UserError, with the number of the line, if the file cannot be read or a line is damaged.
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
        self._path, self._number, self._version = path, 0, 0
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
        record = Record(
            RecordId(*found.id), found.kind, RecordId(*found.cause) if found.cause else None, found.at_ms, found.fields
        )
        if not self._records:
            self._version = _version(self._path, record)
        return upgraded(record, self._version)

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
            raise UserError(f"{self._path} is not a journal of kcontrol: its first line should be a record of kind run.")
        return JournalFile(self._records, self._ended or self._version < ENDED_SINCE)


def _version(path: str | Path, first: Record) -> int:
    if first.kind != "run":
        raise UserError(f"{path} is not a journal of kcontrol: its first line should be a record of kind run.")
    version = first.fields.get("journal_version")
    if type(version) is not int or not 1 <= version <= JOURNAL_VERSION:
        raise UserError(f"{path} has journal version {version}; this kcontrol reads versions 1 to {JOURNAL_VERSION}.")
    return version


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


# ---------------------------------------------------------------- older versions


def upgraded(record: Record, version: int) -> Record:
    """Return a record of a journal of version `version` as a record of JOURNAL_VERSION, the present version."""
    for step in range(version, JOURNAL_VERSION):
        record = UPGRADES[step](record)
    return record if record.kind != "run" else record._replace(fields=record.fields | {"journal_version": JOURNAL_VERSION})


def _to_version_2(record: Record) -> Record:
    """Return a record of journal version 1 as a record of version 2.

    In the id of a record that no broker made, the field `node` is 0 in version 1, and -1 (OUTSIDE) in version 2.
    """
    return record._replace(id=_outside(record.id), cause=record.cause and _outside(record.cause))


OUTSIDE_IN_VERSION_1 = (0, 0)
"""Node and incarnation; the incarnations of brokers begin with 1."""


def _outside(id: RecordId) -> RecordId:
    return id._replace(node=OUTSIDE) if id[:2] == OUTSIDE_IN_VERSION_1 else id


KINDS_3 = {
    "told": "controller_response",
    "lost": "conflict",
    "thrown": "exception",
    "hold": "response_delayed",
    "give": "delayed_response",
    "learn": "update",
    "adopt": "apply_request",
    "ask": "to_controller",
    "refused": "request_refused",
    "refuse": "failed_change",
    "fail": "handler_error",
    "release": "yield_lock",
    "arm": "set_timer",
    "cancel": "cancel_timer",
    "fire_timer": "fire_timer",
    "answered": "response",
}
"""The kinds of version 2 that have other names in version 3."""

FIELDS_3 = {
    ("enqueue", "noticed"): "is_notification",
    ("stop", "unread"): "unread_by",
    ("stop", "left"): "orphaned_by",
    ("close_channels", "unread"): "unread_by",
    ("told", "settled"): "requests",
    ("learn", "of"): "container",
    ("write", "fence"): "epoch_zk_version",
    ("change", "fence"): "epoch_zk_version",
    ("change", "value"): "leadership",
    ("group", "group"): "group_id",
    ("group", "value"): "group_metadata",
    ("append", "then"): "completion_event",
}
"""By a kind of version 2 and its field: the name of the field in version 3."""

CONTEXT_FIELDS_3 = {
    "deletion_thread": "topic_deletion_thread",
    "unfetched": "unfetched_partitions",
    "refused": "ineligible_replicas",
    "scheduler_runs": "scheduler_is_running",
}
"""The fields of a broker's contexts, as `learn` records of version 2 name them, that have other names in version 3."""


RULES_3 = {"nobody leads it": "it has no leadership"}
"""The rules of records of version 2 that have other names in version 3."""


def _to_version_3(record: Record) -> Record:
    """Return a record of journal version 2 with version 3's names of its kind, its fields and its rule.

    KINDS_3, FIELDS_3, CONTEXT_FIELDS_3 and RULES_3 map old names to new names; all other names stay.
    """
    fields = {FIELDS_3.get((record.kind, name), name): value for name, value in record.fields.items()}
    if "rule" in fields:
        fields["rule"] = RULES_3.get(str(fields["rule"]), fields["rule"])
    if record.kind == "learn":
        fields["field"] = CONTEXT_FIELDS_3.get(name := fields["field"], name)
        if name == "hosted":
            fields["put"] = fields["put"] and {tp: _hosted_of_version_3(entry) for tp, entry in fields["put"].items()}
    return record._replace(kind=KINDS_3.get(record.kind, record.kind), fields=fields)


def _hosted_of_version_3(entry: dict[str, Any]) -> dict[str, Any]:
    return {"leadership" if name == "value" else name: value for name, value in entry.items()}


UPGRADES: dict[int, Callable[[Record], Record]] = {1: _to_version_2, 2: _to_version_3}
"""By older version, the function that turns one of its records into a record of the next version."""
