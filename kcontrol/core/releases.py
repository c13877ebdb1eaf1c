"""Kafka's releases in their order, and the lookup of a release in rows of (since, value)."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

# The release lines that can be played. The rules of other lines are known too, for `rule_changes`.
PLAYABLE_RELEASES = ("0.8.0", "0.8.1", "0.8.2", "0.9", "0.10.2", "0.11.0", "1.0", "1.1",
                     "2.4", "2.8", "3.9")  # fmt: skip


@cache
def sort_key(release: str) -> tuple[int, ...]:
    """For "0.8.2" it is (0, 8, 2), which is below (2, 8). Raises ValueError for other text."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+){1,3}", release):
        raise ValueError(f"{release!r} is no release: it should look like 2.8 or 0.8.2")
    return tuple(map(int, release.split(".")))


def is_since(since: str, release: str) -> bool:
    """Release "2.1" is as new as each of its patches, such as "2.1.1"; "2.1.0" is not."""
    return sort_key(since) <= sort_key(release) or sort_key(since)[:2] == sort_key(release)


def value_in_force(rows: Sequence[tuple[str, Any]], release: str) -> Any:
    """The value of the last row not later than `release`; IndexError before the first row."""
    return [value for since, value in rows if is_since(since, release)][-1]
