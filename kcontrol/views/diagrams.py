"""Diagrams as `graphviz.Digraph`: a state machine from the rows of its table, and the chain of causes of a record."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from typing import Any

import graphviz

from kcontrol.runtime import journal
from kcontrol.runtime.journal import Record, RecordId
from kcontrol.transitions import Transition, TransitionTable
from kcontrol.views import dot, text
from kcontrol.views.meanings import decided
from kcontrol.views.rows import about_run, rows

# Graphviz writes colours as attributes, which a style sheet overrides: in a dark theme what is dark becomes light.
STYLE = """<style>
.edge path{stroke:#57606a}.edge polygon{stroke:#57606a;fill:#57606a}
.node path,.node polygon{stroke:#57606a;fill:#f1f3f5}.full path,.full polygon{stroke:#0072b2;fill:#d6ecf8}
.current path,.current polygon{stroke:#e69f00;fill:#fdf3dc;stroke-width:3.5}
@media (prefers-color-scheme:dark){text{fill:#e6e8ea}.edge path{stroke:#a2a9b1}.edge polygon{stroke:#a2a9b1;fill:#a2a9b1}
.node path,.node polygon{stroke:#a2a9b1;fill:#23272e}.full path,.full polygon{stroke:#3d9bd9;fill:#1d3a4d}
.current path,.current polygon{stroke:#e69f00;fill:#3a2f14}}
</style>"""

SHAPE = {"shape": "box", "style": "rounded,filled", "fillcolor": "#f1f3f5", "fontname": "Helvetica,sans-serif", "fontsize": "12"}
WRAP = 64
WIDEST = 4


class Diagram(graphviz.Digraph):  # type: ignore[misc]
    """A Digraph whose picture follows the reader's theme; `outline()` says in text what is in it, whatever the fonts."""

    said: tuple[str, ...] = ()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None, **_: Any) -> dict[str, Any]:
        """The picture, and the outline for where no picture is shown."""
        return {"image/svg+xml": self.svg(), "text/plain": self.outline()}

    def svg(self) -> str:
        """The picture as SVG text, drawn by `dot`, or in this process where no `dot` is on PATH."""
        try:
            drawn: str = self.pipe(format="svg", encoding="utf-8")
        except graphviz.ExecutableNotFound:
            drawn = dot.draw(self.source, "dot", "svg", []).decode()
        head, tag, rest = drawn[drawn.index("<svg") :].partition(">")
        return f"{head}{tag}{STYLE}{rest}"

    def outline(self) -> str:
        """One line for each node and edge, in the order in which they were drawn."""
        return "\n".join(self.said)

    def add_node(self, key: str, lines: Sequence[str], tooltip: str = "", css: str = "") -> None:
        """A node with these lines of text, shown as they are; the outline has its tooltip, or else the lines."""
        attributes = {"class": css} if css else {}
        self.node(key, _literal(lines), tooltip=_literal([tooltip or lines[0]]), **attributes)
        self.said = (*self.said, tooltip or " ".join(lines))

    def add_edge(self, source: str, target: str, line: str, tooltip: str = "", label: str = "") -> None:
        """An edge, and the line that the outline has for it."""
        self.edge(source, target, label=_literal([label]), tooltip=_literal([tooltip or line]))
        self.said = (*self.said, line)


def _literal(lines: Sequence[str]) -> Any:
    """Text for Graphviz in which nothing has a meaning of its own: no HTML, entity or escape, one line below the other."""
    return graphviz.nohtml("\\n".join(graphviz.escape(line.replace("&", "&amp;")) for line in lines))


def _diagram(name: str, **graph: str) -> Diagram:
    diagram = Diagram(name, graph_attr={"bgcolor": "transparent", **graph}, node_attr=SHAPE)
    diagram.attr("edge", fontname="Helvetica,sans-serif", fontsize="10")
    return diagram


def machine(table: TransitionTable, current: Enum | str | None = None, counts: Mapping[Any, int] | None = None) -> Diagram:
    """The table as a picture: each state with how many subjects are in it, each row as an edge that says what it means.

    `current` is lit. An edge bears the name of the function that decides it, so that a learner's own rule is seen.
    """
    towards = "LR" if len(table.states) <= WIDEST else "TB"  # seven states side by side are wider than a page
    diagram = _diagram(
        table.name, rankdir=towards, label=_literal([table.source]), fontname="Helvetica,sans-serif", fontsize="10"
    )
    numbers = {str(state): count for state, count in (counts or {}).items()}
    for state in table.states:
        name, count = str(state), numbers.get(str(state))
        css = "current" if name == str(current) else "full" if count else ""
        diagram.add_node(name, [name] if count is None else [name, str(count)], css=css)
    for row in table:
        diagram.add_edge(str(row.source), str(row.target), f"{row.source} -> {row.target}: {row.note}", row.note, _decider(row))
    return diagram


def _decider(row: Transition) -> str:
    """The name of the function that decides this row, where it decides anything."""
    name = getattr(row.action, "__name__", type(row.action).__name__)
    return "" if name == "mark" else name


def why(records: Iterable[Record], id: RecordId | None) -> Diagram:
    """The chain of causes of a record, from the first cause down, each link with its row or rule and where Kafka has it.

    Raises KeyError for an id that is not among the records.
    """
    diagram = _diagram("why", rankdir="TB", nodesep="0.2", ranksep="0.25")
    records = list(records)
    release = about_run(rows(records[:1]))["release"]
    chain = [record.plain() for record in reversed(journal.why(records, id))]
    for record in chain:
        words = [f"{record.id}  {text.say(record)}", *decided(record, release)]
        lines = [part for line in words for part in textwrap.wrap(line, WRAP, break_long_words=False)]
        diagram.add_node(str(record.id), lines, tooltip=" · ".join(words), css="current" if record is chain[-1] else "")
    for earlier, later in pairwise(chain):
        diagram.add_edge(str(earlier.id), str(later.id), f"{earlier.id} -> {later.id}")
    return diagram
