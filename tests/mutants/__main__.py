"""Change the deciding code in one place at a time, at random, and see whether a fast test notices.

Usage: python -m tests.mutants --seed N --count M [--jobs J]

Nothing on disk is changed but `tests/.results/mutants.json`, which says what each test calls. What `equivalents.toml` lists is
not drawn. The exit code is 1 where fewer than 95 % are noticed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path

from tests.mutants.drawing import draw, equivalents
from tests.mutants.forks import NICE
from tests.mutants.mutations import Mutation
from tests.mutants.trial import SURVIVES, Ground, Trials

ROOT = Path(__file__).resolve().parent.parent.parent
MUTATED = (
    "kcontrol/controller", "kcontrol/group", "kcontrol/broker", "kcontrol/batches", "kcontrol/core/controller_rules.py",
    "kcontrol/group/group_rules.py", "kcontrol/core/rule_fields.py", "kcontrol/core/transitions.py",
    "kcontrol/driver/driver.py", "kcontrol/zookeeper/memory.py", "kcontrol/search/invariants.py",
)  # fmt: skip
TESTS = ("core", "conformance", "golden", "traces", "group", "search", "zookeeper", "test_tables.py")
ENOUGH = 95  # per cent


def files(root: Path, places: tuple[str, ...]) -> list[str]:
    """Return the modules at and below some places, in their order."""
    found = [path for place in places for path in (sorted((root / place).rglob("*.py")) or [root / place])]
    found = [path for path in found if path.name != "__init__.py"]
    return [str(path.relative_to(root)) for path in found]


def summary(verdicts: list[tuple[Mutation, str]]) -> tuple[str, float]:
    """Return the table by file with its last line, and the percentage that was noticed."""
    drawn = Counter(mutation.file for mutation, _ in verdicts)
    killed = Counter(mutation.file for mutation, said in verdicts if said != SURVIVES)
    per_cent = 100 * killed.total() / max(1, drawn.total())
    rows = [f"{killed[file]:4}/{drawn[file]:<4} {file}" for file in sorted(drawn)]
    return "\n".join([*rows, f"{killed.total():4}/{drawn.total():<4} in all: {per_cent:.1f} %"]), per_cent


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, required=True, help="what the draw depends on")
    parser.add_argument("--count", type=int, default=60, help="how many mutations are tried (default: 60)")
    parser.add_argument("--jobs", type=int, default=1, help="how many are tried at a time (default: 1)")
    parser.add_argument("--root", type=Path, default=ROOT, help="another project that has a package and a folder of tests")
    parser.add_argument("--package", default="kcontrol", help="its package, which is mutated as a whole")
    chosen = parser.parse_args(arguments)
    is_ours = chosen.root == ROOT
    os.nice(max(0, NICE - os.nice(0)))
    tests = tuple(f"tests/{name}" for name in TESTS) if is_ours else ("tests",)
    modules = files(chosen.root, MUTATED if is_ours else (chosen.package,))
    drawn = draw(chosen.root, modules, chosen.seed, chosen.count, equivalents() if is_ours else ())
    trials = Trials(Ground(chosen.root, chosen.package, tuple(modules), tests), chosen.jobs)
    trials.learn()
    began, verdicts = time.monotonic(), list[tuple[Mutation, str]]()

    def report(mutation: Mutation, said: str) -> None:
        verdicts.append((mutation, said))
        word = SURVIVES if said == SURVIVES else f"killed by {said}"
        print(f"{len(verdicts):4}  {mutation.file}:{mutation.line} {mutation.function}: {mutation.text}  {word}", flush=True)

    trials.try_all(drawn, report)
    table, per_cent = summary(verdicts)
    print(f"{table}\nseed {chosen.seed}, {time.monotonic() - began:.0f} s")
    return 0 if per_cent >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
