"""Numbers the journal records of a run, and finds the intervals, znode writes and state znodes that several tables show."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from kcontrol.journal.journal import Record
from kcontrol.views import clock

# A row of a table of `history_tables.TABLES`: its values by the names of the columns.
Row = dict[str, Any]


class Entry(NamedTuple):
    """A journal record `r` with values in JSON's types, and its position `n` in the journal, from 1.

    `time_ms` is its time, None in a recording.
    """

    n: int
    r: Record
    time_ms: int | None

    @property
    def evidence(self) -> Row:
        """The columns by which a row of a table names this journal record: `n` (position), `record` (id) and `time_ms`."""
        return {"n": self.n, "record": str(self.r.id), "time_ms": self.time_ms}


class Entries:
    """The journal records of a run with their positions, and the clock of their times ("virtual", "wall" or "none")."""

    # Most tables read a small part of the records, and the values of a record take long to convert to JSON's types, so a record
    # is converted when a table reads it.
    def __init__(self, records: Sequence[Record], clock: clock.Clock) -> None:
        self.clock, self._records = clock, records
        self._made: dict[int, Entry] = {}

    @property
    def entries(self) -> list[Entry]:
        """All records, in the order of the journal."""
        return [self._entry(n, record) for n, record in enumerate(self._records, 1)]

    def of(self, *kinds: str) -> Iterator[Entry]:
        """Yield the journal records of these kinds, such as "write", in the order of the journal."""
        return (self._entry(n, record) for n, record in enumerate(self._records, 1) if record.kind in kinds)

    def _entry(self, n: int, record: Record) -> Entry:
        if (found := self._made.get(n)) is None:
            found = self._made[n] = Entry(n, record.to_json(), None if self.clock == "none" else record.at_ms)
        return found


def entries_of(records: Sequence[Record]) -> Entries:
    """Return the records of a journal, numbered from 1, with their times, and the clock of the run: "virtual", "wall" or "none".

    For "none", a recording of brokers, the times are None.
    """
    return Entries(records, clock.of_run(records))


def interval(begin: Entry, end: Entry | None) -> Row:
    """Return the columns of a table row about the time between two journal records, `begin` and `end`.

    The columns are positions, ids and times in ms; without `end` the columns of the end are None.
    """
    # In a recording all times and durations are None.
    known = begin.time_ms is not None and end is not None and end.time_ms is not None
    return {
        "n": begin.n,
        "record": str(begin.r.id),
        "begin_ms": begin.time_ms,
        "end_ms": end and end.time_ms,
        "duration_ms": end.time_ms - begin.time_ms if known else None,  # type: ignore[operator, union-attr]
        "end_n": end and end.n,
        "end_record": end and str(end.r.id),
    }


class ZnodeWrite(NamedTuple):
    """One change of a znode in the journal record `entry`, by a write or by the end of a session."""

    entry: Entry
    # The broker that has written, or whose session has ended; None for a write of a client.
    node: int | None
    # "create", "set" or "delete" for a successful write, "close" for a znode that the end of its session has deleted.
    op: str
    path: str
    # The new data of the znode; for "delete" and "close" it is "" or None, and says nothing.
    data: str | None


def znode_writes(run: Entries, chosen: Callable[[str], bool]) -> Iterator[ZnodeWrite]:
    """Yield the writes of znodes whose paths `chosen` accepts, in the order of the journal."""
    for entry in run.of("write", "close"):
        fields = entry.r.fields
        if entry.r.kind == "close":
            yield from (ZnodeWrite(entry, fields["broker"], "close", path, None) for path in fields["deleted"] if chosen(path))
        elif fields["error"] is None:
            for op, path, data, *_ in fields["ops"]:
                if op != "check" and chosen(path):
                    yield ZnodeWrite(entry, entry.r.id.broker, op, path, data)


class StoredState(NamedTuple):
    """One value of a partition's state znode; `leader`, `isr` and the epochs are None if the znode was deleted."""

    # The journal record of the write or the deletion.
    entry: Entry
    partition: str
    # The partition's state before the transition that wrote the znode, such as "NewPartition"; None for a write without a
    # transition, such as a change of the ISR.
    source: str | None
    # How the leader was chosen: the strategy of the election, such as "offline", or "unclean" for a leader outside of the
    # ISR. None if the journal record has no rule, as in a recording.
    rule: str | None
    leader: int | None
    isr: list[int] | None
    # The epochs in the znode; an epoch is also None if a client has written the znode without it.
    leader_epoch: int | None
    controller_epoch: int | None

    @property
    def zxid(self) -> int | None:
        """The zxid of the write of the state znode."""
        return self.entry.r.fields.get("zxid")


def journal(run: Entries) -> Iterator[Row]:
    """Each journal record; `fields` has its fields as JSON text, such as {"broker": 1}.

    `at` is the time of a wall clock, `at_ms` that of a simulated run, `time_ms` either in ms.
    """
    for entry in run.entries:
        _, incarnation, seq = entry.r.id
        at = {"at": entry.time_ms if run.clock == "wall" else None, "at_ms": entry.time_ms if run.clock == "virtual" else None}
        yield {"n": entry.n, "id": str(entry.r.id), **at, "time_ms": entry.time_ms, "node": entry.r.id.broker,
               "incarnation": incarnation, "seq": seq, "kind": entry.r.kind, "cause": entry.r.cause and str(entry.r.cause),
               "fields": msgspec.json.encode(entry.r.fields).decode()}  # fmt: skip
