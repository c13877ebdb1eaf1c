"""Compare our controller with recordings of real brokers.

Usage: python -m tests.golden GOLDEN.json [...] [--world simulated] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from kcontrol.errors import UserError
from tests.golden.compare import Compare, Difference
from tests.golden.player import Player, UnknownStep

PARTS = ["writes", "znodes", "transitions", "requests"]


def difference(golden: dict[str, Any]) -> tuple[str | None, dict[str, Any] | None]:
    """Play one recording; return what differs first, in words, or None, and what our brokers did."""
    try:
        ours = Player(golden).play()
        Compare(golden, json.loads(json.dumps(ours)), PARTS).run()
    except (UnknownStep, UserError) as unknown:
        return str(unknown), None
    except Difference as found:
        return str(found), ours
    return None, ours


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden", description="Compare our controller with recordings of real brokers."
    )
    parser.add_argument("golden", nargs="+", type=Path, help="recordings of real brokers")
    parser.add_argument("--world", choices=["simulated"], default="simulated")
    parser.add_argument("--out", type=Path, help="where to write what our brokers did in the last recording")
    chosen = parser.parse_args(arguments)
    failed = 0
    for path in chosen.golden:
        found, ours = difference(json.loads(path.read_text()))
        print(f"{path.parent.name}/{path.stem}: {found or 'no difference'}")
        failed += found is not None
        if chosen.out and ours:
            chosen.out.write_text(json.dumps(ours, indent=1))
    print(f"{len(chosen.golden) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
