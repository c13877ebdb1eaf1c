"""The state after any record of a journal, folded from the nearest checkpoint before it and not from the beginning."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from kcontrol.runtime.fold import Fold
from kcontrol.runtime.journal import Record

State = dict[str, Any]

EVERY = 256
DEEP = {"znodes": 1, "nodes": 4, "channels": 2, "questions": 2, "logs": 3, "acknowledged": 2,
        "consumers": 1, "offsets_logs": 2}  # fmt: skip
"""How deep the containers of a part are changed in place (a node: broker, room, field); what lies below is only ever replaced."""


def _copy(value: Any, deep: int) -> Any:
    if deep == 0:
        return value
    if isinstance(value, dict):
        return {key: _copy(item, deep - 1) for key, item in value.items()}
    return value.copy() if isinstance(value, list) else value


def _entries(value: Any, deep: int) -> int:
    """How many entries a copy of this has."""
    if deep == 0 or not isinstance(value, dict | list):
        return 0
    return len(value) + sum(_entries(item, deep - 1) for item in (value.values() if isinstance(value, dict) else ()))


class History:
    """The states along a journal, which may grow.

    A checkpoint is made after as many records as the state then has entries, and after `every` at least: so all checkpoints
    together are no larger than the journal, and no state is further from a checkpoint than copying it would take.
    """

    def __init__(self, records: Sequence[Record], every: int = EVERY) -> None:
        self.records, self._every = records, every
        self._end, self._folded = Fold(), 0
        self._checkpoints, self._places = [Fold()], [0]  # after so many records
        self._due = every

    @property
    def state(self) -> State:
        """The state after the last record. It goes on with the journal: whoever keeps it sees it change."""
        self._take_in()
        return self._end.state

    def at(self, index: int) -> State:
        """The state after the record at this index, which counts from 0; it stays as it is, and is the caller's."""
        self._take_in()
        if index >= self._folded - 1:
            return self._twin(self._end).state
        nearest = bisect_right(self._places, index + 1) - 1
        found = self._twin(self._checkpoints[nearest])
        return found.all(self.records[position] for position in range(self._places[nearest], index + 1)).state

    def _take_in(self) -> None:
        for position in range(self._folded, len(self.records)):
            self._end.add(self.records[position])
            if position + 1 == self._due:
                self._remember(position + 1)
        self._folded = len(self.records)

    def _remember(self, count: int) -> None:
        self._checkpoints.append(self._twin(self._end))
        self._places.append(count)
        self._due = count + max(self._every, sum(_entries(part, DEEP[name]) for name, part in self._end.state.items()))

    @staticmethod
    def _twin(fold: Fold) -> Fold:
        """A fold that goes on by itself. The two share which requests were sent: an id is given once."""
        twin = Fold()
        twin.state = {name: _copy(part, DEEP[name]) for name, part in fold.state.items()}
        twin._sent = fold._sent
        return twin
