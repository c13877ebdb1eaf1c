"""Kafka's purgatory: operations that complete once, by their condition or by their deadline.

Source: DelayedOperation.scala (0.9, 2.8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kcontrol.group.timing_wheel import Timer

Callback = Callable[[], None]
Check = Callable[[], bool]


class Operation:
    """A delayed operation: completed once, by `complete` when `is_ready()`; at the deadline by `complete`, then `expire`."""

    def __init__(self, name: str, is_ready: Check, complete: Callback, expire: Callback) -> None:
        self.name, self.is_ready, self.complete, self.expire = name, is_ready, complete, expire
        self.is_completed = False


class Purgatory:
    """Delayed operations by key, such as a group id, with a deadline timer; `check_and_complete` completes a key's ready ones."""

    def __init__(self, start_ms: int = 0) -> None:
        self.timer = Timer(start_ms=start_ms)
        self.watchers: dict[str, list[Operation]] = {}
        self._waiting: dict[str, Operation] = {}

    def force_complete(self, operation: Operation) -> bool:
        """Complete an operation, unless it is complete; return whether this call completed it."""
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
        """Complete a ready operation and return True; else store it until `deadline_ms` or a check of one of its `keys`."""
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
        """Returns how many operations this call has completed."""
        watched = self.watchers.get(key, [])
        completed = sum(not op.is_completed and self.try_complete(op) for op in list(watched))
        watched[:] = [operation for operation in watched if not operation.is_completed]
        if not watched:
            self.watchers.pop(key, None)
        return completed

    def advance(self, now_ms: int) -> None:
        """Complete and expire the watched operations whose deadline is at or before `now_ms`."""
        while self.timer.next_ms is not None and self.timer.next_ms <= now_ms:
            for move in self.timer.advance(now_ms):
                if move.target is None:
                    self._expire(self._waiting[move.task])

    def _expire(self, operation: Operation) -> None:
        if self.force_complete(operation):
            operation.expire()

    @property
    def watched(self) -> int:
        """Entries of complete operations that are not removed yet count too."""
        return sum(map(len, self.watchers.values()))
