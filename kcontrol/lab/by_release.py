"""The table of what differs between releases, a few rows of it, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from kcontrol.errors import UserError
from kcontrol.generations import PROTOCOL_RULES, RULES
from kcontrol.lab import tables
from kcontrol.lab.frames import Wide
from kcontrol.releases import key
from kcontrol.views import text


def generations(names: Sequence[str]) -> pd.DataFrame:
    """One row per named rule, one column per release in which one of them changed; "" where it stays as it was.

    Raises UserError, listing the rules, for one that does not exist, and where none is named.
    """
    every = RULES | PROTOCOL_RULES
    if not names or not every.keys() >= set(names):
        wrong = next((repr(name) for name in names if name not in every), "nothing")
        raise UserError(f"There is no rule {wrong}; there are {text.listed(sorted(every), 100)}.")
    chosen = {name: every[name] for name in names}
    releases = sorted({since for rows in chosen.values() for since, _ in rows}, key=key)
    rows = ({"rule": name, **{since: _said(value) for since, value in found}} for name, found in chosen.items())
    return Wide(tables.table(rows, dict.fromkeys(releases, "string"), "rule").fillna(""))


def _said(value: Any) -> str:
    """A rule's value in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return text.listed(value, 9) or "nobody" if isinstance(value, tuple) else str(value)
