"""The group strip: one consumer group of a journal as SVG and as text.

Columns are the moments of `group_moments` (changes of the group), in the order of the journal; below is the time of each column
since the begin of the run, on a wall clock since the first column. Above are the group's states; a narrow state has its first
letter. Each member id has a lane: a bar with the number of the generation, hatched while the coordinator has parked its JoinGroup
or SyncGroup, dashed while no coordinator has loaded the group. A flag is a deadline, a timer of the coordinator that is pending
at the end of the run, with the time from the run's last record until it fires; the flag of the timer that fires next is filled.
In the viewer the flags are those of the record that it shows (`moving_strip.py`).
Below, each partition has a row in the colour and with the letter of its owner, so that colour never stands alone; the row is
pale while the owner waits for the next generation. The strip of a recording marks what was inferred (`recorded_evidence.py`).
Strips of several runs stand one below the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from kcontrol.core.model import TopicPartition
from kcontrol.journal.journal import Record
from kcontrol.views import clock, group_moments, group_state, recorded_evidence, text
from kcontrol.views.group_moments import Bar, Deadline, Lane, Moment, stretches
from kcontrol.views.picture import FITS, MARGIN, STRIP_STYLE, STYLE, WIDTH, Picture, frame, label, shortened

LEFT, FLAG, COLUMN, NARROWEST = 150, 62, 54, 9  # where columns begin; widths of a flag and of columns
HEADING, TOP, STATE, LANE, ROW, GAP = 22, 36, 22, 24, 14, 5
NEXT = "next"  # the CSS class of the flag of the timer that fires next
SMALLEST = 9  # pixels: the font of a generation
MOST = 60  # columns; the title says how many earlier moments there are
COMPLETING = "CompletingRebalance"
AT_REST = ("Stable", "Empty")
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a6d00", "#6b57b8")  # Okabe and Ito, and two more
WHITE_ON = ("#0072b2", "#8a6d00", "#6b57b8", "#57606a")  # the colours of bars with white text; that on the others is black
PALE = ' fill-opacity="0.3"'
BARS = {
    "member": "{name} is in generation {generation}",
    "join": "the coordinator has parked the JoinGroup of {name}",
    "sync": "the coordinator has parked the SyncGroup of {name} in generation {generation}",
    "unknown": "no coordinator has loaded the group of {name}",
}


class Instant(NamedTuple):
    """A group after one journal record: its values in its coordinator's cache, its pending timers, and the record's time."""

    # The latest change of the group up to this record, with the group after this change; None before the first change.
    moment: Moment | None
    # The pending timers of the group, in the order in which they fire.
    deadlines: tuple[Deadline, ...]
    now_ms: int

    @property
    def members(self) -> Mapping[str, Any]:
        return self.moment.members if self.moment else {}

    @property
    def times(self) -> list[int]:
        """The times in ms at which the group's pending timers fire, each once, the earliest first."""
        return sorted({d.at_ms for d in self.deadlines})


class Flag(NamedTuple):
    """A flag of the picture: a pending timer, with the time until it fires. In the viewer the picture's title is a Flag too."""

    # An SVG path; "" for the picture's title.
    shape: str
    # The place of `words` in pixels.
    x: float
    y: float
    # The CSS class: "next" for the timer that fires next, "flag" for other timers; "title" for the picture's title.
    css: str
    # The time until the timer fires, such as "in 10 s"; or the picture's title.
    words: str
    # The name of the timer's event; "" for the picture's title.
    event: str


