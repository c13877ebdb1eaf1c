"""The evidence in the group strip of a recording: its requests and responses, and the columns that are inferred.

A recording of a coordinator has requests and responses, but no states of the group: each journal record of a state has the field
`inferred`. So the strip of a recording has three rows more. The rows "requests" and "responses" have the numbers of requests
and responses that were recorded while the group was in the state of the column; the numbers from before the first column stand
left of it. The row "inferred" has a hollow diamond in each column whose record was inferred, and a filled diamond in each
column whose record the recording has. No mark depends on a colour.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from html import escape

from kcontrol.journal.journal import Record
from kcontrol.views import text
from kcontrol.views.group_moments import Moment
from kcontrol.views.picture import MARGIN, label

ROWS = {"enqueue": "requests", "respond": "responses"}
LEGEND = "requests and responses: recorded, counted by column; states: \u25c7 inferred, \u25c6 recorded"
ROW, HALF = 14, 4.5  # the height of a row, and half of the height of a diamond
HEIGHT = 4 * ROW + 4


class Evidence:
    """The rows "requests", "responses" and "inferred" that are drawn below the picture of a recorded group.

    Counts and marks stand by column, a state of the group. `bool()` of the object says whether the journal has inferred records.
    """

    def __init__(self, records: Sequence[Record], moments: Sequence[Moment]) -> None:
        self._is_inferred = any("inferred" in record.fields for record in records)
        self.columns = [(records[moment.record], "inferred" in records[moment.record].fields) for moment in moments]
        places = [moment.record for moment in moments]
        known = enumerate(records) if self._is_inferred else ()
        exchanged = [(record.kind, at) for at, record in known if record.kind in ROWS and "inferred" not in record.fields]
        self.counts = {kind: Counter(bisect_right(places, at) - 1 for was, at in exchanged if was == kind) for kind in ROWS}

    def __bool__(self) -> bool:
        return self._is_inferred

    def line(self) -> str:
        """Such as "recorded: 12 requests and 12 responses; inferred: 7 of 8 states of the group"."""
        requests, responses = (counts.total() for counts in self.counts.values())
        inferred = sum(is_inferred for _, is_inferred in self.columns)
        said = f"recorded: {requests} requests and {responses} responses"
        return f"{said}; inferred: {inferred} of {len(self.columns)} states of the group"

    def drawn(self, x: Callable[[int], float], top: float) -> list[str]:
        """Return SVG elements: rows "requests", "responses" and "inferred" below a group's picture, and a legend."""
        names = [*ROWS.values(), "inferred"]
        parts = [label(MARGIN, top + ROW * row + 11, name, "dim", 11) for row, name in enumerate(names)]
        for row, counts in enumerate(self.counts.values()):
            for place, count in counts.items():
                middle = (x(place) + x(place + 1)) / 2
                parts.append(label(middle, top + ROW * row + 11, str(count), "ink", 10, "middle"))
        for place, (record, is_inferred) in enumerate(self.columns):
            above = f"{(x(place) + x(place + 1)) / 2:g} {top + 2 * ROW + 7 - HALF:g}"
            path = f"M{above}l{HALF} {HALF}l-{HALF} {HALF}l-{HALF} -{HALF}z"
            words = escape(text.clean(text.sentence(record)))
            parts.append(f'<path d="{path}" class="{"flag" if is_inferred else "ink"}"><title>{words}</title></path>')
        return [*parts, label(x(0), top + 3 * ROW + 11, LEGEND, "dim", 11)]
