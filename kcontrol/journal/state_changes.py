"""The operations by which a journal record changes the state of a cluster, as `fold.py` computes it.

Each operation changes `Changes.state`, and is added as a change to the list `Changes.noted`. A change is (op, path, value). All
keys of a path but the last must exist; `need` adds a missing value. The operations:

* `put` a value under the last key, `drop` the last key;
* `update` an object with the entries of another, `omit` the keys of a list from an object;
* `push` a value to the end of a list, `shift` the first value off a list;
* `extend` a list by a second list, `keep` only the first values of a list. Both make a new list.

The changes can be performed on a second copy of the state without the records: see `views/patches.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Change = tuple[str, tuple[str, ...], Any]


class Changes:
    """The state of the cluster, and methods that change it; `noted` lists the changes that the last journal record has made.

    A change is (name of the method, path, argument), such as ("drop", ("znodes", "/controller"), None).
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state
        self.noted: list[Change] = []  # `Fold.add` empties the list before each record

    def need(self, empty: Any, *path: str) -> Any:
        """The value at `path`, `empty` if the last key is missing. Raises KeyError for an earlier key."""
        held, last = self.state, path[-1]
        for key in path[:-1]:
            held = held[key]
        if last not in held:
            self.put(empty, *path)
        return held[last]

    def put(self, value: Any, *path: str) -> None:
        """Raises KeyError if a key of `path` before the last is missing."""
        held, kind = self.state, type(value)
        for key in path[:-1]:
            held = held[key]
        # The state gets a copy, so that its later changes do not alter the value in `noted`.
        held[path[-1]] = value.copy() if kind is dict or kind is list else value
        self.noted.append(("put", path, value))

    def drop(self, *path: str) -> None:
        """Raises KeyError without a value at `path`."""
        del self._at(path[:-1])[path[-1]]
        self.noted.append(("drop", path, None))

    def update(self, values: Mapping[str, Any], *path: str) -> None:
        self._at(path).update(values)
        self.noted.append(("update", path, values))

    def omit(self, keys: Iterable[Any], *path: str) -> None:
        """A missing key is no error. Raises KeyError if a key of `path` is missing."""
        held = self._at(path)
        for key in keys:
            held.pop(str(key), None)
        self.noted.append(("omit", path, keys))

    def push(self, value: Any, *path: str) -> None:
        self._at(path).append(value)
        self.noted.append(("push", path, value))

    def shift(self, *path: str) -> Any:
        """Take the first value of the list at `path`. Raises IndexError for an empty list."""
        self.noted.append(("shift", path, None))
        return self._at(path).pop(0)

    def extend(self, values: Sequence[Any], *path: str) -> None:
        held = self._at(path[:-1])
        held[path[-1]] = [*held[path[-1]], *values]
        self.noted.append(("extend", path, values))

    def keep(self, count: int, *path: str) -> None:
        held = self._at(path[:-1])
        held[path[-1]] = held[path[-1]][:count]
        self.noted.append(("keep", path, count))

    def _at(self, path: Sequence[str]) -> Any:
        held = self.state
        for key in path:
            held = held[key]
        return held