class GroupStrip(Picture):
    """The history of one group of a journal, as a picture (SVG) and as text; a notebook gets both.

    `name` is the run's name in the title; `beside` are the GroupStrips of groups in other runs, drawn below this picture.
    """

    # `places`: whether each column also has the partition of the offsets topic that stores the group.
    # `most`: the largest number of columns; earlier changes of the group are left out.
    places, most = False, MOST

    def __init__(self, records: Sequence[Record], group_id: str, name: str = "", beside: Sequence[GroupStrip] = ()) -> None:
        self.group_id, self.name, self.beside = group_id, name, beside
        self._release = str(records[0].fields.get("release", "")) if records else ""
        self.every = every = group_moments.moments(records, group_id, places=self.places)
        self.moments, self.left_out = every[-self.most :], max(0, len(every) - self.most)
        now_ms = records[-1].at_ms if records else 0
        self.end = Instant(every[-1], every[-1].deadlines, now_ms) if every else Instant(None, (), now_ms)
        # The number of flags that stand side by side: one for each time at which a timer fires.
        self.flags_abreast = len(self.end.times)
        self.lanes = group_moments.lanes(self.moments)
        self.evidence = recorded_evidence.Evidence(records, self.moments)

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def marks(self) -> list[tuple[int, float]]:
        """For each column: the index of its record, and where it ends as a share of the picture's width."""
        return [(moment.record, round(self.x(place + 1) / self.width, 4)) for place, moment in enumerate(self.moments)]

    # ---------------------------------------------------------------- text

    @property
    def title(self) -> str:
        """A sentence such as "Group g: Stable, generation 2, coordinator broker 1." about the end of the run."""
        return self._title(self.end)

    def _title(self, now: Instant) -> str:
        head = f"{text.clean(self.name)} \u00b7 Group" if self.name else "Group"
        if now.moment is None or now.moment.group is None:
            return f"{head} {text.clean(self.group_id)}: no coordinator has the group in its cache."
        state = group_state.state_name(now.moment.group["state"], self._release)
        standing = f"{state}, generation {now.moment.group['generation']}, coordinator broker {now.moment.coordinator}"
        return f"{head} {text.clean(self.group_id)}: {standing}."

    def lines(self) -> list[str]:
        """The members at the end of the run; the strips of other runs in `beside` follow."""
        return [*self.lines_at(self.end), *(line for strip in self.beside for line in strip.lines())]

    def lines_at(self, now: Instant) -> list[str]:
        """Of each member its condition, partitions and deadline; without the strips in `beside`."""
        lanes = {lane.member_id: lane for lane in self.lanes}
        # Before the first column there may be members that have no lane.
        lanes |= {id: Lane(id, "\u2013", member["client_id"], ()) for id, member in now.members.items() if id not in lanes}
        own = [f"  {lane.letter} {text.clean(lane.name)}: {self._condition(lane, now)}" for lane in lanes.values()]
        own = [self._title(now), *own, *(f"  {d.event} {_after(d, now)}" for d in now.deadlines if d.member_id not in lanes)]
        # For a recording, the numbers of requests and responses, and of inferred states.
        return [*own, f"  {self.evidence.line()}"] if self.evidence else own

    def _condition(self, lane: Lane, now: Instant) -> str:
        if now.moment is None or now.moment.group is None:
            return "no coordinator has loaded the group"
        if member := now.members.get(lane.member_id):
            waits = group_state.WAITS.get(group_moments.kind(member))
            words = [f"{waits} is parked" if waits else f"in generation {now.moment.group['generation']}"]
            words.append(", ".join(group_state.partitions(member["assignment"])) or "no partition")
        else:
            words = ["not in the group"]
        words += [f"{d.event} {_after(d, now)}" for d in now.deadlines if d.member_id == lane.member_id]
        return "; ".join(words)

    # ---------------------------------------------------------------- picture

    @property
    def width(self) -> float:
        """The width of the picture in pixels."""
        return max(WIDTH, self.x(len(self.moments)) + self.flags_abreast * FLAG + MARGIN)

    def x(self, place: int) -> float:
        """Return the left edge, in pixels, of the column with the index `place`, from 0."""
        room = WIDTH - LEFT - MARGIN - FLAG * min(3, self.flags_abreast)
        return round(LEFT + place * max(NARROWEST, min(COLUMN, room / max(1, len(self.moments)))), 1)

    def svg(self) -> str:
        """Return the strip as SVG text: the group's states, a lane per member id, then deadlines, partitions and times.

        Below this strip are the strips in the field `beside`, each with its title.
        """
        shown = (self, *self.beside)
        width, height, parts = max(strip.width for strip in shown), 0.0, list[str]()
        for strip in shown:
            drawn, end = strip._drawn()
            parts += [f'<g transform="translate(0 {height:g})">', *drawn, "</g>"] if height else drawn
            height += end
        letters = {lane.letter: lane for strip in shown for lane in strip.lanes}
        hatchings = f"<defs>{''.join(map(_hatching, letters.values()))}</defs>"
        return frame(width, height, " ".join(self.lines()), [hatchings, *parts], STYLE + STRIP_STYLE, FITS)

    def _drawn(self) -> tuple[list[str], float]:
        """Return (SVG elements, height in pixels) of this group's picture alone, without those of the groups in `beside`."""
        parts, top = [*self._heading(), *self._states(), *self._flags()], TOP + STATE + GAP
        if self.left_out:
            parts.append(label(self.width - MARGIN, HEADING, f"{self.left_out} earlier moments are not drawn", "dim", 11, "end"))
        for lane in self.lanes:
            parts += self._lane(lane, top)
            top += LANE + GAP
        for partition, owners in self._owners().items():
            parts += self._partition(partition, owners, top)
            top += ROW
        if self.evidence:
            parts += self.evidence.drawn(self.x, top)
            top += recorded_evidence.HEIGHT
        return [*parts, *self._times(top + 12)], top + 24

    def _heading(self) -> list[str]:
        return [label(MARGIN, HEADING, self.title, "ink", 14)]

    def _states(self) -> list[str]:
        parts = [label(MARGIN, TOP + 16, "state", "dim", 12)]
        names = [group_state.state_name(moment.group["state"], self._release) if moment.group else "" for moment in self.moments]
        for state, first, last in stretches(names):
            css = "absent" if not state else "state" if state in AT_REST else "moving"
            parts += _state(self.x(first), self.x(last + 1) - self.x(first) - 1, css, state or "no coordinator")
        return parts

    def _lane(self, lane: Lane, top: float) -> list[str]:
        parts = [label(MARGIN, top + 16, f"{lane.letter}  {shortened(lane.name, 14)}", "ink", 13)]
        for bar in lane.bars:
            parts += _bar(lane, bar, self.x(bar.first), self.x(bar.last + 1) - self.x(bar.first) - 1, top)
        for place, moment in enumerate(self.moments):
            if lane.member_id in moment.fired:
                at = f"M{self.x(place)} {top + LANE + 3}l-5 -9h10z"
                parts.append(f'<path d="{at}" class="fired"><title>the deadline of {escape(lane.name)} fired</title></path>')
        return parts

    def _flags(self) -> list[str]:
        """Return, as SVG, a flag for each timer that is pending at the end of the run, in the order in which the timers fire."""
        parts = list[str]()
        for shape, x, y, css, words, event in self.flags_at(self.end):
            parts.append(f'<path d="{shape}" class="{css}" stroke-width="1.5"><title>{escape(event)}</title></path>')
            parts.append(label(x, y, words, "ink" if css == NEXT else "dim", 11))
        return parts

    def flags_at(self, now: Instant) -> list[Flag]:
        """A sign per pending timer, such as "in 10 s"; the one that fires next comes first."""
        times = now.times
        tops = {lane.member_id: TOP + STATE + GAP + place * (LANE + GAP) for place, lane in enumerate(self.lanes)}
        found = list[Flag]()
        for deadline in now.deadlines:
            x, y = self.x(len(self.moments)) + 6 + times.index(deadline.at_ms) * FLAG, tops.get(deadline.member_id or "", TOP)
            shape, css = f"M{x} {y + LANE - 2}V{y + 2}h12l-4 5l4 5h-12", NEXT if deadline.at_ms == times[0] else "flag"
            found.append(Flag(shape, x + 15, y + 12, css, _after(deadline, now), deadline.event))
        return found

    def _owners(self) -> dict[str, list[tuple[Lane, bool] | None]]:
        """Per partition and column: (the owner's Lane, whether it may consume), None without an owner."""
        found, by_id = dict[str, list[tuple[Lane, bool] | None]](), {lane.member_id: lane for lane in self.lanes}
        for place, moment in enumerate(self.moments):
            for id, member in moment.members.items():
                for partition in group_state.partitions(member["assignment"]):
                    owners = found.setdefault(partition, [None] * len(self.moments))
                    owners[place] = by_id[id], _is_consuming(moment, member)
        return dict(sorted(found.items(), key=lambda entry: TopicPartition.parse(entry[0])))

    def _partition(self, partition: str, owners: Sequence[tuple[Lane, bool] | None], top: float) -> list[str]:
        parts = [label(MARGIN, top + 11, shortened(partition, 20), "dim", 11)]
        for owner, first, last in stretches(owners):
            if owner is None:
                continue
            (lane, consumes), x, width = owner, self.x(first), self.x(last + 1) - self.x(first) - 1
            says = f"{partition} is assigned to {lane.name}{'' if consumes else ', which waits for the next generation'}"
            box = f'<rect x="{x}" y="{top + 1}" width="{width:g}" height="{ROW - 2}" fill="{_colour(lane)}"'
            parts.append(f"{box}{'' if consumes else PALE}><title>{escape(text.clean(says))}</title></rect>")
            parts.append(label(x + width / 2, top + 11, lane.letter, on_bar(_colour(lane)) if consumes else "ink", 10, "middle"))
        return parts

    def _times(self, y: float) -> list[str]:
        """Return the times below the columns as SVG text elements, at the height `y` in pixels."""
        parts, free = [], 0.0
        for place, moment in enumerate(self.moments):
            # A time without enough room is left out.
            if self.x(place) >= free:
                parts.append(label(self.x(place), y, clock.duration(moment.at_ms - self._begin_ms), "dim", 10))
                free = self.x(place) + 52
        return parts

    @property
    def _begin_ms(self) -> int:
        """The time in ms at which the times in the picture begin: the first column's time on a wall clock, 0 in virtual time."""
        return self.moments[0].at_ms if self.moments[0].at_ms > WALL_CLOCK_MS else 0


