"""Every small change of a module that a test should notice, as edits of its syntax tree."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.mutants.table_edits import table_edits

FLIPPED: dict[type, tuple[type, ...]] = {
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.And: (ast.Or,), ast.Or: (ast.And,), ast.Add: (ast.Sub,), ast.Sub: (ast.Add,),
    ast.Mult: (ast.FloorDiv,), ast.FloorDiv: (ast.Mult,), ast.Mod: (ast.FloorDiv,), ast.BitOr: (ast.BitAnd,),
    ast.BitAnd: (ast.BitOr,), ast.LShift: (ast.RShift,), ast.RShift: (ast.LShift,),
}  # fmt: skip
IN_PLACE = {"property", "staticmethod", "classmethod", "override"}  # decorators that keep no second copy of a function's outcome
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NOT_RUN = {
    ("annotation", ast.arg), ("annotation", ast.AnnAssign), ("returns", ast.FunctionDef), ("decorator_list", ast.FunctionDef),
    ("decorator_list", ast.ClassDef), ("bases", ast.ClassDef), ("keywords", ast.ClassDef),
}  # fmt: skip


class Edit(NamedTuple):
    """A field of a node gets another value; `shown` is the part of the text that a reader compares."""

    node: ast.AST
    field: str
    value: Any
    shown: ast.AST


class Mutation(NamedTuple):
    """One edit of one file: the `number` is its place among the edits of the file."""

    file: str
    function: str  # the outermost function or method; "" outside functions
    line: int
    text: str
    number: int
    is_live: bool  # whether a function that has been imported can be changed in place


class Place(NamedTuple):
    """A node and where it is: its parent, its outermost function, and the assignment at module level that it is part of."""

    node: ast.AST
    parent: ast.AST
    function: str
    table: str
    is_live: bool
    is_inside: bool  # a function


def mutations(root: Path, file: str) -> list[Mutation]:
    """Return every mutation of a file, in the order of its text; two with equal texts in a function are numbered."""
    tree = ast.parse((root / file).read_text())
    found: list[Mutation] = []
    times: Counter[tuple[str, str]] = Counter()
    for number, (place, edit) in enumerate(_edits(tree)):
        where, text = place.function or place.table, _text(edit)
        times[where, text] += 1
        again = f" ({times[where, text]})" if times[where, text] > 1 else ""
        line = next(n.lineno for n in ast.walk(edit.shown) if isinstance(n, ast.expr | ast.stmt | ast.pattern))
        found.append(Mutation(file, where, line, text + again, number, place.is_live))
    return found


def mutated(root: Path, mutation: Mutation) -> ast.Module:
    tree = ast.parse((root / mutation.file).read_text())
    generators = {id(node) for node in ast.walk(tree) if isinstance(node, FUNCTIONS) and _yields(node)}
    edit = next(edit for number, (_, edit) in enumerate(_edits(tree)) if number == mutation.number)
    setattr(edit.node, edit.field, edit.value)
    for node in ast.walk(tree):
        if id(node) in generators and isinstance(node, FUNCTIONS) and not _yields(node):
            node.body.append(ast.If(ast.Constant(False), [ast.Expr(ast.Yield())], []))
    return ast.fix_missing_locations(tree)


def _yields(function: ast.AST) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))


# ---------------------------------------------------------------- where edits are made


def _edits(tree: ast.Module) -> Iterator[tuple[Place, Edit]]:
    for place in _places(tree, Place(tree, tree, "", "", False, False)):
        seen = set[str]()
        for edit in (*_operators(place), *table_edits(place.node, place.parent, place.table)):
            made = Edit(*edit)
            if (text := _text(made)) not in seen:
                seen.add(text)
                yield place, made


def _places(node: ast.AST, here: Place) -> Iterator[Place]:
    """Yield every node that runs, outermost first: no annotations, docstrings, assertions, messages of exceptions, decorators."""
    yield here
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and (field, type(node)) not in NOT_RUN and not _is_prose(child, node):
                yield from _places(child, _below(child, node, here))


def _is_prose(child: ast.AST, parent: ast.AST) -> bool:
    match child:
        case ast.Expr(value=ast.Constant()) | ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.keyword(arg="strict"):  # of zip: an assertion
            return True
        case ast.If(test=ast.Name("TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(name)]) if isinstance(parent, ast.Module):
            return not name.isupper()  # the alias of a type
    return isinstance(parent, ast.Raise)


def _below(child: ast.AST, parent: ast.AST, here: Place) -> Place:
    function, table, is_live, is_inside = here.function, here.table, here.is_live, here.is_inside
    if isinstance(child, (*FUNCTIONS, ast.ClassDef)) and not is_inside:
        function = f"{function}.{child.name}" if function else child.name
    if isinstance(child, FUNCTIONS) and not is_inside:
        is_live = all(isinstance(d, ast.Name) and d.id in IN_PLACE for d in child.decorator_list)
        is_inside = True
    elif isinstance(child, ast.arguments) and isinstance(parent, FUNCTIONS):
        is_live = False  # defaults were made when the function was
    if isinstance(parent, ast.Module) and isinstance(child, ast.Assign | ast.AnnAssign):
        table = ast.unparse(child.targets[0] if isinstance(child, ast.Assign) else child.target)
    if isinstance(parent, ast.ClassDef) and isinstance(child, ast.AnnAssign) and parent.name.endswith("Rules"):
        table = f"{parent.name.upper()}.{ast.unparse(child.target)}"
    return Place(child, parent, function, table, is_live, is_inside)


# ---------------------------------------------------------------- the operators


def _operators(place: Place) -> Iterator[tuple[ast.AST, str, Any, ast.AST]]:
    node = place.node
    match node:
        case ast.Compare():
            for index, op in enumerate(node.ops):
                for other in FLIPPED.get(type(op), ()):
                    yield node, "ops", [*node.ops[:index], other(), *node.ops[index + 1 :]], node
        case ast.BoolOp() | ast.BinOp() | ast.AugAssign():
            for other in FLIPPED.get(type(node.op), ()) if _is_swapped(place) else ():
                yield node, "op", other(), node
        case ast.Constant(value=bool()):
            yield node, "value", not node.value, _around(place)
        case ast.Constant(value=int()):
            yield node, "value", ast.literal_eval(node) + 1, _around(place)
        case ast.comprehension():
            for index in range(len(node.ifs)):
                yield node, "ifs", node.ifs[:index] + node.ifs[index + 1 :], node
        case ast.Return(value=ast.expr()) if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield node, "value", ast.Constant(None), node
        case ast.Match():
            for index, case in enumerate(node.cases):
                yield node, "cases", node.cases[:index] + node.cases[index + 1 :], case.pattern
    yield from _negations(node)
    yield from _droppings(place)
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.Yield | ast.YieldFrom) and not isinstance(node, ast.Expr):
            yield node, field, ast.Constant(None), node


def _is_swapped(place: Place) -> bool:
    """Return whether an operator's other one would run: `|` between types is none."""
    return not (isinstance(place.node, ast.BinOp) and isinstance(place.node.op, ast.BitOr) and not place.is_live)


