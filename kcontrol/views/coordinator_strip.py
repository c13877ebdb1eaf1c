"""The picture of one consumer group and, above it, of the partition of the offsets topic that stores the group.

Columns are the journal records that change the group or the partition, as in `group_strip.py`. One row shows the partition's
leader, which the controller writes to the state znode. One row per broker shows whether its coordinator loads or owns the
partition (the sets `loading` and `owned`). A line goes from the write of the state znode to the load at the new leader.
"""

from collections.abc import Iterator
from html import escape

from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.views.group_moments import NO_PLACE, Place, stretches
from kcontrol.views.group_strip import GAP, STATE, TOP, GroupStrip
from kcontrol.views.picture import MARGIN, label

NO_LEADER = "no leader"
LOADS, OWNS, BOTH = "loads", "owns", "owns and loads"


class CoordinatorStrip(GroupStrip):
    """The history of one group and of the partition of the offsets topic that stores it, as a picture (SVG) and as text."""

    # Each column (a moment) also has the partition of the offsets topic; at most 16 columns are drawn.
    places, most = True, 16

    @property
    def _places(self) -> list[Place]:
        return [moment.place or NO_PLACE for moment in self.moments]

    @property
    def _partition_name(self) -> str:
        number = next((place.number for place in reversed(self._places) if place.number is not None), None)
        return OFFSETS_TOPIC if number is None else f"{OFFSETS_TOPIC}-{number}"

    def lines(self) -> list[str]:
        """First a line such as "__consumer_offsets-3: leader 2, broker 2 owns."."""
        now = self._places[-1] if self.moments else NO_PLACE
        sets = [f"broker {n} {word}" for n in self._brokers() if (word := _condition(now, n))]
        words = [_leader(now), *sets] if now.number is not None else sets
        return [f"{self._partition_name}: {', '.join(words) or 'no broker owns it'}.", *super().lines()]

    def _brokers(self) -> list[int]:
        return sorted({n for place in self._places for n in (*place.loading, *place.owned)})

    def _drawn(self) -> tuple[list[str], float]:
        """Return the SVG elements of the picture and its height in pixels.

        Above are rows about the partition of the offsets topic that stores the group, below is the strip of the group.
        """
        below, height = super()._drawn()
        is_known = any(place.number is not None for place in self._places)
        rows = {"leader": [_leader(place) for place in self._places]} if is_known else {}
        rows |= {f"broker {n}": [_condition(place, n) for place in self._places] for n in self._brokers()}
        parts = [label(MARGIN, 22, f"Partition {self._partition_name}", "ink", 14), *self._causes()]
        for row, (name, values) in enumerate(rows.items()):
            parts += [label(MARGIN, _top(row) + 16, name, "dim", 12), *self._row(values, _top(row))]
        own = _top(len(rows)) + GAP
        return [*parts, f'<g transform="translate(0 {own:g})">', *below, "</g>"], own + height

    def _row(self, values: list[str], top: float) -> Iterator[str]:
        for words, first, last in stretches(values):
            if words:
                x, width = self.x(first), self.x(last + 1) - self.x(first) - 1
                css = "moving" if words in (LOADS, BOTH, NO_LEADER) else "state"
                box = f'<rect x="{x}" y="{top}" width="{width:g}" height="{STATE}" rx="4" class="{css}">'
                yield f"{box}<title>{escape(words)}</title></rect>"
                yield label(x + 4, top + 15, words if width > 6.5 * len(words) else words[:1].upper(), "ink", 11)

    def _causes(self) -> Iterator[str]:
        """A curve from each change of the leader to the column in which the new leader begins to load."""
        brokers = self._brokers()
        for leader, first, last in stretches(place.leader for place in self._places):
            begins = next((n for n in range(first, last + 1) if leader in self._places[n].loading), None)
            if first and begins is not None and leader is not None:
                x, y, top = self.x(first) + 2, TOP + STATE, _top(1 + brokers.index(leader))
                curve = f"M{x} {y}C{x} {top} {x} {top + 11} {self.x(begins)} {top + 11}"
                yield f'<path d="{curve}" class="absent" stroke-width="2"><title>the leader loads the partition</title></path>'


def _top(row: int) -> float:
    return TOP + row * (STATE + GAP)


def _leader(place: Place) -> str:
    return NO_LEADER if place.leader in (None, -1) else f"leader {place.leader}"


def _condition(place: Place, broker: int) -> str:
    loads, owns = broker in place.loading, broker in place.owned
    return BOTH if loads and owns else LOADS if loads else OWNS if owns else ""
