"""Show what has become of traces, or rewrite what is expected of them.

Usage: python -m tests.traces [--rewrite] [NAME ...]
"""

from __future__ import annotations

import argparse
import difflib
import sys

from tests.traces.player import DATA, names, play, read


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.traces", description="Play traces, or rewrite what is expected.")
    parser.add_argument("names", nargs="*", help="which ones; all of them if none is named")
    parser.add_argument("--rewrite", action="store_true", help="write what happens over what was expected")
    chosen = parser.parse_args(arguments)
    differ = 0
    for name in chosen.names or names():
        if name not in names():
            print(f"There is no trace {name!r}; there are {', '.join(names())}.", file=sys.stderr)
            return 2
        expected, (played, _) = read(name), play(read(name))
        differ += played != expected
        if chosen.rewrite and played != expected:
            (DATA / f"{name}.txt").write_text(played)
            print(f"{name}: rewritten")
        elif played != expected:
            print(*difflib.unified_diff(expected.splitlines(), played.splitlines(), name, "played", lineterm=""), sep="\n")
    print(f"{len(chosen.names or names())} traces, {differ} {'rewritten' if chosen.rewrite else 'differ'}")
    return 1 if differ and not chosen.rewrite else 0


if __name__ == "__main__":
    sys.exit(main())
