"""Compare a benchmark's figures with those of another state of kcontrol: a commit, or the folder of a checkout.

Usage: python -m benchmarks.compare {simulated,controller,group,search} STATE [--rounds 3]

The benchmark of this checkout measures the package `kcontrol` of both states, each in a process of its own. Each round takes the
parts of the benchmark one by one, and each part from both states in turn, so that other work on the machine slows both. A commit
is checked out into a temporary folder by `git worktree`, which is removed at the end. Each figure is a row of RESULTS.md: the
median of the rounds' ratios with the smallest and the largest, and the medians. A ratio above 1 means that this state is faster;
a figure "A / B" is no speed, and the row has only its medians.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# Measures the parts whose numbers it reads, one after the other.
MEASURE = """
import gc, json, runpy, sys
parts = runpy.run_path(sys.argv[1])["PARTS"]
print(len(parts), flush=True)
for line in sys.stdin:
    gc.collect()
    print(json.dumps(parts[int(line)]()), flush=True)
"""


@contextmanager
def checkout(state: str) -> Iterator[Path]:
    """Yield the folder `state`, or else a worktree of the commit `state`."""
    if Path(state).is_dir():
        yield Path(state)
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "state"
        git = ["git", "-C", str(HERE), "worktree"]
        if subprocess.run([*git, "add", "--quiet", "--detach", str(folder), state], check=False).returncode:
            raise SystemExit(f"{state} is neither a folder nor a commit of this repository.")
        try:
            yield folder
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)


class State:
    """A process that measures the parts of a benchmark with the package `kcontrol` of the folder `tree`."""

    def __init__(self, benchmark: str, tree: Path) -> None:
        command = [sys.executable, "-c", MEASURE, str(HERE / f"{benchmark}.py")]
        self._process = subprocess.Popen(command, cwd=tree, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.parts = range(self._answer())

    def measured(self, part: int) -> dict[str, float]:
        assert self._process.stdin
        self._process.stdin.write(f"{part}\n")
        self._process.stdin.flush()
        figures: dict[str, float] = self._answer()
        return figures

    def close(self) -> None:
        self._process.communicate()

    def _answer(self) -> Any:
        assert self._process.stdout
        if line := self._process.stdout.readline():
            return json.loads(line)
        raise SystemExit("The benchmark does not run with this state: see the error above.")


def row(name: str, ours: list[float], theirs: list[float]) -> str:
    medians = " against ".join(
        f"{value:,.0f}" if value > 100 else f"{value:.2f}" for value in map(statistics.median, (ours, theirs))
    )
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    times = f"{statistics.median(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f}), "
    return f"| {name} | {'' if ' / ' in name else times}median {medians} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare a benchmark's figures with those of another state.")
    parser.add_argument("benchmark", choices=("simulated", "controller", "group", "search"))
    parser.add_argument("state", help="a commit, or the folder of a checkout")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    began, load = time.monotonic(), os.getloadavg()[0]
    figures: dict[str, tuple[list[float], list[float]]] = {}
    with checkout(chosen.state) as other:
        states = [State(chosen.benchmark, tree) for tree in (HERE.parent, other)]
        for turn in range(chosen.rounds):
            for part in states[0].parts:
                # The state that is first in one round is second in the next.
                for of in (0, 1) if turn % 2 else (1, 0):
                    for name, value in states[of].measured(part).items():
                        figures.setdefault(name, ([], []))[of].append(value)
        for state in states:
            state.close()
    print(f"{chosen.rounds} rounds in turns with {chosen.state}, {time.monotonic() - began:.0f} s, load {load:.1f}")
    print("\n| what | result |\n|---|---|")
    for name, (ours, theirs) in figures.items():
        print(row(name, ours, theirs))


if __name__ == "__main__":
    main()
