"""Makes the table of rules, which are differences between releases of Kafka's controller, with their values by release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kcontrol.core.controller_rules import Rules
from kcontrol.core.errors import UserError
from kcontrol.core.releases import sort_key
from kcontrol.core.rule_fields import declared
from kcontrol.lab.support.late import frames, pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views import text


def generations(names: Sequence[str]) -> pd.DataFrame:
    """Return one row per rule in `names`, such as "fenced_writes", and one column per release that changed one of the rules.

    A cell has the rule's new value, and is empty if the release did not change the rule. Raises UserError for an unknown rule.
    """
    every = declared(Rules)
    if not names or not every.keys() >= set(names):
        wrong = next((repr(name) for name in names if name not in every), "nothing")
        raise UserError(f"There is no rule {wrong}; the rules are {text.listed(sorted(every), 100)}.")
    chosen = {name: every[name].rows for name in names}
    releases = sorted({since for rows in chosen.values() for since, _ in rows}, key=sort_key)
    rows = ({"rule": name, **{since: _said(value) for since, value in found}} for name, found in chosen.items())
    return frames.Wide(journal_tables.table(rows, dict.fromkeys(releases, "string"), "rule").fillna(""))


def _said(value: Any) -> str:
    """Such as "yes" or "no" for a bool, the elements of a tuple or "none", else the `str`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return text.listed(value, 9) or "none" if isinstance(value, tuple) else str(value)
