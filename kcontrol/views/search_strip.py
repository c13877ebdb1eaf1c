"""The picture of a run that a search has found: one column per step, one lane per broker, and one for clients.

The last column is red: its step breaks the searched promise, a condition on the states of a cluster.
"""

import textwrap
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from kcontrol.views import text
from kcontrol.views.picture import FITS, MARGIN, STRIP_STYLE, STYLE, WIDTH, Picture, frame, label

LEFT, TOP, LANE, BOX, WIDEST, LINE = 96, 44, 46, 24, 46, 16
OUTSIDE = "outside"


class StripStep(NamedTuple):
    """One step of the run in the picture: its row, the action in words, and its effect."""

    # The row: a broker's id, or "outside" for a client that is no broker.
    lane: str
    action: str
    # Such as "writes t-0"; "" unless the step elects a controller, writes a state znode or changes a group's state.
    effect: str = ""


class SearchStrip(Picture):
    """The steps of the run that a search has found, drawn with a row per broker and one for clients."""

    def __init__(self, steps: Sequence[StripStep], violation: str) -> None:
        self.steps, self.violation = steps, violation

    def __repr__(self) -> str:
        last = len(self.steps)
        rows = [
            f"{'>' if n == last else ' '} {n:>3}  {step.action}{f'  ({step.effect})' if step.effect else ''}"
            for n, step in enumerate(self.steps, 1)
        ]
        return "\n".join([*rows, f"  {self.violation}"])

    def svg(self) -> str:
        """Return the steps of the found run as SVG text: one column per step, one row per broker, one for clients."""
        lanes = sorted({step.lane for step in self.steps}, key=lambda lane: (lane != OUTSIDE, lane))
        pitch = min(WIDEST, (WIDTH - LEFT - MARGIN) // max(1, len(self.steps)))
        headline = f"{text.counted(len(self.steps), 'step')}; the last one breaks the promise"
        if not self.steps:
            headline = "The state in which the search begins breaks the promise"
        parts = [label(MARGIN, 26, headline, "ink", 14)]
        for place, lane in enumerate(lanes):
            y = TOP + place * LANE
            parts.append(label(MARGIN, y + 17, lane if lane == OUTSIDE else f"broker {lane}", "ink", 13))
            parts.append(f'<line x1="{LEFT}" y1="{y + BOX / 2:g}" x2="{WIDTH - MARGIN}" y2="{y + BOX / 2:g}" class="flag"/>')
        for n, step in enumerate(self.steps, 1):
            parts += self._drawn(n, step, LEFT + (n - 1) * pitch, TOP + lanes.index(step.lane) * LANE, pitch)
        lines = textwrap.wrap(text.clean(self.violation, 440), 110, break_on_hyphens=False) or [""]
        below = TOP + len(lanes) * LANE + 12
        height = below - 6 + LINE * len(lines)
        parts += [label(MARGIN, below + LINE * n, line, "ink", 12) for n, line in enumerate(lines)]
        name = text.clean(f"{headline}: {self.violation}")
        return frame(WIDTH, height, name, parts, STYLE + STRIP_STYLE, FITS)

    def _drawn(self, n: int, step: StripStep, x: int, y: int, pitch: int) -> list[str]:
        is_last = n == len(self.steps)
        css = "fired" if is_last else "moving" if step.lane == OUTSIDE else "rules" if step.effect else "state"
        box = f'<rect x="{x}" y="{y}" width="{max(6, pitch - 3)}" height="{BOX}" rx="4" class="{css}">'
        parts = [f"{box}<title>{escape(text.clean(f'{n}: {step.action} {step.effect}'))}</title></rect>"]
        middle = x + max(6, pitch - 3) / 2
        if pitch >= 16:
            parts.append(label(middle, y + 17, str(n), "onlight" if is_last else "ink", 12, "middle"))
        if step.effect:
            anchor = "end" if n > len(self.steps) * 0.7 else "middle"
            parts.append(label(middle if anchor == "middle" else x + pitch - 3, y + BOX + 14, step.effect, "dim", 11, anchor))
        return parts
