"""`python -m tests.durations`: the tests of the last `./run test` that take long, and what their marks should be.

The fast tier has a test because the test is fast. A function's tests need at most LIMIT_S processor seconds each, or are `slow`.
"""

import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.parts import ROOT

RESULTS = ROOT / "tests" / ".results"
LIMIT_S = 1.0


class Case(NamedTuple):
    """A test of a report; `outcome` is "passed", "failed" or "skipped"."""

    test: str
    outcome: str
    processor_s: float
    is_slow: bool

    @property
    def file(self) -> str:
        return self.test.partition("::")[0]

    @property
    def part(self) -> str:
        """The folder of the file below `tests`, or `notebooks`; `tests` for the modules beside the folders."""
        parts = Path(self.file).parts
        return parts[1] if len(parts) > 2 else parts[0] if parts else "none"


def cases(report: Path) -> list[Case]:
    """The tests of a JUnit report that was written with the plugin `tests.processor_time`."""
    found = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        facts = {one.get("name"): one.get("value", "") for one in case.iter("property")}
        tags = {child.tag for child in case}
        outcome = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
        # A file that cannot be collected, and an interrupted run, lack the fact.
        name = facts.get("test") or case.get("name", "")
        found.append(Case(name, outcome, float(facts.get("processor_s", "0")), facts.get("slow") == "1"))
    return found


def proposals(tests: Iterable[Case]) -> list[str]:
    """A line for each function whose mark does not follow from its tests' times, the longest first."""
    # A function may have its mark for some of its cases alone. A slow one is proposed for the fast tier only if each case ran.
    functions = defaultdict[tuple[str, bool], list[Case]](list)
    for case in tests:
        functions[case.test.partition("[")[0], case.is_slow].append(case)
    lines = []
    for (name, is_slow), group in functions.items():
        longest, total = max(case.processor_s for case in group), sum(case.processor_s for case in group)
        if is_slow != (longest > LIMIT_S) and all(case.outcome != "skipped" for case in group):
            advice = "is fast: drop its mark slow" if is_slow else "mark it slow, or the cases that take long"
            lines.append((total, f"{longest:8.2f} s at most, {total:8.2f} s in all, {len(group):4} tests  {name}: {advice}"))
    return [line for _, line in sorted(lines, reverse=True)]


def main() -> int:
    report = RESULTS / "tests.xml"
    if not report.exists():
        print("There is no report of the tests yet: run ./run test first.", file=sys.stderr)
        return 1
    tests = cases(report)
    for case in sorted(tests, key=lambda case: -case.processor_s):
        if case.processor_s > LIMIT_S:
            print(f"{case.processor_s:8.2f} s  {'slow' if case.is_slow else 'fast'}  {case.test}")
    print("", *proposals(tests), sep="\n")
    print(f"{len(tests)} tests, {sum(case.processor_s for case in tests):.0f} processor seconds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
