"""A partition of the offsets topic as rows of squares: the log, the coordinator's cache, and the result of a load of the log.

Each square of the log is a record; below it is its key. The two other rows have a column for each key: a dashed square says that
the key is absent. The name of a key is its group, and for an offset also the partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from kcontrol.views import text
from kcontrol.views.group_strip import COLOURS, STRIP_STYLE, on_bar
from kcontrol.views.still_picture import MARGIN, STYLE, label

NAME, BOX, STEP, HEIGHT, ROW, TOP, MOST = 132, 54, 60, 28, 78, 64, 12
SIGNS = {"tombstone": "\u2715"}


class Square(NamedTuple):
    """A record of the log: the name of its key, its value in words, its offset, and whether a later record has its key.

    The name of a key is its group and, for a committed offset, the partition. The value is such as "offset 5" or "tombstone".
    `is_faded` is True if a later record has the key.
    """

    key: str
    value: str
    offset: str
    is_faded: bool = False


class OffsetsTopicPicture:
    """A partition of the offsets topic as SVG and as text: its log, the coordinator's cache, and the result of a load of the log.

    `load` is the cache that a coordinator would get if it loaded this log. `cache` and `load` map the name of a key to its value
    in words, as "billing t-0" to "offset 5". `broker` is the coordinator, None without a coordinator.
    """

    def __init__(
        self,
        title: str,
        broker: int | None,
        squares: Sequence[Square],
        cache: Mapping[str, str],
        load: Mapping[str, str],
    ) -> None:
        self.title, self.broker = title, broker
        self.squares, self.cache, self.load = squares, cache, load
        self.keys = list(dict.fromkeys([*(square.key for square in squares), *cache, *load]))

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"image/svg+xml": self.svg(), "text/plain": repr(self)}

    @property
    def _at(self) -> str:
        return "" if self.broker is None else f" of broker {self.broker}"

    def lines(self) -> list[str]:
        """Return the picture as lines: the title, one line per record of the log, then the cache and the load, one line each."""
        faded = {square.offset: ", which compaction drops" for square in self.squares if square.is_faded}
        log = (f"  {s.offset} {text.clean(s.key)}: {s.value}{faded.get(s.offset, '')}" for s in self.squares)
        rows = {f"cache{self._at}": self.cache, "a load now finds": self.load}
        return [f"{self.title}; log{self._at}:", *log, *(f"{name}: {_listed(held)}" for name, held in rows.items())]

    # ---------------------------------------------------------------- picture

    def svg(self) -> str:
        """Return the picture as SVG: a row of squares for the log's records, and rows for the keys in the cache and after a load.

        Of more than MOST records the last are drawn, and of more than MOST keys the first.
        """
        shown, keys = self.squares[-MOST:], self.keys[:MOST]
        width = MARGIN + NAME + max(5, len(shown), len(keys)) * STEP + MARGIN
        parts = [label(MARGIN, 24, self.title, "ink", 14)]
        earlier = f", {len(self.squares) - len(shown)} earlier" if len(shown) < len(self.squares) else ""
        parts += _names(TOP, f"log{self._at}", f"{len(self.squares)} record{'s' * (len(self.squares) != 1)}{earlier}")
        for place, square in enumerate(shown):
            x = MARGIN + NAME + place * STEP
            parts += self._square(x, TOP, square.key, square.value, is_faded=square.is_faded)
            parts.append(label(x + BOX / 2, TOP - 6, square.offset, "dim", 11, "middle"))
        for line, (name, held) in enumerate(((f"cache{self._at}", self.cache), ("a load now finds", self.load)), 1):
            top = TOP + line * ROW
            parts += _names(top, name, f"{len(held)} key{'s' * (len(held) != 1)}")
            for place, key in enumerate(keys):
                parts += self._square(MARGIN + NAME + place * STEP, top, key, held.get(key))
        legend = "pale: a later record has its key, so compaction drops it \u00b7 \u2715: tombstone \u00b7 dashed: absent"
        height = TOP + 3 * ROW + 10
        parts.append(label(MARGIN, height - 10, legend, "dim", 11))
        width = max(width, 560)
        size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        name = escape(text.clean(" ".join(repr(self).split()), 900), quote=True)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{name}" '
            f'font-family="system-ui,sans-serif"><style>{STYLE}{STRIP_STYLE}</style>{"".join(parts)}</svg>'
        )

    def _square(self, x: float, top: float, key: str, value: str | None, *, is_faded: bool = False) -> list[str]:
        frame = f'<rect x="{x}" y="{top}" width="{BOX}" height="{HEIGHT}" rx="4"'
        group, _, partition = key.partition(" ")
        below = label(x + BOX / 2, top + HEIGHT + 14, text.clean(partition or group, 8), "dim", 11, "middle")
        if value is None:
            return [f'{frame} class="absent"/>', below]
        colour = COLOURS[self.keys.index(key) % len(COLOURS)]
        pale = ' fill-opacity="0.25"' if is_faded else ""
        hint = f"<title>{escape(text.clean(f'{key}: {value}'))}</title>"
        css = "ink" if is_faded else on_bar(colour)
        inside = label(x + BOX / 2, top + 19, _sign(value), css, 13, "middle")
        return [f'{frame} fill="{colour}"{pale}>{hint}</rect>', inside, below]


def _names(top: float, name: str, amount: str) -> list[str]:
    return [label(MARGIN, top + 14, name, "ink", 13), label(MARGIN, top + 30, amount, "dim", 11)]


def _sign(value: str) -> str:
    """Return the short form, at most six characters, of a value in words, for the square of the value in the picture.

    The value is "offset 5", with the short form "5"; "generation 3, 2 members", with "gen 3"; or "tombstone", with "\u2715".
    """
    words = value.split()
    return SIGNS.get(value) or text.clean(f"gen {words[1].rstrip(',')}" if words[0] == "generation" else words[1], 6)


def _listed(held: Mapping[str, str]) -> str:
    return "; ".join(f"{text.clean(key)}: {value}" for key, value in held.items()) or "nothing"
