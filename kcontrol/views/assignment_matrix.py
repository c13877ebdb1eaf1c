"""The matrix of a group's assignment, members x partitions, as SVG and as text; matrices of several runs stand side by side."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from string import ascii_uppercase
from typing import Any, NamedTuple

from kcontrol.core.model import TopicPartition
from kcontrol.journal.journal import Record
from kcontrol.views import group_moments, group_state, text
from kcontrol.views.group_strip import COLOURS, on_bar
from kcontrol.views.picture import MARGIN, STRIP_STYLE, STYLE, Picture, frame, label, shortened

NAME, SQUARE, STEP, TOP, APART = 74, 26, 30, 64, 34
STABLE = "Stable"


class Matrix(NamedTuple):
    """The last Stable assignment of a group: the group's clients, and the client that owns each partition."""

    # The first line of the picture, by default the group's assignor.
    title: str
    clients: tuple[str, ...]
    # Partition to the client that owns it.
    owners: Mapping[str, str]
    # Partition to the number of times that its owner has changed from one Stable state of the group to the next; partitions
    # whose owner has not changed are left out.
    moved: Mapping[str, int]
    # Every partition that ever had an owner.
    partitions: tuple[str, ...]

    @property
    def moves(self) -> str:
        """Such as "2 partitions have moved"; a partition that changed its owner twice counts twice."""
        number = sum(self.moved.values())
        return f"{number} partition{'s have' if number != 1 else ' has'} moved"

    def lines(self) -> list[str]:
        """The matrix as text; a "*" after a partition says that its owner has changed."""
        return [f"{self.title}: {self.moves}.", *(f"  {client}: {self._held(client)}" for client in self.clients)]

    def _held(self, client: str) -> str:
        held = (f"{p}{'*' * (p in self.moved)}" for p in self.partitions if self.owners.get(p) == client)
        return ", ".join(held) or "no partition"


def matrix(records: Sequence[Record], group_id: str, title: str = "") -> Matrix:
    """When the group was Stable last; empty if it never was."""
    stable = [m.group for m in group_moments.moments(records, group_id) if m.group and m.group["state"] == STABLE]
    held = [_owners(group) for group in stable]
    partitions = sorted({name for owners in held for name in owners}, key=TopicPartition.parse)
    moved = {name: number for name in partitions if (number := _moves([o[name] for o in held if name in o]))}
    clients = tuple(dict.fromkeys(_name(member) for member in stable[-1]["members"].values())) if stable else ()
    # The group's assignor is the title if none is given.
    said = title or (str(stable[-1]["protocol"]) if stable else "not Stable yet")
    return Matrix(said, clients, held[-1] if held else {}, moved, tuple(partitions))


def _owners(group: Mapping[str, Any]) -> dict[str, str]:
    members = group["members"].values()
    return {name: _name(member) for member in members for name in group_state.partitions(member["assignment"])}


def _name(member: Mapping[str, Any]) -> str:
    return str(member["instance_id"] or member["client_id"])


# A partition without an owner between two rounds of a cooperative rebalance moves once.
def _moves(owners: Sequence[str]) -> int:
    return sum(before != after for before, after in pairwise(owners))


class AssignmentMatrix(Picture):
    """The assignments of a group in several runs, as matrices of members x partitions side by side: a picture (SVG) and text."""

    def __init__(self, matrices: Sequence[Matrix]) -> None:
        self.matrices = matrices

    def __repr__(self) -> str:
        return "\n".join(line for one in self.matrices for line in one.lines())

    def svg(self) -> str:
        """Return the picture as SVG text; matrices that do not fit into a row of 1,000 pixels begin the next row."""
        names = dict.fromkeys(name for one in self.matrices for name in one.clients)
        letters = {name: place for place, name in enumerate(names)}
        parts, x, y, widest, row = list[str](), MARGIN, 0, 0, 0
        for one in self.matrices:
            width, height = NAME + max(5, len(one.partitions)) * STEP, TOP + len(one.clients) * STEP + 12
            if x > MARGIN and x + width > 1_000:
                x, y, row = MARGIN, y + row, 0
            parts += _drawn(one, letters, x, y)
            x, row = x + width + APART, max(row, height)
            widest = max(widest, x)
        return frame(widest, y + row, text.clean(" ".join(repr(self).split()), 900), parts, STYLE + STRIP_STYLE)


def _drawn(one: Matrix, letters: Mapping[str, int], x: int, y: int) -> list[str]:
    parts = [label(x, y + 20, one.title, "ink", 14), label(x, y + 37, one.moves, "dim", 12)]
    for place, partition in enumerate(one.partitions):
        parts.append(label(x + NAME + place * STEP + SQUARE / 2, y + TOP - 6, shortened(partition, 6), "dim", 11, "middle"))
    for line, client in enumerate(one.clients):
        top, held = y + TOP + line * STEP, [name for name in one.partitions if one.owners.get(name) == client]
        parts.append(label(x, top + 18, f"{shortened(client, 9)} {len(held)}", "ink", 13))
        for place, name in enumerate(one.partitions):
            parts += _square(x + NAME + place * STEP, top, letters[client], name in held, name in one.moved)
    return parts


def _square(x: int, y: int, letter: int, is_held: bool, has_moved: bool) -> list[str]:
    square = f'<rect x="{x}" y="{y}" width="{SQUARE}" height="{SQUARE}" rx="4"'
    if not is_held:
        return [f'{square} class="state"/>']
    words = f"{ascii_uppercase[letter % 26]}{'*' * has_moved}"
    colour = COLOURS[letter % len(COLOURS)]
    return [f'{square} fill="{colour}"/>', label(x + SQUARE / 2, y + 18, words, on_bar(colour), 13, "middle")]
