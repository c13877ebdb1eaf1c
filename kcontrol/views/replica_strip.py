"""Functions that draw one partition's replicas in the order of the assignment, each with the reason why it may lead or not."""

from collections.abc import Sequence
from typing import NamedTuple

from kcontrol.views.picture import MARGIN, frame, label

TOP, SQUARE, STEP = 44, 44, 118


class Candidate(NamedTuple):
    """A replica in the picture of an election, with the reason why it may lead or not."""

    broker: int
    # Whether the broker is registered.
    alive: bool
    # Whether the replica is in the ISR.
    in_sync: bool
    leads: bool
    # Why the replica may lead or not, such as "not in sync".
    verdict: str


def svg(title: str, candidates: Sequence[Candidate]) -> str:
    """Return an SVG picture of a partition's replicas, in the order of `candidates`, with the reason why each may lead or not."""
    parts = [label(MARGIN, 28, title, "ink", 15)]
    for place, candidate in enumerate(candidates):
        parts += _square(MARGIN + place * STEP, candidate)
    width, height = max(MARGIN + len(candidates) * STEP, 420), TOP + SQUARE + 36
    return frame(width, height, title, parts)


def _square(x: float, c: Candidate) -> list[str]:
    css = "lead" if c.leads else "isr" if c.in_sync else "out"
    square = f'<rect x="{x}" y="{TOP}" width="{SQUARE}" height="{SQUARE}" rx="7" class="{css}{"" if c.alive else " dead"}"/>'
    number = label(x + SQUARE / 2, TOP + 29, str(c.broker), "onlead" if c.leads else "ink", 18, "middle")
    strike = f'<path d="M{x + 6} {TOP + SQUARE - 7}L{x + SQUARE - 6} {TOP + 7}" class="strike"/>'
    verdict = label(x, TOP + SQUARE + 22, c.verdict, "dim", 13)
    return [square, number, verdict] if c.alive else [square, number, strike, verdict]


def lines(title: str, candidates: Sequence[Candidate]) -> str:
    """Return the picture's content as text: the title, and a line such as "  broker 2: not in sync" for each replica."""
    return "\n".join([title, *(f"  broker {c.broker}: {c.verdict}" for c in candidates)])
