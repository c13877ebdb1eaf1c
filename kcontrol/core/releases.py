"""Kafka's releases in their order, and the lookup of a release in rows of (since, value)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any


@cache
def sort_key(release: str) -> tuple[int, ...]:
    """Return a release as a tuple of its numbers: (0, 8, 2) for "0.8.2", which is below (2, 8).

    Raises ValueError for text that is not two to four numbers with dots.
    """
    if not re.fullmatch(r"[0-9]+(\.[0-9]+){1,3}", release):
        raise ValueError(f"{release!r} is no release: it should look like 2.8 or 0.8.2")
    return tuple(map(int, release.split(".")))


def is_since(since: str, release: str) -> bool:
    """Return whether `release` is as new as `since` or newer.

    A release of two numbers is as new as each of its patches: is_since("2.1.1", "2.1") is True, and
    is_since("2.1.1", "2.1.0") is False.
    """
    return sort_key(since) <= sort_key(release) or sort_key(since)[:2] == sort_key(release)


def value_in_force(rows: Sequence[tuple[str, Any]], release: str) -> Any:
    """Return the value in force in `release`: that of the last pair not later than `release`.

    `rows` has pairs (first release, value), sorted by release. Raises IndexError if `release` is
    before the first pair.
    """
    return [value for since, value in rows if is_since(since, release)][-1]
