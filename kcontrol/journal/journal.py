"""The journal: a record for every action of a cluster, its brokers and its clients; each record names its cause.

The first record is of kind `run`. `journal_file` writes journals to files and reads them.

A batch of transitions is stored as columns (`Journal.add_batch`), and its records are made when they are read: a transition
that is not read costs a few list entries, and a fork shares the columns. No record is made per broker and partition: the
records of delivery and response point to the record of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import Field, is_dataclass
from dataclasses import fields as dataclass_fields
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from kcontrol.core.events import Event
from kcontrol.core.model import PartitionReplica, TopicPartition

JOURNAL_VERSION = 1

OUTSIDE = -1
"""The node of a record that a client, ZooKeeper or the world makes. No broker has a negative id.

Source: Request.OrdinaryConsumerId (0.8.0 to 2.8), Kafka's id of a client that is no broker.
"""


class RecordId(NamedTuple):
    """The id of a journal record: a broker's id, the incarnation of its process, and a sequence number.

    `incarnation` counts the process's starts, from 1. Without a broker, `node` is OUTSIDE and `incarnation` 0.
    """

    node: int
    incarnation: int
    seq: int

    @property
    def broker(self) -> int | None:
        """Return the broker that made the record, or None for OUTSIDE."""
        return None if self.node == OUTSIDE else self.node

    def __str__(self) -> str:
        return f"{self.node}.{self.incarnation}.{self.seq}"


class Record(NamedTuple):
    id: RecordId
    # What has happened, such as "send", "write" or "begin".
    kind: str
    # The id of the record that caused this record, or None.
    cause: RecordId | None
    # The time on the run's clock.
    at_ms: int
    # By name; the kind decides which fields there are (FIELDS in `record_fields.py`).
    fields: dict[str, Any]

    def to_json(self) -> Record:
        """Return a copy of the record whose fields have JSON's own types."""
        return PlainRecord(*self[:4], {name: to_json(value) for name, value in self.fields.items()})


class PlainRecord(Record):
    """A record whose fields have JSON's own types. Readers share the fields and must not change them."""

    __slots__ = ()

    def to_json(self) -> Record:
        return self


class RecordParts(NamedTuple):
    """The kind, the cause and the fields of a journal record; `LazyBatch` adds the id and the time."""

    kind: str
    cause: RecordId | None
    fields: dict[str, Any]


RecordFactory = Callable[..., RecordParts]


class LazyBatch(NamedTuple):
    """Journal records that are made when they are read: `factory` makes record number i from the i-th values of `columns`."""

    # The id of the first record; each later record has the next sequence number.
    first: RecordId
    # The time of all records.
    at_ms: int
    factory: RecordFactory
    # Columns of equal lengths, which never change.
    columns: tuple[Sequence[Any], ...]

    def records(self) -> Iterator[Record]:
        node, incarnation, first_seq = self.first
        for seq, row in enumerate(zip(*self.columns, strict=True), first_seq):
            kind, cause, fields = self.factory(*row)
            yield Record(RecordId(node, incarnation, seq), kind, cause, self.at_ms, fields)


