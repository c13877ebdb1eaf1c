"""The picture of many runs, one horizontal row per run, as SVG and as text.

A row shows the terms of controllers, kills as crosses, and the times in which a partition had no running leader.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kcontrol.views import clock, text
from kcontrol.views.group_strip import COLOURS, on_bar
from kcontrol.views.picture import FITS, MARGIN, STRIP_STYLE, STYLE, WIDTH, Picture, frame, label

LEFT, RIGHT, TOP, ROW, BAR, STRIPE = 196, 78, 44, 26, 15, 4
NARROWEST, NUMBERED = 3, 12  # the least width of a term, and of a term with its number


class RunLine(NamedTuple):
    """One run as a horizontal row of a picture of many runs: controllers, kills and times without a leader.

    Times are from 0 to `length`.
    """

    # The text at the left of the row.
    name: str
    length: int
    # True: times are in ms. False, as in a recording of brokers: they are numbers of journal records.
    has_times: bool
    # (begin, end, broker) of controllers; the broker is None if it is unknown.
    terms: Sequence[tuple[int, int, int | None]]
    # The times of kills.
    kills: Sequence[int]
    # (begin, end) of times in which at least one partition has no running leader.
    offline: Sequence[tuple[int, int]]

    @property
    def size(self) -> str:
        """The length of the run in words, such as "2.5 s", or "1,200 rec." for a number of journal records."""
        return clock.duration(self.length) if self.has_times else f"{self.length:,} rec."

    @property
    def words(self) -> str:
        """The timeline of a run as a sentence, such as "main: controllers 1, 2; 1 kill; 3 s without a leader; 40 s"."""
        controllers = ", ".join("?" if broker is None else str(broker) for _, _, broker in self.terms) or "none"
        without = sum(end - begin for begin, end in self.offline)
        unit = clock.duration(without) if self.has_times else text.counted(without, "record")
        kills = text.counted(len(self.kills), "kill")
        return f"{self.name}: controllers {controllers}; {kills}; {unit} without a leader; {self.size}"


class RunLines(Picture):
    """The timelines of several runs, one below the other under a headline; runs that are named in `highlighted` have a frame."""

    def __init__(self, lines: Sequence[RunLine], headline: str, highlighted: Iterable[str] = ()) -> None:
        self.lines, self.headline, self.highlighted = lines, headline, frozenset(highlighted)

    def __repr__(self) -> str:
        marks = ("> " if line.name in self.highlighted else "  " for line in self.lines)
        return "\n".join((self.headline, *(mark + line.words for mark, line in zip(marks, self.lines, strict=True))))

    def svg(self) -> str:
        """Return one picture of several runs as SVG text; each run is a horizontal timeline with its controllers."""
        brokers = sorted({broker for line in self.lines for _, _, broker in line.terms if broker is not None})
        colours = {broker: COLOURS[place % len(COLOURS)] for place, broker in enumerate(brokers)}
        parts = [label(MARGIN, 26, self.headline, "ink", 14)]
        for place, line in enumerate(self.lines):
            parts += _drawn(line, TOP + place * ROW, colours, framed=line.name in self.highlighted)
        height = TOP + len(self.lines) * ROW + MARGIN
        return frame(WIDTH, height, self.headline, parts, STYLE + STRIP_STYLE, FITS)


def _drawn(line: RunLine, y: int, colours: dict[int, str], *, framed: bool) -> list[str]:
    rules = f'<rect x="{MARGIN - 6}" y="{y - 3}" width="{WIDTH - 2 * MARGIN + 12}" height="{ROW - 2}" rx="6" class="rules"/>'
    parts = [rules] if framed else []
    parts.append(label(MARGIN, y + BAR - 2, text.clean(line.name, 30), "ink", 12))
    parts.append(label(WIDTH - MARGIN, y + BAR - 2, line.size, "dim", 12, "end"))
    parts.append(f'<rect x="{LEFT}" y="{y}" width="{WIDTH - LEFT - RIGHT}" height="{BAR}" class="state"/>')
    for begin, end, broker in line.terms:
        x, width = _x(line, begin), max(NARROWEST, _x(line, end) - _x(line, begin))
        fill = colours.get(broker, "#57606a") if broker is not None else "#57606a"
        parts.append(f'<rect x="{x:g}" y="{y}" width="{width:g}" height="{BAR}" fill="{fill}"/>')
        if width >= NUMBERED:
            number = "?" if broker is None else str(broker)
            parts.append(label(round(x + width / 2, 1), y + BAR - 3, number, on_bar(fill), 12, "middle"))
    for begin, end in line.offline:
        x, width = _x(line, begin), max(NARROWEST, _x(line, end) - _x(line, begin))
        parts.append(f'<rect x="{x:g}" y="{y + BAR + 1}" width="{width:g}" height="{STRIPE}" class="fired"/>')
    for kill in line.kills:
        x = _x(line, kill)
        cross = f"M{x - 4:g} {y}l8 {BAR}m0 {-BAR}l-8 {BAR}"
        parts.append(f'<path d="{cross}" stroke="#fff" stroke-width="5"/><path d="{cross}" class="strike"/>')
    return parts


def _x(line: RunLine, at: int) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * at / max(1, line.length), 1)
