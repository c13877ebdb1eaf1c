"""A function that draws boxes and arrows with Graphviz, and the values that describe a box and an arrow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kcontrol.views.diagrams import SHAPE, Diagram


class Box(NamedTuple):
    """A box in a drawn graph: the key by which arrows name the box, its lines of text, and its CSS class.

    The class "full" is a blue box, "current" a box with a thick border.
    """

    key: str
    lines: tuple[str, ...]
    css: str = ""


class Arrow(NamedTuple):
    """An edge from one box to another, both given by their keys, with its label."""

    source: str
    target: str
    label: str = ""


def graph(name: str, boxes: Iterable[Box], arrows: Iterable[Arrow], rankdir: str = "LR") -> Diagram:
    """Return a diagram of boxes and arrows, added in this order; `rankdir` is "LR" (left to right) or "TB" (top to bottom).

    Raises KeyError for an arrow from or to a box that is not in `boxes`.
    """
    spacing = {"nodesep": "0.18", "ranksep": "0.45"}
    diagram = Diagram(name, graph_attr={"bgcolor": "transparent", "rankdir": rankdir, **spacing}, node_attr=SHAPE)
    diagram.attr("edge", fontname="Helvetica,sans-serif", fontsize="10")
    names, titles = dict[str, str](), dict[str, str]()  # Graphviz reads a colon in a name as the name of a port
    for box in boxes:
        names[box.key], titles[box.key] = f"box{len(names)}", box.lines[0]
        diagram.add_node(names[box.key], box.lines, tooltip=" ".join(box.lines), css=box.css)
    for source, target, label in arrows:
        line = f"{titles[source]} -> {titles[target]}"
        said, beside = (f"{line}: {label}", f" {label} ") if label else (line, "")
        diagram.add_edge(names[source], names[target], said, label=beside)
    return diagram
