"""Functions that draw a `graphviz.Digraph`: a state machine, the causes of a record, or boxes and arrows."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from typing import Any, NamedTuple

import graphviz

from kcontrol.core.transitions import Transition, TransitionTable
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.journal import journal
from kcontrol.journal.journal import Record, RecordId
from kcontrol.views import bundle, dot_command, text
from kcontrol.views.explanations import decided
from kcontrol.views.record_rows import about_run, rows

# Graphviz writes colours as attributes, which this style sheet overrides, so that a dark theme has light lines and text.
STYLE = f"<style>\n{bundle.style('diagram')}</style>"
SHAPE = {"shape": "box", "style": "rounded,filled", "fillcolor": "#f1f3f5", "fontname": "Helvetica,sans-serif", "fontsize": "12"}
WRAP = 64
OF_COORDINATOR = ("PartitionElected", "PartitionResigned")
WIDEST = 4


class Diagram(graphviz.Digraph):  # type: ignore[misc]
    """A graph of nodes and edges, drawn as SVG in the page's light or dark theme."""

    # The lines of `outline()`.
    said: tuple[str, ...] = ()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None, **_: Any) -> dict[str, Any]:
        """With the text for frontends without pictures."""
        return {"image/svg+xml": self.svg(), "text/plain": self.outline()}

    def svg(self) -> str:
        """Return the picture as SVG text, drawn by `dot`; without a `dot` on PATH it is drawn by pygraphviz."""
        try:
            drawn: str = self.pipe(format="svg", encoding="utf-8")
        except graphviz.ExecutableNotFound:
            drawn = dot_command.draw(self.source, "dot", "svg", []).decode()
        head, tag, rest = drawn[drawn.index("<svg") :].partition(">")
        return f"{head}{tag}{STYLE}{rest}"

    def outline(self) -> str:
        """One line for each node and edge, in the order of their addition."""
        return "\n".join(self.said)

    def add_node(self, key: str, lines: Sequence[str], tooltip: str = "", css: str = "") -> None:
        """The texts are escaped. `css`: "full" is blue, "current" has a thick border."""
        attributes = {"class": css} if css else {}
        self.node(key, _literal(lines), tooltip=_literal([tooltip or lines[0]]), **attributes)
        # The outline in words has the tooltip; without a tooltip it has all lines.
        self.said = (*self.said, tooltip or " ".join(lines))

    def add_edge(self, source: str, target: str, line: str, tooltip: str = "", label: str = "") -> None:
        """`line` describes the edge in the text version (`outline`), and is the tooltip if none is given."""
        self.edge(source, target, label=_literal([label]), tooltip=_literal([tooltip or line]))
        self.said = (*self.said, line)


def _literal(lines: Sequence[str]) -> Any:
    """The lines are escaped: Graphviz finds no HTML, entity or escape in them."""
    return graphviz.nohtml("\\n".join(graphviz.escape(line.replace("&", "&amp;")) for line in lines))


def _diagram(name: str, **graph: str) -> Diagram:
    diagram = Diagram(name, graph_attr={"bgcolor": "transparent", **graph}, node_attr=SHAPE)
    diagram.attr("edge", fontname="Helvetica,sans-serif", fontsize="10")
    return diagram


def machine(
    table: TransitionTable,
    current: Enum | str | None = None,
    counts: Mapping[Any, int] | None = None,
    names: Mapping[str, str] | None = None,
) -> Diagram:
    """Draw a transition table: a node for each state, and an edge for each transition.

    An edge has the name of the function that performs the transition.

    Args:
        table: the transition table.
        current: the state that is highlighted.
        counts: numbers to show in the nodes, such as the partitions in each state.
        names: kcontrol's name of a state -> the name to show, such as the release's; states without a name are left out.
    """
    towards = "LR" if len(table.states) <= WIDEST else "TB"  # seven states side by side are wider than a page
    diagram = _diagram(
        table.name, rankdir=towards, label=_literal([table.source]), fontname="Helvetica,sans-serif", fontsize="10"
    )
    numbers = {str(state): count for state, count in (counts or {}).items()}
    shown = names if names is not None else {str(state): str(state) for state in table.states}
    for state, name in shown.items():
        count = numbers.get(state)
        css = "current" if state == str(current) else "full" if count else ""
        diagram.add_node(name, [name] if count is None else [name, str(count)], css=css)
    for row in table:
        source, target = shown[str(row.source)], shown[str(row.target)]
        diagram.add_edge(source, target, f"{source} -> {target}: {row.note}", row.note, _decider(row))
    return diagram


def _decider(row: Transition) -> str:
    """The function that performs a transition; "" if it is `memory_only`."""
    name = getattr(row.action, "__name__", type(row.action).__name__)
    return "" if name == "memory_only" else name


def _through_its_partition(records: Sequence[Record], chain: list[Record]) -> list[Record]:
    """Return `chain`, a journal record followed by its causes, corrected if it has a coordinator's load or unload.

    The journal names the controller's last transition as the cause of a batch of requests. The corrected chain has the
    transition of the loaded partition instead.
    """
    events = [record.to_json().fields["event"] for record in chain if record.kind == "enqueue"]
    numbers = [event["partition"] for event in events if event["event"] in OF_COORDINATOR]
    sent = next((place for place, record in enumerate(chain) if record.kind == "send"), None)
    if not numbers or sent is None:
        return chain
    begun, last = (r.id for r in (next(r for r in chain[sent:] if r.kind == "begin"), chain[sent]))
    changes = (r for r in records if r.kind == "change" and begun < r.id < last and r.id[:2] == last[:2])
    # The journal names the last transition of the handler as the cause of a batch, which may be about another partition.
    own = [r.id for r in changes if str(r.fields["subject"]) == f"{OFFSETS_TOPIC}-{numbers[0]}"]
    return chain[: sent + 1] + journal.why(records, own[-1]) if own else chain


def why(records: Iterable[Record], id: RecordId | None) -> Diagram:
    """Draw a journal record and the chain of its causes, the first cause at the top; an empty diagram if `id` is None.

    Raises KeyError for an id that `records` does not have.
    """
    diagram = _diagram("why", rankdir="TB", nodesep="0.2", ranksep="0.25")
    records = list(records)
    release = about_run(rows(records[:1]))["release"]
    chain = [record.to_json() for record in reversed(_through_its_partition(records, journal.why(records, id)))]
    for record in chain:
        words = [f"{record.id}  {text.sentence(record)}", *decided(record, release)]
        lines = [part for line in words for part in textwrap.wrap(line, WRAP, break_long_words=False)]
        diagram.add_node(str(record.id), lines, tooltip=" · ".join(words), css="current" if record is chain[-1] else "")
    for earlier, later in pairwise(chain):
        diagram.add_edge(str(earlier.id), str(later.id), f"{earlier.id} -> {later.id}")
    return diagram


# ---------------------------------------------------------------- boxes and arrows


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
    diagram = _diagram(name, rankdir=rankdir, nodesep="0.18", ranksep="0.45")
    names, titles = dict[str, str](), dict[str, str]()  # Graphviz reads a colon in a name as the name of a port
    for box in boxes:
        names[box.key], titles[box.key] = f"box{len(names)}", box.lines[0]
        diagram.add_node(names[box.key], box.lines, tooltip=" ".join(box.lines), css=box.css)
    for source, target, label in arrows:
        line = f"{titles[source]} -> {titles[target]}"
        said, beside = (f"{line}: {label}", f" {label} ") if label else (line, "")
        diagram.add_edge(names[source], names[target], said, label=beside)
    return diagram
