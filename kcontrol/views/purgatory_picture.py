"""A purgatory of a coordinator as SVG and as text: its watch lists, its counters, and its timing wheel.

Each operation has a letter. A square on a watch list is an operation; a dashed, crossed square is an operation that is complete
and has not been removed yet. The rings of the wheel have twenty slots each; a slot of a ring is as long as the whole ring inside
it. A filled slot has tasks, and their letters; the slot with the thick border is that of the ring's clock. A dotted line leads
from each former slot of a task to the next one: the fall of the task from ring to ring.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import cos, pi, sin
from string import ascii_uppercase
from typing import TYPE_CHECKING

from kcontrol.views import clock, text
from kcontrol.views.delayed_operations import Operation, Purgatory
from kcontrol.views.picture import MARGIN, STYLE, WHEEL_STYLE, Picture, frame, label

if TYPE_CHECKING:
    from kcontrol.group.timing_wheel import Wheel

WIDTH = 390  # the wheel stands below the watch lists, so that a narrow column shows both
ROW, SQUARE, TOP, LINE = 28, 22, 62, 17
HUB, RING = 26, 27  # of the wheel: the hole in it, and the breadth of a ring
MOST_KEYS, MOST = 10, 26
Point = tuple[float, float]  # x and y in pixels
LEGEND = (
    "crossed: complete, not removed yet",
    "filled slot: has tasks \u00b7 dotted: the fall of a task",
    "thick border: the clock of the ring",
)


class PurgatoryPicture(Picture):
    """The picture of one purgatory, "Heartbeat" or "Rebalance", of the coordinator on `broker` at the time `now_ms`."""

    def __init__(self, broker: int, purgatory: Purgatory, now_ms: int) -> None:
        self.broker, self.purgatory, self.now_ms = broker, purgatory, now_ms
        shown = [o for o in purgatory.operations if not o.completed_by or o in purgatory.watch_lists.get(o.key, ())]
        last = purgatory.operations[-1:] if purgatory.operations and purgatory.operations[-1] not in shown else []
        self.letters = dict(zip([*shown, *last][-MOST:], ascii_uppercase, strict=False))

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    # ---------------------------------------------------------------- text

    @property
    def title(self) -> str:
        """Watched are entries on watch lists, delayed are tasks in the timer."""
        counters = f"{self.purgatory.watched} watched, {self.purgatory.delayed} delayed"
        return f"Purgatory {self.purgatory.name} of broker {self.broker} at {self.now_ms:,} ms: {counters}."

    def lines(self) -> list[str]:
        """Return the picture as text: the title, the tick and clock of each wheel, and a line for each operation."""
        rings = ", ".join(f"{clock.duration(ring.tick_ms)} (clock {ring.now_ms:,} ms)" for ring in self.purgatory.rings())
        return [self.title, f"  rings: {rings}", *(f"  {self._condition(o, letter)}" for o, letter in self.letters.items())]

    def _condition(self, operation: Operation, letter: str) -> str:
        words = [f"{letter} {operation.operation}, {text.clean(operation.key)}: {', '.join(operation.steps)}"]
        words += [
            f"from {place.at_ms:,} ms ring {clock.duration(place.tick_ms)}, slot {place.slot}" for place in operation.places
        ]
        if operation.left_wheel_ms is not None:
            words.append(f"at {operation.left_wheel_ms:,} ms out of the wheel")
        if operation.completed_by:
            words.append(f"completed by {operation.completed_by} at {operation.completed_ms:,} ms")
        return "; ".join(words)

    # ---------------------------------------------------------------- picture

    def svg(self) -> str:
        """Return the picture as SVG: watch lists above, the wheel below them, both at the left edge."""
        rings, lists = self.purgatory.rings(), list(self.purgatory.watch_lists.items())
        radius, above = HUB + RING * len(rings), TOP + LINE + 16 + ROW * min(len(lists), MOST_KEYS + 1)
        centre = (MARGIN + radius, above + radius)
        place, _, counters = self.title.partition(" at ")
        parts = [label(MARGIN, 22, place, "ink", 14), label(MARGIN, 22 + LINE, f"at {counters}", "ink", 14)]
        parts += self._watch_lists(lists)
        for number, ring in enumerate(rings):
            parts += self._ring(ring, HUB + RING * number, centre)
        for operation in self.letters:
            parts += self._fall(operation, centre)
        height = centre[1] + radius + 10 + LINE * (len(LEGEND) + 1)
        parts += [label(MARGIN, height - 10 - LINE * number, words, "dim", 12) for number, words in enumerate(LEGEND[::-1])]
        return frame(WIDTH, height, " ".join(self.lines()), parts, STYLE + WHEEL_STYLE, ' class="purgatory"')

    def _watch_lists(self, lists: Sequence[tuple[str, list[Operation]]]) -> Iterator[str]:
        yield label(MARGIN, TOP + 14, "watch lists, by key" if lists else "no watch list", "dim", 12)
        for number, (key, watched) in enumerate(lists[:MOST_KEYS]):
            y = TOP + 26 + number * ROW
            yield label(MARGIN, y + 15, text.clean(key, 27), "ink", 12)
            for place, operation in enumerate(watched[-6:]):
                yield from self._square(operation, MARGIN + 196 + place * (SQUARE + 4), y)
        if len(lists) > MOST_KEYS:
            yield label(MARGIN, TOP + 40 + MOST_KEYS * ROW, f"and {len(lists) - MOST_KEYS} more keys", "dim", 12)

    def _square(self, operation: Operation, x: float, y: float) -> Iterator[str]:
        says = f"{operation.operation}: {(operation.completed_by and f'completed by {operation.completed_by}') or 'waits'}"
        css = "done" if operation.completed_by else "waits"
        yield (
            f'<rect x="{x}" y="{y}" width="{SQUARE}" height="{SQUARE}" rx="4" class="{css}"><title>{escape(says)}</title></rect>'
        )
        yield label(x + SQUARE / 2, y + 16, self.letters.get(operation, ""), "ink", 12, "middle")
        if operation.completed_by:
            yield f'<path d="M{x + 3} {y + SQUARE - 3}L{x + SQUARE - 3} {y + 3}" class="strike"/>'

    def _ring(self, ring: Wheel, inner: float, centre: Point) -> Iterator[str]:
        for bucket in ring.buckets:
            letters = [letter for o, letter in self.letters.items() if str(o.begun) in bucket.tasks]
            words = f"ring {clock.duration(ring.tick_ms)}, slot {bucket.index}: {', '.join(letters) or 'empty'}"
            path = _sector(inner, inner + RING, bucket.index, ring.size, centre)
            yield f'<path d="{path}" class="{"full" if bucket.tasks else "slot"}"><title>{escape(words)}</title></path>'
            if bucket.tasks:
                x_letter, y_letter = _point(inner + RING / 2, bucket.index + 0.5, ring.size, centre)
                yield label(x_letter, y_letter + 4, _tasks(letters, len(bucket.tasks)), "ink", 12, "middle")
        at = ring.now_ms // ring.tick_ms % ring.size
        yield f'<path d="{_sector(inner, inner + RING, at, ring.size, centre)}" class="now"/>'
        x_name, y_name = _point(inner + RING / 2, -0.02, ring.size, centre)
        yield label(x_name - 3, y_name + 4, clock.duration(ring.tick_ms), "dim", 12, "end")

    def _fall(self, operation: Operation, centre: Point) -> Iterator[str]:
        """Yield SVG elements: a dotted line through the slots of the timing wheels that have had the operation's task, in order.

        If the task has left the wheels, the line ends in their `centre`.
        """
        ticks = {ring.tick_ms: (number, ring.size) for number, ring in enumerate(self.purgatory.rings())}
        points = []
        for place in operation.places:
            number, size = ticks[place.tick_ms]
            points.append(_point(HUB + RING * (number + 0.5), place.slot + 0.5, size, centre))
        # A task that has left the wheels: the line ends in their centre.
        if operation.left_wheel_ms is not None:
            points.append(centre)
            yield f'<circle cx="{centre[0]}" cy="{centre[1]}" r="11" class="left"/>'
            yield label(centre[0], centre[1] + 4, self.letters[operation], "ink", 12, "middle")
        if len(points) > 1:
            yield f'<path d="M{"L".join(f"{px:.1f} {py:.1f}" for px, py in points)}" class="fall"/>'


def _tasks(letters: list[str], number: int) -> str:
    """As "AB"; more than 3 tasks give "A+3"; without letters the number."""
    if not letters:
        return str(number)
    return "".join(letters) if number <= 3 else f"{letters[0]}+{number - 1}"


def _point(radius: float, slot: float, size: int, centre: Point) -> Point:
    """Slot 0 begins at twelve o'clock; the slots run clockwise."""
    angle = 2 * pi * slot / size - pi / 2
    return round(centre[0] + radius * cos(angle), 1), round(centre[1] + radius * sin(angle), 1)


def _sector(inner: float, outer: float, slot: int, size: int, centre: Point) -> str:
    (ax, ay), (bx, by) = _point(inner, slot, size, centre), _point(outer, slot, size, centre)
    (cx, cy), (dx, dy) = _point(outer, slot + 1, size, centre), _point(inner, slot + 1, size, centre)
    return f"M{ax} {ay}L{bx} {by}A{outer} {outer} 0 0 1 {cx} {cy}L{dx} {dy}A{inner} {inner} 0 0 0 {ax} {ay}Z"
