"""Transition tables: the rows of a state machine, with all transitions that are legal.

A table has the rows of all releases; `for_` returns the table of one release, in which a learner's
actions replace Kafka's. A learner is a user of the exercises.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from itertools import combinations
from typing import Any, Literal, NamedTuple

from kcontrol.core.releases import is_since, sort_key
from kcontrol.core.rule_fields import FIRST_RELEASE

Pair = tuple[Enum, Enum]
Action = Callable[..., Any]


class Transition(NamedTuple):
    """One row of a table: the legal transition from `source` to `target`, and its `action`."""

    source: Enum
    target: Enum
    # Decides what the transition writes and sends, such as the leader and the ISR.
    action: Callable[..., Any]
    # What the transition means.
    note: str
    # The first release with this row, and the first later release without the row; "" if no later
    # release lacks the row.
    since: str = FIRST_RELEASE
    until: str = ""
    # The write to the state znode, None if the transition changes memory alone.
    write: Literal["create", "set"] | None = None

    def is_in(self, release: str) -> bool:
        """Return whether a release has this table row: from `since` on, and before `until`."""
        return is_since(self.since, release) and not (self.until and is_since(self.until, release))


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """The functions of a learner (a user of the exercises) that replace functions of kcontrol."""

    # The action of a transition by (source state, target state).
    rows: Mapping[Pair, Callable[..., Any]] = field(default_factory=dict)
    # Leader elections and functions of the group coordinator, by the name of the function that they
    # replace, such as "offline".
    strategies: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    # Sorts the names of topics that are deleted together; Kafka uses the order of a hash set.
    deletion_order: Callable[[Collection[str]], list[str]] = field(default=sorted, repr=False)


NO_CHANGES = Changes()


class TransitionTable:
    """The rows of a state machine: one for each legal transition of its states.

    Raises ValueError if a pair of states is listed twice for one release.
    """

    def __init__(
        self, name: str, states: type[Enum], source: str, rows: Iterable[Transition]
    ) -> None:
        # The machine's name, such as "partition", the enum of its states, and its source in Kafka.
        self.name, self.states, self.source = name, states, source
        self.rows = tuple(rows)
        self._by_pair = {row[:2]: row for row in self.rows}
        if any(a[:2] == b[:2] and _overlap(a, b) for a, b in combinations(self.rows, 2)):
            raise ValueError(f"the {name} table lists a pair of states twice for one release")

    def __iter__(self) -> Iterator[Transition]:
        return iter(self.rows)

    def find(self, source: Enum, target: Enum) -> Transition | None:
        """None: an illegal transition. Of rows that differ by release, the last."""
        return self._by_pair.get((source, target))

    def for_(self, release: str, changes: Changes = NO_CHANGES) -> TransitionTable:
        """The table of one release. Raises ValueError (release) or KeyError (changed pair)."""
        return _resolved(self, release, changes)

    def with_action(self, source: Enum, target: Enum, action: Action) -> TransitionTable:
        """Raises KeyError if the table has no such row."""
        if self.find(source, target) is None:
            raise KeyError(f"the {self.name} table has no row {source} -> {target}")
        pair = source, target
        rows = [row._replace(action=action) if row[:2] == pair else row for row in self.rows]
        return TransitionTable(self.name, self.states, self.source, rows)


def _overlap(a: Transition, b: Transition) -> bool:
    """Return whether there is a release that has the row `a` and the row `b`."""
    first, second = sorted((a, b), key=lambda row: sort_key(row.since))
    return not first.until or sort_key(first.until) > sort_key(second.since)


@lru_cache(maxsize=256)
def _resolved(table: TransitionTable, release: str, changes: Changes) -> TransitionTable:
    rows = [row for row in table if row.is_in(release)]
    found = TransitionTable(table.name, table.states, table.source, rows)
    for (source, target), action in changes.rows.items():
        if isinstance(source, table.states):
            found = found.with_action(source, target, action)
    return found