def _negations(node: ast.AST) -> Iterator[tuple[ast.AST, str, Any, ast.AST]]:
    """Yield a condition's opposite, where flipping its comparison does not say as much."""
    tests: list[tuple[str, ast.expr]] = []
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        tests.append(("test", node.test))
    if isinstance(node, ast.match_case) and node.guard:
        tests.append(("guard", node.guard))
    for field, test in tests:
        match test:
            case ast.UnaryOp(op=ast.Not()):
                yield node, field, test.operand, test
            case ast.Compare():
                pass
            case _:
                yield node, field, ast.UnaryOp(ast.Not(), test), test
    if isinstance(node, ast.comprehension):
        for index, test in enumerate(node.ifs):
            if not isinstance(test, ast.Compare):
                opposite = test.operand if isinstance(test, ast.UnaryOp) else ast.UnaryOp(ast.Not(), test)
                yield node, "ifs", [*node.ifs[:index], opposite, *node.ifs[index + 1 :]], node


def _droppings(place: Place) -> Iterator[tuple[ast.AST, str, Any, ast.AST]]:
    """Yield a body without each of its statements, where a name that is never set would not give it away."""
    for field in ("body", "orelse", "finalbody"):
        body = getattr(place.node, field, None)
        if not place.function or not isinstance(body, list) or isinstance(place.node, ast.ClassDef):
            continue
        for index, statement in enumerate(body):
            is_the_end = isinstance(place.node, FUNCTIONS) and index == len(body) - 1 and isinstance(statement, ast.Return)
            if _is_dropped(statement) and not is_the_end and not _is_prose(statement, place.node):
                yield place.node, field, [*body[:index], ast.Pass(), *body[index + 1 :]], statement


def _is_dropped(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.YieldFrom(value=ast.Tuple(elts=[]))):  # which makes a generator, and yields nothing
            return False
        case ast.Expr() | ast.AugAssign() | ast.Delete() | ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.If() | ast.For():
            return True
    return False


# ---------------------------------------------------------------- what a reader sees of an edit


def _around(place: Place) -> ast.AST:
    """Return what a constant is shown with: the expression around it, or its whole statement."""
    simple = ast.expr | ast.keyword | ast.Return | ast.Assign | ast.AnnAssign | ast.AugAssign
    is_long = isinstance(place.parent, ast.Dict) or len(getattr(place.parent, "elts", ())) > 6
    return place.parent if isinstance(place.parent, simple) and not is_long else place.node


def _text(edit: Edit) -> str:
    before = _head(edit.shown)
    kept = getattr(edit.node, edit.field)
    shown = edit.value if edit.shown is kept else edit.shown
    setattr(edit.node, edit.field, edit.value)
    try:
        after = _head(shown)
    finally:
        setattr(edit.node, edit.field, kept)
    return f"{before} -> {after}" if before != after else f"{before} -> nothing"


def _head(node: ast.AST) -> str:
    return ast.unparse(node).strip().split("\n", 1)[0]
