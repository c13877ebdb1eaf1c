"""The states after the records of a journal: a state is computed from the nearest checkpoint before its record.

A checkpoint is a stored copy of the state after one of the records.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from kcontrol.journal.fold import Fold
from kcontrol.journal.journal import Record

State = dict[str, Any]
Follow = Callable[[Record, Fold], None]

EVERY = 256
DEEP = {"znodes": 1, "nodes": 4, "channels": 2, "to_controller": 2, "logs": 3, "acknowledged": 2,
        "consumers": 1, "offsets_logs": 2}  # fmt: skip
"""The depth to which containers are changed in place (nodes: broker, part, field); deeper values are only replaced."""


def _copy(value: Any, depth: int) -> Any:
    if depth == 0:
        return value
    if isinstance(value, dict):
        return {key: _copy(item, depth - 1) for key, item in value.items()}
    return value.copy() if isinstance(value, list) else value


def _entries(value: Any, depth: int) -> int:
    """Entries down to `depth` levels: {"a": [1, 2]} has 1 at depth 1, 3 at depth 2."""
    if depth == 0 or not isinstance(value, dict | list):
        return 0
    return len(value) + sum(_entries(item, depth - 1) for item in (value.values() if isinstance(value, dict) else ()))


class History:
    """The states of the cluster after each record of a journal, which may grow.

    `follow(record, fold)`, if given, is called once for each record, in order; `fold` is a `Fold` with the state after the record
    and the record's changes.
    """

    def __init__(self, records: Sequence[Record], checkpoint_interval: int = EVERY, follow: Follow | None = None) -> None:
        self.records, self._checkpoint_interval, self._follow = records, checkpoint_interval, follow
        self._end, self._folded = Fold(), 0
        self._checkpoints, self._places = [Fold()], [0]  # the folds, and the number of records before each
        # A checkpoint follows after `checkpoint_interval` records, or after as many as the state has entries, so that checkpoints
        # do not grow faster than the journal.
        self._due = checkpoint_interval

    @property
    def state(self) -> State:
        """The state after the last record: this object's own dict, which changes when the journal grows."""
        self.take_in()
        return self._end.state

    def at(self, index: int) -> State:
        """Return a copy of the state after the record at this index, from 0 on; after the last record if the index is larger."""
        self.take_in()
        if index >= self._folded - 1:
            return self._twin(self._end).state
        nearest = bisect_right(self._places, index + 1) - 1
        found = self._twin(self._checkpoints[nearest])
        return found.all(self.records[position] for position in range(self._places[nearest], index + 1)).state

    def take_in(self) -> None:
        """The records since the last call; `follow` then sees each with its new state."""
        for position in range(self._folded, len(self.records)):
            record = self.records[position].to_json()
            self._end.add(record)
            if self._follow is not None:
                self._follow(record, self._end)
            self._folded = position + 1
            if self._folded == self._due:
                self._add_checkpoint(self._folded)

    def _add_checkpoint(self, count: int) -> None:
        self._checkpoints.append(self._twin(self._end))
        self._places.append(count)
        entries = sum(_entries(part, DEEP[name]) for name, part in self._end.state.items())
        self._due = count + max(self._checkpoint_interval, entries)

    @staticmethod
    def _twin(fold: Fold) -> Fold:
        """The copy shares the requests of earlier `send` records, which never change."""
        twin = Fold()
        twin.state = {name: _copy(part, DEEP[name]) for name, part in fold.state.items()}
        twin._sent = fold._sent
        return twin