class Journal:
    """The records of a run, in order; a copy can grow independently.

    The records of a batch (`add_batch`) are made when they are read, because most batches of a large run are never read.
    """

    def __init__(self) -> None:
        self._spelled: list[Record] = []
        self._later: list[Record | LazyBatch] = []  # from the first batch on whose records are not made yet
        self._seq: dict[tuple[int, int], int] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def records(self) -> list[Record]:
        """Return all records; each call returns this journal's own list, not a copy."""
        self.build_records()
        return self._spelled

    def build_records(self) -> None:
        """Before a copy, so that copies share the records instead of making them again."""
        for entry in self._later:
            self._spelled.extend(_records(entry))
        self._later.clear()

    def since(self, position: int) -> list[Record]:
        """Return the records from the index `position` on.

        The records of a batch (`add_batch`) are made when they are read; a batch that ends before `position` is not read.
        """
        if not self._later:
            return self._spelled[position:]
        start, at, is_lazy = len(self._later), self._length, False
        while at > position and start:
            start -= 1
            entry = self._later[start]
            if type(entry) is LazyBatch:
                at, is_lazy = at - len(entry.columns[0]), True
            else:
                at -= 1
        found: list[Any] = self._later[start:]
        if is_lazy:
            self._later[start:] = found = [record for entry in found for record in _records(entry)]
        return found[position - at :] if at <= position else self._spelled[position:] + found

    def add(self, node: int, incarnation: int, kind: str, cause: RecordId | None, at_ms: int, fields: dict[str, Any]) -> RecordId:
        id = self._number(node, incarnation, 1)
        (self._later or self._spelled).append(Record(id, kind, cause, at_ms, fields))
        return id

    def add_batch(
        self, node: int, incarnation: int, at_ms: int, factory: RecordFactory, columns: tuple[Sequence[Any], ...]
    ) -> None:
        """One record per index of `columns`, made by `factory` when it is read."""
        if columns[0]:
            self._later.append(LazyBatch(self._number(node, incarnation, len(columns[0])), at_ms, factory, columns))

    def next_seq(self, node: int, incarnation: int) -> int:
        """Return the sequence number of the next record with this node and this incarnation (the count of the node's starts)."""
        return self._seq.get((node, incarnation), 0) + 1

    def extend(self, records: Sequence[Record]) -> None:
        """Add records that already have ids, such as those of a file; new records are numbered as if these were absent."""
        (self._later or self._spelled).extend(records)
        self._length += len(records)

    def _number(self, node: int, incarnation: int, count: int) -> RecordId:
        seq = self.next_seq(node, incarnation)
        self._seq[node, incarnation] = seq + count - 1
        self._length += count
        return RecordId(node, incarnation, seq)

    def why(self, id: RecordId | None) -> list[Record]:
        """The record, its cause, the cause of the cause ...; [] for None. Raises KeyError for an unknown id."""
        return why(self.records, id)

    def copy(self) -> Journal:
        copy = Journal.__new__(Journal)
        copy._spelled, copy._later, copy._seq = self._spelled.copy(), self._later.copy(), self._seq.copy()
        copy._length = self._length
        return copy


def _records(entry: Record | LazyBatch) -> Iterable[Record]:
    return entry.records() if isinstance(entry, LazyBatch) else (entry,)


def why(records: Iterable[Record], id: RecordId | None) -> list[Record]:
    """The record, its cause, the cause of the cause ...; [] for None. Raises KeyError for a missing record."""
    by_id = {record.id: record for record in records}
    chain: list[Record] = []
    while id is not None:
        chain.append(by_id[id])
        id = chain[-1].cause
    return chain


# ---------------------------------------------------------------- JSON


def to_json(value: Any) -> Any:
    """Return a value in types of JSON: a partition as "t-0", an enum as its value, bytes as text, a dataclass as an object."""
    match value:
        case None | bool() | int() | str() | float():
            return value
        case TopicPartition() | PartitionReplica():
            return str(value)
        case RecordId():
            return list(value)
        case Enum():
            return value.value
        # Bytes that are not UTF-8 become backslash escapes.
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case dict():
            return {str(to_json(key)): to_json(item) for key, item in value.items()}
        case set() | frozenset():
            return sorted(to_json(item) for item in value)
    return _structure_to_json(value)


def _structure_to_json(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value):
        kept = (f.name for f in dataclass_fields(value) if _is_journaled(f, value))
        named = {"event": value.name} if isinstance(value, Event) else {}
        return named | {name: to_json(getattr(value, name)) for name in kept}
    if hasattr(value, "_fields"):
        return {name: to_json(item) for name, item in zip(value._fields, value, strict=True)}
    return [to_json(item) for item in value]


def _is_journaled(f: Field[Any], event: Any) -> bool:
    """By its metadata "journal": False is never, "if not default" is with another value than its default, none is always."""
    how = f.metadata.get("journal", True)
    return bool(how) and (how != "if not default" or getattr(event, f.name) != f.default)


def to_line(record: Record) -> bytes:
    """Return a record as one line of JSON with the keys id, kind, cause, at_ms and fields, and a newline at its end."""
    head = {"id": list(record.id), "kind": record.kind, "cause": record.cause and list(record.cause), "at_ms": record.at_ms}
    return msgspec.json.encode(head | {"fields": to_json(record.fields)}) + b"\n"
