"""The tool that says whether tests notice a change of what they test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.__main__ import MUTATED, ROOT, files
from tests.mutants.drawing import EQUIVALENTS, draw, equivalents
from tests.mutants.mutations import mutated, mutations

TINY = '''"""A tiny module."""

LIMIT = 3


def is_small(number: int) -> bool:
    """Say 1."""
    return number < LIMIT


def counted(numbers: list[int]):
    for number in numbers:
        if is_small(number):
            yield number
'''
TEST = """from tiny.module import counted, is_small


def test_small():
    assert is_small(2) and not is_small(7)


def test_counted():
    assert list(counted([1, 9])) == [1]
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A project with one module and two tests, which say nothing about the limit itself."""
    for name, text in (("tiny/__init__.py", ""), ("tiny/module.py", TINY), ("tests/test_tiny.py", TEST)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def texts(root: Path) -> list[str]:
    return [f"{m.function}: {m.text}" for m in mutations(root, "tiny/module.py")]


def test_every_place_of_the_tiny_module_is_mutated(tiny: Path) -> None:
    """The limit, the comparison both ways, what is returned, the condition, each statement, and no docstring."""
    assert texts(tiny) == [
        "LIMIT: LIMIT = 3 -> LIMIT = 4", "is_small: return number < LIMIT -> return None",
        "is_small: number < LIMIT -> number <= LIMIT", "is_small: number < LIMIT -> number >= LIMIT",
        "counted: for number in numbers: -> nothing", "counted: if is_small(number): -> nothing",
        "counted: is_small(number) -> not is_small(number)", "counted: yield number -> nothing",
    ]  # fmt: skip


def test_a_generator_without_its_yield_is_still_a_generator(tiny: Path) -> None:
    """Where the only `yield` goes, the function yields nothing, as the mutation says, and does not return None instead."""
    [mutation] = [m for m in mutations(tiny, "tiny/module.py") if m.text == "yield number -> nothing"]
    namespace: dict[str, object] = {}
    exec(compile(mutated(tiny, mutation), "tiny", "exec"), namespace)
    assert list(namespace["counted"]([1, 2])) == []  # type: ignore[operator]


@pytest.mark.slow
def test_the_tool_knows_what_is_noticed_and_what_is_not(tiny: Path) -> None:
    """Of all eight, the two that move the limit by one survive, the others are killed, and 75 % is too few."""
    command = [sys.executable, "-m", "tests.mutants", "--root", str(tiny), "--package", "tiny", "--seed", "1", "--count", "99"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [line[6:] for line in done.stdout.splitlines() if "tiny/module.py:" in line]
    survivors = {line for line in lines if line.endswith("  survives")}
    assert survivors == {
        "tiny/module.py:3 LIMIT: LIMIT = 3 -> LIMIT = 4  survives",
        "tiny/module.py:8 is_small: number < LIMIT -> number <= LIMIT  survives",
    }, done.stderr
    assert "tiny/module.py:14 counted: yield number -> nothing  killed by tests/test_tiny.py::test_counted" in lines
    assert (len(lines), done.returncode, (tiny / "tiny/module.py").read_text()) == (8, 1, TINY)
    assert "   6/8    in all: 75.0 %" in done.stdout


def test_the_same_seed_draws_the_same(tiny: Path) -> None:
    """A seed gives the same mutations in the same order, another seed others, and none comes twice."""
    drawn = [draw(tiny, ["tiny/module.py"], seed, 8, ()) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert sorted(drawn[0]) == sorted(drawn[2]) == sorted(mutations(tiny, "tiny/module.py"))


def test_every_equivalent_is_a_mutation() -> None:
    """What is listed as equivalent names a mutation that exists, once, and says why it is one."""
    rows = equivalents(EQUIVALENTS)
    existing = {(m.file, m.function, m.text) for file in {row.file for row in rows} for m in mutations(ROOT, file)}
    assert [row for row in rows if row[:3] not in existing or not row.reason] == []
    assert len({row[:3] for row in rows}) == len(rows)


def test_every_mutation_can_be_compiled() -> None:
    """What is drawn from the code itself is Python."""
    for mutation in draw(ROOT, files(ROOT, MUTATED), 7, 20, ()):
        compile(mutated(ROOT, mutation), mutation.file, "exec")
