"""Play a case file against our controller: python -m tests.conformance FILE [--only ID] [--json]."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.conformance.cases import BadFile, read
from tests.conformance.runner import Result, differences, run


def show(result: Result, *, as_json: bool) -> str:
    """One result as JSON, or as a line, followed by what differs."""
    if as_json:
        return json.dumps(result._asdict())
    lines = [f"{'ok  ' if result.ok else 'FAIL'} {result.id}@{result.release}"]
    if not result.ok:
        found = [result.actual] if isinstance(result.actual, str) else differences(result.expected, result.actual)
        lines += [f"     {line}" for line in found]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Return 0 if all cases passed, 1 if some failed, 2 if the file or the id is no good."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=(__doc__ or "").split(":")[0])
    parser.add_argument("file", type=Path, metavar="FILE", help="a case file in the format of FORMAT-controller.md")
    parser.add_argument("--only", metavar="ID", help="play this case alone")
    parser.add_argument("--json", action="store_true", help="print one JSON object per result: id, release, ok, expected, actual")
    chosen = parser.parse_args(arguments)
    try:
        cases = read(chosen.file)
        if chosen.only:
            cases = [case for case in cases if case["id"] == chosen.only]
        if not cases:
            raise BadFile(f"{chosen.file} has no case {chosen.only!r}: name one of its ids.")
    except BadFile as problem:
        print(problem, file=sys.stderr)
        return 2
    failed = passed = 0
    for result in run(cases):
        print(show(result, as_json=chosen.json), flush=True)
        passed, failed = passed + result.ok, failed + (not result.ok)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