WALL_CLOCK_MS = 1_000_000_000_000  # no run in virtual time lasts thirty years


def _after(deadline: Deadline, now: Instant) -> str:
    # A learner may fire a later timer first; the times of the timers before it have then come.
    left_ms = deadline.at_ms - now.now_ms
    return f"in {clock.duration(left_ms)}" if left_ms > 0 else "due"


def on_bar(colour: str) -> str:
    """Return the CSS class of a text on a bar of this colour: "onbar" for white text, "onlight" for black text."""
    # The contrast is at least 4.5.
    return "onbar" if colour in WHITE_ON else "onlight"


def _hatching(lane: Lane) -> str:
    return (
        f'<pattern id="hatch-{lane.letter}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<path d="M0 0V6" stroke="{_colour(lane)}" stroke-width="4"/></pattern>'
    )


def _bar(lane: Lane, bar: Bar, x: float, width: float, top: float) -> list[str]:
    fill = {"member": _colour(lane), "unknown": "none"}.get(bar.kind, f"url(#hatch-{lane.letter})")
    dashes = ' stroke-dasharray="3 3"' if bar.kind == "unknown" else ""
    says = BARS[bar.kind].format(name=text.clean(lane.name), generation=bar.generation)
    box = f'<rect x="{x}" y="{top}" width="{width:g}" height="{LANE}" rx="4" fill="{fill}" stroke="{_colour(lane)}"{dashes}>'
    number, css = str(bar.generation) if bar.kind == "member" else "", on_bar(_colour(lane))
    # A digit is 0.7 times as wide as its font is high. A number that fits into no readable font is left out.
    size = min(12, int((width - 1) / 0.7 / max(1, len(number))))
    inside = [label(x + width / 2, top + 17, number, css, size, "middle")] if number and size >= SMALLEST else []
    return [f"{box}<title>{escape(says)}</title></rect>", *inside]


def _state(x: float, width: float, css: str, words: str) -> list[str]:
    room = int((width - 8) / 6.8)
    shown = words if len(words) <= room else f"{words[: room - 1]}\u2026" if room > 3 else words[:1].upper()
    box = f'<rect x="{x}" y="{TOP}" width="{width:g}" height="{STATE}" rx="4" class="{css}">'
    at, size, anchor = (5, 12, "start") if len(shown) > 1 else (width / 2, 11, "middle")
    return [f"{box}<title>{escape(words)}</title></rect>", label(x + at, TOP + 15, shown, "ink", size, anchor)]


def _is_consuming(moment: Moment, member: Mapping[str, Any]) -> bool:
    """In the coordinator's cache: no request of the member is parked, and the group is not in CompletingRebalance."""
    return group_moments.kind(member) == "member" and moment.group is not None and moment.group["state"] != COMPLETING


def _colour(lane: Lane) -> str:
    return COLOURS[(ord(lane.letter[-1]) - ord("A")) % len(COLOURS)]
