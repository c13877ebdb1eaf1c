"""Draws a cluster's state after a journal record as SVG, for frontends that show no widgets."""

from collections.abc import Iterable
from typing import Any

from kcontrol.views import folded_state, group_state, text
from kcontrol.views.picture import MARGIN, WIDTH, frame, label, shortened

ROW, SQUARE = 30, 24
CARD_WIDTH, CARD_HEIGHT, PARTITIONS_AT = 236, 28, 290
MOST_PARTITIONS = 14
LINE = 19


def _broker(broker: str, y: float, state: dict[str, Any], ruler: tuple[int, int] | None) -> list[str]:
    alive, rules = broker in state["nodes"], ruler is not None and str(ruler[0]) == broker
    css = "gone" if not alive else "rules" if rules else "card"
    standing = (f"controller, epoch {ruler[1]}" if alive else "dead controller") if ruler and rules else "" if alive else "dead"
    return [
        f'<rect x="{MARGIN}" y="{y}" width="{CARD_WIDTH}" height="{CARD_HEIGHT}" rx="8" class="{css}"/>',
        *([label(MARGIN + 11, y + 20, "\u265b", "crown", 17)] if rules else []),
        label(MARGIN + 34, y + 19, f"broker {broker}", "ink" if alive else "dim", 14),
        *([label(MARGIN + CARD_WIDTH - 10, y + 19, standing, "dim", 12, "end")] if standing else []),
    ]


def _replica(x: float, y: float, broker: int, partition: folded_state.Partition, state: dict[str, Any]) -> list[str]:
    css = "lead" if partition.leader == broker else "isr" if broker in partition.isr else "out"
    dead = str(broker) not in state["nodes"]
    square = f'<rect x="{x}" y="{y}" width="{SQUARE}" height="{SQUARE}" rx="5" class="{css}{" dead" if dead else ""}"/>'
    number = label(x + SQUARE / 2, y + 17, str(broker), "onlead" if css == "lead" else "ink", 13, "middle")
    strike = f'<path d="M{x + 4} {y + SQUARE - 5}L{x + SQUARE - 4} {y + 5}" class="strike"/>'
    return [square, number, strike] if dead else [square, number]


def _partition(partition: folded_state.Partition, y: float, state: dict[str, Any]) -> list[str]:
    x = PARTITIONS_AT + 170
    parts = [label(PARTITIONS_AT, y + 17, shortened(partition.name, 24))]
    for place, broker in enumerate(partition.replicas):
        parts += _replica(x + place * (SQUARE + 5), y, broker, partition, state)
    words = "new" if partition.leader is None else f"leader epoch {partition.leader_epoch}"
    condition = folded_state.condition(partition, state)
    words = condition if condition in ("offline", "being deleted") else words
    return [*parts, label(WIDTH - MARGIN, y + 17, words, "dim", 12, "end")]


def group_lines(state: dict[str, Any], release: str) -> list[str]:
    """Such as "group g: Stable, generation 2, coordinator 1", each with its members below."""
    found = group_state.groups(state, release)
    return [line for group in found for line in (group.words, *(member.words for member in group.members))]


def svg(state: dict[str, Any], brokers: Iterable[int] = (), title: str = "", headline: str = "", release: str = "") -> str:
    """Return as SVG text the picture of the brokers, controller first, of the partitions, and of the consumer groups.

    `title` and `headline` are lines above, `brokers` all brokers; `release` determines the names of group states.
    """
    ruler, partitions = folded_state.controller(state), folded_state.partitions(state)
    every = sorted({*map(str, brokers), *state["nodes"]}, key=lambda n: (ruler is None or int(n) != ruler[0], int(n)))
    heads = [(title, "ink", 16), (headline, "ink", 14), (text.summary(state, map(int, every)), "dim", 13)]
    lines = [head for head in heads if head[0]]
    parts = [label(MARGIN, 26 + 21 * place, *line) for place, line in enumerate(lines)]
    top = 26 + 21 * len(lines)
    for place, broker in enumerate(every):
        parts += _broker(broker, top + place * (CARD_HEIGHT + 6), state, ruler)
    for place, partition in enumerate(partitions[:MOST_PARTITIONS]):
        parts += _partition(partition, top + place * ROW, state)
    shown = min(len(partitions), MOST_PARTITIONS)
    if len(partitions) > shown:
        parts.append(label(PARTITIONS_AT, top + shown * ROW + 17, f"and {len(partitions) - shown} more", "dim"))
        shown += 1
    height = top + max(len(every) * (CARD_HEIGHT + 6), shown * ROW) + MARGIN
    for words in group_lines(state, release):
        parts.append(label(MARGIN, height + 4, words, "ink", 13))
        height += LINE
    return frame(WIDTH, height, title or "the cluster", parts)
