"""The README says what is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.parts import ROOT

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(python)?\n(.*?)```", README, re.DOTALL)


def test_the_example_prints_what_stands_below_it(tmp_path: Path) -> None:
    """The README's Python, run as it stands in an empty folder, prints exactly the block that follows it."""
    (_, code), (_, output) = BLOCKS[0], BLOCKS[1]
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    printed = [line.rstrip() for line in ran.stdout.splitlines()]
    assert (printed, ran.stderr) == (output.splitlines(), "")


def test_what_it_points_to_is_there() -> None:
    """Every link and picture of the README that is a path of this project leads to a file."""
    targets = [target for target in re.findall(r"\]\(([^)]+)\)", README) if "://" not in target]
    assert targets and [target for target in targets if not (ROOT / target).exists()] == []
