"""Which mutations are tried, and which are known to change nothing."""

from __future__ import annotations

import ast
import random
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.mutants.mutations import Mutation, mutations

EQUIVALENTS = Path(__file__).parent / "equivalents.toml"


class Equivalent(NamedTuple):
    """A mutation that no test can notice, and why; found again by its text, wherever the lines have gone."""

    file: str
    function: str
    mutation: str
    reason: str


def equivalents(path: Path = EQUIVALENTS) -> list[Equivalent]:
    """Return the rows of the file. Raises TypeError where a row lacks a field or has one too many."""
    return [Equivalent(**row) for row in tomllib.loads(path.read_text())["equivalent"]]


def draw(root: Path, files: Iterable[str], seed: int, count: int, left_out: Iterable[Equivalent]) -> list[Mutation]:
    """Return mutations, no two alike: each time a file, the longer the likelier, and one of its mutations."""
    chance = random.Random(seed)
    known = {row[:3] for row in left_out}
    open_ones = {file: [m for m in mutations(root, file) if (m.file, m.function, m.text) not in known] for file in files}
    weights = {file: len((root / file).read_text().splitlines()) for file, found in open_ones.items() if found}
    drawn: list[Mutation] = []
    while weights and len(drawn) < count:
        [file] = chance.choices(list(weights), list(weights.values()))
        drawn.append(open_ones[file].pop(chance.randrange(len(open_ones[file]))))
        if not open_ones[file]:
            del weights[file]
    return drawn


# ---------------------------------------------------------------- what has to do with a table


def words(mutation: Mutation) -> list[str]:
    """Return the names that a mutation outside functions is about: of its rule, class or table, then those in its text."""
    own = mutation.function.split(".")[-1:]
    before = mutation.text.split(" -> ")[0]
    try:
        tree = ast.parse(before)
    except SyntaxError:
        return own
    found = [n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(tree) if isinstance(n, ast.Name | ast.Attribute)]
    return own + found


def speaking_of(root: Path, package: str) -> dict[str, set[tuple[str, str]]]:
    """Return of each name the functions that it is the name of, or that use it."""
    found: dict[str, set[tuple[str, str]]] = {}
    for path in sorted((root / package).rglob("*.py")):
        file = str(path.relative_to(root))
        for name, node in _functions(ast.parse(path.read_text()), ""):
            found.setdefault(name.split(".")[-1], set()).add((file, name))
            for used in ast.walk(node):
                if isinstance(used, ast.Name | ast.Attribute):
                    found.setdefault(used.id if isinstance(used, ast.Name) else used.attr, set()).add((file, name))
    return found


def _functions(node: ast.AST, within: str) -> Iterable[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield f"{within}{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{within}{child.name}.")
