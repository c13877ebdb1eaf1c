"""Makes the values and pictures of the second run that the viewer and the HTML page show beside the first run."""

from collections.abc import Iterable, Sequence
from typing import Any

from kcontrol.journal.journal import Record
from kcontrol.views.group_strip import GroupStrip
from kcontrol.views.moving_strip import strips_of
from kcontrol.views.record_rows import rows

ComparedRun = tuple[str, Iterable[Record], int]
"""The name of a run, its records, and the index of the first record that differs from the shown run, or -1 if none differs."""


def traits(beside: ComparedRun | None) -> dict[str, Any]:
    """Return the viewer's traits (the values that the browser gets) about a second run, `beside`.

    Without a second run the values are empty, and `parted` is -1.

    Keys:
        other_name: the run's name.
        other: one dict per journal record, as `record_rows.py` makes it.
        parted: the index of the first record that differs between the two runs, -1 if none differs.
        other_strips: the pictures of the run's consumer groups.
    """
    name, records, parted = beside or ("", (), -1)
    others = list(records)
    return {"other_name": name, "other": rows(others), "parted": parted, "other_strips": strips_of(others)}


def strips_of_both(records: Sequence[Record], name: str, beside: ComparedRun | None) -> GroupStrip | None:
    """One run's groups above the other's; None without a second run or without groups."""
    other_name, others, _ = beside or ("", (), -1)
    runs = ((records, name), (list(others), other_name)) if beside else ()
    found = [GroupStrip(run, strip["group"], of) for run, of in runs for strip in strips_of(run)]
    for strip in found[:1]:
        strip.beside = found[1:]
    return found[0] if found else None
