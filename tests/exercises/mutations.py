"""Small changes of a solution, made without knowing what it does: most of them make it wrong."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

SWAPS: dict[type, tuple[type, ...]] = {
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt), ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.And: (ast.Or,), ast.Or: (ast.And,),
}  # fmt: skip


class Mutation(NamedTuple):
    """A changed solution, and the line that is new in it."""

    text: str
    what: str


def mutations(text: str) -> Iterator[Mutation]:
    """Every solution that differs from this one in a single place, docstrings and imports left alone."""
    tree = _without_docstrings(ast.parse(text))
    before, seen = ast.unparse(tree), set[str]()
    lines = before.splitlines()
    for number, node in enumerate(ast.walk(tree)):
        for way in range(_ways(node)):
            twin = copy.deepcopy(tree)
            _change(list(ast.walk(twin))[number], way)
            after = ast.unparse(ast.fix_missing_locations(twin))
            if after not in seen and after != before:
                seen.add(after)
                yield Mutation(after, next((line.strip() for line in after.splitlines() if line not in lines), "a line less"))
    yield from _simple_answers(tree)


def _simple_answers(tree: ast.Module) -> Iterator[Mutation]:
    """The same file with a constant, or an argument, for an answer."""
    last = tree.body[-1]
    for value in (True, False, 0, 1, -1, "", "x", [], [0]):
        if isinstance(last, ast.FunctionDef):
            simple = f"return {value!r}"
            yield Mutation(f"def {last.name}({ast.unparse(last.args)}):\n    {simple}", simple)
        elif isinstance(last, ast.Assign):
            simple = f"{ast.unparse(last.targets[0])} = {value!r}"
            yield Mutation(simple, simple)
    for argument in last.args.args if isinstance(last, ast.FunctionDef) else ():
        simple = f"return {argument.arg}"
        yield Mutation(f"def {last.name}({ast.unparse(last.args)}):\n    {simple}", simple)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _ways(node: ast.AST) -> int:
    match node:
        case ast.Compare():
            return sum(len(SWAPS.get(type(op), ())) for op in node.ops[:1])
        case ast.BoolOp():
            return 1 + len(node.values)
        case ast.BinOp():
            return len(SWAPS.get(type(node.op), ()))
        case ast.Constant(value=bool()):
            return 1
        case ast.Constant(value=int()):
            return 3
        case ast.Constant(value=str()):
            return 2
        case ast.Return() | ast.If() | ast.IfExp() | ast.For():
            return 2
        case ast.List() | ast.Tuple():
            return len(node.elts) + (1 if len(node.elts) > 1 else 0) + 1
        case ast.comprehension():
            return 1 + len(node.ifs)
    return 0


def _change(node: ast.AST, way: int) -> None:
    match node:
        case ast.Compare():
            node.ops[0] = SWAPS[type(node.ops[0])][way]()
        case ast.BoolOp():
            if way == 0:
                node.op = SWAPS[type(node.op)][0]()
            else:
                del node.values[way - 1]
        case ast.BinOp():
            node.op = SWAPS[type(node.op)][way]()
        case ast.Constant():
            node.value = _other(node.value, way)
        case ast.Return():
            node.value = ast.Constant(None) if way == 0 or node.value is None else ast.UnaryOp(ast.Not(), node.value)
        case ast.If() | ast.IfExp():
            node.test = ast.UnaryOp(ast.Not(), node.test) if way == 0 else ast.Constant(True)
        case ast.For():
            name = "reversed" if way == 0 else "sorted"
            node.iter = ast.Call(ast.Name(name), [ast.Call(ast.Name("list"), [node.iter], [])], [])
        case ast.List() | ast.Tuple():
            _rearrange(node, way)
        case ast.comprehension():
            if way == 0:
                node.iter = ast.Call(ast.Name("reversed"), [ast.Call(ast.Name("list"), [node.iter], [])], [])
            else:
                del node.ifs[way - 1]


def _other(value: Any, way: int) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return (value + 1, value - 1, value + 10)[way]
    return (f"{value}x", value[:-1])[way]


def _rearrange(node: ast.List | ast.Tuple, way: int) -> None:
    if way < len(node.elts):
        del node.elts[way]
    elif way == len(node.elts) and len(node.elts) > 1:
        node.elts.reverse()
    else:
        node.elts.append(copy.deepcopy(node.elts[-1]) if node.elts else ast.Constant(0))
