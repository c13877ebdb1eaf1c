"""Two folded states next to each other, and what differs between them: as plain values, and as HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from kcontrol.views import scene, text
from kcontrol.views.scene import Partition, State

FIELDS = ("replicas", "leader", "isr", "leader_epoch", "controller_epoch", "zk_version")
MOST = 30
_TIMESTAMP = re.compile(r'"timestamp":"\d+"')


def standing(state: State, broker: str) -> str:
    """`dead`, `alive`, or `controller, epoch 2` for the broker that `/controller` names."""
    ruler = scene.controller(state)
    if broker not in state["nodes"]:
        return "dead"
    return f"controller, epoch {ruler[1]}" if ruler and str(ruler[0]) == broker else "alive"


def _brokers(pair: Sequence[State]) -> Iterator[tuple[str, list[str]]]:
    for broker in sorted({*pair[0]["nodes"], *pair[1]["nodes"]}, key=int):
        yield broker, [standing(state, broker) for state in pair]


def _partitions(pair: Sequence[State]) -> Iterator[tuple[str, list[Partition | None], list[str]]]:
    """Each partition that one of them has, as both have it, and the names of the fields that differ."""
    found = [{(p.topic, p.number): p for p in scene.partitions(state)} for state in pair]
    for key in sorted({*found[0], *found[1]}):
        one, other = (partitions.get(key) for partitions in found)
        differing = [name for name in FIELDS if one is None or other is None or getattr(one, name) != getattr(other, name)]
        yield f"{key[0]}-{key[1]}", [one, other], differing


def _znode(state: State, path: str) -> tuple[Any, ...] | None:
    """A znode without the time at which it was written, which tells nothing."""
    found = state["znodes"].get(path)
    return (_TIMESTAMP.sub('"timestamp":"*"', found[0]), *found[1:]) if found else None


def differences(one: State, other: State) -> dict[str, Any]:
    """What differs: `brokers` to their two standings, `partitions` to the names of fields, and the paths of `znodes`.

    Times that znodes hold are passed over.
    """
    pair = (one, other)
    paths = sorted({*one["znodes"], *other["znodes"]})
    return {
        "brokers": {broker: said for broker, said in _brokers(pair) if said[0] != said[1]},
        "partitions": {name: fields for name, _, fields in _partitions(pair) if fields},
        "znodes": [path for path in paths if _znode(one, path) != _znode(other, path)],
    }


# ---------------------------------------------------------------- HTML


def _cell(words: str, differs: bool) -> str:
    shown = escape(text.clean(words))
    return f"<mark>{shown}</mark>" if differs and shown else shown


def _said(p: Partition | None, differing: Sequence[str]) -> str:
    """A partition in one cell, what differs marked."""
    if p is None:
        return _cell("not there", True)
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
    inside = "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells)
    return f'<tr><td>{sign}</td><th style="text-align:left">{escape(text.clean(name))}</th>{inside}</tr>'


def _znode_cell(state: State, path: str) -> str:
    found = state["znodes"].get(path)
    return _cell(f"{found[0]} (v{found[1]})" if found else "not there", True)


def _rows(pair: Sequence[State]) -> Iterator[str]:
    for broker, said in _brokers(pair):
        yield _row(f"broker {broker}", [_cell(words, said[0] != said[1]) for words in said], said[0] != said[1])
    for name, both, differing in _partitions(pair):
        yield _row(name, [_said(p, differing) for p in both], bool(differing))
    for path in differences(*pair)["znodes"]:
        yield _row(path, [_znode_cell(state, path) for state in pair], True)


def html(names: Sequence[str], states: Sequence[State]) -> str:
    """A table with a column for each state: brokers, partitions, and the znodes that differ; a sign and a mark where they do."""
    rows = list(_rows(states))
    head = "".join(f'<th style="text-align:left">{escape(text.clean(name))}</th>' for name in names)
    more = f"<tr><td></td><td>and {len(rows) - MOST} more</td></tr>" if len(rows) > MOST else ""
    return f"<table><thead><tr><td></td><td></td>{head}</tr></thead><tbody>{''.join(rows[:MOST])}{more}</tbody></table>"
