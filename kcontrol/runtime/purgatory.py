"""Kafka's purgatory: operations that wait for something or for their time, and are done with once, whichever comes first.

Source: DelayedOperation.scala (0.9, 2.8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kcontrol.runtime.timing_wheel import Timer


class Operation:
    """Something that waits. `is_ready` is its condition; `complete` happens once, and `expire` after it if time ran out."""

    def __init__(
        self, name: str, is_ready: Callable[[], bool], complete: Callable[[], None], expire: Callable[[], None]
    ) -> None:  # fmt: skip
        self.name, self.is_ready, self.complete, self.expire = name, is_ready, complete, expire
        self.is_completed = False


class Purgatory:
    """Operations by the keys under which somebody may look after them, and a timer for those that nobody does."""

    def __init__(self, start_ms: int = 0) -> None:
        self.timer = Timer(start_ms=start_ms)
        self.watchers: dict[str, list[Operation]] = {}
        self._waiting: dict[str, Operation] = {}

    def force_complete(self, operation: Operation) -> bool:
        """Complete it unless that has been done; return whether it was this call that did."""
        if operation.is_completed:
            return False
        operation.is_completed = True
        self.timer.cancel(operation.name)
        self._waiting.pop(operation.name, None)
        operation.complete()
        return True

    def try_complete(self, operation: Operation) -> bool:
        return operation.is_ready() and self.force_complete(operation)

    def try_complete_else_watch(self, operation: Operation, deadline_ms: int, keys: Iterable[str]) -> bool:
        """Complete it at once, or watch it under its keys until then. Kafka looks twice, since others may do it meanwhile."""
        if self.try_complete(operation):
            return True
        for key in keys:
            self.watchers.setdefault(key, []).append(operation)
        if self.try_complete(operation):
            return True
        self._waiting[operation.name] = operation
        if self.timer.add(operation.name, deadline_ms) is None:
            self._expire(operation)
        return False

    def check_and_complete(self, key: str) -> int:
        """Try all that wait under a key, and let go of those that are done; return how many this call completed."""
        watched = self.watchers.get(key, [])
        completed = sum(self.try_complete(operation) for operation in tuple(watched) if not operation.is_completed)
        left = [operation for operation in watched if not operation.is_completed]
        if left:
            self.watchers[key] = left
        else:
            self.watchers.pop(key, None)
        return completed

    def advance(self, now_ms: int) -> None:
        """Expire what is due by then."""
        while self.timer.next_ms is not None and self.timer.next_ms <= now_ms:
            for move in self.timer.advance(now_ms):
                if move.target is None:
                    self._expire(self._waiting[move.task])

    def _expire(self, operation: Operation) -> None:
        if self.force_complete(operation):
            operation.expire()

    @property
    def watched(self) -> int:
        """Entries under all keys, those of completed operations included."""
        return sum(map(len, self.watchers.values()))
