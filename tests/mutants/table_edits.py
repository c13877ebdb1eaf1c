"""Changes of tables at module level: a row less, a row's action for another's, a rule that holds a release earlier or later."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from kcontrol.core.releases import sort_key

DISPLAYS = (ast.Tuple, ast.List, ast.Set)
RELEASES = (
    "0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.0", "0.10.1", "0.10.2", "0.11.0", "1.0.0", "1.1.0", "2.0.0", "2.1.0",
    "2.2.0", "2.3.0", "2.4.0", "2.5.0", "2.6.0", "2.7.0", "2.8.0", "3.0", "3.1", "3.2", "3.3", "3.9",
)  # fmt: skip
EditOfTable = tuple[ast.AST, str, Any, ast.AST]


def table_edits(node: ast.AST, parent: ast.AST, table: str) -> Iterator[EditOfTable]:
    """Yield (node, field, value, what is shown) for each change of a display in the assignment of an upper-case name."""
    name, _, rule = table.partition(".")
    if not name.isupper():
        return
    if name.endswith("RULES"):
        yield from _rules(node) if rule else ()
    elif isinstance(node, DISPLAYS) and not isinstance(parent, (*DISPLAYS, ast.Subscript, ast.BinOp)):
        for index, row in enumerate(node.elts):
            if len(node.elts) > 1:
                yield node, "elts", node.elts[:index] + node.elts[index + 1 :], row
        yield from _actions(node.elts)
    elif isinstance(node, ast.Dict) and len(node.keys) > 1:
        for index, entry in enumerate(node.keys):
            without = ast.Dict(node.keys[:index] + node.keys[index + 1 :], node.values[:index] + node.values[index + 1 :])
            if isinstance(entry, ast.expr):
                yield from _replaced(parent, node, without, entry)


def _replaced(parent: ast.AST, node: ast.AST, other: ast.AST, shown: ast.AST) -> Iterator[EditOfTable]:
    for field, value in ast.iter_fields(parent):
        if value is node:
            yield parent, field, other, shown


def _actions(rows: list[ast.expr]) -> Iterator[EditOfTable]:
    """Yield each row with the action of the next row that has another one."""
    kept = [(row, "elts" if isinstance(row, ast.Tuple) else "args") for row in rows if isinstance(row, (ast.Tuple, ast.Call))]
    for place, (row, field) in enumerate(kept):
        cells: list[ast.expr] = getattr(row, field)
        for column, cell in enumerate(cells):
            others_cells = [getattr(r, f) for r, f in kept[place + 1 :] + kept[:place]]
            following = [c[column] for c in others_cells if column < len(c)]
            others = [c for c in following if _is_action(c) and ast.dump(c) != ast.dump(cell)]
            if _is_action(cell) and others:
                yield row, field, [*cells[:column], others[0], *cells[column + 1 :]], row


def _is_action(cell: ast.expr) -> bool:
    name = cell.id if isinstance(cell, ast.Name) else cell.attr if isinstance(cell, ast.Attribute) else "A"
    return name.islower()


def _rules(node: ast.AST) -> Iterator[EditOfTable]:
    """Yield a rule's rows with one of them dropped, with the value of another, or holding since another release."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith("since")):
        return
    rows = [row for row in node.args if isinstance(row, ast.Tuple) and len(row.elts) == 2]
    since = [row.elts[0].value for row in rows if isinstance(row.elts[0], ast.Constant)]
    for index, row in enumerate(rows):
        others = [r.elts[1] for r in rows[index + 1 :] + rows[:index] if ast.dump(r.elts[1]) != ast.dump(row.elts[1])]
        if others:
            yield row, "elts", [row.elts[0], others[0]], node
        if index:
            yield node, "args", node.args[:index] + node.args[index + 1 :], node
            for release in _neighbours(str(since[index])):
                if release not in since:
                    yield row, "elts", [ast.Constant(release), row.elts[1]], node


def _neighbours(release: str) -> list[str]:
    """Return the releases before and after one."""
    this = (*sort_key(release), 0)[:3]
    earlier = [r for r in RELEASES if (*sort_key(r), 0)[:3] < this]
    later = [r for r in RELEASES if (*sort_key(r), 0)[:3] > this]
    return earlier[-1:] + later[:1]
