"""The one output. Every record says who, what, and because of which other record.

A journal in a file is JSON lines; the first record is of kind `run` and holds the version of the schema.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kcontrol.errors import UserError
from kcontrol.model import PartitionReplica, TopicPartition

JOURNAL_VERSION = 1


class RecordId(NamedTuple):
    """Node 0 is the world itself; a node's incarnation grows with every start of its process."""

    node: int
    incarnation: int
    seq: int

    def __str__(self) -> str:
        return f"{self.node}.{self.incarnation}.{self.seq}"


class Record(NamedTuple):
    id: RecordId
    kind: str
    cause: RecordId | None
    at_ms: int
    fields: dict[str, Any]

    def plain(self) -> Record:
        """The same record with JSON's own types in its fields."""
        return self._replace(fields={name: plain(value) for name, value in self.fields.items()})


class Journal:
    """Records in the order in which they were made. A copy shares nothing that changes."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._seq: dict[tuple[int, int], int] = {}

    def add(self, node: int, incarnation: int, kind: str, cause: RecordId | None, at_ms: int, fields: dict[str, Any]) -> RecordId:
        seq = self._seq[node, incarnation] = self._seq.get((node, incarnation), 0) + 1
        id = RecordId(node, incarnation, seq)
        self.records.append(Record(id, kind, cause, at_ms, fields))
        return id

    def why(self, id: RecordId | None) -> list[Record]:
        """The chain of causes, nearest first. Raises KeyError for an id that is not in here."""
        return why(self.records, id)

    def copy(self) -> Journal:
        twin = Journal()
        twin.records, twin._seq = self.records.copy(), self._seq.copy()
        return twin


def why(records: Iterable[Record], id: RecordId | None) -> list[Record]:
    """The chain of causes of a record, nearest first. Raises KeyError for an id that is not among the records."""
    by_id = {record.id: record for record in records}
    chain: list[Record] = []
    while id is not None:
        chain.append(by_id[id])
        id = chain[-1].cause
    return chain


# ---------------------------------------------------------------- JSON


def plain(value: Any) -> Any:
    """A value in JSON's own types, with Kafka's names for states and `t-0` for a partition."""
    match value:
        case None | bool() | int() | str() | float():
            return value
        case TopicPartition() | PartitionReplica():
            return str(value)
        case RecordId():
            return list(value)
        case Enum():
            return value.value
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case dict():
            return {str(plain(key)): plain(item) for key, item in value.items()}
        case set() | frozenset():
            return sorted(plain(item) for item in value)
    return _plain_structure(value)


def _plain_structure(value: Any) -> Any:
    if hasattr(value, "plain"):
        return value.plain()
    if is_dataclass(value):
        kept = (f.name for f in dataclass_fields(value) if f.metadata.get("journal", True))
        return {"event": type(value).__name__} | {name: plain(getattr(value, name)) for name in kept}
    if hasattr(value, "_fields"):
        return {name: plain(item) for name, item in zip(value._fields, value, strict=True)}
    return [plain(item) for item in value]


def to_line(record: Record) -> bytes:
    """One record as one line of JSON: id, kind, cause and at_ms first, then its own fields."""
    head = {"id": list(record.id), "kind": record.kind, "cause": record.cause and list(record.cause), "at_ms": record.at_ms}
    return msgspec.json.encode(head | {"fields": plain(record.fields)}) + b"\n"


def write(records: Iterable[Record], path: str | Path) -> None:
    """Write a journal. Raises UserError where the file cannot be written."""
    try:
        with Path(path).open("wb") as file:
            file.writelines(map(to_line, records))
    except OSError as error:
        raise UserError(f"The journal cannot be written to {path}: {error.strerror}; name another file or make room.") from None


class _Line(msgspec.Struct):
    id: tuple[int, int, int]
    kind: str
    cause: tuple[int, int, int] | None
    at_ms: int
    fields: dict[str, Any]


def read(path: str | Path) -> list[Record]:
    """Read a journal back, its fields in JSON's own types.

    Raises UserError where the file cannot be read, holds something else, or was written by a later schema.
    """
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise UserError(f"The journal {path} cannot be read: {error.strerror}.") from None
    decoder = msgspec.json.Decoder(_Line)
    try:
        found = [decoder.decode(line) for line in lines]
    except msgspec.DecodeError as error:
        raise UserError(f"{path} is not a journal of kcontrol: {error}.") from None
    if not found or found[0].kind != "run":
        raise UserError(f"{path} is not a journal of kcontrol: its first line should be a record of kind run.")
    if (version := found[0].fields.get("journal_version")) != JOURNAL_VERSION:
        raise UserError(f"{path} has journal version {version}; this kcontrol reads version {JOURNAL_VERSION}.")
    return [Record(RecordId(*f.id), f.kind, RecordId(*f.cause) if f.cause else None, f.at_ms, f.fields) for f in found]
