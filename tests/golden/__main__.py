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
from kcontrol.pipeline import recording
from kcontrol.pipeline.compare import first_difference
from kcontrol.sim.player import Player
from tests.group.golden import differences as group_differences


def played(golden: dict[str, Any]) -> dict[str, Any]:
    """What our brokers do in the scenario of a recording, in the format of the recordings."""
    ours = recording.of_journal(Player(golden).play().journal.records)
    return {**ours, **{name: golden[name] for name in recording.HEAD}}


def difference(golden: dict[str, Any]) -> tuple[str | None, dict[str, Any] | None]:
    """Play one recording; return what differs first, in words, or None, and what our brokers did.

    A trace of a group coordinator has its own format, and gives no such account.
    """
    if "exchange" in golden:
        return "; ".join(group_differences(golden)) or None, None
    try:
        ours = played(golden)
    except UserError as unknown:
        return str(unknown), None
    found = first_difference(golden, json.loads(json.dumps(ours)))
    return (str(found) if found else None), ours


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
