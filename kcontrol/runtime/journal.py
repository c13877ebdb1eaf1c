"""The one output. Every record says who, what, and because of which other record.

The first record is of kind `run` and holds the version of the schema. `journal_file` writes journals to files and reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import Field, is_dataclass
from dataclasses import fields as dataclass_fields
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from kcontrol.events import Event
from kcontrol.model import PartitionReplica, TopicPartition

JOURNAL_VERSION = 2

OUTSIDE = -1
"""The node of a record that no broker makes: a client, ZooKeeper, or the world. No broker has a negative id.

Source: Request.OrdinaryConsumerId (0.8.0 to 2.8), with which Kafka marks what is no broker.
"""


class RecordId(NamedTuple):
    """A record's place: the node is a broker's id, or OUTSIDE; a broker's incarnation grows with every start of its process."""

    node: int
    incarnation: int
    seq: int

    @property
    def broker(self) -> int | None:
        """Return the broker that made the record; None where no broker has made it."""
        return None if self.node == OUTSIDE else self.node

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


class Spelled(NamedTuple):
    """What a record says, without its number and time."""

    kind: str
    cause: RecordId | None
    fields: dict[str, Any]


Spell = Callable[..., Spelled]


class Batch(NamedTuple):
    """Records that are numbered and not spelled out yet: `spell` makes kind, cause and fields of each row.

    The columns are as long as each other and never change.
    """

    first: RecordId
    at_ms: int
    spell: Spell
    columns: tuple[Sequence[Any], ...]

    def records(self) -> Iterator[Record]:
        node, incarnation, first_seq = self.first
        for seq, row in enumerate(zip(*self.columns, strict=True), first_seq):
            kind, cause, fields = self.spell(*row)
            yield Record(RecordId(node, incarnation, seq), kind, cause, self.at_ms, fields)


class Journal:
    """Records in the order in which they were made. A copy shares nothing that changes.

    A batch of thousands of moves is spelled out, record by record, when somebody looks, which at that size few do.
    """

    def __init__(self) -> None:
        self._spelled: list[Record] = []
        self._later: list[Record | Batch] = []  # from the first batch on that nobody has looked at
        self._seq: dict[tuple[int, int], int] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def records(self) -> list[Record]:
        """All records; the same list each time."""
        self.spell_out()
        return self._spelled

    def spell_out(self) -> None:
        """Make records of all batches, which every copy would have to do for itself."""
        for entry in self._later:
            self._spelled.extend(_records(entry))
        self._later.clear()

    def since(self, position: int) -> list[Record]:
        """The records from that position on; those before it need not be spelled out for that."""
        if not self._later:
            return self._spelled[position:]
        start, at = len(self._later), self._length
        while at > position and start:
            start -= 1
            at -= _size(self._later[start])
        found = [record for entry in self._later[start:] for record in _records(entry)]
        self._later[start:] = found
        return found[position - at :] if at <= position else self._spelled[position:] + found

    def add(self, node: int, incarnation: int, kind: str, cause: RecordId | None, at_ms: int, fields: dict[str, Any]) -> RecordId:
        id = self._number(node, incarnation, 1)
        (self._later or self._spelled).append(Record(id, kind, cause, at_ms, fields))
        return id

    def add_batch(self, node: int, incarnation: int, at_ms: int, spell: Spell, columns: tuple[Sequence[Any], ...]) -> None:
        """A record for each row of the columns, by `spell`, numbered in their order from `next_seq` on."""
        if columns[0]:
            self._later.append(Batch(self._number(node, incarnation, len(columns[0])), at_ms, spell, columns))

    def next_seq(self, node: int, incarnation: int) -> int:
        """The number that this process's next record will have."""
        return self._seq.get((node, incarnation), 0) + 1

    def extend(self, records: Sequence[Record]) -> None:
        """Records that have their ids."""
        (self._later or self._spelled).extend(records)
        self._length += len(records)

    def _number(self, node: int, incarnation: int, count: int) -> RecordId:
        seq = self.next_seq(node, incarnation)
        self._seq[node, incarnation] = seq + count - 1
        self._length += count
        return RecordId(node, incarnation, seq)

    def why(self, id: RecordId | None) -> list[Record]:
        """The chain of causes, nearest first. Raises KeyError for an id that is not in here."""
        return why(self.records, id)

    def copy(self) -> Journal:
        twin = Journal.__new__(Journal)
        twin._spelled, twin._later, twin._seq = self._spelled.copy(), self._later.copy(), self._seq.copy()
        twin._length = self._length
        return twin


def _records(entry: Record | Batch) -> Iterable[Record]:
    return entry.records() if isinstance(entry, Batch) else (entry,)


def _size(entry: Record | Batch) -> int:
    return len(entry.columns[0]) if isinstance(entry, Batch) else 1


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
        kept = (f.name for f in dataclass_fields(value) if _is_said(f, value))
        named = {"event": value.name} if isinstance(value, Event) else {}
        return named | {name: plain(getattr(value, name)) for name in kept}
    if hasattr(value, "_fields"):
        return {name: plain(item) for name, item in zip(value._fields, value, strict=True)}
    return [plain(item) for item in value]


def _is_said(f: Field[Any], event: Any) -> bool:
    """Whether the journal has this field of this event."""
    how = f.metadata.get("journal", True)
    return bool(how) and (how != "if told" or getattr(event, f.name) != f.default)


def to_line(record: Record) -> bytes:
    """One record as one line of JSON: id, kind, cause and at_ms first, then its own fields."""
    head = {"id": list(record.id), "kind": record.kind, "cause": record.cause and list(record.cause), "at_ms": record.at_ms}
    return msgspec.json.encode(head | {"fields": plain(record.fields)}) + b"\n"
