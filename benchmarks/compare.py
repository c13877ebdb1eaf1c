"""Compare a benchmark's figures with those of another state of kcontrol: a commit, or the folder of a checkout.

Usage: python -m benchmarks.compare {simulated,controller,group,search} STATE [--rounds 3]

The benchmark of this checkout measures the package `kcontrol` of both states in turns, each time in a process of its own. A
commit is checked out into a temporary folder by `git worktree`, which is removed at the end. A ratio above 1 means that this
state is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
MEASURE = "import json, runpy, sys; print(json.dumps(runpy.run_path(sys.argv[1])['figures']()))"


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


def measured(benchmark: str, tree: Path) -> dict[str, float]:
    """Return the benchmark's figures with the package `kcontrol` of `tree`."""
    command = [sys.executable, "-c", MEASURE, str(HERE / f"{benchmark}.py")]
    printed = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    if printed.returncode:
        raise SystemExit(f"benchmarks.{benchmark} does not run in {tree}:\n{printed.stderr}")
    figures: dict[str, float] = json.loads(printed.stdout)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare a benchmark's figures with those of another state.")
    parser.add_argument("benchmark", choices=("simulated", "controller", "group", "search"))
    parser.add_argument("state", help="a commit, or the folder of a checkout")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    with checkout(chosen.state) as other:
        rows = [(measured(chosen.benchmark, HERE.parent), measured(chosen.benchmark, other)) for _ in range(chosen.rounds)]
    print(f"{chosen.rounds} rounds in turns with {chosen.state}, load {os.getloadavg()[0]:.1f}")
    for name in rows[0][0]:
        ours, theirs = ([row[of][name] for row in rows] for of in (0, 1))
        ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
        medians = f"median {statistics.median(ours):,.1f} against {statistics.median(theirs):,.1f}"
        print(f"{name}: {statistics.median(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f}); {medians}")


if __name__ == "__main__":
    main()
