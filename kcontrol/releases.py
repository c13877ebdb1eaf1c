"""Kafka's releases in their order, and rows of (since, value), of which the latest that is not later than a release counts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any


def key(release: str) -> tuple[int, ...]:
    """A release as numbers that are ordered as releases are. Raises ValueError for what does not look like one."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+){1,3}", release):
        raise ValueError(f"{release!r} is no release: it should look like 2.8 or 0.8.2")
    return tuple(map(int, release.split(".")))


def is_since(since: str, release: str) -> bool:
    """Whether a release, or the line that it belongs to, is not older than another."""
    return key(since) <= key(release) or key(since)[:2] == key(release)


def pick(rows: Sequence[tuple[str, Any]], release: str) -> Any:
    """The value in force in a release. Raises IndexError for a release before the first row."""
    return [value for since, value in rows if is_since(since, release)][-1]
