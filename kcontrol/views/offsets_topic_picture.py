"""A partition of the offsets topic as rows of squares: its log, its coordinator's cache, and the cache after a load."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from kcontrol.views import text
from kcontrol.views.group_strip import COLOURS, on_bar
from kcontrol.views.picture import MARGIN, STRIP_STYLE, STYLE, Picture, frame, label, shortened

NAME, BOX, STEP, HEIGHT, ROW, TOP, MOST = 132, 54, 60, 28, 78, 64, 12
SIGNS, NO_KEY = {"tombstone": "\u2715"}, "no key"


class Square(NamedTuple):
    """A record of the log in the picture: its key, such as "billing t-0", and its value in words, such as "offset 5"."""

    key: str
    value: str
    # The offset of the record in the log, as text.
    offset: str
    # True: a later record of the log has this key, or there is no key, so compaction drops this record, and the square is pale.
    is_faded: bool = False
    # The words after the value, such as ", in a gzip batch of 130 bytes"; "" for a record that is in no compressed batch.
    batch: str = ""


class OffsetsTopicPicture(Picture):
    """A partition of the offsets topic as SVG and as text: its log, the coordinator's cache, and the cache after a load.

    `cache` and `load` map a key, such as "billing t-0", to its value in words, such as "offset 5".
    """

    def __init__(
        self, title: str, broker: int | None, squares: Sequence[Square], cache: Mapping[str, str], load: Mapping[str, str]
    ) -> None:
        # `broker` has the log and the cache; None if the journal does not say which broker.
        self.title, self.broker = title, broker
        self.squares, self.cache, self.load = squares, cache, load
        self.keys = list(dict.fromkeys([*(square.key for square in squares), *cache, *load]))

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    @property
    def _at(self) -> str:
        return "" if self.broker is None else f" of broker {self.broker}"

    def lines(self) -> list[str]:
        """Return the picture as lines of text: the title, a line per record of the log, then the cache and the load."""
        faded = {square.offset: ", which compaction drops" for square in self.squares if square.is_faded}
        log = (f"  {s.offset} {text.clean(s.key)}: {s.value}{s.batch}{faded.get(s.offset, '')}" for s in self.squares)
        rows = {f"cache{self._at}": self.cache, "a load now finds": self.load}
        return [f"{self.title}; log{self._at}:", *log, *(f"{name}: {_listed(held)}" for name, held in rows.items())]

    # ---------------------------------------------------------------- picture

    def svg(self) -> str:
        """Return the picture as SVG, with three rows of squares.

        The rows have the log's records, the keys in the cache, and the keys that a load of the log would find.
        """
        # The last records, and the first keys.
        shown, keys = self.squares[-MOST:], self.keys[:MOST]
        width = max(560, MARGIN + NAME + max(5, len(shown), len(keys)) * STEP + MARGIN)
        parts = [label(MARGIN, 24, self.title, "ink", 14)]
        earlier = f", {len(self.squares) - len(shown)} earlier" if len(shown) < len(self.squares) else ""
        parts += _names(TOP, f"log{self._at}", text.counted(len(self.squares), "record") + earlier)
        for place, square in enumerate(shown):
            x = MARGIN + NAME + place * STEP
            parts += self._square(x, TOP, square.key, square.value, square.batch, is_faded=square.is_faded)
            parts.append(label(x + BOX / 2, TOP - 6, square.offset, "dim", 11, "middle"))
        for line, (name, held) in enumerate(((f"cache{self._at}", self.cache), ("a load now finds", self.load)), 1):
            top = TOP + line * ROW
            parts += _names(top, name, text.counted(len(held), "key"))
            for place, key in enumerate(keys):
                parts += self._square(MARGIN + NAME + place * STEP, top, key, held.get(key))
        why = "a later record has its key" + ", or it has no key" * any(square.key == NO_KEY for square in self.squares)
        legend = f"pale: {why}, so compaction drops it \u00b7 \u2715: tombstone \u00b7 dashed: absent"
        height = TOP + 3 * ROW + 10
        parts.append(label(MARGIN, height - 10, legend, "dim", 11))
        return frame(width, height, text.clean(" ".join(repr(self).split()), 900), parts, STYLE + STRIP_STYLE)

    def _square(self, x: float, top: float, key: str, value: str | None, batch: str = "", *, is_faded: bool = False) -> list[str]:
        square = f'<rect x="{x}" y="{top}" width="{BOX}" height="{HEIGHT}" rx="4"'
        group, _, partition = key.partition(" ")
        below = label(x + BOX / 2, top + HEIGHT + 14, shortened(partition or group, 8), "dim", 11, "middle")
        if value is None:
            return [f'{square} class="absent"/>', below]
        colour = COLOURS[self.keys.index(key) % len(COLOURS)]
        pale = ' fill-opacity="0.25"' if is_faded else ""
        hint = f"<title>{escape(text.clean(f'{key}: {value}{batch}'))}</title>"
        css = "ink" if is_faded else on_bar(colour)
        inside = label(x + BOX / 2, top + 19, _sign(value), css, 13, "middle")
        return [f'{square} fill="{colour}"{pale}>{hint}</rect>', inside, below]


def _names(top: float, name: str, amount: str) -> list[str]:
    return [label(MARGIN, top + 14, name, "ink", 13), label(MARGIN, top + 30, amount, "dim", 11)]


def _sign(value: str) -> str:
    r"""Return a value in at most six characters, such as "5" for "offset 5" and "gen 3" for "generation 3, 2 members"."""
    words = value.split()
    return SIGNS.get(value) or text.clean(f"gen {words[1].rstrip(',')}" if words[0] == "generation" else words[1], 6)


def _listed(held: Mapping[str, str]) -> str:
    return "; ".join(f"{text.clean(key)}: {value}" for key, value in held.items()) or "nothing"
