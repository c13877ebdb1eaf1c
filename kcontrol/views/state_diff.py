"""The differences between two states that `journal.fold` returns, as values and as an HTML table."""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from kcontrol.views import folded_state, text
from kcontrol.views.folded_state import Partition, State

FIELDS = ("replicas", "leader", "isr", "leader_epoch", "controller_epoch", "zk_version")
MARKED = "background:rgba(255, 179, 0, 0.3); color:inherit; border-radius:2px"
SHORT = 40  # characters of a row's head that stay on one line
WRAPPED = "text-align:left; white-space:normal; overflow-wrap:anywhere"
TIMESTAMP = re.compile(r'"timestamp":"\d+"')


def broker_status(state: State, broker: str) -> str:
    """It is "controller, epoch 2" if it runs and `/controller` names it, else "alive" or "dead"."""
    ruler = folded_state.controller(state)
    if broker not in state["nodes"]:
        return "dead"
    return f"controller, epoch {ruler[1]}" if ruler and str(ruler[0]) == broker else "alive"


def _brokers(pair: Sequence[State]) -> Iterator[tuple[str, list[str]]]:
    for broker in sorted({*pair[0]["nodes"], *pair[1]["nodes"]}, key=int):
        yield broker, [broker_status(state, broker) for state in pair]


def _partitions(pair: Sequence[State]) -> Iterator[tuple[str, list[Partition | None], list[str]]]:
    """Its name, its values in both states (None without it), and the fields that differ."""
    found = [{(p.topic, p.number): p for p in folded_state.partitions(state)} for state in pair]
    for key in sorted({*found[0], *found[1]}):
        one, other = (partitions.get(key) for partitions in found)
        differing = [name for name in FIELDS if one is None or other is None or getattr(one, name) != getattr(other, name)]
        yield f"{key[0]}-{key[1]}", [one, other], differing


def _znode(state: State, path: str) -> tuple[Any, ...] | None:
    """(data, version, owner), None without the znode. A timestamp is no difference."""
    found = state["znodes"].get(path)
    return (TIMESTAMP.sub('"timestamp":"*"', found[0]), *found[1:]) if found else None


def differences(one: State, other: State) -> dict[str, Any]:
    """{"brokers": {"1": ["alive", "dead"]}, "partitions": {"t-0": ["isr"]}, "znodes": [paths]}."""
    pair = (one, other)
    paths = sorted({*one["znodes"], *other["znodes"]})
    return {
        "brokers": {broker: said for broker, said in _brokers(pair) if said[0] != said[1]},
        "partitions": {name: fields for name, _, fields in _partitions(pair) if fields},
        "znodes": [path for path in paths if _znode(one, path) != _znode(other, path)],
    }


# ---------------------------------------------------------------- HTML


def _cell(words: str, differs: bool) -> str:
    shown = escape(_whole(words))
    return f'<mark style="{MARKED}">{shown}</mark>' if differs and shown else shown


def _said(p: Partition | None, differing: Sequence[str]) -> str:
    """Return the values of a partition as HTML, such as "replicas [1, 2], leader 1, ...", with the fields `differing` marked.

    If `p` is None, return "does not exist".
    """
    if p is None:
        return _cell("does not exist", True)
    words = {
        "replicas": f"replicas {list(p.replicas)}",
        "leader": "new" if p.leader is None else "no leader" if p.leader == -1 else f"leader {p.leader}",
        "isr": f"ISR {list(p.isr)}",
        "leader_epoch": f"leader epoch {p.leader_epoch}",
        "controller_epoch": f"controller epoch {p.controller_epoch}",
        "zk_version": f"v{p.zk_version}",
    }
    shown = FIELDS if p.leader is not None else ("replicas", "leader")
    return ", ".join(_cell(words[name], name in differing) for name in shown)


def _row(name: str, cells: Sequence[str], differs: bool) -> str:
    sign = "\u2260" if differs else ""
    inside = "".join(f'<td style="{WRAPPED}">{cell}</td>' for cell in cells)
    return f"<tr><td>{sign}</td>{_head(name)}{inside}</tr>"


def _znode_cell(state: State, path: str) -> str:
    found = state["znodes"].get(path)
    return _cell(f"{found[0]} (v{found[1]})" if found else "does not exist", True)


def _rows(pair: Sequence[State]) -> Iterator[tuple[str, bool]]:
    """Yield (HTML row, whether it differs) for each broker, then for each partition; a row has the values in both states."""
    for broker, said in _brokers(pair):
        differs = said[0] != said[1]
        yield _row(f"broker {broker}", [_cell(words, differs) for words in said], differs), differs
    for name, both, differing in _partitions(pair):
        yield _row(name, [_said(p, differing) for p in both], bool(differing)), bool(differing)


def html(names: Sequence[str], states: Sequence[State]) -> str:
    """Return HTML with the differences of two states: a table of the brokers and partitions that differ, a column per state.

    A click opens two more tables: equal brokers and partitions, and znodes that differ. `names` are the heads of the columns.
    """
    rows, paths = list(_rows(states)), differences(states[0], states[1])["znodes"]
    differing, equal = ([row for row, differs in rows if differs == wanted] for wanted in (True, False))
    znodes = [_row(path, [_znode_cell(state, path) for state in states], True) for path in paths]
    shown = _table(names, differing) if differing else "<p>At the end no broker and no partition differs.</p>"
    return (
        shown
        + (collapsible(f"Brokers and partitions that are equal: {len(equal)}", _table(names, equal)) if equal else "")
        + (collapsible(f"Znodes that differ: {len(znodes)}", _table(names, znodes)) if znodes else "")
    )


def _table(names: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(map(_head, names))
    return f"<table><thead><tr><td></td><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def collapsible(summary: str, content: str) -> str:
    """Return HTML that shows `content`, which is HTML, after a click on the text `summary`."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def plain_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of text as HTML: the first cell of a row is its head; cells wrap, and no cell is cut."""
    body = "".join(f"<tr>{_head(head)}{''.join(_text(cell) for cell in cells)}</tr>" for head, *cells in rows)
    return f"<table><thead><tr>{''.join(map(_head, heads))}</tr></thead><tbody>{body}</tbody></table>"


def _head(words: str) -> str:
    space = "nowrap" if len(words) <= SHORT else "normal"
    return f'<th style="text-align:left; white-space:{space}; overflow-wrap:anywhere">{escape(_whole(words))}</th>'


def _text(words: str) -> str:
    return f'<td style="{WRAPPED}">{escape(_whole(words))}</td>'


def _whole(words: str) -> str:
    return text.clean(words, max(len(words), 1))
