"""Draws the group strip of the viewer: the history of a consumer group, with the pending timers at the record that is shown.

One picture has what is equal at all records: the changes of the group, its members and partitions, as in `group_strip.py`. The
browser gets the rest apart: the title, each line of text, and each flag, which stands for a pending timer of the coordinator.
Each of these has an interval: the records at which it is shown. For example, the flag "in 10 s" of a timer is shown from the
first record to the last record at which the timer fires in 10 s; the next interval may have the flag "in 9 s". So the browser
only selects the intervals that have the index of the shown record.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from kcontrol.journal.fold import Fold
from kcontrol.journal.journal import Record
from kcontrol.journal.journal_file import WRONG
from kcontrol.views import group_moments
from kcontrol.views.group_moments import Deadline, Moment
from kcontrol.views.group_strip import HEADING, Flag, GroupStrip, Instant
from kcontrol.views.picture import MARGIN

Item = TypeVar("Item")
NOTHING: tuple[Moment | None, tuple[Deadline, ...], Instant | None] = None, (), None  # what is known before the first record


class MovingStrip(GroupStrip):
    """The picture (SVG) of one group's history for the viewer, with flags (pending timers) and lines of text at each record."""

    def __init__(self, records: Sequence[Record], group_id: str) -> None:
        super().__init__(records, group_id)
        self._clock = [record.at_ms for record in records]
        self._at_record = list(self._instants())
        self.flags_abreast = max((len(now.times) for _, now in self._at_record), default=0)

    def to_json(self) -> dict[str, Any]:
        """Return a dict for the viewer: `group`, `svg`, `box` (its viewBox), `marks`, `flags` and `text`.

        `marks` has each column's record and end; `flags`, with the title, has (from, until, *Flag), `text` (from, until, line),
        each shown at the records with from <= index < until.
        """
        flags = _intervals((at, [self._title_at(now), *self.flags_at(now)]) for at, now in self._at_record)
        lines = _intervals((at, enumerate(self.lines_at(now))) for at, now in self._at_record)
        text = [(first, end, line) for first, end, (_, line) in sorted(lines, key=lambda interval: interval[2][0])]
        box = f"0 0 {self.width:g} {self._drawn()[1]:g}"
        shown = {"group": self.group_id, "svg": self.svg(), "box": box, "marks": self.marks()}
        return shown | {"flags": [(first, end, *flag) for first, end, flag in flags], "text": text}

    def _heading(self) -> list[str]:
        return []

    def _flags(self) -> list[str]:
        return []

    def _title_at(self, now: Instant) -> Flag:
        return Flag("", MARGIN, HEADING, "title", self._title(now), "")

    def _instants(self) -> Iterator[tuple[int, Instant]]:
        """Yield (index of a record, Instant) for the first record and each later record at which the Instant changes.

        An Instant is the group after the record, with its pending timers.
        """
        changes = {at: (moment, timers) for moment in self.every for at, timers in moment.pending}
        moment, timers, shown = NOTHING
        for at, now_ms in enumerate(self._clock):
            moment, timers = changes.get(at, (moment, timers))
            # Without a timer no word depends on the time.
            now = Instant(moment, timers, now_ms if timers else 0)
            if now != shown:
                yield at, now
                shown = now


def _intervals(instants: Iterable[tuple[int, Iterable[Item]]]) -> list[tuple[int, int | None, Item]]:
    """(first record, record after the last or None, item) for each unbroken stretch with an item."""
    found, begun = list[tuple[int, int | None, Item]](), dict[Item, int]()
    for at, items in instants:
        held = dict.fromkeys(items, at)
        found += [(first, at, item) for item, first in begun.items() if item not in held]
        begun = held | {item: first for item, first in begun.items() if item in held}
    return sorted([*found, *((first, None, item) for item, first in begun.items())], key=lambda interval: interval[0])


def strips(records: Sequence[Record], state: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One history per consumer group, as the viewer draws it."""
    return [MovingStrip(records, group_id).to_json() for group_id in group_moments.groups(state)]


def strips_of(records: Sequence[Record]) -> list[dict[str, Any]]:
    """As `strips`, with the state computed from `records`."""
    followed = Fold()
    for record in records:
        # Records that contradict earlier records are skipped.
        with suppress(*WRONG):
            followed.add(record)
    return strips(records, followed.state)
