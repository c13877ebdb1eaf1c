"""Transition tables: the one place where a state machine says what may happen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, NamedTuple


class Transition(NamedTuple):
    """One row. `phase` says what the machine must do around the move, `action` decides it, `note` says what it means."""

    source: Enum
    target: Enum
    phase: str
    action: Callable[..., Any]
    note: str


class TransitionTable:
    """Rows of (source, target, phase, action, note). The machine runs it, the diagram draws it, the tests enumerate it.

    Raises ValueError if a pair of states is listed twice.
    """

    def __init__(self, name: str, states: type[Enum], source: str, rows: Iterable[tuple[Any, ...]]) -> None:
        self.name, self.states, self.source = name, states, source
        self.rows = tuple(Transition(*row) for row in rows)
        self._by_pair = {(row.source, row.target): row for row in self.rows}
        if len(self._by_pair) != len(self.rows):
            raise ValueError(f"the {name} table lists a pair of states twice")

    def __iter__(self) -> Iterator[Transition]:
        return iter(self.rows)

    def find(self, source: Enum, target: Enum) -> Transition | None:
        """The row of a pair, or None where the pair is illegal."""
        return self._by_pair.get((source, target))

    def replaced(self, source: Enum, target: Enum, action: Callable[..., Any]) -> TransitionTable:
        """The same table with another action in one row. Raises KeyError if there is no such row."""
        if self.find(source, target) is None:
            raise KeyError(f"the {self.name} table has no row {source} -> {target}")
        rows = [row._replace(action=action) if (row.source, row.target) == (source, target) else row for row in self.rows]
        return TransitionTable(self.name, self.states, self.source, rows)
